"""A task of a swarm beside its engine's own request and reply: ``make bench-swarm``.

One process gives a task, the other does it: "bare" is written with the engine's own client and
keeps what it says as well as a swarm does; "task" are two ends of the bus; "agent" is a worker that
is a whole agent, whose rule answers.  From the delegation until the report is known, in turns, on
loopback; "acknowledged" is until the delegation is.

sqlite-wal  bare: a row for the request and one for the reply, each committed and synced, and a byte
            into a FIFO
redis       bare: XADD and XREAD on two streams, appendfsync always
nats        bare: a message for each, acknowledged by JetStream, pushed to a subscriber
in-process  no engine: two ends in one process

The engines and agents are those of the tests.  Rows as of clawlite bench, docs in README.md here.
"""

import argparse
import asyncio
import functools
import json
import os
import select
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers"), str(ROOT / "benchmarks")]

import targets  # noqa: E402
from engines import SERVERS  # noqa: E402
from swarm_team import SWARM, project, start  # noqa: E402
from swarm_world import INSIDE, World, end_of, settings  # noqa: E402

from clawlite.host.base.progress import RunProgress  # noqa: E402
from clawlite.host.bench.bench import text  # noqa: E402
from clawlite.protocols.swarm.swarm import Task  # noqa: E402

ROUNDS, BLOCK, WARM = 15, 20, 20
KINDS = [INSIDE, "sqlite-wal", *SERVERS]
# that 15 rounds took on the machine of results/targets, for the line of progress
RECORDED_S = {INSIDE: 1, "sqlite-wal": 4}
RECORDED_ENGINE_S = 8
RULE = '[[rule]]\nwhen = "ping"\nsay = "Dry."\n'
_SQL = "create table said (number integer primary key, who text, body text)"


def hear(ends: list, until):
    """Let *ends* hear what comes until *until*() is true; return that."""
    while True:
        value = until()
        if value:
            return value
        fds = [one.fileno() for one in ends if one.fileno() >= 0]
        if fds:
            select.select(fds, [], [], 10)
        for one in ends:
            one.receive()


class Tasks:
    """Gives tasks to "hand", which is another process, or the end *hand* in this one."""

    def __init__(self, lead, hand=None):
        self._lead, self._hand = lead, hand

    def one(self) -> tuple:
        """Return the ms (until it was acknowledged, until its report was known) of a task."""
        lead, began = self._lead, time.perf_counter()
        task = Task(str(uuid.uuid4()), "ping", None, "lead", "hand")
        later = lead.put(task)
        if later is not True:
            hear([lead], lambda: later.is_done)
        acknowledged = time.perf_counter()
        if self._hand:
            work(self._hand)
        hear([lead], lambda: lead.outcome(task.id))
        return (acknowledged - began) * 1000, (time.perf_counter() - began) * 1000


def work(bus) -> bool:
    taken = bus.take("hand", True, None)
    if taken:
        bus.report(taken.id, "completed", {"text": "Dry."}, None, 0, "hand", True)
    return False


class BareRedis:
    def __init__(self, place):
        import redis

        self._client = redis.Redis("127.0.0.1", place[2])
        self._since = {"ask": "0", "answer": "0"}

    def _next(self, name: str):
        while True:
            found = self._client.xread({name: self._since[name]}, block=10000)
            if found:
                self._since[name] = found[0][1][-1][0]
                return

    def one(self):
        began = time.perf_counter()
        self._client.xadd("ask", {"e": "ping"})
        acknowledged = time.perf_counter()
        self._next("answer")
        return (acknowledged - began) * 1000, (time.perf_counter() - began) * 1000

    def serve(self):
        while True:
            self._next("ask")
            self._client.xadd("answer", {"e": "Dry."})

    def close(self):
        self._client.close()


class BareNATS:
    """Its library is written for asyncio, so it runs a loop for each request."""

    def __init__(self, place):
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._connect(place[2]))

    async def _connect(self, port: int):
        import nats

        self._client = await nats.connect("nats://127.0.0.1:%d" % port)
        self._js = self._client.jetstream()
        await self._js.add_stream(name="BARE", subjects=["bare.*"])

    async def _one(self):
        began = time.perf_counter()
        await self._js.publish("bare.ask", b"ping")
        acknowledged = time.perf_counter()
        await self._answers.next_msg(10)
        return (acknowledged - began) * 1000, (time.perf_counter() - began) * 1000

    async def _subscribed(self, name: str):
        return await self._js.subscribe(name, ordered_consumer=True)

    def one(self):
        if not hasattr(self, "_answers"):
            self._answers = self._loop.run_until_complete(self._subscribed("bare.answer"))
        return self._loop.run_until_complete(self._one())

    def serve(self):
        self._loop.run_until_complete(self._serve())

    def close(self):
        self._loop.run_until_complete(self._client.close())
        self._loop.close()

    async def _serve(self):
        asks = await self._subscribed("bare.ask")
        async for _ in asks.messages:
            await self._js.publish("bare.answer", b"Dry.")


class BareSQLite:
    def __init__(self, place):
        os.makedirs(place, exist_ok=True)
        self._db = sqlite3.connect(place + "/bare.db", isolation_level=None, timeout=10)
        self._db.execute("pragma journal_mode = wal")
        self._db.execute("pragma synchronous = full")
        self._db.execute(_SQL.replace("table", "table if not exists"))
        self._fifos = {}
        for name in ("ask", "answer"):
            path = "%s/%s.bare" % (place, name)
            if not os.path.exists(path):
                os.mkfifo(path)
            self._fifos[name] = os.open(path, os.O_RDWR)
        self._seen = 0

    def _say(self, name: str):
        self._db.execute("insert into said values (null, ?, ?)", (name, "x"))
        os.write(self._fifos[name], b"!")

    def _next(self, name: str):
        os.read(self._fifos[name], 1)
        query = "select number, body from said where number > ? and who = ?"
        self._seen = self._db.execute(query, (self._seen, name)).fetchall()[-1][0]

    def one(self):
        began = time.perf_counter()
        self._say("ask")
        acknowledged = time.perf_counter()
        self._next("answer")
        return (acknowledged - began) * 1000, (time.perf_counter() - began) * 1000

    def serve(self):
        while True:
            self._next("ask")
            self._say("answer")

    def close(self):
        self._db.close()
        for fd in self._fifos.values():
            os.close(fd)


BARE = {"redis": BareRedis, "nats": BareNATS, "sqlite-wal": BareSQLite}


class Other:
    """The other process: it does tasks ("task"), or answers requests ("bare")."""

    def __init__(self, role: str, kind: str, place, keep: str):
        words = [sys.executable, __file__, "--serve", json.dumps([role, kind, place, keep])]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self._process.stdout.readline()

    def close(self):
        self._process.kill()
        self._process.communicate()


def serve(role: str, kind: str, place, keep: str):
    place = tuple(place) if isinstance(place, list) else place
    if role == "bare":
        bare = BARE[kind](place)
        print("ready", flush=True)
        bare.serve()
    bus = end_of(kind, place, keep)
    bus.join("hand", 1)
    bus.wait()
    print("ready", flush=True)
    hear([bus], lambda: work(bus))


def measured(kind: str, folder: Path, rounds: int) -> dict:
    """Return {name: blocks} of "bare", "task" and "agent"; a block is a list of (ms until it was
    acknowledged, ms in all).
    """
    world, others, agents, found, made = World(kind, folder / "bus"), [], [], {}, {}
    try:
        if kind == INSIDE:
            lead, hand = world.bus("lead", 0), world.bus("hand")
            made["task"] = Tasks(lead, hand)
        else:
            keep, lead = str(folder / "keep"), world.bus("lead", 0)
            others += [Other(role, kind, world.place, keep) for role in ("bare", "task")]
            made["bare"] = BARE[kind](world.place)
            made["task"] = Tasks(lead)
            home = folder / "agent"
            home.mkdir(parents=True)
            second = World(kind, home / "bus")
            agents.append(second)
            more, backend = {"rules": RULE}, kind
            if second.server:
                backend, more["toml"] = settings(kind, second.server)
            else:
                second.place = str(home / "state/swarms/team")
            more["coordination"] = dict(SWARM["coordination"], backend=backend)
            agents.insert(0, start(home, project(home, "hand", **more)))
            made["agent"] = Tasks(second.bus("lead", 0))
        for name in made:
            found[name] = []
        for name, one in made.items():
            for _ in range(WARM):
                one.one()
        for _ in range(rounds):
            for name, one in made.items():
                found[name].append([one.one() for _ in range(BLOCK)])
    finally:
        for one in (*others, *([made["bare"]] if "bare" in made else ())):
            one.close()
        for one in agents:
            one.__exit__() if hasattr(one, "__exit__") else one.close()
        world.close()
    return found


def rows(bench: targets.JudgedBench, rounds: int, kinds, progress: RunProgress):
    for at, kind in enumerate(kinds):
        progress.begin(at)
        try:
            with tempfile.TemporaryDirectory(prefix="clawlite-bench-") as folder:
                found = measured(kind, Path(folder), rounds)
        except pytest.skip.Exception as e:  # the engines are those of the tests
            progress.show(sys.stderr.write, f"clawlite: no rows of {kind}: {e}\n")
            continue
        middle = {}
        for name, blocks in found.items():
            middle[name] = [_median([whole for _, whole in block]) for block in blocks]
            yield bench.row("swarm", f"{kind}, {name}", "ms", middle[name])
            said = [_median([ms for ms, _ in block]) for block in blocks]
            yield bench.row("swarm", f"{kind}, {name}, acknowledged", "ms", said)
        for name in ("task", "agent") if "bare" in middle else ():
            ratios = [a / b for a, b in zip(middle[name], middle["bare"], strict=True)]
            yield bench.row("swarm", f"{kind}, {name} over bare", "ratio", ratios)


def _median(numbers: list) -> float:
    return sorted(numbers)[len(numbers) // 2]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", help="file that rows are added to, as JSON lines")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="blocks of each; default 15")
    parser.add_argument("--engines", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(*json.loads(given.serve))
    found = []
    parts = [(kind, RECORDED_S.get(kind, RECORDED_ENGINE_S)) for kind in given.engines]
    with (
        tempfile.TemporaryDirectory(prefix="clawlite-bench-") as folder,
        RunProgress(parts) as progress,
    ):
        for row in rows(
            targets.JudgedBench(folder, given.rounds), given.rounds, given.engines, progress
        ):
            progress.show(functools.partial(print, flush=True), text(row))
            found.append(row)
            if given.output:
                with open(given.output, "a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    print("", *targets.verdict_lines(targets.verdicts(found, ["swarm"])), sep="\n")
    return 1 if any(row["met"] is False for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
