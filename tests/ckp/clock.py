"""Cases of kind "clock": the core of an agent, its real image, and a clock that the case moves.

An agent here is the core without a shell: nothing is read or written but the image and its memory,
which is real; no time passes but the case's.
"""

import json

from ckp import expect
from ckp.process import INITIALIZE, World

from clawlite.core.agent.agent import Agent
from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base import effect as E
from clawlite.core.image.image import CHANNELS, MEMORY
from clawlite.core.memory.memory_methods import Memories
from clawlite.core.policy.meter import Meter
from clawlite.core.protocol.session import Session
from clawlite.linux.channels.channels import Channels
from clawlite.linux.files.files import open_image
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.memory.database import Database
from clawlite.linux.memory.encryption import EntryCiphers
from clawlite.linux.memory.stores import Stores

EPOCH_S = 1_800_000_000  # what the agent's calendar says at the start: a whole minute


class Clockwork:
    """One agent.

    now        int, ms
    sent       [(ms, message)] for the operator; ran: names of tools, in order; opened: {task: ms}
               of open connections
    on_open    function(task), called for each connection that opens
    """

    def __init__(self, world: World):
        assert str(world.served).endswith(".cbor"), "such a manifest is not served"
        self.now, self.sent, self.ran, self.opened = 0, [], [], {}
        self.on_open = lambda task: None
        self.agent = Agent(Setup(open_image(str(world.served))), 0)
        self.agent.setup.codecs, self.agent.setup.keep_bytes = (loads, dumps), 65536
        self.agent.setup.meter = Meter(lambda: (self.now, EPOCH_S + self.now // 1000), dict)
        database = Database(str(world.state / "memory"))
        self.stores = Stores(
            database,
            lambda: EPOCH_S * 1000 + self.now,
            dumps,
            loads,
            EntryCiphers(database, "any", None, dumps, loads),
        )
        if self.agent.image.size_of(MEMORY):
            methods = Memories(self.agent)
            self.agent.setup.memories = lambda: methods
        self.session = Session(self.agent, loads)
        self.session.set_clock(EPOCH_S, 0)
        self.channels = None
        if self.agent.image.size_of(CHANNELS):
            self.channels = self.agent.setup.channels = Channels(
                self.agent, lambda: self.now, lambda: EPOCH_S * 1000 + self.now, bytes
            )
        self.agent.start(0)
        self.settle()

    def open(self) -> "Clockwork":
        """Open an operator's session; nothing of that counts as an answer of the case."""
        self.request(INITIALIZE)
        self.sent = []
        return self

    def request(self, message: dict):
        self.session.record(json.dumps(message).encode(), self.now)
        self.settle()

    def settle(self):
        effect = self.agent.next_effect()
        while effect:
            self.carry_out(effect)
            effect = self.agent.next_effect()

    def carry_out(self, effect: tuple):
        kind = effect[0]
        if kind == E.SEND:
            self.sent.append((self.now, effect[1]))
        elif kind == E.RUN:
            self.ran.append(effect[2].name)
            self.agent.complete(effect[1], (True, "ran"), self.now)
        elif kind == E.REMEMBER:
            ((number, outcome),) = self.stores.run([effect[1:]])
            self.agent.complete(number, outcome, self.now)
        elif kind == E.OPEN:
            self.opened[effect[1]] = self.now
            self.on_open(effect[1])
        elif kind in (E.CLOSE, E.CANCEL):
            self.opened.pop(effect[1], None)

    def due(self):
        times = [
            at
            for at in (
                self.agent.deadline(),
                self.session.deadline(),
                self.channels and self.channels.deadline(),
            )
            if at is not None
        ]
        return min(times) if times else None

    def move(self, ms: int):
        """Let *ms* pass; everything that time asks for is done when it is due."""
        until = self.now + ms
        while self.due() is not None and self.due() <= until:
            self.now = max(self.now, self.due())
            self.agent.tick(self.now)
            self.session.tick(self.now)
            if self.channels:
                self.channels.poll()
            self.settle()
        self.now = until


def run(case: dict, folder) -> None:
    assert case["setup"]["clock"] == "virtual"
    work = Clockwork(World(case, folder)).open()
    seen = Seen(work)
    for step in case["input"]["steps"]:
        if "send" in step:
            work.request(step["send"])
        elif "advance_s" in step:
            work.move(step["advance_s"] * 1000)
        else:
            expect.check(seen, step["assert"])
    for entry in case["expect"]:
        expect.check(seen, entry)


class Seen:
    """What ``expect`` may ask of a clockwork."""

    def __init__(self, work: Clockwork):
        self.work = work

    def replies(self) -> list:
        return [(at, message) for at, message in self.work.sent if "method" not in message]

    def pending(self) -> int:
        return len(self.work.agent.waiting)

    def ledger(self) -> list:
        return self.work.ran

    def refusal(self):
        return None

    def __str__(self):
        return json.dumps(self.work.sent)[:2000]
