"""What a person or a script types, as bytes that a loop waits for.

On Windows nothing can wait for a console or a pipe: there a thread reads, and the loop waits for
its ``Bridge``.  Keys come there one by one (msvcrt.getwch), and become the sequences that
terminals send for them."""

import os
import sys
from typing import Any

from clawlite.host.systems.bridge import Bridge

_PIECE = 4096
# the second code of a key that has no character (msvcrt.getwch) -> what a terminal sends
_SEQUENCES = {
    "H": "\x1b[A",
    "P": "\x1b[B",
    "M": "\x1b[C",
    "K": "\x1b[D",
    "G": "\x1b[H",
    "O": "\x1b[F",
    "S": "\x1b[3~",
    "s": "\x1b[1;5D",
    "t": "\x1b[1;5C",
}


def open_keyboard(is_raw: bool):
    """Return what reads this process's stdin; *is_raw*: it is a console, and its lines are edited
    here.
    """
    if sys.platform != "win32":
        return Keyboard()
    return BridgedKeyboard(Keys().read if is_raw else _read_raw)


class Keyboard:
    """Stdin, where a loop can wait for it."""

    fd = 0

    def read(self) -> bytes:
        """Return what has come, b"" at the end.  Raises ``OSError`` for a terminal that hung
        up.
        """
        return os.read(0, _PIECE)

    def close(self) -> None:
        pass


class BridgedKeyboard:
    """Stdin that a thread reads; *read*: function() -> bytes, which waits for some."""

    def __init__(self, read):
        self._bridge = Bridge(read)
        self.fd = self._bridge.socket.fileno()

    def read(self) -> bytes:
        return self._bridge.socket.recv(_PIECE)

    def close(self) -> None:
        self._bridge.close()


def _read_raw() -> bytes:
    # os.read would give a console's characters in its code page
    stream: Any = sys.stdin.buffer
    return stream.raw.read(_PIECE) or b""


class Keys:
    """The keys of a Windows console, as the bytes that a terminal sends for them."""

    def __init__(self):
        import msvcrt

        self._console: Any = msvcrt
        self._half = ""  # the first half of a character beyond U+FFFF

    def read(self) -> bytes:
        """Wait for a key; return its bytes, never none of them."""
        while True:
            char = self._console.getwch()
            # the letter à is the same code as the first of such a key; then no second waits
            if char == "\x00" or char == "\xe0" and self._console.kbhit():
                data = _SEQUENCES.get(self._console.getwch(), "")
            elif "\ud800" <= char <= "\udbff":
                self._half, data = char, ""
            else:
                data, self._half = self._half + char, ""
            if data:
                text = data.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
                return text.encode()
