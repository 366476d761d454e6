"""protocols/mcp: both eras of the protocol, in any portions, and servers that break it."""

import json

from hostile_mcp import loads

from clawlite.core.base.errors import InvalidParams, ParseError
from clawlite.protocols.mcp import mcp_client
from clawlite.protocols.mcp.mcp_client import (
    ASK_ANEW,
    ASKED,
    COUNT_MS,
    DISCOVER,
    INITIALIZE,
    LIST,
    LONGEST_PAUSE_MS,
    MANY_ENDS,
    MAX_UNASKED,
    PROBE_MS,
    READY,
    STATELESS,
    Broken,
    MCPClient,
)
from clawlite.protocols.mcp.mcp_pin import name_changes, pin_of

ECHO = {"name": "echo", "description": "Give it back.", "inputSchema": {"type": "object"}}


def client(now_ms=0, is_handshake=False, asks=False):
    return MCPClient((loads, json.dumps), "1", now_ms, is_handshake, asks)


def sent(one) -> list:
    """Return the messages that wait to be sent, as a server gets them."""
    found = [json.loads(line) for line in bytes(one.out).split(b"\n") if line]
    one.out = bytearray()
    return found


def line(number, result=None, error=None) -> bytes:
    message = {"jsonrpc": "2.0", "id": number}
    if error is None:
        message["result"] = result
    else:
        message["error"] = error
    return json.dumps(message).encode() + b"\n"


def ready(tools=(ECHO,), asks=False):
    """Return a client of the newer era that knows *tools*."""
    one = client(asks=asks)
    one.feed(line(0, {"supportedVersions": [STATELESS]}))
    one.feed(line(1, {"tools": list(tools)}))
    assert one.state == READY
    sent(one)
    return one


def broken(one, data) -> str:
    try:
        one.feed(data)
    except Broken as e:
        return e.message
    return ""


def test_the_newer_era_has_its_version_in_each_request():
    one = client()
    (first,) = sent(one)
    assert first["method"] == "server/discover" and one.state == DISCOVER
    one.feed(line(0, {"supportedVersions": ["2099-01-01", STATELESS]}))
    (second,) = sent(one)
    assert second["method"] == "tools/list" and one.state == LIST
    for message in (first, second):
        meta = message["params"]["_meta"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == STATELESS
    one.feed(line(1, {"tools": [ECHO]}))
    assert one.state == READY and one.tools == {"echo": ECHO} and one.is_stateless


CHANGES = {"supportedVersions": [STATELESS], "capabilities": {"tools": {"listChanged": True}}}
ACKNOWLEDGED = b'{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}\n'
CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'


def listening() -> tuple:
    """Return a client that has asked to be told of changes, and the id of that request."""
    one = client()
    one.feed(line(0, CHANGES))
    sent(one)
    one.feed(line(1, {"tools": [ECHO]}))
    assert one.due_ms() == 0
    one.tick(0)
    (asked,) = sent(one)
    assert asked["method"] == "subscriptions/listen" and one.due_ms() is None
    assert asked["params"]["notifications"] == {"toolsListChanged": True}
    return one, asked["id"]


def test_the_newer_era_is_asked_to_tell_of_changes_where_a_server_says_that_it_can():
    one, number = listening()
    assert one.state == READY and not one.is_stale
    one.feed(ACKNOWLEDGED)
    assert one.is_stale, "what changed between the list and now was told to nobody"
    for tools in ([ECHO], []):
        one.ask_for_tools()
        (asked,) = sent(one)
        one.feed(line(asked["id"], {"tools": tools}))
        one.tick(10**9)
        assert sent(one) == [], "it listens already"
        assert one.state == READY and not one.is_stale and list(one.tools.values()) == tools
        one.feed(CHANGED)
        assert one.is_stale
    none = ready()
    none.tick(10**9)
    assert sent(none) == [], "this one does not say that its tools change"
    old = client(is_handshake=True)
    old.feed(line(0, dict(CHANGES, protocolVersion="2025-11-25")))
    old.feed(line(1, {"tools": [ECHO]}))
    old.tick(10**9)
    assert "subscriptions/listen" not in [one["method"] for one in sent(old)]


def test_a_list_of_pages_that_began_before_the_acknowledgement_is_asked_for_again():
    one, _ = listening()
    one.ask_for_tools()
    one.feed(ACKNOWLEDGED)
    assert not one.is_stale, "no page has come yet"
    one.feed(line(3, {"tools": [ECHO], "nextCursor": "2"}))
    one.feed(ACKNOWLEDGED)
    one.feed(line(4, {"tools": []}))
    assert one.state == READY and one.is_stale


def test_a_subscription_that_is_refused_is_not_asked_for_again():
    one, number = listening()
    assert one.feed(line(number, None, {"code": -32603, "message": "full"})) == []
    one.ask_for_tools()
    (asked,) = sent(one)
    one.feed(line(asked["id"], {"tools": [ECHO]}))
    one.tick(10**9)
    assert sent(one) == [] and one.due_ms() is None and not one.is_often_ended


def ended(one, number: int, now_ms: int) -> None:
    """The server ends the subscription *number*, and the client lists the tools."""
    assert one.feed(line(number, {})) == []
    one.tick(now_ms)
    assert sent(one) == [] and one.is_stale, "a change that is told meanwhile would be missed"
    one.ask_for_tools()
    (asked,) = sent(one)
    assert asked["method"] == "tools/list"
    one.feed(line(asked["id"], {"tools": [ECHO]}))
    assert one.state == READY and not one.is_stale


def test_a_subscription_that_the_server_ends_is_asked_for_again_after_a_pause():
    one, number = listening()
    now_ms = 0
    for count, pause_s in enumerate([1, 2, 4, 8, 16, 32, 60, 60, 60]):
        ended(one, number, now_ms)
        assert one.due_ms() == now_ms + pause_s * 1000
        assert one.is_often_ended == (count >= MANY_ENDS - 1)
        one.tick(now_ms + pause_s * 1000 - 1)
        assert sent(one) == []
        now_ms += pause_s * 1000
        one.tick(now_ms)
        (asked,) = sent(one)
        assert asked["method"] == "subscriptions/listen" and one.due_ms() is None
        number = asked["id"]
        one.feed(ACKNOWLEDGED)
        assert one.is_stale, "what changed in the pause was told to nobody"
    one.tick(now_ms)
    now_ms += LONGEST_PAUSE_MS
    ended(one, number, now_ms)
    assert one.due_ms() == now_ms + 1000, "one that lasted begins the pauses anew"


def test_an_error_without_an_id_is_that_of_a_call_and_of_no_subscription():
    one, _ = listening()
    one.call("a", "echo", {})
    ((key, outcome),) = one.feed(line(None, None, {"code": -32700, "message": "what?"}))
    assert key == "a" and not outcome[0]
    one.call("b", "echo", {})
    question = {"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": {}}
    one.asks = True
    ((key, outcome),) = one.feed(json.dumps(question).encode() + b"\n")
    assert key == "b" and outcome[0] == ASKED


def test_the_handshake_follows_an_error_another_version_or_silence():
    for answer in (
        line(0, None, {"code": -32601, "message": "?"}),
        line(0, {"supportedVersions": ["2099-01-01"]}),
        line(0, {}),
        None,
    ):
        one = client(100)
        sent(one)
        assert one.due_ms() == 100 + PROBE_MS
        one.tick(100 + PROBE_MS - 1)
        assert one.state == DISCOVER
        if answer is None:
            one.tick(100 + PROBE_MS)
        else:
            one.feed(answer)
        (asked,) = sent(one)
        assert asked["method"] == "initialize" and "_meta" not in asked["params"]
        assert one.state == INITIALIZE and one.due_ms() is None
        one.feed(line(asked["id"], {"protocolVersion": "2024-11-05"}))
        done, listing = sent(one)
        assert done["method"] == "notifications/initialized" and "id" not in done
        one.feed(line(listing["id"], {"tools": []}))
        assert one.state == READY and not one.is_stateless


def test_a_late_answer_to_the_newer_era_counts_until_the_handshake_is_made():
    """Who answered in the newer era may refuse the handshake that was asked for meanwhile."""
    one = client()
    one.tick(PROBE_MS)
    sent(one)
    assert one.feed(line(0, {"supportedVersions": ["2025-11-25"]})) == []
    assert one.state == INITIALIZE and not one.is_stateless
    assert one.feed(line(0, {"supportedVersions": [STATELESS]})) == []
    (asked,) = sent(one)
    assert asked["method"] == "tools/list" and "_meta" in asked["params"] and one.is_stateless
    one.feed(line(1, None, {"code": -32600, "message": "no handshake"}))
    one.feed(line(asked["id"], {"tools": [ECHO]}))
    assert one.state == READY
    one = client()
    one.tick(PROBE_MS)
    one.feed(line(1, {"protocolVersion": "2025-11-25"}))
    one.feed(line(0, {"supportedVersions": [STATELESS]}))
    assert one.state == LIST and not one.is_stateless


def test_who_is_known_to_need_the_handshake_is_asked_so_at_once():
    one = client(0, True)
    assert [message["method"] for message in sent(one)] == ["initialize"]


def test_pages():
    one = client()
    one.feed(line(0, {"supportedVersions": [STATELESS]}))
    sent(one)
    one.feed(line(1, {"tools": [ECHO], "nextCursor": "x"}))
    (asked,) = sent(one)
    assert asked["params"]["cursor"] == "x" and one.state == LIST
    other = dict(ECHO)
    other["name"] = "other"
    one.feed(line(2, {"tools": [other]}))
    assert sorted(one.tools) == ["echo", "other"]


def test_calls_are_answered_in_any_order_and_any_portions():
    one = ready()
    one.call("a", "echo", {"n": 1})
    one.call("b", "echo", {"n": 2})
    first, second = sent(one)
    assert first["params"]["name"] == "echo" and first["params"]["arguments"] == {"n": 1}
    data = line(second["id"], {"content": [{"type": "text", "text": "two"}]})
    data += line(first["id"], {"structuredContent": {"is": "one"}})
    for size in (1, 7, len(data)):
        again = ready()
        again.call("a", "echo", {})
        again.call("b", "echo", {})
        found = []
        for at in range(0, len(data), size):
            found += again.feed(data[at : at + size])
        assert found == [("b", (True, "two")), ("a", (True, {"is": "one"}))]


def test_what_a_result_may_be():
    def outcome(result=None, error=None):
        one = ready()
        one.call("a", "echo", {})
        ((key, found),) = one.feed(line(sent(one)[0]["id"], result, error))
        assert key == "a"
        return found

    blocks = [
        {"type": "text", "text": "a"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "audio", "data": "AAAAAA==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "x", "blob": "AAA=", "mimeType": 5}},
        {"type": "resource", "resource": {"uri": "x", "text": "inside"}},
        {"type": "resource_link", "uri": "file:///x"},
        7,
    ]
    done, text = outcome({"content": blocks})
    assert done and text.split("\n") == [
        "a",
        '["image" "image/png", 3 bytes, not shown]',
        '["audio" "audio/wav", 4 bytes, not shown]',
        '["resource" 5, 2 bytes, not shown]',
        "inside",
        '[resource "file:///x"]',
        "[content of no known form]",
    ]
    one, kept = ready(), []
    one.keep = lambda kind, data: kept.append(data) or "in a file"
    one.call("a", "echo", {})
    ((_, (_, text)),) = one.feed(line(sent(one)[0]["id"], {"content": blocks[1:2] * 10}))
    assert kept == ["AAAA"] * 8 and text.count("in a file") == 8
    assert text.endswith("not kept: a result has at most 8 files]")
    done, error = outcome({"content": [{"type": "text", "text": "no disk"}], "isError": True})
    assert not done and error.message == "the tool failed: no disk"
    done, error = outcome({"resultType": "input_required"})
    assert not done and "wants more input" in error.message
    asked = {"method": "elicitation/create", "params": {"message": "Which city?"}}
    done, error = outcome({"resultType": "input_required", "inputRequests": {"b": asked, "a": 5}})
    assert not done and ': null, "elicitation/create" "Which city?"; ' in error.message
    assert error.message.endswith("give all that it needs in the arguments")
    many = dict([(str(number), asked) for number in range(9)])
    error = outcome({"resultType": "input_required", "inputRequests": many})[1]
    assert error.message.count("elicitation/create") == 4
    wants = {"requiredCapabilities": {"elicitation": {"form": {}}}}
    error = outcome(None, {"code": -32021, "message": "no", "data": wants})[1]
    assert 'no - during the call it asked for "elicitation"; ' in error.message
    done, error = outcome(None, {"code": -32602, "message": "no such city"})
    assert not done and isinstance(error, InvalidParams) and "no such city" in error.message
    for strange in (None, [], "x"):
        assert outcome(strange)[0] is False
    assert outcome(None, "odd")[0] is False


def test_a_cancelled_call_is_told_and_its_answer_is_nobodys():
    one = ready()
    one.call("a", "echo", {})
    (asked,) = sent(one)
    one.cancel("a")
    (told,) = sent(one)
    assert told["method"] == "notifications/cancelled"
    assert told["params"]["requestId"] == asked["id"]
    assert one.feed(line(asked["id"], {"content": []})) == []


def test_what_a_server_asks_for():
    one = ready()
    one.feed(b'{"jsonrpc":"2.0","id":"p","method":"ping"}\n')
    one.feed(b'{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{}}\n')
    ping, refused = sent(one)
    assert ping == {"jsonrpc": "2.0", "id": "p", "result": {}}
    assert refused["id"] == 9 and refused["error"]["code"] == -32601


def test_a_call_that_fails_after_a_question_says_what_was_asked():
    one = ready()
    asks = b'{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{}}\n'
    failed = {"content": [{"type": "text", "text": "nobody"}], "isError": True}
    for answer in (
        {"result": failed},
        {"error": {"code": -32602, "message": "nobody"}},
    ):
        one.call("a", "echo", {})
        (asked,) = sent(one)
        one.feed(asks)
        assert sent(one)[0]["error"]["code"] == -32601
        answer = line(asked["id"], answer.get("result"), answer.get("error"))
        ((_, (done, error)),) = one.feed(answer)
        assert not done and "nobody" in error.message
        assert 'during the call it asked for "elicitation/create"; ' in error.message
        assert error.message.endswith("give all that it needs in the arguments")
        assert ("says" in error.message) == isinstance(error, InvalidParams)
    one.call("b", "echo", {})  # nothing was asked for since
    ((_, (done, error)),) = one.feed(line(sent(one)[0]["id"], failed))
    assert not done and error.message == "the tool failed: nobody"
    one.feed(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n')
    assert one.is_stale and one.state == READY
    one.ask_for_tools()
    assert one.state == LIST and not one.is_stale


def test_a_person_that_can_be_asked_is_offered_to_both_eras():
    for asks in (False, True):
        one = client(asks=asks)
        (meta,) = [message["params"]["_meta"] for message in sent(one)]
        offered = {"elicitation": {"form": {}}} if asks else {}
        assert meta["io.modelcontextprotocol/clientCapabilities"] == offered
        (message,) = sent(client(is_handshake=True, asks=asks))
        assert message["params"]["capabilities"] == offered


def test_a_question_during_a_call_is_answered():
    one = ready(asks=True)
    params = {"message": "Which city?", "requestedSchema": {"type": "object", "properties": {}}}
    request = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params}
    asks = json.dumps(request).encode() + b"\n"
    assert one.feed(asks) == [], "there is no call"
    assert sent(one)[0]["error"]["code"] == -32601
    one.call("a", "echo", {})
    one.call("b", "echo", {})
    sent(one)
    assert one.feed(asks) == [("a", (ASKED, ("q", None, {"": params})))], "the oldest call's"
    one.answer("q", {"action": "decline"})
    one.answer("r", None, {"code": -32602, "message": "no"})
    yes, no = sent(one)
    assert yes == {"jsonrpc": "2.0", "id": "q", "result": {"action": "decline"}}
    assert no["error"]["code"] == -32602
    one.cancel("a")
    assert one.feed(asks)[0][0] == "b"


def test_a_result_that_wants_input_is_retried():
    one = ready(asks=True)
    params = {"message": "Which city?"}
    question = {"method": "elicitation/create", "params": params}

    def wanted(**more):
        one.call("a", "echo", {"x": 1})
        (asked,) = sent(one)
        result = dict({"resultType": "input_required"}, **more)
        ((key, outcome),) = one.feed(line(asked["id"], result))
        assert key == "a"
        return outcome

    kind, value = wanted(inputRequests={"city": question}, requestState="s")
    assert kind == ASKED and value == (None, "s", {"city": params})
    one.again("a", "echo", {"x": 1}, {"city": {"action": "accept", "content": {}}}, "s")
    (again,) = sent(one)
    assert again["method"] == "tools/call" and again["params"]["requestState"] == "s"
    assert again["params"]["inputResponses"] == {"city": {"action": "accept", "content": {}}}
    assert one.feed(line(again["id"], {"content": []})) == [("a", (True, ""))]
    assert wanted(requestState="s") == (ASKED, (None, "s", {})), "to be sent again, no more"
    for requests in (
        {"city": question, "other": {"method": "sampling/createMessage", "params": {}}},
        {"city": {"method": "elicitation/create"}},
        {"city": 5},
        [question],
        None,
    ):
        done, error = wanted(inputRequests=requests)
        assert done is False and "wants more input" in error.message


def test_progress_of_a_call_that_is_watched():
    one = ready()
    one.call("a", "echo", {})
    one.call("b", "echo", {}, True)
    plain, watched = sent(one)
    assert "progressToken" not in plain["params"]["_meta"]
    token = watched["params"]["_meta"]["progressToken"]
    assert watched["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == STATELESS

    def tell(**params):
        note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        assert one.feed(json.dumps(note).encode() + b"\n") == []
        found, one.progress = one.progress, {}
        return found

    assert tell(progressToken=token, progress=1) == {"b": (1, None, "")}
    told = tell(progressToken=token, progress=1.5, total=2, message="half")
    assert told == {"b": (1.5, 2, "half")}
    assert tell(progressToken=token, progress=2, total="x", message=5) == {"b": (2, None, "")}
    for wrong in ({"progress": 1}, {"progressToken": "x", "progress": 1}, {"progressToken": token}):
        assert tell(**wrong) == {}
    assert tell(progressToken=token, progress=True) == {}
    one.feed(line(token, {"content": []}))
    assert tell(progressToken=token, progress=3) == {}, "it has ended"


def test_whoever_breaks_the_protocol_is_told_of():
    for data, said in (
        (line(4711, {}), "never sent, id 4711"),
        (line("1", {}), "never sent"),
        (line(True, {}), "never sent"),
    ):
        assert said in broken(ready(), data), data
    one = ready()
    note = b'{"jsonrpc":"2.0","method":"notifications/message"}\n'
    for _ in range(MAX_UNASKED):
        one.feed(note)
    assert "answer nothing" in broken(one, note)


def test_lines_that_are_no_messages_are_skipped_and_counted():
    for data, said in (
        (b"Hello!\n", '"Hello!"'),
        (b"[1]\n", '"[1]"'),
        (b'{"id":1}\n', '"{\\"id\\":1}"'),
        (b"\xff\xfe\n", '".."'),
    ):
        one = ready()
        one.call("a", "echo", {})
        assert one.feed(data + b"more\n") == [] and one.odd_line == said, one.odd_line
        assert one.feed(line(2, {"content": []})) == [("a", (True, ""))]
        assert "answer nothing" in broken(one, data * (MAX_UNASKED + 1))


def test_half_an_emoji_loses_no_answer():
    """JavaScript cuts a text anywhere; our readers refuse the half that it writes then."""

    def strict(data):
        if b"\\ud83d" in data:
            raise ParseError("half of a surrogate pair")
        return loads(data)

    for cut in (b"\\ud83d", b"\xf0\x9f"):
        one = MCPClient((strict, json.dumps), "1", 0)
        one.feed(line(0, {"supportedVersions": [STATELESS]}))
        one.feed(line(1, {"tools": [ECHO]}))
        one.call("a", "echo", {})
        answer = line(2, {"content": [{"type": "text", "text": "grin CUT"}]})
        ((_, (good, text)),) = one.feed(answer.replace(b"CUT", cut))
        assert good and text.rstrip("\ufffd") == "grin " and text != "grin ", text


def test_blank_lines_are_counted():
    one = ready()
    one.feed(b" \r\n" * MAX_UNASKED)
    assert "answer nothing" in broken(one, b"\n")


def test_what_answers_nothing_is_counted_anew_each_hour_and_after_an_answer():
    most, mcp_client.MAX_UNASKED = mcp_client.MAX_UNASKED, 10
    try:
        ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
        one = ready()
        for hour in range(3):
            one.feed(ping * 10)
            one.tick(COUNT_MS * (hour + 1))
        one.feed(ping * 10)
        sent(one)
        one.call("a", "echo", {})
        one.feed(line(sent(one)[0]["id"], {"content": []}))
        one.feed(ping * 10)
        one.tick(COUNT_MS * 4 - 1)
        assert "answer nothing" in broken(one, ping)
    finally:
        mcp_client.MAX_UNASKED = most


def test_progress_of_a_call_is_not_counted():
    most, mcp_client.MAX_UNASKED = mcp_client.MAX_UNASKED, 10
    try:
        one = ready()
        one.call("a", "echo", {}, True)
        number = sent(one)[0]["id"]
        params = {"progressToken": number, "progress": 1}
        note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        note = json.dumps(note).encode() + b"\n"
        one.feed(note * 11)
        assert one.feed(line(number, {"content": []})) == [("a", (True, ""))]
        one.feed(note * 10)
        assert "answer nothing" in broken(one, note), "it has ended"
    finally:
        mcp_client.MAX_UNASKED = most


def test_who_refuses_the_handshake_that_it_knew_may_have_been_upgraded():
    refusal = {"code": -32601, "message": "no"}
    for is_handshake in (True, False):
        one, number = client(is_handshake=is_handshake), 0
        if not is_handshake:
            one.feed(line(0, None, refusal))
            number = 1
        try:
            one.feed(line(number, None, refusal))
        except Broken as e:
            assert "it answers initialize with an error: no" in e.message
            assert e.hint == (ASK_ANEW if is_handshake else "")
        else:
            raise AssertionError("nothing was raised")


def test_a_message_without_end():
    most, mcp_client.MAX_LINE = mcp_client.MAX_LINE, 1000  # a board has no room for a real one
    try:
        one = ready()
        one.feed(b"x" * 1000)
        assert "more than 1000 bytes" in broken(one, b"x")
    finally:
        mcp_client.MAX_LINE = most


def test_a_list_without_end():
    """Of tools, or of pages that have none."""
    most = mcp_client.MAX_TOOLS, mcp_client.MAX_PAGES
    mcp_client.MAX_TOOLS, mcp_client.MAX_PAGES = 2, 3  # a board has no room for real ones
    tools = [{"name": "t%d" % number, "inputSchema": {"type": "object"}} for number in range(3)]
    try:
        one = client()
        one.feed(line(0, {"supportedVersions": [STATELESS]}))
        assert "more than 2 tools, or 3 pages" in broken(one, line(1, {"tools": tools}))
        one = client()
        one.feed(line(0, {"supportedVersions": [STATELESS]}))
        page = {"tools": [], "nextCursor": "on"}
        said = [broken(one, line(number, page)) for number in range(1, 5)]
        assert said[:3] == [""] * 3 and "more than 2 tools, or 3 pages" in said[3]
    finally:
        mcp_client.MAX_TOOLS, mcp_client.MAX_PAGES = most


def test_a_list_that_is_none():
    for tools, said in (
        (None, "is none"),
        ({}, "is none"),
        ([3] * 1001, "more than 1000 tools"),
        ([ECHO] * 1002, "more than 1000 tools"),
    ):
        one = client()
        one.feed(line(0, {"supportedVersions": [STATELESS]}))
        assert said in broken(one, line(1, {"tools": tools})), tools


def test_entries_that_are_no_tools_are_left_out():
    other = dict(ECHO, name="other")
    for tools, found, left_out in (
        ([{}, ECHO, 3, {"name": 5}], [ECHO], [("", "it has no name")] * 3),
        ([ECHO, other, ECHO], [other], [("echo", "it is listed twice")]),
    ):
        one = ready(tools)
        assert list(one.tools.values()) == found and one.left_out == left_out
        one.ask_for_tools()
        one.feed(line(2, {"tools": [ECHO]}))
        assert list(one.tools.values()) == [ECHO] and one.left_out == []


def test_pins_say_what_has_changed():
    about, schema = dict(ECHO), dict(ECHO)
    about["description"] = "x"
    schema["inputSchema"] = {"type": "object", "required": ["a"]}
    pin = pin_of(ECHO)
    assert len(pin) == 32 and name_changes(pin, pin_of(dict(ECHO))) == ""
    assert name_changes(pin, pin_of(about)) == "description"
    assert name_changes(pin, pin_of(schema)) == "input schema"
    assert name_changes(pin, pin_of({})) == "description and input schema"
