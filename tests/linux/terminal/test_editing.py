"""Lines edited on a real pseudo-terminal: keys, history, questions, suspending, and the
terminal's modes.
"""

import fcntl
import shlex
import signal
import struct
import sys
import termios

import pytest
from agents import INITIALIZE, Agent, eventually, linux, tool_call

UP, LEFT, HOME = b"\x1b[A", b"\x1b[D", b"\x1b[H"


@pytest.fixture(autouse=True)
def term(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")


def local_flags(agent) -> int:
    return termios.tcgetattr(agent.theirs)[3]


def test_a_line_is_edited_and_recalled(bench):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        assert (
            not local_flags(agent) & (termios.ICANON | termios.ECHO)
            and local_flags(agent) & termios.ISIG
        )
        agent.send(b"cho grxn" + LEFT * 2 + b"\xc3\xbc\x1b[3~" + HOME + b"e\r")
        assert agent.expect("You said: grün\n> ").endswith("\n")
        agent.send(UP + b" und blau\n")
        agent.expect("You said: grün und blau\n> ")
        agent.send(UP + UP + b"\x0b!\x10\x0e\x0e\x15echo 3\n")
        agent.expect("You said: 3\n> ")
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""


PASTE = b"\x1b[200~%s\x1b[201~"


def test_what_is_pasted_is_one_message(bench):
    """Its line ends send nothing, and a command in it is none; the terminal is asked to mark both
    ends of it, until the agent leaves.
    """
    with bench("run", terminal=True) as agent:
        agent.expect("\x1b[?2004h")
        agent.expect("> ")
        agent.send(PASTE % b"echo a\r/quit\rb" + b"\r")
        agent.expect("You said: a")
        agent.expect("> ")
        agent.send(PASTE % b"/quit\n/status")
        agent.send(b"\r")
        agent.expect("I have no rule for that")
        agent.line("/quit")  # a person's own
        assert agent.wait() == 0 and agent.errors() == ""
        assert agent.seen.count(b"\x1b[?2004h") == agent.seen.count(b"\x1b[?2004l") == 1


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP])
def test_a_terminal_is_left_without_marks_around_pastes(bench, number):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.signal_at_rest(number)
        agent.expect("\x1b[?2004l")
        if number == signal.SIGTSTP:
            agent.signal(signal.SIGCONT)
            agent.expect("\x1b[?2004h")


@pytest.mark.parametrize("terminal", [True, False])
def test_ctrl_backslash_leaves_the_pump_off(bench, marks, terminal):
    with bench("run", terminal=terminal) as agent:
        agent.expect("> " if terminal else "ready")
        agent.line("pump 60000")
        eventually((marks / "pump-on").exists)
        agent.signal(signal.SIGQUIT)
        assert agent.wait() == -signal.SIGQUIT
        assert (marks / "pump-off").read_text() == "x" and agent.errors() == ""


def test_ctrl_c_while_python_starts_says_nothing(tmp_path):
    code = (
        "import runpy, sys\n"
        "class Pressed:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == %r: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "sys.argv = ['clawlite', 'run']\n"
        "runpy.run_module('clawlite', run_name='__main__')\n"
    )
    for name in ("clawlite.command",):
        with Agent([sys.executable, "-c", code % name], tmp_path) as agent:
            assert agent.wait() == 130 and agent.errors() == "", name


def test_output_does_not_garble_what_is_typed(bench, marks):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.line("pump 300")
        eventually((marks / "pump-on").exists)
        agent.send("echo twi")
        agent.expect("echo twi")
        assert agent.expect("\n> echo twi") == "\r\x1b[KPumped."
        agent.send("ce\n")
        agent.expect("You said: twice\n> ")
        agent.end()
        assert agent.wait() == 0


def test_a_yes_begun_before_the_question_does_not_approve_and_comes_back(bench, marks):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.line("pump 300")
        eventually((marks / "pump-on").exists)
        agent.send(b"careful\necho y")
        agent.expect("echo y")
        agent.expect("[y/N] ")
        agent.send("\n")
        agent.expect("not approved: the person said no\n> echo y")
        assert not (marks / "careful").exists()
        agent.send("es\n")
        agent.expect("You said: yes\n> ")
        agent.send(UP + UP + b"\n")  # the answer is not remembered
        agent.expect("Approve careful()?")
        agent.line("y")
        agent.expect("careful ran\n> ")
        agent.end()
        assert agent.wait() == 0


def test_what_is_typed_at_a_question_that_somebody_else_answers_is_no_message(bench, marks):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.record({"jsonrpc": "2.0", "id": 1, "method": "claw.initialize", "params": INITIALIZE})
        agent.expect("> ")
        agent.record(tool_call("careful", None, 2, "bench"))
        agent.expect("[y/N] ")
        agent.send("y")
        agent.expect("y")
        agent.signal(signal.SIGWINCH)
        agent.line("es, please")
        agent.expect("Please answer y or n; the call waits (")
        agent.expect(" s left).\n[y/N] ")
        agent.send("y")
        agent.expect("y")
        agent.send(b"\x15")
        agent.record(
            {
                "jsonrpc": "2.0",
                "id": 3,
                "method": "claw.tool.deny",
                "params": {
                    "request_id": tool_call("x", number=2)["params"]["context"]["request_id"]
                },
            }
        )
        agent.expect("not approved")
        agent.expect("> ")
        agent.line("echo on")
        agent.expect("You said: on\n> ")
        assert not (marks / "careful").exists()
        agent.end()
        assert agent.wait() == 0


def test_a_record_begins_a_line(bench):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.record({"jsonrpc": "2.0", "id": 1, "method": "claw.initialize", "params": INITIALIZE})
        agent.expect("\n\x1e{")
        agent.expect("}\n> ")
        assert b"claw.initialize" not in agent.seen, "a record is shown"
        agent.end()
        assert agent.wait() == 0


def test_a_line_wider_than_the_terminal(bench):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        fcntl.ioctl(agent.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 20, 0, 0))
        words = "echo " + "abcdefghij" * 10
        for c in words:
            agent.send(c)
        agent.send(LEFT * 50 + b"-\n")
        agent.expect("You said: " + words[5:55] + "-" + words[55:] + "\n> ")
        agent.end()
        assert agent.wait() == 0


def test_ctrl_c_forgets_what_is_typed(bench):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.send("echo never mind")
        agent.expect("never mind")
        agent.send(b"\x03")
        assert agent.expect("> ") == "\nPress Ctrl-C again to leave, or Ctrl-D.\n"
        agent.send("echo on\n")
        agent.expect("You said: on\n> ")
        agent.end()
        assert agent.wait() == 0


def test_ctrl_d_ends_only_on_an_empty_line(bench):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.send(b"echo ab" + LEFT + b"\x04c\n")
        agent.expect("You said: ac\n> ")
        agent.end()
        assert agent.wait() == 0 and agent.unread.replace("\x1b[?2004l", "") == "\n"


def test_what_was_typed_before_the_agent_was_ready(bench):
    """Also the end of input: the kernel has taken it as its own line editing does."""
    with bench("run", terminal=True) as agent:
        agent.send(b"echo early\n\x04")
        agent.expect("You said: early\n> ")
        assert agent.wait() == 0


def test_suspended_and_resumed(bench_image, tmp_path, marks):
    """As a shell with job control sees it."""
    words = shlex.join(linux("run", bench_image))
    script = "set -m; %s; echo stopped with $?; read go; fg; echo over with $?" % words
    with Agent(
        ["/bin/sh", "-c", script], tmp_path / "home", terminal=True, env={"MARKS": marks}
    ) as agent:
        agent.expect("> ")
        assert not local_flags(agent) & termios.ICANON
        agent.send("echo half")
        agent.expect("half")
        agent.send(b"\x1a")
        agent.expect("stopped with")
        assert termios.tcgetattr(agent.theirs) == agent.settings
        agent.line("go")
        agent.expect("> echo half")
        assert not local_flags(agent) & termios.ICANON
        agent.send(LEFT + b"n\n")
        agent.expect("You said: halnf\n> ")
        agent.end()
        agent.expect("over with 0")
        assert agent.wait() == 0 and termios.tcgetattr(agent.theirs) == agent.settings


def test_stopped_and_continued_by_somebody_else(bench):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.send("echo o")
        agent.expect("echo o")
        agent.signal(signal.SIGSTOP)
        termios.tcsetattr(agent.theirs, termios.TCSANOW, agent.settings)  # as a shell does
        agent.signal(signal.SIGCONT)
        agent.expect("> echo o")
        assert not local_flags(agent) & termios.ICANON
        agent.send("n\n")
        agent.expect("You said: on\n> ")
        agent.end()
        assert agent.wait() == 0 and termios.tcgetattr(agent.theirs) == agent.settings


def test_ctrl_backslash_leaves_the_terminal_as_it_was(bench):
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        agent.send(b"\x1c")
        assert agent.wait() == -signal.SIGQUIT
        assert termios.tcgetattr(agent.theirs) == agent.settings


def test_ask_touches_the_terminal_only_for_a_question(bench, marks):
    with bench("ask", text="pump 300", terminal=True) as agent:
        eventually((marks / "pump-on").exists)
        assert termios.tcgetattr(agent.theirs) == agent.settings
        assert agent.wait() == 0 and agent.text() == "Pumped.\n"
    with bench("ask", text="careful", terminal=True) as agent:
        agent.expect("[y/N] ")
        assert not local_flags(agent) & termios.ICANON
        agent.send(b"nox\x7f\x7f\x7fyes\n")
        agent.expect("careful ran")
        assert agent.wait() == 0 and (marks / "careful").exists()
        assert termios.tcgetattr(agent.theirs) == agent.settings


@pytest.mark.parametrize("name", ["dumb", "", None])
def test_a_terminal_without_abilities_keeps_the_kernels_editing(bench, monkeypatch, name):
    if name is None:
        monkeypatch.delenv("TERM")
    else:
        monkeypatch.setenv("TERM", name)
    with bench("run", terminal=True) as agent:
        agent.expect("> ")
        assert termios.tcgetattr(agent.theirs) == agent.settings
        agent.send(b"echo onx\x7f\n")
        agent.expect("You said: on\n> ")
        agent.end()
        assert agent.wait() == 0 and b"\x1b" not in agent.seen


def test_nothing_is_loaded_for_it_without_a_terminal(bench):
    with bench("run", env={"PYTHONVERBOSE": "1"}) as agent:
        agent.line("echo on")
        agent.expect("You said: on\n")
        agent.end()
        assert agent.wait() == 0
        assert "import 'clawlite.linux.terminal.screen'" in agent.errors()
        for module in (
            "clawlite/linux/terminal/line_editor",
            "clawlite/linux/terminal/terminal",
            "clawlite/linux/terminal/terminal_row",
            "termios",
            "unicodedata",
        ):
            assert "import '%s'" % module.replace("/", ".") not in agent.errors(), module


def test_lines_of_earlier_starts_and_tab(greenhouse_image, tmp_path):
    with Agent(linux("run", greenhouse_image), tmp_path, terminal=True) as agent:
        agent.expect("> ")
        agent.line("hello there")
        agent.expect("\n> ")
        agent.send(b"/tra\t")
        agent.expect("/trace ")
        agent.send(b"\n")
        agent.expect("\n> ")
        agent.end()
        assert agent.wait() == 0
    with Agent(linux("run", greenhouse_image), tmp_path, terminal=True) as agent:
        agent.expect("> ")
        agent.send(b"\x12there")
        agent.expect("(earlier: there) hello there")
        agent.send(b"\n")
        agent.expect("Hello!")
        agent.end()
        assert agent.wait() == 0


def test_who_types_quit_is_told_how_to_leave(greenhouse_image, tmp_path):
    with Agent(linux("run", greenhouse_image), tmp_path, terminal=True) as agent:
        agent.expect("> ")
        agent.line("exit")
        agent.expect("To leave: /quit, or Ctrl-D.")
        agent.expect("\n> ")  # it is a message, too: an agent may have a rule for it
        agent.end()
        assert agent.wait() == 0
