"""Feeds of services on Linux.  Before a turn, the feeds that are older than their ttl are fetched,
and all of them are put before the conversation (protocols/services/feed.py).  This module is loaded
for images with services.
"""

from clawlite.core.base.effect import IS_OK, LOG, RUN, VALUE
from clawlite.core.turns.turn import Message
from clawlite.linux.tools.service_tools import services_of
from clawlite.protocols.services.feed import feeds_of, render
from clawlite.protocols.services.service_call import MEDIATED, NATIVE, failure


class _Told(Message):
    """A message of the preface that belongs to the feeds."""


class Feeds:
    """The feeds of one agent.

    setup   ``agent_setup.Setup``, whose work without feeds is ``lasting``
    now_ms  function -> monotonic ms
    """

    def __init__(self, setup, now_ms):
        self._setup, self._now_ms, self._inner = setup, now_ms, setup.lasting
        services = services_of(setup.image).values()
        name = setup.image.agent.name
        # the gateway knows for which devices it calls a service
        self._feeds = feeds_of(services, NATIVE, name)
        self._feeds += feeds_of(services, MEDIATED, None)

    def lasting(self, work, history, once: bool, channel: str = ""):
        """Return *work* of a turn with its feeds before it; see ``Setup.lasting``."""
        if self._inner:
            work = self._inner(work, history, once, channel)
        return self._after(work, history) if self._feeds and self._setup.keep_bytes else work

    def _after(self, work, history):
        try:
            for feed in self._feeds:
                if feed.is_due(self._now_s()):
                    yield from self._fetch(feed)
        except BaseException:  # the turn was ended
            work.close()
            raise
        kept = [message for message in history.preface if type(message) is not _Told]
        text = render(self._feeds, self._now_s())
        history.preface = kept + [_Told("user", text), _Told("assistant", "I have read it.")]
        return (yield from work)

    def _fetch(self, feed):
        outcome = yield (RUN, feed, {})
        result = outcome[VALUE]
        if not outcome[IS_OK]:
            result = failure("refused", result.message)
        feed.took(result, self._now_s(), self._setup.guard)
        status = "ok" if result["ok"] else result["error"]["code"]
        yield (LOG, {"event": "feed.fetched", "feed": feed.title, "status": status})

    def _now_s(self) -> int:
        return self._now_ms() // 1000
