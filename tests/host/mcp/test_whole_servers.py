"""All tools of an MCP server at once (CKP 0.3.0 Tool, mcp_source without tool_name; clawft tool
system, "Internal-Only Servers").
"""

import json

import mcp_agents
import pytest

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder import build, check, tool_table

REMOTE = (
    '{ inline: { protocol: openai-compatible, endpoint: "http://127.0.0.1:9/v1", model: m, '
    "auth: { type: none } } }"
)


def write(folder, what=(), skill=None, tools=(), **fields):
    """Write an agent that has the test's server whole, and asks a remote model."""
    whole = mcp_agents.tool("all")
    whole["inline"].update(fields)
    agent = mcp_agents.write(folder, what, tools=[whole, *tools])
    claw = agent / "claw.yaml"
    text = claw.read_text()
    start = text.index("{ inline: { protocol: custom")
    text = text[:start] + REMOTE + text[text.index("]", start) :]
    if skill is not None:
        one = {"name": "s", "description": "d", "instruction": "i", "tools_required": skill}
        text += "  skills: " + json.dumps([{"inline": one}]) + "\n"
    claw.write_text(text)
    (agent / "reflex.toml").unlink()
    settings = agent / "clawlite.toml"
    settings.write_text(settings.read_text().replace('reflex = "reflex.toml"\n', ""))
    return agent


def shown(agent) -> list:
    """Return the names of the tools that the image shows a model."""
    text = (agent / "claw.cbor").read_bytes().decode("latin-1")  # requests are JSON in it
    return [name for name in (f"t__{one}" for one in mcp_agents.TOOLS) if f'"{name}"' in text]


def problems(agent) -> str:
    with pytest.raises(ManifestErrors) as caught:
        build.build(str(agent))
    return "\n".join(one.text() for one in caught.value.problems)


def test_each_tool_of_the_server_has_its_name_and_what_the_document_says(tmp_path):
    agent = write(tmp_path, timeout_ms=5000)
    build.build(str(agent))
    rows = {row["name"]: row for row in tool_table.rows(str(agent))}
    assert sorted(rows) == sorted("t__" + name for name in mcp_agents.TOOLS)
    assert rows["t__echo"]["handler"] == "MCP server: t/echo"
    assert rows["t__echo"]["description"] == "Give a text back."
    assert {row["timeout_ms"] for row in rows.values()} == {5000}
    assert not build.build(str(agent))["changed"]


def test_a_model_sees_none_of_them_unless_a_skill_needs_it(tmp_path):
    agent = write(tmp_path)
    build.build(str(agent))
    assert shown(agent) == []
    write(tmp_path, skill=["t__s*", "t__echo"])
    build.build(str(agent))
    assert shown(agent) == ["t__echo", "t__sum", "t__sleep"]


def test_a_pattern_of_a_skill_waits_for_the_list(tmp_path):
    """Before the server was asked, nobody knows what it has."""
    agent = write(tmp_path, skill=["t__s*"])
    said = json.dumps(check.check(str(agent))["not_asked"])
    assert "what this server offers is not known yet" in said
    build.build(str(agent))
    check.check(str(agent))
    write(tmp_path, skill=["t__x*"])
    assert "no Tool has a name like" in problems(agent)


def test_one_of_them_may_be_bound_as_well(tmp_path):
    agent = write(tmp_path, tools=[mcp_agents.tool("mine", "echo")])
    build.build(str(agent))
    names = [row["name"] for row in tool_table.rows(str(agent))]
    assert "mine" in names and "t__echo" in names


def test_what_a_server_says_itself_is_not_said_for_all(tmp_path):
    agent = write(tmp_path)
    build.build(str(agent))
    write(tmp_path, description="All of them.")
    assert "means all 6 tools of the MCP server t, which say it themselves" in problems(agent)


def test_a_name_that_no_model_can_call(tmp_path):
    agent = write(
        tmp_path,
        mcp_source={"uri": mcp_agents.tool("x", server="a b")["inline"]["mcp_source"]["uri"]},
    )
    settings = agent / "clawlite.toml"
    settings.write_text(settings.read_text().replace("[mcp.t]", '[mcp."a b"]'))
    assert '"a b__echo" is no name that a model can call' in problems(agent)


def test_five_hundred_tools(tmp_path):
    """They are compiled, and the pins of all of them are in the image."""
    agent = write(tmp_path, ["many"])
    build.build(str(agent))
    rows = tool_table.rows(str(agent))
    assert len(rows) == 500 and rows[499]["name"].startswith("t__many_")


def test_two_documents_for_all_tools_of_a_server(tmp_path):
    agent = write(tmp_path)
    build.build(str(agent))
    write(tmp_path, tools=[mcp_agents.tool("again")])
    assert 'a Tool "t__echo" is already declared' in problems(agent)


def test_a_server_without_tools(tmp_path):
    agent = write(tmp_path, ["none"])
    with pytest.raises((ManifestErrors, ClawError), match="has no tool"):
        build.build(str(agent))
