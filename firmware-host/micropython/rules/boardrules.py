"""The readings and rules of a board, beside its loop: what clawlite/linux/rules is on Linux.

1. The loop calls ``tick``.  Between two times at which something is due only pins are looked at,
   every _PINS_MS: a shorter level than that is no edge.
2. What must survive is in flash before a tool with side effects begins (rulestate.py); what only
   saves work is written once in _SAVE_MS, because flash wears out.
3. Samples wait in memory, and are written together (samplefiles.py), also when the state is: what
   a rehearsal plays is of one moment.
4. Flash that is full or worn is told once.  No tool with side effects begins for a rule until its
   beginning can be put on record; all else goes on.
"""

import gc
import sys

from clawlite.core.base.dialect import const
from clawlite.core.base.effect import TELL
from clawlite.core.base.printable import escape_ends, escape_line
from clawlite.core.base.render import call_text
from clawlite.core.rules import table
from clawlite.core.rules.engine import Engine, Times
from clawlite.core.rules.runs import Runs
from unload import drop

_SAVE_MS = const(600000)
_AGAIN_MS = const(60000)
_PINS_MS = const(20)
_HOUR_S, _MOST_EDGES = const(3600), const(120)
_LEVEL = const(1)  # of a pin that is looked at
_SETTLES = const(2)
_LIFE = "!"  # as core/rules/rehearsal.py has it
_ROOM = const(45056)  # bytes of a heap of 32-bit words: the freezer's take 42 KB, others up to 52
_NO_ROOM = (
    "The heap has no room for a rehearsal (%d KiB are free): clawlite rehearse --port PORT plays "
    "it on a computer."
)
_STATE = "what must be kept of the rules"
_PIN_ROW = "pin.list ready -\n"


class BoardRules(Runs):
    """All readings and rules of the agent of *device* (device.py); *section*: of its image."""

    owner = ""  # no other process runs them

    def __init__(self, device, section: list):
        super().__init__(device.agent, section)
        self._device, self.now_ms = device, device.now_ms
        self.path = device.folder + "/rules"
        self.marks = {}  # of what is in flash (rulestate.py)
        self.samples = None  # ``samplefiles.Waiting``, once something is to be kept
        self.pins = []  # [name, level, whether it settles]
        self._edges = [0, 0]  # an hour since 1970, and how many edges were in it
        self._due_ms = self._save_ms = 0
        self._is_told = set()  # what cannot be written to flash
        self._is_new = True
        self._playing = None  # ``boardrehearsal.Playing``
        device.agent.commands.append(self._command)
        if device.channels:
            device.channels.add_command(self._answer_channel)

    # -- the loop

    def tick(self, now_ms: int):
        """Look at what is due, and begin it."""
        if not self.agent.is_ready:
            self._is_new = True
            return
        if self.engine is None:
            self._open()
        if self.pins:
            self._look_at_pins()
        if self._playing:
            self._go_on_playing()
        if now_ms < self._due_ms:
            return
        drop()
        engine, times = self.engine, self.times()
        engine.poll(times)
        if engine.changed == 2:
            self.save(True)
        self._begin_due(times)
        if engine.changed and now_ms >= self._save_ms:
            self.save(False)
        if self.samples:
            self.samples.write(self, times.wall_s)
        wait_ms = engine.wait_ms(times)
        self._due_ms = now_ms + (_SAVE_MS if wait_ms is None else wait_ms)

    def _go_on_playing(self):
        try:
            more = self._playing.go_on()
        except MemoryError:
            more = self._playing = None
            gc.collect()
            self.tell(_NO_ROOM % (gc.mem_free() // 1024))
        if not more:
            self._playing = None
            drop("boardrehearsal rehearsal agent_setup")

    def _recover(self, times):
        if self._is_new:  # the agent begins, or goes on after a failure
            self._is_new = False
            super()._recover(times)

    def deadline(self):
        """Return the monotonic ms at which ``tick`` has something to do."""
        if not self.agent.is_ready:
            return None
        if self._playing:
            return self.now_ms()
        return min(self._due_ms, self.now_ms() + _PINS_MS) if self.pins else self._due_ms

    def look_soon(self):
        """Something has ended: what waits for it may be due."""
        self._due_ms = 0

    def times(self) -> Times:
        """Return the present; an unset clock counts from 1970, when the board was switched on."""
        up_ms = self.now_ms()
        return Times(up_ms, self._device.epoch_s() or up_ms // 1000)

    def _open(self):
        """Read what survived, and make the engine."""
        from rulestate import load

        state, damaged = load(self.path, self.marks)
        del load
        teach = self._device.teach
        self.engine = (
            teach.open_engine(self, state)
            if teach
            else Engine(self.section, state, self.times(), True)
        )
        self.pins = [[name, None, False] for name in self.engine.pins]
        self.begin_record()
        if damaged:
            self.tell(
                "a part of what was kept of the rules was damaged and is dropped: %s"
                % ", ".join(damaged)
            )
        self._drop_unknown()

    def _look_at_pins(self):
        for pin in self.pins:
            try:
                level = 1 if self.read_pin(pin[0]) else 0
            except MemoryError:  # of what else goes on: the next look has room
                return
            except Exception as e:
                self.pins = []
                self.tell("rules do not look at pins any more: pin %s: %s" % (pin[0], e))
                return
            if level != pin[_LEVEL] or pin[_SETTLES]:
                pin[_LEVEL] = level
                pin[_SETTLES] = self.engine.see_level(pin[0], level, self.times())
                self._due_ms = 0
        for name, level in self.engine.take_edges():
            self._keep_edge(name, level, self.times().wall_s)

    def keep_start(self, at_s: int, set_s: int, cut: list):
        if any([rule[table.CALL] for rule in self.section[table.RULES]]):  # to be played
            self.keep_sample(_LIFE, at_s, [set_s - at_s, cut])

    def _keep_edge(self, name: str, level: int, wall_s: int):
        """Keep, for a rehearsal, that a pin has a new level; at most _MOST_EDGES in an hour."""
        if wall_s // _HOUR_S != self._edges[0]:
            self._edges = [wall_s // _HOUR_S, 0]
        self._edges[1] += 1
        if self._edges[1] <= _MOST_EDGES:
            self.put_sample("=" + name, level, self.times())

    # -- what the runs need (core/rules/runs.py)

    def read_pin(self, name: str) -> int:
        return self._device.pins.read(name)

    def keep_sample(self, name: str, at_s: int, value):
        if self.samples is None:
            from samplefiles import Waiting

            self.samples = Waiting(self._device.folder + "/readings", self.section)
        self.samples.add(name, at_s, value)

    def save(self, lasting: bool) -> bool:
        """Write what has changed; return whether it is in flash."""
        from rulestate import keep

        now_ms = self.now_ms()
        wrong = keep(self.path, self.engine.state, self.marks)
        if wrong:
            self._save_ms = now_ms + _AGAIN_MS
            self.report(_STATE, wrong)
            return False
        self.engine.note_kept()
        self._is_told.discard(_STATE)
        self._save_ms = now_ms + _SAVE_MS
        if self.samples:
            wall_s = self.times().wall_s
            if self.engine.is_set:
                self.samples.add(_LIFE, wall_s, 0)
            self.samples.write(self, wall_s, True)
        return True

    def report(self, what: str, wrong: str):
        """Tell once that *what* cannot be written."""
        if what not in self._is_told:
            self._is_told.add(what)
            self.tell("%s cannot be written (%s): make room in the flash" % (what, wrong))

    def tell(self, text: str, to_admins: bool = False):
        """Show *text* at the console, and send it to the admins of the channels that the gateway
        carries.
        """
        guard, channels = self._device.guard, self._device.channels
        text = escape_ends(guard.text(text) if guard else text)
        self.agent.effects.append((TELL, text))
        if to_admins and channels:
            channels.tell_admins(text)

    # -- people and operators

    def _command(self, words: list, is_admin: bool = True):
        if words[0] not in ("/help", "/rules", "/readings", "/rehearse"):
            return None
        return self.load_commands().command(words, is_admin)

    def load_commands(self):
        """Return what answers people and operators."""
        # what the answer needs is loaded here, and not deeper
        escape_line(call_text("", {"of": ""}))
        from clawlite.core.rules.rule_commands import RuleCommands

        return RuleCommands(self, self._rehearse)

    def _answer_channel(self, words: list, is_admin: bool = True):
        if words[0] == "/rehearse":
            return ["/rehearse is for the console; clawlite rehearse --port PORT has it, too."]
        return self._command(words, is_admin)

    def _rehearse(self, name: str) -> list:
        """Begin to play the rule *name*; what comes of it is told."""
        if self._playing:
            return ["A rehearsal is under way."]
        if self.samples is None or not self.engine.is_set:
            return ["Nothing is on record yet: samples are kept once the clock is set."]
        drop()
        gc.collect()
        free = gc.mem_free()
        if free < (_ROOM if sys.maxsize >> 31 == 0 else 2 * _ROOM):  # words of 32 or 64 bits
            return [_NO_ROOM % (free // 1024)]
        from boardrehearsal import Playing

        self.samples.write(self, self.times().wall_s, True)
        self._playing = Playing(self, name)
        return ["It plays what is on record; the answer comes below."]

    def find_row(self, method: str) -> list:
        """Return the columns of *method*, [] when it is none of rules or pins."""
        if method[5:6] not in "rp":
            return []
        from clawlite.core.protocol.method_table import find
        from clawlite.core.rules.rule_commands import ROWS

        return find(method, ROWS + _PIN_ROW)

    def new_session(self):
        """Return the operator's session."""
        from rulesession import RuleSession

        return RuleSession(self.agent, self._device.codecs[0], self)
