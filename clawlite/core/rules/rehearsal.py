"""A rehearsal: the rules of an image are played against what is on record, in simulated time,
through the real engine and the one pipeline.  Nothing acts: what a call would have changed is not
simulated.  The same on Linux and on boards.

1. The record says when samples were taken, when the levels of pins changed, and when the agent
   began; then what it had kept is what it goes on with, and nothing more, as after a reset.
2. Between the last sign of an agent and its next start it was off.
3. Before its clock was set, the time of day is unknown to it, as it was.
4. A board lets others work between two steps.
"""

from clawlite.core.agent.agent import Agent
from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base.clock import iso8601
from clawlite.core.base.dialect import const
from clawlite.core.base.effect import CANCEL, KEEP, LOG, RESOLVE, RUN, STORE, TELL, Result
from clawlite.core.base.errors import ClawError
from clawlite.core.base.printable import escape_line, escape_name
from clawlite.core.base.render import call_text
from clawlite.core.rules import table
from clawlite.core.rules.engine import Engine, Times
from clawlite.core.rules.runs import Runs

NOT_RUN = "(not run: this is a rehearsal)"
NOTHING_ACTS = "Nothing acted, and what an act would have changed is not simulated."
MOST_LINES = 40  # at a console
LIFE = "!"  # the name among a board's samples of when the agent began, [s until its clock was set,
# [[rule, when], ...] of the runs that were cut], or was seen, 0
# ms between two writes of a state that is not urgent, and whether last values outlive a start
OF_LINUX, OF_BOARD = (60000, True), (600000, False)
_SAVE_MS, _RESTORES = 0, 1
_FRESH_S = const(90)  # a sample holds for two periods of its reading, and at least for so long
_NEAR_S = const(15)
_MS = const(1000)  # the time at which a rehearsal begins
_AT, _VALUE = 0, 1  # of a sample and of an edge, [s or ms, value]
_UNTIL, _TASK, _TOOL = 0, 1, 2  # of a call that is under way
BEGUN_S, SEEN_S, SET_S, CUT = range(4)  # of a life
_NAME, _WHEN = 0, 1  # of a run that was cut


class Rehearsed(Setup):
    """What the agent of a rehearsal is given: its loop carries tasks on, where the stack is not
    deep.
    """

    def __init__(self, image):
        super().__init__(image)
        self.later = []


class Track:
    """What is on record of one reading, or of one pin, in its order.

    source  function() -> the next (time, value), or None
    """

    last = None  # what is not later than the present
    is_new = False  # nobody has seen that

    def __init__(self, source):
        self._source, self.ahead = source, source()

    def take(self):
        """Go on by one."""
        self.last, self.ahead, self.is_new = self.ahead, self._source(), True

    def see(self):
        """Return what is not later than the present, or None; it is seen."""
        self.is_new = False
        return self.last

    def go(self, until: int):
        """Go on to the time *until*."""
        while self.ahead is not None and self.ahead[_AT] <= until:
            self.take()


class Player(Runs):
    """The runs of one life of the agent, from its start on.

    played   ``Rehearsal``
    agent    ``agent.Agent`` of this life
    section  the readings and rules that are played (table.py)
    state    what an earlier life has kept
    """

    _save_ms = 0

    def __init__(self, played, agent, section: list, state: dict):
        super().__init__(agent, section)
        self._played, self._begun = played, []
        self.engine = Engine(section, state, played.times())
        self._looks_at_pins = bool(self.engine.pins)

    def poll(self):
        """Look at what is due, and begin it."""
        engine, times = self.engine, self.times()
        self._see_pins(times)
        engine.poll(times)
        if engine.changed == 2:
            self.save(True)
        self._begin_due(times)
        if engine.changed and self.now_ms() >= self._save_ms:
            self.save(False)

    def deadline(self):
        """Return the ms at which ``poll`` has something to do, or None."""
        wait_ms, save_ms = self.engine.wait_ms(self.times()), self._save_ms
        at = None if wait_ms is None else self.now_ms() + wait_ms
        if self.engine.changed and (at is None or save_ms < at):
            at = save_ms
        return at

    def now_ms(self) -> int:
        return self._played.now_ms

    def times(self) -> Times:
        return self._played.times()

    def read_pin(self, name: str) -> int:
        return self._played.level(name)

    def save(self, lasting: bool) -> bool:
        self._save_ms = self._played.keep(self.engine.state)
        self.engine.note_kept()
        return True

    def keep_sample(self, name: str, at_s: int, value):
        """It is on record."""

    def tell(self, text: str, to_admins: bool = False):
        self._played.say(text)

    def find_run(self, task: int):
        """Return the ``Run`` whose task it is, or None."""
        return self._runs.get(task)

    def _read(self, number: int):
        self._begun.append(number)

    def _begin(self, run, arguments=None, left_s=None):
        if run.rule[table.CALL] is not None:
            return super()._begin(run, arguments, left_s)
        self.engine.let_run(run)
        self.engine.begin(run, self.times(), False)
        self._finish(run, "ok", "")
        self.say(run, Result("", False, ""), "", False)

    def _ask_model(self, name: str, prompt: str, to_admins: bool):
        self.tell("[rule %s] (asks a model: %s)" % (name, prompt), to_admins)

    def end_reads(self):
        """End the readings that have begun: a tool takes some time, too."""
        begun, self._begun = self._begun, []
        for number in begun:
            value = self._played.value_of(number)
            wrong = ClawError("nothing on record", "play a time that has samples")
            self._sample(number, value, wrong if value is None else None)

    def await_samples(self):
        """Let each reading be due when its next sample was taken, where that holds until then."""
        for number in range(len(self.engine.readings)):
            reading = self.engine.readings[number]
            at_ms = None if reading.is_under_way else self._played.next_ms(number)
            if at_ms is not None:
                reading.due_ms = at_ms

    def restore(self, tracks: list, now_s: int):
        """Take the last values of an earlier life."""
        for record, track in zip(self.section[table.READINGS], tracks):
            if track.last:
                age_ms = (now_s - track.last[_AT]) * 1000
                self.engine.restore(record[table.NAME], track.last[_VALUE], age_ms, self.times())


class Rehearsal:
    """One rehearsal.

    image    ``image.Image``
    section  the readings and rules that are played (table.py)
    from_s, to_s   the time that is played
    samples  [function() -> the next (s, value) or None, ...] of each reading, the earliest first
    pins     {pin: such a function of (ms, level)}
    lives    [[begun_s, seen_s, set_s, cut], ...], the earliest first: when the agent began, when it
             was seen last before that, since when its clock is set, and [[rule, when], ...] of the
             runs that were cut before
    habits   OF_LINUX or OF_BOARD: when an agent keeps what
    Attributes: ``now_ms``; ``skipped``: {rule: {reason: count}}
    """

    def __init__(self, image, section, from_s: int, to_s: int, samples, pins, lives, habits):
        self._image, self._section, self._habits = image, section, habits
        self._from_s, self._end_ms, self.now_ms = from_s, _MS + (to_s - from_s) * 1000, _MS
        self._tracks = [Track(source) for source in samples]
        self._pins, self._levels = {name: Track(pins[name]) for name in pins}, {}
        for name in self._pins:  # what was before
            self._pins[name].go(from_s * 1000 - 1)
        self._lives, self._place = lives, 0
        self._life: list = [from_s, 0, from_s, ()]
        for life in lives:
            if life[BEGUN_S] <= from_s:
                self._life = life
            elif life[SEEN_S]:  # before the first start on record, it is not known to have been off
                break
            self._place += 1
        self._kept, self._spent, self._ledger = {}, {}, None
        self.skipped, self._calls, self._running = {}, {}, []
        self._is_polled, self._shaped = False, None
        self._begin_life()

    # -- time

    def step(self) -> bool:
        """Do one thing that is due, or go on to the time of the next; return whether there is more.
        None is done from within another: a board has little stack.
        """
        agent = self.agent
        if agent.later:
            task, value, error = agent.later.pop(0)
            agent.drive(task, value, error, self.now_ms)
            return True
        if self._shaped:
            tool, output = self._shaped
            tool.output, self._shaped = output, None
        effect = agent.next_effect()
        if effect:
            self._carry_out(*effect)
        elif not self._is_polled:
            self._is_polled = True
            self._player.poll()
        else:
            self._is_polled = False
            self._player.end_reads()
            self._player.await_samples()
            return self._go_on(self._find_next_ms())
        return True

    def _find_next_ms(self) -> int:
        """Return when something is due next."""
        due = [self._player.deadline(), self.agent.deadline()]
        for name in self._pins:
            if self._pins[name].ahead:
                due.append(self._ms_of(self._pins[name].ahead[_AT]))
        for call in self._running:
            due.append(call[_UNTIL])
        for task in self.agent.waiting:
            due.append(self.find_answer_ms(task))
        return max(self.now_ms + 1, min([at for at in due if at is not None] + [self._end_ms]))

    def _go_on(self, at_ms: int) -> bool:
        """Go on to a time, or to the next life; return whether there is more."""
        ends_ms = self._last_ms()
        if ends_ms is not None and at_ms > ends_ms:
            self._life = self._lives[self._place]
            self._place += 1
            at_ms = _MS + (self._life[BEGUN_S] - self._from_s) * 1000
            self.now_ms = min(max(self.now_ms + 1, at_ms), self._end_ms)
            if self.now_ms < self._end_ms:
                self._begin_life()
        else:
            self.now_ms = at_ms
            if at_ms < self._end_ms:
                self._end_what_is_due()
        return self.now_ms < self._end_ms

    def _end_what_is_due(self):
        """The time is another: pins, calls and questions come to it."""
        agent = self.agent
        for name in self._pins:  # one edge at most: each level is seen
            track = self._pins[name]
            if track.ahead and self._ms_of(track.ahead[_AT]) <= self.now_ms:
                track.take()
                self._levels[name] = track.last[_VALUE]
        agent.tick(self.now_ms)
        for call in [call for call in self._running if call[_UNTIL] <= self.now_ms]:
            self._running.remove(call)
            self._end_call(call[_TASK], call[_TOOL])
        for task in list(agent.waiting):
            if task.approval is not None:
                self.answer_question(task)

    def _begin_life(self):
        """The agent begins, with what it has kept."""
        self.agent, self._running = Agent(Rehearsed(self._image), self.now_ms), []
        for name in self._pins:  # before the first edge, a pin has the other level
            ahead = self._pins[name].ahead
            self._levels[name] = 1 - ahead[_VALUE] if ahead else self._levels.get(name, 0)
        self._player = Player(self, self.agent, self._section, _copy(self._kept))
        if self._habits[_RESTORES]:
            for track in self._tracks:
                track.go(self._life[SEEN_S])
            self._player.restore(self._tracks, self.now_s())
        self.agent.start(self.now_ms)
        self._player.await_samples()

    def now_s(self) -> int:
        return self._from_s + (self.now_ms - _MS) // 1000

    def times(self) -> Times:
        """Return the present, as the agent knows it."""
        wall_s = self.now_s()
        if wall_s < self._life[SET_S]:
            wall_s -= self._life[BEGUN_S]
        return Times(self.now_ms, wall_s)

    def _ms_of(self, at_ms: int) -> int:
        """Return the time of a rehearsal at *at_ms* since 1970."""
        return at_ms - self._from_s * 1000 + _MS

    def _last_ms(self):
        """Return when this life ends, None where no other one follows."""
        if self._place == len(self._lives):
            return None
        return _MS + (self._lives[self._place][SEEN_S] - self._from_s) * 1000 + 999

    # -- what is on record

    def value_of(self, number: int):
        """Return what the reading had on record at this time, None for nothing."""
        track, now_s = self._tracks[number], self.now_s()
        track.go(now_s)
        since_s = max(now_s - self._fresh_s(number), self._life[BEGUN_S])
        last = track.see()
        return last[_VALUE] if last and last[_AT] >= since_s else None

    def next_ms(self, number: int):
        """Return when the next sample of a reading was taken, None when the last one does not hold
        until then, or this life.
        """
        track, now_s = self._tracks[number], self.now_s()
        track.go(now_s)
        if track.is_new and track.last[_AT] >= self._life[BEGUN_S]:
            return self.now_ms
        at_s = track.ahead[_AT] if track.ahead else None
        if at_s is None or at_s - now_s > self._fresh_s(number):
            return None
        at_ms, last_ms = _MS + (at_s - self._from_s) * 1000, self._last_ms()
        return None if last_ms is not None and at_ms > last_ms else at_ms

    def _fresh_s(self, number: int) -> int:
        """Return how long a sample of a reading holds."""
        return max(_FRESH_S, 2 * self._section[table.READINGS][number][table.EVERY_MS] // 1000)

    def level(self, pin: str) -> int:
        """Return the level of a pin."""
        return self._levels.get(pin, 0)

    def keep(self, state: dict) -> int:
        """Keep the *state* of a life; return from when on one that is not urgent is kept again."""
        self._kept = _copy(state)
        return self.now_ms + self._habits[_SAVE_MS]

    # -- people, and what else may be on record

    def find_answer_ms(self, task):
        """Return when the question of *task* is answered, None where nobody does."""

    def answer_question(self, task):
        """Answer the question of *task*, where somebody does so now."""

    def find_lasted(self, tool: str) -> int:
        """Return how many ms a call of *tool* took that began about now, 0 where that is not
        known.
        """
        return 0

    def say(self, text: str):
        """People are told *text*."""

    def note_run(self, run: dict):
        """A run has ended: {at, rule, tool, arguments, action, rule_id, approval, status, reason,
        values}.
        """

    # -- effects

    def _carry_out(self, kind: int, subject, what=None, *_):
        """Carry out one effect; *subject* is its task's number, or what it says."""
        agent = self.agent
        if kind == RUN:
            until_ms = self._end_ms if self._is_cut(subject) else self.find_lasted(what.name)
            if until_ms:
                self._running.append((self.now_ms + until_ms, subject, what))
            else:
                self._end_call(subject, what)
        elif kind == CANCEL:
            self._running = [one for one in self._running if one[_TASK] != subject]
        elif kind == RESOLVE:
            agent.complete(subject, (True, what), self.now_ms)
        elif kind == STORE:
            agent.complete(subject, (True, self._store(what)), self.now_ms)
        elif kind == KEEP:
            agent.complete(subject, (True, []), self.now_ms)
        elif kind == TELL:
            self.say(subject)
        elif kind == LOG:
            self._note(subject)

    def _is_cut(self, task: int) -> bool:
        """Return whether the run of *task* is one that the next start has cut."""
        run = self._player.find_run(task)
        if run is not None and self._place < len(self._lives):
            for cut in self._lives[self._place][CUT]:
                if cut[_NAME] == run.name and abs(cut[_WHEN] - self.now_s()) <= _NEAR_S:
                    return True
        return False

    def _end_call(self, task: int, tool):
        if tool.output is not None and self._shaped is None:
            self._shaped = tool, tool.output
            tool.output = None  # what is said here has no shape
        self.agent.complete(task, (True, NOT_RUN), self.now_ms)

    @property
    def is_at_rest(self) -> bool:
        """Whether others may use the image."""
        return self._shaped is None

    def _store(self, entries: list):
        from clawlite.core.policy.ledger import CALLS, ENTRY_AMOUNT, ENTRY_KEY, Ledger, count_use

        if self._ledger is None:
            self._ledger = Ledger(lambda: (self.now_ms, self.now_s()), lambda: self._spent)
        if not entries:
            return self._ledger.read_use_of_day()
        if entries[0][ENTRY_KEY] == CALLS:
            entries = self._ledger.make_call_entries(entries[0][ENTRY_AMOUNT])
        return count_use(self._spent, entries)

    def _note(self, event: dict):
        what = event["event"]
        if what == "tool.call":
            self._calls[event["caller"]] = event
        elif what == "rule.run":
            made = self._calls.pop("rule/" + event["rule"], {})
            run = {"at": self.now_s(), "rule": event["rule"]}
            for key in ("tool", "arguments", "action", "rule_id", "approval"):
                run[key] = made.get(key)
            run["status"], run["reason"] = event["status"], event.get("reason", "")
            run["values"] = event["values"]
            self.note_run(run)
        elif what in ("rule.skipped", "rule.missed", "rule.off"):
            reasons = self.skipped.setdefault(event["rule"], {})
            reasons[event["reason"]] = reasons.get(event["reason"], 0) + 1


def _copy(state: dict) -> dict:
    """Return a copy of a state: what is in its rows is replaced, and never changed."""
    kept, rows = dict(state), state.get("rules", {})
    kept["rules"] = {name: dict(rows[name]) for name in rows}
    return kept


def pick_rule(section: list, name: str) -> list:
    """Return *section* with the one rule *name*."""
    rules = [rule for rule in section[table.RULES] if rule[table.NAME] == name]
    return [section[table.READINGS], rules, section[table.CLOCK]]


# -- what people are told


def first_line(from_s: int, to_s: int, samples: int) -> str:
    """Return the line that says what was played."""
    return "%s to %s, %d samples" % (iso8601(from_s), iso8601(to_s), samples)


def line_of(run: dict) -> str:
    """Return the line about one run."""
    called = call_text(run["tool"] or "?", run["arguments"] or {})
    why = {"ok": "would run", "denied": "asks, and is denied", "expired": "asks"}
    said = why.get(run["status"], run["status"])
    if run["approval"] == "approved":
        said = "asks, is approved, and would run"
    by = " (rule %s)" % escape_name(run["rule_id"]) if run["rule_id"] else ""
    names = sorted(run["values"])
    values = ", ".join(["%s=%s" % (name, run["values"][name]) for name in names])
    return "%s  %s: %s %s%s%s" % (
        iso8601(run["at"]),
        escape_name(run["rule"]),
        escape_line(called, 200),
        said,
        by,
        "; " + escape_line(values, 200) if values else "",
    )


def lines_of_skipped(skipped: dict) -> list:
    """Return the lines about runs that were left out."""
    lines = []
    for name in sorted(skipped):
        for reason in sorted(skipped[name]):
            lines.append("%s left out: %s" % (escape_name(name), escape_line(reason, 200)))
    return lines
