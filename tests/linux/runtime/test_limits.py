"""Limits of tool calls, and tools that are tried again, in real processes (CKP 0.2.0, 5.4, 5.8)."""

import json
import signal

import pytest
from agents import Agent, eventually, linux, tool_call
from limited import LIMIT, calls, make


@pytest.fixture
def image(tmp_path):
    """Return a function that builds the agent with these limits: text -> path of its image."""
    return lambda limits=LIMIT: make(tmp_path, limits)


def serve(tmp_path, image):
    return Agent(
        linux("serve", image, "--stdio"), tmp_path, env={"MARKS": str(tmp_path)}
    ).initialize()


def log(tmp_path):
    """Return the events of the log."""
    (path,) = tmp_path.rglob("log.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_exceeds_the_calls_of_a_minute_is_refused(tmp_path, image):
    """5.8 ``tool_calls_per_minute``."""
    with serve(tmp_path, image()) as agent:
        assert calls(agent, 1, 2, 3, 4) == [None, None, -32011, -32011]
        agent.line(json.dumps(tool_call("echo", {"text": "x"}, 5)))
        error = agent.message()["error"]
        assert error["data"] == {
            "tool": "echo",
            "action": "deny",
            "limit": "tool_calls_per_minute",
            "hint": "call it later",
        }
        assert (
            error["message"]
            == "Policy denied: tool_calls_per_minute is 2, and echo would exceed it"
            and agent.is_serving()
        )


def test_a_call_that_the_minute_refused_is_not_remembered(tmp_path, image):
    """It did not run: once the minute is over, the same request does."""
    with serve(tmp_path, image()) as agent:
        assert calls(agent, 1, 2, 3) == [None, None, -32011]
        assert calls(agent, 3) == [-32011]
    assert [event.get("again") for event in log(tmp_path) if event["event"] == "tool.call"][
        -1
    ] is None, "it was judged anew"


def test_a_restart_does_not_reset_the_minute(tmp_path, image):
    image = image()
    with serve(tmp_path, image) as agent:
        assert calls(agent, 1) == [None]
        agent.signal(signal.SIGKILL)
        agent.wait()
    with serve(tmp_path, image) as agent:
        assert calls(agent, 2, 3) == [None, -32011]


def test_two_processes_of_an_agent_share_the_minute(tmp_path, image):
    image = image()
    with serve(tmp_path, image) as one, serve(tmp_path, image) as two:
        assert (
            calls(one, 1) == [None]
            and calls(two, 2) == [None]
            and calls(one, 3) == calls(two, 4) == [-32011]
        )


def test_a_batch_gets_no_more(tmp_path, image):
    with serve(tmp_path, image()) as agent:
        agent.line(json.dumps([tool_call("echo", {"text": "x"}, number) for number in range(1, 6)]))
        answers = agent.message()
    assert [answer["id"] for answer in answers if "result" in answer] == [1, 2] and len(
        answers
    ) == 5


def test_the_console_and_the_operator_share_the_minute(tmp_path, image):
    image = image()
    with Agent(linux("run", image), tmp_path) as agent:
        agent.line("say one")
        agent.expect("one\n")
        agent.line("say two")
        agent.expect("two\n")
        agent.line("say three")
        agent.expect("Policy denied: tool_calls_per_minute is 2, and echo would exceed it")
    with serve(tmp_path, image) as agent:
        assert calls(agent, 1) == [-32011]


def test_a_call_is_ended_and_the_agent_goes_on(tmp_path, image):
    """Also where no provider is asked over a network: nothing is owed to one."""
    made, marks = image(), {"MARKS": str(tmp_path)}
    with Agent(linux("run", made), tmp_path, terminal=True, env=marks) as agent:
        agent.expect("> ")
        agent.line("linger")
        eventually((tmp_path / "lingers").exists)
        agent.send(b"\x03")
        agent.expect("Interrupted")
        agent.expect("> ")
        agent.line("/status")
        agent.expect("READY, level")
        assert "bug" not in agent.text() + agent.errors()
    with serve(tmp_path, made) as agent:
        agent.line(json.dumps(tool_call("linger", {}, 1)))
        shutdown = {"method": "claw.shutdown", "params": {"timeout_ms": 0}}
        agent.line(json.dumps({"jsonrpc": "2.0", "id": 2, **shutdown}))
        answers = {one["id"]: one for one in (agent.message(), agent.message())}
        assert "error" in answers[1] and "bug" not in answers[1]["error"]["message"], answers
        assert "result" in answers[2]


@pytest.mark.parametrize("ms", [0, 300])
def test_a_shutdown_ends_the_agent_when_its_input_is_over(tmp_path, image, ms):
    """Also where the time for a drain runs out."""
    with serve(tmp_path, image()) as agent:
        shutdown = {"method": "claw.shutdown", "params": {"timeout_ms": ms}}
        records = tool_call("linger", {}, 1), {"jsonrpc": "2.0", "id": 2, **shutdown}
        agent.line("\n".join(json.dumps(one) for one in records))
        agent.end()
        answers = {one["id"]: one for one in (agent.message(), agent.message())}
        assert answers[2]["result"]["drained"] is False
        assert agent.wait() == 0


def test_counts_that_cannot_be_written_hold_until_the_process_ends(tmp_path, image):
    image = image()
    (tmp_path / "state/limited/minute.lock").mkdir(parents=True)
    with serve(tmp_path, image) as agent:
        assert calls(agent, 1, 2, 3) == [None, None, -32011]
        assert agent.errors().count("\n") == 1 and "minute.json cannot be written" in agent.errors()


def test_counts_that_can_be_written_again_are_whole_and_told_anew(tmp_path, image):
    image = image("rate_limits: { tool_calls_per_minute: 4 }")
    lock = tmp_path / "state/limited/minute.lock"
    lock.mkdir(parents=True)
    with serve(tmp_path, image) as agent:
        assert calls(agent, 1) == [None]
        lock.rmdir()
        assert calls(agent, 2) == [None]
        lock.unlink()
        lock.mkdir()
        assert calls(agent, 3) == [None]
        assert agent.errors().count("minute.json cannot be written") == 2
    lock.rmdir()
    with serve(tmp_path, image) as agent:  # the first two are on the disk
        assert calls(agent, 4, 5, 6) == [None, None, -32011]


def test_without_limits_nothing_is_kept(tmp_path, image):
    with serve(tmp_path, image("rate_limits: {}")) as agent:
        assert calls(agent, 1, 2, 3) == [None] * 3
    assert not list(tmp_path.rglob("minute.json")) and not list(tmp_path.rglob("meters.json"))


def test_a_tool_that_may_run_twice_is_tried_again(tmp_path, image):
    """5.4 ``retry``: each attempt is in the log, the call once, and it counts once."""
    with serve(tmp_path, image()) as agent:
        agent.line(json.dumps(tool_call("flaky", {}, 1)))
        assert agent.message()["result"]["content"][0]["text"] == "after 3"
        assert calls(agent, 2, 3) == [None, -32011]
        agent.end()
        agent.wait()
    tried = [
        (e["attempt"], e["status"], e.get("error"))
        for e in log(tmp_path)
        if e["event"] == "tool.attempt"
    ]
    assert tried == [
        (1, "error", "OSError: the bus is busy (tools.py:23)"),
        (2, "error", "OSError: the bus is busy (tools.py:23)"),
        (3, "ok", None),
    ]
    (called,) = [e for e in log(tmp_path) if e["event"] == "tool.call" and e["tool"] == "flaky"]
    assert called["attempts"] == 3 and called["status"] == "ok"


def test_ctrl_c_ends_a_tool_between_its_attempts(tmp_path, image):
    with serve(tmp_path, image()) as agent:
        agent.line(json.dumps(tool_call("flaky", {}, 1)))
        # 2 s to drain, and it needs as long: whichever is first, it ends in order
        agent.end()
        assert agent.wait() == 0
