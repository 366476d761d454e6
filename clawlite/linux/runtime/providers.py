"""Secrets and connections for remote providers on Linux.

Loaded only for images with providers.
"""

import os
import time

from clawlite.core.base import effect as E
from clawlite.core.base.errors import ClawError, ProviderError
from clawlite.core.image.image import NETWORK, WIRE
from clawlite.linux.files.files import state_folder
from clawlite.linux.io.stdio import Part, now_ms
from clawlite.linux.runtime.dialects import Dialects
from clawlite.protocols.providers.repetition import Repetition

# bytes of a conversation: a provider sees that much of what was said before
_KEEP = 65536


class Remote(Part):
    """The remote side of one agent's shell.

    parts  ``assemble.Parts``
    wake   file descriptor that ends the loop's wait when a byte is written to it
    For the agent's setup: ``keep_bytes``, ``dialects``, ``repetition``.
    """

    keep_bytes, dialects, repetition = _KEEP, None, None

    def __init__(self, parts, wake: int):
        self._parts = parts
        self._name = parts.image.agent.name
        self._wake = wake
        gateway, authorities = parts.image.section(NETWORK) or (None, ())
        # with a gateway, the authorities are for its certificate
        self._authorities = () if gateway else authorities
        self._connections = None  # made with the first: the local model opens none
        # task -> number of its present connection; data of an earlier one is dropped
        self._current = {}
        self._last = 0
        self._local = None
        if not gateway:
            path = os.path.join(state_folder(self._name), "dialects.json")
            self.dialects = Dialects(path, lambda: int(time.time()))
            self.repetition = Repetition

    def carry_out(self, effect: tuple):
        """Carry out an effect of a provider."""
        kind, task, *details = effect
        if self._local is not None and self._local.carry_out(effect):
            return
        if kind == E.OPEN:
            self._last += 1
            self._current[task] = self._last
            scheme, host, port, parts, timeout_ms = details
            parts = [
                part if isinstance(part, bytes) else self._parts.image.part(WIRE, *part)
                for part in parts
            ]
            self._make_connections().open((task, self._last), scheme, host, port, parts, timeout_ms)
        elif kind == E.CLOSE or kind == E.CANCEL:
            number = self._current.pop(task, 0)
            if self._connections is not None:
                self._connections.close((task, number))
        elif kind == E.SECRET:
            self._parts.agent.complete(task, self._secret(*details), now_ms())

    def _make_connections(self):
        """Return the connections of this agent."""
        if self._connections is None:
            from clawlite.linux.net.connections import Connections

            self._connections = Connections(self._wake, authorities=self._authorities)
        return self._connections

    def make_local(self, row: list):
        """Return the provider builtin:local of *row*."""
        from clawlite.linux.local.model_client import LocalPart

        if self._local is None:
            self._local = LocalPart(self._parts)
        return self._local.make_provider(row)

    def connection(self, task: int):
        """Return the number of the connection that *task* has open, or None.  Each request has
        another number.
        """
        return self._current.get(task)

    def poll(self):
        """Pass the data that connections have received to the agent."""
        if self._connections is None:
            return
        for (task, number), kind, data in self._connections.poll():
            if self._current.get(task) != number:
                continue
            outcome = (False, ProviderError(data)) if kind == "error" else (True, data)
            self._parts.agent.receive(task, outcome, now_ms())
            self._end_closed(task)

    def _end_closed(self, task: int):
        """Carry out a CLOSE that waits in the queue, so that further data of that connection is not
        taken for data of the task's next one.
        """
        if (E.CLOSE, task) in self._parts.agent.effects:
            self.carry_out((E.CLOSE, task))

    def close(self):
        """End all connections."""
        if self._connections is not None:
            self._connections.close_all()

    def _secret(self, name: str) -> tuple:
        from clawlite.linux.secrets.secrets import resolve, stores

        try:
            value = resolve(name, stores(self._name))
            if self._parts.guard is not None:
                self._parts.guard.learn(value)
            return True, value
        except ClawError as e:
            return False, e
