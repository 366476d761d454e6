"""``clawlite swarm acl``: with the logins that it prints, members work, and NATS holds each of them
to its own name.  tests/linux/swarm/test_redis.py plays those of Redis.
"""

import asyncio

import pytest
from engines import SERVERS
from nats import connect
from swarm_world import IDS, MEMBERS, World, task

from clawlite.core.base.errors import ClawError
from clawlite.core.swarm.swarm import Swarm
from clawlite.linux.swarm.nats_engine import inbox
from clawlite.linux.swarm_commands.acl import PASSWORD, acl

SWARM = Swarm(["team", 0, 0, MEMBERS, True, None, 1, None, 2, True, 0, False] + [None] * 4)


@pytest.fixture
def nats(tmp_path, monkeypatch):
    more = acl("nats", SWARM)
    monkeypatch.setitem(SERVERS, "nats", type("NATS", (SERVERS["nats"],), {"more": more}))
    world = World("nats", tmp_path)
    yield world
    world.close()


def joined(world, user: str, identity: str):
    *place, _ = world.place
    world.place = (*place, user)
    return world.bus(identity, password=PASSWORD)


def test_members_of_nats_work_with_the_logins_and_a_long_log_is_cut(nats, monkeypatch):
    from clawlite.linux.swarm import replicated_bus

    monkeypatch.setattr(replicated_bus, "SNAPSHOT_EACH", 20)
    lead, hand = joined(nats, "lead", "lead"), joined(nats, "hand", "hand")
    nats.until(lambda: set(lead.present()) == {"lead", "hand"})
    assert nats.done(lead.put(task()))
    for number in range(60):
        lead.broadcast("lead", {"n": number})
        if number % 20 == 19:
            nats.settle()
    assert nats.take(hand).id == IDS[0]
    person = joined(nats, "operator", "")
    assert person.state(IDS[0]) == "running" and person._entries < 60
    assert not nats.refused


def test_nats_does_not_let_a_member_speak_for_another(nats):
    lead, hand = joined(nats, "lead", "lead"), joined(nats, "hand", "lead")

    def refused():
        try:
            hand.put(task())
        except ClawError as e:
            return "the login hand may not do this" in e.message and "swarm acl nats" in e.hint

    nats.until(refused)
    assert lead.state(IDS[0]) is None


def test_nats_does_not_let_a_member_read_the_answers_for_another(nats):
    """What a stranger with the login of a member hears of another's inbox, and of all of them."""
    joined(nats, "lead", "lead")
    refused = []

    async def listens():
        async def wrong(error):
            refused.append(str(error))

        port = nats.place[2]
        client = await connect(
            "nats://127.0.0.1:%d" % port, user="hand", password=PASSWORD, error_cb=wrong
        )
        for subject in ("_INBOX.>", inbox("lead", "team") + ".>", inbox("hand", "team") + ".>"):
            await client.subscribe(subject)
            await client.flush()
        await client.close()

    asyncio.run(listens())
    assert len(refused) == 2
    assert '"_INBOX.>"' in refused[0].replace("_inbox", "_INBOX")
    assert "team.lead" in refused[1]


def test_an_engine_without_logins_is_refused():
    with pytest.raises(ClawError, match="acl: expected redis or nats, got sqlite-wal") as caught:
        acl("sqlite-wal", SWARM)
    assert "its user's alone" in caught.value.hint
