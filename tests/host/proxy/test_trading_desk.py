"""The trading desk of Clawdapus ADR-020 at the proxy: a runner that is not clawlite, a real service
on loopback, and no credential anywhere but at the gateway.
"""

import json

import pytest
from desk_at_proxy import ASKED, CONTEXT, TRADE, names, play, secret, told
from llm_server import MODEL, calls, say
from trading_desk import TOKEN

from clawlite.host.proxy.anthropic import Anthropic

SYSTEM = {"role": "system", "content": "You work at a desk."}
RULES = '[[rule]]\nwhen = "*"\nsay = "By rule."\n'
FEEDS = 'feeds = [{ service = "trading-api", allow = "all" }]\n'


def test_adr_020_feeds_are_in_what_a_runner_asks(tmp_path):
    """Beside managed tools, fetched once within their ttl for each runner."""

    async def talk(it, ask):
        for name in ("analyst", "analyst", "executor"):
            assert await ask(name) == "Fine."
        rows = await it.rows("SELECT asked FROM history")
        assert rows == [("What do I have?",)] * 3, "a feed is no question"

    script = [say("Fine.")] * 3
    requests, desk = play(tmp_path, script, talk, service='devices = ["analyst"]\n', feeds=FEEDS)
    systems = [
        [one["content"] for one in request.body["messages"] if one["role"] == "system"]
        for request in requests
    ]
    (first,), (again,), other = systems
    assert '"balance":50000' in first and "(0 s old)" in first and "50000" in again
    assert other == [], "a gateway calls for the devices that are named, and no other"
    assert [request[1] for request in desk.requests] == ["/api/v1/market_context/analyst"]


def test_feeds_alone_leave_the_answer_as_it_comes(tmp_path):
    """No managed tool: the stream passes through untouched, what is asked has the feed."""

    async def talk(it, ask):
        headers = {"Authorization": "Bearer " + it.token("analyst")}
        body = {"model": MODEL, "stream": True, "messages": [SYSTEM, *ASKED]}
        async with it.http.post(it.url + "/v1/chat/completions", json=body, headers=headers) as r:
            assert r.status == 200 and r.content_type == "text/event-stream"
            assert b"[DONE]" in await r.read()

    grants = 'surfaces = ["service://trading-api"]\n' + FEEDS
    requests, desk = play(tmp_path, [say("Fine.")], talk, grants=grants, reflex=RULES)
    roles = [message["role"] for message in requests[0].body["messages"]]
    assert roles == ["system", "system", "user"] and requests[0].body["stream"] is True
    assert requests[0].body["messages"][0] == SYSTEM
    assert "50000" in requests[0].body["messages"][1]["content"] and len(desk.requests) == 1


def test_feeds_in_the_form_of_anthropic():
    text = {"type": "text", "text": "feed"}
    own = {"type": "text", "text": "mine"}
    for given, made in ((None, [text]), ("mine", [own, text]), ([own], [own, text])):
        body = {"messages": []} if given is None else {"messages": [], "system": given}
        assert Anthropic().in_context(body, "feed") == {"messages": [], "system": made}


def test_an_analyst_reads_and_an_executor_trades(tmp_path):
    async def talk(it, ask):
        assert await ask("analyst") == "Fifty thousand."
        assert await ask("executor") == "Bought."
        rows = await it.rows("SELECT device, tool_trace, outcome FROM history ORDER BY id")
        (analyst, first, _), (executor, second, outcome) = rows
        assert (analyst, executor, outcome) == ("analyst", "executor", "ok")
        (call,) = json.loads(first)[0]["tool_calls"]
        assert (call["name"], call["service"]) == ("trading-api.get_market_context", "trading-api")
        assert call["result"] == {"ok": True, "data": {"claw": "analyst", "balance": 50000}}
        assert json.loads(second)[0]["tool_calls"][0]["arguments"] == TRADE[1]
        audit = await it.rows("SELECT device, detail FROM audit WHERE event = 'tool.called'")
        assert [device for device, _ in audit] == ["analyst", "executor"], "every call"
        detail = json.loads(audit[1][1])
        assert detail["tool"] == "trading-api.execute_trade" and detail["status"] == "ok"
        assert detail["action"] == "allow" and detail["rule_id"] == "all"
        for path in (tmp_path / "state").rglob("*"):
            assert path.is_dir() or TOKEN.encode() not in path.read_bytes()

    script = [calls(CONTEXT), say("Fifty thousand."), calls(TRADE), say("Bought.")]
    requests, desk = play(tmp_path, script, talk)
    assert names(requests[0]) == [CONTEXT[0]] and names(requests[2]) == [CONTEXT[0], TRADE[0]]
    schema = requests[2].body["tools"][1]["function"]["parameters"]
    assert schema["required"] == ["symbol", "side", "quantity"]
    (context, trade) = desk.requests
    assert context[:2] == ("GET", "/api/v1/market_context/analyst"), "who it is, is not its to say"
    assert trade[0] == "POST" and json.loads(trade[3]) == TRADE[1]
    assert trade[2]["Authorization"] == "Bearer " + TOKEN
    assert TOKEN not in json.dumps([request.body for request in requests])


@pytest.mark.parametrize("call", [TRADE, ("trading-api.execute_trade", {})])
def test_what_an_analyst_was_not_granted_fails_closed(tmp_path, call):
    async def talk(it, ask):
        assert await ask("analyst") == "Hm."

    requests, desk = play(tmp_path, [calls(call), say("Hm.")], talk)
    assert "unknown_tool" in told(requests[1])[0] and desk.requests == []


def test_who_it_is_cannot_be_said_by_an_argument(tmp_path):
    """{claw_id} is filled by the gateway; one that a model gives of itself names no other agent."""

    async def talk(it, ask):
        assert await ask("analyst") == "Hm."

    call = (CONTEXT[0], {"claw_id": "executor", "more": 1})
    requests, desk = play(tmp_path, [calls(call), say("Hm.")], talk)
    assert '"claw":"analyst"' in told(requests[1])[0]
    (asked,) = desk.requests
    assert asked[:2] == ("GET", "/api/v1/market_context/analyst?more=1")


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"symbol": "ACME", "side": "hold", "quantity": 1}, "side"),
        ({"symbol": "ACME"}, "side"),
    ],
)
def test_arguments_that_do_not_fit(tmp_path, arguments, words):
    async def talk(it, ask):
        assert await ask("executor") == "Hm."

    requests, desk = play(tmp_path, [calls((TRADE[0], arguments)), say("Hm.")], talk)
    (said,) = told(requests[1])
    assert '"bad_argument"' in said and words in said and desk.requests == []


def test_policy_decides_here_too(tmp_path):
    rules = [
        {"id": "read", "action": "allow", "scope": "tool", "match": {"name": "trading-api.get_*"}},
        {
            "id": "ask",
            "action": "require-approval",
            "scope": "tool",
            "match": {"name": "trading-api.execute_*"},
        },
    ]

    async def talk(it, ask):
        assert await ask("executor") == "Hm."
        ((detail,),) = await it.rows("SELECT detail FROM audit WHERE event = 'tool.called'")
        assert json.loads(detail)["status"] == "refused" and json.loads(detail)["rule_id"] == "ask"

    requests, desk = play(tmp_path, [calls(TRADE), say("Hm.")], talk, rules=rules)
    assert '"denied"' in told(requests[1])[0] and desk.requests == []
    assert "a person must approve it" in told(requests[1])[0]


def test_a_limit_of_calls_holds_here_too(tmp_path):
    async def talk(it, ask):
        assert await ask("executor") == "Hm."
        rows = await it.rows("SELECT detail FROM audit WHERE event = 'tool.called' ORDER BY id")
        assert [json.loads(detail)["status"] for (detail,) in rows] == ["ok", "refused"]

    limit = "rate_limits: { tool_calls_per_minute: 1 }, "
    script = [calls(CONTEXT, TRADE), say("Hm.")]
    requests, desk = play(tmp_path, script, talk, policy=limit)
    first, second = told(requests[1])
    assert '"ok":true' in first
    assert '"denied"' in second and "tool_calls_per_minute" in second
    assert [request[0] for request in desk.requests] == ["GET"]


def test_a_credential_of_the_runner_comes_before_that_of_the_service(tmp_path):
    def own(agent: str, name: str) -> str:
        return "t-of-executor" if name == "TRADING_API_TOKEN.executor" else secret(agent, name)

    async def talk(it, ask):
        await ask("executor")
        await ask("analyst")

    _, desk = play(tmp_path, [calls(CONTEXT), say("x"), calls(CONTEXT), say("x")], talk, secret=own)
    said = [headers["Authorization"] for _, _, headers, _ in desk.requests]
    assert said == ["Bearer t-of-executor", "Bearer " + TOKEN]


def test_a_service_for_named_runners_alone(tmp_path):
    async def talk(it, ask):
        await ask("analyst")
        await ask("executor")

    requests, _ = play(
        tmp_path, [say("x"), calls(CONTEXT), say("x")], talk, service='devices = ["executor"]\n'
    )
    assert names(requests[0]) == [] and CONTEXT[0] in names(requests[1])


@pytest.mark.parametrize(
    "status, body, words",
    [
        (500, {"error": "down"}, '"http_500"'),
        (302, {}, "which is not followed"),
        (200, b"<html>", '"data":"<html>"'),
        (200, b"x" * 20000, '"original_bytes":20000'),
    ],
)
def test_what_a_service_answers_is_a_result(tmp_path, status, body, words):
    async def talk(it, ask):
        it.service.answers["/api/v1/market_context/analyst"] = lambda _: (status, body)
        assert await ask("analyst") == "Hm."

    requests, _ = play(tmp_path, [calls(CONTEXT), say("Hm.")], talk)
    (said,) = told(requests[1])
    assert words in said and len(said.encode()) <= 16384


def test_what_a_policy_scans_for_is_scanned_for_here(tmp_path):
    leaked = "AKIA" + "Z3X4C5V6B7N8M9L2"

    async def talk(it, ask):
        it.service.answers["/api/v1/market_context/analyst"] = lambda _: (200, {"key": leaked})
        assert await ask("analyst") == "Hm."
        assert leaked not in json.dumps(await it.rows("SELECT tool_trace FROM history"))

    requests, _ = play(
        tmp_path, [calls(CONTEXT), say("Hm.")], talk, policy="secret_scanning: { enabled: true }, "
    )
    assert leaked not in told(requests[1])[0] and '"ok":true' in told(requests[1])[0]
