"""An agent over its real image, with a clock that a test moves and no process, no socket and no
thread around it.
"""

from providers.project import KEY, build

from clawlite.core.agent.agent import Agent
from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base import effect as E
from clawlite.core.base.errors import ProviderError
from clawlite.core.policy.meter import Meter
from clawlite.core.protocol.console import Console
from clawlite.core.protocol.session import Session
from clawlite.linux.files.files import open_image
from clawlite.linux.io.jsontext import dumps, loads


class Clockwork:
    """One agent and its console; ``said`` is what a person reads, ``open`` the tasks that hold a
    connection.
    """

    def __init__(self, folder, *providers, **more):
        self.now = 0
        self.agent = Agent(Setup(open_image(str(build(folder / "project", *providers, **more)))), 0)
        self.agent.setup.codecs, self.agent.setup.keep_bytes = (loads, dumps), 65536
        self.agent.setup.meter = Meter(lambda: (self.now, 20000 * 86400), dict)
        self.session, self.console = Session(self.agent, loads), Console(self.agent)
        self.said, self.sent, self.ran, self.requests, self.open = "", [], [], 0, set()
        self.agent.start(0)
        self.settle()

    def settle(self):
        effect = self.agent.next_effect()
        while effect:
            kind = effect[0]
            if kind == E.SAY or kind == E.TELL:
                self.said += effect[1] + "\n"
            elif kind == E.WRITE:
                self.said += effect[1]
            elif kind == E.SEND:
                self.sent.append(effect[1])
            elif kind == E.SECRET:
                self.agent.complete(effect[1], (True, KEY), self.now)
            elif kind == E.OPEN:
                assert effect[1] not in self.open
                self.open.add(effect[1])
                self.requests += 1
            elif kind == E.CLOSE or kind == E.CANCEL:
                self.open.discard(effect[1])
            elif kind == E.RUN:
                self.ran.append(effect[2].name)
                self.agent.complete(effect[1], (True, "ran"), self.now)
            effect = self.agent.next_effect()

    def line(self, text: str):
        self.console.line(text, self.now)
        self.settle()

    def receive(self, data: bytes):
        (task,) = self.open
        self.agent.receive(task, (True, data), self.now)
        self.settle()

    def refuse(self, sentence: str):
        (task,) = self.open
        self.agent.receive(task, (False, ProviderError(sentence)), self.now)
        self.settle()

    def move(self, ms: int):
        """Let *ms* pass; everything that time asks for is done when it is due."""
        until = self.now + ms
        while self.agent.deadline() is not None and self.agent.deadline() <= until:
            self.now = max(self.now, self.agent.deadline())
            self.agent.tick(self.now)
            self.settle()
        self.now = until
