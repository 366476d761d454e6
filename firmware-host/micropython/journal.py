"""What calls and approvals leave behind (clawlite/core/record.py): ``calls.journal`` beside the image, loaded for one record and dropped.

Only an operator's calls of tools that may not run twice, and approvals, are written: flash wears out.  The file is written anew at the
start, and when it has grown; damaged lines are dropped, and the file that had them is set aside.
"""
import os
import sys

from clawlite.core.errors import ClawError
from clawlite.core.record import BEGIN, END, WAIT, age_s, last_of, line, parse, still
from jsontext import dumps, loads

_GROWTH = 4096                  # bytes, after which it is written anew
_ARGUMENTS = 512                # bytes of JSON of a call that waits; longer ones are not kept


def keep(folder: str, kind: int, key: str, payload, now) -> tuple:
    """Append one record; return (True, []) or (False, why).  now: seconds since 1970, or None."""
    path = folder + "/calls.journal"
    try:
        try:
            text = dumps(payload)
        except ValueError as e:         # a handler's error may say what JSON lacks
            text = dumps([payload[0], {"code": -32603, "message": "no JSON: %s" % e}])
        if kind == WAIT and len(text) > _ARGUMENTS:
            text = dumps([payload[0], None, payload[2]])
        with open(path, "ab") as file:
            size = file.tell()
            file.write(line(kind, now or 0, 0, key, text))
            grown = file.tell()
        if size // _GROWTH != grown // _GROWTH:
            _compact(path, now, True)
        return True, []
    except (OSError, MemoryError) as e:
        sys.stderr.write("clawlite: the journal of calls cannot be written: %s\n" % e)
        return False, str(e)


def recover(agent, folder: str, now, says: bool):
    """Tell of the approvals that waited when the last run ended; at the start."""
    from clawlite.core.approval import restarted
    try:
        path = folder + "/calls.journal"
        _compact(path, now, False)
        restarted(agent, [(record[3], _value(record)) for record in _records(path) if record[0] == WAIT], says)
    except (OSError, ClawError, MemoryError) as e:
        _unread(e)


def kept(folder: str, now, key):
    """Return the bounds and what is on record, or what is on record of *key* (``recall.Recall``)."""
    from clawlite.core.recall import BYTES, FREE, IDS
    found = []
    try:
        if "calls.journal" in os.listdir(folder):
            for record in _records(folder + "/calls.journal"):
                kind, when, _, of, text = record
                if kind != BEGIN and kind != END:
                    continue
                if key is None:
                    found.append((of, age_s(when, now or 0) if kind == END else 0, len(text)))
                elif key == of:
                    found = [(kind, _value(record))]
    except (OSError, ClawError) as e:       # out of memory is none of these: what is on record would be run again
        _unread(e)
    if key is None:
        return IDS, FREE, BYTES, found
    return found[0] if found else None


def _value(record: tuple):
    return loads(record[4].encode())


def _unread(e):
    sys.stderr.write("clawlite: the journal of calls cannot be read: %s\n" % e)


def _lines(path: str):
    """Yield the lines of the file without their ends; a torn last one is none."""
    with open(path, "rb") as file:
        data = file.readline()
        while data[-1:] == b"\n":
            yield data[:-1]
            data = file.readline()


def _records(path: str):
    for data in _lines(path):
        record = parse(data)
        if record:
            yield record


def _compact(path: str, now, lives: bool) -> int:
    """Write the file anew, line by line, with what still counts; return its bytes."""
    last, damaged = last_of(_lines(path))
    if damaged:
        sys.stderr.write("clawlite: the journal of calls was damaged: %d lines are lost (calls.journal.damaged)\n" % damaged)
    number = 0
    with open(path + ".new", "wb") as file:
        for data in _lines(path):
            record = parse(data)
            if record and last[record[3]] == number:
                record = still(record, now or 0, lambda _: lives)
                if record:
                    file.write(line(*record))
            number += 1
        size = file.tell()
    if damaged:
        os.rename(path, path + ".damaged")
    os.rename(path + ".new", path)
    return size
