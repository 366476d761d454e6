"""The console on pipes: scripts, records between the lines, hostile lines, readers that go away
or fall asleep.
"""

import json
import signal
import subprocess

import pytest
from agents import (
    INITIALIZE,
    ODD,
    Agent,
    environment,
    eventually,
    linux,
    tool_call,
    without_root_rights,
)

READY = "bench 1.0.0 is ready. /help lists the commands.\n"


def test_a_script_approves_with_the_line_after_the_question(greenhouse_image, tmp_path):
    with Agent(linux("run", greenhouse_image), tmp_path) as agent:
        agent.send("water the plants for 1 seconds\ny\nwater the plants for 1 seconds\nn\nhello\n")
        agent.end()
        assert agent.wait() == 0
        asked = (
            "Approve water(seconds=1)?\n  rule ask-before-watering asks first: water does "
            "not flow back\n"
            "  (60 s, then denied)\n"
        )
        assert agent.text() == (
            "g 1.0.0 is ready. /help lists the commands.\n" + asked + "Watered "
            "for 1 "
            "s.\n"
            + asked
            + "water: not approved: the person said no\n"
            + "Hello! Ask me: is the soil dry? Or tell me: water the plants "
            "for 5 seconds.\n"
        )
        assert agent.errors() == ""


def test_a_script_that_ends_at_a_question_denies_it(bench, marks):
    with bench("run") as agent:
        agent.send("careful\n")
        agent.end()
        assert agent.wait() == 0
        assert agent.text() == READY + (
            "Approve careful()?\n  rule ask asks first\n  (60 s, then "
            "denied)\n"
            "careful: not approved: nobody is at the console\n"
        )
        assert not (marks / "careful").exists()


def test_end_of_input_lets_a_pump_run_finish(bench, marks):
    with bench("run") as agent:
        agent.line("pump 400")
        eventually((marks / "pump-on").exists)
        agent.end()
        assert agent.wait() == 0
        assert agent.text() == READY + "Pumped.\n"
        assert (marks / "pump-off").read_text() == "x"


def test_lines_without_an_end_and_with_cr_are_taken(bench):
    with bench("run") as agent:
        agent.send(b"echo one\r\necho two")
        agent.end()
        assert agent.wait() == 0
        assert agent.text() == READY + "You said: one\nYou said: two\n"


def test_input_that_is_empty_from_the_start(bench):
    with bench("run") as agent:
        agent.end()
        assert agent.wait() == 0 and agent.text() == READY


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_closed_stdio_ends_it_without_a_traceback(bench_image, tmp_path, marks, closed):
    with Agent(
        ["sh", "-c", '"$@" ' + closed, "sh", *linux("run", bench_image)],
        tmp_path,
        env={"MARKS": marks},
    ) as agent:
        agent.end()
        agent.wait()
        assert "Traceback" not in agent.errors() + agent.text()
        assert len(agent.errors().splitlines()) <= 1


HOSTILE = [
    (b"\xff\xfe not text", "That line is not UTF-8 text. Nothing was done.\n"),
    (b"echo \xed\xa0\x80", "That line is not UTF-8 text. Nothing was done.\n"),
    (b"echo \xc0\xaf", "That line is not UTF-8 text. Nothing was done.\n"),
    (b"\x00", "I have no rule for that."),
    (b"echo a\x00b", "You said: a"),
    (b'{"jsonrpc":"2.0","id":1,"method":"claw.status"}', "I have no rule for that."),
    (b"[1,2", "I have no rule for that."),
    (b"x" * 5000, "That is 5000 characters; a message has at most "),
    (b"x" * 1048576, "That is 1048576 characters; a message has at most "),
    (b"x" * 1048577, "That line has 1048577 bytes; at most 1048576 fit. Nothing was done.\n"),
    (b"x" * 3000000, "That line has 3000000 bytes; at most 1048576 fit. Nothing was done.\n"),
    (b"a " * 2000, "I have no rule for that."),
    (b"/", 'No command "/".'),
    (b"\x1b[2J\x07", "I have no rule for that."),
]


def test_hostile_lines_get_one_answer_each_and_the_agent_goes_on(bench):
    with bench("run") as agent:
        agent.expect(READY)
        for number, (line, answer) in enumerate(HOSTILE):
            agent.send(line + b"\necho still %d\n" % number)
            said = agent.expect("You said: still %d\n" % number)
            assert said.startswith(answer) and said.count("\n") == 1, (line[:40], said[:200])
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""


def test_records_and_lines_share_the_wire(bench):
    """RFC 7464: what 0x1E begins is for the operator, and its answer says so too."""
    with bench("run") as agent:
        agent.expect(READY)
        agent.record({"jsonrpc": "2.0", "id": 1, "method": "claw.initialize", "params": INITIALIZE})
        assert agent.expect("\x1e") == ""
        assert agent.message()["result"]["agentInfo"]["name"] == "bench"
        agent.line("echo between")
        agent.expect("You said: between\n")
        agent.record(tool_call("pins", number=2))
        assert agent.expect("\x1e") == ""
        assert agent.message()["result"] == {
            "content": [{"type": "text", "text": "pump=0"}],
            "isError": False,
        }
        agent.send(b"\x1e{broken\n")
        assert agent.expect("\x1e") == ""
        assert agent.message()["error"]["code"] == -32700
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""


def test_a_reader_that_goes_away_ends_the_agent_with_the_pump_off(bench, marks):
    with bench("run") as agent:
        agent.expect(READY)
        agent.line("pump 60000")
        eventually((marks / "pump-on").exists)
        agent.stop_reading()
        for _ in range(40):  # 32 lines may wait; the next ones are told of, to nobody
            agent.send("echo anybody?\n", drain=False)
        code = agent.wait()
        assert (marks / "pump-off").exists() and code in (0, 1)
        assert len(agent.errors().splitlines()) <= 1 and "Traceback" not in agent.errors()


def test_a_reader_that_sleeps_does_not_keep_the_pump_on(bench, marks):
    for ms in (1000, 8000, 64000):  # a busy machine needs longer to fill the pipe
        for name in ("pump-on", "pump-off"):
            (marks / name).unlink(missing_ok=True)
        with bench("run") as agent:
            agent.line("pump %d" % ms)
            eventually((marks / "pump-on").exists)
            # each is told to be one too many: some 70 bytes out for 201 in
            line = b"y" * 200 + b"\n"
            for _ in range(1500):
                agent.send(line, drain=False, seconds=0.3)
            if (marks / "pump-off").exists():
                continue
            eventually((marks / "pump-off").exists)
            agent.end()
            assert agent.wait() == 0  # and nothing of it was lost
            text = agent.text()
            assert text.count("32 lines wait already; this one was dropped") == 1500 - 32
            return
    pytest.fail("the pipe was filled too late to prove anything")


def test_output_that_nobody_reads_is_bounded(bench):
    """A peer that sends and never reads is held back, it does not fill the memory."""
    with bench("run") as agent:
        agent.expect(READY)
        line = b"echo " + b"y" * 2000 + b"\n"
        sent = agent.send(line * 8000, drain=False, seconds=1.5)
        with open("/proc/%d/status" % agent.process.pid) as file:
            peak_kib = [int(row.split()[1]) for row in file if row.startswith("VmHWM")][0]
        assert sent < 8 << 20 and peak_kib < 64 << 10, "took %d bytes, peak %d KiB" % (
            sent,
            peak_kib,
        )


def test_sigint_on_a_pipe_ends_the_turn_then_the_program(bench, marks):
    with bench("run") as agent:
        agent.line("pump 60000")
        eventually((marks / "pump-on").exists)
        agent.signal(signal.SIGINT)
        agent.expect("Interrupted.\n")
        assert (marks / "pump-off").exists()
        agent.line("pins")
        agent.expect("pump=0\n")
        agent.signal(signal.SIGINT)
        agent.expect("Press Ctrl-C again to leave, or Ctrl-D.\n")
        agent.signal(signal.SIGINT)
        assert agent.wait() == 130 and agent.errors() == ""


def test_an_interrupt_loses_no_call_that_had_ended(bench, marks):
    """Two calls in one batch: the first ends in the very poll in which the second hangs."""
    with bench("run") as agent:
        agent.expect(READY)
        agent.record({"jsonrpc": "2.0", "id": 1, "method": "claw.initialize", "params": INITIALIZE})
        agent.expect("\x1e")
        agent.message()
        agent.record([tool_call("quick", number=2), tool_call("stuck", number=3)])
        eventually((marks / "stuck-on").exists)
        agent.signal(signal.SIGINT)
        agent.expect("\x1e")
        answers = {answer["id"]: answer for answer in agent.message()}
        assert answers[2]["result"] == {
            "content": [{"type": "text", "text": "quick ran"}],
            "isError": False,
        }
        assert "error" in answers[3] or answers[3]["result"]["isError"], (
            "an interrupted call was told to have worked"
        )
        agent.line("echo on")
        agent.expect("You said: on\n")
        agent.end()
        assert agent.wait() == 0


def test_a_handler_that_leaves_the_interpreter_fails_alone(bench):
    with bench("run") as agent:
        agent.expect(READY)
        agent.line("leave")
        agent.expect("leave failed: SystemExit: 3 (tools.py:")
        agent.line("echo on")
        agent.expect("You said: on\n")
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""


def test_whatever_a_handler_returns_the_agent_goes_on(bench):
    with bench("run") as agent:
        agent.expect(READY)
        for kind in ODD:
            agent.send("odd %s\necho after %s\n" % (kind, kind))
            assert agent.expect("You said: after %s\n" % kind).endswith("\n")
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""


def _log(tmp_path):
    return [
        json.loads(line)
        for line in (tmp_path / "home/state/bench/log.jsonl").read_text().splitlines()
    ]


def test_what_happened_is_on_record_and_private(bench, tmp_path):
    with bench("run") as agent:
        agent.send("careful\ny\n")
        agent.end()
        assert agent.wait() == 0
    events = _log(tmp_path)
    assert [event["event"] for event in events] == [
        "lifecycle.transition",
        "lifecycle.transition",
        "tool.approval",
        "tool.call",
        "turn.ended",
    ]
    assert (
        events[2]["answer"] == "approved"
        and events[3]["status"] == "ok"
        and events[3]["rule_id"] == "ask"
    )
    assert all(
        event["timestamp"][:2] == "20" and event["timestamp"].endswith("Z") for event in events
    )
    folder = tmp_path / "home/state/bench"
    assert (
        folder.stat().st_mode & 0o777 == 0o700
        and (folder / "log.jsonl").stat().st_mode & 0o777 == 0o600
    )


def test_a_state_folder_that_cannot_be_is_told_once_and_the_agent_works(bench, tmp_path):
    (tmp_path / "file").write_text("no folder")
    with bench("run", env={"CLAWLITE_STATE": tmp_path / "file/state"}) as agent:
        agent.send("echo one\nquick\n")
        agent.end()
        assert agent.wait() == 0
        assert agent.text() == READY + "You said: one\nquick ran\n"
        assert (
            len(agent.errors().splitlines()) == 1
            and "the log " in agent.errors()
            and "cannot be written" in agent.errors()
        )


def test_without_the_right_to_write_its_state_it_can_still_talk(bench_image, tmp_path):
    """Started by a service user on whom nobody spent a home."""
    state = tmp_path / "state"
    state.mkdir(mode=0o500)
    with Agent(
        without_root_rights(linux("run", bench_image)), tmp_path, env={"CLAWLITE_STATE": state}
    ) as agent:
        agent.send("echo one\nquick\n")
        agent.end()
        assert agent.wait() == 0, agent.errors()
        assert agent.text() == READY + "You said: one\nquick ran\n"
        assert (
            len(agent.errors().splitlines()) == 1
            and "cannot be written: Permission denied - make its folder writable" in agent.errors()
        )


def test_an_answer_that_a_full_disk_does_not_take_is_no_success(greenhouse_image, tmp_path):
    for verb, typed in (["ask", "hello"], b""), (["run"], b"hello\n"):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                linux(*verb, greenhouse_image),
                stdout=full,
                stderr=subprocess.PIPE,
                input=typed,
                env=environment(tmp_path),
                timeout=300,
            )
        assert (done.returncode, done.stderr) == (
            1,
            b"clawlite: stdout cannot be written: No space left on device\n",
        ), verb
