"""kill -9 of an agent that stores, many times: ``make soak`` prints the seed."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "linux" / "memory"))
from test_memory import campaign, home, image  # noqa: E402, F401

pytestmark = pytest.mark.soak

SEED = int(os.environ.get("CLAWLITE_SEED", "1"))
KILLS = int(os.environ.get("CLAWLITE_KILLS", "500"))


@pytest.mark.parametrize("store", ["talk", "notes", "diary", "papers"])
def test_kill_9(image, home, store):  # noqa: F811
    acknowledged = campaign(image, home, store, KILLS // 4, SEED)
    print("seed %d: %d requests acknowledged" % (SEED, acknowledged))
    assert acknowledged > KILLS
