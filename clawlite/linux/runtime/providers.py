"""Secrets and connections for remote providers on Linux.

Loaded only for images with providers.
"""

import os
import time

from clawlite.core.base import effect as E
from clawlite.core.base.errors import ClawError, ProviderError
from clawlite.core.image.image import NETWORK, WIRE
from clawlite.core.providers.refusal import fresh
from clawlite.linux.files.files import state_folder, write_whole
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.io.stdio import Part, now_ms
from clawlite.protocols.providers.repetition import Repetition

# bytes of a conversation: a provider sees that much of what was said before
_KEEP = 65536
MOST_DIALECTS = 64  # entries
_MOST_BYTES = 65536  # of them that are read


class Remote(Part):
    """The remote side of one agent's shell.

    parts  ``agent_parts.AgentParts``
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


class Dialects:
    """What model servers refused, and what requests to them have otherwise
    (core/providers/refusal.py): one small JSON file in the agent's state folder, replaced as a
    whole.

    An entry is for one address and model, and is forgotten after 30 days: servers change.  A file
    that cannot be read or written costs one refused request, so that is no trouble of its own.

    path   of the file
    now_s  function -> seconds since 1970
    """

    def __init__(self, path: str, now_s):
        self._path, self._now_s = path, now_s

    def of(self, place: str) -> list:
        """Return the changes known for *place* ("address model"), [[field, instead], ...]."""
        return self._read().get(place, (0, []))[1]

    def learn(self, place: str, changes: list):
        """Keep *changes* for *place*."""
        known = self._read()
        known.pop(place, None)
        while len(known) >= MOST_DIALECTS:
            del known[min(known, key=lambda one: known[one][0])]
        known[place] = [self._now_s(), changes]
        draft = self._path + "~"
        try:
            os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                write_whole(fd, dumps(known).encode())
            finally:
                os.close(fd)
            os.replace(draft, self._path)
        except OSError:
            pass

    def _read(self) -> dict:
        try:
            with open(self._path, "rb") as file:
                return fresh(loads(file.read(_MOST_BYTES)), self._now_s())
        except (OSError, ClawError):
            return {}
