"""The sentence that a taught rule obeys, made from its row (draft.py), not from what was said."""

from clawlite.core.base.printable import escape_line
from clawlite.core.base.render import call_text
from clawlite.core.teach.row_text import (
    DAY_NAMES,
    MONTH_NAMES,
    parse_duration,
    read_count,
    show_minute,
)

_UNITS = (("week", 604800000), ("day", 86400000), ("hour", 3600000), ("minute", 60000))
_EDGES = {
    "rise": "rises (0 to 1)",
    "fall": "falls (1 to 0)",
    "both": "changes",
}


def describe(row: dict, zone: str = "") -> str:
    """Return what the rule *row* does, as one sentence.

    zone  the name of the time zone of its times
    """
    said = _begin(row, zone)
    conditions = row.get("if", [])
    conditions = [conditions] if isinstance(conditions, str) else conditions
    if conditions:
        said += ", if " + " and ".join([_condition(text) for text in conditions])
    said += ": "
    if row.get("call"):
        said += "call " + call_text(row["call"], row.get("arguments", {}))
        if row.get("say"):
            said += ', then say "%s"' % row["say"]
    else:
        said += 'say "%s"' % row.get("say", "")
    if row.get("at_most"):
        count, _, period = row["at_most"].partition("/")
        said += ", at most %s in each %s" % (_times(count), period)
    if row.get("least_pause"):
        said += ", with a pause of %s at least" % _say_duration(row["least_pause"])
    if row.get("once"):
        said += "; once, then it is forgotten"
    return escape_line(said + ".", 600)


def _times(count: str) -> str:
    return {"1": "once", "2": "twice"}.get(count.strip(), count.strip() + " times")


def _say_duration(text: str) -> str:
    ms = parse_duration(text) or 0
    for name, unit in _UNITS:
        if ms and ms % unit == 0:
            return "%d %s%s" % (ms // unit, name, "" if ms == unit else "s")
    if ms % 1000:
        return "%d ms" % ms
    return "%d second%s" % (ms // 1000, "" if ms == 1000 else "s")


def _begin(row: dict, zone: str) -> str:
    zone = " (%s)" % zone if zone else ""
    if "at" in row:
        times = row["at"] if isinstance(row["at"], list) else [row["at"]]
        day = "On the next day" if row.get("once") else "Each day"
        times = [_sun(text) for text in times]
        at = "" if times[0][-1:].isalpha() and " " in times[0] else "at "
        return "%s %s%s%s" % (day, at, " and ".join(times), zone)
    if "cron" in row:
        return _cron(row["cron"], bool(row.get("once"))) + zone
    if "every" in row:
        lasting = _say_duration(row["every"])
        if row.get("once"):
            return "In %s" % lasting
        return "Every %s" % (lasting[2:] if lasting.startswith("1 ") else lasting)
    if "pin" in row:
        return "When the pin %s %s" % (row["pin"], _EDGES.get(row.get("edge", "both")))
    side = "below" if "below" in row else "above"
    verb = "falls" if side == "below" else "rises"
    said = "When %s %s %s %s" % (row.get("on"), verb, side, row.get(side))
    if row.get("for"):
        said += " and stays there for " + _say_duration(row["for"])
    for key in ("again_above", "again_below"):
        if key in row:
            said += ", again after it was %s %s" % (key[6:], row[key])
    return said


def _sun(text: str) -> str:
    for sign, word in (("-", "before"), ("+", "after")):
        event, found, lasting = text.partition(sign)
        if found:
            return "%s %s %s" % (_say_duration(lasting.strip()), word, event.strip())
    return text


def _condition(text: str) -> str:
    if text.startswith("between "):
        first, _, end = text[8:].partition("-")
        return "it is between %s and %s" % (first.strip(), end.strip())
    return text


def _cron(text: str, is_once: bool) -> str:
    fields = text.split()
    if len(fields) == 5:
        minute, hours = fields[:2]
        minute, hours = read_count(minute), [read_count(one) for one in hours.split(",")]
        if minute is not None and None not in hours:
            at = " and ".join([show_minute(hour * 60 + minute) for hour in hours])
            days = _days(fields[2:], is_once)
            if days:
                return "%s at %s" % (days, at)
    return 'By the schedule "%s"' % text


def _days(fields: list, is_once: bool) -> str:
    date, month, weekday = fields
    if (date, month, weekday) == ("*", "*", "*"):
        return "Each day"
    if weekday == "*":
        if read_count(date) is None:
            return ""
        if month == "*":
            return "On day %s of each month" % date
        number = read_count(month)
        if number is None or not 0 < number < 13:
            return ""
        name = MONTH_NAMES.split()[number - 1]
        return "On %s %s%s" % (
            date,
            name[:1].upper() + name[1:],
            "" if is_once else " of each year",
        )
    if date != "*" or month != "*":
        return ""
    if weekday == "1-5":
        return "On each day from Monday to Friday"
    numbers = [read_count(one) for one in weekday.split(",")]
    if None in numbers or [one for one in numbers if one > 7]:
        return ""
    names = [DAY_NAMES.split()[one % 7] for one in numbers]
    return "Each " + " and ".join([name[:1].upper() + name[1:] for name in names])
