"""The bytes of a member of a swarm on NATS: ``python benchmarks/swarm_idle.py [SECONDS]``.

A real nats-server, three members (first, worker, idle), each through a relay of its own on loopback
that counts bytes and reads of both directions: what TCP carries, without the headers of TCP and IP.
One JSON line for each member and phase:

connect  from the first byte until the member has all that is on record
idle     SECONDS (60; the rows kept: 300) in which nobody does anything
tasks    100 tasks that "first" gives and "worker" does; what "idle" did is the share of everybody

docs/swarm-scale.md reckons with these numbers.
"""

import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

from clawlite.linux.swarm.replicated_bus import ReplicatedBus
from clawlite.linux.swarm.stop_file import StopFile
from clawlite.linux.swarm_engines.engine import NATS, engine_of
from clawlite.protocols.swarm.swarm import Swarm, Task

NAMES = ("first", "worker", "idle")
TASKS = 100
SETTLE_S = 5  # between phases: what a phase has left over
ID = "c1a00000-0000-4000-8000-%012d"
MEMBERS = [[name, "claw://local/identity/" + name, "peer", 1] for name in NAMES]
SWARM = ["team", 0, 1, MEMBERS, True, None, 1, None, 2, True, 0, False, None, None, None, None]


class Relay:
    """Listens on a free port, and passes on to *port*; ``sent`` and ``received`` are of the member:
    [bytes, reads].
    """

    def __init__(self, port: int):
        self.sent, self.received = [0, 0], [0, 0]
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            member, _ = self._listener.accept()
            server = socket.create_connection(("127.0.0.1", self._to))
            for one in (member, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for pair in ((member, server, self.sent), (server, member, self.received)):
                threading.Thread(target=_pass_on, args=pair, daemon=True).start()

    def counts(self) -> list:
        return [*self.sent, *self.received]


def _pass_on(source, target, count: list):
    try:
        while data := source.recv(65536):
            count[0] += len(data)
            count[1] += 1
            target.sendall(data)
    except OSError:
        pass
    target.close()


def hear(buses: list, until):
    """Let all *buses* hear what comes until *until*() is true."""
    while not until():
        select.select([bus.fileno() for bus in buses], [], [], 0.2)
        for bus in buses:
            bus.receive()


def for_s(seconds: float):
    """Return a function that is true when *seconds* have passed."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def wall_ms() -> int:
    return time.time_ns() // 1000000


def now_ms() -> int:
    return time.monotonic_ns() // 1000000


def joined(name: str, relay: Relay, folder: str) -> ReplicatedBus:
    def make(process: str, identity: str):
        place = [NATS, False, "127.0.0.1", relay.port, ""]
        return engine_of(place, "", "team", process, identity)

    keep = StopFile(os.path.join(folder, name))
    bus = ReplicatedBus(make, Swarm(SWARM), wall_ms, now_ms, os.urandom, keep)
    bus.join(name, 1)
    bus.wait()
    return bus


def told(phase: str, relays: list, before: list, seconds: float, tasks: int = 0):
    for name, relay, was in zip(NAMES, relays, before, strict=True):
        values = [now - then for now, then in zip(relay.counts(), was, strict=True)]
        row = dict(zip(("sent", "sends", "received", "receives"), values, strict=True))
        row = {"phase": phase, "member": name, "s": round(seconds, 1), "tasks": tasks, **row}
        print(json.dumps(row), flush=True)


def do_tasks(buses: list):
    first, worker, _ = buses
    for number in range(TASKS):
        later = first.put(Task(ID % number, "Look at bed 7.", None, "first", "worker"))
        hear(buses, lambda later=later: later.is_done)
        taken = []
        hear(buses, lambda: taken.append(worker.take("worker", True, None)) or taken[-1])
        later = worker.report(ID % number, "completed", {"text": "Dry."}, 0, 5, "worker")
        hear(buses, lambda later=later: later.is_done)


def play(port: int, folder: str, idle_s: float):
    relays, buses = [Relay(port) for _ in NAMES], []
    try:
        for name, relay in zip(NAMES, relays, strict=True):
            buses.append(joined(name, relay, folder))
        told("connect", relays, [[0] * 4] * len(NAMES), 0)
        hear(buses, for_s(SETTLE_S))
        for phase in ("idle", "tasks"):
            before, began = [relay.counts() for relay in relays], time.monotonic()
            hear(buses, for_s(idle_s)) if phase == "idle" else do_tasks(buses)
            tasks = 0 if phase == "idle" else TASKS
            told(phase, relays, before, time.monotonic() - began, tasks)
    finally:
        for bus in buses:
            bus.leave()


def main():
    idle_s = float(sys.argv[1]) if sys.argv[1:] else 60
    program = shutil.which("nats-server", path=os.environ["PATH"] + ":build/nats/usr/sbin")
    if program is None:
        sys.exit("no nats-server: make nats fetches it")
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        words = [program, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", folder]
        server = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        try:
            end = for_s(10)
            while not end():
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.05)
            play(port, folder, idle_s)
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
