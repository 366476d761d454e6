"""The progress of calls that a gateway makes for a device (docs/gateway.md,
``claw.gateway.progress``): the device's person sees it as they see that of a server of its own.
"""

import json
import re

import mcp_agents
import mcp_clients
import pytest
from agents import Agent, eventually
from gateways import gateway, says
from lan_boards import linux_shed, mediated

CLIENT = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}


def telling(tmp_path, wire) -> str:
    """Return the image of an agent whose tool echo tells how it goes on, and waits for ``go``."""
    tools = [mcp_agents.tool("echo", "echo")]
    agent = mcp_agents.write(tmp_path, ("progress",), "board", tools=tools)
    mcp_agents.hold(tmp_path)
    return mediated(agent, wire)


def test_a_person_sees_it_at_the_device(tmp_path, state, port, wire):
    image = telling(tmp_path, wire)
    with gateway(tmp_path, image, "--listen", f"127.0.0.1:{port}") as running:
        assert says(running, "listens on")
        with linux_shed(
            tmp_path, state, "run", image, terminal=True, env={"TERM": "xterm"}
        ) as shed:
            shed.expect("> ")
            shed.line("say hello")
            shed.expect("3000 of 3000 ")  # the end of the row alone is drawn anew
            shed.expect('"step\\n\\u001b[2Jhello"')
            mcp_agents.go(tmp_path)
            shed.expect('{"data":"hello","ok":true}')
            assert b"\x1b[2J" not in shed.seen
    assert b'"watches":true' in wire.seen
    assert 0 < wire.seen.count(b"claw.gateway.progress") < 100, "most of a flood stays behind"


def test_where_nobody_watches_the_server_is_not_asked_for_it(tmp_path, state, port, wire):
    """So a device that does not know these records never gets one."""
    image = telling(tmp_path, wire)
    with gateway(tmp_path, image, "--listen", f"127.0.0.1:{port}") as running:
        assert says(running, "listens on")
        with linux_shed(tmp_path, state, "run", image) as shed:
            shed.line("say hello")
            mcp_agents.go(tmp_path)
            shed.expect('{"data":"hello","ok":true}')
    assert b"watches" not in wire.seen and b"claw.gateway.progress" not in wire.seen


def test_a_wire_that_breaks_loses_nothing_but_the_past(tmp_path, state, port, wire):
    """The device connects again, and is told what is new; the call is made once."""
    image = telling(tmp_path, wire)
    with gateway(tmp_path, image, "--listen", f"127.0.0.1:{port}") as running:
        assert says(running, "listens on")
        with linux_shed(
            tmp_path, state, "run", image, terminal=True, env={"TERM": "xterm"}
        ) as shed:
            shed.expect("> ")
            shed.line("say hello")
            shed.expect("3000 of 3000 ")
            greeted = wire.seen.count(b'"again":true')
            wire.cut()
            eventually(lambda: wire.seen.count(b'"again":true') > greeted, 30)
            mcp_agents.go(tmp_path)
            shed.expect('{"data":"hello","ok":true}')
    assert mcp_agents.methods(tmp_path).count("tools/call") == 1


def call(shed: Agent, name: str) -> list:
    """Call the tool *name* as a client of ``mcp serve`` that wants to know how it goes on; return
    what was told of that, once it is 3000, and the answer.
    """
    shed.call("initialize", CLIENT, 1)
    params = {"name": name, "arguments": {"text": "a"}, "_meta": {"progressToken": "p"}}
    shed.line(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}))
    heard = [shed.message()]
    while "id" not in heard[-1] and heard[-1]["params"]["progress"] < 3000:
        heard.append(shed.message())
    return heard


def test_a_client_of_the_device_is_told(tmp_path, state, port, wire):
    image = telling(tmp_path, wire)
    with gateway(tmp_path, image, "--listen", f"127.0.0.1:{port}") as running:
        assert says(running, "listens on")
        with linux_shed(tmp_path, state, "mcp", "serve", image) as shed:
            heard = call(shed, "echo")
            mcp_agents.go(tmp_path)
            answer = shed.message()
    assert {one["method"] for one in heard} == {"notifications/progress"}
    told = {"progressToken": "p", "progress": 3000, "total": 3000, "message": "step\n\x1b[2Ja"}
    assert heard[-1]["params"] == told
    assert answer["id"] == 2 and '"data":"a"' in answer["result"]["content"][0]["text"]


@pytest.mark.parametrize("sdk", ["sdk2", "sdk1"])
def test_what_a_server_of_the_official_sdk_tells(tmp_path, state, port, wire, sdk):
    python, *args = mcp_clients.server(sdk, "stdio")
    tools = [mcp_agents.tool(name, name, program=python) for name in ("echo", "late")]
    image = mediated(mcp_agents.write(tmp_path, level="board", tools=tools, args=args), wire)
    with gateway(tmp_path, image, "--listen", f"127.0.0.1:{port}", "--uncontained", "t") as running:
        assert says(running, "listens on")
        with linux_shed(tmp_path, state, "mcp", "serve", image) as shed:
            heard = call(shed, "late")
    assert '"a"' in heard[-1]["result"]["content"][0]["text"]
    assert re.search(rb'"progress":1(\.0)?,"total":2(\.0)?,"message":""', wire.seen)
