"""The journal of calls on a board's flash: power that goes at any moment, and what a call costs."""

import json
import subprocess
from pathlib import Path

import pico_stack
import pytest

HERE = Path(__file__).parent


# calls that come at once, each minute and so rarely that none counts any more: at most so many
# bytes and blocks a call
@pytest.mark.parametrize(
    ("step", "written", "erased"), [(1, 1800, 0.6), (60, 1900, 0.65), (400, 1550, 0.5)]
)
def test_no_record_is_lost_and_what_a_call_costs(micropython, tmp_path, step, written, erased):
    calls, out = 40, tmp_path / "out.json"
    done = subprocess.run(
        [*pico_stack.program(HERE / "call_journal_board.py"), str(calls), str(step), out],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert found["wrong"] == [] and found["states"] > 4 * calls
    assert found["written"] <= written * calls and found["erased"] <= erased * calls, found
