"""``clawlite logs``: what was, and what happens."""

import json
import signal

import pytest
from agents import Agent, eventually, linux

from clawlite.linux.monitor.event_line import show_event
from clawlite.linux.monitor.events import Filter, read_events

CALL = {
    "event": "tool.call",
    "tool": "water",
    "caller": "provider",
    "arguments": {"seconds": 3},
    "action": "require-approval",
    "rule_id": "ask",
    "status": "refused",
    "code": -32013,
    "timestamp": "2026-11-29T20:34:45Z",
}


def lines_of(agent) -> list:
    assert agent.wait() == 0, agent.errors()
    return agent.text().splitlines()


def test_the_last_events(greenhouse, command):
    greenhouse.line("water the plants for 2 seconds")
    greenhouse.expect("Approve")
    greenhouse.line("n")
    greenhouse.expect("said no")
    lines = lines_of(command("logs"))
    assert any("water(seconds=2) denied" in line and "by=console" in line for line in lines)
    assert any("refused -32013 by provider  require-approval" in line for line in lines)
    assert "\x1b" not in "".join(lines) and "turn.ended" in lines[-1]
    (only,) = lines_of(command("logs", "--event", "tool", "--status", "denied"))
    assert "tool.approval" in only
    (only,) = json.loads("\n".join(lines_of(command("logs", "--json", "-n", "1"))))
    assert only["event"] == "turn.ended" and only["agent"] == "g"
    nothing = command("logs", "--tool", "none")
    assert lines_of(nothing) == [] and "Nothing of that" in nothing.errors()


def test_what_happens_is_followed_until_ctrl_c(greenhouse, command):
    greenhouse.line("hello")
    greenhouse.expect("Hello!")
    logs = command("logs", "-f", terminal=True)
    logs.expect("turn.ended")
    logs.expect("session.opened")  # its own
    greenhouse.line("water the plants for 2 seconds")
    greenhouse.expect("Approve")
    greenhouse.line("n")
    assert "\x1b[31mdenied\x1b[0m" in logs.expect("by=console")
    logs.expect("turn.ended")
    logs.send("\x03")
    assert logs.wait() == 130 and "Traceback" not in logs.text()


def test_followed_events_are_lines_of_json(greenhouse, command):
    logs = command("logs", "-f", "-n", "1", "--json", "--event", "tool.call")
    greenhouse.line("is the soil dry")
    greenhouse.expect("Approve")
    one = json.loads(logs.expect("\n"))
    assert one["tool"] == "read-soil" and one["agent"] == "g"
    logs.process.send_signal(signal.SIGINT)
    assert logs.wait() == 130 and logs.errors() == ""


def test_an_agent_that_ends_and_comes_back(greenhouse, greenhouse_image, command, state, tmp_path):
    logs = command("logs", "-f", "-n", "1", "--event", "lifecycle")
    logs.expect("READY")
    greenhouse.process.kill()
    eventually(lambda: "has ended" in logs.errors())
    words, env = linux("run", greenhouse_image, "--socket"), {"CLAWLITE_STATE": state}
    with Agent(words, tmp_path / "home", env=env) as again:
        eventually(lambda: "is back" in logs.errors())
        again.line("/quit")
        again.wait()
    logs.process.send_signal(signal.SIGINT)
    assert logs.wait() == 130


def test_nobody_can_be_followed_and_nothing_was_started(command, state):
    none = command("logs")
    assert none.wait() == 1 and "no agent was started here" in none.errors()
    (state / "quiet").mkdir(parents=True)
    (state / "quiet/log.jsonl").write_text("")
    quiet = command("logs", "-f")
    assert quiet.wait() == 1 and "--socket" in quiet.errors() and "Traceback" not in quiet.errors()


def test_a_saved_log_takes_no_options_of_agents(command):
    wrong = command("logs", "saved.txt", "-f")
    assert wrong.wait() == 2 and "not for a saved log" in wrong.errors()


def test_a_damaged_log_is_read_as_far_as_it_goes(state, monkeypatch):
    monkeypatch.setenv("CLAWLITE_STATE", str(state))
    (state / "g").mkdir(parents=True)
    (state / "g/log.jsonl").write_bytes(
        b'{"event":"a"}\n{"event"\n[]\n{"event":5}\n\xff\xfe\n\n{"event":"b"}\n{"ev'
    )
    assert [one["event"] for one in read_events("g")] == ["a", "b"]


def test_filters():
    assert Filter(("tool",)).fits(CALL) and Filter(("tool.call",)).fits(CALL)
    assert not Filter(("too",)).fits(CALL) and not Filter(("tool.approval",)).fits(CALL)
    assert Filter((), ("water", "lamp"), ("ok", "refused")).fits(CALL)
    assert not Filter((), ("lamp",)).fits(CALL) and not Filter((), (), ("ok",)).fits(CALL)


ODD = "a\x1b]52;c;eA==\x07\r\n\u202e" + 9 * " " + "\x9b31m"


@pytest.mark.parametrize(
    "event",
    [
        dict(CALL, tool=ODD, caller=ODD, action=ODD, rule_id=ODD, status=ODD, code=ODD),
        dict(CALL, arguments={ODD: ODD, "b": [ODD, {ODD: 1}]}),
        dict(CALL, arguments=ODD, timestamp=ODD),
        dict(CALL, arguments=[ODD], timestamp=5, code={ODD: 1}),
        {"event": ODD, ODD: ODD, "more": {ODD: [ODD]}},
        {"event": "tool.approval", "tool": ODD, "answer": ODD, "by": ODD, "arguments": None},
        {"event": "turn.ended", "by": ODD, "status": ODD, "duration_ms": ODD, "tokens": [ODD, 1]},
        {"event": "turn.ended", "tokens": 5, "cost_nano_usd": ODD, "memory_kib": [ODD]},
        {"event": "rule.run", "rule": ODD, "status": ODD, "values": {ODD: ODD}, "reason": ODD},
        {"event": None},
    ],
)
def test_what_strangers_wrote_drives_no_terminal_and_makes_no_line(event):
    line = show_event(ODD, event, False, 5)
    assert line.isprintable() and "\n" not in line and len(line) < 5000
    assert "\x1b[" in show_event("g", dict(event, status="ok"), True)
