"""An engine and profiles for the tests of the sandbox."""

import os
import select
import time

from clawlite.protocols.sandbox.profile import SCOPED, Profile

LIMITS = (
    "memory_mb",
    "cpu_shares",
    "max_processes",
    "max_open_files",
    "timeout_ms",
    "max_output_bytes",
)
# more where a machine is played by a busy one (tests/kernels)
WAIT_S = int(os.environ.get("CLAWLITE_WAIT_S", "60"))
NOBODY = 65534  # the agent's user, where the tests are root


def profile(
    network=0, files=SCOPED, mounts=(("/workspace", True),), denied=(), injection=0, **limits
):
    """Return a Profile of level process; *limits* by their names."""
    return Profile(
        [
            "t",
            1,
            [network, [], True],
            [files, [list(m) for m in mounts], list(denied)],
            [injection, False],
            [2, [], []],
            [limits.get(name) for name in LIMITS],
        ]
    )


def now_ms() -> int:
    return int(time.monotonic() * 1000)


class Player:
    """Runs jobs on *engine*, one after another or several at once."""

    def __init__(self, engine):
        self.engine = engine
        self._number = 0
        self.outcomes = {}

    def start(self, profile, job, due_ms=None) -> int:
        self._number += 1
        outcome = self.engine.start(self._number, profile, job, due_ms, now_ms())
        if outcome is not None:
            self.outcomes[self._number] = outcome
        return self._number

    def wait(self, number: int) -> tuple:
        """Return the outcome of call *number*."""
        end = time.monotonic() + WAIT_S
        while number not in self.outcomes:
            assert time.monotonic() < end, "call %d has no outcome" % number
            select.select([self.engine.fileno()], [], [], 0.2)
            self.outcomes.update(self.engine.poll())
        return self.outcomes.pop(number)

    def run(self, profile, job, due_ms=None) -> tuple:
        return self.wait(self.start(profile, job, due_ms))
