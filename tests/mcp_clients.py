"""Clients of MCP that are not ours, for tests of ``clawlite mcp serve``: the official SDK in both
major versions, the conformance suite and the inspector.

The Makefile makes their environment, build/mcp: one Python has one version of the SDK, and the
programs from npm need a newer node than some systems have.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build/mcp"
SCRIPT = Path(__file__).with_name("mcp_sdk_client.py")
# name -> (Python, era that it begins with, version of the protocol that it ends with)
SDKS = {
    "sdk2": (sys.executable, "auto", "2026-07-28"),
    "sdk2-handshake": (sys.executable, "legacy", "2025-11-25"),
    "sdk1": (str(PLACE / "bin/python"), "legacy", "2025-11-25"),
}


def sdk(name: str, home: Path, steps: list, says=None, **more) -> dict:
    """Run the client *name* of ``SDKS`` against a server; return what its script prints.

    says  what a person answers to each question, or None: it cannot ask
    more  command, a list, or url and token
    """
    python, era, version = SDKS[name]
    if not os.path.exists(python):
        pytest.skip("no environment with mcp<2: make mcp")
    plan = {"era": era, "says": says, "steps": steps, **more}
    done = run([python, SCRIPT, json.dumps(plan)], home)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["version"] == version
    return said


def npm(name: str, args: list, home: Path):
    """Run the program *name* of a package from npm; return the completed process."""
    program = PLACE / "npm/node_modules/.bin" / name
    if not program.exists():
        pytest.skip("no %s from npm: make mcp" % name)
    return run([PLACE / "bin/node", program.resolve(), *args], home)


def run(words: list, home: Path):
    from agents import environment

    return subprocess.run(
        list(map(str, words)),
        cwd=home,
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
