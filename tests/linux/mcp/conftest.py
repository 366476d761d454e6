"""MCP servers on the official SDK, which tests of several files ask over HTTP."""

import subprocess

import mcp_agents
import mcp_clients
import pytest

SERVER = mcp_agents.SERVER.with_name("mcp_sdk_server.py")
KINDS = ["sdk2", "sdk2 json", "sdk2 retry", "sdk1", "sdk1 json", "sdk1 stateless", "sdk1 retry"]


@pytest.fixture(scope="module", params=KINDS)
def published(request):
    """The URL of a server on the official SDK, and what it is."""
    sdk, *what = request.param.split()
    python = mcp_clients.SDKS[sdk][0]
    if not mcp_clients.PLACE.joinpath("made").exists() and sdk == "sdk1":
        pytest.skip("no environment with mcp<2: make mcp")
    process = subprocess.Popen(
        [python, str(SERVER), *what],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield "http://127.0.0.1:%s/mcp" % process.stdout.readline().strip(), request.param
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
