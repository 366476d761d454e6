"""Tools of MCP servers while an agent runs: called through the pipeline, in the sandbox or without
one, and gone with the agent (CKP 0.3.0 Tool, "MCP Compatibility").
"""

import json
import os
import signal
from pathlib import Path

import mcp_agents
import pytest
from agents import Agent, eventually, linux, tool_call

LEVELS = ("none", "process")


@pytest.fixture(params=LEVELS)
def level(request):
    return request.param


def agent_of(tmp_path, *args, **named):
    return Agent(
        linux("serve", mcp_agents.build(tmp_path, *args, **named), "--stdio"), tmp_path
    ).initialize()


def called(agent, name: str, text: str = "a", number: int = 1) -> tuple:
    """Return (text, None) of a result, or (None, error); a tool that failed has no code."""
    agent.line(json.dumps(tool_call(name, {"text": text}, number)))
    answer = agent.message()
    if "error" in answer:
        return None, answer["error"]
    text = answer["result"]["content"][0]["text"]
    return (None, {"message": text}) if answer["result"].get("isError") else (text, None)


def test_calls_of_one_process(tmp_path, level):
    """5.4: a server is asked by MCP; it lives as long as its agent, and not longer."""
    with agent_of(tmp_path, level=level) as agent:
        assert mcp_agents.processes(tmp_path) == [], "READY does not wait for a server"
        for number in range(3):
            assert called(agent, "echo", "x%d" % number, number) == ("x%d" % number, None)
        assert len(mcp_agents.methods(tmp_path)) == 4 + 3 + 3  # of the build, of the start, calls
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""
    assert mcp_agents.processes(tmp_path) == []


def test_what_comes_back(tmp_path, level):
    with agent_of(tmp_path, level=level) as agent:
        assert called(agent, "sum", "four") == ('{"length":4}', None)
        assert called(agent, "picture", number=2)[0] == '["image" "image/png", 3 bytes, not shown]'
        assert "the tool failed: no such file" in called(agent, "fail", "file", 3)[1]["message"]


def test_it_runs_where_tools_run(tmp_path):
    """5.4: the server is in the sandbox of the agent's tools, with its own variables alone."""
    named = {"level": "process", "more": '[sandbox]\nenvironment = ["SECRET"]\n'}
    with agent_of(tmp_path, **named) as agent:
        cwd, uid, names = json.loads(called(agent, "where")[0])
        assert cwd == str(tmp_path / "marks"), "the folder that tools may write"
        assert uid == (os.getuid() or 65534)
        assert "SECRET" not in names and "CLAWLITE_STATE" not in names


def test_a_policy_that_denies_asks_no_server(tmp_path):
    """5.4: calls go through policy."""
    rules = [{"id": "no", "action": "deny", "scope": "all"}]
    with agent_of(tmp_path, rules=rules) as agent:
        before = mcp_agents.methods(tmp_path)
        assert called(agent, "echo")[1]["code"] == -32011
        assert mcp_agents.methods(tmp_path) == before


def test_arguments_that_do_not_fit_the_pinned_schema(tmp_path):
    with agent_of(tmp_path) as agent:
        before = mcp_agents.methods(tmp_path)
        agent.line(json.dumps(tool_call("echo", {"text": 5}, 1)))
        assert agent.message()["error"]["code"] == -32602
        assert mcp_agents.methods(tmp_path) == before


def test_what_changed_since_the_build_is_refused(tmp_path, level):
    """Nothing that a server changes takes effect by itself."""
    with agent_of(tmp_path, ["changed"], level=level) as agent:
        (tmp_path / "marks/changed").touch()
        error = called(agent, "echo")[1]
        assert error["code"] == -32600 and error["data"]["ran"] is False
        assert "has changed the description and input schema of its tool echo" in error["message"]
        assert "tools/call" not in mcp_agents.methods(tmp_path)


def test_a_list_that_changes_while_the_agent_runs_is_looked_at_again(tmp_path):
    with agent_of(tmp_path, ["changed", "notify"]) as agent:
        assert called(agent, "echo", number=1)[0] == "a"
        assert called(agent, "echo", number=2)[0] == "a", "a list that is the same changes nothing"
        (tmp_path / "marks/changed").touch()
        found = []

        def is_refused():  # it tells after an answer, so one more call may have been sent before
            found.append(called(agent, "echo", number=3 + len(found)))
            return found[-1][1] is not None

        eventually(is_refused)
        assert "has changed the description and input schema" in found[-1][1]["message"]
        assert called(agent, "sum", number=60)[1]["data"]["ran"] is False


def until_answered(agent, number: int) -> list:
    """Call ``echo`` until it answers; return the errors of before."""
    errors = []

    def answers():
        text, error = called(agent, "echo", "back", number + len(errors))
        if error is not None:
            errors.append(error)
        return text == "back"

    eventually(answers)
    return errors


def test_a_server_that_dies_in_a_call_is_started_again(tmp_path, level):
    """What the call did is not known, so nothing sends it again."""
    with agent_of(tmp_path, ["dies"], level=level) as agent:
        error = called(agent, "echo")[1]
        assert "the MCP server t failed during the call: it ended" in error["message"]
        assert "the disk is gone" in error["message"]
        for error in until_answered(agent, 2):  # none where the machine took longer than the pause
            assert "has failed 1 times in a row" in error["message"]
            assert error["data"]["ran"] is False
        assert mcp_agents.methods(tmp_path).count("tools/call") == 2


@pytest.mark.parametrize(
    "what, said",
    [
        ("flood", "it sent 10000 messages that answer nothing"),
        ("huge", "it sent a message of more than 4194304 bytes"),
    ],
)
def test_a_server_without_measure_is_ended(tmp_path, level, what, said):
    with agent_of(tmp_path, [what], level=level) as agent:
        assert said in called(agent, "echo")[1]["message"]
        agent.line('{"jsonrpc": "2.0", "id": 9, "method": "claw.status"}')
        assert agent.message()["result"]["state"] == "READY"
    eventually(lambda: mcp_agents.processes(tmp_path) == [])


def test_a_server_that_ends_between_calls_is_started_again(tmp_path, level):
    """Nobody waits for it then, and its end must be seen all the same."""
    with agent_of(tmp_path, ["idle"], level=level) as agent:
        assert called(agent, "echo", "first")[0] == "first"
        until_answered(agent, 2)
        assert mcp_agents.methods(tmp_path).count("tools/call") == 2


def test_a_server_that_plays_a_sandbox_that_could_not_start_it(tmp_path, level):
    with agent_of(tmp_path, ["odd"], level=level) as agent:
        (tmp_path / "marks/now").touch()
        assert "the MCP server t failed" in called(agent, "echo")[1]["message"]
        agent.line('{"jsonrpc": "2.0", "id": 9, "method": "claw.status"}')
        assert agent.message()["result"]["state"] == "READY"


def test_a_call_that_takes_too_long_is_cancelled(tmp_path):
    tools = [dict(mcp_agents.tool("sleep")["inline"], timeout_ms=300)]
    tools = [{"inline": tools[0]}, mcp_agents.tool("echo")]
    with agent_of(tmp_path, tools=tools) as agent:
        assert called(agent, "sleep")[1]["code"] == -32014


def test_a_server_that_hangs_is_ended_and_started_again(tmp_path, level):
    """Its second call in a row without an answer says so; one alone may just be slow."""
    tools = [{"inline": dict(mcp_agents.tool("sleep")["inline"], timeout_ms=300)}]
    with agent_of(tmp_path, tools=[*tools, mcp_agents.tool("echo")], level=level) as agent:
        assert called(agent, "echo", "first")[0] == "first"
        for number in (2, 3):
            assert called(agent, "sleep", number=number)[1]["code"] == -32014
        for error in until_answered(agent, 4):
            assert "two calls in a row were not answered in time" in error["message"]
            assert error["data"]["ran"] is False


def test_a_workspace_that_cannot_be_made(tmp_path):
    with agent_of(tmp_path) as agent:
        workspace = next((tmp_path / "state").rglob("served")) / "workspace"
        workspace.write_text("in the way")
        error = called(agent, "echo")[1]
        assert "cannot be started" in error["message"] and "File exists" in error["message"]
        assert agent.is_serving()


def test_a_program_that_the_sandbox_does_not_show(tmp_path):
    agent = mcp_agents.write(tmp_path, level="process")
    from clawlite.host.build.build import build_beside

    build_beside(str(agent))
    claw = agent / "claw.yaml"
    box = json.dumps(mcp_agents.sandbox("process", tmp_path / "marks"))
    claw.write_text(claw.read_text().replace(box, '{"name": "box", "level": "process"}'))
    with Agent(
        linux("serve", build_beside(str(agent)), "--stdio"), tmp_path
    ).initialize() as running:
        error = called(running, "echo")[1]
        assert "No such file" in error["message"] and "what is mounted" in error["message"]


def test_nothing_is_left_of_an_agent_that_is_killed(tmp_path, level):
    with agent_of(tmp_path, level=level) as agent:
        assert called(agent, "echo")[0] == "a"
        assert mcp_agents.processes(tmp_path)
        agent.signal(signal.SIGKILL)
        agent.wait()
        eventually(lambda: mcp_agents.processes(tmp_path) == [])


def test_what_a_server_started_ends_with_it(tmp_path, level):
    with agent_of(tmp_path, ["child"], level=level) as agent:
        assert called(agent, "echo")[0] == "a"
        agent.end()
        agent.wait()
    assert mcp_agents.processes(tmp_path) == []


def test_a_published_server_of_the_newer_era(tmp_path):
    """mcp-server-time, on the official SDK."""
    tools = [
        mcp_agents.tool("convert", "convert_time"),
        mcp_agents.tool("echo", "get_current_time"),
    ]
    args = ["-m", "mcp_server_time", "--local-timezone", "UTC"]
    with agent_of(tmp_path, tools=tools, args=args, level="process") as agent:
        arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        agent.line(json.dumps(tool_call("convert", arguments, 1)))
        text = agent.message()["result"]["content"][0]["text"]
        assert json.loads(text)["target"]["datetime"].endswith("T21:00:00+09:00")
        arguments["time"] = "25:00"
        agent.line(json.dumps(tool_call("convert", arguments, 2)))
        assert "Invalid time format" in json.dumps(agent.message())


def test_an_agent_without_servers_imports_nothing_of_mcp(tmp_path):
    import subprocess
    import sys

    code = (
        "import sys; import clawlite.linux.runtime.shell, clawlite.linux.tools.dispatch; "
        "print([name for name in sys.modules if '.mcp' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
    assert Path(mcp_agents.SERVER).exists()
