"""What people write as a time, a duration or a condition, as a rule has it compiled."""

import re

from clawlite.core.providers.reflex import OPERATORS
from clawlite.core.rules import table
from clawlite.host.providers.reflexes import CONDITION, constant

UNITS = {"ms": 1, "s": 1000, "m": 60000, "h": 3600000, "d": 86400000, "w": 604800000}
_DURATION = re.compile(r"([0-9]{1,9})\s*(ms|s|m|h|d|w)")
_HOUR = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_SUN = re.compile(r"(sunrise|sunset)(?:\s*([+-])\s*([0-9a-z]+))?")
_AGE = re.compile(r"age\(\s*([a-z_][a-z0-9_]*)\s*\)\s*(<=|>=|==|!=|<|>)\s*(.+)")
_BETWEEN = re.compile(r"between\s+(\S+?)\s*-\s*(\S+)")


def parse_duration(text) -> int | None:
    """Return the ms of "90s", None for another text."""
    found = _DURATION.fullmatch(text.strip()) if isinstance(text, str) else None
    return int(found[1]) * UNITS[found[2]] if found else None


def show_duration(ms: int) -> str:
    """Return *ms* as a person writes it."""
    for unit in ("d", "h", "m", "s"):
        if ms and ms % UNITS[unit] == 0:
            return f"{ms // UNITS[unit]}{unit}"
    return f"{ms}ms" if ms else "0s"


def parse_minute(text) -> int | None:
    """Return the minute of the day of "07:30", None for another text."""
    found = _HOUR.fullmatch(text) if isinstance(text, str) else None
    return int(found[1]) * 60 + int(found[2]) if found else None


def parse_sun(text) -> list | None:
    """Return [is it sunset, seconds later] of "sunset-30m", None for another text."""
    found = _SUN.fullmatch(text) if isinstance(text, str) else None
    if not found:
        return None
    ms = parse_duration(found[3]) if found[3] else 0
    if ms is None or ms > 12 * UNITS["h"]:
        return None
    return [int(found[1] == "sunset"), (-ms if found[2] == "-" else ms) // 1000]


def parse_comparison(text) -> list | None:
    """Return [name, operator, value] of "percent < 30", None for another text."""
    parts = CONDITION.match(text.strip()) if isinstance(text, str) else None
    if not parts:
        return None
    name, operator, wanted = parts.groups()
    value = constant(wanted.strip())
    if value is None or operator not in OPERATORS:
        return None
    if operator not in ("==", "!=") and isinstance(value, (str, bool)):
        return None
    return [name, operator, value]


def parse_condition(text) -> list | None:
    """Return the condition *text* of a rule's head (core/rules/table.py), None for another text."""
    if not isinstance(text, str):
        return None
    span = _BETWEEN.fullmatch(text.strip())
    if span:
        first, end = parse_minute(span[1]), parse_minute(span[2])
        return None if None in (first, end) or first == end else [table.BETWEEN, first, end]
    aged = _AGE.fullmatch(text.strip())
    if aged:
        ms = parse_duration(aged[3])
        return [table.AGE, aged[1], aged[2], ms // 1000] if ms and ms >= 1000 else None
    return parse_comparison(text)


def reading_of(condition: list):
    """Return the name of the reading that *condition* is about, None for the time of day."""
    if condition[0] == table.BETWEEN:
        return None
    return condition[1] if condition[0] == table.AGE else condition[0]
