"""The engine of readings and of rules that begin by themselves: what is due, by times, samples and
edges that are handed in.  No clock, no I/O: the same on Linux and on boards, and in a rehearsal.

    poll(times)              schedules, periods and thresholds whose time has come join the queue
    next_reading(times)      the number of a reading that is due; its value comes by ``sample``
    see_level(pin, ...)      the level of a pin, as often as the shell looks
    next_run(times)          the rule that may run now, as a ``Run``; ``begin`` and ``end`` follow
    wait_ms(times)           how long nothing is due

1. ``state`` is what survives the process: JSON with text keys.  ``begin`` changes it, and the shell
   keeps it before the tool has an effect.  Then no run comes twice: a run that had begun when the
   process ended is known (``cut_runs``), and one that had not begins again.
2. Runs of a schedule that were due while nothing looked are missed: ``once`` makes up for them with
   one run, ``all`` with one for each, at most 100, ``skip`` with none.
3. A clock that goes back by at most a day runs no time of a schedule twice.  When it goes back
   further it was wrong before, and schedules start again from the new time; likewise when nothing
   looked for more than a year, and when it is put forward by more than a day before the first run
   of a schedule.  A clock that is more than a year ahead of the last record may be wrong: it is not
   put on record before it has run for a day.
4. A machine without a clock of its own boots in the past.  A clock that is behind the last record
   by more than an hour is not believed until it is set, has passed that record, or has run for a
   day; and none is before 2024.  Until then only periods, pins and thresholds run, and a day of
   ``at_most`` is 24 h of running time.
5. A value that is missing makes each condition about it false.
"""

from clawlite.core.base.dialect import const
from clawlite.core.providers.reflex import is_number
from clawlite.core.rules import table
from clawlite.core.rules.condition import find_false
from clawlite.core.rules.schedule import (
    LATE_S,
    MOST_MADE_UP,
    Schedule,
    Sun,
    Zone,
    find_due,
    pick_runs,
)

_BACK_S = const(86400)
_BEHIND_S = const(3600)  # and so often the running time is kept
_YEAR_S = const(31622400)
_FLOOR_S = 1704067200  # 2024-01-01
_BELIEVED_MS = const(86400000)
_LOOK_MS = const(60000)
# a rule waits so long after the start for the first value of a reading that its condition names
_FIRST_MS = const(60000)
_OWN_RUNS = const(10)


class Times:
    """The present: *up_ms* since the machine was switched on, asleep or not; *wall_s* since 1970,
    as the machine's clock has it.
    """

    def __init__(self, up_ms: int, wall_s: int):
        self.up_ms, self.wall_s = up_ms, wall_s


class Run:
    """One run of a rule.

    rule   its record in the image
    at_s   the time of its schedule, 0 for another trigger
    values {reading: value} when it began
    """

    is_approved = False  # a person has approved it: it is looked at again, and not asked again

    def __init__(self, rule: list, at_s: int, values: dict):
        self.rule, self.at_s, self.values = rule, at_s, values
        self.name = rule[table.NAME]


class Reading:
    """What is known of one reading.  What is set by its own methods alone costs a board no name."""

    value = None
    at_ms = None  # when it had that value
    was_tried = False  # since the start
    is_under_way = False

    def __init__(self, record: list, due_ms: int):
        self.record, self.due_ms = record, due_ms
        self.name = record[table.NAME]

    def begin(self):
        """It is being measured."""
        self.is_under_way = True

    def end(self, value, up_ms: int):
        """It was measured; *value*: None where that failed."""
        self.is_under_way, self.was_tried = False, True
        self.keep(value, self.at_ms if value is None else up_ms)

    def keep(self, value, at_ms):
        self.value, self.at_ms = value, at_ms


class Rule:
    """What is known of one rule besides its ``state``."""

    next_s = None  # of its schedules
    due_ms = None  # of its period
    since_ms = None  # since when its threshold is passed, or its pin has a new level
    level = new_level = None  # of its pin
    own_runs = 0  # runs in a row whose trigger came while the run before was under way
    is_own = False
    is_held = False  # no run of it begins: its turn is under way (firmware-host's boardcron.py)
    why = ""  # why it did not run when it was due last

    def __init__(self, record: list):
        self.record, self.name = record, record[table.NAME]
        self.trigger = record[table.TRIGGER]
        self.kind = self.trigger[table.KIND]
        self.is_timed = self.kind == table.AT or self.kind == table.ON_SUN  # it has a schedule

    def see_level(self, level: int, up_ms: int):
        """Its pin has another level, which may last."""
        self.new_level, self.since_ms = level, up_ms

    def take_level(self, level: int):
        """Its pin has this level for certain."""
        self.level = self.new_level = level

    def note_own(self):
        """Its trigger came while it ran."""
        self.is_own = True

    def end_run(self) -> int:
        """A run has ended; return how many in a row whose trigger came in the run before."""
        self.own_runs, self.is_own = (self.own_runs + 1 if self.is_own else 0), False
        return self.own_runs

    def leave_out(self, why: str) -> bool:
        """It does not run; return whether the reason is a new one, whatever value it found."""
        is_new = self.why.partition(": ")[0] != why.partition(": ")[0]
        self.why = why
        return is_new

    def hold(self, is_held: bool):
        """Let no run of it begin, or let them begin again."""
        self.is_held = is_held

    def rest(self):
        """It was put at rest: runs before count no more."""
        self.own_runs = 0


class Engine:
    """The readings and rules of one agent.

    section  of the image (table.py)
    state    dict of an earlier process, or {}; it is changed in place
    keeps_edges  bool, the shell takes ``edges``
    Attributes: ``readings``, ``rules``: in the image's order; ``is_set``: the clock is believed;
    ``start_ms``: when it was made; ``changed``: 0, 1 when ``state`` should be kept, 2 when at once;
    ``events``: for the log, taken by the shell; ``edges``: [pin, level] of levels that have lasted,
    likewise.
    """

    def __init__(self, section: list, state: dict, times, keeps_edges: bool = False):
        self.zone = Zone(section[table.CLOCK][table.CHANGES])
        self._weeks = section[table.CLOCK][table.SUN]
        self.state, self.events, self.changed = state, [], 0
        self.edges = [] if keeps_edges else None
        self.readings = [Reading(record, times.up_ms) for record in section[table.READINGS]]
        self.rules = [Rule(record) for record in section[table.RULES]]
        if not isinstance(state.get("rules"), dict):
            state["rules"] = {}
        self.active = None  # the ``Run`` that is under way
        self.start_ms = times.up_ms
        self._ran_s = state.get("ran_s", 0)  # before the start
        self._ahead_s = times.wall_s - times.up_ms // 1000
        self._leap_ms = None  # since when the clock is more than a year ahead
        seen_s = state.get("wall_s", 0)
        self.is_set = times.wall_s >= _FLOOR_S and times.wall_s >= seen_s - _BEHIND_S
        for rule in self.rules:
            if rule.kind == table.EVERY:
                rule.due_ms = times.up_ms + self._rest_ms(rule, times)

    def row(self, name: str) -> dict:
        """Return what survives of the rule *name*."""
        rows = self.state["rules"]
        if not isinstance(rows.get(name), dict):
            rows[name] = {}
        return rows[name]

    def _rest_ms(self, rule, times) -> int:
        """Return how long the period of *rule* still lasts, by its last run."""
        every_ms, last_s = rule.trigger[table.WHAT], self.row(rule.name).get("at_s")
        if not self.is_set or last_s is None or last_s > times.wall_s:
            return every_ms
        return max(0, every_ms - (times.wall_s - last_s) * 1000)

    # -- what comes in

    def restore(self, name: str, value, age_ms: int, times):
        """Take the last value of a reading that an earlier process has kept."""
        for reading in self.readings:
            if reading.name == name and reading.at_ms is None:
                reading.keep(value, times.up_ms - age_ms)

    def next_reading(self, times):
        """Return the number of a reading that is due, which is under way from now on, or None."""
        for number in range(len(self.readings)):
            reading = self.readings[number]
            if not reading.is_under_way and times.up_ms >= reading.due_ms:
                reading.begin()
                reading.due_ms += reading.record[table.EVERY_MS]
                if reading.due_ms <= times.up_ms:  # no sample is made up
                    reading.due_ms = times.up_ms + reading.record[table.EVERY_MS]
                return number
        return None

    def sample(self, number: int, value, times):
        """Take the value of reading *number*; None: it has failed, or has no such field."""
        reading = self.readings[number]
        reading.end(value, times.up_ms)
        for rule in self.rules:
            if rule.kind == table.ON_READING and rule.trigger[table.WHAT] == reading.name:
                self._compare(rule, value, times)

    def _compare(self, rule, value, times):
        trigger, row = rule.trigger, self.row(rule.name)
        is_below, limit, again = [trigger[i] for i in (table.IS_BELOW, table.LIMIT, table.AGAIN)]
        if not is_number(value):
            rule.since_ms = None
        elif row.get("fired"):
            if again is None:
                is_back = value >= limit if is_below else value <= limit
            else:
                is_back = value > again if is_below else value < again
            if is_back:
                del row["fired"]
                self._keep(1)
        elif value < limit if is_below else value > limit:
            if rule.since_ms is None:
                rule.since_ms = times.up_ms
            self._pass(rule, times)
        else:
            rule.since_ms = None

    def _pass(self, rule, times):
        """Let *rule* run when its threshold has been passed for long enough."""
        if times.up_ms - rule.since_ms >= rule.trigger[table.FOR_MS]:
            rule.since_ms = None
            self.row(rule.name)["fired"] = True
            self._fire(rule, 0)

    def see_level(self, pin: str, level: int, times) -> bool:
        """Take the *level* of a pin, 0 or 1; return whether it has not lasted for long enough."""
        settles = False
        for rule in self.rules:
            if rule.kind == table.ON_PIN and rule.trigger[table.WHAT] == pin:
                self._settle(rule, level, times)
                settles = settles or rule.level != rule.new_level
        return settles

    def _settle(self, rule, level: int, times):
        """Let *rule* run when its pin has another level that has lasted for its debounce."""
        if rule.level is None:
            rule.take_level(level)
        self._take_level(rule, times)  # it may have lasted for long enough until now
        if level != rule.new_level:
            rule.see_level(level, times.up_ms)
            self._take_level(rule, times)

    def _take_level(self, rule, times):
        level = rule.new_level
        if level != rule.level and times.up_ms - rule.since_ms >= rule.trigger[table.DEBOUNCE_MS]:
            rule.take_level(level)
            if self.edges is not None:
                self.edges.append([rule.trigger[table.WHAT], level])
            if rule.trigger[table.EDGES] >> level & 1:
                self._fire(rule, 0)

    def take_edges(self) -> list:
        """Return the levels that have lasted since the last time: [pin, level], ..."""
        edges = self.edges or []
        if edges:
            self.edges = []
        return edges

    @property
    def pins(self) -> list:
        """The names of the pins whose levels are looked at."""
        return sorted(
            {rule.trigger[table.WHAT] for rule in self.rules if rule.kind == table.ON_PIN}
        )

    # -- what is due

    def poll(self, times):
        """Let what is due join the queue."""
        self._look_at_clock(times)
        for rule in self.rules:
            if rule.kind == table.EVERY:
                if times.up_ms >= rule.due_ms:
                    every_ms = rule.trigger[table.WHAT]
                    rule.due_ms += every_ms
                    if rule.due_ms <= times.up_ms:
                        rule.due_ms = times.up_ms + every_ms
                    self._fire(rule, 0)
            elif rule.kind == table.ON_READING:
                if rule.since_ms is not None:
                    self._pass(rule, times)
            elif rule.is_timed and self.is_set:
                # asked here, because a board loads what computes schedules
                next_s, done_s = rule.next_s, self.row(rule.name).get("done_s", 0)
                if (
                    next_s is None
                    or next_s <= times.wall_s
                    or not isinstance(done_s, int)
                    or done_s > times.wall_s + _BACK_S
                ):
                    self._look_at_schedule(rule, times.wall_s)

    def _look_at_clock(self, times):
        if self._running_s(times) - self.state.get("ran_s", 0) >= _BEHIND_S:
            self.state["ran_s"] = self._running_s(times)
            self._keep(1)
        ahead_s = times.wall_s - times.up_ms // 1000
        by_s, self._ahead_s = ahead_s - self._ahead_s, ahead_s
        was_set = abs(by_s) > LATE_S
        seen_s = self.state.get("wall_s", 0)
        if not self.is_set and times.wall_s >= _FLOOR_S:
            self.is_set = (
                was_set or times.wall_s >= seen_s or times.up_ms - self.start_ms >= _BELIEVED_MS
            )
        if not self.is_set:
            return
        is_ahead = seen_s and times.wall_s - seen_s > _YEAR_S
        for rule in self.rules if is_ahead or by_s > _BACK_S else ():
            row = self.row(rule.name)
            is_new = by_s > _BACK_S and row.get("new")
            if is_new or is_ahead and times.wall_s - row.get("done_s", 0) > _YEAR_S:
                self._start_anew(rule, times.wall_s)
        if not is_ahead:
            self._leap_ms = None
        elif self._leap_ms is None:
            self._leap_ms = times.up_ms
        if is_ahead and times.up_ms - self._leap_ms < _BELIEVED_MS:
            return
        if times.wall_s - seen_s >= _BACK_S or times.wall_s < seen_s - LATE_S:
            self._keep(1)  # at least once a day
        self.state["wall_s"] = times.wall_s

    def _start_anew(self, rule, wall_s: int):
        """Let the schedule of *rule* begin at *wall_s*; what came before was not missed."""
        if rule.is_timed:
            self.row(rule.name)["done_s"], rule.next_s = wall_s, None
            self._keep(2)

    def _look_at_schedule(self, rule, wall_s: int):
        row = self.row(rule.name)
        done_s = row.get("done_s")
        if done_s is None:
            row["new"] = True  # until its first run
        if not isinstance(done_s, int) or done_s > wall_s + _BACK_S:
            self._start_anew(rule, wall_s)
            done_s = wall_s
        if rule.next_s is None:
            rule.next_s = self._after(rule, done_s)
        if rule.next_s is None or rule.next_s > wall_s:
            return
        missed = rule.record[table.MISSED]
        most = MOST_MADE_UP if missed == table.ALL else 1
        due = find_due(lambda at_s: self._after(rule, at_s), done_s, wall_s, most)
        row["done_s"], rule.next_s = due[-1], self._after(rule, due[-1])
        row.pop("new", None)
        runs = pick_runs(due, missed, wall_s)
        if len(runs) < len(due):
            count = len(due) - len(runs)
            self._tell(rule, "missed", "%d left out" % count)
            self.events[-1]["count"] = count
        self._keep(1)
        for at_s in runs:
            self._fire(rule, at_s)

    def _after(self, rule, at_s: int):
        found = []
        for one in rule.trigger[table.WHAT]:
            if rule.kind == table.AT:
                found.append(Schedule(one, self.zone.offset).after(at_s))
            else:
                found.append(Sun(self._weeks, one[0], one[1]).after(at_s))
        found = [one for one in found if one is not None]
        return min(found) if found else None

    def _fire(self, rule, at_s: int):
        """Let a run of *rule* join the queue; one of a period, a pin or a threshold only when none
        waits there.
        """
        row = self.row(rule.name)
        queue = row.get("queue") or []
        if row.get("off"):
            return
        if row.get("asks"):
            self._leave_out(rule, "its question waits for an answer")
            return
        if self.active is not None and self.active.name == rule.name:
            rule.note_own()
        if at_s or not queue:
            row["queue"] = queue + [at_s]

    def next_run(self, times):
        """Return the ``Run`` that may begin now, or None.  Others of the queue that may not run are
        left out.
        """
        if self.active is not None:
            return None
        values = self.values(times)
        for rule in self.rules:
            row = self.row(rule.name)
            while row.get("queue") and not self._waits_for_values(rule, times):
                at_s, *rest = row["queue"]
                row["queue"] = rest
                why = self.find_obstacle(rule.record, values, times)
                if not why:
                    return Run(rule.record, at_s, values)
                self._leave_out(rule, why)
        return None

    def _waits_for_values(self, rule, times) -> bool:
        """Return whether *rule* is held, or waits for the first value of a reading, after the
        start.
        """
        if rule.is_held:
            return True
        if times.up_ms - self.start_ms >= _FIRST_MS:
            return False
        for condition in rule.record[table.IF]:
            for reading in self.readings:
                if reading.name in condition and not reading.was_tried:
                    return True
        return False

    def find_obstacle(self, record: list, values: dict, times) -> str:
        """Return why the rule may not run now, "" when it may."""
        row = self.row(record[table.NAME])
        if row.get("off"):
            return "it is off"
        wrong = find_false(record[table.IF], values, self._ages(times), self._minute(times))
        if wrong:
            return wrong
        most, pause_s = record[table.AT_MOST], record[table.LEAST_PAUSE_S]
        if most and self._count(row, most, times) >= most[table.COUNT]:
            return "it ran %d times in this %s (at_most)" % (
                most[table.COUNT],
                period_name(most[table.PERIOD_S]),
            )
        if pause_s and self._pause_s(row, times) < pause_s:
            return "its last run is less than %d s ago (least_pause)" % pause_s
        return ""

    def values(self, times) -> dict:
        """Return {reading: value}, without those that are missing."""
        return {
            reading.name: reading.value for reading in self.readings if reading.value is not None
        }

    def _ages(self, times) -> dict:
        """Return {reading: seconds since it had its value}."""
        return {
            reading.name: (times.up_ms - reading.at_ms) // 1000
            for reading in self.readings
            if reading.at_ms is not None and reading.value is not None
        }

    def _minute(self, times):
        """Return the minute of the local day, None while the clock is not set."""
        if not self.is_set:
            return None
        return (times.wall_s + self.zone.offset(times.wall_s)) // 60 % 1440

    def _running_s(self, times) -> int:
        """Return the seconds that the agent has run, with those of earlier processes."""
        return self._ran_s + (times.up_ms - self.start_ms) // 1000

    def _period(self, most: list, times) -> list:
        """Return [whether it is by the clock, the number of the present period]."""
        period_s = most[table.PERIOD_S]
        if not self.is_set:
            return [False, self._running_s(times) // period_s]
        local_s = times.wall_s + self.zone.offset(times.wall_s)
        # a week begins on Monday, and 1970 on a Thursday
        return [True, (local_s + (259200 if period_s == 604800 else 0)) // period_s]

    def _count(self, row: dict, most: list, times) -> int:
        """Return how often the rule ran in the present period.  A period that is not later than
        that of the count does not begin it anew: the clock went back, or was set only now.
        """
        counted, now = row.get("count"), self._period(most, times)
        if not counted:
            return 0
        if counted[0] == now[0] and now[1] > counted[1]:
            return 0
        if counted[:2] != now:
            row["count"] = now + [counted[2]]
        return counted[2]

    def _pause_s(self, row: dict, times) -> int:
        """Return the seconds since the last run began; a clock that went back begins the pause
        anew.
        """
        if self.is_set and row.get("at_s") is not None:
            if row["at_s"] > times.wall_s:
                row["at_s"] = times.wall_s
            return times.wall_s - row["at_s"]
        if row.get("ran_s") is not None:
            return self._running_s(times) - row["ran_s"]
        return _YEAR_S

    def take_events(self) -> list:
        """Return the events for the log since the last time."""
        events, self.events = self.events, []
        return events

    def note_kept(self):
        """``state`` has been kept as it is."""
        self.changed = 0

    # -- runs

    def let_run(self, run) -> bool:
        """Let *run* be the one that has its tool, when no other is; return whether it is."""
        if self.active is None:
            self.active = run
        return self.active is run

    def begin(self, run, times, acts: bool):
        """Note that the tool of *run* begins; *acts*: it has side effects."""
        row, rule = self.row(run.name), self.find(run.name)
        most = run.rule[table.AT_MOST]
        if most:
            row["count"] = self._period(most, times) + [self._count(row, most, times) + 1]
        row["ran_s"] = self._running_s(times)
        row.pop("at_s", None)
        if self.is_set:
            row["at_s"] = times.wall_s
        row.pop("asks", None)
        if acts:
            row["began"] = run.at_s
        self.state["ran_s"] = self._running_s(times)
        rule.leave_out("")
        self._keep(2 if acts else 1)

    def end(self, run, status: str, text: str, times):
        """Note how *run* ended: "ok", "error", "refused", "denied", "expired" or "cut"."""
        row, rule = self.row(run.name), self.find(run.name)
        had_begun = row.pop("began", None) is not None
        had_asked = row.pop("asks", None) is not None
        row["last"] = [times.wall_s if self.is_set else 0, status, text[:200]]
        if self.active is run:
            self.active = None
        own_runs = rule.end_run()
        if own_runs >= _OWN_RUNS:
            self.rest(
                run.name,
                "it seems to fire itself: its trigger came %d times during its own run" % own_runs,
            )
            rule.rest()
        self._keep(2 if had_begun or had_asked else 1)

    def ask(self, run, question: list):
        """Note that *run* waits for a person; *question* survives (``asked``)."""
        self.row(run.name)["asks"] = [run.at_s] + question
        if self.active is run:
            self.active = None  # others may run meanwhile
        self._keep(2)

    def put_back(self, run):
        """Let *run*, which was cut off before its tool began, begin again later."""
        row = self.row(run.name)
        if self.active is run:
            self.active = None
        if not row.get("asks") and row.get("began") is None:
            row["queue"] = [run.at_s] + (row.get("queue") or [])
            self._keep(1)

    def find_questions(self) -> list:
        """Return [(rule, [time of its schedule, ...]), ...] of the questions that wait."""
        found = []
        for rule in self.rules:
            asks = self.row(rule.name).get("asks")
            if isinstance(asks, list) and asks:
                found.append((rule.record, asks))
        return found

    def cut_runs(self) -> list:
        """Return [(rule, time of its schedule), ...] of the runs that an earlier process had
        begun.
        """
        return [
            (rule.record, self.row(rule.name)["began"])
            for rule in self.rules
            if self.row(rule.name).get("began") is not None
        ]

    def repeat(self, record: list):
        """Let a run that was cut begin again: its tool may run twice, and limits count it once."""
        row = self.row(record[table.NAME])
        row["queue"] = [row.pop("began")] + (row.get("queue") or [])
        count = row.get("count")
        if count:
            row["count"] = count[:2] + [max(0, count[2] - 1)]
        row.pop("at_s", None)
        row.pop("ran_s", None)
        self._keep(1)

    def rest(self, name: str, why: str):
        """Let a rule rest until a person switches it on, and say *why*."""
        row = self.row(name)
        row["off"] = why
        row.pop("queue", None)
        self._tell(self.find(name), "off", why)
        self._keep(2)

    def switch(self, name: str, is_on: bool):
        """Switch a rule on or off, until a person switches it again."""
        row = self.row(name)
        if is_on:
            row.pop("off", None)
            row.pop("fired", None)
        else:
            row["off"] = "a person switched it off"
            row.pop("queue", None)
        self.find(name).why = ""
        self._keep(2)

    def find(self, name: str):
        """Return the ``Rule`` *name*, or None."""
        for rule in self.rules:
            if rule.name == name:
                return rule
        return None

    def _leave_out(self, rule, why: str):
        """Note that a run is left out; the log gets it when the reason is a new one."""
        if rule.leave_out(why):
            self._tell(rule, "skipped", why)

    def _tell(self, rule, what: str, reason: str):
        self.events.append({"event": "rule." + what, "rule": rule.name, "reason": reason})

    def _keep(self, how: int):
        self.changed = max(self.changed, how)

    def wait_ms(self, times):
        """Return after how many ms ``poll`` or ``next_reading`` has something to do, or None."""
        waits = []
        for reading in self.readings:
            if not reading.is_under_way:
                waits.append(reading.due_ms - times.up_ms)
        for rule in self.rules:
            if rule.due_ms is not None:
                waits.append(rule.due_ms - times.up_ms)
            if rule.is_timed:
                waits.append(_LOOK_MS)
                if rule.next_s is None or not self.is_set:
                    waits.append(1000)
                else:
                    waits.append((rule.next_s - times.wall_s) * 1000)
            if rule.kind == table.ON_PIN and rule.level != rule.new_level:
                waits.append(rule.since_ms + rule.trigger[table.DEBOUNCE_MS] - times.up_ms)
            if rule.since_ms is not None and rule.kind == table.ON_READING:
                waits.append(rule.since_ms + rule.trigger[table.FOR_MS] - times.up_ms)
            if self.active is None and self.row(rule.name).get("queue"):
                waits.append(1000 if self._waits_for_values(rule, times) else 0)
        return max(0, min(waits)) if waits else None


def period_name(period_s: int) -> str:
    """Return the word for a period of ``at_most``."""
    return {60: "minute", 3600: "hour", 86400: "day", 604800: "week"}[period_s]
