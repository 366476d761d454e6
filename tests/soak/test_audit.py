"""kill -9 of a real agent, many times, and its audit afterwards: ``make soak`` prints the seed."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "linux" / "audit"))
from test_audit import _project, campaign  # noqa: E402

pytestmark = pytest.mark.soak

SEED = int(os.environ.get("CLAWLITE_SEED", "1"))
KILLS = int(os.environ.get("CLAWLITE_KILLS", "500"))


@pytest.mark.parametrize("destination", ["file", "sqlite"])
def test_kill_9_loses_no_acknowledged_record(tmp_path, destination):
    folder = _project(tmp_path / "p", "destination: %s" % destination)
    held = campaign(folder, tmp_path, SEED, KILLS)
    print(
        "seed %d, %s: %d acknowledged records held over %d kills" % (SEED, destination, held, KILLS)
    )
    assert held > KILLS
