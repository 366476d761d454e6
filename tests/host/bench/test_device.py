"""``clawlite bench`` on a device: a wheel without packages, a real sshd, and real MicroPython on
a serial line.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import measure
import pytest
import targets
from agents import clawlite
from sims import needs_micropython, needs_mpy_cross
from ssh_server import Server, needs_sshd

from clawlite.core.base.errors import ClawError
from clawlite.host.bench import device
from clawlite.host.bench import run as bench_run
from clawlite.host.builder import inspection
from clawlite.host.sim.sim import Sim

ROOT = Path(__file__).resolve().parents[3]
# no package within reach
BARE = [sys.executable, "-I", "-S", str(ROOT / "clawlite/__main__.py")]


def bare(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*BARE, *words], cwd="/", capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def test_here_needs_no_package():
    done = bare("bench", "--here", "--rounds", "2", "--json")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["suite"] for row in rows} == set(device.HERE)
    for row in rows:
        assert (
            tuple(row) == bench_run.KEYS
            and row["board"]
            and row["firmware"].startswith("Linux ")
            and row["python"].startswith("CPython ")
        )


@pytest.mark.parametrize("name, own", [("agent", True), ("agent-of-the-registry", False)])
def test_the_images_that_travel_are_of_the_agent_that_is_measured_elsewhere(tmp_path, name, own):
    travels = inspection.inspect_file(str(ROOT / f"benchmarks/images/{name}.cbor"))[0]
    built = inspection.inspect_file(bench_run.Bench(str(tmp_path), 2).agent(own))[0]
    for key in ("agent", "format", "tools", "rules", "skills", "companions", "requires"):
        assert travels[key] == built[key], "make them again: python benchmarks/images.py"


def test_a_suite_that_needs_packages_says_so():
    done = bare("bench", "load")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(
        "clawlite: the suite load needs the host packages (msgspec is missing) - pip install "
    )


@pytest.mark.parametrize(
    "words, said",
    [
        (
            ["--here", "boards"],
            "--here does not have the suite boards; it has: load, ready, call, turn, netrules",
        ),
        (["lod"], "unknown suite lod; known: load, ready"),
        (["--here", "--sim"], "--sim is not allowed with --here"),
        (["--rounds", "1"], 'expected a whole number from 2 to 1000, found "1"'),
        (["--port"], "--port: expected PORT"),
    ],
)
def test_bad_usage(words, said):
    done = bare("bench", *words)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1


def test_what_was_missed_is_listed(capfd):
    run = targets.JudgedBench("/nowhere", 2)
    measure.judge(
        [
            run.row("netrules", "a fetch, name known", "us", [60]),
            run.row("scan", "secrets, 64 KB of text", "ms", [5]),
            run.row("load", "three", "ms", [0.25]),
        ]
    )
    assert capfd.readouterr().err.startswith(
        "measure: 1 of 2 targets missed:\n  netrules: a fetch, name known: 60 us, target 50\n"
        "measure: no record in docs/adr has the measured limit of fetch: "
    )


@pytest.mark.parametrize("limit", [0, 1e9])
def test_exit_codes(limit, tmp_path, monkeypatch, capfd):
    table = [{**one, "limit": limit} for one in targets.table()]
    monkeypatch.setattr(targets, "table", lambda: table)
    command = ["netrules", "--rounds", "2", "-o", str(tmp_path / "rows")]
    assert measure.main(command) == int(limit == 0)
    out, err = capfd.readouterr()
    fetch, counts = out.splitlines()[-2:]
    assert ("MISSED" in fetch) == (limit == 0) and fetch.startswith("fetch ")
    assert counts.startswith(f"1 target: {int(limit > 0)} reached, {int(limit == 0)} MISSED")
    assert ("targets missed:" in err) == (limit == 0)
    rows = [json.loads(line) for line in (tmp_path / "rows").read_text().splitlines()]
    assert rows and all(row["target"] == limit for row in rows)
    assert measure.main([*command, "--json"]) == int(limit == 0)


# -- a machine behind ssh


@needs_sshd
def test_over_ssh(tmp_path, monkeypatch):
    with Server(tmp_path) as server:
        monkeypatch.setenv("PATH", server.path)
        rows = []
        device.over_ssh("pi", ["load", "netrules"], 2, rows.append)
        assert [row["suite"] for row in rows] == ["load"] * 3 + ["netrules"] and all(
            tuple(row) == bench_run.KEYS for row in rows
        )
        assert rows[0]["board"] and rows[0]["firmware"].startswith("Linux ") and rows[0]["commit"]
        with pytest.raises(ClawError, match="nobody: "):
            device.over_ssh("nobody", [], 2, rows.append)
        monkeypatch.setattr(device, "HERE", ("load", "boards"))
        with pytest.raises(
            ClawError,
            match="pi: the benchmarks failed there; the last that they "
            "said: .*does not have the suite boards",
        ):
            device.over_ssh("pi", ["boards"], 2, rows.append)
        assert list(server.home.iterdir()) == []  # nothing of it stays


# -- a board on a serial line


@pytest.fixture
def board(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    with Sim(folder=str(tmp_path / "flash")) as board:
        (tmp_path / "flash/boot.json").write_text('{"window_ms": 100}')
        (tmp_path / "flash/notes").mkdir()  # somebody's own, and it stays
        yield board


@needs_micropython
@needs_mpy_cross
def test_on_a_board(board, tmp_path):
    # linked once, some ten seconds, and longer on a busy machine
    device._firmware(bench_run.Bench(str(tmp_path), 2))
    before = sorted(os.listdir(tmp_path / "flash"))
    done = clawlite(
        "bench",
        "--port",
        board.path,
        "--rounds",
        "2",
        "--json",
        cwd=tmp_path,
        CLAWLITE_STATE=tmp_path / "state",
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    cases = [
        "on MicroPython",
        "8 calls, a line at once",
        "from the image to READY",
        "heap in use, READY",
        "heap in use, after 8 calls",
    ]
    assert [row["case"] for row in rows] == cases
    for row in rows:
        assert (
            tuple(row) == bench_run.KEYS and row["board"] and row["p50"] > 0 and row["load"] is None
        )
        assert (
            row["firmware"].startswith("MicroPython ")
            and row["python"].startswith("MicroPython 1.")
            and "heap of" in row["note"]
        )
    assert sorted(os.listdir(tmp_path / "flash")) == before


def test_the_heap_of_a_board_is_measured_as_its_target_is(tmp_path, monkeypatch):
    """Without what was in use before our code (tests/helpers/words32.mjs)."""
    found = {"ns": [1000], "uncollected": 1, "ready_us": 5000}
    found |= {"start": 10240, "ready": 30720, "after": 40960}
    monkeypatch.setattr(device, "_found", lambda *_: found)
    facts = {"word": 4, "heap": 131072, "python": "MicroPython 1.29.0"}
    made = targets.JudgedBench(str(tmp_path), 2)
    made.board, made.clock_mhz = "Raspberry Pi Pico W", 125
    rows = list(device._rows(made, None, facts, ["turn", "micropython"]))
    heaps = {row["case"]: row["value"] for row in rows if row["unit"] == "KiB"}
    assert heaps == {
        "heap in use, READY, 32-bit words": 20,
        "heap in use, after 8 calls, 32-bit words": 30,
    }
    assert all(row["target"] for row in rows if row["unit"] == "KiB")
    assert device.explain(rows) == [
        "On Raspberry Pi Pico W at 125 MHz:",
        "  a turn that rules answer takes 1 us;",
        "  the agent is ready 5 ms after its image was opened;",
        "  the benchmarks' agent (20 tools, 30 rules) has 30 KiB of heap in use.",
    ]
    assert device.explain([]) == []


@needs_micropython
@needs_mpy_cross
def test_a_maker_is_told_what_the_numbers_mean_and_not_what_a_checkout_has(board, tmp_path):
    done = clawlite(
        *("bench", "turn", "--port", board.path, "--rounds", "2"),
        cwd=tmp_path,
        CLAWLITE_STATE=tmp_path / "state",
    )
    assert done.returncode == 0, done.stderr
    assert "a turn that rules answer takes " in done.stdout
    assert "not measured" not in done.stdout and "make bench" not in done.stdout


@needs_micropython
@needs_mpy_cross
def test_a_board_that_is_too_small_says_so_and_keeps_nothing(board, tmp_path, monkeypatch):
    monkeypatch.setattr(
        device, "_MEASURE", device._MEASURE + "\nraise MemoryError('memory allocation failed')\n"
    )
    with pytest.raises(ClawError, match="the board says: MemoryError"):
        device.on_port(board.path, ["turn"], 2, lambda row: None)
    assert not (tmp_path / "flash" / device.FOLDER.strip("/")).exists()
    from clawlite.host.flash.board import Board

    monkeypatch.setattr(Board, "free", lambda self: 1000)
    with pytest.raises(ClawError, match="bytes of flash for a while, 1000 are free"):
        device.on_port(board.path, [], 2, lambda row: None)
