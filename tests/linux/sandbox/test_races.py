"""Mounts that are exchanged for links while calls begin, in a short form; tests/soak/test_races.py
plays a thousand calls of each.
"""

import pytest
from sandbox_places import host
from sandbox_races import WAYS, lay_out, race

CALLS = 40


@pytest.mark.parametrize("way", sorted(WAYS))
@pytest.mark.parametrize("profile", ["N", "L"])
def test_no_call_sees_what_a_link_leads_to(profile, way):
    with host(profile, False) as place:
        lay_out(place.folder)
        found = race(place, way, CALLS)
        assert set(found) <= {"benign", "nothing", "refused"}, found
        # the calls of others go on, and so does this agent
        assert place.shell("cat hello")["output"] == "hello-benign"
