"""``clawlite logs FILE``: show the output of a board from a file, with its tracebacks decoded.

The file was written by ``clawlite console --log``, or by any other terminal program.  Text
is shown as the console shows it: records and frames are left out, control characters are written
out.
"""

import json
import re
import sys

from clawlite.core.base.errors import ClawError
from clawlite.core.base.printable import printable
from clawlite.host.base.regular_file import open_regular
from clawlite.host.board_console.screens import write
from clawlite.host.board_console.text import PROMPT, TEXT, BoardText
from clawlite.host.firmware.functions import Tracebacks
from clawlite.host.serial.line_text import TextBeside

_ENTRY = re.compile(rb'[\d-]{10}T[\d:.]{12}Z ([<>!]) (".*")')  # console/log.py
_MOST = 1 << 20  # bytes; a longer line is shown in pieces


def show(path: str) -> None:
    """Write the text of the file *path* (``-``: stdin) to stdout.

    Raises ``ClawError`` when the file cannot be read, ``BrokenPipeError`` when nobody reads stdout.
    """
    log = _SavedLog()
    for line in _lines(path):
        log.take(line)
    log.end()


def _lines(path: str):
    try:
        with sys.stdin.buffer if path == "-" else open(path, "rb", opener=open_regular) as file:
            while line := file.readline(_MOST):
                yield line
    except OSError as e:
        raise ClawError(f"{path}: {e.strerror}", "name a file, or - for stdin") from None


class _SavedLog:
    """Takes the lines of a file and writes text."""

    def __init__(self):
        self._beside, self._text, self._tracebacks = TextBeside(), BoardText(), Tracebacks()
        self._prompt = b""  # not written yet: more of its line may come

    def take(self, line: bytes) -> None:
        direction, data = _entry(line) or (b"<", line)
        if direction == b"<":
            self._text.feed(self._beside.take(data))
            self._show()
        elif direction == b">":
            if not data.startswith(b"\x1e"):
                self._text.begin_line()
                write(self._prompt + printable(data))
                self._prompt = b""
        else:
            self.end()
            write(b"clawlite: %s\n" % printable(data))

    def end(self) -> None:
        """Write what was held back, and end its line."""
        if event := self._text.flush(False):
            _, data = event
            write(self._tracebacks.feed(data))
        if self._prompt or event:
            write(self._prompt + b"\n")
        self._text.begin_line()
        self._prompt = b""

    def _show(self) -> None:
        while event := self._text.next_event():
            kind, data = event
            self._prompt = data if kind == PROMPT else b""
            if kind == TEXT:
                write(self._tracebacks.feed(data))


def _entry(line: bytes):
    """Return (direction, bytes) of a line that ``clawlite console --log`` wrote, or None."""
    found = _ENTRY.fullmatch(line.rstrip(b"\r\n"))
    if not found:
        return None
    direction, data = found.groups()
    try:
        return direction, json.loads(data).encode("utf-8", "surrogateescape")
    except ValueError:
        return None
