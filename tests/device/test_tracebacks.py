"""Tracebacks of boards name the functions of the sources."""

import ast
import pathlib
import shutil
import subprocess
import sys

import pico_stack
import pytest

from clawlite.host.bench import agent
from clawlite.host.board_console.log import ConsoleLog
from clawlite.host.builder import build
from clawlite.host.firmware import firmware, functions
from clawlite.host.firmware.functions import Tracebacks

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"


@pytest.fixture(scope="module")
def built(tree):
    """Return the folder of a board's files, with an agent in ``agent``."""
    shutil.copytree(GOLDEN / "greenhouse", tree / "agent")
    return tree


def crash(tree, micropython, script):
    """Return the traceback with which *script* ends on a board."""
    (tree / "start.py").write_text(script)
    done = subprocess.run(
        [pico_stack.micropython(), "start.py"],
        cwd=tree,
        env={"MICROPYPATH": ".:.frozen"},
        input=b"",
        capture_output=True,
    )
    said = done.stdout + done.stderr
    assert b"Traceback" in said, said
    return said[said.index(b"Traceback") :]


# The loop of the core's Device is under way when something that no code expects is raised.
IN_CORE = """
import main
class Unexpected(BaseException):
    pass
def ready():
    raise Unexpected()
device, why = main.attempt("agent/claw.cbor", "agent", False)
main.run(device, ready)
"""
IN_MAIN = """
import main
main.watch(None, 1000)
"""
# As a maker's module may end: no handler catches this.
TOOLS = """

class Unexpected(BaseException):
    pass


def _fall():
    raise Unexpected()


_fall()
"""
LOADED = """
import main
main.attempt("faulty/claw.cbor", "faulty", False)
"""


def test_a_crash_in_core_is_decoded(built, micropython):
    said = crash(built, micropython, IN_CORE)
    shown = Tracebacks().feed(said).decode()
    assert (
        '    = File "firmware-host/micropython/runtime/main.py", line ' in shown
        and "in run\n" in shown
    )
    assert '    = File "firmware-host/micropython/runtime/device.py", line ' in shown
    assert "in Device." in shown
    assert [line for line in shown.splitlines() if "    = " not in line] == said.decode().split(
        "\n"
    )[:-1]


def test_a_fault_in_tools_py_is_shown_under_the_functions_that_loaded_it(built, micropython):
    faulty = built / "faulty"
    faulty.mkdir()
    agent.write(str(faulty))
    with open(faulty / "tools.py", "a") as file:
        file.write(TOOLS)
    build.build_beside(str(faulty))
    shown = Tracebacks().feed(crash(built, micropython, LOADED)).decode()
    assert '    = File "firmware-host/micropython/runtime/loader.py", line ' in shown
    assert "in load\n" in shown and shown.count(", in _fall\n") == 1


def test_lines_that_come_in_pieces_are_decoded_once(built, micropython):
    said, whole = crash(built, micropython, IN_MAIN), Tracebacks()
    pieces = Tracebacks()
    assert b"    = File" in whole.feed(said)
    assert b"".join(pieces.feed(bytes([byte])) for byte in said) == Tracebacks().feed(said)


def test_another_build_is_never_decoded(built, micropython):
    number = functions.build_of(firmware.link()[0])
    said = crash(built, micropython, IN_CORE).replace(number.encode(), b"00000000")
    shown = Tracebacks().feed(said).decode()
    assert "no map for build 00000000 here" in shown and shown.count("    = ") == 1


def test_frames_without_a_build_stay_as_they_are():
    told = b'Traceback (most recent call last):\n  File "core", line 1, in _1\n'
    assert Tracebacks().feed(told) == told


def test_every_function_of_a_board_is_known(built):
    known = functions.fetch(functions.build_of(firmware.link()[0]))
    defined = {
        (unit, node.name)
        for unit, text in firmware.link()[0].items()
        for _, node in functions._functions(ast.parse(text))
    }
    assert defined == {(unit, name) for unit, names in known.items() for name in names}


def logs(path, given=b""):
    """Run ``clawlite logs`` as a command."""
    return subprocess.run(
        [sys.executable, "-m", "clawlite", "logs", path], input=given, capture_output=True
    )


def test_a_saved_log_is_decoded(built, micropython, tmp_path):
    said = crash(built, micropython, IN_CORE)
    saved = tmp_path / "terminal.log"
    saved.write_bytes(b"g 1.0.0 is ready.\r\n\x1e{}\r\n" + said.replace(b"\n", b"\r\n"))
    shown = b"g 1.0.0 is ready.\n" + Tracebacks().feed(said)
    done = logs(str(saved))
    assert (done.returncode, done.stderr) == (0, b"") and done.stdout == shown
    assert logs("-", saved.read_bytes()).stdout == shown


def test_the_log_of_a_console_is_decoded_over_its_entries(built, micropython, tmp_path):
    said, saved = crash(built, micropython, IN_CORE), tmp_path / "console.log"
    log = ConsoleLog(str(saved))
    log.note_received(b"g 1.0.0 is ready.\n> ")
    log.note_sent(b"gr\xc3\xbcn?\n")
    for at in range(0, len(said), 7):
        log.note_received(said[at : at + 7])
    log.note("the board went away")
    log.note_received(b"\x1b[2J\xff")
    log.close()
    done = logs(str(saved))
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "g 1.0.0 is ready.\n> grün?\n".encode()
        + Tracebacks().feed(said)
        + b"clawlite: the board went away\n\\x1b[2J\\xff\n"
    )


def test_a_saved_log_that_is_not_there_is_named(tmp_path):
    done = logs(str(tmp_path / "none.log"))
    assert done.returncode == 2 and done.stdout == b""
    assert b"none.log: No such file or directory - name a file, or - for stdin" in done.stderr
