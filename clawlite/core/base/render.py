"""Values as text for people, in the same bytes on every runtime.

MicroPython's dicts have no order and its ``json`` cannot sort, so this module writes JSON with
sorted keys.
"""

from clawlite.core.base.printable import escape_line, escape_name

_ESCAPES = b'"\\\n\r\t'
_DEPTH = 33
# characters of a call: 15 rows of 80, which leaves room for the reason of the question
_SCREEN = 1200
_LEAST = 60  # characters of one argument, however many arguments there are


def canonical(value, limit: int = 0) -> str:
    """Return *value* as compact JSON with sorted keys and unescaped Unicode.  A value that JSON
    lacks is written as the name of its type in <>.

    limit   int, characters that are kept before "..."; 0 keeps all
    """
    text = _write(value)
    return text[:limit] + "..." if limit and len(text) > limit else text


def call_text(name: str, arguments: dict, by="") -> str:
    """Return ``name(key=value, ...)`` with sorted keys, for a person who decides by it: every
    character is visible.

    A call that fits on a screen is shown in full.  In a longer one, each argument that is longer
    than its share is shown as its length and both ends.  A call that is still too long is shown in
    the same way.

    by  the command that shows all of a call that is cut: "/show"; None: nothing is cut
    """
    name, said = escape_name(name), _each(arguments)
    text = "%s(%s)" % (name, ", ".join(said))
    if by is None or len(text) <= _SCREEN:
        return text
    share = max(_LEAST, (_SCREEN - len(name)) // len(said) - 2)
    said = [_ends(one, share, by) for one in said]
    return _ends("%s(%s)" % (name, ", ".join(said)), 2 * _SCREEN, by)


def whole(name: str, arguments: dict) -> list:
    """Return all of a call: its name, then a line for each argument."""
    head = "%s, with%s" % (escape_name(name), ":" if arguments else " no argument")
    return [head] + ["  " + one for one in _each(arguments)]


def _each(arguments: dict) -> list:
    """Return ``key=value`` of each argument, with invisible characters escaped, runs of blanks and
    line ends too.
    """
    try:
        return [
            escape_line("%s=%s" % (_key(key), canonical(arguments[key])))
            for key in sorted(arguments)
        ]
    except UnicodeError:  # half of a character is shown, too
        from clawlite.core.base.text_repair import mend_value

        return _each(mend_value(arguments))


def _key(key: str) -> str:
    for c in '"=,() ':  # else a key could pass for an argument and its value
        if c in key:
            return quote(key)
    return key


def _ends(text: str, most: int, by: str) -> str:
    """Return *text*, or both of its ends when it is longer than *most* characters."""
    if len(text) <= most:
        return text
    about = "%d characters in all%s" % (len(text), ", shown by " + by if by else "")
    return "%s <... %s ...> %s" % (text[: most * 2 // 3], about, text[-(most // 3) :])


def quote(text: str) -> str:
    """Return *text* as a JSON string.  Raises ``UnicodeError`` for half of a character."""
    # MicroPython interns every character that a loop over text sees, for good
    data = text.encode()
    if not data or min(data) >= 32 and not (34 in data or 92 in data or 127 in data):
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


def _write(value) -> str:
    """Return *value* as JSON.  Nested values wait in a list, because a board's stack is short."""
    out = []
    waiting = [(value, 0)]  # the last one is next; depth -1: text to write as it is
    while waiting:
        value, depth = waiting.pop()
        if depth < 0:
            out.append(value)
        elif value is None:
            out.append("null")
        elif value is True:
            out.append("true")
        elif value is False:
            out.append("false")
        elif isinstance(value, str):
            out.append(quote(value))
        elif isinstance(value, int):
            out.append(str(value))
        elif isinstance(value, float):
            whole = -1e15 < value < 1e15 and value == int(value)
            out.append("%d" % value if whole else repr(value))
        elif depth >= _DEPTH and isinstance(value, (dict, list, tuple)):
            out.append("...")
        elif isinstance(value, dict):
            out.append("{")
            waiting.append(("}", -1))
            keys = sorted(value, key=str)
            while keys:
                key = keys.pop()
                waiting.append((value[key], depth + 1))
                waiting.append((("," if keys else "") + quote(str(key)) + ":", -1))
        elif isinstance(value, (list, tuple)):
            out.append("[")
            waiting.append(("]", -1))
            for i in range(len(value) - 1, -1, -1):
                waiting.append((value[i], depth + 1))
                if i:
                    waiting.append((",", -1))
        else:
            out.append("<%s>" % type(value).__name__)
    return "".join(out)
