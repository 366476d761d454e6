"""kill -9 of a swarm's leaders, workers and engines, many times: ``make soak`` prints the seed.

CLAWLITE_KILLS=1000 CLAWLITE_TASKS=20000 is the whole size.
"""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "linux" / "swarm"))
from swarm_world import ENGINES, World  # noqa: E402
from test_kills import campaign  # noqa: E402

pytestmark = pytest.mark.soak

SEED = int(os.environ.get("CLAWLITE_SEED", "1"))
KILLS = int(os.environ.get("CLAWLITE_KILLS", "1000"))
TASKS = int(os.environ.get("CLAWLITE_TASKS", "0"))  # 0: as many as so many kills come to


@pytest.mark.parametrize("kind", ["sqlite-wal", *ENGINES])
def test_kill_9_loses_no_acknowledged_task_and_repeats_no_side_effect(tmp_path, kind):
    """Of leaders, workers and, where there is one, the engine."""
    world = World(kind, tmp_path) if kind in ENGINES else None
    try:
        found = campaign(tmp_path, SEED, KILLS, world, TASKS)
    finally:
        if world:
            world.close()
    print("%s, seed %d: %s" % (kind, SEED, found))
    assert found["completed"] > KILLS
