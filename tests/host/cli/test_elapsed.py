"""``build`` tells a person how long it has taken, once that is more than a second."""

import os
import re
import subprocess
import sys
from pathlib import Path

from terminals import on_terminal

from clawlite.host.bench import agent
from clawlite.host.cli import ui

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
    assert b"\rBuilding: 1 s" in said and b"\x1b[K\r\x1b[K" in said
    assert re.search(rb"\rBuilding: \d+ s, about \d+ (s|min) left\x1b\[K", said), said


def test_time_left_follows_from_the_share_that_is_done():
    """Not from what comes before 0 is reached, which may wait for others."""
    now = [0.0]
    one = ui.Elapsed("Building", lambda: now[0])
    shown = []
    for now[0], share in ((50, None), (60, 0), (61, None), (62, 0.2), (65, 0.6), (67, None)):
        if share is not None:
            one.reach(share)
        shown.append(one.show(int(now[0])).removeprefix("Building: "))
    assert shown == [
        "50 s", "60 s", "61 s", "62 s, about 8 s left", "65 s, about 3 s left",
        "67 s, about 1 s left",
    ]  # fmt: skip
    now[0] = 69  # later than was reckoned
    assert one.show(69) == "Building: 69 s"


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
