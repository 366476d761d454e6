"""A cron schedule of five fields to bit masks, so that a device parses nothing.

    minute 0-59, hour 0-23, day of the month 1-31, month 1-12 or JAN-DEC, day of the week 0-7 or
    SUN-SAT (0 and 7 are Sunday)
    each:  *  N  N-M  */S  N-M/S  N/S (from N on), and lists of those;  @hourly @daily @midnight
              @weekly @monthly @yearly @annually

Where both days are restricted either of them is enough, as cron has it.
"""

from clawlite.core.teach.row_text import read_count

FIELDS = (
    ("minute", 0, 59, ""),
    ("hour", 0, 23, ""),
    ("day of the month", 1, 31, ""),
    ("month", 1, 12, "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"),
    ("day of the week", 0, 7, "SUN MON TUE WED THU FRI SAT"),
)
NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_LONGEST = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}  # days of a month, where it has fewer than 31
MAX_TEXT = 256


def parse(text: str) -> list:
    """Return [minutes, hours, days, months, weekdays, either day, any hour] of a schedule: five
    masks, bit n for the value n, and two bools.

    Raises ``ValueError`` with a sentence; also for one that never comes, such as the 30th of
    February."""
    if len(text) > MAX_TEXT:
        raise ValueError("a schedule has at most %d characters" % MAX_TEXT)
    words = NAMED.get(text.strip().lower(), text).split()
    if len(words) != len(FIELDS):
        raise ValueError(
            "expected five fields (minute hour day month weekday), got %d" % len(words)
        )
    masks = [_read_field(word, *field) for word, field in zip(words, FIELDS)]
    minutes, hours, dates, months, weekdays = masks
    _, hour, date, _, weekday = [word.startswith("*") for word in words]
    either = not date and not weekday
    if not either and not any(
        months >> month & 1 and dates & ((2 << _LONGEST.get(month, 31)) - 1)
        for month in range(1, 13)
    ):
        raise ValueError("no month of these has such a day: it would never run")
    weekdays = (weekdays | weekdays >> 7) & 0x7F
    return [minutes, hours, dates, months, weekdays, either, hour]


def _read_field(word: str, name: str, least: int, most: int, names: str) -> int:
    mask = 0
    for part in word.split(","):
        span, slash, step = part.partition("/")
        if slash and not 0 < (read_count(step) or 0) <= most:
            raise ValueError("%s: a step is a number from 1 to %d, got %r" % (name, most, part))
        first, dash, last = span.partition("-")
        if span == "*":
            start, end = least, most if most != 7 else 6
        else:
            start = _number(first, name, least, most, names)
            end = _number(last, name, least, most, names) if dash else most if slash else start
        if end < start:
            raise ValueError("%s: %s goes backwards" % (name, span))
        for value in range(start, end + 1, int(step) if slash else 1):
            mask |= 1 << value
    return mask


def _number(word: str, name: str, least: int, most: int, names: str) -> int:
    known = names.split()
    if word.upper() in known:
        return known.index(word.upper()) + least
    number = read_count(word) if len(word) < 3 else None
    if number is None or not least <= number <= most:
        names = " or %s to %s" % (known[0], known[-1]) if known else ""
        raise ValueError("%s: expected %d to %d%s, got %r" % (name, least, most, names, word))
    return number
