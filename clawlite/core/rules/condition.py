"""Conditions in the head of a rule that begins by itself: over readings, their age, and the time of
day."""

from clawlite.core.providers.reflex import holds as compare
from clawlite.core.rules.table import AGE, BETWEEN


def find_false(conditions: list, values: dict, ages: dict, minute) -> str:
    """Return the text of the first condition that does not hold, with what it found; "" when all
    hold.

    values  {reading: value}, without those that are missing
    ages    {reading: seconds since it had its value}
    minute  of the local day, None while the clock is not set
    """
    for condition in conditions:
        found = find_value(condition, values, ages, minute)
        if not is_met(condition, found):
            return "%s does not hold: %s" % (
                text_of(condition),
                "there is no value" if found is None else "it is %s" % show(condition, found),
            )
    return ""


def find_value(condition: list, values: dict, ages: dict, minute):
    """Return the value that *condition* compares, None when it is missing."""
    if condition[0] == BETWEEN:
        return minute
    return ages.get(condition[1]) if condition[0] == AGE else values.get(condition[0])


def is_met(condition: list, value) -> bool:
    """Return whether *condition* holds for *value*; False for a value that is missing."""
    if value is None:
        return False
    if condition[0] == BETWEEN:
        _, first, end = condition
        return first <= value < end if first < end else value >= first or value < end
    return compare(["", condition[-2], condition[-1]], {"": value}, [])


def text_of(condition: list) -> str:
    """Return *condition* as it is written in a rule."""
    if condition[0] == BETWEEN:
        return "between %s-%s" % (_hour(condition[1]), _hour(condition[2]))
    if condition[0] == AGE:
        return "age(%s) %s %ds" % (condition[1], condition[2], condition[3])
    name, operator, value = condition
    if isinstance(value, str):
        value = '"%s"' % value
    elif value is True or value is False:
        value = "true" if value else "false"
    return "%s %s %s" % (name, operator, value)


def show(condition: list, value) -> str:
    """Return *value*, which *condition* compares, for people."""
    if condition[0] == BETWEEN:
        return _hour(value)
    if value is True or value is False:
        return "true" if value else "false"
    return "%ds" % value if condition[0] == AGE else str(value)


def _hour(minute: int) -> str:
    return "%02d:%02d" % (minute // 60, minute % 60)
