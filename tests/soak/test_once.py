"""kill -9 of a real agent, many times: ``make soak`` prints the seed."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "linux" / "runtime"))
from test_once import World, campaign, once_image  # noqa: E402, F401

pytestmark = pytest.mark.soak

SEED = int(os.environ.get("CLAWLITE_SEED", "1"))
KILLS = int(os.environ.get("CLAWLITE_KILLS", "500"))


def test_kill_9(once_image, tmp_path):  # noqa: F811
    calls, known, denied = campaign(World(once_image, tmp_path), SEED, KILLS)
    print("seed %d: %d calls, %d answers held, %d denials held" % (SEED, calls, known, denied))
    assert known > KILLS and denied > KILLS // 20
