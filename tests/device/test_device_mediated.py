"""A board's calls of services by its gateway, over the line and over the LAN: what goes up, and
what becomes of a call whose session breaks, that lasts too long, or that a person stops
(docs/services.md, Clawdapus ADR-020 "mediated").
"""

import json
import signal
import tty

import pytest
import trading_desk
from agents import Agent, board, clawlite, eventually
from free_ports import free_port
from lan_boards import Relay, device, gateway, token
from line_host import Host
from trading_desk import TOKEN, Desk

from clawlite.core.line.frame import RECORD

CONTEXT, TRADE = "trading-api.get_market_context", "trading-api.execute_trade"
PATH = "/api/v1/market_context/shed"


@pytest.fixture
def desk():
    with Desk() as found:
        yield found


def built(folder, url: str, gateway: str = "", more: str = "") -> str:
    return trading_desk.build(
        folder,
        url,
        name="garden",
        allow='"all"',
        service='mode = "mediated"\n',
        more=f"[gateway]\n{gateway}{more}",
    )


@pytest.fixture
def agent(request, micropython, tmp_path):
    """A board that is spoken to over its line; a parameter is the end of its clawlite.toml."""
    more = getattr(request, "param", "")
    image = built(tmp_path / "garden", "http://127.0.0.1:9", more=more)
    words, env = board(image)
    with Agent(words, tmp_path / "home", True, env=env) as started:
        tty.setraw(started.theirs)
        started.terminal = False
        yield started


class Gateway(Host):
    """A gateway that does what a test says."""

    def hello(self) -> None:
        """Open a session and say hello."""
        self.open()
        self.events.clear()
        self.send(
            {
                "jsonrpc": "2.0",
                "id": "hello",
                "method": "claw.gateway.hello",
                "params": {"version": 1},
            }
        )
        self.answer("hello")

    def taken(self) -> tuple:
        """Return (arguments, call) of the next call of a service, records as they came."""
        self.run(lambda: any(b'"claw.gateway.tool"' in data for data in self.of(RECORD)))
        found = [json.loads(data) for data in self.of(RECORD) if b'"claw.gateway.' in data]
        self.events.clear()
        *parts, call = found
        return "".join(part["params"]["text"] for part in parts), call

    def said(self, id: str, *texts: str) -> None:
        for text in texts:
            params = {"id": id, "text": text}
            self.send({"jsonrpc": "2.0", "method": "claw.gateway.text", "params": params})

    def done(self, id: str) -> None:
        self.send({"jsonrpc": "2.0", "id": id, "result": {"ok": True}})


def test_a_call_that_a_session_broke_off_goes_up_again_and_goes_on(agent):
    """With its id and the count of what came: a gateway that has begun it goes on there."""
    it = Gateway(agent.input)
    it.hello()
    it.type("buy ACME")
    arguments, call = it.taken()
    assert json.loads(arguments) == {"symbol": "ACME", "side": "buy", "quantity": 2}
    assert call["params"] == {"tool": TRADE, "seen": 0, "again": False}
    it.said(call["id"], '{"ok":true,"data":{"fi')
    it.hello()
    again, second = it.taken()
    assert second["id"] == call["id"] and again == arguments
    assert second["params"]["again"] is True
    it.said(call["id"], '{"ok":true,"data":{"fi'[second["params"]["seen"] * 22 :], 'lled":2}}')
    it.done(call["id"])
    it.expect(b'"filled":2')
    it.type("/status")
    it.expect(b"READY")


def test_a_gateway_that_was_started_anew_refuses_and_the_call_says_so(agent):
    it = Gateway(agent.input)
    it.hello()
    it.type("buy ACME")
    _, call = it.taken()
    it.hello()
    _, again = it.taken()
    error = {"code": -32020, "message": "the gateway knows this request no more"}
    it.send({"jsonrpc": "2.0", "id": again["id"], "error": error})
    it.expect(
        b'"code":"unreachable","message":"the gateway: the gateway knows this request no more"'
    )


@pytest.mark.parametrize("is_result", [True, False])
def test_what_a_gateway_did_not_call_is_refused(agent, is_result):
    it = Gateway(agent.input)
    it.hello()
    it.type("buy ACME")
    _, call = it.taken()
    said = {"jsonrpc": "2.0", "id": call["id"]}
    if is_result:
        it.said(
            call["id"], '{"ok":false,"error":{"code":"no_credential","message":"there is none"}}'
        )
        it.send({**said, "result": {"ok": False, "ran": False}})
    else:
        error = {"code": -32600, "message": "there is none", "data": {"ran": False}}
        it.send({**said, "error": error})
    it.expect(b"the gateway: there is none")
    it.type("/status")
    it.expect(b"READY")
    assert b'"code":' not in it.text


@pytest.mark.parametrize("agent", ["[budget]\ntimeout_per_tool_ms = 300\n"], indirect=True)
def test_a_gateway_that_does_not_say_what_became_of_a_call(agent):
    it = Gateway(agent.input)
    it.hello()
    it.type("context")
    _, call = it.taken()
    it.expect(b'"code":"timeout","message":"The gateway did not say what became of the call"')
    it.run(lambda: any(b'"claw.gateway.cancel"' in data for data in it.of(RECORD)))
    it.said(call["id"], "too late")
    it.done(call["id"])
    it.type("/status")
    it.expect(b"READY")
    assert b"too late" not in it.text


@pytest.mark.parametrize(
    "texts, why",
    [
        (["{"], b"the gateway's answer is malformed"),
        (["[1]"], b"the gateway's answer is malformed"),
        (["{}"], b"the gateway's answer is malformed"),
        (["x" * 9000], b"bytes of its answer did not fit"),
    ],
)
def test_an_answer_that_is_none(agent, texts, why):
    it = Gateway(agent.input)
    it.hello()
    it.type("context")
    _, call = it.taken()
    it.said(call["id"], *texts)
    it.done(call["id"])
    it.expect(why)
    it.type("/status")
    it.expect(b"READY")


@pytest.mark.parametrize("end", [{}, {"error": "no object"}], ids=["nothing", "no object"])
def test_an_end_without_a_result_or_an_error_is_none(agent, end):
    it = Gateway(agent.input)
    it.hello()
    it.type("context")
    _, call = it.taken()
    it.said(call["id"], '{"ok":true}')
    it.send({"jsonrpc": "2.0", "id": call["id"], **end})
    it.expect(b"the gateway's answer is malformed")
    it.type("/status")
    it.expect(b"READY")


def test_ctrl_c_cancels_the_call(agent):
    it = Gateway(agent.input)
    it.hello()
    it.type("buy ACME")
    _, call = it.taken()
    agent.signal_at_rest(signal.SIGINT)
    it.run(lambda: any(b'"claw.gateway.cancel"' in data for data in it.of(RECORD)))
    assert json.loads(it.of(RECORD)[-1])["params"] == {"id": call["id"]}
    it.said(call["id"], "too late")
    it.done(call["id"])
    it.type("/status")
    it.expect(b"READY")
    assert b"too late" not in it.text


# -- over the LAN, with a real gateway and a real service


@pytest.fixture
def port() -> int:
    return free_port()


def lan(tmp_path, desk, port: int, more: str = "") -> str:
    where = f'wire = "tcp"\naddress = "127.0.0.1:{port}"\n'
    return built(tmp_path / "garden", desk.url, where, more)


def outcomes(tmp_path) -> list:
    """Return (device, tool, outcome) of the calls that the gateway has ended."""
    done = clawlite("gateway", "audit", "--json", cwd=tmp_path, CLAWLITE_STATE=tmp_path / "state")
    rows = [row for row in json.loads(done.stdout) if row["event"] == "tool.ended"]
    return [(row["device"], row["tool"], row["outcome"]) for row in rows]


def test_adr_020_mediated_over_the_lan(micropython, tmp_path, desk, port):
    """The board is who its token says, and has no credential."""
    secret = token(tmp_path)
    with Relay(port) as wire:
        image = lan(tmp_path, desk, wire.port)
        with (
            gateway(tmp_path, port, TRADING_API_TOKEN=TOKEN),
            device(tmp_path, image, secret) as agent,
        ):
            agent.expect("> ")
            agent.line("context")
            assert '"claw":"shed"' in agent.expect("\n> ")
            agent.line("buy ACME")
            assert '"filled"' in agent.expect("\n> ")
            # the gateway writes its audit a moment after its answer
            eventually(lambda: len(outcomes(tmp_path)) == 2)
        assert TOKEN.encode() not in wire.seen
    assert [request[1] for request in desk.requests] == [PATH, "/api/v1/trades"]
    assert outcomes(tmp_path) == [("shed", CONTEXT, "ok"), ("shed", TRADE, "ok")]


@pytest.mark.parametrize("marks", [[b'"claw.gateway.text"'], [b'"ok":true}}']])
def test_a_connection_that_is_cut_in_an_answer_loses_nothing_and_calls_once(
    micropython, tmp_path, desk, port, marks
):
    secret = token(tmp_path)
    with Relay(port) as wire:
        image = lan(tmp_path, desk, wire.port)
        with (
            gateway(tmp_path, port, TRADING_API_TOKEN=TOKEN),
            device(tmp_path, image, secret) as agent,
        ):
            agent.expect("> ")
            agent.line("context")
            agent.expect("\n> ")
            wire.marks = list(marks)
            agent.line("buy ACME")
            assert '"filled"' in agent.expect("\n> ")
            assert wire.marks == []
    assert len(desk.requests) == 2


def test_a_gateway_that_was_killed_in_a_call_calls_nothing_twice(micropython, tmp_path, desk, port):
    secret, gate = token(tmp_path), desk.gate("/api/v1/trades")
    image = lan(tmp_path, desk, port)
    with device(tmp_path, image, secret) as agent:
        with gateway(tmp_path, port, TRADING_API_TOKEN=TOKEN) as running:
            agent.expect("> ")
            agent.line("buy ACME")
            eventually(lambda: desk.requests, 30)
            running.process.kill()
            running.process.wait()
        with gateway(tmp_path, port, TRADING_API_TOKEN=TOKEN):
            said = agent.expect("\n> ")
            # the new one says so, or starts too late on a busy machine to be asked
            is_asked = '"code":"unreachable"' in said and "no longer knows this request" in said
            assert is_asked or "did not say what became of the call" in said
    gate.set()
    assert len(desk.requests) == 1


def test_without_a_gateway_nothing_is_called(micropython, tmp_path, desk, port):
    image = lan(tmp_path, desk, port, "[budget]\ntimeout_per_tool_ms = 500\n")
    with device(tmp_path, image, "shed:" + "0" * 64) as agent:
        agent.expect("> ")
        agent.line("context")
        said = agent.expect("\n> ")
        assert '"code":' not in said and "nothing was called" in said
        agent.line("/status")
        agent.expect("READY")
    assert desk.requests == []
