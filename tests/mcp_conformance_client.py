"""The client of the conformance suite: ``mcp_conformance_client.py URL`` builds an agent in the
current folder that has all tools of the server at URL, and calls each of them once.
"""

import json
import os
import sys
from pathlib import Path

import mcp_agents
from agents import INITIALIZE, Agent, linux, tool_call

from clawlite.core.base.errors import ClawError
from clawlite.host.build.build import build_beside
from clawlite.host.mcp import remote_listing

VALUES = {"number": 2, "integer": 2, "string": "x", "boolean": True}


def arguments(schema: dict) -> dict:
    properties = schema.get("properties") or {}
    return {name: VALUES[properties[name]["type"]] for name in schema.get("required") or ()}


def main(url: str) -> int:
    try:
        tools, _ = remote_listing.tools_at(url, [], [])
    except ClawError as e:
        print(e)
        return 0 if os.environ["MCP_CONFORMANCE_SCENARIO"] == "initialize" else 1
    folder = Path.cwd()
    agent = mcp_agents.remote(folder, url, sorted(tools), ("127.0.0.1", "localhost"))
    command = linux("serve", build_beside(str(agent)), "--stdio")
    with Agent(command, folder) as one:
        capabilities = {"tools": {"asks": {}}}
        one.call("claw.initialize", dict(INITIALIZE, capabilities=capabilities))
        for number, name in enumerate(sorted(tools)):
            given = arguments(tools[name]["inputSchema"])
            one.line(json.dumps(tool_call(name.replace("_", "-"), given, number)))
            answer = one.message()
            while answer.get("method") == "claw.tool.asks":  # the defaults do
                asked = {"request_id": answer["params"]["request_id"]}
                assert one.call("claw.tool.approve", asked, "a")["result"]["acknowledged"]
                answer = one.message()
            print(json.dumps(answer))
            if "error" in answer or answer["result"].get("isError"):
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
