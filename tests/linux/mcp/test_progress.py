"""What an MCP server tells of a call that is under way: to the person at the console, and on to a
client of ``clawlite mcp serve``.
"""

import json

import mcp_agents
from agents import Agent, linux

from clawlite.host.builder.build import build_beside


def telling(tmp_path) -> str:
    """Return the image of an agent whose tool echo tells how it goes on, and waits for ``go``."""
    agent = mcp_agents.write(tmp_path, ("progress",), tools=[mcp_agents.tool("echo", "echo")])
    mcp_agents.hold(tmp_path)
    return build_beside(str(agent))


def test_a_person_sees_it_in_one_line_that_is_overwritten(tmp_path):
    image = telling(tmp_path)
    env = {"TERM": "xterm"}
    with Agent(linux("run", image), tmp_path, terminal=True, env=env) as agent:
        agent.expect("> ")
        agent.line("say hello")
        agent.expect("echo: ")
        agent.expect("3000 of 3000 ")  # the end of the row alone is drawn anew
        agent.expect('"step\\n\\u001b[2Jhello"')
        mcp_agents.go(tmp_path)
        agent.expect("hello")
        shown = agent.seen.count(b" of 3000 ")
        assert shown < 1000, "most of a flood is passed over"
        assert b"\x1b[2J" not in agent.seen


def test_without_a_terminal_nobody_asks_for_it(tmp_path):
    image = telling(tmp_path)
    with Agent(linux("run", image), tmp_path) as agent:
        agent.line("say hello")
        mcp_agents.go(tmp_path)
        agent.expect("hello")
        assert "3000" not in agent.text()


def test_a_client_that_wants_it_is_told(tmp_path):
    image = telling(tmp_path)
    with Agent(linux("mcp", "serve", image), tmp_path) as agent:
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        agent.call("initialize", params, 1)
        for number, meta in ((2, {}), (3, {"progressToken": "p"})):
            call = {"name": "echo", "arguments": {"text": "a"}, "_meta": meta}
            request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
            agent.line(json.dumps(request))
            heard = []
            if meta:
                while not heard or heard[-1]["progress"] < 3000:
                    message = agent.message()
                    assert message["method"] == "notifications/progress"
                    heard.append(message["params"])
                assert {one["progressToken"] for one in heard} == {"p"}
                assert {one["total"] for one in heard} == {3000}
                numbers = [one["progress"] for one in heard]
                assert numbers == sorted(set(numbers)) and len(numbers) < 1000
            mcp_agents.go(tmp_path)
            answer = agent.message()
            assert answer["id"] == number and answer["result"]["content"][0]["text"] == "a"


def test_a_secret_in_it_is_redacted(tmp_path):
    """A server tells what it was given; a result is looked at, and so is the way to it."""
    agent = mcp_agents.write(tmp_path, ("progress",), tools=[mcp_agents.tool("echo", "echo")])
    mcp_agents.hold(tmp_path)
    manifest = agent / "claw.yaml"
    scanned = "name: p, secret_scanning: { enabled: true, scope: output }, rules"
    manifest.write_text(manifest.read_text().replace("name: p, rules", scanned))
    image = build_beside(str(agent))
    env = {"SOME_TOKEN": "abcdefgh12345XYZQ"}
    with Agent(linux("mcp", "serve", image), tmp_path, env=env) as agent:
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        agent.call("initialize", params, 1)
        arguments = {"text": env["SOME_TOKEN"]}
        call = {"name": "echo", "arguments": arguments, "_meta": {"progressToken": "p"}}
        agent.line(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}))
        heard = agent.message()["params"]
        assert heard["message"].endswith("[REDACTED: known]"), heard
        mcp_agents.go(tmp_path)
        agent.expect('"id":2')
        assert env["SOME_TOKEN"] not in agent.text()
