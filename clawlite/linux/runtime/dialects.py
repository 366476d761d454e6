"""What model servers refused, and what requests to them have otherwise (core/providers/refusal.py):
one small JSON file in the agent's state folder, replaced as a whole.

An entry is for one address and model, and is forgotten after 30 days: servers change.  A file that
cannot be read or written costs one refused request, so that is no trouble of its own."""

import os

from clawlite.core.base.errors import ClawError
from clawlite.core.providers.refusal import fresh
from clawlite.linux.files.files import write_whole
from clawlite.linux.io.jsontext import dumps, loads

MOST = 64  # entries
_BYTES = 65536  # that are read


class Dialects:
    """The changes that one agent has learned.

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
        while len(known) >= MOST:
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
                return fresh(loads(file.read(_BYTES)), self._now_s())
        except (OSError, ClawError):
            return {}
