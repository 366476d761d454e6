"""``clawlite flash``: what is shown, what travels, what is refused; over a virtual board's port
and into a folder.
"""

import contextlib
import dataclasses
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import tty
import zlib

import agents
import pico_stack
import pytest
from agents import DEADLINE_S, Agent, clawlite, environment, eventually, linux
from run_core_micropython import BOARD
from sims import Client, needs_micropython, needs_mpy_cross
from slot_board import TOOLS, project

from clawlite.core.base.errors import ClawError
from clawlite.host.flash import board as flash_board
from clawlite.host.flash import flash
from clawlite.host.flash.folder import Folder, is_whole
from clawlite.host.flash.plan import BoardState, Contents, digest, file_list, newest, plan, record
from clawlite.host.sim.sim import Sim

pytestmark = needs_mpy_cross
BOOT = '{"window_ms": 100}'


@pytest.fixture(scope="module")
def want(tmp_path_factory):
    """Return what a board gets for an agent."""
    return flash.contents(project(tmp_path_factory.mktemp("flash") / "agent", "1.0.0"))


@pytest.fixture(autouse=True)
def state(monkeypatch, tmp_path):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))


def other(want: Contents, tools: str = TOOLS + "# other\n", image: bytes = None) -> Contents:
    return dataclasses.replace(
        want, slot={**want.slot, "tools.py": tools.encode()}, image=image or want.image
    )


def flashed(target, want: Contents) -> tuple:
    """Flash *want*; return (plan, how many bytes were told to have gone)."""
    made, gone = flash.prepare(target, want), []
    flash.carry_out(target, made, gone.append)
    return made, sum(gone)


# -- the plan


def test_a_first_flash_and_one_of_the_same(want, tmp_path):
    target = Folder(str(tmp_path))
    made, gone = flashed(target, want)
    assert (made.boots, made.slot) == (None, "a") and {
        change["change"] for change in made.changes
    } == {"new"}
    assert gone == made.travels == sum(change["bytes"] for change in made.changes) + 15
    assert is_whole((tmp_path / "claw-a.cbor").read_bytes()) and not list(tmp_path.rglob("*.new"))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    made, gone = flashed(target, want)
    assert (made.boots, made.slot, made.steps, gone) == ("a", "a", [], 0) and {
        change["change"] for change in made.changes
    } == {"same"}
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_only_what_changed_travels(want, tmp_path):
    target = Folder(str(tmp_path))
    flashed(target, want)
    changed = other(want)
    made, gone = flashed(target, changed)
    assert (made.boots, made.slot) == ("a", "b")
    assert [change["path"] for change in made.changes if change["change"] != "same"] == [
        "/claw-a/files",
        "/claw-a/tools.py",
    ]
    assert gone == made.travels == len(changed.slot["tools.py"]) + len(file_list(changed.slot)) + 15


def test_files_that_no_build_has_any_more_go(want, tmp_path):
    target = Folder(str(tmp_path))
    flashed(target, dataclasses.replace(want, slot={**want.slot, "old.mpy": b"x"}))
    made, _ = flashed(target, want)
    assert [
        (change["path"], change["change"]) for change in made.changes if change["change"] != "same"
    ] == [("/claw-a/files", "changed"), ("/claw-a/old.mpy", "gone")]
    flashed(target, other(want))
    assert (made.slot, sorted(path.name for path in tmp_path.glob("claw-*/old.mpy"))) == (
        "b",
        ["old.mpy"],
    )
    (tmp_path / "claw.boot").write_bytes(ready_record("a", 9))
    flashed(target, dataclasses.replace(want, image=want.image))
    assert not (tmp_path / "claw-b/old.mpy").exists()


def ready_record(slot: str, counter: int, trials: int = 0) -> bytes:
    """Return the record of a slot that was READY, *trials* boots ago."""
    data = struct.pack(">4sI1sBB", b"CLB1", counter, slot.encode(), trials, 1)
    return data + zlib.crc32(data).to_bytes(4, "big")


def looked(record: bytes, whole=("a", "b")) -> BoardState:
    files = {f"/claw-{slot}.cbor": digest(slot.encode()) for slot in whole}
    return BoardState(files, whole, (record,) if record else ())


def test_old_files_of_a_slot_make_room_for_what_comes(want, tmp_path, monkeypatch):
    """In a full flash: the slot that does not boot is emptied first, and has no image then."""
    target = Folder(str(tmp_path))
    old = {f"old{number}.mpy": bytes(4096) for number in range(100)}
    flashed(target, dataclasses.replace(want, slot={**want.slot, **old}))
    flashed(target, other(want))
    (tmp_path / "claw.boot").write_bytes(ready_record("b", 9))
    new = dataclasses.replace(want, slot={"modules": bytes(300000)})
    look = dataclasses.replace(target.read_state(), free=0)
    monkeypatch.setattr(Folder, "read_state", lambda self: look)
    steps = flash.prepare(target, new).steps
    removed = [step for step in steps if step[0] == "remove"]
    assert len(removed) == 100 + len(want.slot) and steps[1 : 1 + len(removed)] == removed
    assert steps[0] == ("rename", "/claw-a.cbor", "/claw-a.cbor.new")
    assert all(path.startswith("/claw-a/") for _, path in removed)


@pytest.mark.parametrize(
    "look, boots, slot",
    [
        (looked(b"", ()), None, "a"),
        (looked(b"", ("a",)), "a", "b"),
        (looked(b"", ("b",)), "b", "a"),
        (looked(b""), "a", "a"),
        (looked(ready_record("a", 1)), "a", "b"),
        (looked(ready_record("b", 1)), "b", "a"),
        (looked(ready_record("b", 1), ("a",)), "a", "b"),
        (looked(ready_record("a", 1), ()), None, "a"),
        # it has not been READY: the other one is kept
        (looked(record(1, "b")), "b", "b"),
        (looked(ready_record("b", 1, 1)), "b", "b"),
        (looked(ready_record("b", 1, 3)), "a", "b"),
        (looked(ready_record("b", 1, 3), ("b",)), "b", "a"),
        (looked(ready_record("b", 1)[:-1]), "a", "a"),
        (looked(ready_record("b", 1)[:-1] + b"\0"), "a", "a"),
    ],
)
def test_the_slot_that_was_ready_last_is_kept(look, boots, slot):
    made = plan(look, Contents({}, {}, b"new"))
    assert (made.boots, made.slot) == (boots, slot)
    assert newest((made.steps[-3][2],))[1] == slot


@needs_micropython
def test_the_board_reads_the_record_as_it_was_written(tmp_path):
    start = (
        "import sys, slots\n"
        "print(slots.read(sys.argv[1]))\nslots.write(sys.argv[1], 'a', 999, 1)\n"
        "slots.ready(sys.argv[1])"
    )

    def board() -> str:
        done = subprocess.run(
            [pico_stack.micropython(), pico_stack.script(start), str(tmp_path)],
            env={"MICROPYPATH": pico_stack.compiled(BOARD / "boot")},
            capture_output=True,
            text=True,
            timeout=300,
        )
        return done.stdout.strip() + done.stderr

    assert board() == "['a', 0, 0]"
    (tmp_path / "claw.boot").write_bytes(record(7, "b"))
    (tmp_path / "claw.boot.new").write_bytes(record(6, "a"))
    assert board() == "['b', 0, 0]"
    assert newest(((tmp_path / "claw.boot").read_bytes(),)) == (9, "a", 0, 1)
    for size in range(15):
        (tmp_path / "claw.boot").write_bytes(record(7, "b")[:size])
        assert board() == "['a', 0, 0]"


def test_a_main_of_somebody_and_no_room_are_refused_before_anything_is_written(
    want, tmp_path, monkeypatch
):
    target = Folder(str(tmp_path))
    monkeypatch.setattr(Folder, "read_state", lambda self: BoardState({}, free=65536))
    with pytest.raises(ClawError, match="bytes of room are wanted, 65536 are free"):
        flash.prepare(target, want)
    monkeypatch.undo()
    (tmp_path / "main.py").write_text("print('mine')\n")
    with pytest.raises(
        ClawError, match="its main.py was not made by clawlite and is not overwritten"
    ):
        flash.prepare(target, want)
    assert os.listdir(tmp_path) == ["main.py"]


@pytest.mark.parametrize(
    "left",
    [
        b"",
        b"\0" * 512,
        b"\xff" * 512,
        flash.OURS[:20],
        b"import os\n" + b"\0" * 300,
        flash.OURS + b"\nimport bootwi",
    ],
    ids=["empty", "zeros", "erased", "cut", "half", "cut later"],
)
def test_a_damaged_main_is_nobodys_and_is_written_anew(want, tmp_path, left):
    target = Folder(str(tmp_path))
    flashed(target, want)
    good = (tmp_path / "main.py").read_bytes()
    (tmp_path / "main.py").write_bytes(left)
    made = flash.prepare(target, want)
    assert made.damaged == ([] if left.startswith(flash.OURS) else ["/main.py"])
    flashed(target, want)
    assert (tmp_path / "main.py").read_bytes() == good


def test_a_main_of_somebody_in_any_language_is_not_damaged(want, tmp_path):
    for text in ("print('ü')", "é" * 300, "# " + "水" * 90, "x" * 255 + "水" * 9):
        (tmp_path / "main.py").write_text(text)
        with pytest.raises(ClawError, match="was not made by clawlite"):
            flash.prepare(Folder(str(tmp_path)), want)


def test_a_damaged_main_is_told(tmp_path):
    project(tmp_path / "agent", "1.0.0")
    (tmp_path / "board").mkdir()
    (tmp_path / "board/main.py").write_bytes(b"\0" * 100)
    done = clawlite("flash", "agent", "--dir", "board", "--yes", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "/main.py there was damaged, and is written anew." in done.stderr


# -- the command line, into a folder


def test_flash_into_a_folder(tmp_path):
    project(tmp_path / "agent", "1.0.0")
    (tmp_path / "card").mkdir()
    words = ("flash", "agent", "--dir", "card")
    done = clawlite(*words, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.endswith(
        "clawlite: this changes the board, and there is no terminal to ask on - "
        "confirm with --yes\n"
    )
    done = clawlite(*words, "--dry-run", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert done.returncode == 0 and not os.listdir(tmp_path / "card")
    assert sorted(found) == [
        "board",
        "boots",
        "damaged",
        "dry_run",
        "files",
        "next",
        "said",
        "slot",
        "target",
        "travels",
        "where",
        "written",
    ]
    assert (
        found["dry_run"],
        found["written"],
        found["slot"],
        found["where"],
        found["boots"],
        found["said"],
    ) == (True, False, "a", "folder", None, None)
    assert {"path", "change", "bytes", "sha256"} == set(found["files"][0])
    done = clawlite("flash", "agent/claw.cbor", "--dir", "card", "--yes", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "") and done.stderr.endswith(
        ", 0 files the same\nWritten; slot a boots next.\n"
    )
    assert "%" not in done.stderr, "progress is for terminals"
    done = clawlite(*words, cwd=tmp_path)
    assert done.returncode == 0 and done.stderr.endswith(
        "Nothing to write: the board has this already.\n"
    )


@pytest.mark.parametrize("answer, code", [(b"n\n", 1), (b"\n", 1), (b"y\n", 0)])
def test_a_person_is_asked(tmp_path, answer, code):
    project(tmp_path / "agent", "1.0.0")
    (tmp_path / "card").mkdir()
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        linux("flash", "agent", "--dir", "card"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=tmp_path,
        env=environment(tmp_path / "home"),
    ) as process:
        os.close(theirs)
        seen = b""
        while b"Write this? [y/N] " not in seen:
            seen += os.read(ours, 4096)
        os.write(ours, answer)
        with contextlib.suppress(OSError):  # the end of a pseudo-terminal
            while True:
                seen += os.read(ours, 4096)
        assert process.wait(DEADLINE_S) == code
    os.close(ours)
    assert bool(os.listdir(tmp_path / "card")) == (code == 0) == (b"100 % of " in seen)


@pytest.mark.parametrize(
    "words, code, said",
    [
        (["--dir", "nowhere"], 2, "nowhere: no such folder"),
        (["--dir", ".", "--port", "x"], 2, "--port and --dir: expected one of them"),
        (["--port", "nowhere"], 3, "nowhere does not exist"),
    ],
)
def test_what_cannot_be_flashed_is_refused_by_name(tmp_path, words, code, said):
    done = clawlite("flash", *words, "--yes", cwd=tmp_path)
    assert done.returncode == code and said in done.stderr


# -- over a port


@needs_micropython
def test_a_newcomer_flashes_a_virtual_board_and_talks_to_it(tmp_path):
    def clawlite(*words, **more):
        return agents.clawlite(*words, cwd=tmp_path, CLAWLITE_STATE=tmp_path / "state", **more)

    assert clawlite("new", "g", "--offline").returncode == 0
    (tmp_path / "board").mkdir()
    (tmp_path / "board/boot.json").write_text(BOOT)
    with Sim(folder=str(tmp_path / "board")) as board:
        done = clawlite("flash", "g", "--port", board.path, "--yes")
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("g 1.0.0 is ready. /help lists the commands.\n")
        assert f"{board.path} (sim): slot a" in done.stderr and done.stderr.endswith(
            f"Next: clawlite console --port {board.path}\n"
        )
        done = clawlite("console", "--port", board.path, stdin=b"is the soil dry?\nn\n")
        assert (done.returncode, "The soil is dry: 21 %" in done.stdout) == (0, True), done.stderr
        done = clawlite("flash", "g", "--port", board.path, "--json")
        found = json.loads(done.stdout)
        assert (done.returncode, found["travels"], found["written"], found["board"]) == (
            0,
            0,
            False,
            "sim",
        )
        done = clawlite("console", "--port", board.path, stdin=b"is the soil dry?\nn\n")
        assert "The soil is dry: 21 %" in done.stdout, "what was flashed before runs on"


@needs_micropython
def test_a_virtual_board_that_stands_in_for_one_with_pins(tmp_path):
    """It has that board's heap, and none of its pins: the simulated ones come along."""
    (tmp_path / "board").mkdir()
    (tmp_path / "board/boot.json").write_text(BOOT)
    agents.make_greenhouse(tmp_path / "g")
    with Sim("pico", folder=str(tmp_path / "board")) as board:
        for words in (), ("--board", "pico"):
            done = agents.clawlite(
                "flash",
                "g",
                "--port",
                board.path,
                "--yes",
                *words,
                cwd=tmp_path,
                CLAWLITE_STATE=tmp_path / "state",
            )
            assert done.returncode == 0 and f"{board.path} (pico): slot a" in done.stderr, (
                done.stderr
            )
        done = agents.clawlite(
            "ask",
            "is the soil dry?",
            "--port",
            board.path,
            cwd=tmp_path,
            CLAWLITE_STATE=tmp_path / "state",
        )
        assert done.stdout.startswith("The soil is dry: 21 %"), done.stdout + done.stderr


@pytest.fixture
def board(want, tmp_path):
    """Return a virtual board that runs 1.0.0."""
    (tmp_path / "board").mkdir()
    (tmp_path / "board/boot.json").write_text(BOOT)
    target = Folder(str(tmp_path / "board"))
    flashed(target, want)
    with Sim(folder=str(tmp_path / "board")) as made:
        with Client(made.path) as client:
            client.expect(b"agent 1.0.0 is ready.")
        eventually(lambda: booted(made) == ("a", 0, 1))
        yield made


def booted(board) -> tuple:
    """Return the slot of the boot record, its trials, and whether it was checked."""
    with open(os.path.join(board.folder, "claw.boot"), "rb") as file:
        return newest((file.read(),))[1:]


def entry(board) -> dict:
    return {"port": board.path, "boards": ["sim"], "virtual": True}


def version(want: Contents, text: str, folder, tools: str = TOOLS) -> Contents:
    with open(project(folder / text, text, tools), "rb") as file:
        return other(want, tools, file.read())


@needs_micropython
def test_a_board_and_a_folder_are_seen_alike(board, want):
    here = Folder(board.folder).read_state()
    with flash_board.Board(entry(board)) as target:
        there = target.read_state()
        assert (
            dataclasses.replace(there, free=None) == dataclasses.replace(here, free=None)
            and there.free
        )
        assert target.read("/main.py", len(flash.OURS)) == flash.OURS


@needs_micropython
def test_a_new_version_travels_and_boots(board, want, tmp_path):
    new = version(want, "2.0.0", tmp_path)
    with flash_board.Board(entry(board)) as target:
        made, gone = flashed(target, new)
        assert gone == made.travels == len(new.image) + 15
        assert target.boot().endswith("agent 2.0.0 is ready. /help lists the commands.")
    eventually(lambda: booted(board) == ("b", 0, 1))


@needs_micropython
@pytest.mark.parametrize("count", [0, 3, 60, 80])
def test_a_flash_over_a_port_that_breaks_off_leaves_what_was_there(
    board, want, tmp_path, count, monkeypatch
):
    new = version(want, "2.0.0", tmp_path)
    do = flash_board.Board.do

    def stops(self, step, tell):
        nonlocal count
        count -= 1
        if count < 0:
            raise KeyboardInterrupt
        do(self, step, tell)

    monkeypatch.setattr(flash_board.Board, "do", stops)
    with pytest.raises(KeyboardInterrupt):
        with flash_board.Board(entry(board)) as target:
            flashed(target, new)
    with Client(board.path) as client:
        client.expect(b"agent 1.0.0 is ready.")


@needs_micropython
def test_ctrl_c_in_the_middle_of_a_flash(tmp_path, board):
    project(tmp_path / "agent", "2.0.0", TOOLS + "# long\n" * 40000)
    with Agent(
        linux("flash", "agent", "--port", board.path, "--yes"),
        tmp_path / "home",
        cwd=tmp_path,
        env={"CLAWLITE_STATE": tmp_path / "state"},
    ) as it:
        path = os.path.join(board.folder, "claw-b/tools.py.new")
        eventually(lambda: os.path.exists(path) and os.path.getsize(path) > 4096)
        it.signal(signal.SIGINT)
        assert it.wait() == 130 and "Traceback" not in it.errors()
    with Client(board.path) as client:
        client.expect(b"agent 1.0.0 is ready.")


@needs_micropython
def test_an_image_that_does_not_boot_is_told_with_the_boards_words(board, want, tmp_path):
    new = version(want, "2.0.0", tmp_path, TOOLS + "raise ImportError('nothing_of_the_kind')\n")
    with flash_board.Board(entry(board)) as target:
        flashed(target, new)
        with pytest.raises(
            ClawError, match="(?s)did not boot.*slot b: tools.py cannot be loaded.*slot a boots now"
        ):
            target.boot()


@needs_micropython
@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            'print("The sensor is ready.")\nraise OSError("no sensor")\n',
            "tools.py cannot be loaded",
        ),
        (
            'import time\nwhile True:\n    print("waiting for the sensor")\n    time.sleep(0.2)\n',
            "waiting for the sensor",
        ),
    ],
    ids=["says that something is ready", "talks without end"],
)
def test_what_tools_print_is_not_taken_for_a_boot(board, want, tmp_path, monkeypatch, lines, said):
    monkeypatch.setattr(flash_board, "_BOOT_S", 8)
    new = version(want, "2.0.0", tmp_path, TOOLS + lines)
    with flash_board.Board(entry(board)) as target:
        flashed(target, new)
        with pytest.raises(ClawError, match=f"(?s)did not boot.*{said}"):
            target.boot()


@needs_micropython
def test_the_traceback_of_an_image_that_crashes_at_boot_names_the_sources(board, want, tmp_path):
    tools = TOOLS + "class Unexpected(BaseException):\n    pass\nraise Unexpected()\n"
    new = version(want, "2.0.0", tmp_path, tools)
    with flash_board.Board(entry(board)) as target:
        flashed(target, new)
        with pytest.raises(ClawError) as raised:
            target.boot()
    said = str(raised.value)
    assert "did not boot" in said and "Unexpected" in said, said
    assert '\n    = File "firmware-host/micropython/runtime/loader.py", line ' in said, said


@needs_micropython
def test_which_board_is_never_guessed_and_a_busy_one_is_left_alone(tmp_path, want):
    project(tmp_path / "agent", "1.0.0")
    with Sim() as one, Sim():
        done = clawlite("flash", "agent", "--yes", cwd=tmp_path, CLAWLITE_STATE=tmp_path / "state")
        assert done.returncode == 3 and "more than one board is attached" in done.stderr
        with Agent(
            [
                sys.executable,
                "-c",
                "import sys\nwith open(sys.argv[1]):\n    print('open', flush=True)\n    input()",
                one.path,
            ],
            tmp_path / "home",
        ) as other:
            other.expect("open")
            done = clawlite(
                "flash",
                "agent",
                "--port",
                one.path,
                "--yes",
                cwd=tmp_path,
                CLAWLITE_STATE=tmp_path / "state",
            )
            assert done.returncode == 4 and "is in use by" in done.stderr


@needs_micropython
def test_a_gateway_at_the_port_is_named(tmp_path):
    project(tmp_path / "agent", "1.0.0")
    state = {"CLAWLITE_STATE": tmp_path / "state"}
    with Sim(link=str(tmp_path / "tty")) as board:
        with Agent(linux("gateway", "--port", board.path), tmp_path / "home", env=state):

            def shares():
                shown = json.loads(clawlite("ports", "--json", cwd=tmp_path, **state).stdout)
                return [one["id"] for one in shown if one["id"].startswith("gateway:")]

            (shared,) = eventually(shares)
            for port, words in (
                (board.path, ("a gateway serves this board: clawlite gateway (pid ", "end the")),
                (shared, ("a gateway has this board's port", "end the gateway")),
            ):
                done = clawlite("flash", "agent", "--port", port, "--yes", cwd=tmp_path, **state)
                assert done.returncode == 4 and all(word in done.stderr for word in words), (
                    done.stderr
                )


class OtherFirmware:
    """A port whose board speaks the raw REPL, and says that it is something else."""

    def __init__(self, said: bytes):
        self.said, self.serial = said, self
        self.in_raw_repl, self.ran = True, []

    def exec(self, code):
        self.ran.append(code)
        return self.said

    def write(self, data):
        pass

    def close(self):
        pass

    def enter_raw_repl(self, **_):
        pass


@pytest.mark.parametrize(
    "said, words",
    [
        (b"circuitpython 9.2.1\r\n", r"runs CircuitPython 9\.2\.1, and clawlite needs MicroPython"),
        (b"pycopy 3.6.1\r\n", "runs pycopy 3"),
        (b"\x1b[2J\r\n", "runs "),
    ],
)
def test_a_board_with_another_firmware_is_named_before_anything_else_runs(monkeypatch, said, words):
    from mpremote import transport_serial

    port = OtherFirmware(said)
    monkeypatch.setattr(transport_serial, "SerialTransport", lambda *_: port)
    with pytest.raises(flash_board.BoardFailed, match=words) as failed:
        with flash_board.Board({"port": "/dev/x", "boards": [], "virtual": False}):
            pass
    assert "clawlite flash --firmware FILE" in failed.value.hint and "\x1b" not in str(failed.value)
    assert len(port.ran) == 1


@needs_micropython
def test_a_board_that_cannot_do_a_step_says_so(board, want):
    with flash_board.Board(entry(board)) as target:
        with pytest.raises(ClawError, match="the board says: OSError") as failed:
            target.do(("rename", "/nope", "/nope.new"), print)
        assert failed.value.exit_code == 1


def test_a_port_with_nobody_at_it_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(flash_board, "_ANSWER_S", 0.2)
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    try:
        with pytest.raises(ClawError, match="does not enter its raw REPL") as failed:
            with flash_board.Board({"port": os.ttyname(theirs), "boards": [], "virtual": False}):
                pass
    finally:
        os.close(ours)
        os.close(theirs)
    assert failed.value.exit_code == 1 and failed.value.hint


def test_what_a_board_said_is_shown_line_by_line(capsys):
    from clawlite.host.cli import ui

    ui.show_flash({"said": "starting\nREADY", "next": "clawlite console"})
    said = capsys.readouterr()
    assert (said.out, said.err) == ("starting\nREADY\n", "Next: clawlite console\n")
