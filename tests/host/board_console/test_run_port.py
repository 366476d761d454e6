"""``clawlite run --port`` and ``ask --port``: from a manifest to an answer of the agent on a
(virtual) board.
"""

import pytest
from agents import Agent, clawlite, linux
from sims import needs_micropython, needs_mpy_cross, simulated

from clawlite.host.flash import flash
from clawlite.host.sim.sim import Sim

pytestmark = [needs_micropython, needs_mpy_cross]


@pytest.fixture(autouse=True)
def state(monkeypatch, tmp_path):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    return {"CLAWLITE_STATE": tmp_path / "state"}


def ask(text, board, tmp_path, *more):
    return clawlite(
        "ask",
        text,
        "--port",
        board.path,
        *more,
        cwd=tmp_path,
        CLAWLITE_STATE=getattr(board, "registry", tmp_path / "state"),
    )


def test_built_flashed_and_talked_to_in_one(greenhouse, tmp_path, state):
    with Sim(folder=str(tmp_path / "flash")) as board:
        (tmp_path / "flash/boot.json").write_text('{"window_ms": 100}')
        with Agent(
            linux("run", greenhouse, "--port", board.path, "--yes"), tmp_path / "home", env=state
        ) as it:
            it.expect("is ready. /help lists the commands.", 60)
            it.line("is the soil dry?")
            it.expect("The soil is ")
            it.end()
            assert it.wait() == 0
        # the only one; nothing to flash
        done = clawlite(
            "run", greenhouse, "--port", cwd=tmp_path, stdin=b"is the soil dry?\n", **state
        )
        assert (
            done.returncode == 0
            and "The soil is " in done.stdout
            and "has this already" in done.stderr
        ), done.stderr


def test_on_a_terminal_its_console_edits(greenhouse, tmp_path, state):
    with Sim(folder=str(tmp_path / "flash")) as board:
        (tmp_path / "flash/boot.json").write_text('{"window_ms": 100}')
        with Agent(
            linux("run", greenhouse, "--port", board.path, "--yes"),
            tmp_path / "home",
            terminal=True,
            env={**state, "TERM": "xterm"},
        ) as it:
            it.expect("is ready. /help lists the commands.", 60)
            it.expect("> ")  # nobody has typed yet
            it.line("/tools")
            it.expect("water")
            it.send("\x1d")
            assert it.wait() == 0


def test_without_a_terminal_a_flash_needs_its_yes(greenhouse, tmp_path, state):
    with Sim() as board:
        done = clawlite("run", greenhouse, "--port", board.path, cwd=tmp_path, **state)
    assert done.returncode == 2 and "confirm with --yes" in done.stderr


def test_nothing_is_chosen_between_two_boards(greenhouse, tmp_path, state):
    with Sim(), Sim():
        for words in (("run", greenhouse, "--yes", "--port"), ("ask", "hello", "--port")):
            done = clawlite(*words, cwd=tmp_path, **state)
            assert (
                done.returncode == 3
                and done.stderr.count("/dev/pts/") >= 2
                and "more than one board" in done.stderr
            )
    done = clawlite("ask", "hello", "--port", "nowhere", cwd=tmp_path, **state)
    assert done.returncode == 3 and "nowhere does not exist" in done.stderr
    done = clawlite("ask", "hello", greenhouse, "--port", cwd=tmp_path, **state)
    assert done.returncode == 2 and "a board has its agent already" in done.stderr
    assert "leave it out, or flash it first: clawlite flash" in done.stderr


def test_what_asks_first_is_answered_as_the_flag_says(flashed, tmp_path):
    done = ask("water the plants for 2 seconds", flashed, tmp_path)
    assert (
        done.returncode == 5
        and "Approve water(seconds=2)?" in done.stdout
        and "--approve" in done.stderr
    )
    done = ask("water the plants for 2 seconds", flashed, tmp_path, "--approve")
    assert done.returncode == 0 and "Watered for 2 s." in done.stdout


def test_a_question_and_its_answer_alone(flashed, tmp_path):
    # dry soil would be watered, which asks first
    ask("water the plants for 3 seconds", flashed, tmp_path, "--approve")
    for _ in range(2):
        done = ask("is the soil dry?", flashed, tmp_path)
        assert (
            done.returncode == 0
            and done.stdout.count("\n") == 1
            and done.stdout.startswith("The soil is wet enough")
        ), (done.stdout, done.stderr)


def test_a_board_behind_a_bridge_is_asked_over_the_reliable_line(tmp_path, state):
    folder = tmp_path / "blink"
    assert clawlite("new", folder, "--template", "blink", "--offline", cwd=tmp_path).returncode == 0
    with Sim("esp32") as board:
        with flash.target(board.path) as target:
            flash.flash(
                str(folder),
                target,
                False,
                None,
                lambda found: None,
                lambda: None,
                lambda total, more: None,
            )
        for _ in range(3):
            done = ask("hello", board, tmp_path, "--timeout", "20")
            assert (done.returncode, done.stdout) == (0, "Hello! Say: blink 5 times.\n"), (
                done.stderr
            )
        log = tmp_path / "log"
        done = clawlite(
            "console",
            "--port",
            board.path,
            "--log",
            log,
            cwd=tmp_path,
            stdin=b"\nhello\n",
            CLAWLITE_STATE=tmp_path / "state",
        )
        assert (done.returncode, done.stdout) == (
            0,
            "Hello! Say: blink 5 times.\n",
        ) and "~0000h" in log.read_text()


def test_a_repl_is_not_sent_a_sentence(tmp_path):
    with simulated(tmp_path / "flash", "") as board:
        done = ask("open('/left', 'w')", board, tmp_path)
        assert (
            done.returncode == 1
            and "no agent runs on that board" in done.stderr
            and not done.stdout
        )
    assert not (tmp_path / "flash/left").exists()


def test_a_question_that_was_open_before_is_never_answered_with_yes(tmp_path):
    main = """
import sys
sys.stdin.readline()
sys.stdout.write("Approve water?\\n[y/N] ")
answer = sys.stdin.readline().strip()
while True:
    sys.stdout.write("> ")
    print(sys.stdin.readline().strip(), answer)
"""
    with simulated(tmp_path / "flash", main) as board:
        done = ask("hello", board, tmp_path, "--approve")
        assert (done.returncode, done.stdout) == (
            0,
            "hello n\n",
        ) and "answered with no" in done.stderr


def test_a_board_that_never_answers(tmp_path):
    with simulated(
        tmp_path / "flash", "import sys\nwhile True:\n    sys.stdin.readline()\n"
    ) as board:
        assert ask("hello", board, tmp_path, "--timeout", "1").returncode == 124


@pytest.mark.parametrize("text", ["", "two\nlines", "x" * 8193])
def test_a_text_that_is_no_line(text, tmp_path):
    done = clawlite("ask", text, "--port", "x", cwd=tmp_path)
    assert done.returncode == 2 and "expected a text" in done.stderr
