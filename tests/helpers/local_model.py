"""The real engine and weights of the local model (``make local``), for tests, and agents that use
them.

Two threads of the engine wait for each other by turning: beside other work they take a hundred
times as long. So the tests give them two minutes, and, where they may, a turn of their own.
"""

import ctypes
import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "local" / "needle"
TIMEOUT_MS = 300000
PROVIDER = """\
    - inline:
        name: "words"
        protocol: "custom"
        endpoint: "builtin:local"
        model: "needle-3"
        auth: { type: "none" }
"""


def missing() -> str:
    """Return why the real model cannot run here, or ""."""
    if not (FOLDER / "needle3.cact").is_file():
        return "no wheel of the local model for this system (make local)"
    if sys.maxsize < 1 << 32:
        return "the engine has no 32-bit version"
    if len(os.sched_getaffinity(0)) < 2:
        return "the engine needs two processors"
    return ""


needs_model = pytest.mark.skipif(bool(missing()), reason=missing() or "the model is here")


def in_turn():
    """Let this process, and what it starts, run before ordinary ones, where that is allowed."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        pass


def alone():
    """Have no network: a namespace of its own, where this user may make one."""
    in_turn()
    ctypes.CDLL(None).unshare(0x40000000)


def environment(folder) -> dict:
    """Return the environment of a command that uses the model and keeps all else in *folder*."""
    own = {name: str(folder / name) for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME")}
    return dict(os.environ, CLAWLITE_LOCAL=str(FOLDER), CLAWLITE_STATE=str(folder / "state"), **own)


def tool(name: str, says: str, properties=None, reads=False) -> dict:
    """Return a tool as an image has it for the model."""
    properties = properties or {}
    schema = {"type": "object", "properties": properties, "required": sorted(properties)}
    return {"name": name, "description": says, "parameters": schema, "reads": reads}


SECONDS = {"type": "integer", "minimum": 1, "maximum": 60, "description": "How long the pump runs"}
TOOLS = [
    tool("read-soil", "Read how wet the soil is, in percent", reads=True),
    tool("water", "Run the pump for some seconds", {"seconds": SECONDS}),
    tool("open-coop", "Open the door of the hen house"),
]
EXAMPLES = [
    {"say": said, "tool": name}
    for name, line in {
        "read-soil": "is the soil dry | how wet is the soil | check the soil moisture",
        "water": "water the plants for 10 seconds | run the pump for 5 seconds | pump 20 s",
        "open-coop": "let the hens out | open the coop | open the hen house door",
    }.items()
    for said in line.split(" | ")
]


RULES = """\
        fallback: [ { provider_ref: "rules" } ]
    - inline:
        name: "rules"
        protocol: "custom"
        endpoint: "builtin:reflex"
        model: "reflex"
        auth: { type: "none" }
"""


def project(folder: Path, approve: str = "allow", more: str = "", rules: str = "") -> Path:
    """Write an agent into *folder* whose first provider is the local model; return its manifest.

    approve  what policy says of the tool water
    rules    those of the provider that comes next, which answers what is passed on to it
    """
    (folder / "tools").mkdir(parents=True)
    (folder / "tools.py").write_text(
        "def read_soil(board) -> dict:\n    'Read it.'\n    return {'percent': 34}\n\n\n"
        "def water(board, seconds: int) -> str:\n    'Run it.'\n"
        "    return 'Watered for %d s.' % seconds\n"
    )
    for one in TOOLS[:2]:
        (folder / "tools" / (one["name"] + ".json")).write_text(
            json.dumps(
                {
                    "claw": "0.3.0",
                    "kind": "Tool",
                    "metadata": {"name": one["name"]},
                    "spec": {
                        "description": one["description"],
                        "input_schema": dict(one["parameters"], additionalProperties=False),
                        "annotations": {"readOnlyHint": one["reads"]},
                    },
                }
            )
        )
    (folder / "sentences.jsonl").write_text(
        "".join(json.dumps(one) + "\n" for one in EXAMPLES if one["tool"] != "open-coop")
    )
    first = 'reflex = "reflex.toml"\n' if rules else ""
    (folder / "reflex.toml").write_text(rules)
    (folder / "clawlite.toml").write_text(
        "%s[local]\ntimeout_ms = %d\n%s" % (first, TIMEOUT_MS, more)
    )
    rule = '{ id: "r%s", action: "%s", scope: "tool", match: { name: "%s" } }'
    decided = rule % ("1", "allow", "read-soil"), rule % ("2", approve, "water")
    (folder / "claw.yaml").write_text(
        'claw: "0.3.0"\nkind: Claw\nmetadata: { name: "garden", version: "1.0.0" }\nspec:\n'
        '  identity:\n    inline: { name: "garden", personality: "Brief.", '
        'autonomy: "autonomous" }\n'
        "  providers:\n" + PROVIDER + RULES * bool(rules) + "  channels:\n"
        '    - inline: { name: "console", type: "cli", transport: "stdio", '
        'auth: { secret_ref: "CONSOLE" } }\n'
        '  tools: [ "./tools/*.json" ]\n'
        '  sandbox:\n    inline: { name: "in-process", level: "none" }\n'
        "  policies:\n    - inline:\n        name: p\n        rules:\n"
        "          - %s\n          - %s\n" % decided
    )
    return folder / "claw.yaml"
