"""A virtual board with readings and rules in simulated time: its image, its firmware, its stack and
its files are real; its clock, its pins and what its tools reach are the test's.

The board reads the folder $WORLD: ``clock`` has [ms since it was switched on, seconds since 1970 or
0], ``end`` the ms at which its power goes, or at which its input ends; ``inputs`` [[ms, line], ...]
of what is typed; ``pin-4`` the level of a pin, an expression of ``now`` in ms and of ``looks``, how
often it was looked at; ``soil`` an expression of ``now`` in seconds since 1970.  Tools write to
``acted``.  ``rests``: between which moments of each period nothing happens at pins, so that the
board does not look each 20 ms.
``heap`` gets the bytes in use, once an hour.
"""

import json
import os
import signal
import subprocess
from pathlib import Path

from agents import BOOT, board
from rules_world import ALLOW, EPOCH_S, project

from clawlite.host.boards import boards
from clawlite.host.compiler import compiler
from clawlite.host.manifest import manifest
from clawlite.host.projects import new
from clawlite.linux.audit import files
from clawlite.linux.audit.chain import verify
from clawlite.linux.rules.board_samples import read_samples

TIME = """
import json, os
from utime import gmtime, mktime, localtime
_FOLDER = os.getenv("WORLD")
with open(_FOLDER + "/clock") as file:
    begun, wall_s, world_ms = json.load(file)
passed = 0
def in_the_world():
    return world_ms + passed
def keep():
    pass
def ticks_ms():
    return begun + passed & (1 << 30) - 1
def now_ms():
    return begun + passed
def sleep_ms(wait):
    global passed
    passed += wait
def ticks_diff(later, earlier):
    return (later - earlier + (1 << 29) & (1 << 30) - 1) - (1 << 29)
def set_wall(to):
    global wall_s
    wall_s = to - passed // 1000
def time():
    return wall_s + passed // 1000 if wall_s else 1609459200 + passed // 1000
"""
SELECT = """
import gc, json, os
import time
from uselect import POLLIN, POLLOUT
_FOLDER = os.getenv("WORLD")
with open(_FOLDER + "/inputs") as file:
    INPUTS = json.load(file)
with open(_FOLDER + "/end") as file:
    END, DIES = json.load(file)
with open(_FOLDER + "/rests") as file:
    EVERY, FIRST, LAST = json.load(file)
_LOOKS = 20  # ms between two looks at pins
_HOUR = 3600000
noted = 0  # the hour of the world in which the heap was noted last
typed = 0
def note_heap():
    # once an hour: how many bytes of the heap are in use
    global noted
    hour = time.in_the_world() // _HOUR
    if hour != noted:
        noted = hour
        gc.collect()
        with open(_FOLDER + "/heap", "a") as file:
            file.write("%d\\n" % gc.mem_alloc())
class poll:
    def register(self, stream, mask):
        self.stream = stream
    def unregister(self, stream):
        pass
    def poll(self, timeout=-1):
        global typed
        if typed:  # the loop asks before each character but the first
            typed -= 1
            return [(self.stream, POLLIN)]
        now = time.now_ms()
        if EVERY is not None:
            note_heap()
            time.keep()
        phase = EVERY and time.in_the_world() % EVERY
        if EVERY and 0 <= timeout <= _LOOKS and FIRST <= phase < LAST:
            timeout = LAST - phase
        until = INPUTS[0][0] if INPUTS else END
        left = until - now
        if timeout < 0 or timeout >= left:
            if left > 0:
                time.passed += left
            if INPUTS:
                typed = len(INPUTS.pop(0)[1])
            elif DIES:
                os.system("kill -9 $PPID")
            return [(self.stream, POLLIN)]
        time.passed += timeout
        return []
"""
MACHINE = """
import os, time
class Pin:
    IN, OUT, PULL_UP, PULL_DOWN = 0, 1, 1, 2
    def __init__(self, id, *_, value=None):
        self.id, self.looks = id, 0
    def value(self, x=None):
        if x is not None:
            with open(os.getenv("WORLD") + "/set", "a") as file:
                file.write("%d=%d " % (self.id, x))
            return
        with open(os.getenv("WORLD") + "/pin-%d" % self.id) as file:
            self.looks += 1
            return eval(file.read(), {"now": time.now_ms(), "looks": self.looks})
class ADC:
    pass
class RTC:
    def datetime(self, when):
        at = when[0], when[1], when[2], when[4], when[5], when[6], 0, 0
        time.set_wall(time.mktime(at))
"""
TOOLS = '''
import os
import time


def _note(text):
    with open(os.getenv("WORLD") + "/acted", "a") as file:
        file.write("%d %s\\n" % (time.time(), text))


def read_soil() -> dict:
    """Read the soil."""
    with open(os.getenv("WORLD") + "/soil") as file:
        return {"percent": eval(file.read(), {"now": time.time()})}


def water(seconds: int) -> str:
    """Water."""
    _note("begin")
    for _ in range(seconds):
        yield 1000
    _note("end")
    return "done"


def repeatable(seconds: int) -> str:
    """Water, perhaps twice."""
    _note("again")
    yield seconds * 1000
    return "done"
'''


class RuleBoard:
    """One board.

    told    all that it wrote, of all its starts; logged: the events of its log, likewise
    ms, wall_s   the present: since it was switched on, and since 1970 (0: its clock is not set)
    """

    modules = {"time": TIME, "select": SELECT, "machine": MACHINE}
    boot, is_inside = BOOT, False  # as agents.board has it

    def __init__(self, folder: Path, rules: str, policy=None, heap: str = "160k", **more):
        self.flash, self.world = folder / "flash", folder / "world"
        for path in (self.world, folder / "home", folder / "stand-ins"):
            path.mkdir(parents=True)
        for name, text in self.modules.items():
            (folder / "stand-ins" / f"{name}.py").write_text(text)
        self._folder, self._heap = folder, heap
        self.build(rules, policy, **more)
        self.ms, self.wall_s, self.told, self.logged = 0, EPOCH_S, "", []
        self.passed_s = 0  # of the world, whether the board is on or not
        self.write("soil", "20")
        self.write("pin-4", "0")
        self.write("rests", "[null, 0, 0]")

    def build(self, rules: str, policy=None, **more):
        """Put an image on the board."""
        loaded = project(self.flash, rules, policy or ALLOW, tools_py=TOOLS, **more)
        (self.flash / "claw.cbor").write_bytes(compiler.build(loaded).data)

    def write(self, name: str, text: str):
        (self.world / name).write_text(text)

    def run(self, seconds: int, inputs=(), dies: bool = False, off_s: int = 0, line=None):
        """Switch the board on for *seconds*; return what it wrote.

        inputs  [(seconds after the start, line), ...] that are typed
        dies    its power goes at the end; else its input ends
        off_s   how long it is off afterwards
        line    the arguments of the board, for an operator: ["--stdio"]
        """
        end_ms = seconds * 1000
        typed = sorted(inputs)
        self.write("clock", json.dumps([0, self.wall_s, self.passed_s * 1000]))
        self.write("inputs", json.dumps([[int(at * 1000), text] for at, text in typed]))
        self.write("end", json.dumps([end_ms, dies]))
        words, path = board(
            self.flash / "claw.cbor",
            *(line or ()),
            options=("-X", "heapsize=" + self._heap),
            stand_ins=[self._folder / "stand-ins"],
            start=self.boot,
            inside=self.is_inside,
        )
        done = subprocess.run(
            words,
            input="".join(text + "\n" for _, text in typed),
            capture_output=True,
            text=True,
            timeout=300,
            env=dict(os.environ, WORLD=str(self.world), **path),
        )
        assert done.returncode == (-signal.SIGKILL if dies else 0), done
        assert done.stderr == "", done.stderr
        self.told += done.stdout
        self.passed_s += seconds + off_s
        if self.wall_s:
            self.wall_s += seconds + off_s
        for name in ("log.jsonl.1", "log.jsonl"):
            path = self.flash / name
            if path.exists():
                self.logged += [json.loads(text) for text in path.read_text().splitlines()]
                path.unlink()
        return done.stdout

    @property
    def acted(self) -> list:
        """Return [(seconds since 1970, what), ...] of the tools."""
        path = self.world / "acted"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(int(line.split()[0]), line.split()[1]) for line in lines]

    def events(self, name: str) -> list:
        return [event for event in self.logged if event["event"] == name]


BOT = """    - inline:
        name: "bot"
        type: "telegram"
        transport: "polling"
        auth: { secret_ref: "BOT" }
        access_control: { mode: "role-based", roles: [ { id: "9001", role: "admin" } ] }
"""
VIA_GATEWAY = """
[gateway]
roles = ["user", "admin"]

[telegram]
via = "gateway"
"""
# what the tools of templates switch on, again within _APART_MS by the same call
OUTPUTS = {"sound-alarm": "beeper", "ring": "bell", "open-door": "opener", "heat": "heater"}
_APART_MS = 1000
ALIVE = """
import sys
from inside_board import outlive
outlive()
from main import main
sys.exit(main(sys.argv[1:]))
"""


class TemplateBoard(RuleBoard):
    """A board that runs a template, with an audit, an admin behind its gateway, and the heap of a
    Pico: words of 64 bits take twice the room.  Its devices are the template's simulated ones, and
    what they measure outlives its resets.
    """

    modules = {"time": TIME, "select": SELECT}
    boot, is_inside = ALIVE, True

    def __init__(self, folder: Path, name: str, has_gateway: bool = True):
        self.has_gateway = has_gateway
        super().__init__(folder, name, heap=str(2 * boards.profile("pico").heap_bytes))

    def build(self, name: str, policy=None):
        self.name = name
        new.new(str(self.flash), name, offline=True)
        for file, before, more in (
            ("policy.yaml", "  rules:\n", "  audit: { destination: file }\n"),
            ("claw.yaml", "\n  tools:\n", BOT),
        ):
            path = self.flash / file
            text = path.read_text()
            assert text.count(before) == 1
            if more != BOT or self.has_gateway:
                path.write_text(text.replace(before, more + before))
        path = self.flash / "reflex.toml"  # for a rehearsal of all
        path.write_text(path.read_text().replace('keep = "2d"', 'keep = "14d"'))
        with open(self.flash / "clawlite.toml", "a") as file:
            file.write(VIA_GATEWAY if self.has_gateway else "")
        self.image = compiler.build(manifest.load(self.flash)).data
        (self.flash / "claw.cbor").write_bytes(self.image)

    def live(self, seconds: int, off_s: int):
        """As template_weeks.py has it."""
        self.run(seconds, dies=True, off_s=off_s)

    def now_s(self) -> int:
        return self.wall_s

    def acts(self, tool: str) -> list:
        pin, found, before_ms = OUTPUTS.get(tool), [], 0
        for line in (self.world / "switched").read_text().splitlines():
            at_ms, what = int(line.split()[0]), line.split()[1]
            if what == pin and at_ms - before_ms > _APART_MS:
                found.append(EPOCH_S + at_ms // 1000)
            before_ms = 0 if what == "reset" else at_ms if what == pin else before_ms
        return found

    def audit_folder(self) -> str:
        return str(self.flash / "audit-flash")

    def chain(self) -> list:
        lines, head, _ = files.read(self.audit_folder())
        lines = list(lines)
        assert verify(lines, head, "flash")["problems"] == []
        return [json.loads(line) for line in lines]

    def list_samples(self, reading: str) -> list:
        samples, _, _ = read_samples(str(self.flash / "readings"))
        return [(at_s, value) for at_s, name, value in samples if name == reading]

    def heap(self) -> list:
        """Return the bytes of the heap in use, once an hour."""
        return [int(line) for line in (self.world / "heap").read_text().split()]
