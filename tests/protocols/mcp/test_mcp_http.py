"""protocols/mcp: Streamable HTTP without a connection: what is asked, and what comes of it."""

import json

from hostile_mcp import URL, loads

from clawlite.core.base.errors import ClawError
from clawlite.protocols.mcp import mcp_client
from clawlite.protocols.mcp.mcp_client import ASKED, OUTCOME_UNKNOWN, READY, STATELESS, Broken
from clawlite.protocols.mcp.mcp_headers import of_arguments
from clawlite.protocols.mcp.mcp_http import HOLD_MS, MAX_AT_ONCE, HTTPClient, SessionEnded

ECHO = {"name": "echo", "description": "Give it back.", "inputSchema": {"type": "object"}}
LISTS = {"tools": {"listChanged": True}}


def client(is_handshake=False, asks=False):
    return HTTPClient(URL, (loads, json.dumps), "1", 0, is_handshake, asks)


def asked(one, now_ms=0) -> tuple:
    """Return (key, message, headers) of the one request that it wants."""
    ((key, verb, target, headers, body),) = one.requests(now_ms)
    return key, json.loads(body) if body else None, dict(headers)


def say(one, key, value, headers=(), status=200, now_ms=0) -> list:
    body = json.dumps(value).encode() if value is not None else b""
    fields = {"content-type": "application/json"}
    fields.update(dict(headers))
    done = one.event(key, ("head", status, fields), now_ms)
    if body:
        done += one.event(key, ("data", body), now_ms)
    return done + one.event(key, ("end",), now_ms)


def answer(message, result) -> dict:
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def begin_stream(one, key):
    one.event(key, ("head", 200, {"content-type": "text/event-stream"}), 0)


def ready(session=None, capabilities=None, is_stateless=False, asks=False):
    one = client(not is_stateless, asks)
    key, message, _ = asked(one)
    if is_stateless:
        found = {"supportedVersions": [STATELESS], "capabilities": capabilities or {}}
        say(one, key, answer(message, found))
    else:
        found = {"protocolVersion": "2025-11-25", "capabilities": capabilities or {}}
        headers = [("mcp-session-id", session)] if session else []
        say(one, key, answer(message, found), headers)
        key, message, headers = asked(one)
        assert message["method"] == "notifications/initialized"
        assert headers["MCP-Protocol-Version"] == "2025-11-25"
        assert headers.get("Mcp-Session-Id") == session
        say(one, key, None, [], 202)
    key, message, _ = asked(one)
    assert message["method"] == "tools/list"
    say(one, key, answer(message, {"tools": [ECHO]}))
    assert one.state == READY
    one.closed.clear()
    return one


def raised(kind, function, *args):
    try:
        function(*args)
    except kind as e:
        return e
    raise AssertionError("nothing was raised")


def test_one_request_at_a_time_until_the_tools_are_known_then_more():
    one = ready()
    for number in range(MAX_AT_ONCE + 2):
        one.call(number, "echo", {})
    first = one.requests(0)
    assert len(first) == MAX_AT_ONCE and one.requests(0) == []
    message = json.loads(first[0][4])
    done = say(one, first[0][0], answer(message, {"content": []}))
    assert done == [(0, (True, ""))] and one.closed == [first[0][0]]
    assert len(one.requests(0)) == 1


def test_an_error_of_any_form_is_an_answer_to_the_newer_era():
    for status, body in (
        (400, "<html>"),
        (404, {"error": {"code": 1, "message": "m"}}),
        (405, None),
    ):
        one = client()
        key, message, headers = asked(one)
        assert headers["MCP-Protocol-Version"] == STATELESS
        assert headers["Mcp-Method"] == "server/discover"
        say(one, key, body, [], status)
        assert asked(one)[1]["method"] == "initialize"


def test_silence_of_the_newer_era_drops_its_request():
    one = client()
    key = asked(one)[0]
    one.tick(one.due_ms())
    assert asked(one)[1]["method"] == "initialize" and one.closed == [key]


def test_a_stream_that_breaks_is_gone_on_with_where_its_events_have_ids():
    one = ready("s1")
    one.call("a", "echo", {})
    key, message, _ = asked(one)
    begin_stream(one, key)
    one.event(key, ("data", b"id: 7\nretry: 250\ndata: \n\n"), 0)
    assert one.event(key, ("end",), 1000) == []
    assert one.due_ms() == 1250 and one.requests(1249) == []
    key, nothing, headers = asked(one, 1250)
    assert nothing is None and headers["Last-Event-ID"] == "7"
    assert headers["Accept"] == "text/event-stream" and headers["Mcp-Session-Id"] == "s1"
    begin_stream(one, key)
    text = json.dumps(answer(message, {"content": [{"type": "text", "text": "late"}]}))
    done = one.event(key, ("data", b"id: 8\ndata: " + text.encode() + b"\n\n"), 0)
    assert done == [("a", (True, "late"))] and key in one.closed


def test_a_stream_without_ids_that_breaks_is_an_error_of_its_call_alone():
    one = ready()
    one.call("a", "echo", {})
    one.call("b", "echo", {})
    first, second = one.requests(0)
    begin_stream(one, first[0])
    ((key, outcome),) = one.event(first[0], ("end",), 0)
    assert key == "a" and not outcome[0] and "cut off" in outcome[1].message
    done = say(one, second[0], answer(json.loads(second[4]), {"content": []}))
    assert done == [("b", (True, ""))]


def test_a_connection_that_fails_before_an_answer_ends_the_conversation():
    one = ready()
    one.call("a", "echo", {})
    key = asked(one)[0]
    assert "refused" in raised(Broken, one.take, key, "error", "it was refused", 0).message


def test_a_list_that_changes_is_heard_of():
    for is_stateless in (False, True):
        one = ready(None, LISTS, is_stateless)
        key, message, _ = asked(one)
        if is_stateless:
            assert message["method"] == "subscriptions/listen"
            assert message["params"]["notifications"] == {"toolsListChanged": True}
        else:
            assert message is None
        begin_stream(one, key)
        told = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        one.event(key, ("data", b"data: " + json.dumps(told).encode() + b"\n\n"), 0)
        assert one.is_stale
        one.ask_for_tools()
        key, message, _ = asked(one)
        assert message["method"] == "tools/list", "what listens is in nobody's way"
        say(one, key, answer(message, {"tools": []}))
        assert one.state == READY and one.tools == {}


def test_a_call_waits_until_its_questions_can_be_heard():
    question = {"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": {}}
    one = ready(asks=True)
    one.call("a", "echo", {})
    ((listening, verb, _, _, _),) = one.requests(0)
    assert verb == "GET" and one.requests(0) == [] and one.due_ms() == HOLD_MS
    begin_stream(one, listening)
    key, message, _ = asked(one)
    assert message["method"] == "tools/call"
    begin_stream(one, key)
    for at in (listening, key):  # it may come on either
        event = b"event: message\ndata: %s\n\n" % json.dumps(question).encode()
        ((whose, (kind, value)),) = one.event(at, ("data", event), 0)
        assert (whose, kind, value) == ("a", ASKED, (7, None, {"": {}}))
    for number in range(MAX_AT_ONCE):
        one.call(number, "echo", {})
    one.requests(0)
    one.answer(7, {"action": "decline"})
    key, message, _ = asked(one)
    assert message == {"jsonrpc": "2.0", "id": 7, "result": {"action": "decline"}}
    assert say(one, key, None, [], 202) == []
    slow = ready(asks=True)
    slow.call("a", "echo", {})
    assert len(slow.requests(0)) == 1 and len(slow.requests(HOLD_MS)) == 1, "it says nothing"
    none = ready(asks=True)
    none.call("a", "echo", {})
    ((listening, _, _, _, _),) = none.requests(0)
    say(none, listening, None, [], 405)
    assert asked(none)[1]["method"] == "tools/call"


def test_who_offers_no_stream_is_not_asked_for_one_again():
    one = ready("s1", LISTS)
    key, message, _ = asked(one)
    say(one, key, None, [], 405)
    assert one.requests(10**9) == [] and one.due_ms() is None


def test_a_subscription_without_an_answer_is_not_asked_for_again():
    one = ready(None, LISTS, is_stateless=True)
    key, message, _ = asked(one)
    assert message["method"] == "subscriptions/listen"
    assert say(one, key, None, [], 202) == []
    assert one.requests(10**9) == [] and one.due_ms() is None


def test_a_subscription_that_the_server_ends_is_asked_for_again_after_a_pause():
    one = ready(None, LISTS, is_stateless=True)
    now_ms = 0
    for is_answered, pause_s in ((True, 1), (False, 2), (True, 4)):
        key, message, _ = asked(one, now_ms)
        assert message["method"] == "subscriptions/listen"
        begin_stream(one, key)
        last = b"data: %s\n\n" % json.dumps(answer(message, {})).encode() if is_answered else b""
        assert one.event(key, ("data", last), now_ms) == []
        one.event(key, ("end",), now_ms)
        assert one.requests(now_ms) == [] and one.is_stale
        one.ask_for_tools()
        key, message, _ = asked(one, now_ms)
        say(one, key, answer(message, {"tools": [ECHO]}))
        assert one.due_ms() == now_ms + pause_s * 1000
        now_ms += pause_s * 1000


def test_a_listening_stream_that_ends_is_begun_again_after_a_pause():
    one = ready("s1", LISTS)
    now_ms = 0
    for pause_s in (1, 2, 4):
        key, message, _ = asked(one, now_ms)
        assert message is None
        begin_stream(one, key)
        one.event(key, ("end",), now_ms)
        assert one.requests(now_ms) == [] and one.due_ms() == now_ms + pause_s * 1000
        now_ms += pause_s * 1000


def test_a_session_that_has_ended():
    one = ready("s1")
    one.requests(0)
    one.call("a", "echo", {})
    key = asked(one)[0]
    assert raised(SessionEnded, say, one, key, None, [], 404).key == "a"


def test_a_get_that_is_not_found_ends_no_session():
    one = ready("s1", LISTS)
    key, message, _ = asked(one)
    assert message is None and say(one, key, None, [], 404) == []
    assert one.requests(10**9) == [] and not one.is_stale, "it never had a stream"
    one.call("a", "echo", {})
    assert raised(SessionEnded, say, one, asked(one)[0], None, [], 404).key == "a"


def test_a_call_whose_answer_cannot_be_gone_on_with_is_not_made_again():
    for status in (404, 405, 500):
        one = ready("s1")
        one.call("a", "echo", {})
        key = asked(one)[0]
        begin_stream(one, key)
        one.event(key, ("data", b"id: 7\ndata: \n\n"), 0)
        one.event(key, ("end",), 0)
        key, message, _ = asked(one, one.due_ms())
        ((whose, (done, error)),) = say(one, key, None, [], status)
        assert message is None and (whose, done) == ("a", False)
        assert "its rest is HTTP %d" % status in error.message and error.hint == OUTCOME_UNKNOWN


def test_a_listening_stream_that_cannot_be_gone_on_with_may_have_missed_a_change():
    for status in (200, 404, 405):
        one = ready("s1", LISTS)
        key = asked(one)[0]
        begin_stream(one, key)
        one.event(key, ("data", b"id: 7\ndata: \n\n"), 0)
        one.event(key, ("end",), 0)
        assert not one.is_stale, "what is told now comes when it is gone on with"
        key, _, headers = asked(one, one.due_ms())
        assert headers["Last-Event-ID"] == "7"
        say(one, key, None, [], status)
        assert one.is_stale and one.requests(10**9) == []


def test_what_listens_goes_on_after_its_own_events_alone():
    one = client(True)
    key, message, _ = asked(one)
    found = {"protocolVersion": "2025-11-25", "capabilities": LISTS}
    say(one, key, answer(message, found), [("mcp-session-id", "s1")])
    key, message, _ = asked(one)
    assert message["method"] == "notifications/initialized"
    begin_stream(one, key)
    one.event(key, ("data", b"id: 7\ndata: \n\n"), 0)
    one.event(key, ("end",), 0)
    key, message, _ = asked(one)
    say(one, key, answer(message, {"tools": [ECHO]}))
    _, message, headers = asked(one)
    assert message is None and "Last-Event-ID" not in headers


def test_events_that_answer_nothing_are_counted_and_comments_are_none():
    most, mcp_client.MAX_UNASKED = mcp_client.MAX_UNASKED, 10
    try:
        for event in (b"event: x\ndata: y\n\n", b"data: \n\n", b"id: 7\ndata\n\n"):
            one = ready("s1", LISTS)
            key = asked(one)[0]
            begin_stream(one, key)
            one.event(key, ("data", b": I am here\n\n" * 100), 0)
            one.event(key, ("data", event * 10), 0)
            e = raised(Broken, one.event, key, ("data", event), 0)
            assert "10 messages that answer nothing" in e.message
    finally:
        mcp_client.MAX_UNASKED = most


def test_an_answer_to_a_notification_is_nothing():
    one = client(True)
    key, message, _ = asked(one)
    say(one, key, answer(message, {"protocolVersion": "2025-11-25"}))
    key, message, _ = asked(one)
    assert say(one, key, {"jsonrpc": "2.0", "id": None, "result": {}}) == []
    assert asked(one)[1]["method"] == "tools/list"


def test_redirects_stay_on_the_server():
    for place in ("/v2", "https://mcp.example.com/v2"):
        one = client()
        say(one, asked(one)[0], None, [("location", place)], 308)
        ((_, _, target, _, _),) = one.requests(0)
        assert target == "/v2"
    for place in (
        "http://mcp.example.com/v2",
        "https://mcp.example.com:444/v2",
        "https://mcp.example.com.evil.org/v2",
        "https://10.0.0.1/",
        "//10.0.0.1/",
        "/\\10.0.0.1/",
        "",
    ):
        one = client()
        e = raised(Broken, say, one, asked(one)[0], None, [("location", place)], 307)
        assert "it redirects to" in e.message
    one = client()
    for _ in range(3):
        say(one, asked(one)[0], None, [("location", "/x")], 307)
    raised(Broken, say, one, asked(one)[0], None, [("location", "/x")], 307)


def test_an_answer_belongs_to_its_own_connection():
    one = ready()
    one.call("a", "echo", {})
    one.call("b", "echo", {})
    first, second = one.requests(0)
    wrong = answer(json.loads(second[4]), {"content": []})
    assert "never sent on this" in raised(Broken, say, one, first[0], wrong).message


def test_a_cancelled_call_closes_its_connection():
    for is_stateless in (False, True):
        one = ready(None, None, is_stateless)
        one.call("a", "echo", {})
        key = asked(one)[0]
        one.cancel("a")
        assert key in one.closed
        methods = [json.loads(body)["method"] for _, _, _, _, body in one.requests(0)]
        assert methods == ([] if is_stateless else ["notifications/cancelled"])


def test_arguments_in_headers():
    schema = {
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"properties": {"on": {"type": "boolean", "x-mcp-header": "On"}}},
            "count": {"type": "integer", "x-mcp-header": "Count"},
        }
    }
    found = of_arguments(schema, {"region": "eu west", "deep": {"on": True}})
    assert sorted(found) == [("Mcp-Param-On", "true"), ("Mcp-Param-Region", "eu west")]
    for value, text in (
        (" x", "=?base64?IHg=?="),
        ("", "=?base64??="),
        ("a\nb", "=?base64?YQpi?="),
        ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
    ):
        assert of_arguments(schema, {"region": value}) == [("Mcp-Param-Region", text)]
    for part in (
        {"type": "number", "x-mcp-header": "X"},
        {"type": "string", "x-mcp-header": "not a token"},
        {"type": "string", "x-mcp-header": 5},
    ):
        raised(ClawError, of_arguments, {"properties": {"x": part}}, {})
    twice = {"type": "string", "x-mcp-header": "x"}
    raised(ClawError, of_arguments, {"properties": {"a": twice, "b": twice}}, {})
