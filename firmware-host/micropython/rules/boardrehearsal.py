"""``/rehearse NAME`` on a board: what its flash has on record (samplefiles.py) is played
(core/rules/rehearsal.py), a part each time the loop comes by.  Loaded for that, and dropped.

1. The files are read twice: first for how many samples there are and when the agent began, then for
   the values, by each reading for itself, a line at a time.
2. Of the lines that people see, the first ones are told at once, so memory holds few.
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.errors import ClawError
from clawlite.core.rules import table
from clawlite.core.rules.rehearsal import (
    LIFE,
    MOST_LINES,
    NOTHING_ACTS,
    OF_BOARD,
    Rehearsal,
    first_line,
    line_of,
    lines_of_skipped,
    pick_rule,
)
from jsontext import dumps, loads
from samplefiles import list_days

# the loop waits so long for a part, and for so many steps
_PART_MS, _STEPS = const(40), const(200)


class Rows:
    """The rows of one name in the files of a folder, the earliest first.

    days   names of the files
    begin  of its lines
    """

    def __init__(self, path: str, days: list, begin: str):
        self._path, self._days, self._begin = path, days, begin
        self._day = self._offset = self._at = 0
        self._pairs, self._first_s = [], 0

    def next_row(self):
        """Return the next (s, value), or None."""
        while self._at + 1 >= len(self._pairs):
            if self._day == len(self._days):
                return None
            self._read_line()
        at_s, value = self._first_s + self._pairs[self._at], self._pairs[self._at + 1]
        self._at += 2
        return at_s, value

    def _read_line(self):
        """Read the next line of the name, or come to the next file."""
        self._pairs, self._at = [], 0
        with open("%s/%s" % (self._path, self._days[self._day])) as file:
            file.seek(self._offset)
            line = file.readline()
            while line and not line.startswith(self._begin):
                line = file.readline()
            self._offset = file.tell()
        if line:
            self._first_s, self._pairs = decode(line)
        else:
            self._day, self._offset = self._day + 1, 0


class Edges:
    """The edges of a pin: those of one second lie in it, one after the other."""

    def __init__(self, rows):
        self._rows, self._ahead = rows, rows.next_row()
        self._found = []

    def next_edge(self):
        """Return the next (ms, level), or None."""
        if not self._found and self._ahead:
            at_s, levels = self._ahead[0], []
            while self._ahead and self._ahead[0] == at_s:
                levels.append(self._ahead[1])
                self._ahead = self._rows.next_row()
            for place in range(len(levels)):
                self._found.append((at_s * 1000 + place * 1000 // len(levels), levels[place]))
        return self._found.pop(0) if self._found else None


class BoardRehearsal(Rehearsal):
    """A rehearsal whose runs are told; *tell*: function(line)."""

    def __init__(self, tell, image, section, from_s: int, to_s: int, samples, pins, lives):
        self._tell, self._count, self._last = tell, 1, []
        super().__init__(image, section, from_s, to_s, samples, pins, lives, OF_BOARD)

    def note_run(self, run: dict):
        self._add(line_of(run))

    def _add(self, line: str):
        self._count += 1
        if self._count < MOST_LINES - 1:
            self._tell(line)
        elif self._count < MOST_LINES:
            self._last.append(line)

    def end(self):
        """Tell what is left."""
        for line in lines_of_skipped(self.skipped):
            self._add(line)
        for line in self._last if self._count < MOST_LINES else ["..."]:
            self._tell(line)
        self._tell(NOTHING_ACTS)


class Playing:
    """One rehearsal under way.

    rules  ``BoardRules``
    name   of the rule
    """

    def __init__(self, rules, name: str):
        self._rules, self._name, self._to_s = rules, name, rules.times().wall_s
        self._path = rules.samples.path
        self._days = [file for _, file in list_days(self._path) if not file.endswith(".h")]
        self._day = self._offset = self._count = self._seen_s = 0
        self._from_s, self._lives, self._played = None, [], None

    def go_on(self) -> bool:
        """Play a part; return whether there is more."""
        begun_ms = self._rules.now_ms()
        try:
            steps = 0
            while steps < _STEPS or self._played and not self._played.is_at_rest:
                steps += 1
                if self._played is None:
                    if not self._count_line():
                        self._begin()
                elif not self._played.step():
                    self._played.end()
                    return False
                if self._rules.now_ms() - begun_ms >= _PART_MS:
                    steps = _STEPS
            return True
        except (ClawError, OSError) as e:
            self._rules.tell("the rehearsal ends here: %s" % e)
        return False

    def _count_line(self) -> bool:
        """Look at one more line; return whether there was one."""
        if self._day == len(self._days):
            return False
        with open("%s/%s" % (self._path, self._days[self._day])) as file:
            file.seek(self._offset)
            line = file.readline()
            self._offset = file.tell()
        if not line:
            self._day, self._offset = self._day + 1, 0
            return True
        first_s, pairs = decode(line)
        is_life, is_pin = line.startswith('["' + LIFE), line.startswith('["=')
        for at in range(0, len(pairs) - 1, 2):
            at_s, value = first_s + pairs[at], pairs[at + 1]
            if is_life and value:
                self._lives.append([at_s, self._seen_s, at_s + value[0], value[1]])
            elif not is_life and not is_pin:
                self._count += 1
            self._seen_s = max(self._seen_s, at_s)
            if self._from_s is None or at_s < self._from_s:
                self._from_s = at_s
        return True

    def _begin(self):
        """Begin to play, from the first record on."""
        rules, from_s = self._rules, self._from_s
        if from_s is None:
            raise ClawError("nothing is on record", "a [[reading]] is measured and kept")
        section = pick_rule(rules.section, self._name)
        rows = [self._rows_of(record[table.NAME]).next_row for record in section[table.READINGS]]
        trigger, pins = section[table.RULES][0][table.TRIGGER], {}
        if trigger[table.KIND] == table.ON_PIN:
            pin = trigger[table.WHAT]
            pins[pin] = Edges(self._rows_of("=" + pin)).next_edge
        rules.tell(first_line(from_s, self._to_s, self._count))
        self._played = BoardRehearsal(
            rules.tell, rules.agent.image, section, from_s, self._to_s, rows, pins, self._lives
        )

    def _rows_of(self, name: str):
        return Rows(self._path, self._days, "[%s," % dumps(name))


def decode(line: str) -> tuple:
    """Return (the first time, [s later, value, ...]) of a line, (0, []) of a damaged one."""
    try:
        _, first_s, pairs = loads(line.encode())
        return first_s + 0, pairs if isinstance(pairs, list) else []
    except (ClawError, TypeError, ValueError):
        return 0, []
