"""The gate ``stop`` of the pipeline (core/turns/tools.py): while a person has stopped the swarm, no
tool with side effects begins in any of its agents.

1. It is asked last, after approvals: what a person has approved does not run in a stopped swarm.
2. Whether the swarm is stopped is read from the bus at each call; nothing is remembered here.
3. A process that has just begun waits until it has what is on record, or knows that the engine is
   away: then what it heard last holds (``stop_file``).
4. When nobody can know, it denies.
5. A model reads why, as the result of its call.  The person reads it too, with the next step.
"""

import os
from collections.abc import Callable

from clawlite.core.base.clock import iso8601
from clawlite.core.base.effect import SLEEP, TELL
from clawlite.core.base.errors import ClawError, PolicyDenied
from clawlite.core.image.image import SWARM
from clawlite.linux.files.files import swarm_folder
from clawlite.linux.io.stdio import Part, now_ms
from clawlite.linux.memory.memory import wall_ms
from clawlite.linux.swarm.bus import Bus
from clawlite.linux.swarm.bus_protocol import StopState
from clawlite.linux.swarm.stop_file import StopFile
from clawlite.protocols.swarm.swarm import Swarm

KNOWN_MS = 10000  # from a process' begin until it has what is on record
WAIT_MS = 5  # between looks
RESUME = "resume it with: clawlite swarm resume"


class StopGate:
    """See ``Setup.stop``.

    swarm  ``swarm.Swarm``
    bus    function -> its bus, which somebody else lets ``receive``
    """

    def __init__(self, swarm: Swarm, bus: Callable[[], StopState]):
        self._swarm, self._bus = swarm, bus

    def __call__(self, tool):
        """A generator of effects.  Raises ``PolicyDenied``: the swarm is stopped, or nobody knows
        whether it is.
        """
        name, data = self._swarm.name, {"tool": tool.name, "action": "deny"}
        try:
            bus, until = self._bus(), now_ms() + KNOWN_MS
            while not bus.is_known() and now_ms() < until:
                yield (SLEEP, WAIT_MS)
            stop = bus.find_stop()
        except ClawError as e:
            why = "whether the swarm %s is stopped cannot be known: %s" % (name, e.message)
            yield (TELL, why + (" - " + e.hint if e.hint else ""))
            raise PolicyDenied("%s: %s" % (tool.name, why), e.hint, data) from None
        if stop:
            who, at_ms = stop
            why = "the swarm %s was stopped by %s at %s" % (name, who, iso8601(at_ms // 1000))
            yield (TELL, "%s - %s" % (why, RESUME))
            raise PolicyDenied(
                "%s: %s, and this tool has side effects" % (tool.name, why),
                RESUME,
                dict(data, stopped_by=who),
            )


class Watcher(Part):
    """A process that takes no task, and yet runs tools (``clawlite ask``): it stands among the
    members of the shell, and opens the bus when the first tool with side effects is called.
    """

    def __init__(self, setup):
        self._image, self._guard, self._bus = setup.image, setup.guard, None
        self._swarm = Swarm(setup.image.section(SWARM))
        self.gate = StopGate(self._swarm, self._open_bus)

    def _open_bus(self):
        if not self._swarm.is_shared:
            return StopFile(swarm_folder(self._swarm.name))
        if self._bus is None and self._swarm.engine:
            from clawlite.linux.swarm.replicated_bus import bus_of

            bus = bus_of(
                self._swarm,
                self._image,
                wall_ms,
                now_ms,
                os.urandom,
                guard=self._guard,
            )
            bus.join()
            self._bus = bus
        elif self._bus is None:
            self._bus = Bus(swarm_folder(self._swarm.name), wall_ms, os.urandom)
        return self._bus

    def poll(self):
        if self._bus is not None:
            self._bus.receive()

    def close(self):
        if self._bus is not None:
            self._bus.leave()
