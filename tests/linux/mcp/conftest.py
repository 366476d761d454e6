"""MCP servers on the official SDK, which tests of several files ask over HTTP."""

import subprocess

import mcp_clients
import pytest

KINDS = ["sdk2", "sdk2 json", "sdk2 retry", "sdk1", "sdk1 json", "sdk1 stateless", "sdk1 retry"]


@pytest.fixture(scope="module", params=KINDS)
def published(request):
    """The URL of a server on the official SDK, and what it is."""
    sdk, *what = request.param.split()
    process = subprocess.Popen(
        mcp_clients.server(sdk, *what),
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
