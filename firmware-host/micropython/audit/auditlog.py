"""The files of a board's audit.  They have the format of a Pi's (clawlite/linux/audit/files.py), so
that ``clawlite audit verify`` can read both.  Loaded for a record, and dropped.

    audit-AGENT/audit.jsonl       the last segment, of 16 KiB; those before it are audit-N.jsonl, N
                                  their first record
    audit-AGENT/audit.head        where the chain begins and ends, 256 bytes

1. A record is valid when the head has been written to flash after it.  A power cut before that
   leaves nothing, or a complete record that the next start accepts (littlefs), or a torn record,
   which is cut off and reported (other file systems): auditmend.py.
2. Every function raises ``OSError`` when the flash cannot be read or written.
"""

from auditfiles import SEGMENT, TIME, first, head_in, put, size_of
from clawlite.scan.auditline import line

_DAY, _PARTS = 86400, 16  # a segment spans a day, or a sixteenth of the retention if that is longer


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

    return first(path)[TIME] < iso8601(before_s)
