"""A request that comes again runs no managed tool a second time (docs/proxy.md), wherever its first
run ended: in a call, between two rounds, or while the answer was written.
"""

import asyncio
import json
import re
import signal
import socket
import threading
import urllib.request

import pytest
import trading_desk
from agents import eventually
from desk_at_proxy import ASKED, TRADE, told
from gateways import gateway, says
from llm_server import FAULTS, MODEL, Server, calls, say
from proxies import Desk, run
from trading_desk import TOKEN

from clawlite.host.gateway.gateway import make_token

CHAT = "/v1/chat/completions"
TRADES = "/api/v1/trades"
LONG = "x" * (7 << 20)  # more than the two ends of a socket hold


def asked(errors: str, token: str) -> str:
    """Ask the gateway that has said *errors* for its answer; return the text of that."""
    (address,) = re.findall(r"proxy for runners on (?:http://)?([0-9.:]+)", errors)
    body = json.dumps({"model": MODEL, "messages": ASKED}).encode()
    request = urllib.request.Request(f"http://{address}{CHAT}", body)
    request.add_header("Authorization", "Bearer " + token)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=120) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


@pytest.mark.parametrize("when", ["in the call", "between two rounds"])
def test_after_a_gateway_was_killed(tmp_path, monkeypatch, when):
    monkeypatch.setenv("TRADING_API_TOKEN", TOKEN)
    is_in_call = when == "in the call"
    script = [calls(TRADE), *([] if is_in_call else [FAULTS["stall before head"]]), say("I see.")]
    with Server(script) as server, trading_desk.Desk() as desk:
        folder = trading_desk.write(
            tmp_path / "executor",
            desk.url,
            "executor",
            '"all"',
            service='mode = "mediated"\n',
            more="[gateway]\n",
            provider="{ name: remote, protocol: openai-compatible, "
            f'endpoint: "{server.endpoint}", model: {MODEL}, auth: {{ type: none }} }}',
        )
        token = "executor:" + make_token("executor", ["proxy"])
        gate = desk.gate(TRADES) if is_in_call else None
        with gateway(tmp_path, folder, "--proxy", "127.0.0.1:0") as running:
            assert says(running, "proxy for runners on")
            lost = []

            def ask():
                try:
                    asked(running.errors(), token)
                except OSError as e:
                    lost.append(e)

            thread = threading.Thread(target=ask)
            thread.start()
            eventually(lambda: desk.requests and (is_in_call or server.stalled.is_set()), 60)
            running.signal(signal.SIGKILL)
            running.wait()
            thread.join()
            assert lost, "nobody was answered"
        if gate:
            gate.set()
        with gateway(tmp_path, folder, "--proxy", "127.0.0.1:0") as running:
            assert says(running, "proxy for runners on")
            assert asked(running.errors(), token) == "I see."
    assert [request[:2] for request in desk.requests] == [("POST", TRADES)]
    (result,) = told(server.requests[-1])
    assert not is_in_call or "it may have run" in result


@pytest.mark.parametrize("stream", [False, True])
def test_after_a_connection_broke_while_the_answer_was_written(tmp_path, stream):
    body = {"model": MODEL, "messages": ASKED, "stream": stream}

    async def play(it):
        loop, raw = asyncio.get_running_loop(), json.dumps(body).encode()
        head = (
            f"POST {CHAT} HTTP/1.1\r\nHost: it\r\nAuthorization: Bearer {it.token()}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n"
        )
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.setblocking(False)
            await loop.sock_connect(one, ("127.0.0.1", int(it.url.rpartition(":")[2])))
            await loop.sock_sendall(one, head.encode() + raw)
            assert (await loop.sock_recv(one, 15)).startswith(b"HTTP/1.1 200"), "it is written"
        status, _, said = await it.post(CHAT, body)
        assert status == 200 and b"Bought." in said
        # all of it was written now, so the next such request is another
        assert (await it.post(CHAT, body))[0] == 200

    desk = Desk()
    script = [calls(("desk__trade", {})), say(LONG), say("Bought."), say("Hm.")]
    with Server(script) as server:
        run(play, tmp_path, server, desk=desk)
    found = [json.dumps(one.body["messages"]).count("desk__trade") for one in server.requests]
    assert found == [0, 1, 1, 0] and desk.calls == [("desk.trade", {})]


def test_two_requests_with_one_conversation_at_once(tmp_path):
    """The second may be the first again, or another: the first has to end before that is known."""
    gate, body = asyncio.Event(), {"model": MODEL, "messages": ASKED}

    async def slow():
        await gate.wait()
        return {"ok": True, "data": 1}

    desk = Desk(lambda tool, arguments: slow())

    async def play(it):
        first = asyncio.create_task(it.post(CHAT, body))
        while not desk.calls:
            await asyncio.sleep(0)
        second = asyncio.create_task(it.post(CHAT, body))
        while it.gateway._proxy._open < 2:
            await asyncio.sleep(0)
        gate.set()
        assert b"Bought." in (await first)[2] and b"Hm." in (await second)[2]

    with Server([calls(("desk__trade", {})), say("Bought."), say("Hm.")]) as server:
        run(play, tmp_path, server, desk=desk)
    found = [json.dumps(one.body["messages"]).count("desk__trade") for one in server.requests]
    assert found == [0, 1, 0] and len(desk.calls) == 1


def test_nothing_runs_that_could_not_be_recorded(tmp_path):
    """On a full disk, say: after a power cut nobody would know that it ran."""

    async def play(it):
        await it.gateway.store._db.execute("PRAGMA max_page_count = 1")
        status, _, said = await it.post(CHAT, {"model": MODEL, "messages": ASKED})
        assert status == 200 and b"I could not." in said

    long = ("desk__trade", {"note": "x" * 20000})  # its record needs a page that there is not
    desk = Desk()
    with Server([calls(long), say("I could not.")]) as server:
        run(play, tmp_path, server, desk=desk)
    assert desk.calls == [] and "cannot record it" in told(server.requests[1])[0]
