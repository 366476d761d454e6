"""Colour and rows broken at words: on a terminal that can, and nowhere else."""

import fcntl
import struct
import termios

import pytest
from agents import Agent, clawlite, linux
from llm_server import Server, say
from providers.project import World, provider

from clawlite.host.projects import new
from clawlite.linux.terminal.styling import BOLD, DIM, StreamWrap, dress, paint, wrap


@pytest.mark.parametrize(
    "line, rows",
    [
        ("", [""]),
        ("short", ["short"]),
        ("ten chars!", ["ten chars!"]),
        ("eleven char", ["eleven", "char"]),
        ("one two three four", ["one two", "three four"]),
        ("  an indented line", ["  an", "  indented", "  line"]),
        ("averyveryverylongword and more", ["averyveryverylongword", "and more"]),
        ("averyveryverylongword", ["averyveryverylongword"]),
        ("You said: averyveryverylongword", ["You said: averyveryverylongword"]),
        ("blanks at        the end", ["blanks at", "the end"]),
        ("          deep indent", ["          deep indent"]),
        ("wide: 漢字漢字漢字漢字 and more", ["wide: 漢字漢字漢字漢字 and more"]),
    ],
)
def test_lines_are_broken_at_blanks(line, rows):
    assert wrap(line, 10) == rows
    assert "".join("".join(rows).split()) == "".join(line.split()), "no word is lost"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    "text, shown",
    [
        ("one two three four\n", "one two\nthree four\n"),
        ("averyveryverylongword and more\n", "averyveryverylongword\nand more\n"),
        ("two\n\nlines, and ends\n", "two\n\nlines, and\nends\n"),
        ("ends without", "ends\nwithout"),
        ("wide: 漢字漢字漢字漢字\n", "wide: 漢字漢字漢字漢字\n"),
        ("blank at the  \n", "blank at\nthe\n"),
        ("漢字\nand then ascii\n", "漢字\nand then\nascii\n"),
    ],
)
def test_a_text_in_pieces_is_broken_as_a_whole_one(text, shown, size):
    wrapping = StreamWrap()
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert "".join(wrapping.write(one, 10) for one in pieces) + wrapping.rest() == shown
    unbroken = StreamWrap()
    assert "".join(unbroken.write(one, 0) for one in pieces) + unbroken.rest() == text


def test_no_more_than_a_word_waits():
    wrapping = StreamWrap()
    assert wrapping.write("water the pl", 40) == "water the"
    assert wrapping.write("ants", 40) == "" and wrapping.write(" now", 40) == " plants"
    assert len(wrapping.write("x" * 500, 40)) > 440, "a line of a log is not kept"


def test_the_name_of_a_tool_stands_out(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    tools = ("water", "read-soil")
    assert dress("water: it failed", 80, False, tools) == "\x1b[36mwater\x1b[0m: it failed"
    assert dress("a\nread-soil()  ok", 80, False, tools) == "a\n\x1b[36mread-soil\x1b[0m()  ok"
    for line in ("water", "waters: x", "Approve water(seconds=3)?"):
        assert dress(line, 80, False, tools) == line


def test_a_question_stands_out_and_no_color_is_heeded(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert (
        dress("Approve x?\n  why", 80, True) == "\x1b[1;33mApprove x?\x1b[0m\n\x1b[2m  why\x1b[0m"
    )
    assert dress("an answer", 80, False) == "an answer" and paint("", DIM) == ""
    monkeypatch.setenv("NO_COLOR", "1")
    assert paint("x", BOLD) == "x" and dress("Approve x?\n  why", 80, True) == "Approve x?\n  why"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "greenhouse"
    new.new(str(folder), offline=True)
    tools = folder / "tools.py"
    said = 'print("the probe\\x1b[31m answers")\n    return {"percent"'
    tools.write_text(tools.read_text().replace('return {"percent"', said))
    return folder


@pytest.mark.parametrize("more", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_prints_are_dim_and_questions_bright_where_they_may_be(project, tmp_path, more):
    env = {"TERM": "xterm", "NO_COLOR": "", **more}
    with Agent(linux("run"), tmp_path / "home", terminal=True, cwd=project, env=env) as agent:
        agent.expect("> ")
        agent.line("is the soil dry?")
        agent.expect("[y/N] ")
        agent.line("n")
        agent.expect("Not watered.")
        agent.line("/quit")
        assert agent.wait() == 0
    shown = agent.text()
    has_print = "the probe" in shown
    assert has_print is (more.get("TERM") != "dumb")
    assert not has_print or "the probe\\x1b[31m answers" in shown, "it does not drive the terminal"
    assert ("\x1b[1;33mApprove water(seconds=3)?\x1b[0m" in shown) is (more == {})
    assert ("\x1b[2m" in shown) is (more == {})
    assert "Approve water(seconds=3)?" in shown
    assert "\x1b[1;33mThe soil is dry" not in shown, "what a rule says before is no question"


def test_a_narrow_terminal_breaks_lines_and_one_without_a_width_does_not(project, tmp_path):
    env = {"TERM": "xterm"}
    line = "Hello! Ask me: is the soil dry? Or tell me: water the plants for 5 seconds."
    with Agent(linux("run"), tmp_path / "home", terminal=True, cwd=project, env=env) as agent:
        agent.expect("> ")
        agent.line("hello")
        agent.expect(line + "\n> ")
        fcntl.ioctl(agent.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 40, 0, 0))
        agent.line("hello")
        agent.expect(
            "Hello! Ask me: is the soil dry? Or tell\nme: water the plants for 5 seconds.\n"
        )
        agent.line("/quit")
        assert agent.wait() == 0


def test_a_streamed_answer_is_broken_at_words(tmp_path):
    text = "The basil had water for five seconds, and the soil is wet again.\n  Until tomorrow!"
    shown = "The basil had water for five seconds,\nand the soil is wet again.\n  Until tomorrow!"
    world = World(tmp_path)
    with Server([say(text)] * 2) as server:
        world.build(provider(server, streaming=True))
        with world.start("run", terminal=True, TERM="xterm") as agent:
            agent.expect("> ")
            fcntl.ioctl(agent.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 40, 0, 0))
            agent.line("hello")
            agent.expect(shown + "\n> ")
            fcntl.ioctl(agent.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 0, 0, 0))
            agent.line("hello")
            agent.expect(text + "\n> ")
            agent.line("/quit")
            assert agent.wait() == 0


def test_a_pipe_gets_what_it_always_got(project):
    done = clawlite("ask", "is the soil dry?", "--approve", cwd=project, TERM="xterm")
    assert "\x1b" not in done.stdout + done.stderr and "the probe" not in done.stdout
    assert done.stdout.splitlines()[-1] == "Watered for 3 s."
