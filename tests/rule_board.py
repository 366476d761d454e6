"""A virtual board with readings and rules in simulated time: its image, its firmware, its stack and
its files are real; its clock, its pins and what its tools reach are the test's.

The board reads the folder $WORLD: ``clock`` has [ms since it was switched on, seconds since 1970 or
0], ``end`` the ms at which its power goes, or at which its input ends; ``inputs`` [[ms, line], ...]
of what is typed; ``pin-4`` an expression of ``now`` in ms, the level of a pin; ``soil`` an
expression of ``now`` in seconds since 1970.  Tools write to ``acted``.
"""

import json
import os
import signal
import subprocess
from pathlib import Path

from agents import board
from rules_world import ALLOW, EPOCH_S, project

from clawlite.host.compiler import compiler

TIME = """
import json, os
from utime import gmtime, mktime, localtime
_FOLDER = os.getenv("WORLD")
with open(_FOLDER + "/clock") as file:
    begun, wall_s = json.load(file)
passed = 0
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
import json, os
import time
from uselect import POLLIN, POLLOUT
_FOLDER = os.getenv("WORLD")
with open(_FOLDER + "/inputs") as file:
    INPUTS = json.load(file)
with open(_FOLDER + "/end") as file:
    END, DIES = json.load(file)
typed = 0
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
        self.id = id
    def value(self, x=None):
        if x is not None:
            with open(os.getenv("WORLD") + "/set", "a") as file:
                file.write("%d=%d " % (self.id, x))
            return
        with open(os.getenv("WORLD") + "/pin-%d" % self.id) as file:
            return eval(file.read(), {"now": time.now_ms()})
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

    def __init__(self, folder: Path, rules: str, policy=None, heap: str = "160k", **more):
        self.flash, self.world = folder / "flash", folder / "world"
        for path in (self.world, folder / "home", folder / "stand-ins"):
            path.mkdir(parents=True)
        for name, text in (("time", TIME), ("select", SELECT), ("machine", MACHINE)):
            (folder / "stand-ins" / f"{name}.py").write_text(text)
        self._folder, self._heap = folder, heap
        self.build(rules, policy, **more)
        self.ms, self.wall_s, self.told, self.logged = 0, EPOCH_S, "", []
        self.write("soil", "20")
        self.write("pin-4", "0")

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
        self.write("clock", json.dumps([0, self.wall_s]))
        self.write("inputs", json.dumps([[int(at * 1000), text] for at, text in typed]))
        self.write("end", json.dumps([end_ms, dies]))
        words, path = board(
            self.flash / "claw.cbor",
            *(line or ()),
            options=("-X", "heapsize=" + self._heap),
            stand_ins=[self._folder / "stand-ins"],
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
