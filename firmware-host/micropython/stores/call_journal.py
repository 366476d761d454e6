"""The journal of calls and approvals (clawlite/core/idempotency/idempotency_record.py), beside the
image; loaded for one record and dropped.

    calls.journal   the newest records, at most _NEWEST bytes
    calls.older     those before them

1. Only approvals, and an operator's calls of tools that may not run twice, are written: flash wears
   out.
2. For each append littlefs copies the last block of a file, but it keeps a file of up to an eighth
   of a block in the block of its folder.  So records go into a small file first.  There the end of
   a call replaces its beginning, when that is the last record.  The records are moved to the large
   file together.  While the large file is small, both are rewritten instead, without records that
   no longer count.
3. The last record of a key counts, and ``calls.journal`` comes after ``calls.older``; so a record
   that a power cut left in both counts once.
4. A record is written short, so that more of them go into the small file: that of a call with a
   UUID has 56 characters before its answer, where the line of clawlite/core has 95.  A board reads
   both; firmware that is older than this takes short lines for damaged ones.

    kind base64(crc(4) when(4) id(16) fingerprint(16)) rest LF      the CRC-32 covers the line of
                                                            clawlite/core; rest is what follows the
                                                            fingerprint in its JSON

5. All records are rewritten to ``calls.older`` at the start, and when that file has grown.  Damaged
   lines are dropped, and a copy of the lines is set aside.
"""

import os
import sys
from binascii import a2b_base64, b2a_base64, hexlify, unhexlify
from struct import pack, unpack

from clawlite.core.base.errors import ClawError
from clawlite.core.idempotency.idempotency import (
    BEGIN,
    END,
    KEY,
    KIND,
    TEXT,
    WAIT,
    age_s,
    last_of,
    line,
    parse,
    still,
)
from jsontext import dumps, loads
from osfields import STAT_SIZE

_NEWEST = 500  # bytes; littlefs keeps up to 512, with blocks of 4 KB, in the folder
_GROWTH = 8192  # bytes of growth after which calls.older is rewritten
_PIECE = 128
# positions in a payload: of a call that began or ended; of one that waits
_FINGERPRINT = 0
_TOOL, _RULE = 0, 2
# of a line of clawlite/core: its CRC, and the beginning of its body; of a short one: what is packed
_CRC, _BODY, _PACKED = 8, 9, 55
_ARGUMENTS = 512  # bytes of JSON of a waiting call; longer arguments are not kept


def keep(folder: str, kind: int, key: str, payload, now) -> tuple:
    """Append one record; return (True, []) or (False, why).  now: seconds since 1970, or None."""
    try:
        try:
            text = dumps(payload)
        except ValueError as e:  # a handler's error may contain a value that JSON lacks
            text = dumps([payload[_FINGERPRINT], {"code": -32603, "message": "no JSON: %s" % e}])
        if kind == WAIT and len(text) > _ARGUMENTS:
            text = dumps([payload[_TOOL], None, payload[_RULE]])
        _append(folder, kind, key, _shorten(line(kind, now or 0, 0, key, text)), now)
        return True, []
    except (OSError, MemoryError) as e:
        sys.stderr.write("clawlite: the journal of calls cannot be written: %s\n" % e)
        return False, str(e)


def recover(agent, folder: str, now, says: bool):
    """At the start: report the approvals that were waiting when the last run ended."""
    from clawlite.core.policy.approval import report_restart

    try:
        _mend(folder)
        _compact(folder, now, False)
        waited = [(one[KEY], _value(one)) for one in _records(folder) if one[KIND] == WAIT]
        report_restart(agent, waited, says)
    except (OSError, ClawError, MemoryError) as e:
        _unread(e)


def find(folder: str, now, key):
    """Return the bounds and all records, or the record of *key* (the argument *kept* of
    ``Idempotency``).
    """
    from clawlite.core.idempotency.idempotency import BYTES, FREE, IDS

    found = []
    try:
        if "calls.journal" in os.listdir(folder):
            for record in _records(folder):
                kind, when, _, of, text = record
                if kind != BEGIN and kind != END:
                    continue
                if key is None:
                    found.append((of, age_s(when, now or 0) if kind == END else 0, len(text)))
                elif key == of:
                    found = [(kind, _value(record))]
    # MemoryError is not caught: without the records, a call that has run would run again
    except (OSError, ClawError) as e:
        _unread(e)
    if key is None:
        return IDS, FREE, BYTES, found
    return found[0] if found else None


def _value(record: tuple):
    return loads(record[TEXT].encode())


def _unread(e):
    sys.stderr.write("clawlite: the journal of calls cannot be read: %s\n" % e)


def _append(folder: str, kind: int, key: str, data: bytes, now):
    """Add *data* to the newest records; when they become too long, move all of them to the older
    ones.
    """
    path = folder + "/calls.journal"
    at = size = _size(folder, "calls.journal")
    if kind == END and 0 < size <= _NEWEST:
        at = _find_begin(path, size, key)
    if at + len(data) > _NEWEST and _size(folder, "calls.older") <= _NEWEST // 2:
        if _try_compact(folder, now):
            at = size = _size(folder, "calls.journal")
    if at + len(data) > _NEWEST:
        _move(folder, at, data, now)
        return
    with open(path, "ab" if at == size else "r+b") as file:
        file.seek(at)
        file.write(data)


def _shorten(whole: bytes) -> bytes:
    """Return a line of clawlite/core as it is written: short, where that gives the same again."""
    try:
        crc = unhexlify(whole[:_CRC])
        kind, when, _, key, text = whole[_BODY:-1].split(b" ", 4)
        packed = crc + pack(">I", int(when)) + unhexlify(key.replace(b"-", b"") + text[2:34])
        short = kind + b2a_base64(packed)[: _PACKED - 1] + text[35:] + b"\n"
        if _whole(short[:-1]) == whole[:-1]:
            return short
    except (ValueError, OverflowError):  # the key is no UUID, or there is no fingerprint
        pass
    return whole


def _whole(data: bytes) -> bytes:
    """Return the line of clawlite/core, without its end, that *data* stands for."""
    if len(data) < _PACKED or data[_CRC : _CRC + 1] == b" ":
        return data
    try:
        packed = a2b_base64(data[1:_PACKED] + b"==")
        key = str(hexlify(packed[8:24]), "utf-8")
        key = "-".join((key[:8], key[8:12], key[12:16], key[16:20], key[20:]))
        head = '%s %s %d 0 %s ["%s"' % (
            str(hexlify(packed[:4]), "utf-8"),
            str(data[:1], "utf-8"),
            unpack(">I", packed[4:8])[0],
            key,
            str(hexlify(packed[24:]), "utf-8"),
        )
        return head.encode() + data[_PACKED:]
    except ValueError:
        return data


def _find_begin(path: str, size: int, key: str) -> int:
    """Return where the last record begins when it says that *key* has begun; otherwise *size*.

    The end of a call replaces it: both are in one block, which is written completely or not at all.
    """
    with open(path, "rb") as file:
        data = file.read(size)
    at = data.rfind(b"\n", 0, max(size - 1, 0)) + 1
    record = parse(_whole(data[at:-1]))
    return at if record and record[KIND] == BEGIN and record[KEY] == key else size


def _size(folder: str, name: str) -> int:
    # the file is not opened: littlefs writes whenever a file is opened for writing
    return os.stat(folder + "/" + name)[STAT_SIZE] if name in os.listdir(folder) else 0


def _move(folder: str, end: int, data: bytes, now):
    """Append the newest records, up to *end*, and *data* to the older ones."""
    path = folder + "/calls.journal"
    with open(folder + "/calls.older", "ab") as file:
        size = file.seek(0, 2)
        with open(path, "rb") as newest:
            while end:
                piece = newest.read(min(end, _PIECE))
                file.write(piece)
                end -= len(piece)
        file.write(data)
        grown = file.tell()
    _empty(path)
    if size // _GROWTH != grown // _GROWTH:
        _try_compact(folder, now)


def _try_compact(folder: str, now) -> bool:
    """Rewrite the records; return whether that was done.  If not, they stay as they are."""
    try:
        _compact(folder, now, True)
        return True
    except (OSError, MemoryError) as e:
        sys.stderr.write("clawlite: the journal of calls cannot be written anew: %s\n" % e)
        return False


def _empty(path: str):
    # emptied, not removed: the file's existence says that there are records
    with open(path, "wb"):
        pass


def _lines(folder: str):
    """Yield the lines of both files without their ends; a torn last line is left out."""
    found = os.listdir(folder)
    for name in ("calls.older", "calls.journal"):
        if name in found:
            with open(folder + "/" + name, "rb") as file:
                data = file.readline()
                while data[-1:] == b"\n":
                    yield _whole(data[:-1])
                    data = file.readline()


def _records(folder: str):
    for data in _lines(folder):
        record = parse(data)
        if record:
            yield record


def _mend(folder: str):
    """Finish a ``_compact`` that a power cut interrupted: FAT removes the old name before it
    renames a file.
    """
    found = os.listdir(folder)
    if "calls.older.new" in found and "calls.older" not in found:
        os.rename(folder + "/calls.older.new", folder + "/calls.older")


def _compact(folder: str, now, lives: bool):
    """Rewrite both files as calls.older, line by line, with the records that still count."""
    older = folder + "/calls.older"
    last, damaged = last_of(_lines(folder))
    if damaged:
        name = "calls.journal.damaged"
        if name in os.listdir(folder):  # the first and the last are kept
            name += ".2"
        sys.stderr.write(
            "clawlite: the journal of calls was damaged: %d lines are lost (%s)\n" % (damaged, name)
        )
        with open(folder + "/" + name, "wb") as file:
            for data in _lines(folder):
                file.write(data + b"\n")
    number = 0
    with open(older + ".new", "wb") as file:
        for data in _lines(folder):
            record = parse(data)
            if record and last[record[KEY]] == number:
                record = still(record, now or 0, lambda _: lives)
                if record:
                    file.write(_shorten(line(*record)))
            number += 1
    os.rename(older + ".new", older)
    _empty(folder + "/calls.journal")
