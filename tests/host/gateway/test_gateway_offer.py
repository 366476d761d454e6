"""The tools of a board whose line a gateway holds, for MCP clients that are not ours (clawft tool
system, "Custom Tool Providers"; the gateway of docs/gateway.md).
"""

import json

import mcp_agents
import mcp_clients
import pytest
from agents import Agent, linux
from gateways import flashed, gateway, says, script
from sims import needs_micropython, needs_mpy_cross

from clawlite.host.builder import build
from clawlite.host.sim.sim import Sim

pytestmark = [needs_micropython, needs_mpy_cross]
HEAP = "256k"
RULES = [
    {"id": "no-drain", "action": "deny", "scope": "tool", "match": {"name": "drain"}},
    {
        "id": "ask",
        "action": "require-approval",
        "scope": "tool",
        "match": {"name": "pour"},
        "approval": {"timeout_seconds": 60, "default_if_timeout": "deny"},
    },
    {"id": "all", "action": "allow", "scope": "all"},
]
TOOLS = '''\
def pour(litres: int) -> str:
    """Pour."""
    return "poured %d" % litres


def drain() -> str:
    """Drain."""
    return "drained"
'''


@pytest.fixture
def agent(tmp_path):
    """The folder of an agent with functions of its own, and a tool of an MCP server."""
    folder = mcp_agents.write(tmp_path, tools=[mcp_agents.tool("echo", "echo")], rules=RULES)
    (folder / "tools.py").write_text(TOOLS)
    settings = folder / "clawlite.toml"
    own = mcp_agents.folders(tmp_path / "marks")
    settings.write_text(settings.read_text() + own + 'mode = "mediated"\n[gateway]\n')
    return folder


@pytest.fixture
def board(tmp_path, tmp_path_factory, agent):
    image = build.build_beside(str(agent))
    flash = flashed(image, tmp_path / "flash", tmp_path_factory.mktemp("firmware"))
    with Sim(folder=str(flash), heap=HEAP) as sim:
        yield sim


@pytest.mark.parametrize("client", sorted(mcp_clients.SDKS))
def test_clients_of_others_call_a_board_through_its_gateway(client, tmp_path, agent, board):
    """The board's policy decides, its person is the client's, and the gateway goes on with what it
    does: it calls the MCP server of the board, and shares the console.
    """
    steps = [
        ["list"],
        ["call", "pour", {"litres": 2}],
        ["call", "drain", {}],
        ["call", "echo", {"text": "hello"}],
        ["call", "pour", {"litres": "two"}],
    ]
    with gateway(tmp_path, agent, "--port", board.path) as running:
        assert says(running, "runs served")
        command = linux("mcp", "serve", agent, "--port", "gateway:" + board.facts["id"])
        said = mcp_clients.sdk(client, tmp_path, steps, "accept", command=command)
        tools, pour, drain, echo, wrong = said["results"]
        assert "say" in script(tmp_path, board.facts["id"], "/help")
    assert {"pour", "drain", "echo"} == {tool["name"] for tool in tools["tools"]}
    assert pour["content"][0]["text"] == "poured 2" and len(said["asked"]) == 1
    assert drain["_meta"]["clawlite/error"]["code"] == -32011
    assert json.loads(echo["content"][0]["text"]) == {"ok": True, "data": "hello"}
    assert wrong["_meta"]["clawlite/error"]["code"] == -32602


def test_a_gateway_that_is_not_there(tmp_path, agent):
    with Agent(linux("mcp", "serve", agent, "--port", "gateway:shed"), tmp_path) as offer:
        assert offer.wait() == 3
        assert "gateway:shed" in offer.errors()


def test_a_board_is_not_served_over_http(tmp_path, agent):
    """It is refused by name, before any port is opened (docs/adr/0126)."""
    words = ("mcp", "serve", agent, "--port", "gateway:shed", "--http", "0")
    with Agent(linux(*words), tmp_path) as offer:
        assert offer.wait() == 2
        said = offer.errors()
    assert "on stdin and stdout alone" in said and "without --http" in said
