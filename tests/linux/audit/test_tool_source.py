"""The records of calls that MCP servers and services answer: who answered, how, and how much."""

import json

import mcp_agents
import pytest
import trading_desk
from agents import Agent, clawlite, linux, tool_call

from clawlite.host.builder.build import build_beside
from clawlite.host.image import image_reader
from clawlite.linux.audit.tool_source import ToolSources


def records(folder, home) -> list:
    done = clawlite("audit", folder, "--json", cwd=home, CLAWLITE_STATE=home / "state")
    return json.loads(done.stdout)


def people(folder, home) -> str:
    return clawlite("audit", folder, cwd=home, CLAWLITE_STATE=home / "state").stdout


def audited(folder, wants: str):
    claw = folder / "claw.yaml"
    text = claw.read_text()
    assert text.count("name: p, rules:") == 1
    claw.write_text(text.replace("name: p, rules:", "name: p, audit: { %s }, rules:" % wants))
    return build_beside(str(folder))


@pytest.mark.parametrize("outputs", [False, True])
def test_a_record_tells_what_an_mcp_server_did(tmp_path, outputs):
    agent = mcp_agents.write(tmp_path)
    image = audited(agent, "log_outputs: %s" % str(outputs).lower())
    with Agent(linux("serve", image, "--stdio"), tmp_path).initialize() as one:
        for number, (name, text) in enumerate((("echo", "häl"), ("sum", "abc"), ("fail", "x"))):
            one.line(json.dumps(tool_call(name, {"text": text}, number)))
            one.message()
        one.line(json.dumps(tool_call("echo", {"text": 5}, 8)))
        one.message()
    found = records(image, tmp_path)
    calls = [one for one in found if one["event"] == "tool.call"]
    said = {"server": "t", "mode": "native", "protocol": "mcp handshake"}
    assert all(said.items() <= one.items() for one in calls)
    assert [one["server_tool"] for one in calls] == ["echo", "sum", "fail", "echo"]
    assert [one["status"] for one in calls] == ["ok", "ok", "error", "refused"]
    assert [one.get("result_bytes") for one in calls[:2]] == [4, len('{"length":3}')]
    assert calls[2]["result_bytes"] > 0 and "result_bytes" not in calls[3]
    assert [one.get("output") for one in calls[:1]] == (["häl"] if outputs else [None])
    begun = [one["tool"] for one in found if one["event"] == "tool.begin"]
    assert begun == ["echo", "sum", "fail"], "that a server calls a tool read-only changes nothing"
    line = people(image, tmp_path).splitlines()[1]
    assert "by echo of t  (native, mcp handshake)" in line and "  4 bytes  " in line


def test_a_record_tells_what_a_service_did(tmp_path):
    with trading_desk.Desk() as desk:
        more = '[[credentials]]\nname = "TRADING_API_TOKEN"\nhosts = ["127.0.0.1"]\n'
        image = trading_desk.build(tmp_path / "desk", desk.url, more=more)
        env = {"TRADING_API_TOKEN": trading_desk.TOKEN}
        with Agent(linux("serve", image, "--stdio"), tmp_path, env=env).initialize() as one:
            one.line(json.dumps(tool_call("trading-api.get_market_context", {"claw_id": "x"}, 1)))
            answer = json.dumps(one.message())
    (call,) = [one for one in records(image, tmp_path) if one["event"] == "tool.call"]
    assert (call["server"], call["server_tool"]) == ("trading-api", "get_market_context")
    assert (call["mode"], call["protocol"]) == ("native", "http")
    said = {"data": {"balance": 50000, "claw": "analyst"}, "ok": True}
    assert call["result_bytes"] == len(json.dumps(said, separators=(",", ":"))), answer
    assert trading_desk.TOKEN not in json.dumps(call), call


def test_a_record_tells_that_a_gateway_called(tmp_path):
    mediated = 'mode = "mediated"\n'
    where = trading_desk.build(tmp_path / "desk", service=mediated, more="[gateway]\n")
    served = ToolSources(image_reader.open_image(where))
    event = {"event": "tool.call", "tool": "trading-api.get_market_context"}
    assert served.of(event)["mode"] == "mediated" and served.of(event)["protocol"] == "http"
    agent = mcp_agents.write(tmp_path, tools=[mcp_agents.tool("echo", "echo")])
    with (agent / "clawlite.toml").open("a") as file:
        file.write(mediated + "[gateway]\n")
    served = ToolSources(image_reader.open_image(build_beside(str(agent))))
    assert served.of({"event": "tool.call", "tool": "echo"}) == {
        "server": "t",
        "server_tool": "echo",
        "mode": "mediated",
        "protocol": "mcp handshake",
    }
