"""Records of calls and approvals that outlive the process: the lines of their file, and how the
file is read.

    crc(8 hex) kind when owner key JSON LF        the CRC-32 covers what follows it

    WAIT   key waits for a person     [tool, arguments or null, id of the rule or null]
    BEGIN  its handler begins         [fingerprint of the request]
    END    it has ended               [fingerprint, text, is_error, original_bytes], or
                                      [fingerprint, error], or
                                      [fingerprint]: the process ended before there was a result
    GONE   it no longer waits, and did not run        null

    when   seconds since 1970.  While the clock is unset, seconds since some other time: only
           differences are used
    owner  number of the process that wrote it
    key    the request_id of a call; for an approval within a turn, a text that is no UUID

A request (core/idempotency/idempotent_request.py) is in one of these states:

    NEW     its arguments have not been checked yet
    OPEN    its arguments have passed: another request with its id waits for it
    BEGUN   a record says that its handler begins
    ENDED   it has an answer, and another request with its id gets the same
    LOST    it began, but its end is not on record: the process that ran it has ended, or it is
            running in another process

A shell appends a line when it performs a KEEP effect.  Only the last record of each key counts.
"""

import binascii

WAIT, BEGIN, END, GONE = 1, 2, 3, 4
NEW, OPEN, BEGUN, ENDED, LOST = 0, 1, 2, 3, 4
KEPT_S = 300  # how long a call is remembered after its end
_SET_S = 1700000000  # a clock that shows less has not been set

KIND, WHEN, OWNER, KEY, TEXT = range(5)  # positions in what ``parse`` returns


def line(kind: int, when: int, owner: int, key: str, text: str) -> bytes:
    """Return one record as it stands in a file; *text* is JSON without line feeds."""
    body = ("%d %d %d %s %s" % (kind, when, owner, key, text)).encode()
    return _crc(body) + b" " + body + b"\n"


def parse(data: bytes):
    """Return (kind, when, owner, key, text) of a line without its end; None for a damaged one."""
    body = bytes(data[9:])
    if data[:9] != _crc(body) + b" ":
        return None
    try:
        kind, when, owner, key, text = body.split(b" ", 4)
        return int(kind), int(when), int(owner), str(key, "utf-8"), str(text, "utf-8")
    except ValueError:  # its CRC is right, but that protects from no hand
        return None


def age_s(when: int, now: int) -> int:
    """Return the seconds from *when* to *now*.  0 when the clock was unset at *when* or has gone
    back, so that nothing is forgotten early.
    """
    return 0 if when < _SET_S or now < when else now - when


def last_of(lines) -> tuple:
    """Return ({key: number of its last line}, number of damaged lines).

    lines  the lines without their ends, in the order of writing
    """
    last, damaged, number = {}, 0, 0
    for data in lines:
        record = parse(data)
        if record is None:
            damaged += 1
        else:
            last[record[KEY]] = number
        number += 1
    return last, damaged


def still(record: tuple, now: int, lives):
    """Return the last *record* of a key as it stands at the time *now*; None when it has expired.
    The time in the result is never after *now*.

    lives  function(owner) -> bool, whether the process that wrote it is alive.  What a dead process
           had begun counts as ended now, with an unknown result
    """
    kind, when, owner, key, text = record
    age = age_s(when, now)
    if kind == BEGIN and not lives(owner):
        kind, age = END, 0
    if kind == GONE or kind == END and age >= KEPT_S:
        return None
    return kind, now - age, owner, key, text


def _crc(body: bytes) -> bytes:
    return b"%08x" % (binascii.crc32(body) & 0xFFFFFFFF)
