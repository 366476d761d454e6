"""The smallest stack in which a board does its work, as the unix port measures it
(host/fit/stack.py).

The target is what a Pico has, of which a quarter stays free.
"""

import os
import subprocess

from clawlite.host.bench.micropython import Board
from clawlite.host.fit import stack as board_stack

STEP, MOST = 100, 24000  # bytes
_ASK = b"is the soil dry?\n"
CASES = (
    ("boot", b"", b"is ready"),
    ("first turn, with a question", _ASK, b"I would water it"),
    ("approval", _ASK + b"y\n", b"Watered for 3 s"),
    ("later turns", _ASK + b"y\n" + _ASK, b"The soil is wet enough"),
    ("why a call was decided", _ASK + b"y\n/trace 1\n", b"approval: the person approved"),
)


def stack(bench):
    """Yield a row for each of ``CASES``: the linked greenhouse, started from ``main``."""
    from clawlite.host.build import build
    from clawlite.host.projects import new

    folder = os.path.join(bench.make("stack"), "greenhouse")
    new.new(folder, offline=True)
    board, image = Board(bench), build.build(folder)["file"]
    target = board_stack.scaled(board_stack.PICO)
    for case, typed, said in CASES:
        bad, good = board_stack.LEAST // STEP, MOST // STEP
        while good - bad > 1:
            middle = (good + bad) // 2
            if _works(board, image, middle * STEP, typed, said):
                good = middle
            else:
                bad = middle
        yield board.row(
            f"smallest stack, {case}",
            "B",
            [good * STEP],
            f"in steps of {STEP}; {target} stand for a Pico's, a quarter free",
            target=target,
        )


def _works(board, image: str, free: int, typed: bytes, said: bytes) -> bool:
    words = board.within([*board_stack.arguments(free), board.start(), image], 512)
    done = subprocess.run(
        words, env=board.environment(), input=typed + b"/quit\n", capture_output=True
    )
    return (
        done.returncode == 0 and said in done.stdout and b"stack" not in done.stdout + done.stderr
    )
