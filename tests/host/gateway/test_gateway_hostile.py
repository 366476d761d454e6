"""Whatever an MCP server sends, in both eras, its gateway lives, the calls of others end right, and
the device hears nothing that it did not ask for.
"""

import asyncio
import json
import os

import mcp_agents
import pytest
from agents import tool_call
from gateways import gateway, says
from lan_boards import linux_shed, mediated
from mcp_calls import Calls, image_of, run
from mcp_hostile_http import HostileRemote

from clawlite.host.gateway.service_calls import Caller

SERVER = mcp_agents.SERVER.with_name("mcp_hostile_server.py")
SEED = int(os.environ.get("CLAWLITE_SEED", "1"))
ROUNDS = 12
CLIENT = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}


@pytest.fixture(params=["stateless", "handshake"])
def era(request):
    return request.param


class Person(Caller):
    """A caller that takes whatever there is to be had."""

    watches = asks = True

    def report(self, progress: tuple) -> None:
        assert len(progress) == 3

    async def ask(self, server: str, params) -> tuple:
        json.dumps(params)
        return {"action": "decline"}, ""


class Deaf(Caller):
    """A caller that wants to know nothing."""

    def report(self, progress: tuple) -> None:
        raise AssertionError("nobody wants to know of %s" % (progress,))


def hostile(tmp_path, era: str, what: str):
    """Return the agent's folder; its tool echo is a hostile server's."""
    args = [str(SERVER), str(tmp_path / "marks"), str(SEED), era, *what.split()]
    tools = [mcp_agents.tool("echo", "echo")]
    return mcp_agents.write(tmp_path, level="board", tools=tools, args=args)


async def calls(call, what: str, rounds: int):
    for _ in range(rounds):
        result = await call()
        if not what:
            assert result == {"ok": True, "data": "fine"}
        else:
            assert result["ok"] or "this is a bug" not in result["error"]["message"], result


@pytest.mark.parametrize("what", ["", "results", "all"])
@pytest.mark.parametrize("caller", [Deaf(), Person()], ids=["deaf", "person"])
def test_calls_of_a_program(tmp_path, era, what, caller):
    asks = "forms " * caller.asks
    image = image_of(hostile(tmp_path, era, asks + what))
    (tmp_path / "marks/now").touch()

    async def work():
        async with Calls(image, ("t",), caller) as call:
            each = calls(call, asks + what, ROUNDS), calls(call, asks + what, ROUNDS)
            await asyncio.gather(*each)

    run(work())


@pytest.mark.parametrize("what", ["", "results", "all"])
@pytest.mark.parametrize("caller", [Deaf(), Person()], ids=["deaf", "person"])
def test_calls_over_http(tmp_path, era, what, caller):
    asks = "forms " * caller.asks
    with HostileRemote(SEED, "", era == "stateless") as server:
        image = image_of(mcp_agents.remote(tmp_path, server.url))
        server.hostile.breaks, server.hostile.asks = what, caller.asks

        async def work():
            async with Calls(image, (), caller) as call:
                each = calls(call, asks + what, ROUNDS), calls(call, asks + what, ROUNDS)
                await asyncio.gather(*each)

        run(work())


@pytest.mark.parametrize("command", ["serve", "mcp"])
def test_a_device_on_linux(tmp_path, state, port, wire, era, command):
    image = mediated(hostile(tmp_path, era, ""), wire)
    (tmp_path / "marks/now").touch()
    with gateway(tmp_path, image, "--listen", f"127.0.0.1:{port}", "--uncontained", "t") as running:
        assert says(running, "listens on")
        words = ("serve", image, "--stdio") if command == "serve" else ("mcp", "serve", image)
        with linux_shed(tmp_path, state, *words) as shed:
            if command == "serve":
                shed.initialize()
            else:
                shed.call("initialize", CLIENT, 1)
            for number in range(10, 10 + ROUNDS):
                request = tool_call("echo", {}, number)
                if command == "mcp":
                    params = {"name": "echo", "arguments": {}, "_meta": {"progressToken": "p"}}
                    request.update(method="tools/call", params=params)
                shed.line(json.dumps(request))
                answer = shed.message()
                while "id" not in answer:
                    assert command == "mcp" and answer["method"] == "notifications/progress"
                    answer = shed.message()
                assert answer["id"] == number
                assert answer["result"]["content"][0]["text"] == '{"data":"fine","ok":true}'
