"""What the rules of an agent keep over a restart (``engine.Engine.state``), and its shape: the file
has a checksum, which protects from no hand.
"""


def _is_int(value) -> bool:
    return type(value) is int


def _is_count(value) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and isinstance(value[0], bool)
        and all(map(_is_int, value[1:]))
    )


def _is_question(value) -> bool:
    """Return whether *value* is [time of the schedule, image, since, seconds, arguments]."""
    return (
        isinstance(value, list)
        and len(value) == 5
        and isinstance(value[1], str)
        and isinstance(value[4], dict)
        and all(_is_int(value[place]) for place in (0, 2, 3))
    )


def _is_last(value) -> bool:
    return isinstance(value, list) and list(map(type, value)) == [int, str, str]


_FIELDS = {
    "done_s": _is_int,
    "at_s": _is_int,
    "ran_s": _is_int,
    "began": _is_int,
    "queue": lambda value: isinstance(value, list) and all(map(_is_int, value)),
    "count": _is_count,
    "asks": _is_question,
    "last": _is_last,
    "off": lambda value: isinstance(value, str),
    "fired": lambda value: isinstance(value, bool),
    "new": lambda value: isinstance(value, bool),
    "acted": lambda value: isinstance(value, str),
}


def drop_damaged(state: dict) -> list:
    """Remove from *state* what has another shape; return the names of the rules of which something
    was removed, "" for what is of none.
    """
    dropped = []
    for key in ("wall_s", "ran_s"):
        if key in state and not _is_int(state[key]):
            del state[key]
            dropped.append("")
    rows = state.get("rules", {})
    if not isinstance(rows, dict):
        del state["rules"]
        return dropped + [""]
    for name, row in list(rows.items()):
        if not isinstance(row, dict):
            del rows[name]
            dropped.append(name)
            continue
        wrong = [key for key in row if not _FIELDS.get(key, _is_int)(row[key])]
        for key in wrong:
            del row[key]
        dropped += [name] * bool(wrong)
    return dropped
