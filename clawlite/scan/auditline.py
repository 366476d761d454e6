"""A line of an audit (CKP 0.2.0, 5.8 ``audit``; docs/audit.md): the same bytes on a Pi and on a
board.

    line     {"n":N,"prev":HASH OF THE LINE BEFORE,...} and a line feed, which its hash does not
             cover
    head     {"first":N,"prev":HASH,"last":N,"hash":HASH}: the first record that is kept and the
             hash before it; the last record and its hash
    genesis  the hash before record 1: the SHA-256 of "clawlite audit 1", a line feed and the
             agent's name
"""

from binascii import hexlify

from clawlite.core.base.dialect import sha256

LOST_HEAD = "the head was damaged or missing"  # what is on record of it


class Head:
    """Where a chain begins and ends: numbers of records, and hashes in hexadecimal."""

    def __init__(self, first: int, prev: str, last: int, hash: str):
        self.first, self.prev, self.last, self.hash = first, prev, last, hash

    def text(self) -> str:
        return '{"first":%d,"prev":"%s","last":%d,"hash":"%s"}' % (
            self.first,
            self.prev,
            self.last,
            self.hash,
        )


def beginning(agent: str) -> Head:
    """Return the head of a chain without records."""
    genesis = digest(b"clawlite audit 1\n" + agent.encode())
    return Head(1, genesis, 0, genesis)


def head_of(data: bytes):
    """Return the ``Head`` in *data*; None when *data* is anything but its text and blanks."""
    data = data.strip(b"\0 \n")
    parts = data.split(b'"')
    try:
        # number and hash of the oldest record that is left, and of the newest
        _, _, first, _, _, prev, _, _, last, _, _, newest, _ = parts
        head = Head(int(first[1:-1]), str(prev, "ascii"), int(last[1:-1]), str(newest, "ascii"))
    except ValueError:
        return None
    whole = len(head.prev) == len(head.hash) == 64 and head.text().encode() == data
    return head if whole else None


def digest(data: bytes) -> str:
    """Return the hash of a line without its end."""
    return str(hexlify(sha256(data).digest()), "utf-8")


def line(head: Head, text: str) -> bytes:
    """Return the line of a record, with its line feed, and update *head* to it.

    text  the record as JSON, ``{"time":...}``.  Secrets must be removed before n and the hash are
          added
    """
    data = ('{"n":%d,"prev":"%s",%s' % (head.last + 1, head.hash, text[1:])).encode(
        "utf-8", "replace"
    )
    head.last += 1
    head.hash = digest(data)
    return data + b"\n"
