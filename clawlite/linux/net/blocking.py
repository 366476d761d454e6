"""Carries out the effects of a generator of the core (core/base/effect.py: OPEN, RECEIVE, CLOSE,
SLEEP) for a command that may wait for them.  The loop of an agent never waits like this.
"""

import os
import select
import time

from clawlite.core.base.effect import OPEN, RECEIVE, SLEEP
from clawlite.core.base.errors import ProviderError
from clawlite.linux.net.connections import Connections

_KEY = 1


def carry_out(work, authorities: list):
    """Carry out the effects of *work*, one connection at a time; return its result.

    authorities  as in tls.py
    Raises what *work* raises.
    """
    reader, writer = os.pipe()
    connections = Connections(writer, None, authorities)
    try:
        outcome, come = None, []
        while True:
            kind, *details = work.send(outcome)
            outcome = None
            if kind == SLEEP:
                (ms,) = details
                time.sleep(ms / 1000)
            elif kind == RECEIVE:
                outcome = _receive(connections, come, reader, *details)
            else:
                connections.close(_KEY)
                come.clear()
                if kind == OPEN:
                    connections.open(_KEY, *details)
    except StopIteration as e:
        return e.value
    finally:
        connections.close_all()
        os.close(reader)
        os.close(writer)


def _receive(connections, come: list, reader: int, timeout_ms: int) -> tuple:
    """Return (True, data) or (False, error): the first event in *come*, or else the next one that
    arrives.
    """
    poll, due = select.poll(), time.monotonic() + timeout_ms / 1000
    poll.register(reader, select.POLLIN)
    while not come:
        come += connections.poll()
        if not come:
            if not poll.poll(max(0, (due - time.monotonic()) * 1000)):
                return False, ProviderError("it said nothing for %d s" % (timeout_ms // 1000))
            os.read(reader, 64)
    _, kind, data = come.pop(0)
    if kind == "refused":
        return False, data
    return (False, ProviderError(data)) if kind == "error" else (True, data)
