"""``clawlite swarm watch``: one line of JSON now, and whenever the swarm is stopped or resumed."""

import os
import select
import sys
from typing import Any

from clawlite.core.base.clock import iso8601
from clawlite.linux.io.jsontext import document
from clawlite.linux.io.stdio import now_ms
from clawlite.linux.swarm.bus_protocol import MemberBus
from clawlite.linux.swarm.stop_gate import KNOWN_MS

LOOK_MS = 1000  # between looks for a file that was replaced
_NOTHING: Any = object()  # was told yet


def watch(swarm, bus: MemberBus) -> int:
    """Print what holds now and each change, until Ctrl-C (130) or the end of the input (0).

    bus  of *swarm*; it is left by who opened it
    Raises ``ClawError``: nobody knows whether the swarm is stopped.
    """
    try:
        if not swarm.engine:
            bus.join()
        poll = select.poll()
        poll.register(sys.stdin.fileno(), select.POLLIN)
        poll.register(bus.fileno(), select.POLLIN)
        until, told = now_ms() + KNOWN_MS, _NOTHING
        while True:
            bus.receive()
            if bus.is_known() or now_ms() >= until:
                stop = bus.find_stop()
                if stop != told:
                    told = stop
                    since = stop and {"by": stop[0], "time": iso8601(stop[1] // 1000)}
                    print(document({"swarm": swarm.name, "stopped": since}), flush=True)
            due = bus.deadline()
            wait_ms = LOOK_MS if due is None else min(LOOK_MS, max(0, due - now_ms()))
            for fd, _ in poll.poll(wait_ms):
                if fd == sys.stdin.fileno() and not os.read(fd, 4096):
                    return 0
    except KeyboardInterrupt:
        return 130
