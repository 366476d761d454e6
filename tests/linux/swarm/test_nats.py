"""NATS as a swarm's engine: a login that it refuses, and who speaks in
the name of another.
"""

import pytest
from engines import SERVERS
from swarm_world import IDS, World, task

from clawlite.core.base.errors import ClawError


def test_a_login_that_is_refused_is_told_with_the_next_step(tmp_path, monkeypatch):
    more = "authorization { token: right }\n"
    monkeypatch.setitem(SERVERS, "nats", type("NATS", (SERVERS["nats"],), {"more": more}))
    world = World("nats", tmp_path)
    try:
        with pytest.raises(ClawError) as caught:
            world.bus("lead", 0, password="wrong")
        assert (
            "refuses the login" in caught.value.message
            and "user and credential of [swarm]" in caught.value.hint
        )
    finally:
        world.close()


def test_who_speaks_in_the_name_of_another_is_not_heard(tmp_path):
    world = World("nats", tmp_path)
    try:
        lead, hand = world.bus("lead", 0), world.bus("hand")
        hand._identity = "lead"
        hand.put(task())
        world.until(lambda: any("hand spoke in the name of lead" in one for one in world.refused))
        world.settle()
        assert lead.state(IDS[0]) is None
    finally:
        world.close()
