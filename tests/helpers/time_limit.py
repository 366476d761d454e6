"""A time limit for each phase (setup, call, teardown) of each test.

1. At the limit SIGALRM fails the phase with the test's name and the line that it waits on; the run
   goes on.
2. It strikes again every ``AGAIN_S``, because what cleans up after the test may wait for the same
   thing.
3. When C code holds the test, or the test took SIGALRM for itself, the whole run ends ``LAST_S``
   later, and faulthandler writes where each thread stands: the test's file and function are on that
   list.
4. What follows the last test has ``LIMIT_S``, and then ends as in 3.

The limit is for what never ends, so it is generous: no test that works needs a tenth of it, even on
a busy machine. ``@pytest.mark.limit(seconds)`` sets another one; $CLAWLITE_TEST_LIMIT_S sets it for
a slow machine (tests/kernels)."""

import faulthandler
import os
import signal
from contextlib import contextmanager

import pytest

LIMIT_S = float(os.environ.get("CLAWLITE_TEST_LIMIT_S", "600"))
SOAK_LIMIT_S = 6 * 3600  # campaigns take minutes to hours
AGAIN_S, LAST_S = 30, 120
_running = []  # name, phase and limit of what runs
_streams = []  # a copy of stderr from before pytest captured it


def prepare() -> None:
    """Keep a way to stderr; call it before pytest captures that."""
    _streams.append(os.fdopen(os.dup(2), "w"))


def seconds_for(item) -> float:
    """Return the limit of the test *item*, in seconds."""
    marker = item.get_closest_marker("limit")
    if marker:
        return float(marker.args[0])
    return max(SOAK_LIMIT_S, LIMIT_S) if item.get_closest_marker("soak") else LIMIT_S


@contextmanager
def limit(name: str, phase: str, seconds: float):
    """Run a phase of the test *name*; it fails when it takes longer than *seconds*."""
    # else a fixture has taken it: rule 3
    is_ours = signal.getsignal(signal.SIGALRM) in (signal.SIG_DFL, _strike)
    if is_ours:
        _running[:] = [name, phase, seconds]
        signal.signal(signal.SIGALRM, _strike)
        signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)
    if _streams:
        faulthandler.dump_traceback_later(seconds + LAST_S, file=_streams[-1], exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        if is_ours:
            signal.setitimer(signal.ITIMER_REAL, 0)


def limit_the_end() -> None:
    """End this process when it still runs after ``LIMIT_S``: its last test is over."""
    if _streams:
        faulthandler.dump_traceback_later(LIMIT_S, file=_streams[-1], exit=True)


def _strike(number, frame):
    """The handler: it stays between tests, where no timer runs, so that a fixture may take it
    over and give it back.
    """
    pytest.fail("%s: its %s took longer than %g s and was ended here" % tuple(_running))
