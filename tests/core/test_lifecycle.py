"""The agent's lifecycle (CKP 0.2.0, section 8): every state, ERROR and the ways out of it."""

import transcripts

from clawlite.core.agent import lifecycle, recovery
from clawlite.core.agent.agent import Agent
from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base.effect import CANCEL, EXIT, LOG, RUN
from clawlite.core.base.errors import ClawError, InternalError
from clawlite.core.turns.tools import call

WAYS = {
    "INIT": ["STARTING"],
    "STARTING": ["READY", "ERROR"],
    "READY": ["STOPPING", "ERROR"],
    "STOPPING": ["STOPPED"],
    "STOPPED": ["STARTING"],
    "ERROR": ["STARTING", "STOPPING"],
}


def made():
    return Agent(Setup(transcripts.read_image("gates")), 0, 4)


def taken(agent, kind=LOG):
    """Return what the agent's queue holds of *kind*, and empty it."""
    found = [effect[-1] for effect in agent.effects if effect[0] == kind]
    agent.effects[:] = []
    return found


def transitions(agent):
    return [
        (event["from"], event["to"])
        for event in taken(agent)
        if event["event"] == "lifecycle.transition"
    ]


def failing(times, error=None):
    """Return (function that raises the first *times* times, list of its calls)."""
    calls = []

    def starting():
        calls.append(True)
        if len(calls) <= times:
            raise error or ClawError("no sensor on the bus", "plug it in")

    return starting, calls


def under_way(agent, ended=None):
    """Begin a call of a tool whose handler runs; return the list that gets how it ended."""
    how = []
    agent.begin(
        call(agent.setup, "slow", {"ms": 9000}, "operator", None),
        ended or (lambda value, error, _: how.append((value, error))),
        5,
    )
    return how


def test_8_from_every_state_the_ways_of_the_table_and_no_other():
    for old in WAYS:
        for new in WAYS:
            life = made().lifecycle
            life.state = old
            try:
                life.to(new, 1)
            except InternalError as e:
                assert new not in WAYS[old] and old in e.message and new in e.message
            else:
                assert new in WAYS[old] and life.state == new


def test_8_each_transition_is_an_event_with_the_fields_of_the_text():
    agent = made()
    agent.lifecycle.to("STARTING", 40)
    (event,) = taken(agent)
    assert event == {
        "claw": "0.3.0",
        "event": "lifecycle.transition",
        "agent": "gates",
        "from": "INIT",
        "to": "STARTING",
        "duration_ms": 40,
    }


def test_8_a_start_that_works_goes_to_ready():
    agent = made()
    agent.start(3)
    assert agent.is_ready and transitions(agent) == [("INIT", "STARTING"), ("STARTING", "READY")]
    agent.stop(0, lambda drained, now_ms: None, 9)
    assert transitions(agent) == [("READY", "STOPPING"), ("STOPPING", "STOPPED")]
    agent.start(10)
    assert agent.is_ready


def test_8_a_start_that_fails_is_an_error_and_is_tried_again():
    agent = made()
    agent.setup.on_start, calls = failing(2)
    told = []
    agent.setup.on_failure = lambda error, pause_ms: told.append((error.message, pause_ms))
    agent.start(0)
    assert agent.lifecycle.state == "ERROR" and agent.deadline() == 1000
    events = taken(agent)
    assert events[-1]["details"] == {
        "error": "no sensor on the bus",
        "failures": 1,
        "attempt_in_ms": 1000,
    }
    agent.tick(999)
    assert len(calls) == 1
    agent.tick(1000)
    assert agent.lifecycle.state == "ERROR" and agent.deadline() == 3000
    agent.tick(3000)
    assert agent.is_ready and agent.deadline() is None
    assert transitions(agent) == [
        ("ERROR", "STARTING"),
        ("STARTING", "ERROR"),
        ("ERROR", "STARTING"),
        ("STARTING", "READY"),
    ]
    assert told == [("no sensor on the bus", 1000), ("no sensor on the bus", 2000)]


def test_8_what_is_unrecoverable_stops_with_1():
    agent = made()
    agent.setup.on_start, calls = failing(99)
    told = []
    agent.setup.on_failure = lambda error, pause_ms: told.append(pause_ms)
    agent.start(0)
    for at in (1000, 3000, 7000):
        agent.tick(at)
        assert agent.lifecycle.state == "ERROR"
    taken(agent)
    agent.tick(15000)
    assert len(calls) == 5 and told == [1000, 2000, 4000, 8000, None]
    assert (EXIT, 1) in agent.effects
    assert transitions(agent) == [
        ("ERROR", "STARTING"),
        ("STARTING", "ERROR"),
        ("ERROR", "STOPPING"),
        ("STOPPING", "STOPPED"),
    ]
    agent.tick(99999)
    assert len(calls) == 5 and agent.deadline() is None


def test_8_failures_count_within_ten_minutes():
    for gap_ms, state in (
        (recovery.WINDOW_MS // 4 - 1, "STOPPED"),
        (recovery.WINDOW_MS // 4, "READY"),
        (recovery.WINDOW_MS // 4 + 1, "READY"),
    ):
        agent = made()
        agent.start(0)
        for number in range(5):
            at = number * gap_ms
            agent.lifecycle.fail(ValueError("x"), at)
            agent.tick(at + 8000)
        assert agent.lifecycle.state == state, gap_ms


def test_8_an_error_ends_what_is_under_way_and_tells_its_caller():
    agent = made()
    agent.start(0)
    ended = under_way(agent)
    assert taken(agent, RUN) and len(agent.tasks) == 1
    agent.lifecycle.fail(ValueError("the loop stumbled"), 7)
    assert agent.tasks == {} and len(taken(agent, CANCEL)) == 1
    ((value, error),) = ended
    assert (
        value is None
        and error.code == -32603
        and "ValueError: the loop stumbled" in error.message
        and "claw.status" in error.hint
    )


def test_8_a_task_that_cannot_be_ended_is_gone_all_the_same():
    def stubborn(value, error, now_ms):
        raise ValueError("again")

    agent = made()
    agent.start(0)
    under_way(agent, stubborn)
    agent.lifecycle.fail(ValueError("x"), 7)
    assert agent.tasks == {} and agent.lifecycle.state == "ERROR"


def test_8_a_failure_in_an_error_or_after_it_changes_nothing():
    agent = made()
    agent.start(0)
    agent.lifecycle.fail(ValueError("first"), 1)
    agent.lifecycle.fail(ValueError("second"), 2)
    assert (
        agent.lifecycle.recovery.error.message == "ValueError: first" and agent.deadline() == 1001
    )
    agent.stop(50, lambda drained, now_ms: None, 3)
    agent.lifecycle.fail(ValueError("third"), 4)
    assert agent.lifecycle.state == "STOPPED" and agent.deadline() is None


def test_8_a_failure_while_it_drains_ends_that():
    agent = made()
    agent.start(0)
    told = []
    ended = under_way(agent)
    agent.stop(5000, lambda drained, now_ms: told.append(drained), 5)
    agent.lifecycle.fail(ValueError("x"), 7)
    assert told == [False] and len(ended) == 1 and agent.lifecycle.state == "STOPPED"


def test_8_what_cannot_be_ended_does_not_keep_an_agent_from_its_end():
    """Else it would be STOPPING for ever, and its loop would have nothing to wait for."""

    def stubborn(value, error, now_ms):
        raise RuntimeError("maximum recursion depth exceeded")

    for fails in (False, True):
        agent = made()
        agent.start(0)
        told = []
        under_way(agent, stubborn)
        ended = under_way(agent)
        agent.stop(100, lambda drained, now_ms: told.append(drained), 5)
        if fails:
            agent.lifecycle.fail(ValueError("x"), 50)
        else:
            agent.tick(105)
        assert told == [False] and len(ended) == 1 and agent.tasks == {}
        assert agent.lifecycle.state == "STOPPED" and agent.deadline() is None


def test_8_an_operator_may_stop_an_agent_in_error_and_start_it_again():
    agent = made()
    agent.setup.on_start, calls = failing(1)
    agent.start(0)
    agent.stop(50, lambda drained, now_ms: None, 3)
    agent.tick(5000)
    assert len(calls) == 1 and agent.lifecycle.state == lifecycle.STOPPED
    agent.start(6000)
    assert agent.is_ready


def test_8_stopping_drains_and_says_whether_it_did():
    for timeout_ms, at, drained in ((100, 104, None), (100, 105, False), (100, 106, False)):
        agent = made()
        agent.start(0)
        told = []
        ended = under_way(agent)
        agent.stop(timeout_ms, lambda drained, now_ms: told.append(drained), 5)
        assert agent.lifecycle.state == "STOPPING" and agent.deadline() == 105
        agent.tick(at)
        assert told == ([] if drained is None else [drained])
        assert len(ended) == len(told)
    agent = made()
    agent.start(0)
    told = []
    under_way(agent)
    agent.stop(100, lambda drained, now_ms: told.append(drained), 5)
    agent.complete(1, (True, "done"), 50)
    assert told == [True] and agent.lifecycle.state == "STOPPED"


def test_what_ends_a_turn_is_named_with_its_milliseconds():
    for budget_ms, limit in ((90, "timeout_ms"), (None, "total_timeout_ms")):
        agent, how = made(), []
        agent.start(0)
        most = budget_ms or agent.image.agent.turn_ms
        agent.begin(
            call(agent.setup, "slow", {"ms": 9000}, "operator", None),
            lambda value, error, _: how.append(error),
            5,
            most,
        )
        agent.tick(4 + most)
        assert how == []
        agent.tick(5 + most)
        (error,) = how
        assert error.code == -32014 and error.data == {limit: most}
        assert "(%s: %d)" % (limit, most) in error.message
