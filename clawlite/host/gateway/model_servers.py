"""What a gateway keeps of model servers: what they refuse in requests, which lasts (store.py), and
what of their answers only they understand, which a device has no room for.
"""

import json
import time

from clawlite.core.providers.refusal import fresh

MOST = 256  # servers and models
KEPT = 32  # answers of one device, of 16,384 bytes each at most (core/providers/opaque.py)
_LOCAL = "local-"  # how ids begin that a device made


class Dialects:
    """What requests to model servers have otherwise (core/providers/refusal.py), for all devices
    and runners.

    rows  [(place, time in s, changes as JSON), ...] that were kept
    keep  function(place, time in s, changes as JSON, number of places that stay): such a row lasts
    """

    def __init__(self, rows=(), keep=None, now_s=time.time):
        self._keep, self._now_s = keep, now_s
        found = {}
        for place, then_s, changes in rows:
            try:
                found[place] = [then_s, json.loads(changes)]
            except (ValueError, RecursionError, TypeError):
                pass
        self._known = found

    def of(self, place: str) -> list:
        """Return the changes known for *place* ("address model"), [[field, instead], ...]."""
        return fresh(self._known, int(self._now_s())).get(place, (0, []))[1]

    def learn(self, place: str, changes: list) -> None:
        """Keep *changes* for *place*, in place of what was known."""
        now = int(self._now_s())
        self._known.pop(place, None)
        self._known[place] = [now, changes]
        while len(self._known) > MOST:
            self._known.pop(next(iter(self._known)))
        if self._keep:
            self._keep(place, now, json.dumps(changes), MOST)


class Opaque:
    """What the answers of one device's requests have for their own servers alone: signatures of
    thoughts, reasoning (core/providers/opaque.py).  A device sends its conversation without it.
    """

    def __init__(self):
        self._kept = {}  # calls of an answer -> (owner, opaque)

    def keep(self, reply) -> None:
        """Keep what *reply* (``turn.Reply``) has."""
        if reply.opaque and reply.calls:
            place = _place([(id, name, raw) for id, name, _, raw in reply.calls])
            self._kept.pop(place, None)
            self._kept[place] = reply.owner, reply.opaque
            if len(self._kept) > KEPT:
                self._kept.pop(next(iter(self._kept)))

    def restore(self, messages: list) -> None:
        """Give *messages* (``turn.Message``) back what was kept of them."""
        for message in messages:
            if message.calls:
                kept = self._kept.get(_place(message.calls))
                if kept:
                    message.owner, message.opaque = kept


def _place(calls: list) -> tuple:
    """Return what tells an answer with *calls*, [(id, name, raw), ...], from others."""
    return tuple(("" if id.startswith(_LOCAL) else id, name, raw) for id, name, raw in calls)
