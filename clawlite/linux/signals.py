"""Ctrl-C and SIGTERM, as facts that the loop asks for: no signal ever interrupts the core between two of its lines.

While a handler runs, and only then, Ctrl-C raises KeyboardInterrupt in it: a handler that hangs is ended that way.
``_signal`` is the C module under ``signal``, whose enums cost 4 ms at import.
"""
import os

try:
    import _signal as signal
except ImportError:
    import signal

_state = {"interrupts": 0, "terminated": False, "inside": False, "pipe": None, "old": None}


def catch() -> int:
    """Take SIGINT and SIGTERM over; return a descriptor that is readable when one has come."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    os.set_blocking(reader, False)
    _state.update(interrupts=0, terminated=False, inside=False, pipe=(reader, writer),
                  old=(signal.signal(signal.SIGINT, _on_interrupt), signal.signal(signal.SIGTERM, _on_terminate)))
    signal.set_wakeup_fd(writer)
    return reader


def release():
    """Give them back."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, _state["old"][0])
    signal.signal(signal.SIGTERM, _state["old"][1])
    for fd in _state["pipe"]:
        os.close(fd)


def interrupts() -> int:
    """Return how often Ctrl-C has come since the last time this was asked."""
    count = _state["interrupts"]
    _state["interrupts"] = 0
    return count


def terminated() -> bool:
    return _state["terminated"]


class interruptible:
    """``with interruptible():`` Ctrl-C raises KeyboardInterrupt in here."""

    def __enter__(self):
        _state["inside"] = True

    def __exit__(self, *_):
        _state["inside"] = False


def _on_interrupt(number, frame):
    if _state["inside"]:
        _state["inside"] = False
        raise KeyboardInterrupt
    _state["interrupts"] += 1


def _on_terminate(number, frame):
    _state["terminated"] = True
    if _state["inside"]:
        _state["inside"] = False
        raise KeyboardInterrupt
