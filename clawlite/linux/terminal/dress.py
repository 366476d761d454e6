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

BOLD, DIM = "1;33", "2"  # of SGR (ECMA-48): a question is bold and yellow
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


def dress(text: str, columns: int, is_question: bool) -> str:
    """Return *text* with its lines broken at words; of a question the first line stands out, and
    the others do not.
    """
    done = []
    for number, line in enumerate(text.split("\n")):
        look = (DIM if number else BOLD) if is_question else ""
        done += [paint(part, look) if look else part for part in wrap(line, columns)]
    return "\n".join(done)


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
