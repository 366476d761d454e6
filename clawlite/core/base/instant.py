"""Times as people and programs write them (RFC 3339), to milliseconds since 1970."""

from clawlite.core.base.clock import days_of


def from_iso8601(text: str):
    """Return the milliseconds since 1970 of ``2026-02-20``, ``2026-02-20T14:30:00Z`` or
    ``...14:30:00.250+01:00``, or None.

    Digits beyond milliseconds are dropped.  A time without an offset is UTC.  None also for a year
    before 1970."""
    numbers, rest = [], text
    for width, after in ((4, "-"), (2, "-"), (2, "Tt "), (2, ":"), (2, ":"), (2, "")):
        part, rest = rest[:width], rest[width:]
        if len(part) != width or not _is_digits(part):
            return None
        numbers.append(int(part))
        if len(numbers) == 3 and not rest:
            numbers += [0, 0, 0]
            break
        if after:
            if not rest or rest[0] not in after:
                return None
            rest = rest[1:]
    year, month, day, hour, minute, second = numbers
    ms, offset = _fraction(rest)
    if (
        ms is None
        or year < 1970
        or not 1 <= month <= 12
        or not 1 <= day <= _length(year, month)
        or hour > 23
        or minute > 59
        or second > 60
    ):
        return None
    return (
        ((days_of(year, month, day) * 24 + hour) * 60 + minute - offset) * 60000
        + second * 1000
        + ms
    )


def _is_digits(text: str) -> bool:
    for c in text:
        if not "0" <= c <= "9":
            return False
    return len(text) > 0


def _length(year: int, month: int) -> int:
    """Return the number of days in a month."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 + (month + month // 8) % 2


def _fraction(text: str) -> tuple:
    """Return (milliseconds, UTC offset in minutes) of *text*, which follows the seconds; (None, 0)
    when it is no fraction and no offset.
    """
    ms = 0
    if text[:1] == ".":
        end = 1
        while end < len(text) and "0" <= text[end] <= "9":
            end += 1
        if end == 1 or end > 10:
            return None, 0
        ms = int((text[1:end] + "00")[:3])
        text = text[end:]
    if text in ("", "Z", "z"):
        return ms, 0
    hours, minutes = text[1:3], text[4:]
    if (
        text[0] not in "+-"
        or text[3:4] != ":"
        or len(minutes) != 2
        or not _is_digits(hours + minutes)
        or int(hours) > 23
        or int(minutes) > 59
    ):
        return None, 0
    offset = int(hours) * 60 + int(minutes)
    return ms, -offset if text[0] == "-" else offset
