"""What survives of a board's rules (``engine.Engine.state``): a small file for each rule in the
folder ``rules``, and ``_`` for what is of all.  Loaded for one look, and dropped.

1. A file is written when its rule has changed.  littlefs keeps a file of up to 512 bytes in the
   block of its folder, and replaces it completely or not at all: a run costs two such writes, some
   200 bytes each.
2. Each file begins with the CRC of its JSON.  A damaged one is dropped, and told: the schedule of
   its rule begins from now, so nothing runs twice.
3. The times in ``_`` are written once an hour.
"""

import os
from binascii import crc32

from clawlite.core.base.dialect import const
from clawlite.core.base.errors import ClawError
from jsontext import dumps, loads

_MARK = const(8)  # bytes
_MOST = const(4096)
_ALL = "_"
_HOUR = const(3600)


def load(path: str, marks: dict) -> tuple:
    """Return (the state, names of the rules of which a part was damaged).

    path   of the folder
    marks  {name of a file: what it has}, filled here
    """
    from clawlite.core.rules.saved_state import drop_damaged

    rows, damaged = read_files(path, marks)
    state, times = {"rules": rows}, rows.pop(_ALL, None)
    if times is not None:
        state["wall_s"], state["ran_s"] = times.get("wall_s", 0), times.get("ran_s", 0)
    marks.pop(_ALL, None)
    return state, damaged + drop_damaged(state)


def read_files(path: str, marks: dict) -> tuple:
    """Return ({name of a file of the folder *path*: what it has}, names of those that are damaged).

    marks  {name of a file: its mark}, filled here
    """
    rows, damaged = {}, []
    try:
        names = os.listdir(path)
    except OSError:  # nothing was kept yet
        return rows, damaged
    for name in names:
        try:
            with open("%s/%s" % (path, name), "rb") as file:
                data = file.read(_MOST)
            value = loads(data[_MARK:]) if _mark(data[_MARK:]) == data[:_MARK] else None
        except (OSError, ClawError):
            value = None
        if isinstance(value, dict):
            rows[name], marks[name] = value, data[:_MARK]
        else:
            damaged.append(name)
    return rows, damaged


def keep(path: str, state: dict, marks: dict) -> str:
    """Write what has changed of *state*; return "", or why that failed."""
    rows = state["rules"]
    wrong = keep_files(path, rows, marks)
    if wrong:
        return wrong
    times = [state.get("wall_s", 0), state.get("ran_s", 0)]
    hours = times[0] // _HOUR, times[1] // _HOUR
    if marks.get(_ALL) != hours:
        try:
            _write(path, _ALL, dumps({"wall_s": times[0], "ran_s": times[1]}).encode(), {})
        except (OSError, MemoryError) as e:
            return str(e)
        marks[_ALL] = hours
    return ""


def keep_files(path: str, rows: dict, marks: dict) -> str:
    """Write those of *rows* that have changed, and remove the files of others; return "", or why
    that failed.
    """
    try:
        for name in rows:
            if rows[name] or name in marks:
                _write(path, name, dumps(rows[name]).encode(), marks)
        for name in list(marks):
            if name != _ALL and name not in rows:  # the image has it no more
                os.remove("%s/%s" % (path, name))
                del marks[name]
        return ""
    except (OSError, MemoryError) as e:
        return str(e)


def _write(path: str, name: str, data: bytes, marks: dict):
    mark = _mark(data)
    if marks.get(name) == mark:
        return
    folder, _, last = path.rpartition("/")
    if last not in os.listdir(folder or "."):
        os.mkdir(path)
    with open("%s/%s" % (path, name), "wb") as file:
        file.write(mark + data)
    marks[name] = mark


def _mark(data: bytes) -> bytes:
    return b"%08x" % crc32(data)
