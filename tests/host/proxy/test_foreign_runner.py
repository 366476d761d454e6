"""A runner that is not ours takes whole managed turns at the proxy (Clawdapus ADR-020, "Runner
agnosticism"): exoclaw from PyPI, unchanged, in an environment of its own.
"""

import asyncio
import json
from pathlib import Path

import pytest
from desk_at_proxy import CONTEXT, TRADE, names, play, told
from llm_server import MODEL, calls, say

ROOT = Path(__file__).resolve().parents[3]
PYTHON = ROOT / "build/runner/bin/python"
SCRIPT = ROOT / "tests/helpers/exoclaw_runner.py"


@pytest.fixture(autouse=True)
def runner():
    if not (ROOT / "build/runner/made").exists():
        pytest.skip("no exoclaw: make runner")


async def turn(it, runner: str, message: str) -> dict:
    """Return what the runner printed after one turn."""
    process = await asyncio.create_subprocess_exec(
        str(PYTHON),
        str(SCRIPT),
        *(it.url + "/v1", it.token(runner), MODEL, message),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return json.loads(said.splitlines()[-1])


def test_adr_020_a_whole_managed_turn(tmp_path):
    """It reads, trades, writes down with its own tool what came, and sees no managed call."""

    async def talk(it, ask):
        found = await turn(it, "executor", "Buy two ACME and note it.")
        assert found == {"text": "Bought, and noted.", "ran": ["note"]}
        rows = await it.rows("SELECT device, outcome, tool_trace FROM history ORDER BY id")
        assert [(device, outcome) for device, outcome, _ in rows] == [("executor", "ok")] * 2
        traced = [c["name"] for r in json.loads(rows[0][2]) for c in r["tool_calls"]]
        assert traced == ["trading-api.get_market_context", "trading-api.execute_trade"]

    script = [
        calls(CONTEXT),
        calls(TRADE),
        calls(("note", {"line": "2 ACME"})),
        say("Bought, and noted."),
    ]
    requests, desk = play(tmp_path, script, talk)
    assert names(requests[0]) == ["note", CONTEXT[0], TRADE[0]]
    assert [request[0] for request in desk.requests] == ["GET", "POST"], "each ran once"
    results = told(requests[3])
    assert len(results) == 3 and "noted: 2 ACME" in results[-1]
    assert '"balance":50000' in results[0], "hidden rounds are put back before its own"


def test_what_fails_at_the_service_the_runner_hears_from_the_model(tmp_path):
    async def talk(it, ask):
        it.service.answers["/api/v1/market_context/analyst"] = lambda _: (503, b"closed")
        found = await turn(it, "analyst", "What do I have?")
        assert found == {"text": "The desk is closed.", "ran": []}

    requests, _ = play(tmp_path, [calls(CONTEXT), say("The desk is closed.")], talk)
    assert '"http_503"' in told(requests[1])[0]
