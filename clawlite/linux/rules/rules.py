"""The readings and rules of one agent, as a part beside the loop: it looks at the clock, the pins
and the tools, hands what it sees to the engine (core/rules/engine.py), and runs what is due.

1. One run has its tool at a time.  A run that waits for a person lets others run.
2. What must survive is ``rules/rules.json`` in the state folder (channels/state.py).  It is synced
   before a tool with side effects begins; what only saves work is written once a minute.
3. A run that had begun when its process ended is told as not known, and is not repeated unless its
   tool may run twice.
4. Of several processes with one state folder, one runs the rules (files/process_lock.py).
"""

import os
import time
from typing import Any

from clawlite.core.base.effect import LOG, TELL
from clawlite.core.base.errors import (
    ApprovalDenied,
    ApprovalTimeout,
    ClawError,
    Denied,
    InvalidRequest,
    unexpected,
)
from clawlite.core.base.printable import escape_ends, escape_line
from clawlite.core.base.render import call_text, canonical
from clawlite.core.providers.reflex import FAILED, holds
from clawlite.core.rules import table
from clawlite.core.rules.engine import Engine, Run, Times
from clawlite.linux.channels.state import State
from clawlite.linux.files.files import state_folder
from clawlite.linux.files.marks import UP
from clawlite.linux.files.process_lock import ProcessLock
from clawlite.linux.io import stdio
from clawlite.linux.rules.act import Act, may_repeat, read
from clawlite.linux.rules.kept_state import drop_damaged
from clawlite.linux.rules.samples import Samples

SAVE_MS = 60000
TRY_AGAIN_MS = 5000
LOOK_AT_PINS_MS = 20
_AT_S, _IMAGE, _SINCE_S, _TIMEOUT_S, _ARGUMENTS = range(5)  # of a question on record
# how the console answers what is open when its person leaves: for a rule, that is no answer
_NOBODY = "nobody is at the console"


def rules_of(agent, handlers):
    """Return the ``Rules`` of a shell's *agent*, with the clocks and the folder of this machine.

    handlers  what runs tools; with pins it has ``read_pin``
    """
    read_pin = getattr(handlers, "read_pin", None)
    return Rules(agent, stdio.now_ms, _times, state_folder(agent.image.agent.name), read_pin)


def _times() -> Times:
    return Times(time.clock_gettime_ns(UP) // 1000000, int(time.time()))


class Rules(stdio.Part):
    """All readings and rules of one agent.

    agent     ``agent.Agent``
    now_ms    function -> monotonic ms
    times     function -> ``engine.Times``
    folder    the state folder of the agent, or None
    read_pin  function(name) -> the value of a pin, or None
    """

    lasts = True

    def __init__(self, agent, now_ms, times, folder, read_pin):
        self.agent, self.now_ms, self.times = agent, now_ms, times
        self._folder, self._read_pin = folder, read_pin
        self.section = agent.image.section(table.SECTION)
        self._lock = ProcessLock(folder and os.path.join(folder, "rules"))
        self.owner = ""  # the process that runs the rules when this one does not
        self.engine: Any = None  # ``engine.Engine``, once this process runs them
        self._state: Any = None
        self.samples: Any = None
        self.statuses = [{} for _ in self.section[table.READINGS]]  # of readings (act.read)
        self._runs = {}  # number of a task -> its run
        self._reads = set()
        self._is_draining = False
        self._try_ms = self._save_ms = self._written_ms = 0
        self._looks_at_pins = False

    # -- the loop

    def poll(self):
        """Look at what is due, and begin it."""
        if not self.agent.is_ready or self._is_draining or not self._is_ours():
            return
        engine, times = self.engine, self.times()
        self._see_pins(times)
        engine.poll(times)
        if engine.changed == 2 and self.now_ms() >= self._save_ms:
            self.save(True)
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
        if engine.changed and self.now_ms() >= self._save_at_ms():
            self.save(False)
        self.samples.write(times.wall_s)

    def deadline(self):
        """Return the monotonic ms at which ``poll`` has something to do, or None."""
        if not self.agent.is_ready or self._is_draining:
            return None
        if self.engine is None:
            return self._try_ms
        now_ms, wait_ms = self.now_ms(), self.engine.wait_ms(self.times())
        if self._looks_at_pins:
            wait_ms = min(wait_ms or LOOK_AT_PINS_MS, LOOK_AT_PINS_MS)
        at = None if wait_ms is None else now_ms + wait_ms
        if self.engine.changed:
            at = self._save_at_ms() if at is None else min(at, self._save_at_ms())
        return at

    def _save_at_ms(self) -> int:
        """Return when what is not urgent is written."""
        return max(self._save_ms, self._written_ms + SAVE_MS)

    def drain(self):
        """Begin no more runs: the process is about to end."""
        self._is_draining = True

    def is_busy(self) -> bool:
        """Return whether a run is under way that waits for nobody."""
        tasks = self.agent.tasks
        return any(number in tasks and not tasks[number].approval for number in self._runs)

    def close(self):
        if self.engine:
            if self.engine.changed:
                self.save(False)
            self.samples.write(self.times().wall_s, True)
            self.samples.close()
        self._lock.release()

    def _is_ours(self) -> bool:
        """Return whether this process runs the rules; it tries to become that one."""
        if self.engine is not None and not self._lock.is_lost():
            return True
        if self.now_ms() < self._try_ms:
            return False
        self._try_ms = self.now_ms() + TRY_AGAIN_MS
        self._lock.release()
        try:
            owner = self._lock.take()
        except OSError as e:
            owner = "nobody: %s" % e.strerror
        if owner:
            self.engine = None
            if owner != self.owner:
                self.owner = owner
                self.tell("the rules of this agent belong to %s; they begin here later" % owner)
            return False
        self.owner = ""
        self._open()
        return True

    def _open(self):
        """Read what survived, and make the engine."""
        folder, times = self._folder, self.times()
        self._state = State(folder and os.path.join(folder, "rules"), "rules", "the state of rules")
        damaged = drop_damaged(self._state.data)
        if damaged:
            names = ", ".join(sorted({name for name in damaged if name})) or "none by name"
            self.tell(
                "a part of %s/rules/rules.json was damaged and is dropped (rules: %s)"
                % (folder, names),
                True,
            )
        self.engine = Engine(self.section, self._state.data, times)
        self._looks_at_pins = bool(self.engine.pins) and self._read_pin is not None
        keeps = {
            record[table.NAME]: (record[table.KEEP_S], record[table.HOURLY_S])
            for record in self.section[table.READINGS]
        }
        self.samples = Samples(folder, keeps)
        for name, (at_s, value) in self.samples.latest().items():
            if self.engine.is_set and at_s <= times.wall_s:
                self.engine.restore(name, value, (times.wall_s - at_s) * 1000, times)
        self._drop_unknown()

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

    def save(self, lasting: bool) -> bool:
        """Write the state; return whether it is on the disk."""
        wrong = self._state.save(lasting)
        if wrong:
            self._save_ms = self.now_ms() + TRY_AGAIN_MS
            self.tell("%s. Next: %s." % (wrong, self._state.mend))
            return False
        self.engine.changed = 0
        self._save_ms, self._written_ms = 0, self.now_ms()
        return True

    def log(self, event: dict):
        self.agent.effects.append((LOG, event))

    def tell(self, text: str, to_admins: bool = False):
        """Show *text* at the console, and send it to the admins of all channels."""
        guard = self.agent.setup.guard
        text = guard.text(text) if guard else text
        self.agent.effects.append((TELL, escape_ends(text)))
        if to_admins and self.agent.setup.channels:
            self.agent.setup.channels.tell_admins(escape_ends(text))

    def _tell_events(self):
        events, self.engine.events = self.engine.events, []
        for event in events:
            self.log(event)
            if event["event"] == "rule.off":
                self.tell("[rule %s] it is off now: %s" % (event["rule"], event["reason"]), True)

    # -- readings

    def _see_pins(self, times):
        for name in self.engine.pins if self._looks_at_pins else ():
            try:
                self.engine.see_level(name, 1 if self._read_pin(name) else 0, times)
            except (ClawError, OSError) as e:
                self._looks_at_pins = False
                self.tell("rules do not look at pins any more: pin %s: %s" % (name, e), True)
                return

    def _read(self, number: int):
        record = self.section[table.READINGS][number]
        if record[table.TOOL] is None:
            try:
                self._sample(number, self._read_pin(record[table.PIN]), None)
            except (ClawError, OSError) as e:
                self._sample(number, None, e)
            return
        work = read(self.agent.setup, record, self.statuses[number])
        task = []

        def end(value, error, now_ms):
            self._reads.difference_update(task)
            task.append(None)
            self._sample(number, value, error)

        try:
            begun = self.agent.begin(work, end, self.now_ms(), self.agent.image.agent.turn_ms)
            if not task:
                task.append(begun)
                self._reads.add(begun)
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
        if value is not None and self.engine.is_set:
            self.samples.add(record[table.NAME], times.wall_s, value)

    # -- runs

    def _recover(self, times):
        """Go on with what an earlier process, or the agent before a failure, has left."""
        live = {run.name for run in self._runs.values()}
        for record, at_s in self.engine.cut_runs():
            name = record[table.NAME]
            if name in live:
                continue
            if may_repeat(self.agent.image, record[table.CALL]):
                self.log({"event": "rule.repeated", "rule": name})
                self.engine.repeat(record)
            else:
                said = (
                    "%s had begun when the agent ended: how it ended is not known, and it is "
                    "not repeated" % record[table.CALL]
                )
                self._finish(Run(record, at_s, {}), "cut", said)
                self.tell("[rule %s] %s" % (name, said), True)
        for record, asks in self.engine.find_questions():
            if record[table.NAME] not in live:
                self._ask_again(record, asks, times)

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
            self.engine.active = run
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

    def _resume(self, run) -> bool:
        """Let *run*, which was approved, be the one that runs, when no other does."""
        if self.engine.active is None:
            self.engine.active = run
        return self.engine.active is run

    def _note_begin(self, run, acts: bool) -> bool:
        """Put on record that the tool of *run* begins; return whether that is done."""
        acts = acts or run.at_s > 0
        self.engine.begin(run, self.times(), acts)
        if not acts or self.save(True):
            return True
        self.engine.row(run.name).pop("began", None)
        return False

    def _end(self, run, act, result, error):
        """Say what comes after the call of *run*, and put its end on record."""
        if error and not isinstance(error, ClawError):
            error = unexpected(error)
        if error and self._is_cut(error):
            # what is on record says enough: the next process, or the next start, goes on with it
            if self.engine and not act.has_begun:
                self.engine.put_back(run)
            return
        failed = error is not None or result.is_error
        text = error.message if error else result.text
        status = _status(error, failed)
        self._finish(run, status, text)
        said = self._say(run, result, text, failed)
        if not said and not act.has_begun and status != "ok":
            self.tell("[rule %s] %s" % (run.name, text), status == "refused")

    def _say(self, run, result, text: str, failed: bool) -> bool:
        """Say the first of ``then`` that fits; return whether one does."""
        fields = {} if failed or not isinstance(result.value, dict) else result.value
        known = dict(fields, result=text if failed else result.value)
        slots = {**run.values, **known}
        for condition, (say, to) in run.rule[table.THEN]:
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
                self.tell("[rule %s] %s" % (run.name, "".join(said)), to == "admins")
                return True
        return False

    def _is_cut(self, error) -> bool:
        """Return whether *error* says that the agent ends or fails, and nothing of the run."""
        return (
            not self.agent.is_ready
            or self.agent.lifecycle.is_cutting()
            or isinstance(error, ApprovalDenied)
            and error.message.endswith(_NOBODY)
        )

    def _finish(self, run, status: str, text: str):
        self.engine.end(run, status, text, self.times())
        self.log(
            {
                "event": "rule.run",
                "rule": run.name,
                "status": status,
                "values": run.values,
                **({"at": run.at_s} if run.at_s else {}),
                **({} if status == "ok" else {"reason": text[:300]}),
            }
        )
        if self.engine.changed == 2:
            self.save(True)

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
    if isinstance(error, ApprovalDenied):
        return "denied"
    if isinstance(error, ApprovalTimeout):
        return "expired"
    if isinstance(error, Denied):
        return "refused"
    return "error" if failed else "ok"


def _show(value) -> str:
    return value if isinstance(value, str) else canonical(value)


def describe_call(record: list) -> str:
    """Return the call of a rule, for people."""
    arguments = {
        name: "{%s}" % value[0] if isinstance(value, list) else value
        for name, value in record[table.ARGUMENTS]
    }
    return escape_line(call_text(record[table.CALL], arguments))
