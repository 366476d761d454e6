"""One open serial port: bytes in and out without waiting, and the same board found again after
it was away.

A descriptor of it can be waited for.  Where a port has none (Windows), that is the socket of a
``Bridge``."""

import os
import sys

from clawlite.core.base.errors import ClawError
from clawlite.host.serial import ports
from clawlite.host.systems.bridge import Bridge

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
    except _errors() as e:
        if not ports.is_there(path):
            raise ports.NoPort(f"{path} does not exist", ports.next_step([])) from None
        # EAGAIN (locked), EACCES, EBUSY; Windows has no number
        if getattr(e, "errno", None) in (None, 11, 13, 16):
            raise ports.port_error(path) from None
        raise ports.PortRefused(f"{path}: {e.strerror or e}", "is it a serial port?") from None


def _errors() -> tuple:
    """Return what pyserial raises for a port that it cannot open.  SerialException is an
    OSError.
    """
    try:
        import termios
    except ImportError:
        return OSError, ValueError
    return OSError, ValueError, termios.error


class _Handle:
    """The bytes of an open port on Windows, which has no descriptor, by a ``Bridge``."""

    def __init__(self, port):
        port.timeout = None  # its thread waits

        def read():
            return port.read(max(1, min(port.in_waiting, _PIECE)))

        self._port, self._bridge = port, Bridge(read, port.write)

    def fileno(self) -> int:
        return self._bridge.socket.fileno()

    def read(self) -> bytes:
        return self._bridge.socket.recv(_PIECE)

    def write(self, data: bytes) -> int:
        return self._bridge.socket.send(data)

    def close(self) -> None:
        self._bridge.finish()
        for cancel in (self._port.cancel_read, self._port.cancel_write):
            cancel()
        self._bridge.close()
        self._port.close()


class _Descriptor:
    """The bytes of an open port that has a descriptor."""

    def __init__(self, port):
        self._port, self._fd = port, port.fileno()

    def fileno(self) -> int:
        return self._fd

    def read(self) -> bytes:
        return os.read(self._fd, _PIECE)

    def write(self, data: bytes) -> int:
        return os.write(self._fd, data)

    def close(self) -> None:
        self._port.close()


def _open_bytes(path: str):
    port = open_port(path)
    return _Handle(port) if sys.platform == "win32" else _Descriptor(port)


class SerialLine:
    """An open port.

    entry  what ``ports.choose`` returned
    Raises what ``open_port`` does.
    """

    def __init__(self, entry: dict):
        self.path, self._id = entry["port"], entry["id"]
        self._port = _open_bytes(self.path)
        self._waiting = b""  # bytes for the board

    @property
    def fd(self):
        """The descriptor to wait for, or None while the board is away."""
        return self._port.fileno() if self._port else None

    @property
    def wants_write(self) -> bool:
        """Whether bytes wait for the port to take them."""
        return bool(self._waiting)

    def read(self) -> bytes:
        """Return what has come, b"" for nothing.  Raises ``PortGone``."""
        try:
            data = self._port.read()
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            raise self._lose()
        return data

    def send(self, data: bytes):
        """Queue *data*; what fits goes at once.  Raises ``PortGone``."""
        self._waiting += data
        self.flush()

    def flush(self):
        """Write what the port takes now.  Raises ``PortGone``."""
        try:
            self._waiting = self._waiting[self._port.write(self._waiting[:_PIECE]) :]
        except BlockingIOError:
            pass
        except OSError:
            raise self._lose() from None

    def say(self, data: bytes):
        """Write *data* as far as it goes: a farewell."""
        try:
            self.send(data)
        except PortGone:
            pass

    @property
    def is_sent(self) -> bool:
        return not self._waiting

    def reopen(self) -> bool:
        """Open the port of the same board, if it is back; return whether it is."""
        path = ports.find(self._id)
        if path:
            try:
                self._port = _open_bytes(path)
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

    def _lose(self) -> PortGone:
        self.close()
        self._waiting = b""
        return PortGone(f"{self.path} went away", "plug it in again")
