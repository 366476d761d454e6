"""Power cuts of an agent that stores, many times: ``make soak`` prints the seed."""

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "linux" / "runtime"))
from test_power_cut import image, play, record  # noqa: E402, F401

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        not shutil.which("strace"), reason="no strace here (apt-get install strace)"
    ),
]

SEED = int(os.environ.get("CLAWLITE_SEED", "1"))
CUTS = int(os.environ.get("CLAWLITE_CUTS", "400"))


def test_power_cuts(image, tmp_path, capfd):  # noqa: F811
    ops, state = record(image, tmp_path / "home", groups=40)
    looks = play(ops, state, tmp_path, CUTS, SEED)
    capfd.readouterr()
    print("seed %d: %d disks after a power cut" % (SEED, looks))
    assert looks > CUTS
