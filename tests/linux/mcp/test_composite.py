"""A composite tool whose skill brings up the tools of an MCP server by a pattern (CKP 0.3.0 Tool,
"Composite"; clawft tool system, "Internal-Only Servers").
"""

import json

import mcp_agents
import pytest
from agents import Agent, linux
from llm_server import Server, calls, say
from providers.project import texts

from clawlite.host.builder.build import build_beside


def write(tmp_path, url: str, level: str):
    """Write an agent with all tools of the test's server, and a composite tool that may use two."""
    composite = {
        "name": "tidied",
        "description": "Tidy up",
        "input_schema": {"type": "object", "properties": {}},
        "composite": True,
        "skill_ref": "tidy",
        "annotations": {"readOnlyHint": True},
    }
    whole = mcp_agents.tool("all")
    agent = mcp_agents.write(tmp_path, level=level, tools=[whole, {"inline": composite}])
    claw = agent / "claw.yaml"
    text = claw.read_text()
    start = text.index("{ inline: { protocol: custom")
    model = {"protocol": "openai-compatible", "endpoint": url, "model": "m"}
    model = {"inline": dict(model, auth={"type": "none"}, streaming=False)}
    text = text[:start] + json.dumps(model) + text[text.index("]", start) :]
    skill = {"name": "tidy", "description": "Tidy", "instruction": "Echo it."}
    text += "  skills: " + json.dumps([{"inline": dict(skill, tools_required=["t__e*"])}]) + "\n"
    claw.write_text(text)
    settings = agent / "clawlite.toml"
    settings.write_text(settings.read_text().replace('reflex = "reflex.toml"\n', ""))
    return agent


@pytest.mark.parametrize("level", ["none", "process"])
def test_a_composite_tool_calls_tools_that_a_pattern_brings_up(tmp_path, level):
    """Its turn may call what the pattern names, and nothing else of the server."""
    script = [
        calls(("tidied", {})),
        calls(("t__echo", {"text": "found"}), ("t__sum", {"text": "four"})),
        say("It is tidy."),
        say("Done."),
    ]
    with Server(script) as server:
        agent = write(tmp_path, server.endpoint, level)
        words = linux("ask", "Tidy up.", build_beside(str(agent)))
        with Agent(words, tmp_path) as one:
            one.wait()
            assert "Done." in one.seen.decode() or one.expect("Done.")
        inner, told = server.requests[1], server.requests[2]
    assert any(tool["function"]["name"] == "t__echo" for tool in inner.body["tools"])
    said = [text for role, text in texts(told, "openai") if role == "tool"]
    assert said == ["found", "t__sum: the skill tidy is under way, which uses only: t__echo"]
    assert mcp_agents.methods(tmp_path).count("tools/call") == 1
