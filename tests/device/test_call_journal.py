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
    ("step", "written", "erased"), [(1, 1400, 0.42), (60, 1400, 0.42), (400, 1200, 0.32)]
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


def test_a_line_is_short_and_reads_as_the_core_wrote_it(micropython, tmp_path):
    """A damaged one counts for nothing, and a line of an older version is read, too."""
    out = tmp_path / "out.json"
    done = subprocess.run(
        [*pico_stack.program(HERE / "journal_lines_board.py"), str(tmp_path), out],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    asked = "00112233445566778899aabbccddeeff"
    key = "0000%04x-1111-4000-8000-0123456789ab"
    answers = {record[3]: (record[0], json.loads(record[4])) for record in found["found"]}
    assert answers == {
        key % 1: (3, [asked, "wetä", False, 5]),
        key % 2: (3, [asked, "dry", False, 3]),
        key % 3: (3, [asked, {"code": -32000, "message": "no"}]),
        (key % 0xABCD).upper(): (3, [asked, "capitals", False, 8]),
        "turn-7": (3, [asked, "no UUID", False, 7]),
        key % 4: (3, ["short", "no fingerprint", False, 14]),
        key % 6: (2, [asked]),
        key % 7: (1, ["look", {}, None]),
    }
    assert all(record[1:3] == [1795658583, 0] for record in found["found"])
    assert 56 in found["lengths"]  # that a call began: it was 97
