"""JSON values as a message shows them, in the same bytes on every runtime.

Rules: 1. A message shows at most 40 characters of a value, and nothing that could control a
terminal.  2. ``str`` and ``repr`` of floats and dicts are not used: they differ between runtimes.
"""

from clawlite.core.base.dialect import const

_SHOWN = const(40)
_LISTED = const(100)


def show(value) -> str:
    """Return *value* as people read it: text quoted and clipped, floats to six digits, arrays
    and objects by size.
    """
    kind = type(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value) if -1 << 64 < value < 1 << 64 else "an integer beyond 64 bits"
    if kind is float:
        return _show_float(value)
    if kind is str:
        return '"' + _clip(value) + '"'
    if kind is list:
        return "an array of %d" % len(value)
    if kind is dict:
        return "an object of %d" % len(value)
    return "no JSON value"


def several(values: list) -> str:
    """Return *values* shown one by one, as many as fit on a line: ``one of "a", "b", ...``.  A
    single value has no "one of".
    """
    text = "one of " if len(values) > 1 else ""
    for at in range(len(values)):
        if at:
            text += ", "
        if len(text) > _LISTED:
            return text + "..."
        text += show(values[at])
    return text


def path(root: str, steps: list) -> str:
    """Return a path as people write it, ``root.name[3]["odd name"]``.

    steps   names and positions, from the leaf upwards
    """
    for step in reversed(steps):
        if type(step) is int:
            root += "[%d]" % step
        else:
            root += "." + step if _is_plain(step) else "[" + show(step) + "]"
    return root


def _is_plain(name):
    for char in name:
        if not ("a" <= char <= "z" or "A" <= char <= "Z" or "0" <= char <= "9" or char in "_-"):
            return False
    return 0 < len(name) <= _SHOWN


def _clip(text):
    shown = ""
    kept = 0  # length of the beginning that leaves room for the dots
    for char in text:
        code = ord(char)
        if char in '"\\':
            char = "\\" + char
        elif (
            code < 32
            or 0x7F <= code < 0xA0
            or 0x200B <= code <= 0x200F
            or 0x2028 <= code <= 0x202E
            or 0x2060 <= code <= 0x206F
            or 0xD800 <= code < 0xE000
            or code == 0xFEFF
        ):
            # control characters, marks that change the direction of text, halves of pairs
            char = "\\u%04x" % code
        if len(shown) + len(char) > _SHOWN - 2:
            return shown[:kept] + "..."
        shown += char
        if len(shown) <= _SHOWN - 5:
            kept = len(shown)
    return shown


def _show_float(value):
    sign = "-" if value < 0 else ""
    value = abs(value)
    if not value - value == 0:
        return "a number out of range"
    if value == 0:
        return "0.0"
    power = 0
    while value >= 1e6:
        value /= 10
        power += 1
    while value < 1e5:
        value *= 10
        power -= 1
    digits = int(value + 0.5)
    while digits % 10 == 0:
        digits //= 10
        power += 1
    text = str(digits)
    point = len(text) + power
    if -4 < point <= 0:
        text = "0." + "0" * -point + text
    elif 0 < point < len(text):
        text = text[:point] + "." + text[point:]
    elif len(text) <= point <= 15:
        text = text + "0" * power + ".0"
    else:
        text = "%s.%se%d" % (text[0], text[1:] or "0", point - 1)
    return sign + text
