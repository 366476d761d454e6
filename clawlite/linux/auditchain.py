"""The chain of an audit: each record carries the SHA-256 of the line before it, and a head says where the chain begins and ends.

    line   {"n":N,"prev":HASH OF THE LINE BEFORE,...} and a line feed, which its hash does not cover
    head   {"first":N,"prev":HASH,"last":N,"hash":HASH}: the first record that is kept and what came before it; the last and its hash
    genesis   what stands before record 1: the SHA-256 of "clawlite audit 1", a line feed and the agent's name

What is found: a line that was changed, removed, added between others, or moved; lines that were cut from the end, as long as the head
is as it was; a head that was changed without the lines.  Not found without a note of an earlier head (``verify --anchor``): somebody
who may write both made everything anew, or removed both.
"""
import hashlib

from clawlite.core.errors import ClawError
from clawlite.linux.jsontext import dumps, loads

MAX_LINE = 65536                # bytes of a record


class Head:
    """Where a chain begins and ends: numbers of records, and hashes in hexadecimal."""

    def __init__(self, first: int, prev: str, last: int, hash: str):
        self.first, self.prev, self.last, self.hash = first, prev, last, hash

    def text(self) -> str:
        return dumps({"first": self.first, "prev": self.prev, "last": self.last, "hash": self.hash})


def beginning(agent: str) -> Head:
    """Return the head of a chain without records."""
    genesis = hashlib.sha256(b"clawlite audit 1\n" + agent.encode()).hexdigest()
    return Head(1, genesis, 0, genesis)


def head_of(data: bytes):
    """Return the ``Head`` in *data*, None for anything else."""
    try:
        value = loads(data.strip(b"\0 \n"))
        head = Head(value["first"], value["prev"], value["last"], value["hash"])
        whole = isinstance(head.first, int) and isinstance(head.last, int) and len(head.prev) == len(head.hash) == 64
    except (ClawError, KeyError, TypeError):
        return None
    return head if whole else None


def line(head: Head, record: dict, clean) -> bytes:
    """Return the line of *record*, with its end; *head* is moved on to it.

    clean  function(text) -> text without secrets
    """
    text = clean(dumps(dict({"n": head.last + 1, "prev": head.hash}, **record)))
    data = text.encode("utf-8", "replace")
    head.last += 1
    head.hash = digest(data)
    return data + b"\n"


def digest(data: bytes) -> str:
    """Return the hash of a line without its end."""
    return hashlib.sha256(data).hexdigest()


def link(data: bytes) -> tuple:
    """Return (n, prev) of a line without its end; (None, None) for one that is no record."""
    try:
        value = loads(data)
        return (value["n"], value["prev"]) if isinstance(value["n"], int) and isinstance(value["prev"], str) else (None, None)
    except (ClawError, KeyError, TypeError):
        return None, None


def verify(lines, head, agent: str, anchor: tuple = None) -> dict:
    """Return {"ok", "records", "first", "last", "hash", "problems"} of a chain.

    lines   iterable of bytes without line feeds, in order
    head    ``Head``, or None when there is none
    anchor  (n, hash) that somebody noted, or None
    Cost    some 10 us a record
    """
    problems, count, first, last, hash = [], 0, None, 0, None
    start = beginning(agent)
    if head and head.first > 1:
        start = Head(head.first, head.prev, 0, "")
    expected, prev, seen = start.first, start.prev, anchor is None
    for data in lines:
        n, before = link(data)
        count += 1
        if n is None:
            problems.append("line %d is no record" % count)
        elif n != expected or before != prev:
            problems.append(_broken(n, before, expected, prev))
        first = n if first is None else first
        last, hash = n if n is not None else expected, digest(data)
        expected, prev = last + 1, hash
        if anchor and n == anchor[0]:
            seen = True
            if hash != anchor[1]:
                problems.append("record %d is another than the one that was noted" % n)
    problems += _end(head, count, last, hash, start)
    if not seen:
        problems.append("record %d, which was noted, is not here" % anchor[0])
    return {"ok": not problems, "records": count, "first": first, "last": last if count else None, "hash": hash, "problems": problems}


def _broken(n: int, before: str, expected: int, prev: str) -> str:
    if n > expected:
        return "%s missing before record %d" % ("record %d is" % expected if n == expected + 1 else "records %d to %d are" % (expected, n - 1), n)
    if n < expected:
        return "record %d stands where record %d should: moved, repeated or forged" % (n, expected)
    return "record %d does not follow from what stands before it: one of the two was changed" % n


def _end(head, count: int, last: int, hash, start: Head) -> list:
    if head is None:
        return ["there is no head: whether records are missing at the end cannot be told"]
    if head.last > last:
        return ["the end is missing: the last record was %d, the last one here is %d" % (head.last, last)]
    if count and head.last == last and head.hash != hash:
        return ["record %d was changed: the head has another hash" % last]
    return []
