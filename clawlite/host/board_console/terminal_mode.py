"""The modes of this process's terminal: raw, for lines that are edited here, and back.

Elsewhere that is termios(3).  A console of Windows gets keys from msvcrt; here it is told to take
escape sequences and UTF-8, and to hand on Ctrl-C as a key."""

import os
from typing import Any

try:
    import termios
except ImportError:
    termios = None  # type: ignore[assignment]

# positions in what ``termios.tcgetattr`` returns
_INPUT, _LOCAL, _CHARACTERS = 0, 3, 6
# of GetStdHandle and SetConsoleMode (Microsoft's documentation of consoles)
_STDIN, _STDOUT = -10, -11
_PROCESSED_INPUT, _PROCESSED_OUTPUT, _SEQUENCES = 0x1, 0x1, 0x4
_UTF8 = 65001


def has_abilities() -> bool:
    """Return whether the terminal understands escape sequences."""
    if termios is not None:
        return os.environ.get("TERM", "") not in ("", "dumb")
    mode = WindowsMode()
    try:
        return mode.set()
    finally:
        mode.restore()


class Mode:
    """The modes of a terminal, as they were, until ``restore``."""

    def __init__(self):
        self._kept = termios.tcgetattr(0)

    def _mine(self) -> list:
        return [*self._kept[:_CHARACTERS], list(self._kept[_CHARACTERS])]

    def _set(self, mine: list) -> None:
        termios.tcsetattr(0, termios.TCSANOW, mine)

    def set_raw(self) -> None:
        """Hand on each key as it comes."""
        mine = self._mine()
        mine[_INPUT] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR | termios.IXON)
        mine[_LOCAL] &= ~(
            termios.ICANON | termios.ECHO | termios.ECHONL | termios.IEXTEN | termios.ISIG
        )
        mine[_CHARACTERS][termios.VMIN], mine[_CHARACTERS][termios.VTIME] = 1, 0
        self._set(mine)

    def set_line_ends(self, *ends: int) -> None:
        """Let these two keys end a line, as Enter does (termios(3), VEOL)."""
        mine = self._mine()
        mine[_LOCAL] &= ~termios.ISIG
        mine[_CHARACTERS][termios.VEOL] = bytes(ends[:1])
        mine[_CHARACTERS][termios.VEOL2] = bytes(ends[1:])
        self._set(mine)

    def restore(self) -> None:
        try:
            self._set(self._kept)
        except termios.error:  # it hung up
            pass


class WindowsMode:
    """As ``Mode``, of a console of Windows."""

    def __init__(self):
        import ctypes

        self._ctypes: Any = ctypes
        self._kept: list = []
        self._system: Any = getattr(getattr(ctypes, "windll", None), "kernel32", None)
        self._page: int | None = None

    def set(self) -> bool:
        """Take escape sequences and UTF-8; return whether it can."""
        if self._system is None or not self._change(_STDOUT, _PROCESSED_OUTPUT | _SEQUENCES, 0):
            return False
        self._page = self._system.GetConsoleOutputCP()
        self._system.SetConsoleOutputCP(_UTF8)
        return True

    def set_raw(self) -> None:
        self.set()
        if self._system is not None:
            self._change(_STDIN, 0, _PROCESSED_INPUT)

    def set_line_ends(self, *ends: int) -> None:
        """A console of Windows has none: Ctrl-C ends the command there, and so does Ctrl-Z."""

    def restore(self) -> None:
        for handle, mode in reversed(self._kept):
            self._system.SetConsoleMode(handle, mode)
        if self._page:
            self._system.SetConsoleOutputCP(self._page)
        self._kept, self._page = [], None

    def _change(self, which: int, added: int, removed: int) -> bool:
        self._system.GetStdHandle.restype = self._ctypes.c_void_p
        handle = self._ctypes.c_void_p(self._system.GetStdHandle(which))
        mode = self._ctypes.c_uint32()
        if not self._system.GetConsoleMode(handle, self._ctypes.byref(mode)):
            return False
        if not self._system.SetConsoleMode(handle, mode.value & ~removed | added):
            return False
        self._kept.append((handle, mode.value))
        return True


def open_mode():
    """Return the ``Mode`` of this process's terminal."""
    return WindowsMode() if termios is None else Mode()
