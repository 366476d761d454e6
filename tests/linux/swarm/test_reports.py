"""What becomes of tasks whose reports or parts an engine does not take, or that nobody knows any
more.
"""

import os

import pytest
from swarm_world import IDS, Turns, World, task, wall_ms

from clawlite.core.base.errors import ClawError
from clawlite.linux.swarm.bus import MAX_ENTRY, Bus
from clawlite.linux.swarm.member import GONE
from clawlite.linux.swarm_commands import run_task
from clawlite.protocols.session.group_session import Later
from clawlite.protocols.swarm.swarm import CHAIN, COMPLETED, DEAD, FAILED, MERGE, RUNNING

TOO_LONG = "a task or a report of a swarm has at most %d bytes, got " % MAX_ENTRY


@pytest.fixture
def world(tmp_path):
    made = World("redis", tmp_path)
    yield made
    made.close()


def leader(world, **changes) -> Turns:
    bus = world.bus("lead", 0)
    world.ends.remove(bus)  # its news are the member's
    return Turns(bus, "lead", to_all=True, **changes)


def outcome(world, lead, number=0) -> tuple:
    """Return (status, result) of a task, which *lead* divides."""
    return world.until(lambda: lead.poll() or lead._bus.outcome(IDS[number]))[1:3]


def does(world, lead, identity: str, text: str):
    """Do a part as *identity*."""
    bus = next((one for one in world.ends if one._identity == identity), None)
    bus = bus or world.bus(identity)
    taken = world.until(lambda: lead.poll() or bus.take(identity, False, None))
    bus.report(taken.id, COMPLETED, {"text": text}, None, 1, identity, True)


def test_a_report_that_is_too_long_has_failed(world):
    world.bus("hand", 1)
    hand = world.ends.pop()
    member = Turns(hand)
    asks = world.bus("other")
    world.done(asks.put(task(sender="other")))
    world.until(lambda: member.poll() or member.turns)
    member.ended(IDS[0], "x" * MAX_ENTRY)
    world.until(lambda: member.poll() or asks.outcome(IDS[0]))
    by, status, result, *_ = asks.outcome(IDS[0])
    assert (by, status) == ("hand", FAILED) and TOO_LONG in result["error"]
    hand.leave()


def test_reports_that_are_too_long_together_have_failed(world):
    lead = leader(world, strategy=MERGE)
    world.done(world.bus().put(task(0, "lead", sender="operator")))
    for name in ("hand", "hand", "other", "ada", "bob", "eve"):
        does(world, lead, name, "x" * 100000)
    status, result = outcome(world, lead)
    assert status == FAILED and TOO_LONG in result["error"]
    lead.close()


def test_a_part_that_is_too_long_ends_its_task_alone(world):
    lead = leader(world, strategy=CHAIN)
    person = world.bus()
    world.done(person.put(task(0, "lead", data="x" * 480000, sender="operator")))
    does(world, lead, "hand", "y" * 60000)
    status, result = outcome(world, lead)
    assert status == FAILED and TOO_LONG in result["error"]
    world.done(person.put(task(1, "lead", sender="operator")))
    for name in ("hand", "other", "ada", "bob", "eve"):
        does(world, lead, name, name)
    assert outcome(world, lead, 1) == (COMPLETED, {"text": "eve"})
    lead.close()


def test_a_turn_that_ended_because_its_task_was_taken_back_reports_nothing(tmp_path):
    """What its tool did is not known: the task waits for a person, as the others left it."""
    bus = Bus(str(tmp_path / "team"), wall_ms, os.urandom)
    member = Turns(bus)
    bus.put(task(sender="other"))
    member.poll()
    bus.begins(IDS[0])
    bus._set(IDS[0], DEAD, "its process ended", True)  # as the others do
    del member._runs[IDS[0]]
    member.turns.pop(IDS[0])(FAILED, {"text": "", "error": GONE}, None, 5)
    assert bus.state(IDS[0]) == DEAD and len(bus.history(IDS[0])[1]) == 1
    assert [one["state"] for _, one in member.effects if "state" in one] == ["running", "lost"]
    member.close()


class _Full(Bus):
    def put(self, task):
        raise ClawError("there is no room")


class _Slow(Bus):
    def asks(self, asker: str, task_id: str):
        done = super().asks(asker, task_id)
        return Later() if asker else done


@pytest.mark.parametrize("kind", [_Full, _Slow])
def test_a_call_that_ends_before_its_task_is_there_leaves_nothing(tmp_path, kind):
    bus = kind(str(tmp_path / "team"), wall_ms, os.urandom)
    member = Turns(bus)
    Bus.put(bus, task(sender="other"))
    member.poll()
    member._runs[IDS[0]], member.tasks = 7, {}  # the number of its turn
    call = member.ask("Look.", "other", None, 7)
    if kind is _Full:
        with pytest.raises(ClawError, match="no room"):
            next(call)
    else:
        next(call)
        call.close()
    assert bus._rows("select task from asks union all select task from accounts") == []
    member.close()


class _FullOnce(Bus):
    was_full = False

    def divide(self, task_id: str):
        if not self.was_full:
            self.was_full = True
            raise ClawError("there is no room")
        super().divide(task_id)


def test_a_task_that_was_taken_and_could_not_be_divided_is_divided_later(tmp_path):
    bus, now = _FullOnce(str(tmp_path / "team"), wall_ms, os.urandom), [0]
    lead = Turns(bus, "lead", clock=lambda: now[0], to_all=True, strategy=CHAIN)
    bus.put(task(0, "lead", sender="operator"))
    lead.poll()
    assert bus.was_full and bus.state(IDS[0]) == RUNNING and not bus.waiting()
    now[0] = 60000
    lead.poll()
    assert bus.waiting() == {"hand": 1}
    lead.close()


class _Counted(Bus):
    said = 0

    def declare(self, terms: str) -> bool:
        self.said += 1
        return super().declare(terms)


def test_who_is_taken_for_gone_says_its_version_no_more_than_each_second(tmp_path):
    bus, now = _Counted(str(tmp_path / "team"), wall_ms, os.urandom), [0]
    member = Turns(bus, clock=lambda: now[0])
    member.poll()
    bus._db.execute("delete from peers")  # as another process does
    for now[0] in (0, 1, 999, 1000, 1001, 1999, 2000):
        bus.broadcast("hand", "wake")
        member.poll()
    assert bus.said == 3, "at 0, 1000 and 2000"
    member.close()


class _Gone(Bus):
    """A bus whose record is removed while somebody waits."""

    def state(self, task_id: str):
        return None


def test_a_task_that_nobody_knows_any_more_is_an_error(tmp_path):
    bus = _Gone(str(tmp_path / "team"), wall_ms, os.urandom)
    with pytest.raises(ClawError, match="is no longer known"):
        lead = Turns(bus, "lead")
        for _ in lead.ask("Look.", "hand", None):
            lead._changes += 1
    with pytest.raises(ClawError, match="is no longer known"):
        run_task.run_task(lead.swarm, bus, "Look.", "hand", None, False)
