"""One open serial port: bytes in and out without waiting, and the same board found again after
it was away.
"""

import os
import select
import termios

from clawlite.core.base.errors import ClawError
from clawlite.host.serial import ports

BAUD = 115200  # of a UART; USB and a pseudo-terminal have none
_PIECE = 4096
_FULL = 65536  # bytes that wait for the board


class PortGone(ClawError):
    """The port went away: unplugged, or a reset that made it anew."""

    exit_code = 3


def open_port(path: str):
    """Return *path* as ``serial.Serial``, locked for this process.

    Raises ``NoPort`` (3) when it does not exist, ``PortRefused`` (4) when it is busy or not
    permitted."""
    import serial

    try:
        return serial.Serial(path, BAUD, timeout=0, exclusive=True)
    except (OSError, ValueError, termios.error) as e:  # SerialException is an OSError
        if not os.path.exists(path):
            raise ports.NoPort(f"{path} does not exist", ports.next_step([])) from None
        if getattr(e, "errno", None) in (None, 11, 13, 16):  # EAGAIN (locked), EACCES, EBUSY
            raise ports.port_error(path) from None
        raise ports.PortRefused(f"{path}: {e.strerror or e}", "is it a serial port?") from None


class SerialLine:
    """An open port.

    entry  what ``ports.choose`` returned
    Raises what ``open_port`` does.
    """

    def __init__(self, entry: dict):
        self.path, self._id = entry["port"], entry["id"]
        self._port = open_port(self.path)
        self._waiting = b""  # bytes for the board

    @property
    def fd(self):
        """The descriptor to poll, or None while the board is away."""
        return self._port.fileno() if self._port else None

    @property
    def events(self) -> int:
        return select.POLLIN | (select.POLLOUT if self._waiting else 0)

    def read(self) -> bytes:
        """Return what has come, b"" for nothing.  Raises ``PortGone``."""
        try:
            data = os.read(self.fd, _PIECE)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            raise self._lost()
        return data

    def send(self, data: bytes):
        """Queue *data*; what fits goes at once.  Raises ``PortGone``."""
        self._waiting += data
        self.flush()

    def flush(self):
        """Write what the port takes now.  Raises ``PortGone``."""
        try:
            self._waiting = self._waiting[os.write(self.fd, self._waiting[:_PIECE]) :]
        except BlockingIOError:
            pass
        except OSError:
            raise self._lost() from None

    def say(self, data: bytes):
        """Write *data* as far as it goes: a farewell."""
        try:
            self.send(data)
        except PortGone:
            pass

    @property
    def is_sent(self) -> bool:
        return not self._waiting

    def again(self) -> bool:
        """Open the port of the same board, if it is back; return whether it is."""
        path = ports.find(self._id)
        if path:
            try:
                self._port = open_port(path)
            except ClawError:  # not yet: udev sets its rights a moment later
                return False
            self.path = path
        return bool(path)

    @property
    def is_full(self) -> bool:
        return len(self._waiting) > _FULL

    def close(self):
        if self._port:
            try:
                self._port.close()
            except OSError:
                pass
            self._port = None

    def _lost(self) -> PortGone:
        self.close()
        self._waiting = b""
        return PortGone(f"{self.path} went away", "plug it in again")
