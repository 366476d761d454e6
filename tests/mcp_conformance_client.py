"""The client of the conformance suite: ``mcp_conformance_client.py URL`` builds an agent in the
current folder that has all tools of the server at URL, and calls each of them once.

Where the suite gives a client's id and secret, the client does what a maker does: it looks up the
token endpoint, and writes it in clawlite.toml.
"""

import json
import os
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit
from urllib.request import urlopen

import mcp_agents
from agents import INITIALIZE, Agent, linux, tool_call

from clawlite.core.base.errors import ClawError
from clawlite.host.build.build import build_beside
from clawlite.host.mcp import remote_listing, remote_token

VALUES = {"number": 2, "integer": 2, "string": "x", "boolean": True}


def arguments(schema: dict) -> dict:
    properties = schema.get("properties") or {}
    return {name: VALUES[properties[name]["type"]] for name in schema.get("required") or ()}


def metadata(url: str, name: str) -> dict:
    """Return the metadata document *name* of the server at *url* (RFC 8414, 9728)."""
    parts = urlsplit(url)
    place = parts._replace(path="/.well-known/" + name + parts.path.rstrip("/")).geturl()
    with urlopen(place, timeout=60) as answer:
        return json.load(answer)


def credentials(url: str) -> str:
    """Return the section of clawlite.toml for a server that wants a token, "" for any other."""
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    if "client_secret" not in given:
        return ""
    os.environ["SECRET"] = given["client_secret"]
    (issuer,) = metadata(url, "oauth-protected-resource")["authorization_servers"]
    endpoint = metadata(issuer, "oauth-authorization-server")["token_endpoint"]
    return '[mcp.t.oauth2]\nendpoint = "%s"\nclient_id = "%s"\ncredential = "SECRET"\n' % (
        endpoint,
        given["client_id"],
    )


def main(url: str) -> int:
    settings, headers = credentials(url), []
    if settings:
        (row,) = tomllib.loads(settings)["mcp"].values()
        headers = [remote_token.header(SimpleNamespace(scope=None, **row["oauth2"]), url, [])]
    try:
        tools, _ = remote_listing.tools_at(url, headers, [])
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
