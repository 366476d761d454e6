"""``build`` tells a person how long it has taken, once that is more than a second."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import on_terminal

from clawlite.host.bench import agent

ROOT = Path(__file__).resolve().parents[3]


def built(folder: Path) -> tuple:
    """Return (what ``clawlite build`` writes to a terminal that is its stderr, its stdout)."""
    code, said, out = on_terminal(
        [sys.executable, "-m", "clawlite", "build", str(folder)],
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
    )
    assert code == 0, (said, out)
    return said, out


@pytest.mark.parametrize("count, is_long", [(10, False), (15_000, True)])
def test_a_long_build_says_how_long_it_has_taken(tmp_path, count, is_long):
    said, out = built(Path(agent.write(str(tmp_path), count=count)))
    assert b"claw.cbor" in out and b"Building" not in out
    assert (b"\rBuilding: 1 s" in said) == is_long
    assert (b" s\r\x1b[K" in said) == is_long


def test_elsewhere_it_says_nothing(tmp_path):
    folder = agent.write(str(tmp_path), count=15_000)
    done = subprocess.run(
        [sys.executable, "-m", "clawlite", "build", folder],
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        capture_output=True,
    )
    assert done.returncode == 0 and b"Building" not in done.stderr + done.stdout
