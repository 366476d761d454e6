"""The trading desk of Clawdapus ADR-020, called by a gateway for agents on Linux (mediated)."""

import json
import socket

import pytest
import trading_desk
from agents import Agent, clawlite, eventually, linux, tool_call
from trading_desk import TOKEN, Desk

CONTEXT, TRADE = "trading-api.get_market_context", "trading-api.execute_trade"
ORDER = {"symbol": "ACME", "side": "buy", "quantity": 2}


@pytest.fixture
def desk():
    with Desk() as found:
        yield found


@pytest.fixture
def port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class World:
    """A gateway and agents at the desk."""

    def __init__(self, tmp_path, desk, port: int):
        self.tmp_path, self.desk, self.port = tmp_path, desk, port

    def project(self, name: str, allow: str, service: str = "", more: str = "", **named) -> str:
        """Write and build the project of an agent; return its image."""
        return trading_desk.build(
            self.tmp_path / name,
            self.desk.url,
            name=name,
            allow=allow,
            service='mode = "mediated"\n' + service,
            more=f'[gateway]\nwire = "tcp"\naddress = "127.0.0.1:{self.port}"\n{more}',
            **named,
        )

    def token(self, name: str) -> str:
        state = self.tmp_path / "state"
        done = clawlite("gateway", "token", name, cwd=self.tmp_path, CLAWLITE_STATE=state)
        assert done.returncode == 0, done
        return done.stdout.strip()

    def gateway(self, *projects: str, **secrets) -> Agent:
        env = {"CLAWLITE_STATE": self.tmp_path / "state", **secrets}
        words = linux("gateway", *projects, "--listen", f"127.0.0.1:{self.port}")
        started = Agent(words, self.tmp_path / "home", cwd=self.tmp_path, env=env)
        eventually(lambda: "listens on" in started.errors(), 30)
        return started

    def agent(self, image: str, token: str) -> Agent:
        words = linux("serve", image, "--stdio")
        env = {"GATEWAY_TOKEN": token}
        return Agent(words, self.tmp_path / "agent-home", env=env).initialize()

    def audit(self) -> list:
        """Return the gateway's [(device, detail)] of calls that have ended."""
        done = clawlite(
            "gateway", "audit", "--json", cwd=self.tmp_path, CLAWLITE_STATE=self.tmp_path / "state"
        )
        rows = json.loads(done.stdout)
        return [(row["device"], row) for row in rows if row["event"] == "tool.ended"]


@pytest.fixture
def world(tmp_path, desk, port):
    return World(tmp_path, desk, port)


def called(agent, name: str, arguments: dict = None, number: int = 1):
    agent.line(json.dumps(tool_call(name, arguments, number)))
    answer = agent.message()
    if "error" in answer:
        return answer["error"]
    result = json.loads(answer["result"]["content"][0]["text"])
    assert answer["result"].get("isError", False) is not result["ok"]
    return result


def refused(agent, name: str, arguments: dict = None, number: int = 1) -> dict:
    """Return the error of a call that nobody made."""
    error = called(agent, name, arguments, number)
    assert error["code"] == -32600 and error["data"]["ran"] is False, error
    return error


def test_adr_020_mediated_the_desk_end_to_end(world, desk):
    """An analyst who may read, an executor who may trade; the gateway alone has the credentials,
    each device its own or else the service's; every call is in the gateway's audit.
    """
    desk.tokens["t-executor"] = "executor's own"
    analyst = world.project("analyst", '["get_market_context"]')
    executor = world.project("executor", '"all"')
    tokens = {name: world.token(name) for name in ("analyst", "executor")}
    secrets = {"TRADING_API_TOKEN": TOKEN, "TRADING_API_TOKEN.executor": "t-executor"}
    with world.gateway("analyst", "executor", **secrets) as gateway:
        with world.agent(analyst, tokens["analyst"]) as agent:
            read = called(agent, CONTEXT)
            assert read == {"ok": True, "data": {"balance": 50000, "claw": "analyst"}}
            assert called(agent, TRADE, ORDER, 2)["code"] == -32602
        with world.agent(executor, tokens["executor"]) as agent:
            assert called(agent, CONTEXT, {"claw_id": "analyst"})["data"]["claw"] == "executor"
            filled = called(agent, TRADE, ORDER, 2)
            assert filled == {"ok": True, "data": {"by": "executor's own", "filled": ORDER}}
            agent.end()
            assert agent.wait() == 0 and agent.errors() == ""
        # the gateway writes its audit a moment after its answer
        rows = eventually(lambda: len(found := world.audit()) == 3 and found)
        assert gateway.errors().count("t-executor") == 0
    assert [(device, row["tool"], row["outcome"]) for device, row in rows] == [
        ("analyst", CONTEXT, "ok"),
        ("executor", CONTEXT, "ok"),
        ("executor", TRADE, "ok"),
    ]
    assert all(row["latency_ms"] >= 0 for _, row in rows)
    sizes = [len(json.dumps(one, separators=(",", ":"))) for one in (read, filled)]
    assert [row["result_bytes"] for _, row in rows[::2]] == sizes
    for image in (analyst, executor):
        data = open(image, "rb").read()
        assert TOKEN.encode() not in data and b"t-executor" not in data


def test_a_device_that_is_not_named_is_refused(world, desk):
    image = world.project("executor", '"all"', 'devices = ["executor"]\n')
    token = world.token("analyst")
    with world.gateway("executor", TRADING_API_TOKEN=TOKEN):
        with world.agent(image, token) as agent:
            error = refused(agent, TRADE, ORDER)
            assert "not for the device analyst" in error["message"]
    assert desk.requests == []


def test_errors_are_results_and_nothing_is_called_twice(world, desk):
    image = world.project("analyst", '"all"')
    token, path = world.token("analyst"), "/api/v1/market_context/analyst"
    with world.gateway("analyst") as gateway:
        with world.agent(image, token) as agent:
            assert "no credential TRADING_API_TOKEN" in refused(agent, CONTEXT)["message"]
            assert desk.requests == []
        gateway.end()
    with world.gateway("analyst", TRADING_API_TOKEN=TOKEN):
        with world.agent(image, token) as agent:
            desk.answers[path] = lambda _: (500, b"broken")
            assert called(agent, CONTEXT, number=1)["error"]["code"] == "http_500"
            desk.answers[path] = lambda _: (302, b"")
            assert called(agent, CONTEXT, number=2)["error"]["code"] == "http_302"
            desk.answers[path] = lambda _: (200, {"rows": ["x" * 99] * 500})
            cut = called(agent, CONTEXT, number=3)
            assert cut["truncated"] is True and cut["original_bytes"] > 50000
            assert len(desk.requests) == 3


def test_a_service_that_says_nothing_has_its_time(world, desk):
    image = world.project("analyst", '"all"', more="[budget]\ntimeout_per_tool_ms = 400\n")
    gate = desk.gate("/api/v1/market_context/analyst")
    with world.gateway("analyst", TRADING_API_TOKEN=TOKEN):
        with world.agent(image, world.token("analyst")) as agent:
            error = called(agent, CONTEXT)["error"]
            gate.set()
            assert error == {"code": "timeout", "message": "Service did not respond within 400ms"}
    assert len(desk.requests) <= 1


def test_without_a_gateway_and_with_a_wrong_token(world, desk):
    image = world.project("analyst", '"all"', more="[budget]\ntimeout_per_tool_ms = 1500\n")
    token = world.token("analyst")
    with world.agent(image, token) as agent:
        assert "nothing was called" in refused(agent, CONTEXT)["message"]
    image = world.project("analyst", '"all"')
    token = world.token("analyst")
    with world.gateway("analyst", TRADING_API_TOKEN=TOKEN):
        with world.agent(image, token[:-4] + "0000") as agent:
            assert "is GATEWAY_TOKEN right?" in refused(agent, CONTEXT)["message"]
        with world.agent(image, token) as agent:
            assert called(agent, CONTEXT)["ok"]
    assert len(desk.requests) == 1


@pytest.mark.parametrize("name, arguments", [(CONTEXT, None), (TRADE, ORDER)])
def test_what_a_gateway_did_not_call_is_not_remembered(world, desk, name, arguments):
    """9.3.2 ``context.request_id``: neither that no gateway is there nor that it has no credential
    is what the service says; with the same id the call runs later, once.
    """
    image = world.project("analyst", '"all"')
    with world.agent(image, world.token("analyst")) as agent:
        assert "no gateway at" in refused(agent, name, arguments)["message"]
        with world.gateway("analyst") as gateway:
            assert "no credential" in refused(agent, name, arguments)["message"]
            gateway.end()
        assert desk.requests == []
        with world.gateway("analyst", TRADING_API_TOKEN=TOKEN):
            result = called(agent, name, arguments)
            assert result["ok"] and called(agent, name, arguments) == result
    assert len(desk.requests) == 1


def test_a_gateway_that_does_not_know_the_image(world, desk):
    image = world.project("analyst", '"all"')
    world.project("executor", '"all"')
    token = world.token("analyst")
    with world.gateway("executor", TRADING_API_TOKEN=TOKEN):
        with world.agent(image, token) as agent:
            assert "knows no project whose image" in refused(agent, CONTEXT)["message"]


def test_a_gateway_that_ends_in_the_middle_of_a_call_calls_nothing_twice(world, desk):
    image = world.project("executor", '"all"')
    token = world.token("executor")
    gate = desk.gate("/api/v1/trades")
    with world.agent(image, token) as agent:
        with world.gateway("executor", TRADING_API_TOKEN=TOKEN) as gateway:
            agent.line(json.dumps(tool_call(TRADE, ORDER)))
            eventually(lambda: desk.requests, 30)
            gateway.process.kill()
            gateway.process.wait()
        with world.gateway("executor", TRADING_API_TOKEN=TOKEN):
            result = json.loads(agent.message()["result"]["content"][0]["text"])
            assert result["error"]["code"] == "unreachable"
            message = result["error"]["message"]
            assert "no longer knows this request" in message and "send it again" not in message
            assert message.endswith("what the call did is not known: look before calling it again")
    gate.set()
    assert len(desk.requests) == 1
