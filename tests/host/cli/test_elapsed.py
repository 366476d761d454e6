"""``build`` tells a person how long it has taken, once that is more than a second."""

import os
import subprocess
import sys
from pathlib import Path

from terminals import on_terminal

from clawlite.host.bench import agent

ROOT = Path(__file__).resolve().parents[3]


def on_a_terminal(*words: str) -> tuple:
    """Return (what Python with *words* writes to a terminal that is its stderr, its stdout)."""
    code, said, out = on_terminal(
        [sys.executable, *words], env=dict(os.environ, PYTHONPATH=str(ROOT))
    )
    assert code == 0, (said, out)
    return said, out


def test_a_long_build_says_how_long_it_has_taken(tmp_path):
    folder = agent.write(str(tmp_path), count=15_000)
    said, out = on_a_terminal("-m", "clawlite", "build", folder)
    assert b"claw.cbor" in out and b"Building" not in out
    assert b"\rBuilding: 1 s" in said and b" s\r\x1b[K" in said


def test_what_takes_less_than_a_second_says_nothing():
    work = "from clawlite.host.cli import ui\nwith ui.Elapsed('Building'):\n    print('made')"
    said, out = on_a_terminal("-c", work)
    assert b"made" in out and b"Building" not in said


def test_elsewhere_it_says_nothing(tmp_path):
    folder = agent.write(str(tmp_path), count=15_000)
    done = subprocess.run(
        [sys.executable, "-m", "clawlite", "build", folder],
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        capture_output=True,
    )
    assert done.returncode == 0 and b"Building" not in done.stderr + done.stdout
