"""Tools that are tried again (CKP 0.2.0, 5.4): what is, how often, and after how long."""

from clawlite.core.base.effect import LOG, RUN, SLEEP
from clawlite.core.base.errors import (
    ClawError,
    InvalidParams,
    ProviderError,
    SandboxDenied,
    ToolTimeout,
)
from clawlite.core.turns import retry
from clawlite.core.turns.gates import ToolCall


class Tool:
    name = "t"

    def __init__(self, most, backoff=0):
        self.retry = [most, backoff]


def run(call):
    return (yield (RUN, call.tool, call.arguments))


def drive(tool, outcomes):
    """Return (the last outcome, the log's events, waits); *outcomes* of the attempts in turn."""
    events, waits, event = [], [], {}
    outcomes = list(outcomes)
    work = retry.attempts(run, ToolCall(None, tool, {}, None, None, None, event))
    value = None
    try:
        while True:
            effect = work.send(value)
            value = None
            if effect[0] == RUN:
                value = outcomes.pop(0)
            elif effect[0] == LOG:
                events.append(effect[1])
            else:
                assert effect[0] == SLEEP
                waits.append(effect[1])
                value = (True, None)
    except StopIteration as e:
        assert not outcomes, "an attempt was not made"
        assert event["attempts"] == len(events)
        return e.value, events, waits


FAILED = (False, ClawError("OSError: the bus is busy"))


def test_a_failure_is_tried_again_until_it_works():
    """5.4 ``retry``: each attempt is in the log."""
    outcome, events, waits = drive(Tool(3), [FAILED, FAILED, (True, "up")])
    assert outcome == (True, "up") and waits == [1000, 2000]
    assert [(e["attempt"], e["status"], e.get("error"), e.get("wait_ms")) for e in events] == [
        (1, "error", "OSError: the bus is busy", 1000),
        (2, "error", "OSError: the bus is busy", 2000),
        (3, "ok", None, None),
    ]


def test_there_are_at_most_max_attempts():
    for most in (1, 2, 3):
        outcome, events, waits = drive(Tool(most), [FAILED] * most)
        assert outcome is FAILED and len(events) == most and len(waits) == most - 1


def test_what_works_at_once_runs_once():
    assert drive(Tool(9), [(True, None)])[2] == []


def test_a_timeout_is_not_tried_again():
    """5.4: a tool that exceeds timeout_ms is ended, and its call answers -32014."""
    for error in (
        ToolTimeout("it took too long"),
        SandboxDenied("no such handler"),
        ProviderError("nobody answers"),
        InvalidParams("no such method"),
    ):
        outcome, events, waits = drive(Tool(5), [(False, error)])
        assert outcome[1] is error and waits == [] and len(events) == 1


def test_how_long_it_waits():
    for backoff, expected in (
        (retry.EXPONENTIAL, [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]),
        (retry.LINEAR, [1000, 2000, 3000, 4000]),
        (retry.CONSTANT, [1000, 1000, 1000]),
    ):
        assert [retry.wait_ms(backoff, at + 1) for at in range(len(expected))] == expected
    assert retry.wait_ms(retry.EXPONENTIAL, 10**9) == retry.wait_ms(retry.LINEAR, 10**9) == 60000
