"""A swarm's bus on each of its engines, for tests: its ends, and what waits until they have come to
something.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from agents import DEADLINE_S
from engines import SERVERS

from clawlite.core.base.errors import ClawError
from clawlite.linux.swarm.bus import Bus
from clawlite.linux.swarm.member import Member
from clawlite.linux.swarm.replicated_bus import ReplicatedBus
from clawlite.linux.swarm.shared_memory import SharedMemory
from clawlite.linux.swarm.stop_file import StopFile
from clawlite.linux.swarm_engines import redis_engine
from clawlite.linux.swarm_engines.engine import NAMES, engine_of
from clawlite.protocols.session.group_session import Later
from clawlite.protocols.swarm.swarm import COMPLETED, STATUSES, WAITING, Swarm, Task

ROOT = Path(__file__).resolve().parents[2]
IDS = ["c1a00000-0000-4000-8000-%012d" % number for number in range(9)]
ENGINES = list(SERVERS)
KINDS = ["sqlite-wal", *ENGINES]
INSIDE = "in-process"  # all ends are in this process
MEMBERS = [["lead", "u", "leader", 1], ["hand", "u", "worker", 2]]
MEMBERS += [[name, "u", "worker", 1] for name in ("other", "ada", "bob", "eve")]
RECORD = ["team", 0, 0, MEMBERS, True, None, 1, None, 2, True, 0, False, None, None, None, None]


def task(number=0, recipient="", description="Look.", data=None, sender="lead"):
    return Task(IDS[number], description, data, sender, recipient)


def wall_ms() -> int:
    return time.time_ns() // 1000000


def now_ms() -> int:
    return time.monotonic_ns() // 1000000


def read_usage(bus, root: str) -> tuple:
    """Return (tokens, nano-dollars) that a task has used, with all its parts."""
    return tuple(used for used, _, _ in bus.budget(root))


def end_of(kind: str, place, keep, password: str = "", clock=wall_ms):
    """Return an end of the bus; *place*: a folder, (secure, host, port, user) of a server, or
    ``SharedMemory``.

    keep  the folder for the stop that it has heard of, where the engine is a server
    """
    if kind == INSIDE:
        return place.end()
    if kind == "sqlite-wal":
        return Bus(place, clock, os.urandom)
    swarm = Swarm(RECORD)
    record = [NAMES.index(kind), *place]

    def make(process: str, identity: str):
        return engine_of(record, password, "team", process, identity)

    return ReplicatedBus(make, swarm, clock, now_ms, os.urandom, StopFile(str(keep)))


def settings(kind: str, server) -> tuple:
    """Return (backend of a manifest, its clawlite.toml) for *server* of an engine of *kind*."""
    toml = '[swarm]\naddress = "%s://127.0.0.1:%d"\n' % (server.scheme, server.port)
    return kind, toml


def server_of(kind: str, folder):
    """Return a started server of an engine of *kind*."""
    return SERVERS[kind](folder)


class Turns(Member):
    """A member whose turns the test ends; *changes*: fields of its ``Swarm``."""

    is_ready = True  # as an agent, too

    def __init__(self, bus, own="hand", clock=now_ms, **changes):
        swarm = Swarm(RECORD)
        swarm.own = next(one for one in swarm.members if one.identity == own)
        for name, value in changes.items():
            setattr(swarm, name, value)
        self.effects, self.turns = [], {}  # id of a task -> what its end is told to
        super().__init__(self, swarm, None, clock, wall_ms, os.urandom, bus)

    def _work(self, taken, description, data, end):
        self._runs[taken.id] = None
        self.turns[taken.id] = end

    def ended(self, task_id: str, text: str):
        del self._runs[task_id]
        self.turns.pop(task_id)(COMPLETED, {"text": text}, None, 5)


class World:
    """One swarm."""

    def __init__(self, kind: str, folder):
        self.kind, self.ends, self.refused = kind, [], []
        self.server, self.keep = None, str(folder / "kept")
        if kind in ENGINES:
            self.server = server_of(kind, folder / "server")
            self.place = self.server.place
        else:
            inside = SharedMemory(wall_ms, os.urandom)
            self.place = inside if kind == INSIDE else str(folder / "swarm")

    def bus(self, identity="", at_once=1, is_patient=False, **more):
        """Return an end; *is_patient*: the engine may have been started again just now."""
        one = end_of(self.kind, self.place, self.keep, **more)
        one.subscribe(refused=self.refused.append)
        one.join(identity, at_once)
        self.ends.append(one)
        end = time.monotonic() + is_patient * DEADLINE_S
        while True:
            try:
                one.wait()
                return one
            except ClawError:
                if time.monotonic() >= end:
                    raise

    def until(self, fact):
        """Return the first true value of *fact*, with all ends hearing what comes."""
        end = time.monotonic() + DEADLINE_S
        while True:
            for one in self.ends:
                one.receive()
            value = fact()
            if value:
                return value
            assert time.monotonic() < end, "never came true"
            readable = [one.fileno() for one in self.ends if one.fileno() >= 0]
            select.select(readable, [], [], 0.05)

    def done(self, value):
        """Return what *value*, which may be a ``Later``, comes to."""
        if not isinstance(value, Later):
            return value
        self.until(lambda: value.is_done)
        return value.value()

    def take(self, bus, identity="hand", any_of=True, most=None):
        return self.until(lambda: bus.take(identity, any_of, most))

    def settle(self):
        """Wait until each end has all that was said before."""
        heard = {one: [] for one in self.ends}
        says = getattr(self.ends[0], "_identity", "lead")
        self.ends[0].broadcast(says, {"settle": wall_ms(), "by": os.getpid()})
        others = self.ends[1:]
        assert others, "nobody else is there"
        self.until(
            lambda: all(
                heard[one].extend(one.messages()) or any("settle" in m for _, m in heard[one])
                for one in others
            )
        )

    def takes_nothing(self, bus, *values) -> bool:
        """Whether *bus* may take nothing, however long it asks."""
        for _ in range(2):
            if bus.take(*values) is not None:
                return False
            self.settle()
        return bus.take(*values) is None

    def process(self, *does: str) -> "Killable":
        """Start another process that is "hand".  It takes a task, says its id, and ``holds`` and
        ``begins`` when told so.  One that ``watches`` says the states of the first task: once when
        it waits, and after ``go_on`` when it has ended.
        """
        return Killable(self.kind, self.place, self.keep, does)

    def close(self):
        for one in reversed(self.ends):  # the first may keep the log of the others
            one.leave()
        if self.server:
            self.server.kill()


class Killable:
    """Another process with an end, which says what it did, a line each time (``said``)."""

    def __init__(self, kind: str, place, keep: str, does: tuple):
        command = [sys.executable, __file__, json.dumps([kind, place, keep, does])]
        path = "%s:%s" % (ROOT, ROOT / "tests" / "helpers")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(os.environ, PYTHONPATH=path),
        )

    def said(self) -> str:
        return self._process.stdout.readline().strip()

    def pause(self):
        """Let it do nothing, while its connections stay, until ``go_on``."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)

    def go_on(self):
        self._process.send_signal(signal.SIGCONT)
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def kill(self):
        self._process.kill()
        self._process.communicate()


def _other_process(kind: str, place, keep: str, does: list):
    world = World.__new__(World)
    world.ends = []
    world.kind, world.keep, world.refused, world.server = kind, keep, [], None
    world.place = tuple(place) if isinstance(place, list) else place
    if "watches" in does:
        redis_engine.READ = 5  # the logs of tests are short
    bus = world.bus("hand")
    if "watches" in does:
        for states in ((WAITING,), STATUSES):
            world.until(lambda states=states: bus._is_up and bus.state(IDS[0]) in states)
            print(bus.state(IDS[0]), bus.take("other", False, None), flush=True)
            sys.stdin.readline()
        return
    taken = world.take(bus)
    if "holds" in does:  # a request that may use so many tokens
        assert world.done(bus.hold(taken.id, [60, 0], [100, None]))
    if "begins" in does:
        assert world.done(bus.begins(taken.id))
    print(taken.id, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _other_process(*json.loads(sys.argv[1]))
