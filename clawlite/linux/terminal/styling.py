"""Colour and lines broken at words, for a terminal that can move its cursor.

1. Nothing of it reaches a pipe, a file, or a terminal without abilities.  Without colour where
   NO_COLOR is set (no-color.org).
2. Text comes here when it is harmless already (core/base/printable.py): the only sequences in it
   are those that are added here.
"""

import fcntl
import os
import struct
import termios

# of SGR (ECMA-48): a question is bold and yellow, the name of a tool cyan
BOLD, DIM, TOOL = "1;33", "2", "36"
_OFF = "\x1b[0m"


def columns_of(fd: int) -> int:
    """Return the width of a terminal, 0 where it does not say one."""
    try:
        return struct.unpack("HHHH", fcntl.ioctl(fd, termios.TIOCGWINSZ, b"\0" * 8))[1]
    except OSError:
        return 0


def paint(line: str, look: str) -> str:
    """Return *line* with the *look*, as it is where no colour is wanted."""
    return "\x1b[%sm%s%s" % (look, line, _OFF) if line and not os.environ.get("NO_COLOR") else line


def dress(text: str, columns: int, is_question: bool, tools=()) -> str:
    """Return *text* with its lines broken at words; of a question the first line stands out, and
    the others do not.  Elsewhere a name of *tools* at the start of a line does, before its
    arguments or a colon.
    """
    done = []
    for number, line in enumerate(text.split("\n")):
        rows = wrap(line, columns)
        if is_question:
            rows = [paint(row, DIM if number else BOLD) for row in rows]
        else:
            name = rows[0].partition("(")[0].partition(":")[0]
            if name in tools and name != rows[0]:
                rows[0] = paint(name, TOOL) + rows[0][len(name) :]
        done += rows
    return "\n".join(done)


class StreamWrap:
    """Breaks the lines of a text that comes in pieces, as ``wrap`` breaks whole ones: a word is
    shown once its end has come, and so is a longer word than a row takes.
    """

    def __init__(self):
        self._columns = 0
        self._used = 0  # characters of the row that are shown
        self._word = ""  # blanks, and what has come of the word behind them
        self._is_whole = False  # the line has wide characters: it is not broken

    def write(self, text: str, columns: int) -> str:
        """Return what may be shown now, for a terminal of *columns* characters."""
        shown, self._columns = "", columns
        for character in text:
            if character in " \n" and self._word.strip(" ") or len(self._word) >= columns:
                shown += self.rest()
            if character == "\n":
                shown += "\n"
                self._used, self._word, self._is_whole = 0, "", False
            else:
                self._word += character
                self._is_whole = self._is_whole or not character.isascii()
        return shown + (self.rest() if self._is_whole or not columns else "")

    def rest(self) -> str:
        """Return the word, on a row of its own when it does not fit behind what is shown."""
        word, self._word = self._word, ""
        is_wide = 0 < self._columns < self._used + len(word)
        if is_wide and self._used and word.startswith(" ") and not self._is_whole:
            word = word.lstrip(" ")
            self._used = len(word)
            return "\n" + word
        self._used += len(word)
        return word


def wrap(line: str, columns: int) -> list:
    """Return *line* as rows of at most *columns* characters, broken at blanks; a longer word stays
    whole, and so does a line with characters that are wider than one column, or where *columns* is
    0.
    """
    rows, indent = [], len(line) - len(line.lstrip(" "))
    if not columns or indent > columns // 2 or not line.isascii():
        return [line]
    while len(line) > columns:
        end = line.rfind(" ", indent + 1, columns + 1)
        if end < 0:
            end = line.find(" ", columns)
        rest = line[end:].lstrip(" ") if end > 0 else ""
        if not rest or indent + len(rest.split(" ", 1)[0]) > columns >= end:
            break
        rows.append(line[:end].rstrip(" "))
        line = " " * indent + rest
    return [*rows, line]
