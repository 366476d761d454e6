"""An agent with channels and without a shell: its image is real, its clock is the test's, and a
source stands where a platform would be.
"""

import hashlib
import hmac
import json
import os
import select
import time

from agents import DEADLINE_S

from clawlite.core.agent.agent import Agent
from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base import effect as E
from clawlite.core.protocol.console import Console
from clawlite.core.protocol.session import Session
from clawlite.host.compiler import compiler
from clawlite.host.manifest import manifest
from clawlite.linux.channels import channel
from clawlite.linux.channels.channels import Channels
from clawlite.linux.files.files import image_of
from clawlite.linux.io.jsontext import dumps, loads

EPOCH_S = 1_800_000_000  # a whole minute: 2027-01-15 08:00 UTC
KEY = "a-shared-secret"  # of webhooks
RULES = """
[[rule]]
when = "careful"
call = "careful"

[[rule]]
when = "quick"
call = "quick"

[[rule]]
when = "echo {words:text}"
say = "You said: {words}"
"""


def project(folder, specs: list, settings: str = "") -> manifest.Manifest:
    """Write and load an agent whose Channels have *specs*: {name: spec}, each with its
    secret_ref put in.
    """
    tools = [
        {"inline": {"name": name, "description": name, "input_schema": {"type": "object"}}}
        for name in ("careful", "quick")
    ]
    rules = [
        {
            "id": "ask",
            "action": "require-approval",
            "scope": "tool",
            "match": {"name": "careful"},
            "approval": {"timeout_seconds": 60},
        },
        {"id": "all", "action": "allow", "scope": "all"},
    ]
    spec = {
        "identity": {"inline": {"name": "tester", "personality": "x", "autonomy": "autonomous"}},
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
            {"inline": {"name": name, "auth": {"secret_ref": "SECRET"}, **one}}
            for name, one in specs.items()
        ],
        "tools": tools,
        "sandbox": {"inline": {"level": "none"}},
        "policies": [{"inline": {"rules": rules}}],
    }
    folder.mkdir(exist_ok=True)
    (folder / "claw.yaml").write_text(
        json.dumps(
            {"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "channelled"}, "spec": spec}
        )
    )
    (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n' + settings)
    (folder / "reflex.toml").write_text(RULES)
    (folder / "tools.py").write_text(
        'def careful():\n    """Ask first."""\n\n\ndef quick():\n    """Do it."""\n'
    )
    return manifest.load(folder)


def signed(
    body: bytes, at: int = None, key: str = KEY, path: str = "/hook", method: str = "POST"
) -> bytes:
    """Return a whole request."""
    stamp = str(int(time.time()) if at is None else at)
    made = hmac.new(key.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return (
        "%s %s HTTP/1.1\r\nHost: x\r\nX-Claw-Timestamp: %s\r\nX-Claw-Signature: sha256=%s\r\n"
        "Content-Length: %d\r\n\r\n" % (method, path, stamp, made, len(body))
    ).encode() + body


class Source:
    """Where a platform would be.

    sent  [(to, text, final)]
    """

    def __init__(self, channel, own):
        self.channel, self.own, self.sent = channel, own, []

    def poll(self):
        """Nothing comes by itself."""

    def deadline(self):
        return None

    def reply(self, to, text: str, final: bool = True, failed: bool = False):
        self.sent.append((to, text, final))

    def close(self):
        """Nothing is open."""


class World:
    """One agent.

    ms    monotonic ms; the calendar says EPOCH_S + ``shift_s`` + ms
    told  lines at the console; logged: events; ran: names of tools
    hold  True: tools begin and do not end, until ``finish``
    """

    def __init__(
        self,
        folder,
        specs,
        settings: str = "",
        monkeypatch=None,
        console: bool = False,
        wake=None,
        hold: bool = False,
    ):
        data = compiler.build(project(folder / "project", specs, settings)).data
        self.ms, self.shift_s, self.told, self.logged, self.ran, self.held, self.hold, self.sent = (
            0,
            0,
            [],
            [],
            [],
            [],
            hold,
            [],
        )
        self.state, self.wake = folder / "state", wake
        self.agent = Agent(Setup(image_of(data, "test")), 0)
        self.agent.setup.codecs = (loads, dumps)
        self.session = Session(self.agent, loads)
        self.console = Console(self.agent) if console else None
        if monkeypatch:
            monkeypatch.setattr(channel, "source_of", lambda kind: Source)
        self.agent.start(0)
        self.channels = self.opened()
        self.poll()

    def opened(self) -> Channels:
        """Return the agent's channels anew, as after a restart: the process before has ended."""
        if getattr(self, "channels", None):
            self.channels.close()
        self.channels = self.agent.setup.channels = Channels(
            self.agent,
            lambda: self.ms,
            self.wall_ms,
            self._draw,
            str(self.state),
            self.wake and self.wake[1],
            True,
        )
        return self.channels

    @staticmethod
    def _draw(count: int) -> bytes:
        # what a person compares is short and always the same; a token is another each time
        return bytes(range(count)) if count < 16 else os.urandom(count)

    def wall_ms(self) -> int:
        return (EPOCH_S + self.shift_s) * 1000 + self.ms

    def source(self, name: str) -> Source:
        return [channel for channel in self.channels.all if channel.name == name][0]._source

    def say(self, name: str, actor: str, text: str) -> str:
        """A message by channel *name*; return why it is refused."""
        why = self.source(name).channel.take_message(actor, text, actor)
        self.settle()
        return why

    def poll(self):
        self.channels.poll()
        self.settle()

    def until(self, holds):
        """Go on with what comes over real connections until *holds()*; an assertion when it
        takes 60 s.
        """
        end = time.monotonic() + DEADLINE_S
        self.poll()
        while not holds():
            left = end - time.monotonic()
            assert left > 0, self.logged
            if select.select([self.wake[0]], [], [], min(left, 0.05))[0]:
                os.read(self.wake[0], 512)
            self.poll()

    def settle(self):
        effect = self.agent.next_effect()
        while effect:
            self._carry_out(*effect)
            effect = self.agent.next_effect()
        self.channels.update()
        if self.agent.effects:
            self.settle()

    def _carry_out(self, kind, *rest):
        if kind == E.RUN:
            self.ran.append(rest[1].name)
            self.held.append(rest[0])
            if not self.hold:
                self.finish()
        elif kind == E.KEEP:
            self.agent.complete(rest[0], (True, []), self.ms)
        elif kind == E.LOG:
            self.logged.append(rest[0])
        elif kind in (E.TELL, E.SAY):
            self.told.append(rest[0])
        elif kind == E.SEND:
            self.sent.append(rest[0])

    def finish(self):
        """Let the oldest tool under way end."""
        self.agent.complete(self.held.pop(0), (True, "done"), self.ms)

    def move(self, ms: int, step_ms: int = 1000):
        """Let *ms* pass."""
        until = self.ms + ms
        while self.ms < until:
            self.ms = min(until, self.ms + step_ms)
            self.agent.tick(self.ms)
            self.poll()

    def events(self, name: str) -> list:
        return [event for event in self.logged if event["event"] == name]
