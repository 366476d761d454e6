"""What a swarm's bus promises, on each engine that there is: presence and a will, a queue with
acknowledgement and redelivery, what is said to all, and what one peer is asked.

``in-process`` has all ends in one process: what needs a process that is killed, or a server that is
away, is not played on it.
"""

import os

import pytest
from swarm_world import (
    ENGINES,
    IDS,
    INSIDE,
    KINDS,
    RECORD,
    World,
    end_of,
    read_usage,
    task,
    wall_ms,
)

from clawlite.core.base.errors import ClawError
from clawlite.linux.io.jsontext import dumps
from clawlite.linux.swarm import replicated_bus
from clawlite.linux.swarm.bus import MAX_ENTRY
from clawlite.linux.swarm.replicated_bus import VERSION
from clawlite.protocols.swarm.swarm import DEAD, FAILED, RUNNING, WAITING, Swarm, Task

HOUR_MS = 3600000


@pytest.fixture(params=KINDS)
def world(request, tmp_path):
    made = World(request.param, tmp_path)
    yield made
    made.close()


@pytest.fixture(params=[INSIDE, *KINDS])
def any_world(request, tmp_path):
    """A swarm whose members may be in one process."""
    made = World(request.param, tmp_path)
    yield made
    made.close()


@pytest.fixture(params=ENGINES)
def engine(request, tmp_path):
    """A swarm on an engine that can be away."""
    made = World(request.param, tmp_path)
    yield made
    made.close()


# -- presence, and a will


def test_who_is_there_is_seen_by_all_and_who_leaves_is_gone(any_world):
    world = any_world
    lead, hand = world.bus("lead", 0), world.bus("hand")
    for one in (lead, hand):
        world.until(lambda one=one: one.present() == {"lead": [False], "hand": [True]})
    world.ends.remove(hand)
    hand.leave()
    world.until(lambda: lead.present() == {"lead": [False]})


def test_who_is_killed_is_gone(world):
    lead = world.bus("lead", 0)
    world.done(lead.put(task()))
    other = world.process()
    other.said()
    world.until(lambda: lead.present().get("hand") == [False])
    other.kill()
    world.until(lambda: "hand" not in lead.present())


def test_all_who_were_killed_at_once_are_looked_for_at_once(engine):
    """Who came before the others looks after them, and it is one of the dead."""
    first = engine.bus("lead", 0)
    for number in range(3):
        engine.done(first.put(task(number)))
    others = [engine.process() for _ in range(3)]
    for other in others:
        other.said()
    last = engine.bus("lead", 0)
    engine.until(lambda: len(last.present().get("hand", ())) == 3)
    engine.ends.remove(first)
    first.leave()
    asked = []
    ask_there = last._engine.ask_there
    last._engine.ask_there = lambda names: (asked.append(len(names)), ask_there(names))
    for other in others:
        other.kill()
    engine.until(lambda: "hand" not in last.present())
    assert max(asked) == 3, "not one after the other"


# -- the queue


def test_a_task_is_taken_once_and_in_its_turn(any_world):
    world = any_world
    lead, one, two = world.bus("lead", 0), world.bus("hand"), world.bus("hand")
    for number in (1, 0):
        assert world.done(lead.put(task(number, data={"n": number})))
        assert lead.state(IDS[number]) == WAITING
    taken = world.take(one)
    assert (taken.id, taken.description, taken.data, taken.sender) == (
        IDS[1],
        "Look.",
        {"n": 1},
        "lead",
    )
    assert world.take(two).id == IDS[0]
    assert world.takes_nothing(one, "hand", True, None)
    assert one.state(IDS[1]) == RUNNING and one.holds(IDS[1])
    assert not two.holds(IDS[1])


def test_a_task_given_twice_runs_once_and_another_content_is_refused(any_world):
    world = any_world
    lead, hand = world.bus("lead", 0), world.bus("hand")
    assert world.done(lead.put(task())) and world.done(lead.put(task()))
    assert not world.done(lead.put(task(description="Water.")))
    assert world.take(hand) and world.takes_nothing(hand, "hand", True, None)
    assert world.done(lead.put(task()))
    assert world.takes_nothing(hand, "hand", True, None)


def test_no_more_than_max_parallel_run_in_the_whole_swarm(any_world):
    world = any_world
    lead, one, two = world.bus("lead", 0), world.bus("hand"), world.bus("hand")
    world.done(lead.put(task(0)))
    world.done(lead.put(task(1)))
    assert world.take(one, most=1)
    assert world.takes_nothing(two, "hand", True, 1)
    one.report(IDS[0], "completed", 1, None, 5, "hand", True)
    assert world.take(two, most=1).id == IDS[1]


def test_what_a_killed_process_was_at_is_given_to_the_next(world):
    lead, hand = world.bus("lead", 0), world.bus("hand")
    world.done(lead.put(task()))
    other = world.process()
    assert other.said() == IDS[0]
    other.kill()
    found = world.until(lambda: lead.reclaim(2, True))
    assert found == [(IDS[0], WAITING, "its process ended")]
    assert world.take(hand).id == IDS[0]


def test_an_agent_has_a_task_as_often_as_it_may_and_then_the_next(any_world):
    """``retry_per_agent`` 1 beside ``max_retries`` 5 (5.9)."""
    world, retries = any_world, [5, 1, ["hand", "other"]]
    lead, person = world.bus("lead", 0), world.bus()
    world.done(lead.put(task(0)))
    world.done(lead.put(task(1, "hand")))

    def ends(name: str, number: int):
        """*name* takes a task and is gone; return what becomes of it."""
        one = world.bus(name)
        assert world.take(one, name).id == IDS[number]
        world.ends.remove(one)
        one.leave()
        return world.until(lambda: lead.reclaim(retries, True))[0][1:]

    again = WAITING, "its process ended"
    assert ends("hand", 0) == again
    assert ends("hand", 0) == again
    # the first is for the next agent, the second for this one alone
    assert ends("hand", 1) == again
    assert ends("other", 0) == again
    over = DEAD, "its process ended, as often as each agent may begin it again"
    assert ends("hand", 1) == over
    assert ends("other", 0) == over
    hand = world.bus("hand")
    world.done(person.again(IDS[0]))
    assert world.take(hand).id == IDS[0]


def test_a_task_is_given_up_after_its_last_try_whoever_may_still_have_it(any_world):
    world, retries = any_world, [1, 1, ["hand", "other"]]
    lead = world.bus("lead", 0)
    world.done(lead.put(task()))
    for name, state in (("hand", WAITING), ("other", DEAD)):
        one = world.bus(name)
        assert world.take(one, name).id == IDS[0]
        world.ends.remove(one)
        one.leave()
        assert world.until(lambda: lead.reclaim(retries, True))[0][1] == state


def test_what_may_have_had_side_effects_is_never_begun_again(world):
    lead, hand = world.bus("lead", 0), world.bus("hand")
    world.done(lead.put(task()))
    other = world.process("begins")
    assert other.said() == IDS[0]
    other.kill()
    [(task_id, state, why)] = world.until(lambda: lead.reclaim(2, True))
    assert (task_id, state) == (IDS[0], DEAD) and why.endswith("what it did is not known")
    assert world.takes_nothing(hand, "hand", True, None)


def test_a_task_given_back_waits_again_and_nothing_begins_without_it(any_world):
    world = any_world
    lead, one = world.bus("lead", 0), world.bus("hand")
    world.done(lead.put(task()))
    assert world.take(one).id == IDS[0]
    one.release(IDS[0])
    world.until(lambda: lead.state(IDS[0]) == WAITING)
    assert not world.done(one.begins(IDS[0]))
    one.report(IDS[0], "completed", 1, None, 1, "hand", True)
    world.settle()
    assert lead.state(IDS[0]) == WAITING, "a report of who is not at it ends nothing"


def test_an_agent_whose_last_tasks_have_failed_takes_nothing_and_another_one_does(any_world):
    world, breaker = any_world, (2, HOUR_MS)
    lead, hand, other = world.bus("lead", 0), world.bus("hand"), world.bus("other")
    for number in range(3):
        assert world.done(lead.put(task(number)))
    for number in range(2):
        taken = world.until(lambda: hand.take("hand", True, None, None, breaker))
        assert taken.id == IDS[number]
        hand.report(IDS[number], FAILED, {}, None, 1, "hand", True)
        world.until(lambda number=number: hand.state(IDS[number]) == FAILED)
    assert world.takes_nothing(hand, "hand", True, None, None, breaker)
    taken = world.until(lambda: other.take("other", True, None, None, breaker))
    assert taken.id == IDS[2], "it waited for who has not failed"


def test_after_its_pause_an_agent_gets_one_task_until_that_one_has_ended(any_world):
    world, breaker = any_world, (2, 1)
    lead, hand, twin = world.bus("lead", 0), world.bus("hand", 3), world.bus("hand", 3)
    for number in range(5):
        world.done(lead.put(task(number)))
    one, two = (world.until(lambda: hand.take("hand", True, None, None, breaker)) for _ in range(2))
    for taken in (one, two):
        world.done(hand.report(taken.id, "failed", {}, None, 0, "hand"))
    trial = world.until(lambda: hand.take("hand", True, None, None, breaker))
    for bus in (hand, twin):
        assert world.takes_nothing(bus, "hand", True, None, None, breaker)
    world.done(hand.report(trial.id, "completed", {}, None, 0, "hand"))
    for bus in (hand, twin):
        world.until(lambda bus=bus: bus.take("hand", True, None, None, breaker))


def test_what_began_before_the_failures_is_not_the_task_after_the_pause(any_world):
    """It may go on for long, when it waits for a person."""
    world, breaker = any_world, (2, 1)
    lead, hand = world.bus("lead", 0), world.bus("hand", 3)
    for number in range(4):
        world.done(lead.put(task(number)))
    taken = [world.until(lambda: hand.take("hand", True, None, None, breaker)) for _ in range(3)]
    for one in taken[1:]:
        world.done(hand.report(one.id, "failed", {}, None, 0, "hand"))
    assert world.until(lambda: hand.take("hand", True, None, None, breaker)).id == IDS[3]


def test_a_trial_that_waits_for_another_task_lets_that_one_begin(any_world):
    world, breaker = any_world, (2, 1)
    lead, hand, other = world.bus("lead", 0), world.bus("hand", 3), world.bus("other")
    for number in range(3):
        world.done(lead.put(task(number)))
    for one in [
        world.until(lambda: hand.take("hand", True, None, None, breaker)) for _ in range(2)
    ]:
        world.done(hand.report(one.id, "failed", {}, None, 0, "hand"))
    assert world.until(lambda: hand.take("hand", True, None, None, breaker)).id == IDS[2]
    world.done(hand.asks(IDS[2], IDS[3]))
    world.done(hand.put(Task(IDS[3], "x", None, "hand", "other")))
    assert world.until(lambda: other.take("other", True, None, None, None)).id == IDS[3]
    world.done(other.asks(IDS[3], IDS[4]))
    world.done(other.put(Task(IDS[4], "x", None, "other", "hand")))
    assert world.until(lambda: hand.take("hand", True, None, None, breaker)).id == IDS[4]


# -- what is said to all, and what one is asked


def test_what_is_said_is_heard_by_all_others_in_its_order(any_world):
    world = any_world
    lead, one, two = world.bus("lead", 0), world.bus("hand"), world.bus("other")
    said = [{"n": number} for number in range(20)]
    for message in said:
        lead.broadcast("lead", message)
    for one in (one, two):
        heard = []
        world.until(lambda one=one, heard=heard: heard.extend(one.messages()) or len(heard) == 20)
        assert heard == [("lead", message) for message in said]
    assert lead.messages() == []


def test_who_says_something_still_hears_what_others_said_before(any_world):
    world = any_world
    lead, hand = world.bus("lead", 0), world.bus("hand")
    hand.broadcast("hand", {"n": 1})
    lead.broadcast("lead", {"n": 2})
    heard = []
    world.until(lambda: heard.extend(hand.messages()) or heard)
    assert heard == [("lead", {"n": 2})]
    world.until(lambda: heard.extend(lead.messages()) or len(heard) > 1)
    assert heard[1:] == [("hand", {"n": 1})] and not hand.messages()


def test_each_process_says_which_version_of_the_swarm_it_has(any_world):
    world = any_world
    lead, hand = world.bus("lead", 0), world.bus("hand")
    lead.declare("one")
    hand.declare("two")
    for end in (lead, hand):
        world.until(lambda end=end: len(end.list_declared()) == 2)
        assert sorted(row[1:] for row in end.list_declared()) == [("hand", "two"), ("lead", "one")]


def circle_of_two(world):
    """ "hand" is at task 0 and waits for 1, which "other" is at, and 2 is for "hand"; return the
    ends of both.
    """
    world.bus("lead", 0)
    hand, other = world.bus("hand"), world.bus("other")
    world.done(hand.put(task(0, "hand", sender="hand")))
    assert world.take(hand).id == IDS[0]
    hand.asks(IDS[0], IDS[1])
    world.done(hand.put(task(1, "other", sender="hand")))
    assert world.take(other, "other").id == IDS[1]
    other.asks(IDS[1], IDS[2])
    world.done(other.put(task(2, "hand", sender="other")))
    return hand, other


def test_a_task_that_waits_for_itself_is_refused_by_who_asked_last(any_world):
    world, team = any_world, Swarm(RECORD)
    hand, other = circle_of_two(world)
    said = "each process of hand waits for it, or for another task that waits for it"
    assert world.until(lambda: other.why_stuck(IDS[2], team)) == said
    world.settle()
    assert hand.why_stuck(IDS[1], team) == ""  # it goes on when the other is taken back
    other.withdraw(IDS[2])
    other.asks("", IDS[2])
    world.until(lambda: other.state(IDS[2]) == "failed")
    assert other.why_stuck(IDS[2], team) == ""


def test_a_task_waits_when_its_agent_has_another_place(any_world):
    world, team = any_world, Swarm(RECORD)
    hand, other = circle_of_two(world)
    second = world.bus("hand")
    world.until(lambda: len(other.present().get("hand", ())) == 2)
    assert other.why_stuck(IDS[2], team) == ""
    # that one is free, and the swarm is not
    team.max_parallel = 2
    said = "max_parallel is 2, and each running task waits for another"
    assert other.why_stuck(IDS[2], team) == said
    assert world.take(second).id == IDS[2]
    world.settle()
    assert other.why_stuck(IDS[2], team) == hand.why_stuck(IDS[1], team) == ""


def test_only_who_is_at_a_task_says_what_it_waits_for(any_world):
    world, team = any_world, Swarm(RECORD)
    hand, other = circle_of_two(world)
    hand.asks("", IDS[2])  # it is not the turn of hand that waits for it
    assert world.done(hand.asks(IDS[1], IDS[3])) is False
    world.settle()
    assert other.why_stuck(IDS[2], team)


def test_what_a_turn_waited_for_does_not_bind_who_has_its_task_next(any_world):
    world, team = any_world, Swarm(RECORD)
    hand, other = circle_of_two(world)
    hand.release(IDS[0])
    world.until(lambda: other.state(IDS[0]) == WAITING)
    assert world.take(hand).id == IDS[0]
    world.settle()
    # the turn of hand ends by itself now, and hand has its place again
    assert hand.why_stuck(IDS[1], team) == other.why_stuck(IDS[2], team) == ""


def test_a_person_decides_only_about_what_is_given_up(any_world):
    """Its report may have come meanwhile: to begin it again would do all of it twice."""
    world = any_world
    lead, hand, person = world.bus("lead", 0), world.bus("hand"), world.bus()
    world.done(lead.put(task()))
    assert world.take(hand).id == IDS[0]
    hand.report(IDS[0], "completed", 1, None, 1, "hand", True)
    world.until(lambda: person.state(IDS[0]) == "completed")
    for decide in (person.again, person.drop):
        assert world.done(decide(IDS[0])) is False and world.done(decide(IDS[1])) is False
    assert person.state(IDS[0]) == "completed" and person.outcome(IDS[0])[2] == 1
    world.done(lead.put(task(1)))
    world.until(lambda: lead.expire(1, True) or person.state(IDS[1]) == DEAD)
    assert world.done(person.again(IDS[1])) is True
    world.until(lambda: lead.expire(1, True) or person.state(IDS[1]) == DEAD)
    assert world.done(person.drop(IDS[1])) is True
    assert person.state(IDS[1]) == FAILED


def test_one_peer_is_asked_and_its_answer_comes_back(any_world):
    world = any_world
    lead, hand, other = world.bus("lead", 0), world.bus("hand"), world.bus("other")
    world.done(lead.put(task(0, "other")))
    assert world.takes_nothing(hand, "hand", True, None)
    assert world.take(other, "other", False).id == IDS[0]
    other.report(IDS[0], "completed", {"text": "Dry."}, 12, 34, "other", True)
    assert world.until(lambda: lead.outcome(IDS[0])) == (
        "other",
        "completed",
        {"text": "Dry."},
        12,
        34,
    )
    assert world.done(lead.report(IDS[0], "failed", None, None, None, "operator"))
    assert world.done(lead.report(IDS[1], "failed", None, None, None, "operator")) is False
    assert lead.state(IDS[0]) == "completed" and len(lead.history(IDS[0])[1]) == 2


def test_what_waits_too_long_is_given_up_and_begins_again_for_a_person(any_world):
    world = any_world
    lead, hand = world.bus("lead", 0), world.bus("hand")
    world.done(lead.put(task()))
    world.until(lambda: lead.expire(1, True) or lead.state(IDS[0]) == DEAD)
    world.done(world.bus().again(IDS[0]))
    assert world.take(hand).id == IDS[0]
    hand.report(IDS[0], FAILED, {}, None, 1, "hand", True)
    world.until(lambda: lead.state(IDS[0]) == FAILED)


def test_what_is_used_is_known_at_once_to_who_used_it_and_then_to_all(any_world):
    world = any_world
    lead, hand = world.bus("lead", 0), world.bus("hand")
    world.done(lead.put(task()))
    hand.use(IDS[0], 7, 100)
    assert hand.budget(IDS[0]) == [(7, 0, 0), (100, 0, 0)]
    hand.use(IDS[0], 3, 1)
    world.until(lambda: read_usage(lead, IDS[0]) == (10, 101))


# -- what a task may use: 100 tokens, and no limit of money

LIMITS = [100, None]


def budget(bus, number: int) -> tuple:
    """Return (used, reserved, own) tokens of a task."""
    return bus.budget(IDS[number])[0]


def divided(world, limits=LIMITS, decides=False) -> tuple:
    """Return (who divides task 0 into the parts 1 and 2, who does them): both are taken."""
    lead, hand = world.bus("lead", 0), world.bus("hand")
    world.done(lead.put(task()))
    world.take(lead, "lead")
    lead.divide(IDS[0])
    lead.allot(IDS[0], IDS[1:3], decides, limits)
    for number in (1, 2):
        world.done(lead.put(Task(IDS[number], "Look.", None, "lead", "", IDS[0])))
    taken = [world.take(hand) for _ in range(2)]
    assert [one.id for one in taken] == IDS[1:3]
    assert {one.root_ms for one in taken} == {lead.tasks(-1)[-1][-1]}, "when the whole was given"
    return lead, hand


def test_parts_share_a_limit_and_never_use_more_together(any_world):
    world = any_world
    lead, hand = divided(world)
    assert budget(hand, 1) == budget(hand, 2) == (0, 100, 50)
    assert not world.done(hand.hold(IDS[1], [51, 0], LIMITS)), "that is the share of another part"
    assert world.done(hand.hold(IDS[1], [50, 9], LIMITS))
    hand.use(IDS[1], 30, 9)
    assert budget(hand, 1) == (30, 70, 20)
    hand.report(IDS[1], "completed", 1, None, 1, "hand", True)
    world.until(lambda: budget(hand, 2) == (30, 50, 50))  # what it left is nobody's
    assert world.done(hand.hold(IDS[2], [70, 0], LIMITS)), "a part may take it"
    assert not world.done(hand.hold(IDS[2], [71, 0], LIMITS))
    hand.use(IDS[2], 60, 0)
    hand.report(IDS[2], "completed", 1, None, 1, "hand", True)
    world.until(lambda: budget(lead, 0) == (90, 0, 0))


def test_who_decides_keeps_a_share_and_money_is_shared_too(any_world):
    lead, hand = divided(any_world, [99, 900], True)
    any_world.until(lambda: lead.budget(IDS[0]) == [(0, 99, 33), (0, 900, 300)])
    assert hand.budget(IDS[2]) == [(0, 99, 33), (0, 900, 300)]
    assert not any_world.done(hand.hold(IDS[2], [33, 301], [99, 900]))


def test_parts_of_a_part_share_what_it_has_and_give_it_back(any_world):
    world = any_world
    lead, hand = divided(world)
    for bus in (hand, lead):  # the second one goes on after the first: it finds the same
        bus.allot(IDS[1], IDS[3:5], False, LIMITS)
    for number in (3, 4):
        world.done(hand.put(Task(IDS[number], "Look.", None, "hand", "", IDS[1])))
        assert world.take(hand).id == IDS[number]
    assert budget(hand, 3) == budget(hand, 4) == (0, 100, 25)
    assert world.done(hand.hold(IDS[3], [25, 0], LIMITS))
    hand.use(IDS[3], 10, 0)
    for number in (3, 4):
        hand.report(IDS[number], "completed", 1, None, 1, "hand", True)
    world.until(lambda: budget(hand, 1) == (10, 90, 40))


def eve_at_a_task(world):
    """Return the end of "eve", which is at the task 5."""
    eve = world.bus("eve")
    world.done(eve.put(task(5, "eve", sender="eve")))
    assert world.take(eve, "eve").id == IDS[5]
    return eve


def test_a_task_that_is_there_is_not_given_in_a_turn(any_world):
    world = any_world
    lead, hand = divided(world)
    eve = eve_at_a_task(world)
    assert world.done(eve.asks(IDS[5], IDS[1])) is False
    assert budget(hand, 1) == (0, 100, 50)
    assert world.done(hand.hold(IDS[1], [50, 0], LIMITS))
    for _ in range(2):
        assert not world.done(hand.hold(IDS[1], [51, 0], LIMITS))


@pytest.mark.parametrize("has_share", [False, True])
def test_a_part_is_given_in_no_turn_whoever_said_so_before(any_world, has_share):
    """The id of a part follows from that of its task: somebody may speak of it first."""
    world = any_world
    lead, hand = world.bus("lead", 0), world.bus("hand")
    eve = eve_at_a_task(world)
    world.done(lead.put(task()))
    world.take(lead, "lead")
    lead.divide(IDS[0])
    assert world.done(eve.asks(IDS[5], IDS[1])) is True
    if has_share:
        lead.allot(IDS[0], IDS[1:3], False, LIMITS)
        world.settle()
        assert world.done(eve.asks(IDS[5], IDS[2])) is False, "it has a share already"
    world.done(lead.put(Task(IDS[1], "Look.", None, "lead", "", IDS[0])))
    taken = world.take(hand)
    assert (taken.id, taken.root) == (IDS[1], IDS[0])
    world.until(lambda: asked_in_turns(world) == [])
    assert world.done(hand.hold(IDS[1], [50, 0], LIMITS))
    assert world.done(hand.hold(IDS[1], [51, 0], LIMITS)) is not has_share
    hand.use(IDS[1], 40, 0)
    world.until(lambda: read_usage(lead, IDS[0])[0] == 40)
    assert read_usage(lead, IDS[5]) == (0, 0)


def asked_in_turns(world) -> list:
    """Return the tasks that count to the turn of another one, and those that a turn waits for."""
    db = getattr(world.ends[0], "_replica", world.ends[0])
    return db._rows("select task from accounts union all select task from asks")


@pytest.mark.parametrize("ends", ["its call", "its turn"])
def test_nothing_is_kept_of_a_task_that_a_turn_never_gave(any_world, ends):
    world = any_world
    world.bus("lead", 0)
    eve = eve_at_a_task(world)
    assert world.done(eve.asks(IDS[5], IDS[1])) is True
    world.until(lambda: len(asked_in_turns(world)) == 2)
    if ends == "its call":
        world.done(eve.asks("", IDS[1]))
    else:
        eve.release(IDS[5])
    world.until(lambda: asked_in_turns(world) == [])


def test_a_request_is_refused_of_who_is_not_at_the_task(any_world):
    lead, hand = divided(any_world)
    hand.release(IDS[1])
    assert not any_world.done(hand.hold(IDS[1], [1, 0], LIMITS))


def test_what_a_killed_process_had_reserved_is_kept_until_its_task_ends(world):
    lead, hand = world.bus("lead", 0), world.bus("hand")
    world.done(lead.put(task()))
    other = world.process("holds")
    assert other.said() == IDS[0]
    world.until(lambda: budget(hand, 0) == (0, 60, 0))
    other.kill()
    world.until(lambda: lead.reclaim(2, True))
    assert world.take(hand).id == IDS[0]
    assert not world.done(hand.hold(IDS[0], [41, 0], LIMITS)), "the other may have used 60"
    assert world.done(hand.hold(IDS[0], [40, 0], LIMITS))
    hand.use(IDS[0], 5, 0)
    hand.report(IDS[0], "completed", 1, None, 1, "hand", True)
    world.until(lambda: budget(lead, 0) == (5, 0, 0))


def test_what_a_killed_process_had_reserved_is_given_back_with_a_dead_letter(world):
    lead = world.bus("lead", 0)
    world.done(lead.put(task()))
    other = world.process("holds", "begins")
    assert other.said() == IDS[0]
    world.until(lambda: budget(lead, 0) == (0, 60, 0))
    other.kill()
    world.until(lambda: lead.reclaim(2, True))
    world.until(lambda: budget(lead, 0) == (0, 0, 0))


# -- an engine that is away


def test_nothing_acknowledged_is_lost_with_an_engine_that_is_killed(engine):
    lead, hand = engine.bus("lead", 0), engine.bus("hand")
    for number in range(8):
        assert engine.done(lead.put(task(number)))
    assert engine.take(hand).id == IDS[0]
    engine.server.kill()

    def away():
        try:
            lead.put(task(8))
        except ClawError as e:
            return e

    error = engine.until(away)
    address = "%s://127.0.0.1:%d cannot be used" % (engine.server.scheme, engine.server.port)
    assert address in error.message and "[swarm] address" in error.hint
    hand.report(IDS[0], "completed", 1, None, 1, "hand", True)  # kept until it is there again
    engine.server.start()
    engine.until(lambda: lead.state(IDS[0]) == "completed")
    for number in range(1, 8):
        assert engine.take(hand).id == IDS[number]
    late = engine.bus("other")
    assert late.state(IDS[0]) == "completed" and late.state(IDS[7]) == RUNNING


def test_an_engine_that_is_not_there_is_told_with_the_next_step(engine):
    engine.server.kill()
    with pytest.raises(ClawError) as caught:
        engine.bus("lead", 0)
    assert "cannot be used" in caught.value.message and "start it" in caught.value.hint


def test_an_engine_that_does_not_answer_is_told_and_nothing_is_lost(engine, monkeypatch):
    lead, hand = engine.bus("lead", 0), engine.bus("hand")
    monkeypatch.setattr(replicated_bus, "SYNC_S", 1)  # that a command waits
    engine.done(lead.put(task(0)))
    engine.server.pause()
    try:
        later = lead.put(task(1))
        with pytest.raises(ClawError) as caught:
            lead.wait(later)
        person = end_of(engine.kind, engine.place, engine.keep)
        person.join()
        engine.ends.append(person)
        with pytest.raises(ClawError) as newcomer:
            person.wait()
    finally:
        engine.server.go_on()
    for error in (caught.value, newcomer.value):
        address = "%s://127.0.0.1:%d cannot be used" % (engine.server.scheme, engine.server.port)
        assert address in error.message and error.hint, error.message
    assert "it does not answer" in caught.value.message
    # what is said before it has what is on record, it never hears
    engine.until(lambda: person._is_up and person.is_synced)
    assert engine.done(later)
    assert [engine.take(hand).id, engine.take(hand).id] == IDS[:2]
    assert engine.takes_nothing(hand, "hand", True, None), "each runs once"


def test_a_clock_that_is_wrong_changes_nothing(engine):
    lead = engine.bus("lead", 0)
    late = engine.bus("hand", clock=lambda: wall_ms() + HOUR_MS)
    engine.done(lead.put(task()))
    engine.until(lambda: abs(late.wall_ms() - wall_ms()) < HOUR_MS / 2)
    late.expire(HOUR_MS // 2, True)
    engine.settle()
    assert lead.state(IDS[0]) == WAITING


def test_entries_of_strangers_and_what_is_no_entry_change_nothing(engine):
    lead, hand = engine.bus("lead", 0), engine.bus("hand")
    row = list(task().__dict__.values())
    for identity, version, name, values in (
        ("stranger", 1, "put", [row]),
        ("lead", 2, "put", [row]),
        ("lead", 0, "put", [row]),
        ("lead", 1, "drop table", []),
        ("lead", 1, "put", [1, 2]),
    ):
        lead._identity, lead._is_up = identity, False
        later = lead._append(name, *values)
        data = lead._waiting.pop(lead._number).data
        data = data.replace(b"[1,", b"[%d," % version, 1)
        lead._engine.append("lead", data)
        assert not later.is_done
    lead._engine.append("lead", b"no JSON")
    lead._identity, lead._is_up = "lead", True
    engine.settle()
    assert hand.state(IDS[0]) is None
    engine.until(lambda: hand.present() == {"lead": [False], "hand": [True]})
    said = "\n".join(engine.refused)
    for why in (
        "stranger is not in the swarm - build all agents from one Swarm; clawlite swarm acl",
        "version 2 of entries, and this is 1 - update clawlite on every machine",
        "version 0 of entries, and this is 1 - update clawlite on every machine",
        "not a change that this version knows - update clawlite on every machine",
    ):
        assert why in said, said


def test_a_task_as_large_as_may_be_passes_and_one_that_is_larger_is_refused(engine):
    """In bytes: one below the limit, at the limit, and one above."""
    lead, hand = engine.bus("lead", 0), engine.bus("hand")
    fits = []
    for number, more in enumerate((-1, 0, 1)):
        given = task(number, data="")
        row = [given.id, given.description, "", "lead", "", ""]
        entry = [VERSION, lead.process, lead._number + 1, "lead", "put", (row,)]
        given.input = "x" * (MAX_ENTRY + more - len(dumps(entry).encode()))
        try:
            fits.append(engine.done(lead.put(given)))
        except ClawError as e:
            fits.append(e.message)
            assert "put long texts into a file" in e.hint
    assert fits[:2] == [True, True]
    assert fits[2] == "a task or a report of a swarm has at most 524288 bytes, got 524289"
    engine.settle()
    assert [hand.state(one) for one in IDS[:3]] == [WAITING, WAITING, None]


@pytest.mark.parametrize(
    "name, values, said",
    [
        ("gone", [[]], "not a change that this version knows"),
        ("here", ["hand", "x"], "not a change that this version knows"),
        ("here", ["hand"], "not a change that this version knows"),
        ("use", [IDS[0], 1 << 63, 0], "not a change that this version knows"),
        ("put", [[IDS[1], "Look.", None, "hand", []]], "not a change that this version knows"),
        ("__init__", [], "not a change that this version knows"),
        ("hold", [IDS[0], [[]], []], "not a change that this version knows"),
        ("allot", [IDS[0], [{}], False, [[]]], "not a change that this version knows"),
    ],
)
def test_an_entry_of_a_wrong_form_changes_nothing_and_ends_nobody(engine, name, values, said):
    lead, hand = engine.bus("lead", 0), engine.bus("hand")
    engine.done(lead.put(task()))
    assert engine.take(hand).id == IDS[0]
    hand._append(name, *values)
    engine.until(lambda: any(said in one for one in engine.refused))
    engine.done(lead.put(task(2)))
    late = engine.bus("other")  # it reads that entry, too
    assert late.present() == lead.present() and late.state(IDS[1]) is None
    assert late.state(IDS[2]) == WAITING and late.state(IDS[0]) == RUNNING


def test_an_entry_with_a_number_that_no_process_counts_to_changes_nothing(engine):
    lead, hand = engine.bus("lead", 0), engine.bus("hand")
    hand._number = 1 << 62
    hand._append("put", [IDS[0], "Look.", None, "hand", "", ""])
    engine.until(lambda: len(engine.refused) >= 2)
    assert all("not a change" in one for one in engine.refused)
    assert lead.state(IDS[0]) is None


def test_an_entry_that_comes_after_later_ones_of_its_process_counts_once(engine):
    """A full engine refuses a long one, and may take a shorter one that was sent after it."""
    lead, hand = engine.bus("lead", 0), engine.bus("hand")
    hand._number += 2
    hand._append("broadcast", "hand", {"n": 3})
    late = [VERSION, hand.process, hand._number - 1, "hand", "broadcast", ("hand", {"n": 2})]
    for _ in range(2):
        hand._engine.append("hand", dumps(late).encode())
    heard = []
    engine.until(lambda: heard.extend(lead.messages()) or len(heard) >= 2)
    engine.settle()
    heard += lead.messages()
    assert [message["n"] for _, message in heard] == [3, 2]
    hand._number -= 3
    hand._append("broadcast", "hand", {"n": 1})
    engine.until(lambda: heard.extend(lead.messages()) or len(heard) >= 3)
    assert heard[-1] == ("hand", {"n": 1})


def test_a_long_log_is_cut_and_who_comes_later_knows_the_same(engine, monkeypatch):
    monkeypatch.setattr(replicated_bus, "SNAPSHOT_EACH", 20)
    lead, hand = engine.bus("lead", 0), engine.bus("hand")
    engine.done(lead.put(task()))
    for number in range(100):
        lead.broadcast("lead", {"n": number})
        if number % 20 == 19:
            engine.settle()
    late = engine.bus("other")
    assert late.state(IDS[0]) == WAITING and late._entries < 60
    assert engine.take(late, "other").id == IDS[0]
    engine.until(lambda: lead.state(IDS[0]) == hand.state(IDS[0]) == RUNNING)


def test_who_stood_still_while_the_log_was_cut_knows_what_was_in_it(engine, monkeypatch):
    monkeypatch.setattr(replicated_bus, "SNAPSHOT_EACH", 20)
    lead = engine.bus("lead", 0)
    engine.done(lead.put(task()))
    still = engine.process("watches")
    try:
        assert still.said() == "waiting None"
        still.pause()
        other = engine.bus("other")
        assert engine.take(other, "other").id == IDS[0]
        other.report(IDS[0], "completed", {}, None, 0, "other", True)
        for number in range(200):
            other.broadcast("other", {"n": number})
            if number % 20 == 19:
                engine.settle()
        still.go_on()
        assert still.said() == "completed None"
    finally:
        still.kill()


@pytest.mark.parametrize("kind", ["redis", "nats"])
def test_a_log_that_was_lost_is_told_to_who_knew_it(kind, tmp_path):
    """What they know, no later process would hear of."""
    world = World(kind, tmp_path)
    try:
        lead = world.bus("lead", 0)
        for number in range(3):
            world.done(lead.put(task(number)))
        world.server.kill()
        for path in sorted((tmp_path / "server").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        world.server.start()
        late = world.bus("hand", is_patient=True)
        world.until(lambda: "not the one that it had before" in lead._why[0])
        with pytest.raises(ClawError, match="not the one that it had before") as told:
            lead.put(task(4))
        assert told.value.hint == "restart this agent" and late.state(IDS[0]) is None
        world.ends.remove(lead)
        lead.leave()
        again = world.bus("lead", 0, is_patient=True)
        assert world.done(again.put(task(4)))
        world.until(lambda: late.state(IDS[4]) == WAITING)
    finally:
        world.close()


# -- a stop


def test_a_stop_is_known_to_all_and_to_who_comes_later_until_a_person_resumes(any_world):
    world = any_world
    lead, person = world.bus("lead", 0), world.bus()
    assert lead.find_stop() is None
    begun_ms = wall_ms()
    for _ in range(2):  # a second one changes nothing
        world.done(person.stop("Ada"))
    who, at_ms = world.until(lead.find_stop)
    assert who == "Ada" and begun_ms <= at_ms <= wall_ms()
    late = world.bus("hand")
    assert late.find_stop() == (who, at_ms)
    world.done(person.resume("Bo"))
    world.until(lambda: lead.find_stop() is None and late.find_stop() is None)


def test_a_stop_reaches_who_was_away_and_holds_without_the_engine(engine):
    lead, person = engine.bus("lead", 0), engine.bus()
    engine.done(person.stop("Ada"))
    engine.until(lead.find_stop)
    engine.server.kill()
    engine.until(lambda: not lead._is_up)
    assert lead.find_stop()
    alone = end_of(engine.kind, engine.place, engine.keep)
    alone.join("hand", 1)
    engine.ends.append(alone)
    engine.until(alone.is_known)  # the engine is away, and this process is new
    assert alone.find_stop()[0] == "Ada"
    engine.server.start()
    engine.until(lambda: person._is_up and alone._is_up)
    engine.done(person.resume("Ada"))
    engine.until(lambda: lead.find_stop() is None and alone.find_stop() is None)


def test_a_member_neither_stops_nor_resumes_a_swarm(engine):
    lead, person = engine.bus("lead", 0), engine.bus()
    lead.stop("lead")
    engine.until(lambda: any("lead: only a person may stop" in one for one in engine.refused))
    assert person.find_stop() is None
    engine.done(person.stop("Ada"))
    lead.resume("lead")
    engine.until(lambda: any("lead: only a person may resume" in one for one in engine.refused))
    assert person.find_stop()


def test_what_is_kept_of_a_stop_and_damaged_is_told(engine, tmp_path):
    engine.server.kill()
    os.makedirs(engine.keep)
    (tmp_path / "kept/stopped").write_text("[1]")
    alone = end_of(engine.kind, engine.place, engine.keep)
    alone.join("hand", 1)
    engine.ends.append(alone)
    engine.until(alone.is_known)
    with pytest.raises(ClawError, match="stopped cannot be read") as caught:
        alone.find_stop()
    assert "remove the file when the swarm is not stopped" in caught.value.hint
