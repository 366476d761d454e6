"""Mounts that are exchanged for links while a thousand calls begin, each way, on a busy machine."""

import os
import subprocess
import sys

import pytest
from sandbox_places import host
from sandbox_races import WAYS, lay_out, race

pytestmark = [pytest.mark.soak, pytest.mark.limit(3600)]

CALLS = int(os.environ.get("CLAWLITE_RACES", "1000"))
BUSY = "while True: pass"


@pytest.fixture
def load():
    """Processes that take the processors while the calls begin."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count() or 1)]
    yield
    for process in busy:
        process.kill()
        process.wait()


@pytest.mark.parametrize("way", sorted(WAYS))
@pytest.mark.parametrize("profile", ["N", "L"])
def test_no_call_sees_what_a_link_leads_to(profile, way, load):
    with host(profile, False) as place:
        lay_out(place.folder)
        found = race(place, way, CALLS)
        print(profile, way, found)
        assert set(found) <= {"benign", "nothing", "refused"}, found
        assert found.get("benign", 0) + found.get("nothing", 0) > 0, found
        assert place.shell("cat hello")["output"] == "hello-benign"
