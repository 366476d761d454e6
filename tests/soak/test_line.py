"""core/line under noise for long: ``make soak`` prints the seed, ``make soak SEED=N`` repeats a
run.
"""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "core"))

from line_wire import Bench, break_and_mend, converse  # noqa: E402

pytestmark = pytest.mark.soak

SEED = int(os.environ.get("CLAWLITE_SEED", "1"))
ROUNDS = max(3, int(os.environ.get("CLAWLITE_SOAK", "20000")) // 200)
OPTIONS = {"plain": False, "limit": 2048, "backlog": 4096}


@pytest.mark.parametrize("odds", [0, 1000, 200])
@pytest.mark.parametrize("ring", [260, 512])
@pytest.mark.parametrize("baud", [9600, 115200])
def test_every_record_once_and_in_order(odds, ring, baud):
    resent = hit = 0
    for number in range(ROUNDS // 4):
        seed = SEED * 1000 + number
        print("seed", seed)
        bench = Bench(seed, odds, ring, baud=baud, patience_ms=120000, **OPTIONS)
        bench.open()
        converse(bench, 40, slow_ms=500)
        resent += bench.host.line._sender.resent + bench.board.line._sender.resent
        hit += bench.down.hit + bench.up.hit
    assert (hit > 0 and resent > 0) if odds else hit == 0


def test_cuts_and_restarts():
    lost = 0
    for number in range(ROUNDS):
        seed = SEED * 1000 + number
        print("seed", seed)
        bench = Bench(seed, (0, 1000, 300)[number % 3], (260, 300, 512)[number % 3], **OPTIONS)
        bench.open()
        for _ in range(4):
            lost += break_and_mend(bench, 8)
    assert lost > 0
