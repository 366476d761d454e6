"""The console on a real pseudo-terminal: prompts, Ctrl-C, Ctrl-D, signals, and what is left
behind.
"""

import os
import signal
import termios

import pytest
from agents import INITIALIZE, Agent, eventually, linux, tool_call

ASKS = "  (60 s, then denied)\n[y/N] "
MARKS_PASTES, LEAVES_PASTES = "\x1b[?2004h", "\x1b[?2004l"
LEAVE = "Press Ctrl-C again to leave, or Ctrl-D.\n"


@pytest.fixture(autouse=True, params=["dumb", "xterm"])
def term(request, monkeypatch):
    """Each test twice: the kernel edits lines, or the program does."""
    monkeypatch.setenv("TERM", request.param)
    return request.param


def test_a_conversation_as_a_person_sees_it(greenhouse_image, tmp_path, term):
    with Agent(linux("run", greenhouse_image), tmp_path, terminal=True) as agent:
        if term == "xterm":
            agent.expect(MARKS_PASTES)
        assert agent.expect("> ") == "g 1.0.0 is ready. /help lists the commands.\n"
        agent.line("water the plants for 1 seconds")
        assert agent.expect(ASKS) == (
            "water the plants for 1 seconds\nApprove water(seconds=1)?\n"
            "  rule ask-before-watering asks first: water does not flow "
            "back\n"
        )
        agent.line("y")
        assert agent.expect("\n> ") == "y\nWatered for 1 s."
        agent.line("water the plants")
        agent.expect(ASKS)
        agent.line("perhaps")
        assert agent.expect(" s left).\n[y/N] ").startswith(
            "perhaps\nPlease answer y or n; the call waits ("
        )
        agent.line("")
        assert agent.expect("\n> ") == "\nwater: not approved: the person said no"
        agent.end()
        assert agent.wait() == 0
        assert agent.unread.replace(LEAVES_PASTES, "").strip() == "" and agent.errors() == ""


def test_quit_leaves(bench):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.line("/quit")
        assert agent.wait() == 0


def test_ctrl_c_ends_a_turn_and_the_pump_is_off(bench, marks):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.line("pump 60000")
        eventually((marks / "pump-on").exists)
        agent.send(b"\x03")
        agent.expect("Interrupted")
        agent.expect("> ")
        assert (marks / "pump-off").read_text() == "x"
        agent.line("pins")
        agent.expect("pump=0\n> ")
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""


def test_ctrl_c_at_a_question_denies_it(bench, marks):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.line("careful")
        agent.expect("[y/N] ")
        agent.send(b"\x03")
        agent.expect("Interrupted")
        agent.expect("> ")
        agent.line("y")  # answers nothing any more: it is a message
        agent.expect("I have no rule for that")
        assert not (marks / "careful").exists()
        agent.end()
        assert agent.wait() == 0


def test_ctrl_c_twice_at_the_prompt_leaves_with_130(bench):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.send(b"\x03")
        agent.expect(LEAVE)
        agent.send(b"\x03")
        assert agent.wait() == 130 and agent.errors() == ""


def test_the_prompt_comes_back_after_ctrl_c(bench):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.send(b"\x03")
        agent.expect(LEAVE + "> ")
        agent.end()
        assert agent.wait() == 0


def test_a_line_between_two_ctrl_c_means_staying(bench):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        for _ in range(2):
            agent.send(b"\x03")
            agent.expect(LEAVE)
            agent.line("echo on")
            agent.expect("You said: on\n> ")
        agent.end()
        assert agent.wait() == 0


def test_ctrl_c_ends_a_handler_that_hangs(bench, marks):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.line("hang")
        eventually((marks / "hang-on").exists)
        agent.rest()
        agent.send(b"\x03")
        agent.expect("Interrupted")
        agent.expect("> ")
        assert (marks / "hang-off").exists()
        agent.line("echo on")
        agent.expect("You said: on\n> ")
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""


def test_ctrl_c_ends_a_generator_that_hangs_in_a_step(bench, marks):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.line("stuck")
        eventually((marks / "stuck-on").exists)
        agent.send(b"\x03")
        agent.expect("Interrupted")
        agent.expect("> ")
        agent.line("echo on")
        agent.expect("You said: on\n> ")
        agent.end()
        assert agent.wait() == 0


def test_ctrl_c_twice_leaves_although_a_handler_swallows_it(bench, marks):
    """Many a maker writes ``while True: try: ... except: pass``; the person at the terminal must
    win.
    """
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.line("stubborn")
        eventually((marks / "stubborn-on").exists)
        agent.send(b"\x03")
        eventually((marks / "stubborn-caught").exists)
        agent.send(b"\x03")
        assert agent.wait() == 130


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_who_leaves_so_leaves_no_pump_on(bench, marks, number):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.record({"jsonrpc": "2.0", "id": 1, "method": "claw.initialize", "params": INITIALIZE})
        agent.record(tool_call("pump", {"ms": 60000}, 2, "bench"))
        eventually((marks / "pump-on").exists)
        agent.record(tool_call("stubborn", None, 3, "bench"))
        eventually((marks / "stubborn-on").exists)
        agent.signal(number)
        eventually((marks / "stubborn-caught").exists)
        assert not (marks / "pump-off").exists()
        agent.signal(number)
        assert agent.wait() == 128 + number
        assert (marks / "pump-off").read_text() == "x"


def test_nohup_is_honoured(bench_image, tmp_path):
    with Agent(["nohup", *linux("run", bench_image)], tmp_path) as agent:
        agent.expect("is ready. ")
        agent.signal(signal.SIGHUP)
        agent.line("echo on")
        agent.expect("You said: on\n")
        agent.end()
        assert agent.wait() == 0


def test_ctrl_d_leaves_with_0(bench):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""


def test_ctrl_d_at_a_question_denies_it(bench, marks):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.line("careful")
        agent.expect("[y/N] ")
        agent.end()
        agent.expect("careful: not approved: nobody is at the console\n")
        assert agent.wait() == 0
        assert not (marks / "careful").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_closes_the_handler_and_ends(bench, marks, number):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.line("pump 60000")
        eventually((marks / "pump-on").exists)
        agent.signal(number)
        code = agent.wait()
        assert (marks / "pump-off").exists(), "the pump runs on (exit code %d)" % code
        assert agent.errors() == "" and code == 128 + number


def test_a_terminal_that_is_gone_ends_the_agent_with_the_pump_off(bench, marks):
    """The ssh session broke: nobody can turn the pump off any more."""
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.line("pump 60000")
        eventually((marks / "pump-on").exists)
        agent.hang_up()
        agent.wait()
        assert (marks / "pump-off").exists(), "the pump runs on"


def test_sigterm_ends_a_handler_that_hangs(bench, marks):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.line("hang")
        eventually((marks / "hang-on").exists)
        agent.rest()
        agent.signal(signal.SIGTERM)
        assert agent.wait() == 143
        assert (marks / "hang-off").exists()


def _ctrl_c_twice(agent):
    agent.send(b"\x03")
    agent.expect(LEAVE)
    agent.send(b"\x03")


def _while_a_handler_swallows_it(marks):
    def ending(agent):
        agent.line("stubborn")
        eventually((marks / "stubborn-on").exists)
        agent.send(b"\x03")
        eventually((marks / "stubborn-caught").exists)
        agent.send(b"\x03")

    return ending


def test_the_terminal_is_as_it_was_however_the_agent_ends(bench, marks):
    for ending in (
        lambda agent: agent.end(),
        lambda agent: agent.signal(signal.SIGTERM),
        lambda agent: agent.line("/quit"),
        lambda agent: agent.signal(signal.SIGHUP),
        _ctrl_c_twice,
        _while_a_handler_swallows_it(marks),
    ):
        with bench("run", terminal=True) as agent:
            agent.expect("> ")
            ending(agent)
            agent.wait()
            assert termios.tcgetattr(agent.theirs) == agent.settings


def test_a_line_typed_while_a_turn_runs_is_answered_after_it(bench, marks):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.line("pump 300")
        eventually((marks / "pump-on").exists)
        agent.line("echo second")
        before = agent.expect("You said: second\n> ")
        assert "Pumped." in before
        agent.end()
        assert agent.wait() == 0


def test_a_yes_typed_before_the_question_does_not_approve(bench, marks):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.send(b"careful\ny\n")  # both lines are there before the agent has read the first
        agent.expect("[y/N] ")
        agent.line("no")
        agent.expect("not approved: the person said no")
        assert not (marks / "careful").exists()
        agent.end()
        assert agent.wait() == 0


def test_a_yes_typed_during_a_turn_does_not_approve_the_next_one(bench, marks):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.line("pump 300")
        eventually((marks / "pump-on").exists)
        agent.send(b"careful\ny\n")
        agent.expect("[y/N] ")
        agent.line("no")
        agent.expect("not approved: the person said no")
        assert not (marks / "careful").exists()
        agent.end()
        assert agent.wait() == 0


def test_a_terminal_that_nobody_reads_does_not_keep_the_pump_on(bench, marks):
    """A stalled ssh session: a terminal polls writable when one byte fits, and then blocks
    whoever writes two.
    """
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        quiet = termios.tcgetattr(agent.theirs)
        quiet[3] &= ~termios.ECHO  # else the echo takes the last bytes of room
        termios.tcsetattr(agent.theirs, termios.TCSANOW, quiet)
        agent.line("pump 1000")
        eventually((marks / "pump-on").exists)
        # each is told to be one too many, some 90 bytes: a terminal holds 16 KiB
        line = b"y" * 40 + b"\n"
        for _ in range(1000):
            agent.send(line, drain=False)
        assert not (marks / "pump-off").exists(), (
            "the terminal was filled too late to prove anything"
        )
        eventually((marks / "pump-off").exists, 5)
        agent.expect("Pumped.")
        agent.line("echo on")  # and nothing that was told is lost
        agent.expect("You said: on\n> ")
        assert agent.text().count("32 lines wait already; this one was dropped") == 1000 - 32
        agent.end()
        assert agent.wait() == 0


def test_help_and_tools_and_status(greenhouse_image, tmp_path):
    with Agent(linux("run", greenhouse_image), tmp_path, terminal=True) as agent:
        agent.expect("> ")
        agent.line("/tools")
        said = agent.expect("\n> ")
        assert (
            "water                asks first (rule ask-before-watering)\n  Run the pump for some "
            "seconds" in said
        )
        agent.line("/status")
        assert agent.expect("\n> ").splitlines()[-2:][0].startswith("READY, level 2, 4 tools")
        agent.line("/nope")
        assert agent.expect("\n> ").endswith('No command "/nope". /help lists them.')
        agent.line("/help")
        assert "/quit" in agent.expect("\n> ")
        agent.end()
        assert agent.wait() == 0


def test_ctrl_c_while_tools_py_is_loaded_ends_without_a_traceback(tmp_path):
    """Before the loop exists: a tools.py that waits for its sensor at the top of the file."""
    from agents import BENCH

    from clawlite.host.builder.build import build_beside

    for name, text in BENCH.items():
        (tmp_path / name).write_text(
            text + ('\n_mark("loading")\ntime.sleep(600)\n' if name == "tools.py" else "")
        )
    image = build_beside(str(tmp_path))
    with Agent(
        linux("run", image), tmp_path / "home", terminal=True, env={"MARKS": str(tmp_path)}
    ) as agent:
        eventually((tmp_path / "loading").exists)
        agent.send(b"\x03")
        assert agent.wait() == 130
        assert "Traceback" not in agent.errors() + agent.text()


def test_no_colour_and_no_escapes(greenhouse_image, tmp_path):
    with Agent(linux("run", greenhouse_image), tmp_path, terminal=True) as agent:
        agent.expect("> ")
        agent.line("is the soil dry?")
        agent.expect("[y/N] ")
        assert b"\x1b" not in agent.seen.removeprefix(MARKS_PASTES.encode())
        os.write(agent.input, b"n\n")
        agent.expect("> ")
        agent.end()
        assert agent.wait() == 0
