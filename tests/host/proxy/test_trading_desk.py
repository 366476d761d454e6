"""The trading desk of Clawdapus ADR-020 at the proxy: a runner that is not clawlite, a real service
on loopback, and no credential anywhere but at the gateway.
"""

import asyncio
import json

import openai
import pytest
import trading_desk
from gateways import KEY
from llm_server import MODEL, Server, calls, say
from proxies import Proxied
from trading_desk import TOKEN, Desk

from clawlite.core.base.errors import ClawError

ASKED = [{"role": "user", "content": "What do I have?"}]
CONTEXT = ("trading-api__get_market_context", {})
TRADE = ("trading-api__execute_trade", {"symbol": "ACME", "side": "buy", "quantity": 2})
AGENTS = {"analyst": '["get_market_context"]', "executor": '"all"'}


@pytest.fixture(autouse=True)
def state(monkeypatch, tmp_path):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))


class Missing(ClawError):
    is_missing = True


def secret(agent: str, name: str) -> str:
    known = {"GARDEN_KEY": KEY, "TRADING_API_TOKEN": TOKEN}
    if name not in known:
        raise Missing(f"no secret {name}")
    return known[name]


def play(tmp_path, script, talk, service: str = "", secret=secret, policy: str = "", **named):
    """Run ``talk(it, ask)`` with the desk and both agents; return (requests of the model's server,
    the desk).  ask: coroutine function(name of a runner) -> text of the answer.
    """

    async def inside(server, desk):
        provider = (
            "{ name: remote, protocol: openai-compatible, "
            f'endpoint: "{server.endpoint}", model: {MODEL}, '
            "auth: { type: bearer, secret_ref: GARDEN_KEY }, retry: { max_attempts: 1 } }"
        )
        for name, allow in AGENTS.items():
            trading_desk.write(
                tmp_path / "all" / name,
                desk.url,
                name,
                allow,
                service='mode = "mediated"\n' + service,
                more="[gateway]\n",
                provider=provider,
                **named,
            )
            path = tmp_path / "all" / name / "claw.yaml"
            path.write_text(path.read_text().replace("name: p, ", "name: p, " + policy))
        async with Proxied(tmp_path / "all", secret=secret) as it:
            it.service = desk

            async def ask(name: str) -> str:
                client = openai.AsyncOpenAI(
                    api_key=it.token(name), base_url=it.url + "/v1", max_retries=0
                )
                answer = await client.chat.completions.create(model=MODEL, messages=ASKED)
                return answer.choices[0].message.content

            await talk(it, ask)

    with Server(script) as server, Desk() as desk:
        asyncio.run(inside(server, desk))
    return server.requests, desk


def told(request) -> str:
    """Return the results of tools in *request*."""
    return [m["content"] for m in request.body["messages"] if m["role"] == "tool"]


def names(request) -> list:
    return [tool["function"]["name"] for tool in request.body.get("tools", ())]


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


@pytest.mark.parametrize(
    "call, code",
    [
        (TRADE, "unknown_tool"),
        (("trading-api__get_market_context", {"more": 1}), None),
        (("trading-api.execute_trade", {}), "unknown_tool"),
    ],
)
def test_what_an_analyst_was_not_granted_fails_closed(tmp_path, call, code):
    async def talk(it, ask):
        assert await ask("analyst") == "Hm."

    requests, desk = play(tmp_path, [calls(call), say("Hm.")], talk)
    if code:
        assert code in told(requests[1])[0] and desk.requests == []


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
