"""Secrets and connections for remote providers on Linux.

Loaded only for images with providers.
"""

import os
import time

from clawlite.core.base import effect as E
from clawlite.core.base.errors import ClawError, ProviderError
from clawlite.core.image.image import NETWORK, WIRE
from clawlite.linux.files.files import state_folder
from clawlite.linux.net.connections import Connections
from clawlite.linux.runtime.dialects import Dialects
from clawlite.linux.runtime.meters import meter

# bytes of a conversation: a provider sees that much of what was said before
_KEEP = 65536


class Remote:
    """The remote side of one agent's shell.

    agent   ``agent.Agent``; it gets its meter here
    wake    file descriptor that ends the loop's wait when a byte is written to it
    now_ms  function -> monotonic ms
    """

    def __init__(self, agent, wake: int, now_ms):
        self._agent = agent
        self._now_ms = now_ms
        self._name = agent.image.agent.name
        gateway, authorities = agent.image.section(NETWORK) or (None, ())
        # with a gateway, the authorities are for its certificate
        self._connections = Connections(wake, authorities=() if gateway else authorities)
        # task -> number of its present connection; data of an earlier one is dropped
        self._current = {}
        self._last = 0
        agent.keep_bytes = _KEEP
        meter(agent, now_ms)
        if not gateway:
            path = os.path.join(state_folder(self._name), "dialects.json")
            agent.dialects = Dialects(path, lambda: int(time.time()))
            from clawlite.core.providers.provider import Provider
            from clawlite.core.providers.repetition import Repetition

            Provider.repetition = Repetition

    def carry_out(self, effect: tuple):
        """Carry out an effect of a provider."""
        kind, task, *details = effect
        if kind == E.OPEN:
            self._last += 1
            self._current[task] = self._last
            scheme, host, port, parts, timeout_ms = details
            parts = [
                part if isinstance(part, bytes) else self._agent.image.part(WIRE, *part)
                for part in parts
            ]
            self._connections.open((task, self._last), scheme, host, port, parts, timeout_ms)
        elif kind == E.CLOSE or kind == E.CANCEL:
            self._connections.close((task, self._current.pop(task, 0)))
        elif kind == E.SECRET:
            self._agent.done(task, self._secret(*details), self._now_ms())

    def connection(self, task: int):
        """Return the number of the connection that *task* has open, or None.  Each request has
        another number.
        """
        return self._current.get(task)

    def poll(self):
        """Pass the data that connections have received to the agent."""
        for (task, number), kind, data in self._connections.poll():
            if self._current.get(task) != number:
                continue
            outcome = (False, ProviderError(data)) if kind == "error" else (True, data)
            self._agent.received(task, outcome, self._now_ms())
            self._end_closed(task)

    def _end_closed(self, task: int):
        """Carry out a CLOSE that waits in the queue, so that further data of that connection is not
        taken for data of the task's next one.
        """
        if (E.CLOSE, task) in self._agent.effects:
            self.carry_out((E.CLOSE, task))

    def close(self):
        """End all connections."""
        self._connections.close_all()

    def _secret(self, name: str) -> tuple:
        from clawlite.linux.secrets.secrets import resolve, stores

        try:
            value = resolve(name, stores(self._name))
            if self._agent.setup.guard is not None:
                self._agent.setup.guard.learn(value)
            return True, value
        except ClawError as e:
            return False, e
