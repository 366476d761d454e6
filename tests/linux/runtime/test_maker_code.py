"""tools.py and the modules beside it: typed values, prints, the line of a failure."""

import json

import pytest
from agents import INITIALIZE, clawlite, tool_call

CLAW = """claw: "0.3.0"
kind: Claw
metadata: { name: "m", version: "1.0.0" }
spec:
  identity: { inline: { name: "m", personality: "p", autonomy: "autonomous" } }
  providers:
    - inline:
        { name: r, protocol: custom, endpoint: "builtin:reflex", model: r, auth: { type: none } }
  sandbox: { inline: { name: s, level: %s } }
  policies:
    - inline: { name: p, rules: [{ id: a, action: allow, scope: all }] }
"""
TOOLS = '''"""Tools."""
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, Optional

import helper
from helper import double


class Mode(Enum):
    DRY = "dry"
    WET = "wet"


@dataclass
class Plan:
    mode: Mode
    beds: list[int]
    seconds: int = 3


def go(plan: Plan, mode: Optional[Mode] = None, kind: Literal["a", "b"] = "a") -> Plan:
    "Go."
    print("going", plan.mode.name, mode is Mode.WET, kind)
    return Plan(Mode.DRY, [double(bed) for bed in plan.beds], plan.seconds)


def steps(mode: Mode) -> Plan:
    "Steps."
    print("one")
    yield 1
    return Plan(mode, [helper.double(5)])


def fails(a: int) -> float:
    "Fail."
    return a / 0


def deep(a: int) -> float:
    "Fail elsewhere."
    return helper.crash(a)


def floods(n: int) -> str:
    "Print much."
    for i in range(n):
        print("x" * 1000)
    return "done"
'''
HELPER = """def double(n):
    print("doubling", n)
    return 2 * n


def crash(a):
    return [][a]
"""
RULES = """[[rule]]
when = "steps"
call = "steps"
arguments = { mode = "wet" }
[[rule]]
when = "fails"
call = "fails"
arguments = { a = 1 }
[[rule]]
when = "deep"
call = "deep"
arguments = { a = 1 }
[[rule]]
when = "floods"
call = "floods"
arguments = { n = 40 }
"""


def project(folder, level):
    texts = {"claw.yaml": CLAW % level, "tools.py": TOOLS, "helper.py": HELPER}
    for name, text in {**texts, "clawlite.toml": 'reflex = "r.toml"', "r.toml": RULES}.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(params=["none", "process"])
def agent(request, tmp_path):
    return project(tmp_path, request.param)


def events(folder) -> list:
    (log,) = (folder / ".home").rglob("log.jsonl")
    return [json.loads(line) for line in log.read_text().splitlines()]


def printed(folder) -> list:
    return [one["text"] for one in events(folder) if one["event"] == "tool.print"]


def call(folder, name, arguments) -> dict:
    start = {"jsonrpc": "2.0", "id": 1, "method": "claw.initialize", "params": INITIALIZE}
    told = [start, tool_call(name, arguments, 2, "m")]
    data = "".join(json.dumps(one) + "\n" for one in told).encode()
    done = clawlite("serve", ".", "--stdio", cwd=folder, stdin=data)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return [one for one in answers if one.get("id") == 2][0]


def test_functions_get_members_and_instances_and_return_json(agent):
    done = clawlite("ask", "steps", cwd=agent)
    assert json.loads(done.stdout) == {"mode": "wet", "beds": [10], "seconds": 3}
    assert done.returncode == 0 and done.stderr == ""
    # what is printed goes to the log and not to stdout, also from a module beside tools.py
    assert printed(agent) == ["one", "doubling 5"]


def test_arguments_are_what_their_annotations_say(agent):
    arguments = {"plan": {"mode": "dry", "beds": [1, 2]}, "mode": "wet", "kind": "b"}
    result = call(agent, "go", arguments)["result"]
    said = json.loads(result["content"][0]["text"])
    assert said == {"mode": "dry", "beds": [2, 4], "seconds": 3}
    assert printed(agent)[0] == "going DRY True b"
    error = call(agent, "go", {"plan": {"mode": "soaked", "beds": []}})["error"]
    assert error["code"] == -32602 and "arguments.plan.mode" in error["message"]


def test_the_line_of_a_failure_is_said_and_the_exit_code_is_1(agent):
    done = clawlite("ask", "fails", cwd=agent)
    line = TOOLS.splitlines().index("    return a / 0") + 1
    assert done.stdout == f"fails failed: ZeroDivisionError: division by zero (tools.py:{line})\n"
    assert done.returncode == 1
    done = clawlite("ask", "deep", cwd=agent)
    assert done.stdout == "deep failed: IndexError: list index out of range (helper.py:7)\n"
    assert done.returncode == 1


def test_the_log_of_one_call_is_bounded(agent):
    assert clawlite("ask", "floods", cwd=agent).returncode == 0
    lines = printed(agent)
    assert lines[0] == "x" * 1000
    if "process" in (agent / "claw.yaml").read_text():
        assert len(lines) == 17 and lines[-1].startswith("(it prints more")


def test_another_module_than_the_image_was_built_with_is_refused(agent):
    assert clawlite("build", cwd=agent).returncode == 0
    (agent / "helper.py").write_text(HELPER + "# changed\n")
    done = clawlite("ask", "steps", "claw.cbor", cwd=agent)
    assert done.returncode != 0 and "helper.py is not the file" in done.stderr
    (agent / "helper.py").unlink()
    done = clawlite("ask", "steps", "claw.cbor", cwd=agent)
    assert done.returncode != 0 and "the image needs its helper.py beside it" in done.stderr
