"""Play golden transcripts: what goes in, and every effect that must come out, on any runtime.

A transcript is a list of steps ``[at_ms, what, argument]`` and for each the list of effects that
follow it, until nothing is left to do.  Handlers really run, on simulated pins; time is the
transcript's.  Recorded by tests/golden/record.py and read by a person; compared here as parsed
JSON, text byte for byte."""

import sys

# Loaded before the tests: not linked, as it is here, it nests as no board's import does.
import clawlite.core.formats.violation  # noqa: F401
from clawlite.core.agent.agent import Agent
from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base import effect as E
from clawlite.core.image.image import GUARD, MEMORY, PINS, Image
from clawlite.core.image.pins import SimulatedPins
from clawlite.core.line.frame import TOO_LONG, Framer
from clawlite.core.memory.memory_methods import Memories
from clawlite.core.protocol.console import Console
from clawlite.core.protocol.session import Session
from clawlite.core.providers.provider_order import ProviderOrder
from clawlite.core.turns.builtin import HANDLERS
from clawlite.core.turns.handlers import Handlers

FOLDER = (__file__.rpartition("/")[0] or ".") + "/../golden/"

NAMES = {
    E.SAY: "say",
    E.TELL: "tell",
    E.PROMPT: "prompt",
    E.SEND: "send",
    E.LOG: "log",
    E.RUN: "run",
    E.CANCEL: "cancel",
    E.RESOLVE: "resolve",
    E.EXIT: "exit",
    E.WRITE: "write",
    E.STORE: "store",
    E.KEEP: "keep",
    E.SECRET: "secret",
    E.OPEN: "open",
    E.CLOSE: "close",
    E.REMEMBER: "remember",
}
EPOCH_MS = 1700000000000  # at the transcript's 0


def decoder():
    """Return (loads, dumps) of this runtime's shell."""
    if sys.implementation.name == "micropython":
        from jsontext import dumps, loads
    else:
        from clawlite.linux.io.jsontext import dumps, loads
    return loads, dumps


def read_image(name: str, keep: int = 0) -> Image:
    """Return the golden image *name*, behind a file as on a board."""
    file = open(FOLDER + name + "/claw.cbor", "rb")
    size = file.seek(0, 2)

    def read(offset, length):
        file.seek(offset)
        return file.read(length)

    return Image(read, size, keep)


def read_tools(name: str) -> dict:
    """Return the functions of the golden agent's tools.py; {} when it has none."""
    space = {"__name__": "tools"}
    try:
        with open(FOLDER + name + "/tools.py") as file:
            exec(file.read(), space)
    except OSError:
        pass
    return space


def order(image, codecs, meter, keep: int, is_behind=False, known=None, repetition=None):
    """Return the ``ProviderOrder`` of an agent with *image*."""
    setup = Setup(image)
    setup.codecs, setup.meter, setup.keep_bytes = codecs, meter, keep
    setup.is_behind, setup.dialects, setup.repetition = is_behind, known, repetition
    return ProviderOrder(setup)


class Player:
    """One agent on a transcript's clock.

    links   {virtual path: where it leads}, for RESOLVE; other paths lead to themselves
    """

    def __init__(self, name: str, mode: str, links: dict = None):
        self.at = 0
        image = read_image(name)
        guard = None
        if image.size_of(GUARD):
            from clawlite.scan.guard import Guard

            guard = Guard(image, sys.implementation.name != "micropython")
        self.handlers = Handlers(
            HANDLERS, read_tools(name), SimulatedPins(image.section(PINS) or [], self.clock)
        )
        self.agent = Agent(Setup(image, guard), 0, 4)
        self.agent.setup.codecs = decoder()
        self.session = Session(self.agent, decoder()[0])
        self.session.set_clock(1700000000, 0)
        self.framer = Framer(8192, True)
        self.console = Console(self.agent) if mode == "console" else None
        self._links = links or {}
        self._records = {}
        self.agent.setup.kept = self.kept
        self.memory = None
        if image.size_of(MEMORY):
            from store_world import Kept

            self.memory = Kept(self.agent, lambda: EPOCH_MS + self.at)
            self.agent.setup.memories = lambda: Memories(self.agent)
            if self.console:
                self.agent.setup.lasting = self.memory.lasting

    def clock(self) -> int:
        return self.at

    def kept(self, key=None):
        return self._records.get(key) if key is not None else (64, 2, 4096, ())

    def close(self):
        if self.memory:
            self.memory.close()

    def step(self, at: int, what: str, argument) -> list:
        """Do one step at *at* ms; return the effects as lists that JSON can hold."""
        self.at = at
        if what == "start":
            self.agent.start(at)
            if self.console:
                self.console.greet()
        elif what == "line":
            self.console.line(argument, at)
        elif what == "wire":  # bytes as characters up to U+00FF
            self.framer.feed(bytes([ord(c) for c in argument]))
            event = self.framer.next_event()
            while event:
                if event[0] == TOO_LONG:
                    self.session.too_long(int(str(event[1], "utf-8")), 8192)
                else:
                    self.session.record(event[1], at)
                event = self.framer.next_event()
        elif what == "record":
            self.session.record(argument.encode(), at)
        elif what == "interrupt":
            self.console.interrupt(at)
        elif what == "restart":  # of what keeps the stores
            self.memory.open()
        elif what == "close":
            self.console.close(at)
        else:
            assert what == "tick", what
        self.agent.tick(at)
        self.session.tick(at)
        return self.settle()

    def settle(self) -> list:
        seen = []
        while True:
            effect = self.agent.next_effect()
            while effect:
                seen.append(shown(effect))
                self.carry_out(effect)
                effect = self.agent.next_effect()
            ended = self.handlers.poll(self.at)
            for task, outcome in ended:
                self.agent.complete(task, outcome, self.at)
            if not ended and not self.agent.effects:
                return seen

    def carry_out(self, effect: tuple):
        kind = effect[0]
        if kind == E.RUN:
            outcome = self.handlers.start(effect[1], effect[2], effect[3], effect[4], self.at)
            if outcome is not None:
                self.agent.complete(effect[1], outcome, self.at)
        elif kind == E.CANCEL:
            self.handlers.cancel(effect[1])
        elif kind == E.KEEP:
            self._records[effect[3]] = effect[2], effect[4]
            self.agent.complete(effect[1], (True, []), self.at)
        elif kind == E.REMEMBER:
            self.agent.complete(
                effect[1], self.memory.run(effect[2], effect[3], effect[4], effect[5]), self.at
            )
        elif kind == E.RESOLVE:
            self.agent.complete(effect[1], (True, self._links.get(effect[2], effect[2])), self.at)


def shown(effect: tuple) -> list:
    kind = effect[0]
    if kind == E.RUN:
        return ["run", effect[2].name, effect[3]]
    if kind == E.CANCEL:
        return ["cancel"]
    if kind == E.KEEP:
        return ["keep"] + list(effect[2:])
    if kind == E.RESOLVE:
        return ["resolve", effect[2]]
    if kind == E.REMEMBER:
        return ["remember", effect[2], effect[3].name, effect[4]]
    if (
        kind == E.SEND
        and isinstance(effect[1], dict)
        and effect[1].get("error", {}).get("code") == -32700
    ):
        effect[1]["error"]["message"] = "(a decoder's own words)"
    return [NAMES[kind], effect[-1]]


def play(transcript: dict) -> list:
    """Return the first difference as [step, expected, got], or None when the transcript plays as
    recorded.
    """
    player = Player(transcript["agent"], transcript["mode"], transcript.get("links"))
    try:
        for at, what, argument, expected in transcript["steps"]:
            got = player.step(at, what, argument)
            if got != expected:
                return [[at, what, argument], expected, got]
        return None
    finally:
        player.close()
