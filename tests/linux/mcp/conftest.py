"""MCP servers on the official SDK, which tests of several files ask over HTTP."""

import subprocess
from contextlib import contextmanager

import mcp_clients
import pytest

KINDS = ["sdk2", "sdk2 json", "sdk2 retry", "sdk1", "sdk1 json", "sdk1 stateless", "sdk1 retry"]


@pytest.fixture(scope="module", params=KINDS)
def published(request):
    """The URL of a server on the official SDK, and what it is."""
    with publish(request.param) as url:
        yield url, request.param


@contextmanager
def publish(kind: str):
    """Yield the URL of a server on the official SDK."""
    sdk, *what = kind.split()
    process = subprocess.Popen(
        mcp_clients.server(sdk, *what),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        path = "sse" if "sse" in what else "mcp"
        yield "http://127.0.0.1:%s/%s" % (process.stdout.readline().strip(), path)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module", params=["sdk1 sse", "sdk2 sse"])
def published_old(request):
    """The URL of a server on the official SDK that speaks the transport of 2024-11-05."""
    with publish(request.param) as url:
        yield url
