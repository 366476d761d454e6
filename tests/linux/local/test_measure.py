"""The benchmark of the local model plays its sets, and its rows are those that are documented."""

import json
import subprocess
import sys

from agents import ROOT
from local_model import environment, in_turn, needs_model

SCRIPT = ROOT / "benchmarks" / "local" / "measure.py"


@needs_model
def test_its_memory_is_measured_and_kept_as_a_row(tmp_path):
    rows = tmp_path / "rows.jsonl"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--memory", "--into", str(rows)],
        capture_output=True,
        text=True,
        env=environment(tmp_path),
        preexec_fn=in_turn,
    )
    assert done.returncode == 0, done.stderr
    [row] = [json.loads(line) for line in rows.read_text().splitlines()]
    assert row["tools"] == 12 and row["examples"] == 300 and row["engine_rss_mb"] < 140
    assert {"machine", "processors", "python", "model", "load"} < set(row)


def test_the_numbers_of_the_documentation_are_those_of_the_rows():
    rows = [json.loads(line) for line in SCRIPT.with_name("results.jsonl").read_text().splitlines()]
    last = [row for row in rows if row["what"] == "sentences"][-1]
    text = (ROOT / "docs" / "local.md").read_text()
    assert "%s %%" % last["right_or_asked_percent"] in text
    assert "%d of %d" % (last["unmeant"], last["sentences"]) in text
    assert last["right_or_asked_percent"] >= 88 and last["unmeant"] * 50 <= last["sentences"]
    assert last["questions"] * 100 <= 30 * last["sentences"]
    grown = [row["growth_kb"] for row in rows if row["what"] == "growth"][-2:]
    assert max(grown) <= 512 and "grows by %.1f MB" % (max(grown) / 1000) in text
