"""What people write in the row of a rule as a time, a duration or a condition: to the form that the
engine has (core/rules/table.py), and back to words.
"""

from clawlite.core.base.dialect import const
from clawlite.core.providers.reflex import INT, NUMBER, OPERATORS, read
from clawlite.core.rules.rule_commands import duration
from clawlite.core.rules.table import AGE, BETWEEN

UNITS = (("ms", 1), ("s", 1000), ("m", 60000), ("h", 3600000), ("d", 86400000), ("w", 604800000))
DAY_NAMES = "sunday monday tuesday wednesday thursday friday saturday"
MONTH_NAMES = (
    "january february march april may june july august september october november december"
)
_HALF_DAY_MS = const(43200000)
_SIGNS = ("<=", ">=", "==", "!=", "<", ">")  # those of two characters first
_NAME = "abcdefghijklmnopqrstuvwxyz0123456789_"


def read_count(text: str):
    """Return the whole number *text*, None for another text, also for one with a sign."""
    return None if text.startswith("-") else read(INT, text)


def parse_duration(text):
    """Return the ms of "90s", None for another text."""
    if not isinstance(text, str):
        return None
    text = text.strip()
    for unit, ms in UNITS:
        digits = text[: -len(unit)].rstrip()
        count = read_count(digits) if text.endswith(unit) and len(digits) < 10 else None
        if count is not None:
            return count * ms
    return None


def show_duration(ms: int) -> str:
    """Return *ms* as a person writes it."""
    return duration(ms) if ms else "0s"


def parse_minute(text):
    """Return the minute of the day of "07:30", None for another text."""
    if not isinstance(text, str) or len(text) != 5 or text[2] != ":":
        return None
    hour, minute = read_count(text[:2]), read_count(text[3:])
    if hour is None or minute is None or hour > 23 or minute > 59:
        return None
    return hour * 60 + minute


def show_minute(minute: int) -> str:
    """Return the minute of a day as "07:30"."""
    return "%02d:%02d" % (minute // 60, minute % 60)


def parse_sun(text):
    """Return [is it sunset, seconds later] of "sunset-30m", None for another text."""
    for is_set, word in enumerate(("sunrise", "sunset")):
        if isinstance(text, str) and text.startswith(word):
            rest = text[len(word) :].strip()
            if not rest:
                return [is_set, 0]
            ms = parse_duration(rest[1:])
            if rest[0] not in "+-" or ms is None or ms > _HALF_DAY_MS:
                return None
            return [is_set, (-ms if rest[0] == "-" else ms) // 1000]
    return None


def read_constant(text: str):
    """Return the value of a number, a boolean or a quoted text, None for another text."""
    if text in ("true", "false"):
        return text == "true"
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        inner = text[1:-1]
        return None if text[0] in inner or "\\" in inner else inner
    return read(NUMBER, text[1:] if text.startswith("+") else text)


def parse_comparison(text):
    """Return [name, operator, value] of "percent < 30", None for another text."""
    if not isinstance(text, str):
        return None
    text, end = text.strip(), 0
    while end < len(text) and text[end] in _NAME:
        end += 1
    name, rest = text[:end], text[end:].strip()
    sign = [one for one in _SIGNS if rest.startswith(one)]
    if not sign or not name or name[0] in "0123456789":
        return None
    value = read_constant(rest[len(sign[0]) :].strip())
    if value is None or sign[0] not in OPERATORS:
        return None
    if sign[0] not in ("==", "!=") and isinstance(value, (str, bool)):
        return None
    return [name, sign[0], value]


def parse_condition(text):
    """Return the condition *text* of a rule's head, None for another text."""
    if not isinstance(text, str):
        return None
    text = text.strip()
    if text.startswith("between") and text[7:8].isspace():
        first, dash, end = text[7:].partition("-")
        first, end = parse_minute(first.strip()), parse_minute(end.strip())
        return None if first is None or end is None or first == end else [BETWEEN, first, end]
    if not text.startswith("age(") or ")" not in text:
        return parse_comparison(text)
    name, _, rest = text[4:].partition(")")
    found = parse_comparison(name.strip() + " < 0")
    rest = rest.strip()
    sign = [one for one in _SIGNS if rest.startswith(one)]
    ms = parse_duration(rest[len(sign[0]) :]) if sign else None
    if not found or not ms or ms < 1000:
        return None
    return [AGE, name.strip(), sign[0], ms // 1000]


def reading_of(condition: list):
    """Return the name of the reading that *condition* is about, None for the time of day."""
    if condition[0] == BETWEEN:
        return None
    return condition[1] if condition[0] == AGE else condition[0]
