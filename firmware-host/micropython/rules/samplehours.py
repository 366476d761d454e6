"""Days of samples that are old become hours (samplefiles.py): for each reading a line with the
least, the mean and the most of each hour.  Loaded for that, once a day, and dropped.
"""

import os

from clawlite.core.base.dialect import const
from clawlite.core.base.effect import SLEEP
from clawlite.core.base.errors import ClawError
from clawlite.core.providers.reflex import is_number
from jsontext import dumps, loads

_HOUR = const(3600)
_STEP_MS = const(5)  # between two lines: the agent stays responsive


def fold(path: str, days: list, names: list):
    """A generator of effects that replaces the files of *days*.

    names  of the readings whose hours are kept
    """
    for day in days:
        file = "%s/%d" % (path, day)
        try:
            os.remove(file + ".h")  # an attempt before was cut off
        except OSError:
            pass
        for name in names:
            yield from _fold_one(file, day, name)
        os.remove(file)


def _fold_one(path: str, day: int, name: str):
    begins, hours, hour = "[%s," % dumps(name), "", None
    with open(path) as file:
        line = file.readline()
        while line:
            yield (SLEEP, _STEP_MS)
            if line.startswith(begins):
                for at_s, value in samples_of(line):
                    if hour is None or hour[0] != at_s // _HOUR % 24:
                        hours += _text(hour)
                        hour = [at_s // _HOUR % 24, value, 0, value, 0]
                    hour[1] = min(hour[1], value)
                    hour[2] += value
                    hour[3] = max(hour[3], value)
                    hour[4] += 1
            line = file.readline()
    hours += _text(hour)
    if hours:
        with open(path + ".h", "a") as file:
            file.write("[%s,%d,[%s]]\n" % (dumps(name), day, hours[:-1]))


def _text(hour) -> str:
    if hour is None:
        return ""
    return dumps([hour[0], hour[1], hour[2] / hour[4], hour[3], hour[4]]) + ","


def samples_of(line: str) -> list:
    """Return [(at_s, number), ...] of a line; of one that is damaged none."""
    try:
        _, at_s, pairs = loads(line.encode())
        found = [(at_s + pairs[n], pairs[n + 1]) for n in range(0, len(pairs), 2)]
        return [one for one in found if is_number(one[1])]
    except (ClawError, IndexError, TypeError, ValueError):
        return []
