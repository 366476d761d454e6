"""protocols/mcp/server_state.py: when an MCP server is started and ended, and which calls it gets.
The test hands in the times, and has the other end of the client.
"""

import json

import pytest
from hostile_mcp import loads

from clawlite.protocols.mcp.mcp_client import OUTCOME_UNKNOWN, PROBE_MS, STATELESS, MCPClient
from clawlite.protocols.mcp.mcp_pin import pin_of
from clawlite.protocols.mcp.server_state import MAX_QUESTIONS, START_MS, Call, ServerState

ECHO = {"name": "echo", "description": "Give it back.", "inputSchema": {"type": "object"}}


def line(number: int, result: dict) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode() + b"\n"


def begin(now_ms=0, idle_ms=None, life_ms=0, pin=b"", warn=pytest.fail) -> ServerState:
    one = ServerState("t", [["echo", pin]], idle_ms, life_ms, warn)
    one.begin(MCPClient((loads, json.dumps), "1", now_ms), now_ms)
    return one


def ready(*about, tools=(ECHO,), **more) -> ServerState:
    one = begin(*about, **more)
    one.client.feed(line(0, {"supportedVersions": [STATELESS]}))
    one.client.feed(line(1, {"tools": list(tools)}))
    return one


def call(one: ServerState, key: int, now_ms: int = 0) -> Call:
    made = Call("echo", {}, False)
    one.add(key, made)
    assert one.send_calls(now_ms) == []
    return made


def test_a_server_that_lists_no_tools_has_failed_at_its_time():
    one = begin(1000)
    call(one, 1)
    one.client.feed(b"Welcome\n")
    assert one.due_ms() == 1000 + PROBE_MS and one.due_ms(True) == 1000 + START_MS
    assert not one.check_ready(999 + START_MS)
    assert one.check_ready(1000 + START_MS).startswith(
        "it did not list its tools within 20 s, and wro"
    )
    other = ready()
    call(other, 1)
    assert (
        other.calls[1].sent_ms == 0 and not other.check_ready(START_MS) and other.due_ms() is None
    )


def test_the_pause_doubles_until_a_call_is_answered():
    one, found = begin(), []
    for _ in range(8):
        one.note_failure("it ended", " last words\n", 500)
        found.append(one.pause_ms(500))
    assert found == [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]
    assert one.pause_ms(60499) == 1 and one.pause_ms(60500) == 0
    assert (one.failures, one.why) == (8, "it ended, and said: last words")
    one.note_answer()
    one.note_failure("it ended", "", 0)
    assert (one.failures, one.why, one.pause_ms(0)) == (1, "it ended", 1000)


@pytest.mark.parametrize(
    "tools, pin, difference",
    [
        ([ECHO], pin_of(ECHO), ""),
        ([{**ECHO, "description": "Delete it."}], b"", ""),
        ([], pin_of(ECHO), "has no tool echo any more"),
        (
            [{**ECHO, "description": "Delete it."}],
            pin_of(ECHO),
            "has changed the description of its tool echo since this agent was built",
        ),
    ],
)
def test_a_tool_that_is_not_as_pinned_is_not_called(tools, pin, difference):
    one = ready(tools=tools, pin=pin)
    assert one.find_difference("echo") == difference
    made = Call("echo", {}, False)
    one.add(1, made)
    refused = one.send_calls(7)
    if difference:
        assert refused == [(1, made, None)] and one.calls == {} and made.sent_ms is None
    else:
        assert refused == [] and made.sent_ms == 7


def test_a_server_hangs_when_it_is_silent_for_a_call_sent_after_another_was_given_up():
    one = ready()
    for key in (1, 2):
        call(one, key)
    assert not one.give_up(1, True, 100) and not one.give_up(2, True, 100), "sent before"
    call(one, 3, 150)
    one.note_sign()
    assert not one.give_up(3, True, 200), "something came in between"
    call(one, 4, 250)
    assert not one.give_up(4, False, 300), "who made it has gone"
    call(one, 5, 300)
    assert one.give_up(5, True, 400)
    assert one.client.out.count(b"notifications/cancelled") == 5 and one.calls == {}
    assert not one.give_up(5, True, 400), "it is not there any more"


def test_one_that_no_call_needs_is_over_after_its_idle_time():
    one = ready(idle_ms=1000)
    assert not one.is_over(0) and one.due_ms() == 1000
    call(one, 1, 500)
    assert one.due_ms() is None and not one.is_over(5000)
    one.give_up(1, False, 5000)
    assert not one.is_over(5000) and one.due_ms() == 6000
    assert not one.is_over(5999) and one.is_over(6000)
    one.stop()
    assert one.due_ms() is None
    assert ready(idle_ms=0).is_over(0) and not ready().is_over(1 << 40), "None: never"


def test_one_whose_life_is_over_ends_once_no_call_is_under_way():
    one = ready(100, life_ms=1000)
    call(one, 1, 500)
    assert not one.is_over(2000)
    one.take_calls()
    assert not one.is_over(1099) and one.is_over(1100) and one.due_ms() == 1100


def test_a_session_that_ended_begins_anew_with_what_it_refused_once():
    one = ready()
    refused, sent = call(one, 1), call(one, 2)
    waits = Call("echo", {}, False)
    one.add(3, waits)
    assert one.end_session(1) == [(2, sent)] and one.is_anew
    assert one.calls == {1: refused, 3: waits} and refused.sent_ms is None and refused.is_again
    error = one.make_lost_error("ended its session")
    assert (error.message, error.hint) == ("the MCP server t ended its session", OUTCOME_UNKNOWN)
    one.send_calls(10)
    assert one.end_session(1) == [(1, refused), (3, waits)], "none is sent a third time"
    one.note_answer()
    assert not one.is_anew


def test_so_many_questions_are_put():
    made = Call("echo", {}, False)
    assert not made.has_asked_enough({"a": {}, "b": {}})
    assert [made.has_asked_enough({}) for _ in range(3, MAX_QUESTIONS + 1)] == [False] * 6
    assert not made.note and made.has_asked_enough({"c": {}})
    assert made.note == "it asked a person more than 8 questions"


def test_oddities_are_told_once():
    told: list = []
    one = ready(warn=told.append)
    one.client.feed(b"Welcome\n")
    for now_ms in (0, 1):
        one.tick(now_ms)
    assert len(told) == 1 and "Welcome" in told[0]
