"""MCP servers at build time: listed, pinned, and refused (CKP 0.3.0 Tool, "MCP Compatibility")."""

import json
import tomllib

import mcp_agents
import pytest
from agents import clawlite

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder import build, check, tool_table
from clawlite.host.mcp import differences, listing


def entries(agent) -> list:
    return tomllib.loads((agent / "clawlite.lock").read_text())["document"]


def problem(agent):
    with pytest.raises(ManifestErrors) as caught:
        build.build(str(agent))
    (one,) = caught.value.problems
    return one


def test_a_build_pins_and_the_next_one_asks_nobody(tmp_path):
    """The runtime MUST obtain description and input_schema via tools/list."""
    agent = mcp_agents.write(tmp_path)
    first = build.build(str(agent))
    assert "mcp" in first["requires"]
    assert [uri.partition("#")[2] for uri in first["pinned"]] == ["t"]
    assert mcp_agents.methods(tmp_path) == [
        "server/discover",
        "initialize",
        "notifications/initialized",
        "tools/list",
    ]
    assert mcp_agents.processes(tmp_path) == []
    (entry,) = entries(agent)
    assert json.loads(entry["text"])["tools"]["echo"]["description"] == "Give a text back."
    second = build.build(str(agent))
    assert len(mcp_agents.methods(tmp_path)) == 4
    assert not second["changed"] and second["pinned"] == []
    (row,) = [row for row in tool_table.rows(str(agent)) if row["name"] == "echo"]
    assert row["description"] == "Give a text back." and row["input_schema"]["required"] == ["text"]
    assert row["handler"] == "MCP server: t/echo"


def test_all_pages_are_read(tmp_path):
    agent = mcp_agents.write(tmp_path, ["pages"])
    build.build(str(agent))
    assert mcp_agents.methods(tmp_path).count("tools/list") == 3
    assert len(json.loads(entries(agent)[0]["text"])["tools"]) == len(mcp_agents.TOOLS)


def test_a_server_that_ends_at_the_newer_era_is_asked_in_the_older_one(tmp_path):
    agent = mcp_agents.write(tmp_path, ["old"])
    build.build(str(agent))
    assert json.loads(entries(agent)[0]["text"])["handshake"] is True


def test_other_arguments_are_another_server(tmp_path):
    agent = mcp_agents.write(tmp_path)
    build.build(str(agent))
    mcp_agents.write(tmp_path, ["pages"])
    build.build(str(agent))
    assert mcp_agents.methods(tmp_path).count("tools/list") == 4
    assert len(entries(agent)) == 1


def test_what_a_server_changes_is_shown_and_not_taken(tmp_path):
    agent = mcp_agents.write(tmp_path, ["changed"])
    build.build(str(agent))
    before = (agent / "clawlite.lock").read_bytes()
    (tmp_path / "marks/changed").touch()
    build.build(str(agent))
    with pytest.raises(ClawError) as caught:
        build.build(str(agent), refresh=True)
    said = caught.value.message.split("\n")
    assert said[:5] == [
        "the MCP server t has changed what it lists:",
        "~ the tool echo has changed",
        "  description:",
        "    - Give a text back.",
        "    + Give a text back. And more.",
    ]
    assert any(line.startswith("    + ") and '"more"' in line for line in said[5:])
    assert "clawlite build --accept t takes it" in caught.value.hint
    assert (agent / "clawlite.lock").read_bytes() == before
    (agent / "clawlite.lock").unlink()
    assert build.build(str(agent))["changed"]


def test_what_a_trusted_server_changes_is_taken_at_each_build(tmp_path):
    agent = mcp_agents.write(tmp_path, ["changed"])
    settings = agent / "clawlite.toml"
    settings.write_text(settings.read_text() + 'trust = "start"\n')
    build.build(str(agent))
    (tmp_path / "marks/changed").touch()
    check.check(str(agent))
    assert build.build(str(agent))["changed"]
    (row,) = [row for row in tool_table.rows(str(agent)) if row["name"] == "echo"]
    assert row["description"] == "Give a text back. And more."
    settings.write_text(settings.read_text().replace('"start"', '"never"'))
    assert 'mcp.t.trust: expected "lock" or "start"' in problem(agent).text()


def test_a_trusted_server_gives_no_orders_either(tmp_path):
    agent = mcp_agents.write(tmp_path, ["orders"], tools=[mcp_agents.tool("echo")])
    settings = agent / "clawlite.toml"
    settings.write_text(settings.read_text() + 'trust = "start"\n')
    assert "gives orders to a model" in problem(agent).text()


def test_check_starts_nothing_and_says_what_is_missing(tmp_path):
    agent = mcp_agents.write(tmp_path)
    (said, *_) = check.check(str(agent))["not_asked"]
    assert "what this server offers is not known yet" in said and "clawlite build" in said
    assert mcp_agents.methods(tmp_path) == []
    build.build(str(agent))
    check.check(str(agent))


@pytest.mark.parametrize(
    "what, said",
    [
        ("neither", "it answers initialize with an error"),
        ("stranger", "it answered a request that was never sent, id 4711"),
        ("endless", "it lists more than 1000 tools, or 100 pages"),
        ("exits", "no licence for this machine"),
    ],
)
def test_a_server_that_cannot_be_asked(tmp_path, what, said):
    agent = mcp_agents.write(tmp_path, [what])
    with pytest.raises(ClawError) as caught:
        build.build(str(agent))
    assert said in caught.value.message and not (agent / "clawlite.lock").exists()
    assert mcp_agents.processes(tmp_path) == []


def test_a_change_is_taken_by_the_servers_name(tmp_path):
    agent = mcp_agents.write(tmp_path, ["changed"])
    build.build(str(agent))
    (tmp_path / "marks/changed").touch()
    with pytest.raises(ClawError, match='the manifest has no MCP server "u"') as caught:
        build.build(str(agent), accepted=["u"])
    assert "t" in caught.value.hint
    done = clawlite("build", str(agent), "--accept", "t", cwd=tmp_path)
    assert done.returncode == 0 and "    + Give a text back. And more.\n" in done.stderr, done
    (row,) = [row for row in tool_table.rows(str(agent)) if row["name"] == "echo"]
    assert row["description"] == "Give a text back. And more."
    assert build.build(str(agent), refresh=True)["changed"] is False


def test_another_argument_shows_what_it_changed(tmp_path):
    agent = mcp_agents.write(tmp_path, ["changed"])
    build.build(str(agent))
    (tmp_path / "marks/changed").touch()
    mcp_agents.write(tmp_path, ["changed", "more"])
    said = [one["message"] for one in build.build(str(agent))["warnings"]]
    assert any("~ the tool echo has changed" in one for one in said), said


def test_a_difference_is_read_line_by_line():
    tool = {"description": "One.\nTwo \x1b[2J.", "inputSchema": {"type": "object"}}
    other = dict(tool, description="One.\nThree \u202e.")
    old = {"handshake": True, "tools": {"a": tool, "b": tool, "d": tool}}
    new = {"handshake": False, "tools": {"a": other, "c": {"description": "x"}, "d": tool}}
    assert differences.difference(old, new) == [
        "~ the tool a has changed",
        "  description:",
        "      One.",
        "    - Two \\x1b[2J.",
        "    + Three \\u202e.",
        "- the tool b is gone",
        "+ the tool c is new",
        "    + {",
        '    +  "description": "x"',
        "    + }",
        "~ handshake has changed",
        "    - true",
        "    + false",
    ]
    many = {"tools": {"t%03d" % number: {} for number in range(300)}}
    assert len(differences.difference({"tools": {}}, many)) == differences.MAX_LINES + 1


def test_lines_that_are_no_messages_are_skipped(tmp_path):
    """A banner or a log on stdout: the SDKs of clients pass over it."""
    agent = mcp_agents.write(tmp_path, ["banner"], tools=[mcp_agents.tool("echo")])
    (warning,) = [one for one in build.build(str(agent))["warnings"] if "stdout" in one["message"]]
    assert "the MCP server t: it writes to stdout what is no message" in warning["message"]
    assert warning["line"] > 0 and warning["file"].endswith("claw.yaml")
    assert check.check(str(agent))["warnings"].count(warning) == 1


def test_a_server_that_says_no_message_at_all(tmp_path, monkeypatch):
    monkeypatch.setattr(listing, "TIMEOUT_S", 1)
    agent = mcp_agents.write(tmp_path, ["not-json"])
    with pytest.raises(ClawError) as caught:
        build.build(str(agent))
    said = 'within 1 s; what it writes to stdout is no message of MCP: "Hello!"'
    assert said in caught.value.message


def mixed(tmp_path, tool: dict):
    """Return the folder of an agent with *tool* of a server some of whose tools are odd."""
    agent = mcp_agents.write(tmp_path, ["mixed"], tools=[tool])
    (agent / "reflex.toml").write_text('[[rule]]\nwhen = "hi"\nsay = "ho"\n')
    return agent


def test_a_tool_that_cannot_be_taken_is_left_out(tmp_path):
    """The others stay, and keywords that JSON Schema does not know are annotations."""
    agent = mixed(tmp_path, mcp_agents.tool("all"))
    done = build.build(str(agent))
    names = [row["name"] for row in tool_table.rows(str(agent))]
    assert names == ["t__echo", "t__edit"]
    said = "\n".join(one["message"] for one in done["warnings"])
    for name, why in (
        ("no name, at all", "is no name that a model can call"),
        ("texts", "its inputSchema"),
        ("closed", "its inputSchema.unevaluatedProperties: "),
        ("wrong", "its inputSchema.type: "),
        ("rude", "gives orders to a model"),
    ):
        assert f'the tool "{name}" of the MCP server t is left out: ' in said and why in said, said
    assert 'the MCP server t: its tool "twice" is left out, because it is listed twice' in said
    assert said.count("the MCP server t: a tool of its list is left out, because it has no") == 2
    assert check.check(str(agent))["not_asked"] == []


@pytest.mark.parametrize("name", ["texts", "closed", "wrong", "rude"])
def test_one_that_is_bound_by_its_name_needs_a_word_of_the_maker(tmp_path, name):
    assert problem(mixed(tmp_path, mcp_agents.tool(name))).hint
    mine = mcp_agents.tool(name)
    mine["inline"].update(description="Mine.", input_schema={"type": "object"})
    build.build(str(mixed(tmp_path, mine)))


def test_a_keyword_that_the_maker_misspelt_is_told(tmp_path):
    mine = mcp_agents.tool("echo")
    mine["inline"]["input_schema"] = {"type": "object", "requird": ["text"]}
    assert 'did you mean "required"' in problem(mcp_agents.write(tmp_path, tools=[mine])).text()


def test_a_server_that_says_nothing_is_not_waited_for_longer_than_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(listing, "TIMEOUT_S", 1)
    agent = mcp_agents.write(tmp_path, ["silent"])
    with pytest.raises(ClawError) as caught:
        build.build(str(agent))
    assert "it did not list its tools within 1 s" in caught.value.message
    assert caught.value.hint and not (agent / "clawlite.lock").exists()
    assert mcp_agents.processes(tmp_path) == []


def test_a_program_that_is_not_there(tmp_path):
    tools = [mcp_agents.tool("echo", program="/no/such/program")]
    agent = mcp_agents.write(tmp_path, tools=tools)
    with pytest.raises(ClawError, match="/no/such/program cannot be started: No such file"):
        build.build(str(agent))


@pytest.mark.parametrize(
    "first, asks_for",
    [
        ("#!/no/such/python3", "/no/such/python3"),
        ("#!/usr/bin/env no-such-node", "no-such-node in PATH"),
        ("#!/usr/bin/python3\r", r"/usr/bin/python3\r (the line ends as on Windows)"),
    ],
)
def test_a_script_whose_interpreter_is_not_here(tmp_path, first, asks_for):
    script = tmp_path / "server"
    script.write_bytes(first.encode() + b"\nprint()\n")
    script.chmod(0o755)
    tools = [mcp_agents.tool("echo", program=str(script))]
    with pytest.raises(ClawError) as caught:
        build.build(str(mcp_agents.write(tmp_path, tools=tools)))
    said = "the first line of %s (#!) asks for %s, which cannot be started here" % (
        script,
        asks_for,
    )
    assert said in caught.value.message and "install it" in caught.value.hint


def test_a_tool_that_the_server_does_not_have(tmp_path):
    found = problem(mcp_agents.write(tmp_path, tools=[mcp_agents.tool("echo", "ecko")]))
    assert "tools[0].inline.mcp_source.tool_name: the MCP server t has no tool" in found.text()
    assert "echo" in found.hint


def test_without_tool_name_the_tool_of_the_same_name(tmp_path):
    done = build.build(str(mcp_agents.write(tmp_path, tools=[mcp_agents.tool("echo")])))
    assert [row["name"] for row in tool_table.rows(str(tmp_path / "agent"))] == ["echo"], done


def test_check_asks_no_server_at_a_url(tmp_path):
    far = {"inline": {"name": "far", "mcp_source": {"uri": "https://mcp.example.com/mcp"}}}
    build.build(str(mcp_agents.write(tmp_path)))
    agent = mcp_agents.write(tmp_path, tools=[mcp_agents.tool("echo"), far])
    (said, *_) = check.check(str(agent))["not_asked"]
    assert "what this server offers is not known yet" in said and "clawlite build" in said


def test_a_setting_for_the_other_kind_of_server(tmp_path):
    agent = mcp_agents.write(tmp_path)
    toml = agent / "clawlite.toml"
    toml.write_text(toml.read_text() + '\n[mcp.t.headers]\nX-Team = "garden"\n')
    found = problem(agent)
    assert "[mcp.t] headers is for another kind of server" in found.text()
    assert found.hint == "remove headers"


def test_two_servers_of_one_name(tmp_path):
    import sys

    other = tmp_path / "python"
    other.symlink_to(sys.executable)
    tools = [mcp_agents.tool("echo"), mcp_agents.tool("sum", program=str(other))]
    found = problem(mcp_agents.write(tmp_path, tools=tools))
    assert "t is the name of another MCP server already" in found.text()


def test_a_description_that_gives_orders_needs_one_of_the_maker(tmp_path):
    agent = mcp_agents.write(tmp_path, ["orders"], tools=[mcp_agents.tool("echo")])
    found = problem(agent)
    assert "gives orders to a model" in found.text() and "description" in found.hint
    mine = mcp_agents.tool("echo")
    mine["inline"]["description"] = "Give it back."
    mcp_agents.write(tmp_path, ["orders"], tools=[mine])
    build.build(str(agent))


def test_a_schema_that_gives_orders_needs_one_of_the_maker_too(tmp_path):
    mine = mcp_agents.tool("echo")
    mine["inline"]["description"] = "Give it back."
    found = problem(mcp_agents.write(tmp_path, ["orders-deep"], tools=[mine]))
    assert "gives orders to a model" in found.text() and "input_schema" in found.hint
    text = {"type": "object", "properties": {"text": {"type": "string"}}}
    mine["inline"]["input_schema"] = text
    build.build(str(mcp_agents.write(tmp_path, ["orders-deep"], tools=[mine])))


def test_the_hints_of_a_server_make_nothing_looser(tmp_path):
    """Annotations are untrusted hints: read-only is not believed, destructive is."""
    agent = mcp_agents.write(tmp_path)
    build.build(str(agent))
    (row,) = [row for row in tool_table.rows(str(agent)) if row["name"] == "sum"]
    assert row["annotations"]["readOnlyHint"] is False
    assert row["annotations"]["destructiveHint"] is True


def test_settings_of_a_server(tmp_path):
    agent = mcp_agents.write(tmp_path)
    settings = agent / "clawlite.toml"
    settings.write_text(settings.read_text() + 'environment = ["NOT A NAME"]\ncommand = "x"\n')
    with pytest.raises(ManifestErrors) as caught:
        build.build(str(agent))
    said = [one.text() for one in caught.value.problems]
    assert any("mcp.t.environment[0]: expected the name of a variable" in one for one in said)
    assert any("mcp.t.command: unknown field" in one for one in said)


def test_a_board_says_what_it_lacks(tmp_path):
    agent = mcp_agents.write(tmp_path)
    with pytest.raises(ManifestErrors, match="this needs mcp, which pico does not have"):
        build.build(str(agent), board="pico")
