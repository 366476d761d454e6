"""Boards that one gateway's process stands in for, as members of a swarm: ``python
benchmarks/swarm_boards.py``.

``clawlite swarm stand-in`` is the process, as clawlite gateway starts it; the boards are this
program at its other end, which answer each task at once.  Measured are the time until all are
there, the memory that the process has for each, the time of a status of all, and tasks a second,
given as fast as they are acknowledged.  A swarm on a file, or on an engine of the tests.

With ``--gateway`` a real ``clawlite gateway`` is in between, and each board is a connection to it
over TCP, as of a board with Wi-Fi; all of them are one more process of this program.  Its memory is
then that of the gateway with the process that it starts.

Rows as of clawlite bench, docs in README.md here.
"""

import argparse
import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]

from agents import Agent, environment, eventually, linux  # noqa: E402
from gateways import Peer  # noqa: E402
from swarm_team import SWARM, project  # noqa: E402
from swarm_world import KINDS, World, settings  # noqa: E402

from clawlite.core.image.image import SWARM as SECTION  # noqa: E402
from clawlite.host.bench.bench import text  # noqa: E402
from clawlite.host.bench.run import Bench  # noqa: E402
from clawlite.host.gateway import gateway as gateways  # noqa: E402
from clawlite.host.gateway.images import Images  # noqa: E402
from clawlite.linux.files.files import open_image  # noqa: E402
from clawlite.protocols.swarm.swarm import Swarm, Task  # noqa: E402

WAIT_S, TASKS = 120, 400
AT_ONCE = 100  # boards that connect: a gateway takes 256 strangers of one address


def memory_kib(pid: int) -> int:
    """Return the memory of a process, what it shares with others counted in part (Pss)."""
    with open("/proc/%d/smaps_rollup" % pid) as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))


def cpu_s(pid: int) -> float:
    with open("/proc/%d/stat" % pid) as file:
        words = file.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Boards:
    """The process, and the boards at its other end.  ``refused``: what it said of those that are in
    no swarm.
    """

    def __init__(self, home: Path, image: str):
        self._image = image
        words = [sys.executable, "-m", "clawlite", "swarm", "stand-in"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(words, env=environment(home), **pipes)
        self._out = self._process.stdout.fileno()
        os.set_blocking(self._out, False)
        self._rest, self.refused = b"", []

    def fileno(self) -> int:
        return self._out

    def join(self, numbers: range):
        """Let the boards with these *numbers* join the swarm."""
        for number in numbers:
            self.tell(device="board%d" % number, join=self._image)

    def tell(self, **what):
        self._process.stdin.write(json.dumps(what).encode() + b"\n")
        self._process.stdin.flush()

    def receive(self):
        """Answer the tasks that have come."""
        try:
            data = os.read(self._out, 1 << 20)
        except BlockingIOError:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            told = json.loads(line)
            if "task" in told:
                report = {"status": "completed", "text": "Dry."}
                self.tell(device=told["device"], report=told["task"], **report)
            elif "refused" in told:
                self.refused.append(told["refused"])

    def processes(self) -> list:
        """Return the ids of the processes that are measured."""
        return [self._process.pid]

    def close(self):
        self._process.kill()
        self._process.communicate()


class Connected:
    """A gateway, and boards that are connections to it.  ``refused``: what it noted of boards."""

    def __init__(self, home: Path, image: str):
        os.environ["CLAWLITE_STATE"] = str(home / "state")
        digest = next(iter(Images([os.path.dirname(image)], print)._found))
        words = linux("gateway", os.path.dirname(image), "--listen", "127.0.0.1:0")
        self._gateway = Agent(words, home, cwd=home, env={"CLAWLITE_STATE": home / "state"})
        said = lambda: "listens on 127" in self._gateway.errors()
        eventually(said)
        address = self._gateway.errors().partition("listens on ")[2].partition(",")[0]
        words = [sys.executable, __file__, "--play", address, digest]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._boards = subprocess.Popen(words, **pipes)

    @property
    def refused(self) -> list:
        return [line for line in self._gateway.errors().splitlines() if "is in no swarm" in line]

    def fileno(self) -> int:
        return self._boards.stdout.fileno()

    def join(self, numbers: range):
        for number in numbers:
            name = "board%d" % number
            told = json.dumps([name, gateways.make_token(name)])
            self._boards.stdin.write(told.encode() + b"\n")
        self._boards.stdin.flush()

    def receive(self):
        """The boards answer by themselves."""

    def processes(self) -> list:
        pid = self._gateway.process.pid
        with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
            return [pid, *map(int, file.read().split())]

    def close(self):
        self._boards.stdin.close()
        self._boards.wait()
        self._boards.stdout.close()
        with self._gateway:  # it ends the process that it started
            self._gateway.signal(signal.SIGTERM)
            self._gateway.wait()


async def play(address: str, digest: str):
    """Be the boards whose names and tokens come on stdin, until it ends."""
    loop, places, boards = asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE), set()
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)

    async def board(name: str, token: str):
        peer = Peer(name, token, digest)
        async with places:
            await peer.connect(address)
        while line := await peer._reader.readline():
            message = json.loads(line[1:])
            if message["method"] == "claw.gateway.stop":
                peer.note("member")
            elif message["method"] == "claw.gateway.task":
                done = {"status": "completed", "text": "Dry.", "error": ""}
                peer.note("report", id=message["params"]["id"], **done)

    while line := await lines.readline():
        boards.add(asyncio.create_task(board(*json.loads(line))))
    for one in boards:
        one.cancel()
    await asyncio.gather(*boards, return_exceptions=True)


def until(ends: list, fact, seconds: float = WAIT_S) -> float:
    """Let *ends* hear until *fact*(); return the seconds that it took, None after *seconds*."""
    began = time.monotonic()
    while not fact():
        if time.monotonic() - began > seconds:
            return None
        select.select(ends, [], [], 0.05)
        for one in ends:
            one.receive()
    return time.monotonic() - began


def measured(kind: str, count: int, folder: Path, make) -> dict:
    """Return {what: value} of *count* boards; *make*: ``Boards`` or ``Connected``."""
    folder.mkdir(parents=True)
    world, home = World(kind, folder / "bus"), folder / "home"
    home.mkdir()
    more, backend = {}, kind
    if world.server:
        backend, more["toml"] = settings(kind, world.server)
    else:
        world.place = str(home / "state/swarms/team")
    more["coordination"] = dict(SWARM["coordination"], backend=backend, concurrency={})
    more["toml"] = "[gateway]\n" + more.get("toml", "")
    image = project(home, "hand", **more)
    swarm = Swarm(open_image(image).section(SECTION))
    boards, found = make(home, image), {}
    try:
        lead = world.bus("lead", 0)
        ends = [lead, boards]

        def there() -> int:
            return len(lead.present().get("hand", ()))

        boards.join(range(1))  # what it takes for one is not what it takes for each
        until(ends, lambda: there() >= 1)
        before = sum(map(memory_kib, boards.processes()))
        began = time.monotonic()
        boards.join(range(1, count))
        until(ends, lambda: there() >= count)
        found["all there, s"] = time.monotonic() - began
        found["there"] = there()
        found["refused"] = len(boards.refused)
        if found["there"] < count:
            if boards.refused:
                print(boards.refused[-1], file=sys.stderr)
            return found
        memory = sum(map(memory_kib, boards.processes()))
        found["for each, KiB"] = (memory - before) / (count - 1)
        times = []
        for _ in range(7):
            began = time.perf_counter()
            swarm.statuses(*lead.there(swarm))
            times.append((time.perf_counter() - began) * 1000)
        found["status, ms"] = sorted(times)[3]
        began_s = sum(map(cpu_s, boards.processes()))
        ids = [str(uuid.uuid4()) for _ in range(TASKS)]
        start = time.monotonic()
        for one in ids:
            lead.put(Task(one, "look", None, "lead", ""))
        left = set(ids)

        def done() -> bool:
            left.difference_update([one for one in list(left)[:50] if lead.outcome(one)])
            return not left

        until(ends, done)
        took = time.monotonic() - start
        found["tasks a second"] = (TASKS - len(left)) / took
        found["lost"] = len(left)
        ended_s = sum(map(cpu_s, boards.processes()))
        found["processor for a task, ms"] = (ended_s - began_s) * 1000 / TASKS
        return found
    finally:
        boards.close()
        world.close()


UNITS = {
    "all there, s": "s",
    "for each, KiB": "KiB",
    "status, ms": "ms",
    "tasks a second": "1/s",
    "lost": "count",
    "processor for a task, ms": "ms",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", help="file that rows are added to, as JSON lines")
    parser.add_argument("--boards", type=int, nargs="*", default=[10, 100, 1000])
    parser.add_argument("--engine", default="sqlite-wal", choices=KINDS)
    parser.add_argument("--gateway", action="store_true", help="with a gateway in between")
    parser.add_argument("--play", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.play:
        asyncio.run(play(*given.play))
        return 0
    make = Connected if given.gateway else Boards
    with tempfile.TemporaryDirectory(prefix="clawlite-bench-") as folder:
        bench = Bench(folder, 1)
        for count in given.boards:
            found = measured(given.engine, count, Path(folder) / str(count) / "run", make)
            for name, unit in UNITS.items():
                if found.get(name) is None:
                    continue
                case = "%s, %d boards, %s" % (given.engine, count, name.partition(",")[0])
                case = "gateway, " * given.gateway + case
                row = bench.row("swarm", case, unit, [found[name]])
                print(text(row), flush=True)
                if given.output:
                    with open(given.output, "a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
            if found["there"] < count:
                print("%d of %d boards are there" % (found["there"], count))
    return 0


if __name__ == "__main__":
    sys.exit(main())
