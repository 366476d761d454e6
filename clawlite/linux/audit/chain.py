"""Verifies the chain of an audit: each record has the SHA-256 of the line before it, and a head
says where the chain begins and ends.

scan/auditline.py, which boards share, defines lines and heads.

This finds a line that was changed, removed, inserted or moved, lines that were cut from the end
while the head stayed, a head that was lost, also when the chain went on afterwards (the writer puts
that on record), and a head that was changed without the lines.  When somebody rewrites or
removes both lines and head, only a note of an earlier head (``verify --anchor``) shows it."""

from clawlite.core.base.errors import ClawError
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.scan import auditline
from clawlite.scan.auditline import LOST_HEAD, Head, beginning, digest


def line(head: Head, record: dict, clean) -> bytes:
    """Return the line of *record*, with its end; *head* is moved on to it.

    clean  function(text) -> text without secrets
    """
    return auditline.line(head, clean(dumps(record)))


def link(data: bytes) -> tuple:
    """Return (n, prev) of a line without its end; (None, None) for one that is not a record."""
    try:
        value = loads(data)
        return (
            (value["n"], value["prev"])
            if isinstance(value["n"], int) and isinstance(value["prev"], str)
            else (None, None)
        )
    except (ClawError, KeyError, TypeError):
        return None, None


def verify(lines, head, agent: str, anchor: tuple = None) -> dict:
    """Return {"ok", "records", "first", "last", "hash", "problems"} of a chain.

    lines   iterable of bytes without line feeds, in order
    head    ``Head``, or None when there is none
    anchor  (n, hash) that somebody noted, or None.  What was noted after a head was lost settles
            that loss: somebody knew of it
    Cost    some 10 us a record
    """
    problems, lost, count, first, hash = [], [], 0, None, None
    start = beginning(agent)
    if head and head.first > 1:
        start = Head(head.first, head.prev, 0, "")
    expected, prev = start.first, start.prev
    # what was noted may be the last record that was taken away
    last, seen = expected - 1, anchor in (None, (expected - 1, prev))
    for data in lines:
        n, before = link(data)
        count += 1
        if n is None:
            problems.append("line %d is not a record" % count)
        elif n != expected or before != prev:
            problems.append(_describe_break(n, expected))
        first = n if first is None else first
        last, hash = n if n is not None else expected, digest(data)
        expected, prev = last + 1, hash
        # also where more records follow: the head may be an older one
        if head and n == head.last and hash != head.hash:
            problems.append("record %d was changed: the head has another hash" % n)
        if LOST_HEAD.encode() in data and _tells_lost_head(data):
            lost.append(last)
        if anchor and n == anchor[0]:
            seen = True
            if hash != anchor[1]:
                problems.append("record %d differs from the one that was noted" % n)
    problems += _end(head, last)
    problems += [
        "the head was lost before record %d was written, so records may be missing before it; "
        "once you know why, this settles it: --anchor %d:%s" % (n, last, hash)
        for n in lost
        if not (anchor and seen and n <= anchor[0])
    ]
    if not seen:
        problems.append("record %d, which was noted, is missing" % anchor[0])
    return {
        "ok": not problems,
        "records": count,
        "first": first,
        "last": last if count else None,
        "hash": hash,
        "problems": problems,
    }


def _tells_lost_head(data: bytes) -> bool:
    """Return whether a record, by its event and not by what a stranger wrote, tells of it."""
    try:
        value = loads(data)
        return value["event"] == "audit.problem" and LOST_HEAD in value["problem"]
    except (ClawError, KeyError, TypeError):
        return False


def _describe_break(n: int, expected: int) -> str:
    if n > expected:
        return "%s missing before record %d" % (
            "record %d is" % expected
            if n == expected + 1
            else "records %d to %d are" % (expected, n - 1),
            n,
        )
    if n < expected:
        return "record %d stands where record %d should: moved, repeated or forged" % (n, expected)
    return "record %d does not follow from the record before it: one of the two was changed" % n


def _end(head, last: int) -> list:
    if head is None:
        return ["the head is missing, so it is unknown whether records are missing at the end"]
    if head.last > last:
        return [
            "the end is missing: the last record was %d, the last one here is %d"
            % (head.last, last)
        ]
    return []
