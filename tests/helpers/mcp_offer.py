"""An agent whose tools are offered to MCP clients (``clawlite mcp serve``)."""

import json
from pathlib import Path

from clawlite.host.builder.build import build_beside

SCHEMA = {
    "type": "object",
    "properties": {
        "words": {"type": "array", "items": {"type": "string", "maxLength": 20}, "maxItems": 9},
        "how": {"type": "string", "enum": ["up", "down"]},
    },
    "required": ["words"],
    "additionalProperties": False,
}
TOOLS = '''\
import os


def join(words: list, how: str = "down") -> dict:
    """Join words."""
    text = " ".join(words)
    return {"text": text.upper() if how == "up" else text}


def pour(litres: int) -> str:
    """Pour, after asking."""
    with open(os.environ["POURED"], "a") as file:
        file.write("poured %d\\n" % litres)
    return "poured %d" % litres


def wait(mark: str) -> str:
    """Say that it began, and whether it was ended, in a file."""
    try:
        with open(mark, "w") as file:
            file.write("began")
        yield 600000
    finally:
        with open(mark, "a") as file:
            file.write(" ended")
    return "over"


def fail() -> str:
    """Fail."""
    raise ValueError("the pipe is dry")
'''
NUMBER = {"type": "object", "properties": {"litres": {"type": "integer", "minimum": 1}}}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
MARK = {"type": "object", "properties": {"mark": {"type": "string"}}, "required": ["mark"]}
READS = {"readOnlyHint": True}


def _tool(name: str, about: str, schema: dict, **more) -> dict:
    return {"inline": {"name": name, "description": about, "input_schema": schema, **more}}


def manifest(rules: list, extra: int = 0, **policy) -> dict:
    """Return an agent's manifest.

    extra   so many tools more
    policy  what its policy holds beside the *rules*
    """
    asks = dict(NUMBER, required=["litres"], additionalProperties=False)
    tools = [
        _tool("join", "Join words", SCHEMA, annotations=READS, output_schema=TEXT),
        _tool("pour", "Pour some litres", asks, annotations={"destructiveHint": True}),
        _tool("wait", "Wait", MARK, annotations=READS),
        _tool("fail", "Fail", {"type": "object"}, annotations=READS),
    ]
    skill = {
        "name": "toast",
        "description": "Make a toast",
        "tools_required": ["join"],
        "instruction": "Join the words of a toast.",
        "input_schema": {"type": "object", "properties": {"whom": {"type": "string"}}},
    }
    return {
        "claw": "0.3.0",
        "kind": "Claw",
        "metadata": {"name": "offered", "version": "1.2.3"},
        "spec": {
            "identity": {"inline": {"personality": "You pour.", "autonomy": "autonomous"}},
            "providers": [
                {
                    "inline": {
                        "protocol": "custom",
                        "endpoint": "builtin:reflex",
                        "model": "m",
                        "auth": {"type": "none"},
                    }
                }
            ],
            "sandbox": {"inline": {"name": "box", "level": "none"}},
            "tools": tools + [_tool("t%d" % at, "More", {"type": "object"}) for at in range(extra)],
            "skills": [{"inline": skill}],
            "policies": [{"inline": {"name": "p", **policy, "rules": rules}}],
        },
    }


RULES = [
    {
        "id": "ask-first",
        "action": "require-approval",
        "scope": "tool",
        "match": {"name": "pour"},
        "reason": "it does not flow back",
        "approval": {"timeout_seconds": 60, "default_if_timeout": "deny"},
    },
    {"id": "no-failing", "action": "deny", "scope": "tool", "match": {"name": "t0"}},
    {"id": "rest", "action": "allow", "scope": "all"},
]


def build(folder: Path, rules=RULES, extra: int = 0, **policy) -> str:
    """Write and build the agent into *folder*/agent; return its image."""
    agent = folder / "agent"
    agent.mkdir()
    (agent / "claw.json").write_text(json.dumps(manifest(rules, extra, **policy)))
    more = "".join(
        '\n\ndef t%d() -> str:\n    """More."""\n    return ""\n' % at for at in range(extra)
    )
    (agent / "tools.py").write_text(TOOLS + more)
    (agent / "reflex.toml").write_text('[[rule]]\nwhen = "hi"\nsay = "hi"\n')
    (agent / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
    return build_beside(str(agent))


def events(folder: Path) -> list:
    """Return the calls that are in the agent's log."""
    found = []
    for path in sorted((folder / "state").rglob("*.jsonl")):
        found += [json.loads(line) for line in path.read_text().splitlines()]
    return [event for event in found if event.get("event") == "tool.call"]
