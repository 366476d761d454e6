"""A board with only the files that its image needs does all that it does with all of them; and
says so when one is missing.  All in the stack of a Pico, with a quarter of it free.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pico_stack
import pytest
from slot_board import TOOLS, WINDOW, Board, contents_of_any, ready

from clawlite.core.image.image import Image
from clawlite.host.bench import agent as bench_agent
from clawlite.host.bench import heap
from clawlite.host.builder.build import build_beside
from clawlite.host.firmware import firmware, slot
from clawlite.host.projects import new

GOLDEN = Path(__file__).parents[1] / "golden"
AGENTS = ("greenhouse", "gates", "guarded", "least", "memory", "skills")
TEMPLATES = ("blink", "chat", "empty", "greenhouse")
LINES = (
    "/help\n/status\n/tools\n/trace\n/skills\n/policy\nhello\nis the soil dry?\nblink\nwater "
    "the plants\ny\n/trace 1\n/nonsense\n/report x\nbye\n"
)
CALLS = [
    ("claw.status", {}),
    ("claw.memory.store", {"store": "room", "entries": [{"content": "x"}]}),
    ("claw.memory.query", {"store": "room"}),
    ("no.such", {}),
    (
        "claw.tool.call",
        {
            "name": "look",
            "arguments": {},
            "context": {"request_id": "123e4567-e89b-42d3-a456-426614174000"},
        },
    ),
    ("claw.shutdown", {}),
]


@pytest.fixture(scope="module")
def built(mpy_cross, tmp_path_factory):
    folder = tmp_path_factory.mktemp("firmware")
    return folder, firmware.build(folder, mpy_cross)


@pytest.fixture
def played(built, tmp_path):
    """Return a function that runs an image on all files and on those that it needs: (folder,
    stdin, *arguments) -> [stdout, stdout].
    """

    def run(agent: Path, stdin: str, *arguments, **more) -> list:
        data, said = (agent / "claw.cbor").read_bytes(), []
        having = slot.parts(Image(lambda offset, length: data[offset : offset + length], len(data)))
        for name, names in (("all", built[1]), ("own", slot.choose(built[1], having + ["bank"]))):
            tree = tmp_path / name
            there = shutil.copytree(agent, tree / "agent")
            for file in names:
                os.link(built[0] / file, tree / file)
            (there / "parts").write_text(" ".join(having))
            (tree / "start.py").write_text("import sys, main\nsys.exit(main.main(sys.argv[1:]))\n")
            done = subprocess.run(
                [
                    pico_stack.micropython(),
                    "-X",
                    "heapsize=1m",
                    tree / "start.py",
                    there / "claw.cbor",
                    *arguments,
                ],
                input=stdin.encode(),
                capture_output=True,
                timeout=300,
                env=dict(os.environ, MICROPYPATH=f"{tree}:.frozen", **more),
            )
            assert done.returncode == 0 and b"ImportError" not in done.stderr, (name, done.stderr)
            assert b"the stack of this device" not in done.stdout + done.stderr, (name, done)
            said.append(
                [
                    without_time(line)
                    for line in done.stdout.decode().splitlines()
                    if '"claw.heartbeat"' not in line
                ]
            )
        assert len(os.listdir(tmp_path / "own")) < len(os.listdir(tmp_path / "all"))
        return said

    return run


def without_time(line: str):
    """Drop what the clock and the heap decide."""
    try:
        return json.loads(
            re.sub(r'("uptime_ms":)[0-9]+|(")[0-9]{4}-[0-9]{2}-[0-9]{2}T[^"]*', r"\1\g<2>0", line)
        )
    except ValueError:  # for people
        return " ".join(word for word in line.split() if not word[:1].isdigit())


def lines_of(name: str) -> str:
    script = json.loads((GOLDEN / f"{name}.steps.json").read_text())
    return "".join(
        argument + "\n"
        for _, what, argument in script["steps"]
        if what in ("line", "record") and "slow" not in argument
    )


@pytest.mark.parametrize(
    "name", sorted(path.name.removesuffix(".steps.json") for path in GOLDEN.glob("*.steps.json"))
)
def test_a_golden_transcript_with_its_own_files_alone(played, name):
    whole, own = played(
        GOLDEN / json.loads((GOLDEN / f"{name}.steps.json").read_text())["agent"],
        lines_of(name),
        *["--stdio"] * name.endswith("operator"),
    )
    assert own == whole and len(own) > 3


@pytest.mark.parametrize("name", AGENTS)
def test_a_golden_agent_in_conversation_and_by_an_operator(played, name, tmp_path):
    whole, own = played(GOLDEN / name, LINES)
    assert own == whole and len(own) > 10
    for folder in ("all", "own"):
        shutil.rmtree(tmp_path / folder)
    calls = [
        ("claw.initialize", json.loads(bench_agent.opening().splitlines()[0])["params"]),
        *CALLS,
    ]
    whole, own = played(
        GOLDEN / name,
        "".join(
            json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"
            for number, (method, params) in enumerate(calls)
        ),
        "--stdio",
    )
    assert own == whole and len(own) >= len(calls)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_with_its_own_files_alone(played, template, tmp_path):
    new.new(str(tmp_path / "project"), template, None, None, True)
    build_beside(str(tmp_path / "project"))
    whole, own = played(tmp_path / "project", LINES, MODEL_KEY="key")
    assert own == whole and len(own) > 10


def test_the_agent_of_the_benchmarks(played, tmp_path):
    (tmp_path / "bench").mkdir()
    build_beside(bench_agent.write(str(tmp_path / "bench")))
    whole, own = played(
        tmp_path / "bench",
        (bench_agent.opening() + bench_agent.call_line() * 3).decode(),
        "--stdio",
    )
    assert own == whole and len(own) == 5


@pytest.mark.parametrize("api", heap.APIS, ids=lambda api: api[1])
def test_a_turn_with_a_provider(played, api, tmp_path):
    with heap.Server(*api[2]()) as server:
        (tmp_path / "project").mkdir()
        heap.project(str(tmp_path / "project"), api[1], server.server_address[1])
        build_beside(str(tmp_path / "project"))
        whole, own = played(tmp_path / "project", "how is it?\n/status\n/trace\n", BOARD_KEY="key")
    assert own == whole and any(heap.TEXT.strip()[:40] in line for line in own)


@pytest.fixture(scope="module")
def packed(mpy_cross, tmp_path_factory):
    """Return what a Pico gets: its modules are one file."""
    return contents_of_any(tmp_path_factory.mktemp("packed"), "pico")[0]


@pytest.fixture
def board(micropython, mpy_cross, tmp_path, tmp_path_factory):
    made = Board(contents_of_any(tmp_path_factory.mktemp("projects")), tmp_path)
    made.flash("1.0.0")
    return made


def test_an_image_that_wants_more_than_its_slot_carries_does_not_boot(board, tmp_path):
    board.boot()
    board.flash("2.0.0")
    shutil.copy(GOLDEN / "guarded/claw.cbor", board.image("b"))
    said = board.boot()
    assert (
        "clawlite: slot b: this slot was flashed without what the image needs: " in said
        and "guard" in said
        and "flash it: clawlite flash" in said
    )
    assert said.endswith("clawlite: slot a boots now\n" + ready("1.0.0"))


@pytest.mark.parametrize("name", ["core", "loader", "parts", "assemble", "base", "talk"])
def test_a_file_that_is_missing_leaves_its_slot(board, name):
    board.boot()
    board.flash("2.0.0")
    (board.root / f"claw-b/{name}.mpy").unlink()
    said = board.boot()
    assert f"clawlite: slot b: {name}.mpy is missing\n" in said and said.endswith(
        "clawlite: slot a boots now\n" + ready("1.0.0")
    )


def cut(data: bytes) -> bytes:
    return data[: len(data) // 3]


def flipped(data: bytes) -> bytes:
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


@pytest.mark.parametrize(
    "is_each", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["in turn", "each"]
)
def test_each_file_of_a_slot_cut_flipped_or_gone(board, is_each):
    """Of most files one of the three is played, in turn: the board compares them all in one
    loop.
    """
    names = os.listdir(board.root / "claw-a")
    assert len(names) > 20 and {"files", "parts", "sentences", "tools.py", "core.mpy"} <= set(names)
    cut_flip_or_remove(board, names if is_each else ("files", "tools.py", "core.mpy"))


def test_each_file_of_a_packed_slot_cut_flipped_or_gone(board, packed):
    board.whole = packed
    board.flash("2.0.0")
    (board.root / "claw-a.cbor").unlink()
    names = os.listdir(board.root / "claw-b")
    assert {*names} == {"files", "main.mpy", "modules", "parts", "sentences", "tools.py"}
    cut_flip_or_remove(board, names, "b", "2.0.0")


def cut_flip_or_remove(board, wholly, slot: str = "a", version: str = "1.0.0"):
    """MicroPython hangs in a file that is cut short, so none is imported before all were
    compared; here no other slot would boot.

    wholly  names of the files of which all three are played
    """
    folder = board.root / f"claw-{slot}"
    changes = (cut, flipped, None)
    for number, name in enumerate(sorted(os.listdir(folder))):
        whole = (folder / name).read_bytes()
        for change in changes if name in wholly else changes[number % 3 :][:1]:
            (folder / name).unlink() if change is None else (folder / name).write_bytes(
                change(whole)
            )
            said = board.boot()
            if name == "files" and change is None:
                # as a version wrote it that had no list
                assert said == WINDOW + ready(version)
            else:
                why = ("its list of files" if name == "files" else name) + (
                    " is damaged" if change else " is missing"
                )
                assert said.startswith(WINDOW + f"clawlite: slot {slot}: {why}") and said.endswith(
                    "\nclawlite: no image boots - write one with: clawlite flash\n"
                )
        (folder / name).write_bytes(whole)
    assert board.boot() == WINDOW + ready(version)


def test_single_files_and_a_pack_take_turns(board, packed):
    """A board of an earlier version is updated, goes back, and is flashed with the earlier one."""
    files = board.whole
    assert board.boot() == WINDOW + ready("1.0.0")
    board.whole = packed
    board.flash("2.0.0")
    assert board.boot() == WINDOW + ready("2.0.0") and board.record() == ("b", 0, 1)
    board.whole = files
    board.flash("3.0.0")
    assert board.boot() == WINDOW + ready("3.0.0") and board.record() == ("a", 0, 1)
    board.image("a").write_bytes(b"")
    assert board.boot().endswith("clawlite: slot b boots now\n" + ready("2.0.0"))
    board.whole = packed
    board.flash("4.0.0")
    assert board.boot() == WINDOW + ready("4.0.0") and board.record() == ("a", 0, 1)
    path = board.root / "claw-a/modules"
    path.write_bytes(flipped(path.read_bytes()))
    assert board.boot() == (
        WINDOW + "clawlite: slot a: modules is damaged\nclawlite: slot b boots now\n"
    ) + ready("2.0.0")


def test_nothing_of_a_pack_is_left_to_the_other_slot(board, packed):
    """Which lacks a module that the pack has, and says so."""
    board.boot()
    (board.root / "claw-a/files").unlink()  # as a version wrote it that had no list
    (board.root / "claw-a/reflex.mpy").unlink()
    board.whole = packed
    board.flash("2.0.0")
    shutil.copy(GOLDEN / "guarded/claw.cbor", board.image("b"))
    said = board.boot()
    assert "clawlite: slot b: this slot was flashed without what the image needs: " in said
    assert "clawlite: slot a boots now\nagent 1.0.0 is ready" in said
    assert "no module named 'reflex'" in said, said


def test_a_file_that_was_cut_short_leaves_its_slot(board):
    board.boot()
    board.flash("2.0.0")
    path = board.root / "claw-b/core.mpy"
    path.write_bytes(cut(path.read_bytes()))
    said = board.boot()
    assert said.startswith(WINDOW + "clawlite: slot b: core.mpy is damaged: it has ")
    assert said.endswith("clawlite: slot a boots now\n" + ready("1.0.0")) and board.record() == (
        "a",
        0,
        1,
    )


def test_a_damaged_file_of_the_only_slot_is_named(board):
    path = board.root / "claw-a/core.mpy"
    size = path.stat().st_size
    path.write_bytes(cut(path.read_bytes()))
    assert board.boot() == (
        WINDOW + f"clawlite: slot a: core.mpy is damaged: it has {size // 3} "
        f"bytes, expected {size}\n"
        "clawlite: no image boots - write one with: clawlite flash\n"
    )


def test_a_file_that_is_missing_later_is_told_and_the_agent_stays(board):
    (board.root / "claw-a/reflex.mpy").unlink()
    (board.root / "claw-a/files").unlink()  # as a version wrote it that had no list
    said = board.boot(stdin=b"hello\n/status\n")
    assert (
        said.startswith(WINDOW) and "no module named 'reflex'" in said and "Traceback" not in said
    ), said


def test_another_image_adds_what_it_needs_and_a_slot_keeps_its_own(board):
    before = set(os.listdir(board.root / "claw-a"))
    board.flash("1.0.0", TOOLS + "\n# another\n")
    assert (
        set(os.listdir(board.root / "claw-b")) == before
        and "reflex.mpy" in before
        and "remote.mpy" not in before
    )
