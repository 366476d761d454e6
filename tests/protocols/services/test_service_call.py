"""protocols/services: requests of services' tools, and results of the shape of ADR-020."""

import json

from clawlite.core.base.errors import ParseError
from clawlite.core.base.render import canonical
from clawlite.protocols.services import service_call
from clawlite.protocols.services.feed import Feed
from clawlite.protocols.services.service_call import (
    BEARER,
    FORM,
    HEADER,
    JSON,
    NATIVE,
    QUERY,
    BadArgument,
    Service,
    failure,
    make_timeout,
    placeholders,
    request_of,
    result_of,
)

MARKET = ["get_market_context", "GET", "/api/v1/market_context/{claw_id}", QUERY, False]
TRADE = ["execute_trade", "POST", "/api/v1/trades", JSON, False]


def desk(auth=(BEARER, "Authorization", "TRADING_API_TOKEN"), base: str = "") -> Service:
    row = ["trading-api", NATIVE, "http", "127.0.0.1", 4000, base, auth, [], [MARKET, TRADE], []]
    return Service(row)


def loads(data: bytes):
    try:
        return json.loads(data)
    except ValueError as e:
        raise ParseError(str(e))


def asked(tool: list, arguments: dict, secret=None, **named):
    return request_of(desk(**named), tool, arguments, "analyst-0", secret, json.dumps)


def refused(tool: list, arguments: dict) -> str:
    try:
        asked(tool, arguments)
    except BadArgument as e:
        return e.message
    raise AssertionError("it was taken")


def test_adr_020_path_placeholders_claw_id_is_who_the_executor_knows():
    request = asked(MARKET, {"claw_id": "executor-0"}, "t-1")
    assert (request.method, request.target, request.body) == (
        "GET",
        "/api/v1/market_context/analyst-0",
        None,
    )
    assert request.headers == [("Accept", "application/json"), ("Authorization", "Bearer t-1")]


def test_adr_020_path_placeholders_others_are_arguments_and_are_escaped():
    tool = ["look", "GET", "/at/{place}/of/{number}", QUERY, False]
    request = asked(tool, {"place": "a/b c?#%é", "number": 7, "deep": True, "tags": ["x", "y&"]})
    assert request.target == "/at/a%2Fb%20c%3F%23%25%C3%A9/of/7?deep=true&tags=x&tags=y%26"


def test_a_placeholder_does_not_leave_its_part_of_the_path():
    tool = ["look", "GET", "/at/{place}", QUERY, False]
    for place in ("..", ".", "", "a\0b"):
        assert "part of the path" in refused(tool, {"place": place})
    assert refused(tool, {}) == "place: the path needs it"
    assert "takes a text" in refused(tool, {"place": ["a"]})
    assert "at most 8192" in refused(tool, {"place": "x" * 8192})
    # what an argument says is filled in once: braces in it are none of ours
    assert asked(tool, {"place": "{claw_id}"}).target == "/at/%7Bclaw_id%7D"


def test_arguments_go_into_the_body_or_the_query():
    request = asked(TRADE, {"symbol": "ACME", "side": "buy", "quantity": 2})
    assert json.loads(request.body) == {"symbol": "ACME", "side": "buy", "quantity": 2}
    assert ("Content-Type", "application/json") in request.headers
    says_id = ["note", "POST", "/notes", JSON, True]
    assert json.loads(asked(says_id, {"claw_id": "x"}).body) == {"claw_id": "analyst-0"}
    form = ["note", "POST", "/notes", FORM, False]
    assert asked(form, {"text": "a b&c", "no": None}).body == b"text=a%20b%26c"


def test_the_credential_is_where_the_service_wants_it():
    assert asked(TRADE, {}, None).headers[-1] == ("Content-Type", "application/json")
    request = asked(TRADE, {}, "k", auth=[HEADER, "X-Key", "KEY"])
    assert request.headers[-1] == ("X-Key", "k")
    assert asked(TRADE, {}, "k", auth=None).headers[-1][0] == "Content-Type"


def test_what_a_service_has_before_every_path():
    assert asked(TRADE, {}, base="/desk").target == "/desk/api/v1/trades"
    assert (
        asked(Feed(desk(base="/desk"), "context", "/context/{claw_id}", 60).row, {}, None).target
        == "/context/analyst-0"
    )


def test_placeholders():
    assert placeholders("/a/{b}/{c_d}?x={e}") == ["b", "c_d", "e"]
    for path in ("/a/{b", "/a/b}", "/a/{}", "/{a}}", "/{a{b}}"):
        try:
            raise AssertionError(placeholders(path))
        except ValueError:
            pass


def test_adr_020_result_data():
    assert result_of(200, b'{"balance": 50000}', loads) == {"ok": True, "data": {"balance": 50000}}
    assert result_of(200, b"plain", loads) == {"ok": True, "data": "plain"}
    assert result_of(204, b"", loads) == {"ok": True, "data": None}
    assert not result_of(200, b"1", loads).is_error


def test_adr_020_max_tool_result_bytes_truncation_is_explicit():
    body = json.dumps({"rows": ["x" * 100] * 600}).encode()
    result = result_of(200, body, loads)
    assert result["truncated"] is True and result["original_bytes"] == len(body)
    assert body.startswith(result["data"].encode())
    assert 16000 < len(canonical(result).encode()) <= 16384
    # all of it, in quotes and escapes; and characters of more bytes than one
    for text in ('"' * 300, "é" * 300, "\n" * 300, "\x01" * 300, "€" * 300):
        for most in range(100, 140):
            found = canonical(result_of(200, text.encode(), loads, most))
            assert len(found.encode()) <= most, (text[:1], most)
            assert '"original_bytes":%d' % len(text.encode()) in found


def test_a_result_as_long_as_allowed_is_whole():
    whole = canonical({"ok": True, "data": "x" * 100})
    assert canonical(result_of(200, b"x" * 100, loads, len(whole))) == whole
    assert result_of(200, b"x" * 100, loads, len(whole) - 1)["truncated"]
    # the executor kept a part, and says how much there was
    assert result_of(200, b"x" * 100, loads, 16384, 5000)["original_bytes"] == 5000


def test_adr_020_tool_execution_errors():
    assert make_timeout(30000) == {
        "ok": False,
        "error": {"code": "timeout", "message": "Service did not respond within 30s"},
    }
    result = result_of(403, b'{"error": "not yours"}', loads)
    assert result.is_error and result["error"]["code"] == "http_403"
    assert '{"error": "not yours"}' in result["error"]["message"]
    moved = result_of(302, b"", loads)["error"]
    assert moved["code"] == "http_302" and "not followed" in moved["message"]
    assert len(canonical(failure("x", "\n" * 9000, 200)).encode()) <= 200


def test_an_answer_that_is_no_text():
    assert result_of(200, b"\xff\xfe\x00", loads)["data"] == "???"
    assert service_call._decode("aé".encode()[:2]) == "a"
