"""Tools of the providers in tools.py, called through the agent's one pipeline, in its process and
in the sandbox, and by MCP clients (clawft tool system, "Custom Tool Providers").
"""

import json

import mcp_agents
import mcp_clients
import pytest
from agents import Agent, linux, tool_call

from clawlite.host.builder.build import build_beside

CLAW = """\
claw: "0.3.0"
kind: Claw
metadata: { name: shed, version: "1.0.0" }
spec:
  identity: { inline: { personality: "You water.", autonomy: autonomous } }
  providers:
    - inline: { protocol: custom, endpoint: "builtin:reflex", model: m, auth: { type: none } }
  sandbox: { inline: %s }
  policies: [{ inline: { rules: [
    { id: no-drain, action: deny, scope: tool, match: { name: "plants__drain" } },
    { id: ask, action: require-approval, scope: tool, match: { name: "plants__flood" } },
    { id: all, action: allow, scope: all } ] } }]
"""
TOOLS = """\
import os

SCHEMA = {"type": "object", "properties": {"bed": {"type": "string"}}, "required": ["bed"]}
WORDS = %r


class Plants:
    namespace = "plants"

    def list_tools(self):
        said = open(WORDS).read() if os.path.exists(WORDS) else "Water a bed."
        names = ("water", "drain", "flood", "fail")
        return [
            {"name": n, "description": said, "inputSchema": SCHEMA} for n in names if n not in said
        ]

    def call_tool(self, name, arguments):
        if name == "fail":
            raise ValueError("the pipe is dry")
        return {"did": name, "bed": arguments["bed"], "pid": os.getpid()}


class Pots(Plants):
    namespace = "pots"


TOOL_PROVIDERS = [Plants(), Pots()]
"""


@pytest.fixture(params=["none", "process"])
def level(request):
    return request.param


@pytest.fixture
def image(tmp_path, level):
    """An agent whose providers' descriptions are what the file ``words`` says."""
    marks = tmp_path / "marks"
    marks.mkdir()
    marks.chmod(0o777)
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "claw.yaml").write_text(CLAW % json.dumps(mcp_agents.sandbox(level, marks)))
    (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
    (folder / "reflex.toml").write_text(
        '[[rule]]\nwhen = "water {words:text}"\ncall = "plants__water"\n'
        'arguments = { bed = "{words}" }\nthen = [{ say = "{result}" }]\n'
    )
    (folder / "tools.py").write_text(TOOLS % str(marks / "words"))
    return build_beside(str(folder))


def called(agent, request: dict) -> dict:
    agent.record(request)
    return agent.message()


def result_of(answer: dict):
    return json.loads(answer["result"]["content"][0]["text"])


def test_each_provider_answers_for_itself(image, level, tmp_path):
    with Agent(linux("serve", "--stdio", image), tmp_path) as agent:
        agent.initialize()
        for number, name in enumerate(("plants__water", "pots__water"), 2):
            result = result_of(called(agent, tool_call(name, {"bed": "roses"}, number)))
            assert (result["did"], result["bed"]) == ("water", "roses")
            assert (result["pid"] == agent.process.pid) == (level == "none")


def test_gates_stand_before_it(image, tmp_path):
    with Agent(linux("serve", "--stdio", image), tmp_path) as agent:
        agent.initialize()
        bad = called(agent, tool_call("plants__water", {"bed": 7}, 2))
        assert bad["error"]["code"] == -32602
        denied = called(agent, tool_call("plants__drain", {"bed": "roses"}, 3))
        assert denied["error"]["code"] == -32011
        failed = called(agent, tool_call("plants__fail", {"bed": "roses"}, 4))
        assert "ValueError: the pipe is dry" in json.dumps(failed)


def test_a_list_that_changed_is_refused(image, tmp_path):
    words = tmp_path / "marks/words"
    with Agent(linux("serve", "--stdio", image), tmp_path) as agent:
        agent.initialize()
        words.write_text("Flush a bed.")
        said = called(agent, tool_call("plants__water", {"bed": "roses"}, 2))["error"]
        assert said["code"] == -32600
        assert "tool provider plants has changed the description of its tool water" in json.dumps(
            said
        )
        words.write_text("No more water.")
        said = called(agent, tool_call("plants__water", {"bed": "roses"}, 3))["error"]
        assert said["code"] == -32600 and "has no tool water any more" in said["message"]
        words.unlink()
        said = called(agent, tool_call("plants__water", {"bed": "roses"}, 4))
        assert result_of(said)["did"] == "water"


def test_a_person_at_the_console(image, tmp_path):
    with Agent(linux("run", image), tmp_path) as agent:
        agent.line("water the roses")
        assert '"did":"water"' in agent.expect('"bed":"the roses"') + agent.expect("\n")


def test_mcp_clients(image, tmp_path):
    """``clawlite mcp serve`` offers them, with approval asked of the client's person."""
    steps = [
        ["list"],
        ["call", "plants__water", {"bed": "roses"}],
        ["call", "plants__flood", {"bed": "roses"}],
        ["call", "plants__drain", {"bed": "roses"}],
    ]
    command = linux("mcp", "serve", image)
    said = mcp_clients.sdk("sdk2", tmp_path, steps, says="accept", command=command)
    tools, water, flood, drain = said["results"]
    named = {tool["name"]: tool for tool in tools["tools"]}
    assert {"plants__water", "pots__water"} <= set(named) and "plants" not in named
    assert named["plants__water"]["inputSchema"]["required"] == ["bed"]
    assert json.loads(water["content"][0]["text"])["did"] == "water"
    assert json.loads(flood["content"][0]["text"])["did"] == "flood" and len(said["asked"]) == 1
    assert drain["isError"] and drain["_meta"]["clawlite/error"]["code"] == -32011


def test_nobody_else_loads_what_they_need(tmp_path):
    """An agent without tool providers does not import their module."""
    (tmp_path / "claw.yaml").write_text(CLAW % '{ "level": "none" }')
    (tmp_path / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
    (tmp_path / "reflex.toml").write_text('[[rule]]\nwhen = "hi"\ncall = "loaded"\n')
    (tmp_path / "tools.py").write_text(
        'import sys\n\n\ndef loaded() -> bool:\n    """Whether it is."""\n'
        '    return "clawlite.protocols.mcp.tool_provider" in sys.modules\n'
    )
    image = build_beside(str(tmp_path))
    with Agent(linux("serve", "--stdio", image), tmp_path) as agent:
        agent.initialize()
        assert result_of(called(agent, tool_call("loaded", {}, 2))) is False
