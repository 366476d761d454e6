"""Boards that one gateway's process stands in for, as members of a swarm: ``python
benchmarks/swarm_boards.py``.

``clawlite swarm stand-in`` is the process, as clawlite gateway starts it; the boards are this
program at its other end, which answer each task at once.  Measured are the time until all are
there, the memory that the process has for each, the time of a status of all, and tasks a second,
given as fast as they are acknowledged.  A swarm on a file, or on an engine of the tests.

Rows as of clawlite bench, docs in README.md here.
"""

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from agents import environment  # noqa: E402
from swarm_team import SWARM, project  # noqa: E402
from swarm_world import KINDS, World, settings  # noqa: E402

from clawlite.core.image.image import SWARM as SECTION  # noqa: E402
from clawlite.core.swarm.swarm import Swarm, Task  # noqa: E402
from clawlite.host.bench.bench import text  # noqa: E402
from clawlite.host.bench.run import Bench  # noqa: E402
from clawlite.linux.files.files import open_image  # noqa: E402

WAIT_S, TASKS = 120, 400


class Boards:
    """The process, and the boards at its other end; *said* is what it said of none of them."""

    def __init__(self, home: Path):
        words = [sys.executable, "-m", "clawlite", "swarm", "stand-in"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(words, env=environment(home), **pipes)
        self._out = self._process.stdout.fileno()
        os.set_blocking(self._out, False)
        self._rest, self.refused = b"", []

    def fileno(self) -> int:
        return self._out

    def tell(self, **what):
        self._process.stdin.write(json.dumps(what).encode() + b"\n")
        self._process.stdin.flush()

    def heard(self):
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

    def memory_kib(self) -> int:
        with open("/proc/%d/smaps_rollup" % self._process.pid) as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))

    def cpu_s(self) -> float:
        with open("/proc/%d/stat" % self._process.pid) as file:
            words = file.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self._process.kill()
        self._process.communicate()


def until(ends: list, fact, seconds: float = WAIT_S) -> float:
    """Let *ends* hear until *fact*(); return the seconds that it took, None after *seconds*."""
    began = time.monotonic()
    while not fact():
        if time.monotonic() - began > seconds:
            return None
        select.select(ends, [], [], 0.05)
        for one in ends:
            one.heard()
    return time.monotonic() - began


def measured(kind: str, count: int, folder: Path) -> dict:
    """Return {what: value} of *count* boards."""
    folder.mkdir(parents=True)
    world, home = World(kind, folder / "bus"), folder / "home"
    home.mkdir()
    more, backend = {}, kind
    if world.server:
        backend, more["toml"] = settings(kind, world.server)
    else:
        world.place = str(home / "state/swarms/team")
    more["coordination"] = dict(SWARM["coordination"], backend=backend, concurrency={})
    image = project(home, "hand", **more)
    swarm = Swarm(open_image(image).section(SECTION))
    boards, found = Boards(home), {}
    try:
        lead = world.bus("lead", 0)
        ends = [lead, boards]
        before = boards.memory_kib()
        for number in range(count):
            boards.tell(device="board%d" % number, join=image)

        def there() -> int:
            return len(lead.present().get("hand", ()))

        found["all there, s"] = until(ends, lambda: there() >= count)
        found["there"] = there()
        found["refused"] = len(boards.refused)
        if found["there"] < count:
            if boards.refused:
                print(boards.refused[-1], file=sys.stderr)
            return found
        found["for each, KiB"] = (boards.memory_kib() - before) / count
        times = []
        for _ in range(7):
            began = time.perf_counter()
            swarm.statuses(*lead.there(swarm))
            times.append((time.perf_counter() - began) * 1000)
        found["status, ms"] = sorted(times)[3]
        began_s = boards.cpu_s()
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
        found["processor for a task, ms"] = (boards.cpu_s() - began_s) * 1000 / TASKS
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
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="clawlite-bench-") as folder:
        bench = Bench(folder, 1)
        for count in given.boards:
            found = measured(given.engine, count, Path(folder) / str(count) / "run")
            for name, unit in UNITS.items():
                if found.get(name) is None:
                    continue
                case = "%s, %d boards, %s" % (given.engine, count, name.partition(",")[0])
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
