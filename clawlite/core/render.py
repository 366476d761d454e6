"""Values as text for people, the same bytes on every runtime.

MicroPython's dicts have no order and its ``json`` cannot sort: this writes JSON with sorted keys.
"""
_ESCAPES = b'"\\\n\r\t'
_DEPTH = 33


def canonical(value, limit: int = 0) -> str:
    """Return *value* as compact JSON, keys sorted, text raw; a value that JSON lacks as its type's name in <>.

    limit   int, characters that are kept before "..."; 0 keeps all
    """
    text = _write(value, 0)
    return text[:limit] + "..." if limit and len(text) > limit else text


def call_text(name: str, arguments: dict) -> str:
    """Return ``name(key=value, ...)``, keys sorted, each value at most 60 characters."""
    return "%s(%s)" % (name, ", ".join(["%s=%s" % (key, canonical(arguments[key], 60)) for key in sorted(arguments)]))


def quote(text: str) -> str:
    """Return *text* as a JSON string."""
    data = text.encode()                # MicroPython interns every character that a loop over text sees, for good
    if not data or min(data) >= 32 and not (b'"' in data or b"\\" in data or b"\x7f" in data):
        return '"' + text + '"'
    out = bytearray()
    for b in data:
        at = _ESCAPES.find(bytes((b,)))
        if at >= 0:
            out.append(92)
            b = b'"\\nrt'[at]
        elif b < 32 or b == 127:
            out.extend(b"\\u%04x" % b)
            continue
        out.append(b)
    return '"' + str(bytes(out), "utf-8") + '"'


def _write(value, depth: int) -> str:
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return "%d" % value if -1e15 < value < 1e15 and value == int(value) else repr(value)
    if depth >= _DEPTH:
        return "..."
    if isinstance(value, dict):
        return "{" + ",".join([quote(str(key)) + ":" + _write(value[key], depth + 1) for key in sorted(value, key=str)]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([_write(item, depth + 1) for item in value]) + "]"
    return "<%s>" % type(value).__name__
