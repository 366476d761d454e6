"""When a signal is raised in a maker's code, and when it only counts; this process signals
itself.
"""

import os
import select
import signal

import pytest

from clawlite.core.turns import handlers
from clawlite.linux.io import signals


@pytest.fixture(autouse=True)
def caught():
    signals.catch()
    yield
    signals.release()


def _come(number: int = signal.SIGINT):
    os.kill(os.getpid(), number)


def _hang():
    select.select([], [], [], 10)


def test_between_handlers_a_signal_only_counts():
    _come()
    _come(signal.SIGTERM)
    assert (
        signals.interrupts() == 1
        and signals.interrupts() == 0
        and signals.end_signal() == signal.SIGTERM
    )


def test_a_step_that_ends_by_itself_is_left_alone():
    """Between ``board.write("pump", 1)`` and the ``try`` whose ``finally`` switches it off, say."""
    with signals.interruptible():
        _come()
        ended = True
    assert ended and signals.interrupts() == 1 and signal.getitimer(signal.ITIMER_REAL) == (0, 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_step_that_hangs_is_ended_once(number):
    with signals.interruptible():
        with pytest.raises(KeyboardInterrupt):
            _come(number)
            _hang()
        # longer than the grace: its clean-up is not interrupted too
        select.select([], [], [], 0.15)
    assert (signals.interrupts() == 1) == (number == signal.SIGINT)
    assert signals.end_signal() == (0 if number == signal.SIGINT else number)


def test_a_signal_that_comes_just_before_a_makers_code_ends_what_hangs_there():
    """Our own lines around it are never interrupted, and it hangs behind them."""
    ours = {}
    text = "def step(kill, hang):\n    kill(%d, %d)\n    hang()\n" % (os.getpid(), signal.SIGTERM)
    exec(compile(text, handlers.__file__, "exec"), ours)
    with signals.interruptible():
        with pytest.raises(KeyboardInterrupt):
            ours["step"](os.kill, _hang)
    assert signals.end_signal() == signal.SIGTERM
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_a_signal_that_came_before_a_step_and_was_not_asked_for_ends_what_hangs_there():
    """It came while a call was put on record, say, and the loop asks when the step has ended."""
    _come(signal.SIGTERM)
    with signals.interruptible():
        with pytest.raises(KeyboardInterrupt):
            _hang()
        select.select([], [], [], 0.15)  # its clean-up is not interrupted
    assert signals.end_signal() == signal.SIGTERM
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


@pytest.mark.parametrize(
    "number, heard", [(signal.SIGINT, signals.interrupts), (signal.SIGTERM, signals.end_signal)]
)
def test_once_the_loop_has_heard_a_signal_what_it_lets_run_runs_on(number, heard):
    """Calls under way have two seconds when an agent ends, and clean-ups are steps as well."""
    _come(number)
    assert heard()
    for _ in range(2):
        with signals.interruptible():
            select.select([], [], [], 0.15)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_a_second_signal_does_not_wait():
    with signals.interruptible():
        _come()
        with pytest.raises(KeyboardInterrupt):
            _come()
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signals.interrupts() == 2
