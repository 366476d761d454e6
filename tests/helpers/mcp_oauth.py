"""The servers of tests/helpers/mcp_oauth_server.py, and agents that get their tokens there.

A module of tests imports the fixture ``servers``, which starts them once (it takes a second), and
asks ``fresh()`` for them in each test.
"""

import json
import os
import subprocess
import sys

import mcp_agents
import mcp_oauth_clients
import pytest
from agents import Agent, environment, linux, tool_call
from mcp_oauth_clients import SECRET
from run_core_micropython import ROOT


class Published:
    """Both servers."""

    def __init__(self, tmp_path):
        self._process = subprocess.Popen(
            [sys.executable, ROOT / "tests/helpers/mcp_oauth_server.py"],
            env=environment(tmp_path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.authority, port = map(int, self._process.stdout.readline().split())
        self.url = "http://127.0.0.1:%d/mcp" % port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.communicate()

    def fresh(self):
        """Return these servers, as they were at their start."""
        self.tell("reset")
        return self

    def tell(self, command: str) -> tuple:
        """Return (how many tokens were given, for which resource the last)."""
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        count, resource = self._process.stdout.readline().split()
        return int(count), resource


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    with Published(tmp_path_factory.mktemp("oauth")) as one:
        yield one


def agent_of(tmp_path, published, more: str, **named):
    agent = mcp_agents.remote(tmp_path, published.url, **named)
    with (agent / "clawlite.toml").open("a") as file:
        file.write(more)
    return agent


def running(tmp_path, image: str, secret=SECRET):
    env = {"DOCS_SECRET": secret} if secret else {}
    return Agent(linux("serve", image, "--stdio"), tmp_path, env=env).initialize()


def called(agent, number: int) -> dict:
    agent.line(json.dumps(tool_call("echo", {"text": "x%d" % number}, number)))
    return agent.message()


def found(published, more="", issuer="http://127.0.0.1:%d") -> str:
    """Return settings without an endpoint: it is found at the issuer."""
    line = 'issuer = "%s"\n' % (issuer % published.authority if "%d" in issuer else issuer)
    return '[mcp.t.oauth2]\nclient_id = "%s"\nscope = "%s"\ncredential = "DOCS_SECRET"\n%s%s' % (
        mcp_oauth_clients.CLIENT,
        mcp_oauth_clients.SCOPE,
        line if issuer else "",
        more,
    )


def person(published) -> str:
    return (
        found(published, 'flow = "device"\n')
        .replace(mcp_oauth_clients.CLIENT, mcp_oauth_clients.PERSONS)
        .replace("DOCS_SECRET", "SIGNED_IN")
    )


def login(tmp_path, image: str, name="SIGNED_IN", **env):
    return subprocess.run(
        linux("secrets", "login", name, image),
        env={**environment(tmp_path), **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def signed_in_build(tmp_path, agent) -> str:
    """Build at a terminal; return what a person was told there."""
    ours, theirs = os.openpty()
    try:
        done = subprocess.run(
            linux("build", str(agent)),
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=theirs,
            timeout=60,
        )
        os.set_blocking(ours, False)
        said = os.read(ours, 65536).decode()
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == 0, said
    return said
