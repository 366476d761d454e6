"""The files of a board's audit: those of a Pi (clawlite/linux/audit/files.py), for the same
``clawlite audit verify``.  Loaded for a record, and dropped.

    audit-AGENT/audit.jsonl       the last segment, of 16 KiB; those before it are audit-N.jsonl, N
                                  their first record
    audit-AGENT/audit.head        where the chain begins and ends, 256 bytes

1. A record counts when the head is in flash after it.  A power cut before that leaves none of it,
   or a whole one that the next start takes for its own (littlefs), or a torn one, which is cut off
   and said (other file systems): auditmend.py.
2. Every function raises ``OSError`` when the flash cannot be read or written.
"""

import os

from clawlite.scan.auditline import head_of, line

SEGMENT = 16384  # bytes
_HEAD = 256
_DAY, _PARTS = 86400, 16  # a segment is of a day, or of a sixteenth of the retention


def append(folder: str, text: str, kept_s, now):
    """Append the record *text*, JSON without secrets.

    kept_s  seconds that records are kept, or None;  now: since 1970, or None
    Raises ``ClawError`` when there is no room for another segment.
    """
    path = folder + "/audit.jsonl"
    head = head_in(folder)
    if head is None:
        raise OSError("its head is damaged")
    size = size_of(path)
    if (
        not size
        or size >= SEGMENT
        or kept_s
        and now
        and _is_over(path, now - max(_DAY, kept_s // _PARTS))
    ):
        from auditmend import turn

        turn(folder, path if size else "", head, kept_s, now)
    data = line(head, text)
    with open(path, "ab") as file:
        file.write(data)
    put(folder, head)


def _is_over(path: str, before_s: int) -> bool:
    from clawlite.core.base.clock import iso8601

    return begun(path)[2] < iso8601(before_s)


def begun(path: str) -> tuple:
    """Return (number, hash before it, time) of the first record of a segment; (None, "", "unset")
    of a damaged one.

    Each line of ours begins with them, and "unset" is later than all times.
    """
    with open(path, "rb") as file:
        parts = file.read(119).split(b'"', 10)
    try:
        return int(parts[2][1:-1]), str(parts[5], "utf-8"), str(parts[9], "utf-8")
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
    """Write the head in place: 256 bytes, always all of them."""
    path, text = folder + "/audit.head", head.text()
    with open(path, "r+b" if "audit.head" in os.listdir(folder) else "wb") as file:
        file.write(text.encode() + b" " * (_HEAD - 1 - len(text)) + b"\n")


def size_of(path: str) -> int:
    """Return the bytes of a file, 0 when there is none."""
    try:
        return os.stat(path)[6]
    except OSError:
        return 0
