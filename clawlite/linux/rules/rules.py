"""The readings and rules of one agent, as a part beside the loop: it looks at the clock, the pins
and the tools, hands what it sees to the engine, and runs what is due (core/rules/runs.py).

1. What must survive is ``rules/rules.json`` in the state folder (io/state_file.py).  It is synced
   before a tool with side effects begins; what only saves work is written once a minute.
2. Of several processes with one state folder, one runs the rules (files/process_lock.py).
"""

import os
import time
from typing import Any

from clawlite.core.base.effect import TELL, Result
from clawlite.core.base.printable import escape_ends
from clawlite.core.rules import table
from clawlite.core.rules.engine import Times
from clawlite.core.rules.runs import Runs
from clawlite.core.rules.saved_state import drop_damaged
from clawlite.core.teach.open_engine import OpenEngine
from clawlite.linux.files.files import state_folder
from clawlite.linux.files.process_lock import ProcessLock
from clawlite.linux.files.rollback_marks import UP
from clawlite.linux.io import stdio
from clawlite.linux.io.state_file import StateFile
from clawlite.linux.rules.samples import EDGE, Samples

SAVE_MS = 60000
TRY_AGAIN_MS = 5000
LOOK_AT_PINS_MS = 20


NO_SECTION = [[], [], ["UTC", [[0, 0]], "", None]]  # of an agent without rules, which is taught


def rules_of(agent, handlers):
    """Return the ``Rules`` of a shell's *agent*, with the clocks and the folder of this machine.

    handlers  what runs tools; with pins it has ``read_pin``
    """
    read_pin, edges = getattr(handlers, "read_pin", None), None
    names = pins_of(agent.image.section(table.SECTION) or NO_SECTION)
    if names:
        from clawlite.linux.hardware.edges import watch_edges

        edges = watch_edges(getattr(handlers, "bank", None), names)
    folder = state_folder(agent.image.agent.name)
    return Rules(agent, stdio.now_ms, _times, folder, read_pin, edges)


def pins_of(section: list) -> list:
    """Return the names of the pins that rules of *section* begin with."""
    triggers = [rule[table.TRIGGER] for rule in section[table.RULES]]
    return sorted({one[table.WHAT] for one in triggers if one[table.KIND] == table.ON_PIN})


def _times() -> Times:
    return Times(time.clock_gettime_ns(UP) // 1000000, int(time.time()))


class Rules(Runs, stdio.Part):
    """All readings and rules of one agent.

    agent     ``agent.Agent``
    now_ms    function -> monotonic ms
    times     function -> ``engine.Times``
    folder    the state folder of the agent, or None
    read_pin  function(name) -> the value of a pin, or None
    edges     ``edges.Edges``; None: pins are looked at every few ms
    section   its readings and rules (table.py), in place of those of its image
    Attribute: ``taught``, its ``TaughtRules`` (taught_store.py) once somebody has taught a rule
    """

    def __init__(self, agent, now_ms, times, folder, read_pin, edges=None, section=None):
        section = section or agent.image.section(table.SECTION) or NO_SECTION
        super().__init__(agent, section)
        self.own_section, self.taught = section, None
        self._about = None  # the rule whose end is said
        self._over = []  # names of rules that ran once, and are forgotten
        self.now_ms, self.times = now_ms, times
        self._folder, self._read_pin, self._edges = folder, read_pin, edges
        self._levels = {}  # of pins, as they were kept last
        self._lock = ProcessLock(folder and os.path.join(folder, "rules"))
        self.owner = ""  # the process that runs the rules when this one does not
        self.engine: Any = None  # ``engine.Engine``, once this process runs them
        self._state: Any = None
        self.samples: Any = None
        self._is_draining = False
        self._try_ms = self._save_ms = 0
        self._written_ms = -SAVE_MS

    @property
    def lasts(self) -> bool:  # type: ignore[override]
        """Whether there is something to do when nobody types: an agent that may be taught has
        nothing before its first rule.
        """
        return bool(self.section[table.READINGS] or self.section[table.RULES])

    # -- the loop

    def fileno(self) -> int:
        return self._edges.fileno() if self._edges else -1

    def poll(self):
        """Look at what is due, and begin it."""
        edges = self._edges.read() if self._edges else ()
        if not self.agent.is_ready or self._is_draining or not self.is_owner():
            return
        engine, times = self.engine, self.times()
        for age_ms, pin, level in edges:
            engine.see_level(pin, level, Times(times.up_ms - age_ms, times.wall_s))
        self._see_pins(times)
        engine.poll(times)
        if engine.changed == 2 and self.now_ms() >= self._save_ms:
            self.save(True)
        self._begin_due(times)
        if self._over:
            from clawlite.linux.rules.taught_store import forget

            names, self._over = self._over, []
            for name in names:
                forget(self, name, "it has run")
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
        if self._looks_at_pins and (not self._edges or self.taught is not None):
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

    def close(self):
        if self.engine:
            if self.engine.changed:
                self.save(False)
            self.samples.write(self.times().wall_s, True)
            self.samples.close()
        if self._edges:
            self._edges.close()
            self._edges = None
        self._lock.release()

    def is_owner(self) -> bool:
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
        self._state = StateFile(
            folder and os.path.join(folder, "rules"), "rules", "the state of rules"
        )
        damaged = drop_damaged(self._state.data)
        if damaged:
            names = ", ".join(sorted({name for name in damaged if name})) or "none by name"
            self.tell(
                "a part of %s/rules/rules.json was damaged and is dropped (rules: %s)"
                % (folder, names),
                True,
            )
        self.engine = OpenEngine(self.own_section, self._state.data, times, True)
        self.taught, self.section = None, self.own_section
        self._open_taught()
        self._looks_at_pins = bool(self.engine.pins) and self._read_pin is not None
        keeps = {
            record[table.NAME]: (record[table.KEEP_S], record[table.HOURLY_S])
            for record in self.section[table.READINGS]
        }
        self.samples = Samples(folder, keeps)
        for name, (at_s, value) in self.samples.latest().items():
            if self.engine.is_set and at_s <= times.wall_s:
                self.engine.restore(name, value, (times.wall_s - at_s) * 1000, times)
        if self.lasts:
            self.begin_record()
        self._drop_unknown()

    def _open_taught(self):
        """Read what people have taught, where there is something."""
        path = self._folder and os.path.join(self._folder, "rules", "taught.json")
        if path and os.path.exists(path):
            self.begin_teaching()

    def begin_teaching(self):
        """Let rules come and go from now on."""
        if self.taught is None:
            from clawlite.linux.rules.taught_store import open_taught

            open_taught(self, self._folder and os.path.join(self._folder, "rules"))

    # -- what was taught

    def hold_taught(self, taught, section: list):
        """Run the rules of *section*, which has those that were *taught*, too."""
        self.taught, self.section = taught, section
        self.look_at_more_pins()

    def look_at_more_pins(self):
        """A rule may begin with a pin that nothing looked at before."""
        pins = pins_of(self.section)
        self._looks_at_pins = bool(pins) and self._read_pin is not None

    def _begin(self, run, arguments=None, left_s=None):
        if self.taught is not None and self.taught.find(run.name):
            why = self.find_teacher_obstacle(run.name)
            if why:
                self.engine.rest(run.name, why)
                return
        if run.rule[table.CALL] is None:
            self._remind(run)
            return
        super()._begin(run, arguments, left_s)

    def _obstacle(self, run) -> str:
        return self.find_teacher_obstacle(run.name) or super()._obstacle(run)

    def _note_begin(self, run, acts: bool) -> bool:
        return self.engine.find(run.name) is not None and super()._note_begin(run, acts)

    def find_teacher_obstacle(self, name: str) -> str:
        """Return why who taught the rule *name* could not do by hand what it does, "" else."""
        entry = self.taught.find(name) if self.taught is not None else None
        if entry is None:
            return ""
        from clawlite.linux.rules.taught_store import find_teacher_obstacle, roles_of

        channels = self.agent.setup.channels
        return find_teacher_obstacle(entry, channels, lambda: roles_of(self._folder))

    def _remind(self, run):
        """Say what a rule without a call says."""
        self.engine.let_run(run)
        self.engine.begin(run, self.times(), False)
        self._end(run, None, Result("", False, ""), None)
        if self.engine.changed:
            self.save(True)

    def _end(self, run, act, result, error):
        self._about = run.name
        super()._end(run, act, result, error)
        self._about = None

    def _finish(self, run, status: str, text: str):
        super()._finish(run, status, text)
        entry = self.taught.find(run.name) if self.taught is not None else None
        if entry and entry["row"].get("once") and status != "void":
            self._over = [*self._over, run.name]

    def save(self, lasting: bool) -> bool:
        """Write the state; return whether it is on the disk."""
        wrong = self._state.save(lasting)
        if wrong:
            self._save_ms = self.now_ms() + TRY_AGAIN_MS
            self.tell("%s. Next: %s." % (wrong, self._state.mend))
            return False
        self.engine.note_kept()
        self._save_ms, self._written_ms = 0, self.now_ms()
        self.samples.write(self.times().wall_s, True)  # a rehearsal needs both of one moment
        return True

    def read_pin(self, name: str):
        return self._read_pin(name)

    def keep_edge(self, pin: str, level: int, times):
        if self._levels.get(pin) != level:
            self._levels[pin] = level
            self.put_sample(EDGE + pin, level, times)

    def keep_sample(self, name: str, at_s: int, value):
        if name.startswith(EDGE):
            self.samples.add_edge(name[len(EDGE) :], at_s, value)
        else:
            self.samples.add(name, at_s, value)

    def keep_start(self, at_s: int, set_s: int, cut: list):
        self.samples.add_start(at_s, set_s, cut)

    def tell(self, text: str, to_admins: bool = False):
        """Show *text* at the console, and send it to the admins of all channels."""
        guard = self.agent.setup.guard
        text = guard.text(text) if guard else text
        self.agent.effects.append((TELL, escape_ends(text)))
        if self._about is not None and self.taught is not None:
            self._tell_teacher(self._about, text)
        if to_admins and self.agent.setup.channels:
            self.agent.setup.channels.tell_admins(escape_ends(text))

    def _tell_teacher(self, name: str, text: str):
        """Send *text* to who taught the rule *name*, where that was in a channel."""
        entry = self.taught.find(name) if self.taught else None
        channels = self.agent.setup.channels
        place, slash, actor = entry["by"].partition("/") if entry else ("", "", "")
        for channel in channels.remote() if slash and channels else ():
            if channel.name == place and channel.access.role(actor) is not None:
                channel.source_reply(actor, escape_ends(text))
