"""The servers of tests/mcp_oauth_server.py, and agents that get their tokens there.

A module of tests imports the fixture ``servers``, which starts them once (it takes a second), and
asks ``fresh()`` for them in each test.
"""

import json
import subprocess
import sys

import mcp_agents
import pytest
from agents import Agent, environment, linux, tool_call
from mcp_oauth_clients import SECRET
from run_core_micropython import ROOT


class Published:
    """Both servers."""

    def __init__(self, tmp_path):
        self._process = subprocess.Popen(
            [sys.executable, ROOT / "tests/mcp_oauth_server.py"],
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
