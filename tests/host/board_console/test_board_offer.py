"""``clawlite mcp serve --port``: the agent on a (virtual) board as a server of MCP clients that are
not ours.
"""

import json

import mcp_clients
import pytest
from agents import Agent, clawlite, linux
from sims import needs_micropython, needs_mpy_cross, simulated

from clawlite.host.flash import flash
from clawlite.host.sim.sim import Sim

pytestmark = [needs_micropython, needs_mpy_cross]


@pytest.fixture(scope="module")
def greenhouse(tmp_path_factory):
    folder = tmp_path_factory.mktemp("offered")
    assert clawlite("new", "greenhouse", "--offline", cwd=folder).returncode == 0
    return folder / "greenhouse"


@pytest.fixture(scope="module")
def board(greenhouse, tmp_path_factory):
    """Return a virtual board with the greenhouse on it."""
    folder = tmp_path_factory.mktemp("board")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAWLITE_STATE", str(folder / "state"))
        with Sim(folder=str(folder / "flash")) as running:
            (folder / "flash/boot.json").write_text('{"window_ms": 100}')
            with flash.target(running.path) as target:
                flash.flash(
                    str(greenhouse),
                    target,
                    False,
                    None,
                    lambda found: None,
                    lambda: None,
                    lambda total, more: None,
                )
            running.registry = folder
            yield running


def asked(client, board, greenhouse, steps, says=None):
    command = linux("mcp", "serve", greenhouse, "--port", board.path)
    return mcp_clients.sdk(client, board.registry, steps, says, command=command)["results"]


@pytest.mark.parametrize("client", sorted(mcp_clients.SDKS))
def test_the_tools_of_a_board(client, board, greenhouse):
    """5.8: the board's own policy decides; its person is the client's."""
    steps = [
        ["list"],
        ["call", "read-soil", {}],
        ["call", "digital-write", {"pin": "pump", "value": True}],
        ["call", "read-soil", {"pin": 1}],
        ["call", "water", {"seconds": 1}],
        ["call", "nothing", {}],
    ]
    tools, soil, denied, wrong, water, unknown = asked(client, board, greenhouse, steps, "accept")
    assert [tool["name"] for tool in tools["tools"]][:2] == ["read-soil", "water"]
    assert "percent" in json.loads(soil["content"][0]["text"])
    assert denied["_meta"]["clawlite/error"]["code"] == -32011
    assert wrong["_meta"]["clawlite/error"]["code"] == -32602
    assert water["content"][0]["text"] == "Watered for 1 s."
    assert unknown["error"]["code"] == -32602


@pytest.mark.parametrize("says", ["decline", None])
def test_the_pump_stays_off_without_a_yes(board, greenhouse, says):
    water = asked("sdk2", board, greenhouse, [["call", "water", {"seconds": 1}]], says)[0]
    assert water["isError"] and water["_meta"]["clawlite/error"]["code"] == -32013


def test_a_board_without_an_agent(greenhouse, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    with simulated(tmp_path / "flash") as running:
        command = linux("mcp", "serve", greenhouse, "--port", running.path)
        with Agent(command, tmp_path) as agent:
            assert agent.wait() == 1
            assert "no agent runs on that board" in agent.errors()
