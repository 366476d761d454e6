"""Agents whose heap on a board is measured, and what people and operators say to them: for the
tests of what ``build`` says, benchmarks/promises.py (32-bit words) and benchmarks/cortex_m3.
"""

from pathlib import Path

import gateways

from clawlite.host.bench import agent
from clawlite.host.bench import micropython as bench_micropython
from clawlite.host.builder.build import build_beside
from clawlite.host.projects import new

_ASK = "water the plants for 1 seconds"
# Each question that comes is answered, with "n" first, and then with "y" and "n" by turns.
_GREENHOUSE = (
    *("hello", "/tools", "/status", "/help", "is the soil dry?", _ASK, "/trace", _ASK, "/trace"),
    *("hello", "/status", "is the soil dry?", _ASK, _ASK, "/help", "/trace"),
)
_CHAT = (
    *("hello", "/tools", "/status", "/help", "how are you", "/trace"),
    *("hello", "what is your name", "/status", "how are you", "/help", "/trace"),
)
_BLINK = ("hello", "/tools", "/status", "/help", "blink", "/trace") * 2
# the model answers with a call of its tool, and then with TEXT
_MODEL = ("/help", "/tools", "/status", "how is it?", "/trace") * 2
PLANTS = 250
TEXT = " ".join(
    "Bed %d is %s, and plant %x grows there."
    % (number, ("dry", "wet", "green", "brown", "full")[number % 5], number * 7919)
    for number in range(PLANTS)
)
COUNT = 140  # calls of an operator, half of them on record
# The journal is written anew, once among 64 records: one step, in which a board collects some
# 200 KB.
REWRITES = 1

_READING = """
[[reading]]
name = "%s"
tool = "read-soil"
field = "percent"
every = "60s"
keep = "2d"
"""
_READINGS = ("soil", "bed", "north", "south", "east", "west")
_TRIGGERS = {
    "morning": 'at = "07:00"',
    "rest": 'every = "6h"',
    "dry": 'on = "soil"\nbelow = 30\nagain_above = 35\nfor = "5m"',
    "noon": 'cron = "0 12 * * 1"',
    "evening": 'at = "19:30"',
    "twice": 'every = "12h"',
    "bed-dry": 'on = "bed"\nbelow = 20\nagain_above = 25',
    "wet": 'on = "north"\nabove = 90',
    "daily": 'every = "1d"',
    "midday": 'at = "12:00"',
    "east-dry": 'on = "east"\nbelow = 10',
    "early": 'cron = "30 6 * * *"',
}
_RULE = """
[[rule]]
name = "%s"
%s
if = ["%s < 40", "age(%s) < 10m"]
call = "water"
arguments = { seconds = %d }
at_most = "2/day"
least_pause = "1h"
then = [ { say = "Watered: {result}", to = "admins" } ]
"""


def greenhouse(folder: Path) -> str:
    return _of_template(folder, "greenhouse", True)


def write_audited(folder: Path) -> str:
    greenhouse(folder)
    policy = next(path for path in folder.rglob("*.yaml") if "kind: Policy" in path.read_text())
    text = policy.read_text()
    policy.write_text(text.replace("  rules:", "  audit: { destination: file }\n  rules:", 1))
    return build_beside(str(folder))


def ruled(folder: Path) -> str:
    """Make the greenhouse with 6 readings and 12 rules that begin by themselves."""
    greenhouse(folder)
    text = "".join(_READING % name for name in _READINGS)
    for number, (name, trigger) in enumerate(_TRIGGERS.items()):
        one, other = _READINGS[number % 6], _READINGS[(number + 1) % 6]
        text += _RULE % (name, trigger, one, other, 1 + number % 5)
    with open(folder / "reflex.toml", "a") as file:
        file.write(text)
    return build_beside(str(folder))


def chat(folder: Path) -> str:
    return _of_template(folder, "chat", True)


def blink(folder: Path) -> str:
    return _of_template(folder, "blink", False)


def mixed(folder: Path) -> str:
    folder.mkdir()
    return bench_micropython.write_mixed(str(folder))


def behind_a_gateway(folder: Path) -> str:
    return gateways.project(folder, "http://127.0.0.1:9/v1")


def _of_template(folder: Path, name: str, offline: bool) -> str:
    new.new(str(folder), name, offline=offline)
    return build_beside(str(folder))


CALLS, GATEWAY, RULED = (
    "20 tools, 6 skills, calls with ids",
    "behind a gateway",
    "6 readings, 12 rules",
)
PROJECTS = {
    "greenhouse": greenhouse,
    "greenhouse with audit": write_audited,
    "chat": chat,
    "blink": blink,
    CALLS: mixed,
    GATEWAY: behind_a_gateway,
    RULED: ruled,
}
SAYS = {
    "greenhouse": _GREENHOUSE,
    "greenhouse with audit": _GREENHOUSE,
    "chat": _CHAT,
    "blink": _BLINK,
    GATEWAY: _MODEL,
    RULED: _GREENHOUSE,
}
WHAT = {
    "greenhouse": "20 lines of dialogue with every command, approvals given and refused",
    "greenhouse with audit": "the same, audited to a file",
    "chat": "12 lines of dialogue with every command",
    "blink": "12 lines of dialogue, its tool called twice",
    CALLS: f"{COUNT} calls with request ids, half of them on record",
    GATEWAY: "two streamed turns with a call of a tool and 12 KB of text, and commands",
    RULED: "the greenhouse with them, the same dialogue right after the start, while the readings "
    "are measured first",
}
HEARS = {
    "greenhouse": "Watered for 1 s.",
    "greenhouse with audit": "Watered for 1 s.",
    "chat": "> ",
    "blink": "linked",
    GATEWAY: "grows there.",
    RULED: "Watered for 1 s.",
}


def write_work(case: str, image: Path) -> str:
    """Write what words32_work.py or words32_calls.py reads beside *image*; return which."""
    if case == CALLS:
        lines = bench_micropython.alternate_calls(COUNT)
        image.with_name("lines").write_bytes(agent.opening() + b"".join(lines))
        return "words32_calls.py"
    texts = {"says": "\n".join(SAYS[case]) + "\n", "hears": HEARS[case], "streams": TEXT}
    for name, text in texts.items():
        image.with_name(name).write_text(text)
    return "words32_work.py"
