"""A board's console over its serial port: text and records taken apart, lines edited here,
scripts paced, boards that come back.
"""

import contextlib
import json
import os
import re
import signal
import termios
import time

import pytest
from agents import Agent, clawlite, linux
from sims import mpremote, needs_micropython, needs_mpy_cross, simulated

from clawlite.host.board_console.line import is_uart
from clawlite.host.board_console.screens import MAX_LINE
from clawlite.host.board_console.text import MAX_PROMPT, MAX_RECORD, PROMPT, RECORD, TEXT, BoardText
from clawlite.host.firmware import firmware, functions
from clawlite.host.firmware.board_files import board_files
from clawlite.host.serial import ports
from clawlite.host.sim.sim import Sim

ECHO = """\
import sys
import time
sys.stdout.write("> ")
while True:
    line = sys.stdin.readline().rstrip()
    if line == "ask":
        sys.stdout.write("Sure?\\n[y/N] ")
        line = "asked, " + sys.stdin.readline().rstrip()
    elif line == "record":
        sys.stdout.write('\\x1e{"jsonrpc":"2.0","id":1}\\n> ')
        continue
    elif line == "stream":
        for word in ("one", " two", " three"):
            sys.stdout.write(word)
        line = ""
    elif line == "draw":
        line = "\\x1b[2Jred\\x07"
    elif line == "quote":
        line = "> wise words\\n>"
    elif line == "reset":
        sys.exit()
    elif line == "mute":
        sys.stdout.write("busy\\n")
        continue
    elif line == "silent":
        continue
    elif line == "cross":  # a record that was on its way when the line came; then it thinks
        sys.stdout.write('\\n\\x1e{"jsonrpc":"2.0","id":2}\\n> ')
        time.sleep_ms(200)
    sys.stdout.write("You said: %s\\n> " % line if line[:1] > "\\x1b" else line + "\\n> ")
"""


@pytest.fixture(autouse=True)
def state(monkeypatch, tmp_path):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("TERM", "xterm")
    return tmp_path / "state"


@pytest.fixture
def echo(tmp_path):
    """Return a virtual board whose main.py has a prompt and answers."""
    with simulated(tmp_path / "flash", ECHO) as board:
        yield board


def console(tmp_path, *options, terminal=True, **env):
    return Agent(
        linux("console", *options),
        tmp_path / "home",
        terminal,
        cwd=tmp_path,
        env={"CLAWLITE_STATE": tmp_path / "state", "TERM": "xterm", **env},
    )


def script(tmp_path, stdin: bytes, *options):
    return clawlite(
        "console", *options, cwd=tmp_path, stdin=stdin, CLAWLITE_STATE=tmp_path / "state"
    )


# -- text, without a board


def events(*pieces, prompts=()):
    text, found = BoardText(prompts), []
    for piece in pieces:
        text.feed(piece)
        while event := text.next_event():
            if event[0] == TEXT and found and found[-1][0] == TEXT:
                event = (TEXT, found.pop()[1] + event[1])
            found.append(event)
    return found, text


@pytest.mark.parametrize(
    "data, expected",
    [
        (b"ready\r\n> ", [(TEXT, b"ready\n"), (PROMPT, b"> ")]),
        (b"Sure?\n[y/N] ", [(TEXT, b"Sure?\n"), (PROMPT, b"[y/N] ")]),
        (b'> \n\x1e{"id":1}\n> ', [(PROMPT, b"> "), (RECORD, b'{"id":1}'), (PROMPT, b"> ")]),
        (b"a\x1e{}\n", [(TEXT, b"a\\x1e{}\n")]),
        (b"\x1b[2J\x07\tx\x7f\n", [(TEXT, b"\\x1b[2J\\x07\tx\\x7f\n")]),
        ("grün \u202e\n".encode(), [(TEXT, "grün \\u202e\n".encode())]),
        (b"\xff\xc3\n", [(TEXT, b"\\xff\\xc3\n")]),
        (b"50%\r60%\n", [(TEXT, b"50%\\x0d60%\n")]),
        (b'\x1e{"a":1}\r\nx\n', [(RECORD, b'{"a":1}'), (TEXT, b"x\n")]),
    ],
)
def test_what_comes_is_taken_apart_in_any_portion(data, expected):
    whole, _ = events(data)
    assert [event for event in whole if event[0] != PROMPT] == [
        event for event in expected if event[0] != PROMPT
    ]
    assert whole[-1] == expected[-1]
    assert events(*[data[at : at + 1] for at in range(len(data))])[0] == expected


def test_a_line_that_begins_as_a_prompt_is_shown_whole():
    assert events(b"> wise words\n")[0] == [(TEXT, b"> wise words\n")]
    assert events(b"> ", b"wise ", b"words\n")[0] == [(PROMPT, b"> "), (TEXT, b"> wise words\n")]


def test_a_short_line_without_its_end_is_held_back_until_it_is_asked_for():
    found, text = events(b"done\n", b"Name? ")
    assert found == [(TEXT, b"done\n")] and text.is_holding
    assert (
        text.flush(True) == (PROMPT, b"Name? ") and not text.is_holding and text.flush(True) is None
    )
    text.feed(b"no hurry\n")
    assert text.next_event() == (TEXT, b"Name? no hurry\n") and text.next_event() is None
    text.feed(b"Name? ")
    assert text.next_event() is None and text.flush(False) == (TEXT, b"Name? ")
    text.feed(b"Ada\n")
    assert text.next_event() == (TEXT, b"Ada\n")
    for size, is_held in ((MAX_PROMPT - 1, True), (MAX_PROMPT, True), (MAX_PROMPT + 1, False)):
        assert events(b"x" * size)[1].is_holding is is_held
    found, text = events(b"claw", b"> ", prompts=["claw> "])
    assert found == [(PROMPT, b"claw> ")] and not text.is_holding
    text.begin_line()
    text.feed(b"ok\n")
    assert text.next_event() == (TEXT, b"ok\n")


@pytest.mark.parametrize(
    "data, expected",
    [
        (b"> > ", [(PROMPT, b"> ")]),
        (b"> said\n> ", [(TEXT, b"said\n"), (PROMPT, b"> ")]),
        (b"\x1e{}\n> > ", [(RECORD, b"{}"), (PROMPT, b"> ")]),
        (b"The clock is set.\n> > ", [(TEXT, b"The clock is set.\n"), (PROMPT, b"> ")]),
    ],
)
def test_a_prompt_that_waits_for_nobody_is_dropped(data, expected):
    for size in (1, len(data)):
        text, found = BoardText(), []
        text.skip()
        for at in range(0, len(data), size):
            text.feed(data[at : at + size])
            while event := text.next_event():
                found.append(event)
        assert found == expected, size


@pytest.mark.parametrize(
    "data, expected",
    [
        (b"\n\x1e{}\n> done\n> ", [(RECORD, b"{}"), (TEXT, b"done\n")]),
        (b"\n\x1e1\n> \n\x1e2\n> ok\n> ", [(RECORD, b"1"), (RECORD, b"2"), (TEXT, b"ok\n")]),
        (b"\nnext\n> ", [(TEXT, b"\nnext\n")]),
        (b"\x1e{}\n> ", [(RECORD, b"{}")]),
    ],
)
def test_a_prompt_behind_a_record_that_crossed_with_a_line_answers_nothing(data, expected):
    for size in (1, len(data)):
        found, text = events(b"> ")
        text.begin_line()
        for at in range(0, len(data), size):
            text.feed(data[at : at + size])
            while event := text.next_event():
                if event[0] == TEXT and found[-1][0] == TEXT:
                    event = (TEXT, found.pop()[1] + event[1])
                found.append(event)
        assert found == [(PROMPT, b"> "), *expected, (PROMPT, b"> ")], size
    text = BoardText()
    text.skip()  # the line was sent before the first prompt came
    text.feed(b"> \n\x1e{}\n> done\n> ")
    assert [text.next_event() for _ in range(3)] == [
        (RECORD, b"{}"),
        (TEXT, b"done\n"),
        (PROMPT, b"> "),
    ]
    text.begin_line()
    text.feed(b"\n")
    assert text.next_event() is None and text.is_holding
    assert text.flush(False) == (TEXT, b"\n") and not text.is_holding


@pytest.mark.parametrize(
    "size, kept", [(MAX_RECORD - 1, True), (MAX_RECORD, True), (MAX_RECORD + 1, False)]
)
def test_a_record_has_a_bound(size, kept):
    found, _ = events(b"\x1e" + b"1" * size + b"\nok\n")
    assert [kind for kind, _ in found] == ([RECORD] if kept else []) + [TEXT]


@needs_micropython
def test_a_board_that_answers_no_hello_stays_plain(tmp_path, echo):
    done = script(tmp_path, b"one\ntwo\nthree\n", "--port", echo.path, "--line", "reliable")
    assert (
        done.returncode == 0
        and done.stdout.startswith("You said: one\n")
        and done.stdout.endswith("You said: two\nYou said: three\n")
    )


# -- a script


@needs_micropython
def test_a_scripts_lines_wait_for_the_prompt(tmp_path, echo):
    done = script(tmp_path, b"one\nask\nyes\ntwo", "--port", echo.path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "You said: one\nSure?\nYou said: asked, yes\nYou said: two\n"


@needs_micropython
@needs_mpy_cross
def test_a_traceback_names_the_functions_of_the_sources(tmp_path):
    build = functions.build_of(firmware.link()[0])
    short, ((file, name, line), *_) = min(functions.fetch(build)["core"].items())
    crash = (
        "Traceback (most recent call last):\n"
        f'  File "main-{build}", line 1, in other\n  File "core", line 1, in {short}\n'
    )
    main = f"import sys\nsys.stdin.readline()\nsys.stdout.write({crash!r})\n"
    with simulated(tmp_path / "flash", main) as board:
        done = script(tmp_path, b"go\n", "--port", board.path)
    assert f'in {short}\n    = File "{file}", line {line}, in {name}\n' in done.stdout, done


@needs_micropython
def test_an_answer_is_waited_for_though_a_record_crosses_with_the_line(tmp_path, echo):
    done = script(tmp_path, b"cross\ntwo\n", "--port", echo.path)
    assert (done.returncode, done.stdout) == (0, "You said: cross\nYou said: two\n")


@needs_micropython
def test_records_are_hidden_unless_they_are_wanted(tmp_path, echo):
    assert script(tmp_path, b"record\nx\n", "--port", echo.path).stdout == "You said: x\n"
    assert (
        script(tmp_path, b"record\nx\n", "--port", echo.path, "--records").stdout
        == '\x1e{"jsonrpc":"2.0","id":1}\nYou said: x\n'
    )


@needs_micropython
def test_a_board_that_never_prompts_again_is_not_waited_for_for_ever(tmp_path, echo):
    done = script(tmp_path, b"mute\nx\n", "--port", echo.path, "--timeout", "0.7")
    assert (done.returncode, done.stdout) == (
        124,
        "busy\n",
    ) and "no prompt within 0.7 s" in done.stderr


@needs_micropython
def test_lines_have_a_bound_and_a_script_may_send_records(tmp_path, echo):
    for size, fits in ((MAX_LINE - 1, True), (MAX_LINE, True), (MAX_LINE + 1, False)):
        done = script(tmp_path, b"x" * size + b"\nok\n", "--port", echo.path)
        assert done.stdout == ("You said: %s\n" % ("x" * size) if fits else "") + "You said: ok\n"
        assert done.stderr == (
            ""
            if fits
            else f"clawlite: that line has {size} bytes, at most {MAX_LINE} fit; it was not sent\n"
        )
    assert (
        script(tmp_path, b'\x1e{"id":7}\n', "--port", echo.path).stdout
        == 'You said: \\x1e{"id":7}\n'
    )


@needs_micropython
def test_everything_is_logged_with_its_time(tmp_path, echo):
    script(tmp_path, b"gr\xc3\xbcn\nrecord\n\xff\n", "--port", echo.path, "--log", "all.log")
    rows = [
        re.fullmatch(r'(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) ([<>!]) (".*")', row).groups()
        for row in (tmp_path / "all.log").read_text().splitlines()
    ]
    went = [json.loads(text) for _, direction, text in rows if direction == ">"]
    came = "".join(json.loads(text) for _, direction, text in rows if direction == "<")
    assert went == ["grün\n", "record\n", "\udcff\n"]
    assert "You said: grün\n> " in came and '\x1e{"jsonrpc":"2.0","id":1}\n' in came


@needs_micropython
def test_what_a_board_draws_is_written_out(tmp_path, echo):
    assert script(tmp_path, b"draw\nquote\nstream\n", "--port", echo.path).stdout == (
        "\\x1b[2Jred\\x07\n> wise words\n>\none two three\n".replace("> wise", "You said: > wise")
    )


@needs_micropython
def test_ctrl_d_alone_on_a_line_is_that_key(tmp_path, echo):
    done = script(tmp_path, b"\x03\nimport os\nprint('here')\n\x04\nhello\n", "--port", echo.path)
    assert done.returncode == 0
    assert "KeyboardInterrupt" in done.stdout and "here\n" in done.stdout
    assert done.stdout.endswith("MPY: soft reboot\nYou said: hello\n")


@needs_micropython
def test_ctrl_c_ends_a_script(tmp_path, echo):
    with console(tmp_path, "--port", echo.path, terminal=False) as it:
        it.line("one")
        it.expect("You said: one\n")
        it.signal(signal.SIGINT)
        assert it.wait() == 130 and it.errors() == ""


# -- a person


@needs_micropython
def test_lines_are_edited_here_and_keys_reach_the_board(tmp_path, echo):
    with console(tmp_path, "--port", echo.path) as it:
        it.expect("Ctrl-] leaves; Ctrl-C and Ctrl-D go to the board.\n")
        it.send(b"helo\x1b[Dl\r")
        it.expect("You said: hello\n> ")
        it.send(b"\x1b[A again\r")
        it.expect("You said: hello again\n> ")
        it.send(b"half\x03")
        it.expect("KeyboardInterrupt")
        it.expect(">>> ")
        it.send(b"6 * 7\r")
        it.expect("42\n")
        it.expect(">>> ")
        it.send(b"\x04")
        it.expect("MPY: soft reboot\n")
        it.expect("> ")
        it.send(b"back\r")
        it.expect("You said: back\n> ")
        it.send(b"\x1d")
        assert it.wait() == 0 and it.errors() == ""
        assert termios.tcgetattr(it.theirs) == it.settings


@needs_micropython
def test_a_yes_begun_before_the_question_does_not_answer_it(tmp_path):
    main = ECHO.replace('"Sure?', '"Sure, then?').replace(
        '        sys.stdout.write("Sure',
        '        sys.stdin.readline()\n        sys.stdout.write("Sure',
    )
    with (
        simulated(tmp_path / "flash", main) as board,
        console(tmp_path, "--port", board.path) as it,
    ):
        it.expect("go to the board.\n")
        it.send(b"ask\ry")  # the board asks at the next line
        it.expect("y")
        it.send(b"\x15go\ry")
        it.expect("[y/N] ")
        it.send(b"\r")
        it.expect("You said: asked, \n> y")
        it.send(b"\x1d")
        assert it.wait() == 0


@needs_micropython
def test_a_prompt_that_nobody_knows_stands_before_what_is_typed(tmp_path):
    with simulated(
        tmp_path / "flash",
        "import sys\nwhile True:\n    sys.stdout.write('Name? ')\n "
        "   print('Hello,', sys.stdin.readline())\n",
    ) as board:
        with console(tmp_path, "--port", board.path) as it:
            it.expect("go to the board.\n")
            it.send(b"Ada\r")
            it.expect("Hello, Ada\n")
            it.expect("Name? ")
            it.send(b"Gracx")
            it.expect("Gracx")
            it.send(b"\x7fe\r")
            it.expect("Hello, Grace\n")
            it.send(b"\x1d")
            assert it.wait() == 0


@needs_micropython
def test_an_answer_that_streams_and_a_record_between(tmp_path, echo):
    with console(tmp_path, "--port", echo.path, "--records") as it:
        it.expect("go to the board.\n")
        it.send(b"stream\r")
        it.expect("one two three\n> ")
        it.send(b"record\r")
        it.expect('\x1e{"jsonrpc":"2.0","id":1}\n')
        it.expect("> ")
        it.send(b"draw\r")
        it.expect("\\x1b[2Jred\\x07\n> ")
        it.send(b"\x1d")
        assert it.wait() == 0


@needs_micropython
def test_a_person_sees_that_the_board_is_waited_for_and_for_how_long(tmp_path, echo):
    with console(tmp_path, "--port", echo.path) as it:
        it.expect("go to the board.\n")
        it.send(b"silent\r")
        it.expect("waiting for the board, 1 s")
        it.expect("2 s")  # what differs is written
        it.send(b"hello\r")
        it.expect("You said: hello")
        it.expect("> ")
        it.send(b"\x1d")
        assert it.wait() == 0


def test_a_terminal_without_abilities_edits_by_itself(tmp_path, echo):
    with console(tmp_path, "--port", echo.path, TERM="dumb") as it:
        it.line("hello")
        it.expect("You said: hello\n> ")
        it.send(b"\x03")
        it.expect("KeyboardInterrupt")
        it.expect(">>> ")
        it.send(b"\x04")
        it.expect("MPY: soft reboot\n> ")
        it.line("back")
        it.expect("You said: back\n> ")
        it.send(b"\x1d")
        assert it.wait() == 0 and b"\x1b" not in it.seen


@needs_micropython
def test_the_board_is_found_again_after_it_was_away(tmp_path):
    link = str(tmp_path / "tty")
    with contextlib.ExitStack() as boards:
        boards.enter_context(simulated(tmp_path / "flash", ECHO, link=link))
        with console(tmp_path, "--port", link) as it:
            it.expect("go to the board.\n")
            it.send(b"one\r")
            it.expect("You said: one\n> ")
            boards.close()
            it.expect(f"clawlite: {link} went away; waiting for it to come back (Ctrl-] leaves)\n")
            it.send(b"nobody hears this\r")
            it.expect("the board is disconnected: that was not sent\n")
            with Sim(link=link, folder=str(tmp_path / "flash")):
                it.expect("clawlite: connected again: /dev/")
                it.expect("\n")
                it.send(b"two\r")
                it.expect("You said: two\n> ")
                it.send(b"\x1d")
                assert it.wait() == 0


@pytest.mark.parametrize(
    "usb, expected",
    [
        ("10C4:EA60", True),
        ("1A86:7523", True),
        ("1A86:55D3", True),
        ("1A86:55D4", True),
        ("0403:6001", True),
        ("303A:1001", False),
        ("303A:4001", False),
        ("2E8A:0005", False),
    ],
)
def test_a_bridge_leads_to_a_uart_whichever_board_is_behind_it(usb, expected):
    assert is_uart({"boards": ports.profiles()[usb]}) is expected


def test_other_ports_are_not_taken_for_a_uart():
    assert (
        not is_uart({"boards": ["sim"]})
        and not is_uart({"boards": []})
        and is_uart({"boards": ["esp32"]})
    )


_BOOTS = """
import sys
line = sys.stdin.readline()             # somebody types in the boot window
print("g 1.0 is ready. /help lists the commands.")
sys.stdout.write("> ")
while True:
    if line.strip():
        print("said", line.strip())
    sys.stdout.write("> ")
    line = sys.stdin.readline()
"""


@needs_micropython
def test_the_prompt_of_a_board_that_was_still_booting_answers_no_line(tmp_path):
    for words, stdin, said in (
        (
            ("console",),
            b"one\ntwo\n",
            "g 1.0 is ready. /help lists the commands.\nsaid one\nsaid two\n",
        ),
        (("ask", "one"), b"", "said one\n"),
    ):
        with simulated(tmp_path / words[0], _BOOTS) as board:
            done = clawlite(
                *words,
                "--port",
                board.path,
                cwd=tmp_path,
                stdin=stdin,
                CLAWLITE_STATE=tmp_path / "state",
            )
            assert (done.returncode, done.stdout) == (0, said), done.stderr


# -- an agent on a board, as a newcomer meets it


@needs_micropython
@needs_mpy_cross
def test_an_agent_on_a_virtual_board(tmp_path):
    assert clawlite("new", "g", "--offline", cwd=tmp_path).returncode == 0
    assert clawlite("build", cwd=tmp_path / "g").returncode == 0
    files = board_files(str(tmp_path / "g" / "claw.cbor"), str(tmp_path / "firmware"))
    (tmp_path / "boot.json").write_text('{"window_ms": 100}')
    files.append((str(tmp_path / "boot.json"), "/boot.json"))
    with Sim(heap="128k") as board:
        for folder in sorted({os.path.dirname(target) for _, target in files} - {"/"}):
            mpremote(board.path, "fs", "mkdir", ":" + folder)
        copies = [
            word for source, target in files for word in ("fs", "cp", source, ":" + target, "+")
        ]
        mpremote(board.path, *copies[:-1])
        mpremote(board.path, "soft-reset")
        with console(tmp_path, "--port", board.path) as it:
            it.expect("go to the board.\n")
            it.send(b"\x04")
            it.expect(
                "MPY: soft reboot\nclawlite: Ctrl-C within 100 ms keeps the agent from starting\n"
            )
            it.expect("g 1.0.0 is ready. /help lists the commands.\n> ")
            it.send(b"is the soil dry?\r")
            it.expect(
                "Approve water(seconds=3)?\n  rule ask-before-watering asks first: water "
                "does not flow back\n  (60 s, then denied)\n[y/N] "
            )
            it.send(b"y\r")
            it.expect("Watered for 3 s.\n> ")
            it.send(b"\x1d")
            assert it.wait() == 0 and it.errors() == ""
        done = script(tmp_path, b"is the soil dry?\n", "--port", board.path)
        said = done.stdout
        # 48 %, and more where the machine was too busy to end the three seconds of water in time.
        assert re.fullmatch(r"The soil is wet enough: \d+ %\.\n", said), said
        assert (done.returncode, done.stderr) == (0, "")
        log = tmp_path / "console.log"
        asked = b"is the soil dry?\n" * 3
        done = script(tmp_path, asked, "--port", board.path, "--line", "reliable", "--log", log)
        assert (done.returncode, done.stdout, done.stderr) == (0, said * 3, "")
        came = "".join(
            json.loads(line[27:]) for line in log.read_text().splitlines() if line[25] == "<"
        )
        # frames carried the second and the third
        assert "\x1e~0000h" in came and re.search("\x1eaAA[I-L]", came)
        assert (
            script(tmp_path, b"is the soil dry?\n", "--port", board.path, "--line", "plain").stdout
            == said
        )
    assert not os.path.exists(board.folder)


@needs_micropython
def test_a_board_that_asks_is_told_the_time(tmp_path):
    main = (
        "import sys\nsys.stdin.readline()\n"
        'sys.stdout.write(\'\\x1e{"jsonrpc":"2.0","method":"claw.clock"}\\n> \')\n'
        "told = sys.stdin.readline()\nopen('told', 'w').write(told)\n"
        "sys.stdout.write('thanks\\n> ')\nwhile sys.stdin.readline(): pass\n"
    )
    begun_s = int(time.time())
    with (
        simulated(tmp_path / "flash", main) as board,
        console(tmp_path, "--port", board.path) as it,
    ):
        it.line("hello")
        it.expect("thanks")
        record = (tmp_path / "flash/told").read_bytes()
        told = json.loads(record[1:])
        assert (
            record[:1] == b"\x1e"
            and told["method"] == "claw.clock"
            and begun_s <= told["params"]["epoch_s"] <= time.time()
        )
        assert "claw.clock" not in it.text()
