"""A day of an agent in seconds: heartbeats, approvals, limits and quotas on clocks that a test
moves, jumps and restarts.

Time goes on by random steps; what an agent does is compared with a book that the test keeps for
itself."""

import random
import uuid

import pytest
from agents import INITIALIZE
from providers.project import build, provider

from clawlite.core.agent.agent import Agent
from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base import effect as E
from clawlite.core.policy.ledger import CALLS, count_use
from clawlite.core.policy.meter import Meter
from clawlite.core.protocol.console import Console
from clawlite.core.protocol.session import Session
from clawlite.linux.files.files import open_image
from clawlite.linux.io.jsontext import dumps, loads

DAY_MS, HOUR_S, BEAT_MS, APPROVAL_MS = 86400000, 3600, 30000, 60000
PER_MINUTE, PER_HOUR, PER_DAY = 5, 30000, 400000
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
REPLY = b'{"choices":[{"message":{"content":"Hm."},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}'  # noqa: E501


class Day:
    """The world around one agent: both clocks, what is on its disk, and the book."""

    def __init__(self, folder, seed: int):
        self.random = random.Random(seed)
        self.image = open_image(
            str(
                build(
                    folder / "project",
                    provider(
                        ("openai", "http://localhost:1/v1"),
                        streaming=False,
                        limits={"tokens_per_day": PER_DAY},
                    ),
                    rate_limits={"tool_calls_per_minute": PER_MINUTE, "tokens_per_hour": PER_HOUR},
                )
            )
        )
        self.disk = {}
        self.ms, self.ahead_s = 0, 20000 * 86400 + 5 * HOUR_S
        self.admitted, self.requests, self.refused, self.answers, self.ran = [], 0, 0, {}, []
        self.waiting = {}  # request_id -> [asked at, what becomes of it]
        self.outcomes = {"approved": 0, "denied": 0, "expired": 0, "late": 0}
        self.number = self.beats = 0
        self.start()

    # -- the shell

    def start(self):
        """A process begins: with what is on the disk, and nothing else."""
        self.agent = Agent(Setup(self.image), self.ms)
        meter = self.agent.setup.meter = Meter(
            lambda: (self.ms, self.ahead_s + self.ms // 1000),
            lambda: self.disk,
            self.image.agent.tokens_per_hour,
            self.image.agent.cost_per_day,
        )
        meter.add = lambda entries: count_use(
            self.disk, meter.make_call_entries(entries[0][2]) if entries[0][0] == CALLS else entries
        )
        self.agent.setup.codecs, self.agent.setup.keep_bytes = (loads, dumps), 65536
        self.session, self.console = Session(self.agent, loads), Console(self.agent)
        self.agent.start(self.ms)
        self.open = None
        self.request("claw.initialize", INITIALIZE)
        self.opened_ms, self.beats = self.ms, 0

    def request(self, method: str, params: dict):
        """Send a request of the operator; return its number."""
        self.number += 1
        self.session.record(
            dumps(
                {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
            ).encode(),
            self.ms,
        )
        self.settle()
        return self.number

    def settle(self):
        effect, looks = self.agent.next_effect(), None
        while effect:
            kind = effect[0]
            if kind == E.SEND and "method" in effect[1]:
                assert (
                    effect[1]["method"] == "claw.heartbeat"
                    and effect[1]["params"]["state"] == "READY"
                )
                self.beats += 1
            elif kind == E.SEND:
                assert effect[1]["id"] not in self.answers, "answered twice"
                self.answers[effect[1]["id"]] = effect[1]
            elif kind == E.SECRET:
                self.agent.complete(effect[1], (True, "key"), self.ms)
            elif kind == E.STORE:
                admitted = self.agent.setup.meter.add(effect[2])
                # before an approval: questions are limited too
                if admitted and effect[2][0][0] == CALLS:
                    self.admitted.append(self.ms)
                self.agent.complete(effect[1], (True, admitted), self.ms)
            elif kind == E.OPEN and len(effect[5]) == 1:  # whether it is Ollama, which it is not
                looks = effect[1]
            elif kind == E.OPEN:
                self.open = (
                    effect[1],
                    loads(effect[5][3] and b"[" + effect[5][3] + b"]"),
                    int(effect[5][4].split(b'"max_tokens":')[1][:-1]),
                )
                self.requests += 1
            elif kind == E.RUN:
                self.ran.append(effect[2].name)
                self.agent.complete(effect[1], (True, "ran"), self.ms)
            elif kind == E.KEEP:  # no other process has begun anything
                self.agent.complete(effect[1], (True, []), self.ms)
            effect = self.agent.next_effect()
        if looks:
            self.agent.receive(looks, (True, NOT_FOUND), self.ms)
            self.settle()

    def move(self, ms: int):
        until = self.ms + ms
        while True:
            due = [
                at
                for at in (self.agent.deadline(), self.session.deadline())
                if at is not None and at <= until
            ]
            if not due:
                break
            self.ms = max(self.ms, min(due))
            self.agent.tick(self.ms)
            self.session.tick(self.ms)
            self.settle()
        self.ms = until

    # -- what people and programs do

    def call(self, tool: str, arguments: dict) -> tuple:
        request_id = str(uuid.UUID(int=self.random.getrandbits(128), version=4))
        context = {"request_id": request_id, "identity": self.image.agent.identity}
        return self.request(
            "claw.tool.call", {"name": tool, "arguments": arguments, "context": context}
        ), request_id

    def note(self):
        before, recent = len(self.ran), sum(self.ms - at < 60000 for at in self.admitted)
        answer = self.answers[self.call("note", {"text": "x"})[0]]
        if len(self.ran) > before:
            assert answer["result"]["isError"] is False
        else:
            # A process that begins while the clock is behind cannot know how much time has passed:
            # it waits a minute.
            assert answer["error"]["code"] == -32011 and (
                recent >= PER_MINUTE or self.ms - self.opened_ms < 61000
            )
            self.refused += 1

    def ask(self):
        number, request_id = self.call("careful", {"what": "x"})
        if number not in self.answers:
            self.waiting[request_id] = [
                number,
                self.ms,
                self.random.choice(("approve", "deny", None, None)),
                self.random.randrange(1, 2 * APPROVAL_MS),
            ]

    def answer_approvals(self):
        for request_id, (number, asked_ms, what, after) in list(self.waiting.items()):
            if self.ms - asked_ms < after:
                continue
            del self.waiting[request_id]
            before, done = self.ran.count("careful"), self.answers.get(number)
            late = self.ms - asked_ms >= APPROVAL_MS
            acknowledged = (
                self.answers[self.request("claw.tool." + what, {"request_id": request_id})][
                    "result"
                ]["acknowledged"]
                if what
                else None
            )
            if late:
                assert (
                    not acknowledged
                    and done["error"]["code"] == -32012
                    and self.ran.count("careful") == before
                )
                self.outcomes["late" if what else "expired"] += 1
            elif what == "deny":
                assert (
                    acknowledged
                    and self.answers[number]["error"]["code"] == -32013
                    and self.ran.count("careful") == before
                )
                self.outcomes["denied"] += 1
            elif what == "approve":
                assert (
                    acknowledged
                    and "result" in self.answers[number]
                    and self.ran.count("careful") == before + 1
                )
                self.outcomes["approved"] += 1
            else:
                self.waiting[request_id] = [number, asked_ms, None, APPROVAL_MS + 1]

    def turn(self):
        """One message to the model, which uses all that it may."""
        before = self.requests
        self.console.line("Say hm. " + "x" * self.random.randrange(4000), self.ms)
        self.settle()
        if self.requests > before:
            task, messages, most = self.open
            body = REPLY % (
                sum(len(message["content"]) for message in messages[-1:]) // 4,
                self.random.randrange(most + 1),
            )
            self.agent.receive(
                task,
                (True, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)),
                self.ms,
            )
            self.settle()

    def check(self):
        for at in (0, len(self.admitted) // 2):
            window = (
                [one for one in self.admitted[at:] if one < self.admitted[at] + 60000]
                if self.admitted
                else []
            )
            assert len(window) <= PER_MINUTE
        for key, limit in (("first", PER_DAY), (".tokens", PER_HOUR)):
            assert self.disk.get(key, (0, 0))[1] <= limit, (key, self.disk)
        assert self.beats == (self.ms - self.opened_ms) // BEAT_MS
        self.admitted = [at for at in self.admitted if self.ms - at < 120000]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_day(tmp_path, seed):
    """9.3.1 heartbeats, 5.8 approvals and rate limits, 5.2 quotas: none is reset by a clock that
    jumps or by a restart.
    """
    day = Day(tmp_path, seed)
    hours, restarts, jumps = set(), 0, 0
    while day.ms < DAY_MS:
        day.move(day.random.randrange(1, day.random.choice((2000, 90000))))
        day.answer_approvals()
        day.random.choice((day.note, day.note, day.note, day.ask, day.turn))()
        day.check()
        hours.add(day.disk.get(".tokens", (0, 0))[0])
        if day.random.random() < 0.01:
            day.ahead_s += day.random.choice((-2 * HOUR_S, -60, 60, HOUR_S))
            jumps += 1
        if day.random.random() < 0.005:
            restarts += 1
            day.waiting = {}
            day.start()
    assert (
        day.refused > 20
        and min(day.outcomes.values()) > 5
        and day.requests > 50
        and restarts > 3
        and jumps > 5
        and len(hours) > 8
    ), (day.refused, day.outcomes, day.requests, restarts, jumps, len(hours))
