"""``clawlite swarm acl``: with the logins that it prints, members work, and NATS holds each of
them to its own name.  tests/linux/swarm/test_redis.py plays those of Redis.
"""

import asyncio
import json

import pytest
from engines import SERVERS
from nats import connect
from swarm_world import IDS, MEMBERS, World, end_of, now_ms, task

from clawlite.core.base.errors import ClawError
from clawlite.linux.io.jsontext import dumps
from clawlite.linux.swarm_commands.acl import PASSWORD, acl
from clawlite.linux.swarm_commands.shared_bus import SharedBus
from clawlite.linux.swarm_engines.nats_engine import inbox
from clawlite.protocols.swarm.swarm import Swarm, Task

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


def test_nats_does_not_let_a_member_name_another_within_an_entry(nats):
    """A peer is who the engine proves it is (section 10): what its entries say of it, too."""
    lead, other = joined(nats, "lead", "lead"), joined(nats, "other", "other")
    hand = joined(nats, "hand", "hand")
    nats.done(lead.put(task(1, "other")))
    assert nats.take(other, "other").id == IDS[1]
    broken = 0

    def refused(why: str, name: str, *values):
        nonlocal broken
        hand._append(name, *values)
        broken += 3  # each end tells it
        nats.until(lambda: len(nats.refused) >= broken)
        assert {one.partition("log: ")[2] for one in nats.refused[-3:]} == {why}

    row = [IDS[0], "Look.", None, "lead", "hand", ""]
    refused("hand spoke in the name of lead (put)", "put", row)
    refused("hand spoke in the name of operator (broadcast)", "broadcast", "operator", {})
    report = IDS[1], "completed", {}, None, 0
    refused("hand spoke in the name of other (report)", "report", *report, "other", False)
    refused("hand spoke in the name of other (take)", "take", "other", True, None, None, None)
    refused("hand spoke in the name of lead (here)", "here", "lead", 0)
    refused("hand: only a person may let a task begin again", "again", IDS[1])
    refused("hand: only a person may drop a task", "drop", IDS[1])
    nats.done(lead.put(task(3, "nobody")))
    refused("hand took back a task of another (withdraw)", "withdraw", IDS[3])
    hand.process = other.process
    hand._number = other._number
    refused("hand spoke for a process of other (report)", "report", *report, "hand", True)
    refused("hand spoke for a process of other (release)", "release", IDS[1])
    hand.process = hand._host
    nats.settle()
    assert lead.state(IDS[0]) is None and lead.state(IDS[1]) == "running"
    assert lead.state(IDS[3]) == "waiting"
    lead.withdraw(IDS[3])
    nats.until(lambda: hand.state(IDS[3]) == "failed")
    assert not other.messages() or all("settle" in one for _, one in other.messages())
    nats.done(other.report(*report, "other"))
    assert nats.until(lambda: lead.outcome(IDS[1]))[0] == "other"
    person = joined(nats, "operator", "")
    nats.done(lead.put(task(2, "nobody")))
    nats.until(lambda: lead.expire(1, True) or lead.state(IDS[2]) == "dead")
    assert nats.done(person.again(IDS[2])) is True


def test_who_does_the_whole_task_takes_back_the_parts_that_another_gave(nats):
    """The process that divided it before was killed."""
    lead, other = joined(nats, "lead", "lead"), joined(nats, "other", "other")
    nats.done(lead.put(task(0, "")))
    assert nats.take(other, "other").id == IDS[0]
    nats.done(other.put(Task(IDS[1], "Look.", None, "other", "nobody", IDS[0])))
    nats.settle()
    other.release(IDS[0])
    hand = joined(nats, "hand", "hand")
    assert nats.take(hand, "hand").id == IDS[0]
    hand.withdraw(IDS[1])
    nats.until(lambda: lead.state(IDS[1]) == "failed")
    assert nats.refused == []


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


def test_nats_sends_nobody_what_another_login_wrote_in_a_name_of_its_choice(nats):
    """A login may let the server send to any inbox: by a consumer what lies in the object store,
    under subjects that the login chose, and an answer of the API.  Each looked like the log's.
    """
    lead = joined(nats, "lead", "lead")
    connections = lead._engine._connections

    async def forge():
        port, stream = nats.place[2], "CLAW_team"
        client = await connect(
            "nats://127.0.0.1:%d" % port,
            user="hand",
            password=PASSWORD,
            inbox_prefix=inbox("hand", "team"),
        )

        async def ask(verb: str, **asked) -> dict:
            return json.loads((await client.request("$JS.API." + verb, dumps(asked).encode())).data)

        to: list = []  # it is made in the engine's own thread
        while not to:
            listed = (await ask("CONSUMER.LIST." + stream))["consumers"]
            to = [one["config"]["deliver_subject"] for one in listed]
        last = (await ask("STREAM.INFO." + stream))["state"]["last_seq"]
        await client.jetstream().create_object_store(stream)
        entry = [1, "cd" * 8, 1, "operator", "stop", ["operator"]]
        for number in range(last + 1):
            data = dumps(entry).encode() if number == last else b"-"
            await client.publish("$O.%s.C.operator" % stream, data)
        consumer = {"deliver_subject": to[0], "deliver_policy": "by_start_sequence"}
        consumer.update(opt_start_seq=last + 1, ack_policy="none", replay_policy="instant")
        made = await ask(
            "CONSUMER.CREATE.OBJ_" + stream, stream_name="OBJ_" + stream, config=consumer
        )
        assert "error" not in made
        while (await ask("CONSUMER.INFO.OBJ_%s.%s" % (stream, made["name"])))["num_pending"]:
            pass
        await client.publish("$JS.API.STREAM.INFO." + stream, b"", reply=to[0])
        await client.flush()
        await client.close()

    asyncio.run(forge())
    other = joined(nats, "other", "other")
    nats.until(lambda: "other" in lead.present() and "lead" in other.present())
    assert lead.find_stop() is None and other.find_stop() is None
    assert lead._engine._connections == connections and nats.refused == []


YARD = {"hand": "yard", "other": "yard"}  # two boards behind one gateway


@pytest.fixture
def yard(tmp_path, monkeypatch):
    """A NATS server with a login for the gateway of two boards."""
    more = acl("nats", SWARM, YARD) + "\n"
    monkeypatch.setitem(SERVERS, "nats", type("Server", (SERVERS["nats"],), {"more": more}))
    world = World("nats", tmp_path)
    yield world
    world.close()


def boards(world, *identities) -> list:
    """Return the ends of boards that share a connection with the login of their gateway."""
    *place, _ = world.place
    world.place = (*place, "yard")
    bus = end_of(world.kind, world.place, world.keep, PASSWORD)
    shared, ends = SharedBus(bus, now_ms), []
    bus.subscribe(refused=world.refused.append)
    for identity in identities:
        end = shared.end(identity)
        end.join(identity, 1)
        ends.append(end)
    world.ends.append(bus)
    return ends


def test_one_login_speaks_for_all_boards_of_a_gateway(yard):
    lead = joined(yard, "lead", "lead")
    hand, other = boards(yard, "hand", "other")
    yard.until(lambda: set(lead.present()) == {"lead", "hand", "other"})
    assert yard.done(lead.put(task(0, "other"))) and yard.done(lead.put(task(1, "hand")))
    for end, identity, number in ((other, "other", 0), (hand, "hand", 1)):
        taken = yard.until(lambda end=end, identity=identity: end.take(identity, True, None))
        assert taken.id == IDS[number]
        end.report(taken.id, "completed", {"text": "Dry."}, None, 0, identity, True)
        outcome = yard.until(lambda number=number: lead.outcome(IDS[number]))
        assert outcome[:2] == (identity, "completed")
    assert not yard.refused


def test_the_login_of_a_gateway_speaks_for_nobody_else(yard):
    lead = joined(yard, "lead", "lead")
    hand, ada = boards(yard, "hand", "ada")

    def refused():
        try:
            ada.put(task(0, sender="ada"))
        except ClawError as e:
            return "the login yard may not do this" in e.message

    yard.until(refused)
    assert "ada" not in lead.present() and lead.state(IDS[0]) is None


def test_a_login_has_a_name_that_an_engine_takes():
    for name in ("operator", "a b", 'x"', "a\nuser b", "-x"):
        with pytest.raises(ClawError, match="cannot be the login of hand") as caught:
            acl("nats", SWARM, {"hand": name})
        assert "user in [swarm]" in caught.value.hint
    assert acl("redis", SWARM, YARD) == acl("redis", SWARM)


def test_an_engine_without_logins_is_refused():
    with pytest.raises(ClawError, match="acl: expected redis or nats, got sqlite") as caught:
        acl("sqlite-wal", SWARM)
    assert "its user's alone" in caught.value.hint
