"""The table of targets is whole, and says what became of each."""

import inspect
import json
import re
from pathlib import Path

import measure
import pytest
import targets

from clawlite.host.bench import bench, run
from clawlite.host.fit import stack

ROOT = Path(__file__).resolve().parents[3]
KEYS = {"id", "what", "suite", "row", "core", "limit", "unit", "needs", "adr"}
UNITS = {"ms", "us", "ns", "MiB", "KiB", "B", "ratio", "%", "count"}
HOT = "P1 P2 P3 P4 D1 D2 D3 S1 S2 M1 V1 T1 T3 T4 C1 Q1 J1 A1".split()


def test_ids_are_unique_and_the_hot_paths_are_all_there():
    ids = [one["id"] for one in targets.table()]
    assert len(ids) == len(set(ids))
    assert [name for name in HOT if not any(one.split("-")[0] == name for one in ids)] == []


@pytest.mark.parametrize("target", targets.table(), ids=lambda target: target["id"])
def test_a_row_of_the_table_is_well_formed(target):
    assert set(target) <= KEYS and {"id", "what", "suite", "row", "limit", "unit"} <= set(target)
    assert target["suite"] in (*measure.FUNCTIONS, *measure.ELSEWHERE) and target["unit"] in UNITS
    assert type(target["limit"]) in (int, float) and target["limit"] >= 0
    assert target.get("core", "pure") in ("pure", "cython")
    assert len(target["id"]) < 18 and len(target["what"]) < 64
    if "adr" in target:
        text = (ROOT / "docs/adr" / target["adr"]).read_text()
        assert target["id"].partition("-")[0] in text, target["adr"]


def test_no_row_is_held_to_two_targets():
    for one in targets.table():
        case = one["row"].replace("*", "x")
        held = [
            other["id"]
            for other in targets.table()
            if targets._holds(other, one["suite"], case, one.get("core", "pure"))
        ]
        assert held == [one["id"]]


def test_the_stack_of_a_board_is_that_of_a_pico():
    (limit,) = (one["limit"] for one in targets.table() if one["id"] == "board-stack")
    assert limit == stack.scale(stack.PICO)


def test_a_row_knows_its_target_by_its_names(tmp_path):
    made = targets.JudgedBench(str(tmp_path), 2)
    assert made.row("decision", "10,000 rules over 10 rules", "ratio", [1])["met"] is True
    assert made.row("decision", "10,000 rules over 10 rules", "ratio", [2])["met"] is False
    assert made.row("decision", "another", "ratio", [2])["target"] is None
    path = ("decision", "a path made clean", "ns", [100])
    assert made.row(*path)["met"] is True and made.row(*path, core="cython")["met"] is False


def test_a_small_ratio_keeps_its_digits(tmp_path):
    made, case = (
        targets.JudgedBench(str(tmp_path), 2),
        "clawlite cython over the fastest peer, 10,000 rules",
    )
    row = made.row("peers", case, "ratio", [0.000_241_23], core="cython")
    assert row["value"] == row["p50"] == 0.000_241_2 > row["target"] and row["met"] is False


def test_verdicts(tmp_path):
    made = targets.JudgedBench(str(tmp_path), 2)
    rows = [
        made.row("ready", "with tools.py, VmHWM above bare", "MiB", [1]),
        made.row("ready", "without tools.py, VmHWM above bare", "MiB", [10_000]),
        made.row("ready", "with tools.py, above bare", "ms", [0.5]),
    ]
    found = {one["target"]["id"]: one for one in targets.verdicts(rows, ["ready"])}
    assert {one["target"]["suite"] for one in found.values()} == {"ready"}
    worst, reached, missing = found["S1-memory"], found["ready-time"], found["S1-opens"]
    assert (worst["verdict"], worst["value"]) == (targets.MISSED, 10_000)
    assert (reached["verdict"], reached["value"]) == (targets.REACHED, 0.5)
    assert missing["verdict"] == targets.NOT_MEASURED and "strace" in missing["why"]
    said = targets.verdict_lines(list(found.values()))
    assert len(said) == 2 + len(found) and said[0].startswith("id ")
    count = f"{len(found)} targets: 1 reached, 1 MISSED, {len(found) - 2} not measured; make bench"
    assert said[-1].startswith(count)
    assert [line for line in said if line.startswith("S1-memory ") and "MISSED" in line]
    assert [line for line in said if line.startswith("S1-opens ") and "needs strace" in line]


def test_a_missed_target_without_a_record_is_told(tmp_path, monkeypatch, capsys):
    table = [dict(one) for one in targets.table() if one["id"] in ("S1-memory", "ready-time")]
    del table[0]["adr"]
    monkeypatch.setattr(targets, "table", lambda: table)
    made = targets.JudgedBench(str(tmp_path), 2)

    def takes(took):
        took(made.row("ready", "with tools.py, VmHWM above bare", "MiB", [10_000]))
        took(made.row("ready", "with tools.py, above bare", "ms", [10_000]))

    bench.show(takes, False, summary=measure.judge)
    out, err = capsys.readouterr()
    ends = {line.split()[0]: line.partition("MISSED: ")[2] for line in out.splitlines()[-3:-1]}
    assert ends == {"S1-memory": "no record", "ready-time": "docs/adr/" + table[1]["adr"]}
    assert "no record in docs/adr has the measured limit of S1-memory: " in err


def test_a_median_that_missed_by_noise_is_told_and_needs_no_record(tmp_path, monkeypatch):
    table = [dict(one) for one in targets.table() if one["id"] in ("P4", "S1-memory")]
    for one in table:
        one.pop("adr", None)
    monkeypatch.setattr(targets, "table", lambda: table)
    made = targets.JudgedBench(str(tmp_path), 2)
    clean, memory = ("decision", "a path made clean", "ns"), "with tools.py, VmHWM above bare"
    for samples, value, is_noise in (
        ([130, 400, 500], None, True),
        ([301, 400, 500], None, False),
        ([130, 400, 500], 450, False),  # no median: the least sample may be noise itself
    ):
        (found,) = targets.verdicts([made.row(*clean, samples, value)], ["decision"])
        assert found["verdict"] == targets.MISSED and bool(found["why"]) == is_noise
        assert targets.without_record([found]) == ([] if is_noise else ["P4"])
        assert ("measure again" in targets.verdict_lines([found])[1]) == is_noise
        assert ("no record" in targets.verdict_lines([found])[1]) != is_noise
    (found,) = targets.verdicts([made.row("ready", memory, "MiB", [1, 2, 3])], ["ready"])
    assert found["why"] == ""  # memory has no noise


def test_what_the_whole_run_missed_has_a_record():
    (newest,) = (ROOT / "benchmarks/results/targets").glob("*-all.jsonl")
    measured = [json.loads(line) for line in newest.read_text().splitlines()]
    rows = []
    for row in measured:
        held = targets.target_for(row["suite"], row["case"], row["core"])
        # the limits of today, not those of the run
        rows.append({**row, "met": row["value"] <= held["limit"] if held else None})
    found = targets.verdicts(rows, measure.FUNCTIONS)
    assert sum(one["verdict"] == targets.MISSED for one in found) > 10
    assert targets.without_record(found) == []


def test_the_benchmarks_name_no_limit_themselves():
    assert "target" not in inspect.signature(run.Bench.row).parameters
    sources = [*(ROOT / "clawlite/host/bench").glob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    sources = [path for path in sources if path.name != "targets.py"]
    held = re.compile(r"target of the project|\"target\":|\blimit *= *[0-9]")
    sources = [path for path in sources if path.name != "run.py"]  # it asks the table
    assert not [path.name for path in sources if held.search(path.read_text())]
