"""A board's console, as a gateway that has its port shares it: a pseudo-terminal that ``clawlite
ports`` lists.

``clawlite console --port gateway:ID`` talks to it as to the board.  What comes while nobody has it
open is dropped.  Where there are no pseudo-terminals (Windows), nothing is shared (``NoConsole``).
"""

import asyncio
import os

try:
    import pty
    import tty
except ImportError:  # Windows
    pty = None  # type: ignore[assignment]

from clawlite.core.line.frame import RECORD, TEXT, Framer
from clawlite.host.board_console.line import line_record
from clawlite.host.sim import registry

_MAX_LINE = 8192
_PIECE = 4096
_KEYS = (b"\x03", b"\x04")  # that a console hands on as they are


def open_console(name: str, typed):
    """Return the console of the device *name*; *typed*: see ``Console``."""
    return NoConsole() if pty is None else Console(name, typed)


class NoConsole:
    """Where no console can be shared: what is shown is dropped, and nobody types."""

    id = ""

    def show(self, text: bytes) -> None:
        pass

    def record(self, data: bytes) -> None:
        pass

    def close(self) -> None:
        pass


class Console:
    """One pseudo-terminal.

    name   of the device
    typed  function(record or b"", raw bytes) -> bool, called for each line, record or key; False:
           the device is away
    """

    def __init__(self, name: str, typed):
        self.id = "gateway:" + name
        self._typed = typed
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self._framer = Framer(_MAX_LINE)
        port = os.ttyname(self._slave)
        self._file = registry.register(
            {
                "port": port,
                "link": None,
                "board": "gateway",
                "id": self.id,
                "folder": None,
                "pid": os.getpid(),
            }
        )
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._master, self._readable)

    def show(self, text: bytes) -> None:
        """Show *text*; what does not fit is lost: nobody reads."""
        try:
            os.write(self._master, text)
        except BlockingIOError:
            pass

    def record(self, data: bytes) -> None:
        """Hand on a record that is for no gateway."""
        self.show(b"\x1e" + data + b"\n")

    def close(self) -> None:
        self._loop.remove_reader(self._master)
        ends, self._master, self._slave = (self._master, self._slave), -1, -1
        for fd in ends:
            os.close(fd)
        registry.forget(self._file)

    def _readable(self) -> None:
        data = os.read(self._master, _PIECE)
        for key in _KEYS:
            if key in data:
                data = data.replace(key, b"")
                self._typed(b"", key)
        self._framer.feed(data)
        while event := self._framer.next_event():
            kind, line = event
            record = line if kind == RECORD else line_record(line) if kind == TEXT else b""
            raw = b"\x1e" + line + b"\n" if kind == RECORD else line + b"\n"
            if kind not in (RECORD, TEXT):
                self.show(b"clawlite: that line is too long; it was not sent\n")
            elif not self._typed(record, raw):
                self.show(b"clawlite: the board is disconnected; that was not sent\n")
