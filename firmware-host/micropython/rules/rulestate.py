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
    from clawlite.core.rules.kept_state import drop_damaged

    state, damaged = {"rules": {}}, []
    try:
        names = os.listdir(path)
    except OSError:  # nothing was kept yet
        return state, damaged
    for name in names:
        try:
            with open("%s/%s" % (path, name), "rb") as file:
                data = file.read(_MOST)
            value = loads(data[_MARK:]) if _mark(data[_MARK:]) == data[:_MARK] else None
        except (OSError, ClawError):
            value = None
        if not isinstance(value, dict):
            damaged.append(name)
        elif name == _ALL:
            state["wall_s"], state["ran_s"] = value.get("wall_s", 0), value.get("ran_s", 0)
        else:
            state["rules"][name] = value
            marks[name] = data[:_MARK]
    return state, damaged + drop_damaged(state)


def keep(path: str, state: dict, marks: dict) -> str:
    """Write what has changed; return "", or why that failed."""
    try:
        rows = state["rules"]
        for name in rows:
            if rows[name] or name in marks:
                _write(path, name, dumps(rows[name]).encode(), marks)
        times = [state.get("wall_s", 0), state.get("ran_s", 0)]
        hours = times[0] // _HOUR, times[1] // _HOUR
        if marks.get(_ALL) != hours:
            _write(path, _ALL, dumps({"wall_s": times[0], "ran_s": times[1]}).encode(), {})
            marks[_ALL] = hours
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
