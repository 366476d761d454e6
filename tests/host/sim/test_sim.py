"""The virtual board: real MicroPython, real pseudo-terminals, real mpremote."""

import hashlib
import json
import os
import signal

import pytest
from agents import Agent, clawlite, eventually, linux
from sims import Client, mpremote, needs_micropython, simulated

from clawlite.core.base.errors import ClawError
from clawlite.host.base import programs
from clawlite.host.sim import sim as sims
from clawlite.host.sim.registry import registry, running
from clawlite.host.sim.sim import Sim

PROMPT = b">>> "


@pytest.fixture(autouse=True)
def state(monkeypatch, tmp_path):
    """The registry of these boards lies in the test's own folder."""
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


# -- as a board


@needs_micropython
def test_mpremote_works_as_with_a_board(tmp_path):
    (tmp_path / "hello.txt").write_text("hello\n" * 100)
    (tmp_path / "show.py").write_text("import os\nprint(sorted(os.listdir('/')))\n")
    with Sim() as board:
        assert mpremote(board.path, "exec", "print(6 * 7)") == "42\n"
        mpremote(board.path, "fs", "cp", tmp_path / "hello.txt", ":hello.txt")
        assert "hello.txt" in mpremote(board.path, "fs", "ls")
        assert (
            mpremote(board.path, "fs", "sha256sum", "hello.txt").split()[-1]
            == hashlib.sha256(b"hello\n" * 100).hexdigest()
        )
        assert mpremote(board.path, "fs", "cat", ":hello.txt") == "hello\n" * 100
        assert mpremote(board.path, "soft-reset") == ""
        assert mpremote(board.path, "run", tmp_path / "show.py") == "['hello.txt']\n", (
            "the flash is all that the board sees"
        )
        assert mpremote(board.path, "resume", "exec", "x = 1", "exec", "print(x)") == "1\n"


@needs_micropython
def test_a_soft_reset_runs_boot_then_main(tmp_path):
    with (
        simulated(
            tmp_path / "flash", "print('main', __name__, order)\n", "order = ['boot']\n"
        ) as board,
        Client(board.path) as client,
    ):
        client.expect(PROMPT)
        client.send(b"\x04")
        assert client.expect(b"MPY: soft reboot\r\n") == b"\r\n"
        assert client.expect(PROMPT).startswith(b"main __main__ ['boot']\nMicroPython ")
        client.send(b"order.append(2); order\r")
        client.expect(b"['boot', 2]\n" + PROMPT)
        client.send(b"\x01")
        client.expect(b"raw REPL; CTRL-B to exit\r\n>")
        client.send(b"\x04")
        assert (
            client.expect(b"raw REPL; CTRL-B to exit\r\n>") == b"OK\r\nMPY: soft reboot\r\n\r\n"
        ), "boot.py alone, and no banner between"
        client.send(b"print(order)\x04")
        client.expect(b"OK['boot']\n\x04\x04>")
        client.send(b"\x02")
        client.expect(b'"help()" for more information.\r\n' + PROMPT)
        client.send(b"\x04")
        client.expect(b"MPY: soft reboot\r\nmain __main__ ['boot']\n")


@needs_micropython
def test_ctrl_c_interrupts_main_and_leaves_its_variables(tmp_path):
    main = "import time\ncount = 7\nprint('running')\nwhile True:\n    time.sleep(1)\n"
    with simulated(tmp_path / "flash", main) as board, Client(board.path) as client:
        for _ in range(2):
            client.expect(b"running\n")
            client.send(b"\x03")
            assert b"KeyboardInterrupt" in client.expect(PROMPT)
            client.send(b"count\r")
            client.expect(b"7\n" + PROMPT)
            client.send(b"\x04")
        client.expect(b"running\n")
        assert mpremote(board.path, "exec", "print('taken over')") == "taken over\n"


@needs_micropython
def test_a_prompt_that_follows_no_end_of_main_takes_what_is_typed(tmp_path):
    """A second Ctrl-C may end what would have told of main's end. This main shows a prompt, and
    enters the raw REPL, as MicroPython does then.
    """
    main = (
        "import sys\nsys.stdout.write('Type \"help()\" for more information.\\r\\n>>> ')\n"
        "sys.stdin.buffer.read(1)\nsys.stdout.write('raw REPL; CTRL-B to exit\\r\\n>')\n"
        "print(sys.stdin.buffer.read(1))\n"
    )
    with simulated(tmp_path / "flash", main=main) as sim, Client(sim.path) as client:
        client.expect(PROMPT)
        client.send(b"\x01")
        client.expect(b"raw REPL; CTRL-B to exit\r\n>")
        client.send(b"\x04")
        client.expect(b"b'\\x04'")


@needs_micropython
def test_a_board_that_waits_for_itself_after_ctrl_c_ends_at_the_prompt(tmp_path):
    """So the unix port does that was interrupted in a collection beside another thread."""
    main = (
        "import _thread\nlock = _thread.allocate_lock()\nlock.acquire()\nprint('works')\n"
        "while True:\n    try:\n        lock.acquire()\n    except KeyboardInterrupt:\n"
        "        pass\n"
    )
    with simulated(tmp_path / "flash", main=main) as sim, Client(sim.path) as client:
        client.expect(b"works")
        client.send(b"\x03")
        client.expect(b">>> ")
        client.send(b"print('as ' + 'new')\r")
        client.expect(b"as new\n")


@needs_micropython
def test_ctrl_c_in_a_collection_ends_at_the_prompt_too(tmp_path):
    main = (
        "import gc\nkept = [[n] for n in range(4000)]\nprint('works')\nwhile True:\n    "
        "gc.collect()\n"
    )
    with simulated(tmp_path / "flash", main=main, heap="512k") as sim, Client(sim.path) as client:
        for _ in range(8):  # the unix port does not survive most of these
            client.send(b"\r\x04")
            client.expect(b"works")
            client.send(b"\x03")
            client.expect(b">>> ")


def test_ctrl_c_interrupts_what_began_just_before_and_loses_nothing_typed_ahead():
    with Sim() as board, Client(board.path) as client:
        client.expect(PROMPT)
        client.send(b"name = input()\rAda Lovelace\rprint(name.upper())\r")
        client.expect(b"ADA LOVELACE\n" + PROMPT)
        for _ in range(5):
            client.send(b"exec('while True: pass')\r\x03")
            client.expect(b"KeyboardInterrupt")
            client.expect(PROMPT)
        client.send(b"garbage\x03")
        client.expect(PROMPT)
        client.send(b"print('as ' + 'new')\r")
        client.expect(b"as new\n")


@needs_micropython
def test_a_program_may_have_ctrl_c_as_a_character():
    with Sim() as board, Client(board.path) as client:
        client.send(b"\x01")
        client.expect(b">")
        client.send(
            b"import sys, micropython\nmicropython.kbd_intr(-1)\nprint('go')\n"
            b"print(sys.stdin.buffer.read(3))\x04"
        )
        client.expect(b"go\n")
        client.send(b"a\x03b")
        client.expect(b"b'a\\x03b'\n")


@needs_micropython
def test_sys_exit_in_main_is_a_soft_reset(tmp_path):
    main = (
        "import os, sys\nif 'again' not in os.listdir():\n    open('again', 'w').close()\n    "
        "sys.exit()\nprint('second time')\n"
    )
    with simulated(tmp_path / "flash", main) as board, Client(board.path) as client:
        client.expect(PROMPT)
        os.remove(tmp_path / "flash" / "again")
        client.send(b"\x04")
        client.expect(b"MPY: soft reboot\r\nMPY: soft reboot\r\nsecond time\n")


@needs_micropython
def test_a_fault_in_main_is_shown_and_ends_in_the_repl(tmp_path):
    with (
        simulated(tmp_path / "flash", "1 / 0\n", "print('boot')\n") as board,
        Client(board.path) as client,
    ):
        shown = client.expect(PROMPT)
        assert (
            b'File "main.py", line 1, in <module>\nZeroDivisionError' in shown
            and b"boot\n" in shown
        )


@needs_micropython
def test_output_that_nobody_reads_holds_nothing_up_and_a_reader_misses_nothing(tmp_path):
    main = (
        "for i in range(20000):\n    print('line %d of very many' % i)\nopen('done', 'w').close()\n"
    )
    with simulated(tmp_path / "flash", main) as board:
        eventually((tmp_path / "flash" / "done").exists)
        os.remove(tmp_path / "flash" / "done")
        with Client(board.path) as client:
            client.send(b"print('here' + ' I am')\r")
            client.expect(b"here I am\n" + PROMPT)
            client.send(b"\x04")
            client.expect(b"reboot\r\n")
            lines = client.expect(b"MicroPython ").splitlines()
        assert lines == [b"line %d of very many" % i for i in range(20000)]


@needs_micropython
def test_the_heap_has_the_size_that_was_asked_for():
    with Sim(heap="96k") as board:
        size = int(mpremote(board.path, "exec", "import gc; print(gc.mem_free() + gc.mem_alloc())"))
        assert 88 * 1024 < size <= 96 * 1024
    with Sim(board="pico-w") as board:
        size = int(mpremote(board.path, "exec", "import gc; print(gc.mem_free() + gc.mem_alloc())"))
        assert 180000 < size <= 198000


# -- its life


@needs_micropython
def test_files_are_kept_in_a_folder_that_was_named_and_else_nowhere(tmp_path):
    with Sim() as board:
        mpremote(board.path, "exec", "open('note', 'w').close()")
        assert os.listdir(board.folder) == ["note"]
    assert not os.path.exists(board.folder)
    for expected in ("[]", "['note']"):
        with Sim(folder=str(tmp_path / "flash")) as board:
            assert (
                mpremote(
                    board.path, "exec", "import os; print(os.listdir()); open('note', 'w').close()"
                )
                == expected + "\n"
            )


@needs_micropython
def test_several_at_once_are_told_apart(tmp_path):
    with Sim() as one, Sim(link=str(tmp_path / "tty")) as two:
        mpremote(one.path, "exec", "open('first', 'w').close()")
        assert mpremote(str(tmp_path / "tty"), "exec", "import os; print(os.listdir())") == "[]\n"
        assert [facts["port"] for facts in running()] == [
            facts["port"] for facts in sorted((one.facts, two.facts), key=lambda f: f["id"])
        ]
        with pytest.raises(ClawError, match="is the port of another virtual board"):
            Sim(link=str(tmp_path / "tty")).__enter__()
        with pytest.raises(ClawError, match="is the flash of another virtual board"):
            Sim(folder=one.folder).__enter__()
    assert (
        running() == [] and os.listdir(registry()) == [] and not os.path.lexists(tmp_path / "tty")
    )


@needs_micropython
@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_the_command_tells_its_port_first_and_leaves_nothing_behind(tmp_path, state, number, code):
    link = tmp_path / "tty"
    with Agent(linux("sim", "--pty-link", link), tmp_path, env={"CLAWLITE_STATE": state}) as sim:
        port = sim.expect("\n")
        assert port.startswith("/dev/") and os.readlink(link) == port
        assert mpremote(str(link), "exec", "print('hello')") == "hello\n"
        folder = running()[0]["folder"]
        assert os.path.isdir(folder)
        sim.signal(number)
        assert sim.wait() == code
        assert sim.errors() == (
            f"A virtual board (sim) is on {link}; Ctrl-C ends it.\nNext: "
            f"clawlite console --port {link}\n"
        )
    assert (
        not os.path.lexists(link)
        and not os.path.exists(folder)
        and os.listdir(state / ".sims") == []
    )


@needs_micropython
def test_one_that_was_killed_counts_for_nothing_and_its_link_is_taken_over(tmp_path, state):
    link = tmp_path / "tty"
    with Agent(
        linux("sim", "--json", "--pty-link", link), tmp_path, env={"CLAWLITE_STATE": state}
    ) as sim:
        facts = json.loads(sim.expect("\n"))
        assert (
            set(facts) == {"port", "link", "board", "id", "folder", "pid"}
            and facts["pid"] == sim.process.pid
        )
        assert running() == [facts]
        sim.signal(signal.SIGKILL)
        sim.wait()
        assert running() == [] and os.path.islink(link)
    with Sim(link=str(link)) as board:
        assert os.readlink(link) == board.path


@needs_micropython
def test_too_small_a_heap_is_said(monkeypatch):
    with pytest.raises(ClawError, match="expected at least 16k, got 1k"):
        Sim(heap="1k")
    monkeypatch.setattr(sims, "LEAST_HEAP", 0)
    with pytest.raises(ClawError, match="does not start"):
        Sim(heap="1k").__enter__()
    assert running() == []


def test_what_cannot_be_simulated_is_refused(tmp_path, monkeypatch):
    done = clawlite("sim", "--board", "linux", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (
        2,
        "",
    ) and "the board linux runs cpython" in done.stderr
    done = clawlite("sim", "--heap", "lots", cwd=tmp_path)
    assert done.returncode == 2 and "expected a size as 96k or 2M, got lots" in done.stderr
    (tmp_path / "tty").write_text("mine")
    monkeypatch.setattr(programs.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(programs.sysconfig, "get_path", lambda name: "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClawError, match="exists and is no link"):
        Sim(link=str(tmp_path / "tty")).__enter__()
    with pytest.raises(ClawError, match="no micropython command"):
        Sim().__enter__()
