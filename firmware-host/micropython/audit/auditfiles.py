"""The content of the files of a board's audit: the head, and the beginning of a segment
(auditlog.py has the layout).
"""

import os

from clawlite.scan.auditline import head_of
from osfields import STAT_SIZE

SEGMENT = 16384  # bytes
NUMBER, HASH, TIME = range(3)  # positions in the result of ``first``
_HEAD = 256
# parts between the quotes of a line: {"seq":7,"prev":"c0ffee...","time":"2026-..."
_NUMBER, _HASH, _TIME = 2, 5, 9


def first(path: str) -> tuple:
    """Return (number, hash before it, time) of the first record of a segment; (None, "", "unset")
    when the segment is damaged.

    Each of our lines begins with these three.  "unset" compares as later than all times.
    """
    with open(path, "rb") as file:
        parts = file.read(119).split(b'"', 10)
    try:
        return int(parts[_NUMBER][1:-1]), str(parts[_HASH], "utf-8"), str(parts[_TIME], "utf-8")
    except (ValueError, IndexError):
        return None, "", "unset"


def head_in(folder: str):
    """Return the ``Head`` in *folder*, or None."""
    try:
        with open(folder + "/audit.head", "rb") as file:
            return head_of(file.read(_HEAD))
    except OSError:
        return None


def put(folder: str, head):
    """Write the head in place: always 256 bytes."""
    path, text = folder + "/audit.head", head.text()
    with open(path, "r+b" if "audit.head" in os.listdir(folder) else "wb") as file:
        file.write(text.encode() + b" " * (_HEAD - 1 - len(text)) + b"\n")


def size_of(path: str) -> int:
    """Return the bytes of a file, 0 when there is none."""
    try:
        return os.stat(path)[STAT_SIZE]
    except OSError:
        return 0
