"""Civil time and epoch seconds, computed without a library: MicroPython's epoch is 1970 on one port
and 2000 on another.
"""

from clawlite.core.base.dialect import const

_MONTH = const(2)  # words of a date in HTTP
_ZONE = const(7)


def iso8601(epoch_s: int) -> str:
    """Return *epoch_s* (seconds since 1970-01-01T00:00:00Z, >= 0) as ``2026-02-22T10:30:00Z``."""
    days, rest = divmod(epoch_s, 86400)
    year, month, day = date_of(days)
    return "%04d-%02d-%02dT%02d:%02d:%02dZ" % (
        year,
        month,
        day,
        rest // 3600,
        rest // 60 % 60,
        rest % 60,
    )


def from_http(text: str):
    """Return the seconds since 1970 of a date in HTTP's format (RFC 9110, 5.6.7: ``Sun, 06 Nov
    1994 08:49:37 GMT``), or None.
    """
    parts = text.replace(":", " ").split(" ")
    month = (
        "JanFebMarAprMayJunJulAugSepOctNovDec".find(parts[_MONTH])
        if len(parts) == 8 and len(parts[_MONTH]) == 3
        else -1
    )
    numbers = (
        [parts[i] for i in (1, 3, 4, 5, 6)]
        if month >= 0 and month % 3 == 0 and parts[_ZONE] == "GMT"
        else []
    )
    for number in numbers:
        # isdigit alone also takes digits that int refuses
        if not number.isdigit() or max(number) > "9" or len(number) > 4:
            return None
    if not numbers:
        return None
    day, year, hour, minute, second = [int(number) for number in numbers]
    days = days_of(year, month // 3 + 1, day)
    return days * 86400 + hour * 3600 + minute * 60 + second


def days_of(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a date (the days-from-civil algorithm of H. Hinnant,
    years counted from March).
    """
    year -= month < 3
    month += -3 if month > 2 else 9
    return (
        365 * year
        + year // 4
        - year // 100
        + year // 400
        + (153 * month + 2) // 5
        + day
        - 1
        - 719468
    )


def date_of(day: int) -> tuple:
    """Return (year, month, day of the month) of *day*, counted from 1970-01-01.

    Source  the civil-from-days algorithm of H. Hinnant, years counted from March.
    """
    day += 719468
    era, day_of_era = day // 146097, day % 146097
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    date = day_of_year - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    return year_of_era + era * 400 + (month <= 2), month, date
