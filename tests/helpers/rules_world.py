"""An agent with readings and rules and without a shell: its image is real, and its clock, its tools
and its pins are the test's.
"""

import json
from datetime import datetime
from zoneinfo import ZoneInfo

from clawlite.core.agent.agent import Agent
from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base import effect as E
from clawlite.core.base.errors import ClawError
from clawlite.core.image.image import CHANNELS
from clawlite.core.image.image import PINS as PINS_SECTION
from clawlite.core.image.pins import SimulatedPins
from clawlite.core.rules.confirm import Confirms
from clawlite.core.rules.engine import Times
from clawlite.core.rules.table import CONFIRMS
from clawlite.host.compiler import compiler
from clawlite.host.manifest import manifest
from clawlite.linux.channels.channels import Channels
from clawlite.linux.files.files import image_of
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.rules.rule_group import group_of
from clawlite.linux.rules.rules import Rules
from clawlite.linux.runtime.optional_parts import make_rehearsal

EPOCH_S = 1_800_000_000  # 2027-01-15 08:00 UTC
ALLOW = [{"id": "all", "action": "allow", "scope": "all"}]
ASK = [
    {
        "id": "ask",
        "action": "require-approval",
        "scope": "tool",
        "match": {"name": "water"},
        "approval": {"timeout_seconds": 600},
    },
    *ALLOW,
]
READING = '[[reading]]\nname = "soil"\ntool = "read-soil"\nfield = "percent"\nevery = "60s"\n'
RULE = '[[rule]]\nname = "r"\ncall = "water"\narguments = { seconds = 3 }\n'
HALF_PAST_TWO = RULE + 'at = "02:30"\n' + RULE.replace('"r"', '"leap"') + 'cron = "0 9 29 2 *"\n'
TOOLS = """
def read_soil() -> dict:
    \"\"\"Read the soil.\"\"\"
    return {"percent": 20, "dry": True}


def water(seconds: int) -> str:
    \"\"\"Water.\"\"\"
    return "done"


def repeatable(seconds: int) -> str:
    \"\"\"Water, perhaps twice.\"\"\"
    return "done"
"""
HANGS = object()  # a sensor that never answers
PINS = '[[pins]]\nname = "door"\npin = 4\nkind = "input"\n'


def project(
    folder,
    rules: str,
    policy=None,
    autonomy: str = "autonomous",
    settings: str = "",
    more_tools=(),
    more_code: str = "",
    tools_py: str = TOOLS,
    **more,
):
    """Write and load an agent with the reflex file *rules*; *more*: of its spec."""
    folder.mkdir(exist_ok=True, parents=True)

    def tool(name, properties, **fields):
        schema = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        return {"inline": {"name": name, "description": "x", "input_schema": schema, **fields}}

    seconds = {"seconds": {"type": "integer", "maximum": 60}}
    spec = {
        "identity": {"inline": {"name": "t", "personality": "x", "autonomy": autonomy}},
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
                    "name": "console",
                    "type": "cli",
                    "transport": "stdio",
                    "auth": {"secret_ref": "C"},
                }
            }
        ],
        "tools": [
            tool("read-soil", {}, annotations={"readOnlyHint": True}),
            tool("water", seconds),
            tool("repeatable", seconds, annotations={"idempotentHint": True}),
            *more_tools,
        ],
        "sandbox": {"inline": {"level": "none"}},
        "policies": [{"inline": {"rules": policy or ALLOW}}],
        **more,
    }
    (folder / "claw.yaml").write_text(
        json.dumps({"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "ruled"}, "spec": spec})
    )
    (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n' + settings + PINS)
    (folder / "reflex.toml").write_text(rules)
    (folder / "tools.py").write_text(tools_py + more_code)
    return manifest.load(folder)


def name_runs(events: list) -> list:
    """Return "RULE HH:MM" of each run, in the time of Berlin."""
    zone = ZoneInfo("Europe/Berlin")
    return [
        "%s %s" % (one["rule"], datetime.fromtimestamp(one["at"], zone).strftime("%H:%M"))
        for one in events
    ]


class World:
    """One agent.

    acted   [(tool, arguments, wall s), ...] of tools with side effects
    told, logged   what people and the log are told
    soil    what the reading answers, an exception, or HANGS
    looked  ms of each reading
    cancelled  tasks whose handlers were ended
    hold_stores  True: a call waits for its meter
    hold    True: tools with side effects begin and do not end, until ``finish``
    """

    lessons = None  # of an agent that is taught

    def __init__(self, folder, rules: str, policy=None, hold: bool = False, edges=None, **more):
        self.folder, self.hold, self.hold_stores, self.edges = folder, hold, False, edges
        self.data = compiler.build(project(folder / "project", rules, policy, **more)).data
        self.ms, self.wall_s = 10000, EPOCH_S
        self.acted, self.told, self.logged, self.held = [], [], [], []
        self.soil, self.pins, self.kept, self.cancelled = 20, {"door": 0}, [], []
        self.agent = self.rules = None
        self.start()

    def start(self):
        """Begin a process; the one before is cut off."""
        if self.rules:
            self.rules._lock.release()
            self.rules.samples.close()
        self.held, self.looked = [], []
        self.agent = Agent(self.make_setup(image_of(self.data, "test")), self.ms)
        self.agent.setup.codecs = (loads, dumps)
        rows = self.agent.image.section(CONFIRMS)
        self.bank = SimulatedPins(self.agent.image.section(PINS_SECTION) or [], lambda: self.ms)
        if rows:
            self.agent.setup.confirm = Confirms(self.agent, rows, lambda: self.ms, self.bank)
        self.rules = Rules(
            self.agent,
            lambda: self.ms,
            self.times,
            str(self.folder / "state"),
            self.pins.get,
            self.edges,
        )
        self.channels = None
        if self.agent.image.size_of(CHANNELS):
            self.channels = self.agent.setup.channels = Channels(
                self.agent,
                lambda: self.ms,
                lambda: self.now_s() * 1000,
                lambda count: bytes(range(count)),
                None,
                None,
                True,
            )
        self.commands = group_of(self.rules, lambda: self.lessons, make_rehearsal(self.rules))
        self.agent.start(self.ms)
        self.poll()

    def make_setup(self, image) -> Setup:
        return Setup(image)

    def rebuild(self, rules: str, policy=None, **more):
        """Build the agent anew, and begin a process with it."""
        self.data = compiler.build(project(self.folder / "project", rules, policy, **more)).data
        self.start()

    def reset(self, off_s: int = 0):
        """Cut the power; the clock goes on for *off_s*."""
        self.wall_s += self.ms // 1000 + off_s
        self.ms = 10000
        self.wall_s -= 10
        self.start()

    def times(self) -> Times:
        return Times(self.ms, self.now_s())

    def now_s(self) -> int:
        return self.wall_s - 10 + self.ms // 1000

    def poll(self):
        if self.channels:
            self.channels.poll()
        self.rules.poll()
        self.settle()
        if self.channels:
            self.channels.update()
            self.settle()

    def settle(self):
        effect = self.agent.next_effect()
        while effect:
            self._carry_out(*effect)
            effect = self.agent.next_effect()

    def _carry_out(self, kind, *rest):
        if kind == E.RUN:
            task, tool, arguments, _ = rest
            if tool.name == "read-soil":
                wrong = isinstance(self.soil, Exception)
                self.looked.append(self.ms)
                if self.soil is HANGS:
                    return
                self.agent.complete(
                    task,
                    (False, self.soil) if wrong else (True, {"percent": self.soil}),
                    self.ms,
                )
                return
            self.acted.append((tool.name, arguments, self.now_s()))
            self.held.append(task)
            if not self.hold:
                self.finish()
        elif kind == E.STORE:
            if not self.hold_stores:
                self.agent.complete(rest[0], (True, True), self.ms)
        elif kind == E.KEEP:
            self.kept.append(rest)
            self.agent.complete(rest[0], (True, []), self.ms)
        elif kind == E.CANCEL:
            self.cancelled.append(rest[0])
            self.held = [task for task in self.held if task != rest[0]]
        elif kind == E.LOG:
            self.logged.append(rest[0])
        elif kind in (E.TELL, E.SAY):
            self.told.append(rest[0])

    def finish(self, failed: bool = False):
        """Let the oldest tool under way end."""
        outcome = (False, ClawError("broken")) if failed else (True, "done")
        self.agent.complete(self.held.pop(0), outcome, self.ms)
        self.settle()

    def move(self, seconds: int, step_ms: int = 1000):
        """Let *seconds* pass."""
        until = self.ms + seconds * 1000
        while self.ms < until:
            self.ms = min(until, self.ms + step_ms)
            self.agent.tick(self.ms)
            self.settle()
            self.poll()

    def answer(self, approved: bool):
        """Answer the question that waits first."""
        self.agent.answer(self.agent.waiting[0], approved, "", self.ms)
        self.settle()
        self.poll()

    def events(self, name: str) -> list:
        return [event for event in self.logged if event["event"] == name]
