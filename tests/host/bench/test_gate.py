"""The gate of counts (benchmarks/gate.py): what fails, what is left out and said, and what a new
record keeps.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

import counted  # noqa: E402
import gate  # noqa: E402

from clawlite.host.bench.run import Bench  # noqa: E402


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A record of this machine's heap alone, made once."""
    path = tmp_path_factory.mktemp("gate") / "gate.json"
    assert gate.main(["--heap", "--record", "as measured"], path) == 0
    return path.read_text()


@pytest.fixture
def record(recorded, tmp_path):
    path = tmp_path / "gate.json"
    path.write_text(recorded)
    return path


def changed(path: Path, number: str, share: float) -> None:
    kept = json.loads(path.read_text())
    kept["numbers"][number]["count"] = int(kept["numbers"][number]["count"] * share)
    path.write_text(json.dumps(kept))


@pytest.mark.parametrize(
    "count, fails", [(900, False), (1029, False), (1030, False), (1031, True), (2000, True)]
)
def test_more_than_three_percent_fails(count, fails):
    assert bool(gate.compare({"a": 1000}, {"a": count})) is fails


def test_a_number_without_a_record_fails():
    assert gate.compare({}, {"a": 1}) == ["a: 1, and none is recorded"]


def test_the_heap_of_one_machine_is_the_same_each_time(record, capsys):
    before = json.loads(record.read_text())["numbers"]
    assert set(before) == {number for number, _ in gate.HEAPS}
    assert gate.main(["--heap"], record) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == len(gate.HEAPS)
    for line in said:
        found, held = line.split()[-2:]
        assert found == held


def test_a_heap_that_grew_fails_until_it_is_recorded_with_a_reason(record, capsys):
    number = gate.HEAPS[0][0]
    changed(record, number, 1 / 1.05)
    assert gate.main(["--heap"], record) == 1
    said = capsys.readouterr().err
    assert number in said and "(+5.0%)" in said and "--record" in said
    assert gate.main(["--heap", "--record", " "], record) == 2
    assert gate.main(["--heap", "--record", "a table that saves a search"], record) == 0
    numbers = json.loads(record.read_text())["numbers"]
    assert numbers.pop(number)["reason"] == "a table that saves a search"
    assert [row["reason"] for row in numbers.values()] == ["as measured"] * len(numbers)
    assert gate.main(["--heap"], record) == 0


def test_the_heap_of_another_micropython_is_not_compared_and_that_is_said(
    record, monkeypatch, capsys
):
    changed(record, gate.HEAPS[0][0], 0.5)
    found, version = gate.measured("asked for heap alone")
    found["instructions of a decision"] = 1000
    kept = json.loads(record.read_text())
    kept["numbers"]["instructions of a decision"] = {"count": 1000, "reason": "as measured"}
    record.write_text(json.dumps(kept))
    monkeypatch.setattr(gate, "measured", lambda reason: (dict(found), version))
    assert gate.main([], record) == 1
    record.write_text(json.dumps({**kept, "micropython": "MicroPython 1.20.0"}))
    capsys.readouterr()
    assert gate.main([], record) == 0
    assert "recorded for MicroPython 1.20.0" in capsys.readouterr().err


def test_a_gate_that_compared_nothing_fails(record, capsys):
    kept = json.loads(record.read_text())
    record.write_text(json.dumps({**kept, "micropython": "MicroPython 1.20.0"}))
    assert gate.main(["--heap"], record) == 1
    assert "bench-gate: nothing was compared: " in capsys.readouterr().err


def test_instructions_are_left_out_with_a_reason():
    assert gate.left_out("a", None, "a") == "valgrind is not installed"
    assert "recorded for a, and this is b" in gate.left_out("a", "/usr/bin/valgrind", "b")
    assert gate.left_out("a", "/usr/bin/valgrind", "a") == ""


def test_the_command_says_what_it_left_out_where_there_is_no_valgrind():
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "gate.py")],
        env={**os.environ, "PATH": os.path.dirname(sys.executable), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert "instructions are left out: valgrind is not installed" in done.stderr
    assert done.stdout.count("heap bytes") == len(gate.HEAPS), done.stderr


@pytest.mark.parametrize("work", sorted(counted.WORK))
def test_the_work_that_is_counted_runs(work, tmp_path):
    image = Bench(str(tmp_path), 2).agent()
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "counted.py"), work, image, "2"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "CLAWLITE_STATE": str(tmp_path / "state")},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_count_is_of_instructions(tmp_path):
    if shutil.which("valgrind") is None:
        with pytest.raises(FileNotFoundError):
            gate.count(["-c", "pass"], str(tmp_path))
        return
    short = gate.count(["-c", "pass"], str(tmp_path))
    long = gate.count(["-c", "for _ in range(100000): pass"], str(tmp_path))
    assert long - short > 100000
    with pytest.raises(SystemExit, match="failed under valgrind"):
        gate.count(["-c", "raise SystemExit(3)"], str(tmp_path))
