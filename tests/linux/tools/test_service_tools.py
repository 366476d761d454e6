"""The trading desk of Clawdapus ADR-020, called by the device itself (native mode)."""

import json
import socket

import pytest
import trading_desk
import tutorials
from agents import ROOT, Agent, clawlite, eventually, linux, tool_call
from trading_desk import TOKEN, Desk

from clawlite.linux.tools.fetch import MAX_AT_ONCE

CONTEXT, TRADE = "trading-api.get_market_context", "trading-api.execute_trade"
ORDER = {"symbol": "ACME", "side": "buy", "quantity": 2}
CREDENTIAL = '[[credentials]]\nname = "TRADING_API_TOKEN"\nhosts = ["127.0.0.1"]\n'


@pytest.fixture
def desk():
    with Desk() as found:
        yield found


@pytest.fixture(params=("none", "process"))
def level(request):
    return request.param


def served(tmp_path, desk, token: str = TOKEN, **named):
    """Return an agent at the desk, initialized."""
    named.setdefault("more", CREDENTIAL)
    named.setdefault("allow", '"all"')
    image = trading_desk.build(tmp_path / "agent", desk.url, **named)
    env = {"TRADING_API_TOKEN": token} if token else {}
    return Agent(linux("serve", image, "--stdio"), tmp_path, env=env).initialize()


def called(agent, name: str, arguments: dict = None, number: int = 1):
    """Return the result of a call as JSON, or the error of one that was refused."""
    agent.line(json.dumps(tool_call(name, arguments, number)))
    answer = agent.message()
    if "error" in answer:
        return answer["error"]
    result = json.loads(answer["result"]["content"][0]["text"])
    assert answer["result"].get("isError", False) is not result["ok"]
    return result


def test_adr_020_native_the_desk_end_to_end(tmp_path, desk, level):
    """Native execution: the device calls, with its own credentials; {claw_id} is the agent."""
    with served(tmp_path, desk, level=level, name="executor") as agent:
        assert called(agent, CONTEXT) == {
            "ok": True,
            "data": {"balance": 50000, "claw": "executor"},
        }
        filled = called(agent, TRADE, ORDER, 2)
        assert filled == {"ok": True, "data": {"by": "desk", "filled": ORDER}}
        # a caller that says that it is another one
        assert called(agent, CONTEXT, {"claw_id": "boss"}, 3)["data"]["claw"] == "executor"
        assert called(agent, TRADE, dict(ORDER, side="hold"), 4)["code"] == -32602
        # the name that providers use
        assert called(agent, TRADE.replace(".", "__"), ORDER, 5)["ok"]
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""
    assert [(method, path) for method, path, _, _ in desk.requests] == [
        ("GET", "/api/v1/market_context/executor"),
        ("POST", "/api/v1/trades"),
        ("GET", "/api/v1/market_context/executor"),
        ("POST", "/api/v1/trades"),
    ]
    method, path, headers, body = desk.requests[1]
    assert headers["Authorization"] == "Bearer " + TOKEN and json.loads(body) == ORDER
    image = (tmp_path / "agent/claw.cbor").read_bytes()
    assert TOKEN.encode() not in image


def test_adr_020_verb_authority_what_is_not_granted_is_no_tool(tmp_path, desk):
    with served(tmp_path, desk, allow='["get_market_context"]') as agent:
        assert called(agent, CONTEXT)["ok"]
        assert called(agent, TRADE, ORDER, 2)["code"] == -32602
    assert len(desk.requests) == 1


def test_every_call_is_in_the_audit(tmp_path, desk):
    image = trading_desk.build(tmp_path / "agent", desk.url, allow='"all"', more=CREDENTIAL)
    env = {"TRADING_API_TOKEN": TOKEN, "CLAWLITE_STATE": tmp_path / "state"}
    with Agent(linux("serve", image, "--stdio"), tmp_path, env=env).initialize() as agent:
        called(agent, CONTEXT)
        called(agent, TRADE, ORDER, 2)
        called(agent, TRADE, {"symbol": "ACME"}, 3)
        agent.end()
        assert agent.wait() == 0
    done = clawlite("audit", image, "--json", cwd=tmp_path, CLAWLITE_STATE=tmp_path / "state")
    rows = [row for row in json.loads(done.stdout) if row["event"] == "tool.call"]
    assert [(row["tool"], row["status"]) for row in rows] == [
        (CONTEXT, "ok"),
        (TRADE, "ok"),
        (TRADE, "refused"),
    ], done.stdout + done.stderr


def test_policy_and_approval_are_asked_first(tmp_path, desk):
    rules = [
        {"id": "no", "action": "deny", "scope": "tool", "match": {"name": "trading-api.execute_*"}},
        {"id": "all", "action": "allow", "scope": "all"},
    ]
    with served(tmp_path, desk, rules=rules) as agent:
        assert called(agent, TRADE, ORDER)["code"] == -32011
        assert called(agent, CONTEXT, number=2)["ok"]
    assert len(desk.requests) == 1


def test_with_a_wrong_credential(tmp_path, desk):
    with served(tmp_path, desk, "wrong") as agent:
        for number in (1, 2):  # the agent goes on
            assert called(agent, CONTEXT, number=number)["error"]["code"] == "http_401"
    assert len(desk.requests) == 2


def test_without_a_credential_nothing_is_called(tmp_path, desk):
    with served(tmp_path, desk, None) as agent:
        for number in (1, 2):
            refused = called(agent, CONTEXT, number=number)
            assert refused["code"] == -32600 and refused["data"]["ran"] is False, refused
            assert "TRADING_API_TOKEN" in refused["message"]
    assert desk.requests == []


def test_adr_020_results_are_cut_and_say_so(tmp_path, desk):
    desk.answers["/api/v1/market_context/analyst"] = lambda _: (200, {"rows": ["x" * 99] * 500})
    with served(tmp_path, desk) as agent:
        result = called(agent, CONTEXT)
    assert result["truncated"] is True and result["original_bytes"] > 50000
    assert result["data"].startswith('{"rows": ["xxx')


def test_adr_020_errors_are_results(tmp_path, desk):
    """Tool execution errors are fed back as structured results; nothing is retried."""
    path = "/api/v1/market_context/analyst"
    with served(tmp_path, desk) as agent:
        desk.answers[path] = lambda _: (500, b"<html>broken</html>")
        error = called(agent, CONTEXT)["error"]
        assert error["code"] == "http_500" and "<html>broken" in error["message"]
        desk.answers[path] = lambda _: (200, b"<html>no JSON</html>")
        assert called(agent, CONTEXT, number=2) == {"ok": True, "data": "<html>no JSON</html>"}
        desk.answers[path] = lambda _: (302, b"")
        assert called(agent, CONTEXT, number=3)["error"]["code"] == "http_302"
    assert len(desk.requests) == 3


def test_a_service_that_says_nothing_has_its_time(tmp_path, desk):
    gate = desk.gate("/api/v1/market_context/analyst")
    with served(tmp_path, desk, more="[budget]\ntimeout_per_tool_ms = 300\n" + CREDENTIAL) as agent:
        error = called(agent, CONTEXT)["error"]
        gate.set()
        assert error == {"code": "timeout", "message": "Service did not respond within 300ms"}
    assert len(desk.requests) <= 1


def test_results_are_as_the_page_shows_them(tmp_path, desk):
    """docs/services.md: a result, one that was cut, and a service that says nothing."""
    blocks = tutorials.list_blocks((ROOT / "docs/services.md").read_text())
    [shown] = [block.body for block in blocks if block.language == "jsonl"]
    whole, cut, late = map(json.loads, shown.splitlines())
    path = "/api/v1/market_context/analyst"
    long = b'{"balance":50000,"more":"%s"}'
    long %= b"x" * (cut["original_bytes"] - len(long) + 2)
    said = [{"balance": 50000}, long]
    desk.answers[path] = lambda _: (200, said.pop(0))
    more = "[budget]\ntimeout_per_tool_ms = 3000\n" + CREDENTIAL
    with served(tmp_path, desk, more=more) as agent:
        assert called(agent, CONTEXT) == whole
        found = called(agent, CONTEXT, number=2)
        assert found.pop("data").startswith(cut.pop("data")) and found == cut
        gate = desk.gate(path)
        late["error"]["message"] = late["error"]["message"].replace("30s", "3s")
        assert called(agent, CONTEXT, number=3) == late
        gate.set()


def test_a_call_that_finds_no_room_is_not_remembered(tmp_path, desk):
    """9.3.2 ``context.request_id``: that too many requests are under way is this machine's
    refusal, no result of the service; with the same id the call runs later, once.
    """
    gate = desk.gate("/api/v1/trades")
    with served(tmp_path, desk, name="executor") as agent:
        for number in range(1, MAX_AT_ONCE + 1):
            agent.line(json.dumps(tool_call(TRADE, ORDER, number)))
        eventually(lambda: desk.requests)
        refused = called(agent, TRADE, ORDER, 99)
        assert refused["code"] == -32600 and refused["data"]["ran"] is False, refused
        assert "requests are under way" in refused["message"]
        gate.set()
        for _ in range(MAX_AT_ONCE):
            assert "result" in agent.message()
        assert called(agent, TRADE, ORDER, 99)["ok"]
    assert len(desk.requests) == MAX_AT_ONCE + 1


def test_a_service_that_is_not_there(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        desk = Desk.__new__(Desk)
        desk.url = f"http://127.0.0.1:{port}"
        with served(tmp_path, desk) as agent:
            assert called(agent, CONTEXT)["error"]["code"] == "unreachable"


def test_a_person_at_the_console(tmp_path, desk):
    image = trading_desk.build(tmp_path / "agent", desk.url, allow='"all"', more=CREDENTIAL)
    done = clawlite(
        "run", image, cwd=tmp_path, stdin=b"context\nbuy ACME\n", TRADING_API_TOKEN=TOKEN
    )
    assert '"balance":50000' in done.stdout and '"symbol":"ACME"' in done.stdout, done
    assert TOKEN not in done.stdout + done.stderr
