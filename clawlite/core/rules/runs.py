"""The runs of rules and the calls of readings, without clock and I/O: what the engine says is due
becomes a task of the agent (act.py), and how it ended goes back.  The same on Linux and on boards.

1. One run has its tool at a time.  A run that waits for a person lets others run.
2. A run that had begun when its process ended is told as not known, and is not repeated unless its
   tool may run twice.
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.effect import ASK, IS_OK, LOG, VALUE
from clawlite.core.base.errors import ClawError, InvalidRequest, wrap_error
from clawlite.core.base.render import canonical
from clawlite.core.providers.reflex import FAILED, holds
from clawlite.core.rules import table
from clawlite.core.rules.act import Act, may_repeat, read
from clawlite.core.rules.engine import Run

_AT_S, _IMAGE, _SINCE_S, _TIMEOUT_S, _ARGUMENTS = range(5)  # of a question on record
# how the console answers what is open when its person leaves: for a rule, that is no answer
_NOBODY = "nobody is at the console"
_CALLER = "rule/"
_HOUR_S = const(3600)
_MOST_EARLY = const(24)  # samples that wait for the clock
# runs without side effects of an hour that are put on record at once: each wears out flash
_MOST_NOTED = const(12)
_MOST_TOKENS = const(512)  # of the answer to a question of ``then``
# codes of ``Denied``: its classes are not in a board's memory
_DENIED = const(-32013)
_EXPIRED = const(-32012)
_SANDBOX_DENIED = const(-32010)


class Runs:
    """All readings and rules of one agent.  A shell's class adds the clocks and what is kept:

    now_ms(), times()              monotonic ms, ``engine.Times``
    read_pin(name)                 the value of a pin
    save(lasting) -> bool          keep ``engine.state``; *lasting*: it must survive a power cut
    keep_sample(name, at_s, value) keep a sample
    keep_start(at_s, set_s, cut)   keep that the agent began at *at_s*, with a clock since *set_s*;
                                   *cut*: [[rule, when it began], ...] of runs that were cut
    tell(text, to_admins)          show a text at the console, and send it to the admins

    agent    ``agent.Agent``
    section  of the image (table.py)
    engine   ``engine.Engine``, or None while others run the rules
    """

    engine = None

    def __init__(self, agent, section: list):
        self.agent, self.section = agent, section
        self.statuses = [{} for _ in section[table.READINGS]]  # of readings (act.read)
        self._runs = {}  # number of a task -> its run
        self._looks_at_pins = False
        self._cut = None  # runs that were under way before the start, until that is kept
        self._early = []  # (name, ms, value) of samples from before the clock was set
        self._noted = [0, 0]  # an hour, and how many runs of it were put on record at once
        if agent.setup.confirm:
            agent.setup.confirm.on_failure.append(self._rest)

    def look_soon(self):
        """Something has ended; a shell that waits looks again."""

    def is_busy(self) -> bool:
        """Return whether a run is under way that waits for nobody."""
        tasks = self.agent.tasks
        return any([number in tasks and not tasks[number].approval for number in self._runs])

    def log(self, event: dict):
        self.agent.effects.append((LOG, event))

    def _begin_due(self, times):
        """Begin the readings and the runs that are due."""
        engine = self.engine
        if engine.is_set and self._cut is not None:
            self._note_start(times)
        number = engine.next_reading(times)
        while number is not None:
            self._read(number)
            number = engine.next_reading(times)
        self._recover(times)
        run = engine.next_run(times)
        while run is not None:
            self._begin(run)
            run = engine.next_run(times)
        self._tell_events()

    def begin_record(self):
        """The engine is new: that the agent began is kept once the clock is set."""
        engine = self.engine
        self._early = []
        self._cut = [
            [record[table.NAME], engine.row(record[table.NAME]).get("at_s", 0)]
            for record, _ in engine.cut_runs()
        ]

    def _note_start(self, times):
        """Keep when the agent began, for a rehearsal, and what was measured before the clock was
        set.
        """
        ahead_s, cut, early = times.wall_s - times.up_ms // 1000, self._cut, self._early
        self._cut, self._early = None, []
        self.keep_start(ahead_s + self.engine.start_ms // 1000, times.wall_s, cut)
        for name, up_ms, value in early:
            self.keep_sample(name, ahead_s + up_ms // 1000, value)

    def put_sample(self, name: str, value, times):
        """Keep a sample; one from before the clock is set waits for that."""
        if self.engine.is_set and self._cut is None:
            self.keep_sample(name, times.wall_s, value)
        else:
            self._early = self._early[1 - _MOST_EARLY :] + [(name, times.up_ms, value)]

    def _drop_unknown(self):
        """Forget what is on record of rules that the image has no more; a question or a run of one
        is told.
        """
        rows, known = self.engine.state["rules"], {rule.name for rule in self.engine.rules}
        for name in [name for name in rows if name not in known]:
            row = rows.pop(name)
            if isinstance(row, dict) and (row.get("asks") or row.get("began") is not None):
                self.tell(
                    "[rule %s] it is no more in this agent: what it %s"
                    % (name, "asked is void" if row.get("asks") else "had begun is not known"),
                    True,
                )

    def _tell_events(self):
        for event in self.engine.take_events():
            self.log(event)
            if event["event"] == "rule.off":
                self.tell(
                    "[rule %s] it is off now: %s. Once that is mended: /rules on %s"
                    % (event["rule"], event["reason"], event["rule"]),
                    True,
                )

    # -- readings

    def _see_pins(self, times):
        for name in self.engine.pins if self._looks_at_pins else ():
            try:
                self.engine.see_level(name, 1 if self.read_pin(name) else 0, times)
            except (ClawError, OSError) as e:
                self._looks_at_pins = False
                self.tell("rules do not look at pins any more: pin %s: %s" % (name, e), True)
                return
        for pin, level in self.engine.take_edges():
            self.keep_edge(pin, level, times)

    def keep_edge(self, pin: str, level: int, times):
        """Keep that *pin* has a new level, for a rehearsal."""

    def _read(self, number: int):
        record = self.section[table.READINGS][number]
        if record[table.TOOL] is None:
            try:
                self._sample(number, self.read_pin(record[table.PIN]), None)
            except (ClawError, OSError) as e:
                self._sample(number, None, e)
            return
        work = read(self.agent.setup, record, self.statuses[number])

        def end(value, error, now_ms):
            self._sample(number, value, error)

        try:
            self.agent.begin(work, end, self.now_ms(), self.agent.image.agent.turn_ms)
        except InvalidRequest as e:  # too much is under way
            self._sample(number, None, e)

    def _sample(self, number: int, value, error):
        """Take the *value* of a reading; None: there is none, because of *error* or for lack of
        the field.
        """
        if self.engine is None:
            return
        record, times, known = (
            self.section[table.READINGS][number],
            self.times(),
            self.statuses[number],
        )
        wrong = str(getattr(error, "message", error)) if error else ""
        if not wrong and value is None:
            wrong = "%s returned no %s" % (record[table.TOOL], record[table.FIELD] or "value")
        if wrong and not known.get("wrong"):
            self.log({"event": "reading.failed", "reading": record[table.NAME], "reason": wrong})
        elif known.get("wrong") and not wrong:
            self.log({"event": "reading.back", "reading": record[table.NAME]})
        known["wrong"] = wrong
        self.engine.sample(number, value, times)
        self.look_soon()
        if value is not None:
            self.put_sample(record[table.NAME], value, times)

    # -- runs

    def _recover(self, times):
        """Go on with what an earlier process, or the agent before a failure, has left."""
        live = {run.name for run in self._runs.values()}
        for record, at_s in self.engine.cut_runs():
            name = record[table.NAME]
            if name in live:
                continue
            if self.may_repeat(record):
                self.log({"event": "rule.repeated", "rule": name})
                self.engine.repeat(record)
            else:
                said = (
                    "%s had begun when the agent ended: how it ended is not known, and it is "
                    "not repeated"
                    % (record[table.CALL] or self.engine.row(name).get("acted", "a turn"))
                )
                self._finish(Run(record, at_s, {}), "cut", said)
                self.tell("[rule %s] %s" % (name, said), True)
        for record, asks in self.engine.find_questions():
            if record[table.NAME] not in live:
                self._ask_again(record, asks, times)

    def may_repeat(self, record: list) -> bool:
        """Return whether a run of the rule *record* that was cut begins again."""
        return may_repeat(self.agent.image, record[table.CALL])

    def _ask_again(self, record: list, asks: list, times):
        run = Run(record, asks[_AT_S], self.engine.values(times))
        if asks[_IMAGE] != self.agent.image.id:
            said = "the agent was built anew since it asked: its question is void"
            self._finish(run, "void", said)
            self.tell("[rule %s] %s" % (run.name, said), True)
            return
        left_s = asks[_TIMEOUT_S]
        if self.engine.is_set and asks[_SINCE_S]:
            left_s = min(left_s, asks[_SINCE_S] + left_s - times.wall_s)
        if left_s <= 0:
            said = "nobody approved it within %d s" % asks[_TIMEOUT_S]
            self._finish(run, "expired", said)
            self.tell("[rule %s] %s" % (run.name, said), True)
            return
        self._begin(run, asks[_ARGUMENTS], left_s)

    def _begin(self, run, arguments=None, left_s=None):
        """Begin *run*; with *left_s*, to ask again what it had asked."""
        agent, rule = self.agent, run.rule
        if arguments is None:
            arguments = {
                name: run.values.get(value[0]) if isinstance(value, list) else value
                for name, value in rule[table.ARGUMENTS]
            }
        if left_s is None:
            self.engine.let_run(run)
        act = Act(
            agent.setup,
            run,
            arguments,
            self._obstacle,
            lambda _, approval: self._suspend(run, approval, arguments),
            self._resume,
            self._note_begin,
            left_s,
        )
        number = []

        def end(value, error, now_ms):
            self._end(run, act, value, error)
            for one in number:
                self._runs.pop(one, None)
                if agent.setup.channels:
                    agent.setup.channels.end_run(one)
            number.append(None)

        try:
            begun = agent.begin(act.work(), end, self.now_ms(), agent.image.agent.turn_ms)
        except InvalidRequest as e:  # too much is under way
            self._end(run, act, None, e)
            return
        if not number:
            number.append(begun)
            self._runs[begun] = run
            if agent.setup.channels:
                agent.setup.channels.add_run(begun)

    def _obstacle(self, run) -> str:
        times = self.times()
        why = self.engine.find_obstacle(run.rule, self.engine.values(times), times)
        if not why:
            self.engine.row(run.name).pop("asks", None)
            run.values = self.engine.values(times)
        return why

    def _suspend(self, run, approval, arguments: dict):
        """Keep the question of *run*.  One that is on record keeps the time since it was asked."""
        asks = self.engine.row(run.name).get("asks")
        if not asks:
            times = self.times()
            since_s = times.wall_s if self.engine.is_set else 0
            self.engine.ask(run, [self.agent.image.id, since_s, approval.timeout_s, arguments])
            self.save(True)
        self.look_soon()

    def _resume(self, run) -> bool:
        """Let *run*, which was approved, be the one that runs, when no other does."""
        return self.engine.let_run(run)

    def _note_begin(self, run, acts: bool) -> bool:
        """Put on record that the tool of *run* begins; return whether that is done."""
        acts = acts or run.at_s > 0
        self.engine.begin(run, self.times(), acts)
        if not acts:
            if self._may_note():
                self.save(False)
            return True
        if self.save(True):
            return True
        self.engine.row(run.name).pop("began", None)
        return False

    def _may_note(self) -> bool:
        """Return whether one more run without side effects is put on record at once."""
        hour = self.times().up_ms // (_HOUR_S * 1000)
        if hour != self._noted[0]:
            self._noted = [hour, 0]
        self._noted[1] += 1
        return self._noted[1] <= _MOST_NOTED

    def _end(self, run, act, result, error):
        """Say what comes after the call of *run*, and put its end on record."""
        self.look_soon()
        if error and not isinstance(error, ClawError):
            error = wrap_error(error)
        if error and self._is_cut(error):
            # what is on record says enough: the next process, or the next start, goes on with it
            if self.engine and not act.has_begun:
                self.engine.put_back(run)
            return
        failed = error is not None or result.is_error
        text = error.message if error else result.text
        status = _status(error, failed)
        self._finish(run, status, text)
        said = self.say(run, result, text, failed)
        if not said and not act.has_begun and status != "ok":
            self.tell("[rule %s] %s" % (run.name, text), status == "refused")

    def say(self, run, result, text: str, failed: bool) -> bool:
        """Say the first of ``then`` that fits; return whether one does."""
        fields = {} if failed or not isinstance(result.value, dict) else result.value
        known = dict(fields, result=text if failed else result.value)
        slots = dict(run.values)
        slots.update(known)
        for condition, (say, to, is_question) in run.rule[table.THEN]:
            if condition is None:
                fits = not failed
            elif condition[0] == FAILED:
                fits = failed
            else:
                fits = not failed and holds(condition, known, [])
            if fits:
                said = [
                    part if isinstance(part, str) else _show(slots.get(part[0])) for part in say
                ]
                text = "".join(said)
                if is_question:
                    self._ask_model(run.name, text, to == "admins")
                else:
                    self.tell("[rule %s] %s" % (run.name, text), to == "admins")
                return True
        return False

    def _ask_model(self, name: str, prompt: str, to_admins: bool):
        """Ask a model, which can call nothing, and say its answer for the rule *name*."""

        def finish(value, error, now_ms):
            text = value if error is None else "no model answered: %s" % error.message
            self.tell("[rule %s] %s" % (name, text), to_admins)

        try:
            self.agent.begin(_ask(prompt), finish, self.now_ms(), self.agent.image.agent.turn_ms)
        except InvalidRequest as e:  # too much is under way
            finish(None, e, self.now_ms())

    def _is_cut(self, error) -> bool:
        """Return whether *error* says that the agent ends or fails, and nothing of the run."""
        return (
            not self.agent.is_ready
            or self.agent.lifecycle.is_cutting()
            or error.code == _DENIED
            and error.message.endswith(_NOBODY)
        )

    def _finish(self, run, status: str, text: str):
        self.engine.end(run, status, text, self.times())
        event = {"event": "rule.run", "rule": run.name, "status": status, "values": run.values}
        if run.at_s:
            event["at"] = run.at_s
        if status != "ok":
            event["reason"] = text[:300]
        self.log(event)
        if self.engine.changed == 2:
            self.save(True)

    def _rest(self, caller: str, text: str) -> bool:
        """Let the rule that is the *caller* rest: what must follow its call did not.  Return
        whether it is a rule.
        """
        name = caller[len(_CALLER) :] if caller.startswith(_CALLER) else None
        if name is None or self.engine is None or self.engine.find(name) is None:
            return False
        self.engine.rest(name, text)
        return True

    def withdraw(self, name: str, why: str):
        """End the question of the rule *name*, if one waits."""
        for number, run in list(self._runs.items()):
            task = self.agent.tasks.get(number)
            if run.name == name and task is not None and task.approval is not None:
                self.agent.cancel(number, InvalidRequest(why, "switch it on again"), self.now_ms())

    def question_of(self, name: str):
        """Return the task whose approval the rule *name* waits for, or None."""
        for number, run in self._runs.items():
            task = self.agent.tasks.get(number)
            if run.name == name and task is not None and task.approval is not None:
                return task
        return None


def _status(error, failed: bool) -> str:
    code = error.code if error else 0
    if code == _DENIED:
        return "denied"
    if code == _EXPIRED:
        return "expired"
    if _DENIED < code <= _SANDBOX_DENIED:
        return "refused"
    return "error" if failed else "ok"


def _ask(prompt: str):
    """A generator of effects that returns the answer of a model."""
    outcome = yield (ASK, prompt, _MOST_TOKENS, None)
    if not outcome[IS_OK]:
        raise outcome[VALUE]
    return outcome[VALUE]


def _show(value) -> str:
    return value if isinstance(value, str) else canonical(value)
