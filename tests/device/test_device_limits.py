"""A board keeps limits of tool calls, and tries tools again, without anything remote (CKP 0.2.0,
5.4, 5.8).
"""

import json
import os
import signal
import subprocess

import pico_stack
import pytest
from agents import INITIALIZE, Agent, board, tool_call
from limited import calls, make

from clawlite.host.firmware import firmware

HEAP = "100k"  # 40 calls, each counted in a file: 64-bit unix port, linked modules


@pytest.fixture
def device(micropython, tmp_path):
    """Return a function that starts the board over the agent."""

    def start():
        words, env = board(image, "--stdio")
        return Agent(words, tmp_path, env=dict(env, MARKS=str(tmp_path))).initialize()

    image = make(tmp_path)
    return start


def test_a_restart_does_not_reset_the_minute(tmp_path, device):
    """5.8 ``tool_calls_per_minute``."""
    with device() as agent:
        assert calls(agent, 1) == [None]
        agent.signal(signal.SIGKILL)
        agent.wait()
    with device() as agent:
        assert calls(agent, 2, 3, 4) == [None, -32011, -32011]
    counted = json.loads((tmp_path / "agent/meters.json").read_text())[".calls"]
    assert sum(counted[1::2]) == 2


def test_a_call_is_ended_and_the_agent_goes_on(tmp_path, device):
    """Also where no provider is asked over a network: nothing is owed to one."""
    with device() as agent:
        agent.line(json.dumps(tool_call("linger", {}, 1)))
        shutdown = {"method": "claw.shutdown", "params": {"timeout_ms": 0}}
        agent.line(json.dumps({"jsonrpc": "2.0", "id": 2, **shutdown}))
        answers = {one["id"]: one for one in (agent.message(), agent.message())}
        assert "error" in answers[1] and "bug" not in answers[1]["error"]["message"], answers
        assert "result" in answers[2]


def test_a_person_sees_the_status_of_an_agent_with_limits(tmp_path, device):
    words, env = board(tmp_path / "agent/claw.cbor")
    with Agent(words, tmp_path, env=dict(env, MARKS=str(tmp_path))) as agent:
        agent.line("say hello")
        agent.expect("hello\n")
        agent.line("/status")
        agent.expect("READY, level")
        assert agent.errors() == ""


def test_counts_that_cannot_be_written_hold_until_the_board_restarts(tmp_path, device):
    with device() as agent:
        assert calls(agent, 1) == [None]
        (tmp_path / "agent/meters.json.new").mkdir()  # as a full flash, nothing can be written
        assert calls(agent, 2, 3) == [None, -32011]
        assert agent.errors().count("meters.json cannot be written") == 1
        assert "make room" in agent.errors() and agent.is_serving()


def test_damaged_meters_are_told_and_kept(tmp_path, device):
    """A limit must not be reset unseen; of three damaged files the first and the last are kept."""
    path = tmp_path / "agent/meters.json"
    with device() as agent:
        assert calls(agent, 1) == [None]
    for bad, name in (
        ('{".calls": [', "meters.json.damaged"),
        ("[1, 2]", "meters.json.damaged.2"),
        ("{", "meters.json.damaged.2"),
    ):
        path.write_text(bad)
        with device() as agent:
            assert calls(agent, 1) == [None]
            agent.end()
            assert agent.errors() == (
                "clawlite: the meters of this agent were damaged and start anew (%s)\n" % name
            )
        assert path.with_name(name).read_text() == bad
    assert path.with_name("meters.json.damaged").read_text() == '{".calls": ['
    path.write_text('{".calls": [1], "first": "x", "second": [true, 2], "third": [-1, 2]}')
    with device() as agent:
        assert calls(agent, 1) == [None], "entries of a wrong shape count for nothing"


def test_meters_that_cannot_be_read_are_told(tmp_path, device):
    path = tmp_path / "agent/meters.json"
    path.symlink_to("/proc/self/mem")  # whose first byte cannot be read
    with device() as agent:
        assert calls(agent, 1) == [None]
        agent.end()
        assert agent.errors() == (
            "clawlite: the meters of this agent cannot be read ([Errno 5] EIO) and start anew: "
            "look at the flash\n"
        )
    assert not path.is_symlink() and ".calls" in json.loads(path.read_text())


def test_a_tool_that_may_run_twice_is_tried_again(device):
    """5.4 ``retry``."""
    with device() as agent:
        agent.line(json.dumps(tool_call("flaky", {}, 1)))
        assert agent.message()["result"]["content"][0]["text"] == "after 3"


def test_counting_fits_a_small_heap(micropython, mpy_cross, tmp_path):
    firmware.build(tmp_path / "tree", mpy_cross)
    (tmp_path / "tree/start.py").write_text("import sys, main\nsys.exit(main.main(sys.argv[1:]))\n")
    image = make(tmp_path, "rate_limits: { tool_calls_per_minute: 30 }")
    lines = [{"jsonrpc": "2.0", "id": 0, "method": "claw.initialize", "params": INITIALIZE}]
    lines += [tool_call("echo", {"text": "x" * 100}, number, "limited") for number in range(1, 41)]
    done = subprocess.run(
        [
            pico_stack.micropython(),
            "-X",
            "heapsize=" + HEAP,
            str(tmp_path / "tree/start.py"),
            image,
            "--stdio",
        ],
        capture_output=True,
        timeout=300,
        input="".join(json.dumps(line) + "\n" for line in lines).encode(),
        env=dict(os.environ, MICROPYPATH=f"{tmp_path / 'tree'}:.frozen"),
    )
    assert done.returncode == 0 and done.stderr == b"", done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    codes = [answer.get("error", {}).get("code") for answer in answers if answer.get("id")]
    assert codes == [None] * 30 + [-32011] * 10
