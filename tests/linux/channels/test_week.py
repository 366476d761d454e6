"""A week of an agent in seconds: schedules over sleep and a change of clocks, people, a memory that
forgets, telemetry that counts.

The monotonic clock stands while the machine sleeps, the calendar goes on; processes end and begin.
What the agent does is compared with a book that the test keeps for itself: the times of schedules
by the calendar alone, what was said and stored by when it was acknowledged."""

import datetime
import json
import os
import random
import select
import uuid
import zoneinfo

import pytest
from agents import INITIALIZE
from channel_world import Source

from clawlite.core.agent.agent import Agent
from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base import effect as E
from clawlite.core.base.clock import iso8601
from clawlite.core.protocol.session import Session
from clawlite.host.compiler import compiler
from clawlite.host.manifest import manifest
from clawlite.linux.channels import channel
from clawlite.linux.channels.channels import Channels
from clawlite.linux.files.files import image_of
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.memory.memory import Memory
from clawlite.linux.runtime.persistence import Persistence
from clawlite.linux.telemetry.telemetry import Telemetry
from clawlite.protocols.image.features import KINDS

ZONE = zoneinfo.ZoneInfo("Europe/Berlin")
# the clocks go forward on the 28th
BEGIN_S = int(datetime.datetime(2027, 3, 24, 12, 0, 30, tzinfo=ZONE).timestamp())
WEEK_S, DAY_MS = 7 * 86400, 86400000
NOTES_S, NOTES_MOST, TALK_MOST, FACTS = 86400, 300, 40, 20
SPEC = {
    "identity": {"inline": {"name": "week", "personality": "x", "autonomy": "autonomous"}},
    "providers": [
        {
            "inline": {
                "protocol": "custom",
                "endpoint": "builtin:reflex",
                "model": "r",
                "auth": {"type": "none"},
            }
        }
    ],
    "channels": [
        {
            "inline": {
                "name": "hourly",
                "type": "cron",
                "transport": "polling",
                "auth": {"secret_ref": "NONE"},
                "trigger": {"schedule": "0 * * * *", "overlap_policy": "queue"},
            }
        },
        {
            "inline": {
                "name": "nightly",
                "type": "cron",
                "transport": "polling",
                "auth": {"secret_ref": "NONE"},
                "trigger": {"schedule": "30 2 * * *"},
            }
        },
        {
            "inline": {
                "name": "bot",
                "type": "telegram",
                "transport": "polling",
                "auth": {"secret_ref": "NONE"},
                "access_control": {"mode": "allowlist", "allowed_ids": ["7"]},
            }
        },
    ],
    "tools": [
        {"inline": {"name": "water", "description": "x", "input_schema": {"type": "object"}}}
    ],
    "memory": {
        "inline": {
            "name": "notebook",
            "stores": [
                {
                    "name": "talk",
                    "type": "conversation",
                    "scope": "per-channel",
                    "retention": {"max_entries": TALK_MOST},
                    "compaction": {"strategy": "truncate"},
                },
                {
                    "name": "notes",
                    "type": "semantic",
                    "retention": {"max_age": "1d", "max_entries": NOTES_MOST},
                },
                {"name": "facts", "type": "key-value", "retention": {"max_entries": FACTS}},
            ],
        }
    },
    "telemetry": {
        "inline": {
            "exporters": [{"type": "console"}],
            "events": {"tool_calls": True, "lifecycle": True, "memory_ops": True},
            "metrics": {"latency_histogram": True},
        }
    },
    "sandbox": {"inline": {"level": "none"}},
    "policies": [{"inline": {"rules": [{"id": "all", "action": "allow", "scope": "all"}]}}],
}
SETTINGS = (
    'reflex = "reflex.toml"\ntime_zone = "Europe/Berlin"\n[cron]\nmissed = "once"\n'
    'messages = { hourly = "water", nightly = "water" }\n'
)
RULES = (
    '[[rule]]\nwhen = "water"\ncall = "water"\n[[rule]]\nwhen = "{words:text}"\nsay = "You '
    'said: {words}"\n'
)


class Taken:
    """An exporter that keeps what it is told."""

    def __init__(self):
        self.events = []

    def put(self, event: dict):
        self.events.append(event)

    def stop(self):
        """It has nothing to write."""

    def wait(self, timeout_s):
        """It is done."""


class Week:
    """The world around one agent, and the book."""

    def __init__(self, folder, seed: int):
        self.random = random.Random(seed)
        made = folder / "project"
        made.mkdir()
        (made / "claw.yaml").write_text(
            json.dumps(
                {"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "week"}, "spec": SPEC}
            )
        )
        (made / "clawlite.toml").write_text(SETTINGS)
        (made / "reflex.toml").write_text(RULES)
        (made / "tools.py").write_text('def water():\n    """Do it."""\n')
        self.data, self.state = compiler.build(manifest.load(made)).data, str(folder / "channels")
        self.pipe = os.pipe()
        for fd in self.pipe:
            os.set_blocking(fd, False)
        self.ms, self.asleep_s, self.number = 0, 0, 0
        self.turns, self.answers, self.ran, self.remembered, self.taken, self.beats = (
            [],
            {},
            0,
            0,
            Taken(),
            0,
        )
        # said by 7; [(ms, content)]; {key: [ms, content]}
        self.said, self.notes, self.facts = [], [], {}
        self.expected = {"hourly": 0, "nightly": 0}
        # until when the book has counted schedules
        self.looked_s = BEGIN_S
        self.start()

    # -- the shell

    def wall_ms(self) -> int:
        return (BEGIN_S + self.asleep_s) * 1000 + self.ms

    def start(self):
        """A process begins: with what is on the disk, and nothing else."""
        self.agent = Agent(Setup(image_of(self.data, "test")), self.ms)
        self.agent.setup.codecs, self.agent.setup.keep_bytes = (loads, dumps), 65536
        self.session, self.waits = Session(self.agent, loads), 0
        self.agent.setup.agent = self.agent
        self.kept = Persistence(self.agent.setup, "")
        self.agent.setup.memories, self.agent.setup.lasting = self.kept.memories, self.kept.lasting
        self.agent.setup.kept = self.kept.records
        self.kept._memory = self.memory = Memory(
            self.agent, self.pipe[1], lambda: self.ms, self.wall_ms
        )
        record = self.agent.image.section(17)
        self.telemetry = Telemetry(record, self.agent.setup, lambda: self.ms, [self.taken])
        self.agent.setup.hears_done = self.telemetry.hear_done
        self.table = {
            E.LOG: self._log,
            E.SEND: self._send,
            E.RUN: self._run,
            E.REMEMBER: self._remember,
        }
        self.agent.start(self.ms)
        self.channels = self.agent.setup.channels = Channels(
            self.agent, lambda: self.ms, self.wall_ms, os.urandom, self.state, self.pipe[1], False
        )
        self.settle()
        self.request("claw.initialize", INITIALIZE)
        self.look()

    def end(self):
        self.channels.close()
        self.memory.close()

    def settle(self):
        """Carry effects out until none is left, and nothing waits for the memory."""
        while True:
            effect = self.agent.next_effect()
            if effect:
                self.telemetry.observe(effect)
                self.table.get(effect[0], self._other)(effect)
            elif self.waits:
                assert select.select([self.pipe[0]], [], [], 120)[0], "the memory does not answer"
                os.read(self.pipe[0], 512)
                before = len(self.memory._ended)
                self.memory.poll()
                self.waits -= before
            else:
                return

    def _log(self, effect):
        event = effect[1]
        if event["event"] == "channel.turn":
            self.turns.append(event["channel"])
        assert event["event"] not in (
            "channel.skipped",
            "channel.failed",
            "channel.trouble",
            "agent.error",
        ), event

    def _send(self, effect):
        if "method" in effect[1]:
            self.beats += 1
        else:
            self.answers[effect[1]["id"]] = effect[1]

    def _run(self, effect):
        self.ran += 1
        self.agent.complete(effect[1], (True, "done"), self.ms)

    def _remember(self, effect):
        self.waits += 1
        self.remembered += 1
        self.kept.remember(effect)

    def _other(self, effect):
        if effect[0] == E.KEEP:
            self.kept.carry_out(effect)

    def request(self, method: str, params: dict):
        self.number += 1
        self.session.record(
            dumps(
                {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
            ).encode(),
            self.ms,
        )
        self.settle()
        return self.answers.pop(self.number)["result"]

    # -- time

    def look(self):
        """The loop looks at its channels, and the book at the calendar: a run for each schedule
        of which a time has come.
        """
        now_s = self.wall_ms() // 1000
        for name, times in (
            ("hourly", hours(self.looked_s, now_s)),
            ("nightly", nights(self.looked_s, now_s)),
        ):
            self.expected[name] += bool(times)
        self.looked_s = now_s
        self.channels.poll()
        self.settle()
        self.channels.update()

    def move(self, ms: int):
        until = self.ms + ms
        while self.ms < until:
            due = [
                at
                for at in (self.agent.deadline(), self.session.deadline(), self.channels.deadline())
                if at is not None
            ]
            self.ms = min(until, max(self.ms + 1, min(due, default=until)))
            self.agent.tick(self.ms)
            self.session.tick(self.ms)
            self.look()

    def sleep(self, seconds: int):
        self.asleep_s += seconds

    # -- what people and programs do

    def say(self):
        text = "day %d line %d" % (self.ms // DAY_MS, len(self.said))
        [one for one in self.channels.all if one.name == "bot"][0].take_message("7", text, "7")
        self.settle()
        self.said += [text, "You said: " + text]

    def note(self):
        contents = [
            "note %d of %d" % (one, self.number) for one in range(self.random.randrange(1, 40))
        ]
        got = self.request(
            "claw.memory.store",
            {
                "store": "notes",
                "entries": [{"content": text} for text in contents],
                "context": self.context(),
            },
        )
        assert got["stored"] == len(contents)
        self.notes += [(self.wall_ms(), text) for text in contents]

    def fact(self):
        key, text = "key %d" % self.random.randrange(2 * FACTS), "value %d" % self.number
        self.request(
            "claw.memory.store",
            {
                "store": "facts",
                "entries": [{"key": key, "content": text}],
                "context": self.context(),
            },
        )
        self.facts.pop(key, None)
        self.facts[key] = text

    def context(self, **more) -> dict:
        return dict(
            {
                "request_id": str(uuid.UUID(int=self.random.getrandbits(128), version=4)),
                "identity": "week",
            },
            **more,
        )

    # -- what must hold

    def check(self):
        assert {name: self.turns.count(name) for name in self.expected} == self.expected
        now = self.wall_ms()
        found = self.query("notes", top_k=1000)
        young = [text for at, text in self.notes if at >= now - NOTES_S * 1000 + 1000][-NOTES_MOST:]
        old = [text for at, text in self.notes if at >= now - NOTES_S * 1000 - 1000][-NOTES_MOST:]
        assert found == young or found == old or set(young) <= set(found) <= set(old), (
            len(found),
            len(young),
        )
        talk = [
            content["text"]
            for content in self.query("talk", context={"channel": "bot/7"}, top_k=1000)
        ]
        assert (
            len(talk) <= TALK_MOST
            and talk == self.said[len(self.said) - len(talk) :]
            and len(talk) >= min(len(self.said), TALK_MOST // 2)
        )
        for key in list(self.facts)[-FACTS:]:
            assert self.query("facts", {"type": "key", "key": key}) == [self.facts[key]]
        for key in list(self.facts)[:-FACTS]:
            assert self.query("facts", {"type": "key", "key": key}) == [], "the oldest give way"
        told = [event for event in self.taken.events if event["event"] == "tool.call"]
        assert len(told) == self.ran == sum(self.expected.values())
        assert (
            sum(
                event["category"] == "memory_ops" and event["status"] == "ok"
                for event in self.taken.events
            )
            == self.remembered
        )

    def query(self, store: str, query: dict = None, context: dict = None, **more) -> list:
        query = query or dict(
            {
                "type": "time-range",
                "time_range": {
                    "from": iso8601(BEGIN_S - 1),
                    "to": iso8601(self.wall_ms() // 1000 + 1),
                },
            },
            **more,
        )
        return [
            entry["content"]
            for entry in self.request(
                "claw.memory.query",
                dict({"store": store, "query": query}, **({"context": context} if context else {})),
            )["entries"]
        ]


def hours(after_s: int, until_s: int) -> list:
    """Return the full hours of Berlin after *after_s*, which are those of UTC."""
    return list(range(after_s - after_s % 3600 + 3600, until_s + 1, 3600))


def nights(after_s: int, until_s: int) -> list:
    """Return the times of 2:30 in Berlin after *after_s*; where the clocks skip it, the first
    minute after that.
    """
    day, found = (
        datetime.datetime.fromtimestamp(after_s, ZONE).date() - datetime.timedelta(days=1),
        [],
    )
    while not found or found[-1] <= until_s:
        local = datetime.datetime.combine(day, datetime.time(2, 30), ZONE)
        at = int(local.timestamp())
        if datetime.datetime.fromtimestamp(at, ZONE).time() != datetime.time(2, 30):
            at = int(datetime.datetime.combine(day, datetime.time(3, 0), ZONE).timestamp())
        found.append(at)
        day += datetime.timedelta(days=1)
    return [at for at in found if after_s < at <= until_s]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_week(tmp_path, monkeypatch, seed):
    """5.3 schedules and missed runs, 5.6 retention and compaction, 5.10 telemetry, over sleep,
    restarts and a change of clocks.
    """
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    real = channel.source_of
    monkeypatch.setattr(
        channel, "source_of", lambda kind: Source if KINDS[kind].type == "telegram" else real(kind)
    )
    week, slept, restarts, checks = Week(tmp_path, seed), 0, 0, 0
    while week.wall_ms() < (BEGIN_S + WEEK_S) * 1000:
        week.move(week.random.randrange(1, week.random.choice((60000, 3600000))))
        week.random.choice((week.say, week.note, week.fact))()
        chance = week.random.random()
        if chance < 0.05:
            seconds = week.random.randrange(1800, 9 * 3600)
            week.sleep(seconds)
            slept += 1
            if chance < 0.025:  # the machine was off, not asleep
                week.end()
                week.start()
                restarts += 1
            else:
                week.look()
        elif chance < 0.08:
            week.request("claw.memory.compact", {"store": "talk", "context": {"channel": "bot/7"}})
        if chance > 0.7:
            week.check()
            checks += 1
    week.check()
    week.end()
    for fd in week.pipe:
        os.close(fd)
    missed = sum(len(hours(BEGIN_S, BEGIN_S + WEEK_S)) for _ in "x") - week.expected["hourly"]
    assert (
        slept > 4 and restarts > 1 and checks > 20 and missed > 5 and week.expected["nightly"] >= 6
    ), (slept, restarts, checks, missed, week.expected)
    assert (
        len(week.said) > 2 * TALK_MOST
        and len(week.notes) > 2 * NOTES_MOST
        and len(week.facts) > FACTS
        and week.beats > 5000
    ), (len(week.said), len(week.notes), week.beats)
