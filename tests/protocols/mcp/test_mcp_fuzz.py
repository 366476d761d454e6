"""protocols/mcp: whatever a server says that nobody asked for, a call that it answers ends right,
and what breaks the protocol is an error of ours.  hostile_mcp.py is such a server.
"""

import json

from hostile_mcp import TEXT, URL, Hostile, loads
from line_wire import Dice

from clawlite.core.base.errors import ClawError
from clawlite.protocols.mcp.mcp_client import ASKED, READY, MCPClient
from clawlite.protocols.mcp.mcp_http import HTTPClient

SEEDS = 60
CALLS = 4
MOST = 400  # messages of one conversation


def lines(one, server) -> bytes:
    """Return what *server* answers to all that *one* has to say."""
    said = bytes(one.out).split(b"\n")
    one.out = bytearray()
    found = b""
    for each in said:
        if each:
            for message in server.replies(json.loads(each)):
                found += json.dumps(message).encode() + b"\n"
    return found


def converse(one, server, ended: list):
    """Let *one* make its calls, some of which are watched; put the outcomes into *ended*."""
    key = 0
    for number in range(MOST):
        server.is_quiet = number > MOST // 2  # it may change its list for ever
        one.tick(number * 10)
        if one.is_stale and one.state == READY:
            one.ask_for_tools()
        while one.state == READY and key < CALLS and "echo" in one.tools:
            one.call(key, "echo", {}, key % 2 == 1)
            key += 1
        done = one.feed(lines(one, server))
        for told in one.progress:
            assert told % 2 == 1, "nobody wanted to know of call %d" % told
        one.progress = {}
        for key_of, outcome in done:
            if outcome[0] is ASKED:
                answer(one, key_of, outcome[1])
            else:
                ended.append((key_of, outcome))
        if len(ended) >= CALLS:
            return


def answer(one, key, asked: tuple):
    number, state, requests = asked
    if number is not None:
        one.answer(number, {"action": "decline"})
    else:
        answers = {name: {"action": "decline"} for name in requests}
        one.again(key, "echo", {}, answers, state)


def test_what_nobody_asked_for_changes_no_call():
    for seed in range(SEEDS):
        server, ended = Hostile(seed), []
        one = MCPClient((loads, json.dumps), "1", 0, not server.is_stateless)
        converse(one, server, ended)
        assert len(ended) == CALLS, seed
        for key, outcome in ended:
            assert outcome == (True, TEXT), (seed, key, outcome)


def test_a_broken_answer_is_an_error_of_ours():
    ends = set()
    for seed in range(SEEDS):
        for asks in (False, True):
            server, ended = Hostile(seed, "all"), []
            one = MCPClient((loads, json.dumps), "1", 0, not server.is_stateless, asks)
            try:
                converse(one, server, ended)
            except ClawError as e:
                assert type(e.message) is str
                ends.add(type(e).__name__)
            for key, (is_ok, value) in ended:
                assert is_ok or isinstance(value, ClawError), (seed, key, value)
                ends.add(is_ok)
    assert len(ends) >= 3, ends


def headers_of(server, dice) -> dict:
    """Return the headers of an answer that is a stream, with some that nobody asked for."""
    found = {"content-type": "text/event-stream"}
    for name in ("mcp-session-id", "retry-after", "www-authenticate", "location", "x-none"):
        if dice.below(6) == 0:
            found[name] = ("", "s-1", "/mcp", "1")[dice.below(4)]
    return found


def event(message: dict, dice) -> bytes:
    """Return *message* as an event, with fields that nobody asked for."""
    text = b""
    for field in (
        b": hi",
        b"id: 1",
        b"id: \xc3\xbc",
        b"retry: 99999999",
        b"retry: x",
        b"event: message",
    ):
        if dice.below(4) == 0:
            text += field + b"\n"
    return text + b"data: " + json.dumps(message).encode() + b"\n\n"


def exchange(one, server, dice, now_ms: int) -> list:
    """Answer each request of *one*, a stream for each; return what it makes of that."""
    done = []
    for key, verb, _, _, body in one.requests(now_ms):
        if verb == "GET":
            done += one.event(key, ("head", 405, {}), now_ms)
            done += one.event(key, ("end",), now_ms)
            continue
        message = json.loads(body)
        replies = server.replies(message)
        if "id" not in message or "method" not in message:
            done += one.event(key, ("head", 202, {}), now_ms)
            done += one.event(key, ("end",), now_ms)
            continue
        done += one.event(key, ("head", 200, headers_of(server, dice)), now_ms)
        for reply in replies:
            done += one.event(key, ("data", event(reply, dice)), now_ms)
        if message["method"] != "subscriptions/listen":
            done += one.event(key, ("end",), now_ms)
    return done


def test_the_same_over_http():
    for seed in range(SEEDS):
        server, dice, ended, key = Hostile(seed), Dice(seed), [], 0
        one = HTTPClient(URL, (loads, json.dumps), "1", 0, not server.is_stateless)
        for number in range(MOST):
            server.is_quiet = number > MOST // 2
            one.tick(number * 10)
            if one.is_stale and one.state == READY:
                one.ask_for_tools()
            while one.state == READY and key < CALLS and "echo" in one.tools:
                one.call(key, "echo", {}, key % 2 == 1)
                key += 1
            ended += exchange(one, server, dice, number * 10)
            for told in one.progress:
                assert told % 2 == 1, "nobody wanted to know of call %d" % told
            one.progress = {}
            if len(ended) >= CALLS:
                break
        assert len(ended) == CALLS, seed
        for key, outcome in ended:
            assert outcome == (True, TEXT), (seed, key, outcome)


def test_a_request_without_an_id_makes_no_second_call():
    """An id of null is none in JSON-RPC of MCP; it must not look like a question of the newer era,
    after which the call is sent again.
    """
    for odd in (None, [], {}, True):
        one = MCPClient((loads, json.dumps), "1", 0, True, True)
        server = Hostile(0)
        server.is_quiet, server.is_stateless = True, False
        while one.state != READY:
            one.feed(lines(one, server))
        one.call(0, "echo", {})
        asks = {"jsonrpc": "2.0", "id": odd, "method": "elicitation/create", "params": {}}
        assert one.feed(json.dumps(asks).encode() + b"\n") == []
        assert one.feed(lines(one, server)) == [(0, (True, TEXT))]
