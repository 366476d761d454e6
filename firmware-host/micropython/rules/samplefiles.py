"""The samples of a board's readings, in the folder ``readings`` of its flash, in whole days (UTC).

    20480       of the day 20480 since 1970: lines [name, first time, [s later, value, ...]]
    20470.h     of a day that is older: lines [name, day, [[hour, least, mean, most, count], ...]]

1. Samples wait in memory, and are written together at most every _WRITE_S, and when the state of
   the rules is: each time littlefs copies a block of 4 KiB.  What a power cut takes is the last of
   them.
2. All readings are kept for as long as the one that is kept longest.  Then a day becomes hours, of
   the readings that have ``keep_hourly`` (samplehours.py).
3. The levels of pins that rules begin with stand among them, as the samples of "=NAME", and as
   those of "!" when the agent began, [s until its clock was set, runs that were cut], or was seen,
   0.  Its line is the first of what is written together.
4. Where less than _FREE bytes of flash are free, the oldest days go first.
"""

import os

from clawlite.core.base.dialect import const
from clawlite.core.rules import table
from jsontext import dumps

_WRITE_S = const(600)
_MOST = const(1024)  # characters that wait
_FREE = const(65536)
_DAY = const(86400)
_EDGES_S = const(172800)  # how long edges of pins are kept where there are no readings
_SIZE, _BLOCKS = const(0), const(3)  # of statvfs: bytes of a block, and how many are free


class Waiting:
    """Samples that wait.

    path     of the folder
    section  of the image (core/rules/table.py)
    texts    {(name, day): [first time, text of the line's samples]}
    """

    def __init__(self, path: str, section: list):
        self.path, self.texts = path, {}
        self.count, self._write_s = 0, None
        readings = section[table.READINGS]
        self.keep_s = max([row[table.KEEP_S] for row in readings] or [_EDGES_S])
        self.hourly_s = max([row[table.HOURLY_S] for row in readings] or [0])
        self.hourly = [row[table.NAME] for row in readings if row[table.HOURLY_S]]

    def add(self, name: str, at_s: int, value):
        """Take a sample."""
        key = name, at_s // _DAY
        known = self.texts.get(key)
        if known is None:
            known = self.texts[key] = [at_s, ""]
        text = "%d,%s," % (at_s - known[0], dumps(value))
        known[1] += text
        self.count += len(text)

    def write(self, rules, now_s: int, at_once: bool = False):
        """Write what waits, when that has waited for long enough; *rules*: ``BoardRules``."""
        if self._write_s is None or self._write_s > now_s + _WRITE_S:  # or the clock went back
            self._write_s = now_s + _WRITE_S
        if not self.count or not at_once and now_s < self._write_s and self.count < _MOST:
            return
        self._write_s = now_s + _WRITE_S
        try:
            self._make_room(rules, now_s // _DAY)
            for day in sorted({key[1] for key in self.texts}):
                with open("%s/%d" % (self.path, day), "a") as file:
                    for key in sorted(self.texts):
                        if key[1] == day:
                            at_s, text = self.texts[key]
                            file.write("[%s,%d,[%s]]\n" % (dumps(key[0]), at_s, text[:-1]))
        except OSError as e:
            rules.report("the samples of readings", str(e))
        self.texts, self.count = {}, 0

    def _make_room(self, rules, day: int):
        """Make the folder, end what is old, and keep _FREE bytes free."""
        folder, _, last = self.path.rpartition("/")
        if last not in os.listdir(folder):
            os.mkdir(self.path)
        names = os.listdir(self.path)
        if str(day) not in names:
            self._end_old(rules, names, day)
        while True:
            found = os.statvfs(self.path)
            days = list_days(self.path)
            if found[_SIZE] * found[_BLOCKS] >= _FREE or not days or days[0][0] >= day:
                return
            os.remove("%s/%s" % (self.path, days[0][1]))

    def _end_old(self, rules, names: list, day: int):
        """Let days that are older than is wanted become hours, or remove them."""
        old = []
        for number, name in list_days(self.path):
            if name.endswith(".h"):
                if number < day - self.hourly_s // _DAY and str(number) not in names:
                    os.remove("%s/%s" % (self.path, name))
            elif number < day - -(-self.keep_s // _DAY):
                old.append(number)
        if old:
            from samplehours import fold

            rules.agent.begin(fold(self.path, old, self.hourly), _ignore, rules.now_ms())


def _ignore(value, error, now_ms: int):
    """Do nothing: days that could not be ended are ended later."""


def list_days(path: str) -> list:
    """Return [(day, name of its file), ...], the earliest first; none for a missing folder."""
    try:
        names = os.listdir(path)
    except OSError:
        return []
    days = [(int(name.split(".")[0]), name) for name in names if name.split(".")[0].isdigit()]
    return sorted(days)
