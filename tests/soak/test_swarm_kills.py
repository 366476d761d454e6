"""kill -9 of a swarm's leaders and workers, many times: ``make soak`` prints the seed."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "linux" / "swarm"))
from test_kills import campaign  # noqa: E402

pytestmark = pytest.mark.soak

SEED = int(os.environ.get("CLAWLITE_SEED", "1"))
KILLS = int(os.environ.get("CLAWLITE_KILLS", "1000"))


def test_kill_9_loses_no_acknowledged_task_and_repeats_no_side_effect(tmp_path):
    found = campaign(tmp_path, SEED, KILLS)
    print("seed %d: %d kills, tasks %s" % (SEED, KILLS, found))
    assert found["completed"] > KILLS
