"""Ctrl-C, SIGTERM and SIGHUP are noted, and the loop asks for them: no signal ever interrupts the
core between two of its lines.

A maker's code that runs just then may end its step by itself: between switching a pump on and the
``try`` whose ``finally`` switches it off, nothing must be raised.  What still runs 100 ms later
hangs, and gets a KeyboardInterrupt; at once when a second signal comes.  The 100 ms begin with that
code when the signal came before it and the loop has not asked since.  Code that
swallows it is abandoned at the next signal: everything else under way is closed, and the process
ends. ``_signal`` is the C module
under ``signal``, whose enums cost 4 ms at import."""

import os

try:
    import _signal as signal
except ImportError:
    import signal

from clawlite.core.turns import handlers

# The signals that have come: only this module writes them, any module reads them.
state = {
    "interrupts": 0,
    "terminated": 0,
    "inside": False,
    "unheard": False,
    "armed": False,
    "told": False,
    "leave": None,
    "pipe": None,
    "old": (),
}

_GRACE_S = 0.1
_HERE = __file__.rpartition("/")[0] + "/"


def catch() -> int:
    """Take SIGINT, SIGTERM, SIGHUP and SIGQUIT (Ctrl-\\) over; return a descriptor that is readable
    when one has come.

    A SIGHUP or SIGQUIT that is ignored (nohup, a script's background) stays ignored.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    os.set_blocking(reader, False)
    old = [
        (number, signal.signal(number, handler))
        for number, handler in (
            (signal.SIGINT, _on_signal),
            (signal.SIGTERM, _on_signal),
            (signal.SIGALRM, _on_alarm),
        )
    ]
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) != signal.SIG_IGN:
            old.append((number, signal.signal(number, _on_signal)))
    state.update(
        interrupts=0,
        terminated=0,
        inside=False,
        unheard=False,
        leave=None,
        pipe=(reader, writer),
        old=old,
    )
    signal.set_wakeup_fd(writer)
    return reader


def waker() -> int:
    """Return the descriptor that wakes whoever waits for ``catch``'s, by a byte written to it."""
    return state["pipe"][1]


def release():
    """Restore the handlers that were there before ``catch``."""
    signal.set_wakeup_fd(-1)
    for number, handler in state["old"]:
        signal.signal(number, handler)
    for fd in state["pipe"]:
        os.close(fd)


def interrupts() -> int:
    """Return how often Ctrl-C has come since the last time this was asked."""
    count = state["interrupts"]
    state["interrupts"], state["unheard"] = 0, False
    return count


def end_signal() -> int:
    """Return the number of the signal that asked the program to end, or 0."""
    state["unheard"] = False
    return state["terminated"]


def end_as_asked():
    """After a SIGQUIT end by it, as the shell and a core file expect; everything is off by then."""
    if state["terminated"] == signal.SIGQUIT:
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGQUIT)


class interruptible:
    """``with interruptible(leave):`` a maker's code runs in here.

    leave  function, called before the process ends although that code goes on, or None
    """

    def __init__(self, leave=None):
        self._leave = leave

    def __enter__(self):
        enter(self._leave)

    def __exit__(self, *_):
        state["inside"] = False
        if state["armed"] or state["told"]:
            calm()


def enter(leave):
    """A maker's code begins: see ``interruptible``."""
    state["leave"], state["inside"] = leave, True
    if state["unheard"]:  # it came while our own lines before that code ran
        state["unheard"] = False
        _arm()


def calm():
    """Forget a signal whose target, a maker's code, has ended."""
    state["told"] = state["armed"] = False
    signal.setitimer(signal.ITIMER_REAL, 0)


def _on_signal(number, frame):
    if number == signal.SIGINT:
        state["interrupts"] += 1
    else:
        state["terminated"] = number
    if not _makers(frame):
        # the loop will ask; unless a maker's code begins now, and hangs
        if not state["inside"]:
            state["unheard"] = True
        elif not state["armed"] and not state["told"]:
            _arm()
        return
    if state["told"]:
        state["inside"] = False
        try:
            if state["leave"]:
                state["leave"]()
        finally:
            os._exit(128 + number)
    if state["armed"]:
        _raise()
    _arm()


def _arm():
    state["armed"] = True
    signal.setitimer(signal.ITIMER_REAL, _GRACE_S)


def _on_alarm(number, frame):
    if state["armed"] and _makers(frame):
        _raise()
    if state["armed"]:  # only our own lines around that code run
        signal.setitimer(signal.ITIMER_REAL, _GRACE_S)


def _raise():
    state["told"] = True
    state["armed"] = False
    signal.setitimer(signal.ITIMER_REAL, 0)
    raise KeyboardInterrupt


def _makers(frame) -> bool:
    """Return whether a maker's code runs and not our own lines around it, where a
    KeyboardInterrupt would end the wrong thing.
    """
    file = frame.f_code.co_filename
    return state["inside"] and file != handlers.__file__ and not file.startswith(_HERE)
