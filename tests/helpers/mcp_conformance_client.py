"""The client of the conformance suite: ``mcp_conformance_client.py URL`` builds an agent in the
current folder that has all tools of the server at URL, and calls each of them once.

Where the suite gives a client's id and secret, the client does what a maker does: it takes the
issuer that the first build names, and writes it in clawlite.toml.
"""

import json
import os
import sys
import tomllib
from pathlib import Path

import mcp_agents
import msgspec
from agents import INITIALIZE, Agent, linux, tool_call

from clawlite.core.base.errors import ClawError
from clawlite.host.builder.build import build_beside
from clawlite.host.mcp import authorization, pinned, remote_listing, remote_token
from clawlite.host.mcp.mcp_settings import MCPOAuth2

VALUES = {"number": 2, "integer": 2, "string": "x", "boolean": True}


def arguments(schema: dict) -> dict:
    properties = schema.get("properties") or {}
    return {name: VALUES[properties[name]["type"]] for name in schema.get("required") or ()}


def credentials(url: str) -> str:
    """Return the section of clawlite.toml for a server that wants a token, "" for any other."""
    if not os.environ["MCP_CONFORMANCE_SCENARIO"].startswith("auth/"):
        return ""
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    os.environ["SECRET"] = given.get("client_secret", "none")
    name = given.get("client_id", "agent")
    section = '[mcp.t.oauth2]\nclient_id = "%s"\ncredential = "SECRET"\n' % name
    try:
        header(section, url)
    except ClawError as e:
        _, is_issuer, issuer = e.hint.partition("issuer = ")
        if not is_issuer:
            raise
        return section + "issuer = " + issuer + "\n"
    raise AssertionError("it took an issuer that nobody named")


def header(section: str, url: str) -> tuple:
    """Return the header of requests: its token comes from what is found at the servers."""
    (given,) = tomllib.loads(section)["mcp"].values()
    oauth2 = msgspec.convert(given["oauth2"], MCPOAuth2)
    place = authorization.discover(url, oauth2, [], [])
    return remote_token.header(oauth2, pinned.image_row(oauth2, place, url), url, [])


def main(url: str) -> int:
    try:
        settings = credentials(url)
        headers = [header(settings, url)] if settings else []
        tools, *_ = remote_listing.tools_at(url, headers, [])
    except ClawError as e:
        print(e)
        return 0 if os.environ["MCP_CONFORMANCE_SCENARIO"] == "initialize" else 1
    folder = Path.cwd()
    agent = mcp_agents.remote(folder, url, sorted(tools), ("127.0.0.1", "localhost"))
    with (agent / "clawlite.toml").open("a") as file:
        file.write(settings)
    command = linux("serve", build_beside(str(agent)), "--stdio")
    env = {"SECRET": os.environ["SECRET"]} if settings else {}
    with Agent(command, folder, env=env) as one:
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
