"""``clawlite mcp serve --port``: the agent on a (virtual) board as a server of MCP clients that are
not ours.
"""

import json

import mcp_clients
import mcp_offer
import pytest
from agents import Agent, linux
from sims import needs_micropython, needs_mpy_cross, simulated

from clawlite.host.board_console import mcp_server

pytestmark = [needs_micropython, needs_mpy_cross]


def asked(client, board, greenhouse, steps, says=None):
    command = linux("mcp", "serve", greenhouse, "--port", board.path)
    return mcp_clients.sdk(client, board.registry.parent, steps, says, command=command)["results"]


@pytest.mark.parametrize("says", ["decline", None])
def test_the_pump_stays_off_without_a_yes(flashed, greenhouse, says):
    """Also when the answer comes at once, and to a board that has answered nothing before."""
    water = asked("sdk2", flashed, greenhouse, [["call", "water", {"seconds": 1}]], says)[0]
    assert water["isError"] and water["_meta"]["clawlite/error"]["code"] == -32013


@pytest.mark.parametrize("client", sorted(mcp_clients.SDKS))
def test_the_tools_of_a_board(client, flashed, greenhouse):
    """5.8: the board's own policy decides; its person is the client's."""
    steps = [
        ["list"],
        ["call", "read-soil", {}],
        ["call", "digital-write", {"pin": "pump", "value": True}],
        ["call", "read-soil", {"pin": 1}],
        ["call", "water", {"seconds": 1}],
        ["call", "nothing", {}],
    ]
    tools, soil, denied, wrong, water, unknown = asked(client, flashed, greenhouse, steps, "accept")
    assert [tool["name"] for tool in tools["tools"]][:2] == ["read-soil", "water"]
    assert "percent" in json.loads(soil["content"][0]["text"])
    assert denied["_meta"]["clawlite/error"]["code"] == -32011
    assert wrong["_meta"]["clawlite/error"]["code"] == -32602
    assert water["content"][0]["text"] == "Watered for 1 s."
    assert unknown["error"]["code"] == -32602


TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


@pytest.mark.parametrize("is_scanned", [True, False])
def test_a_secret_leaves_neither_in_a_question_nor_in_an_error(tmp_path, is_scanned):
    """5.7, secret scanning: the host knows the form of a secret, as the board does."""
    rules = [dict(mcp_offer.RULES[0], match={"name": "wait"}), mcp_offer.RULES[-1]]
    policy = {"secret_scanning": {"enabled": True, "scope": "output"}} if is_scanned else {}
    setup = mcp_server.setup_of(mcp_offer.build(tmp_path, rules, **policy))
    asked = mcp_server.approval_question(setup, "wait", {"mark": TOKEN})
    assert asked.startswith("Approve wait(")
    error = {"code": -32602, "message": "no " + TOKEN, "data": {"hint": TOKEN}}
    told = json.dumps(mcp_server.refusal(setup, error))
    for text, times in ((asked, 1), (told, 4)):
        assert (TOKEN in text) == (not is_scanned)
        assert text.count("[REDACTED: github]") == (times if is_scanned else 0)


def test_a_board_without_an_agent(greenhouse, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    with simulated(tmp_path / "flash") as running:
        command = linux("mcp", "serve", greenhouse, "--port", running.path)
        with Agent(command, tmp_path) as agent:
            assert agent.wait() == 1
            assert "no agent runs on that board" in agent.errors()
