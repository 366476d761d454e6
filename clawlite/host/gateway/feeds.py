"""Feeds of services that a gateway fetches, for a device that asks its providers through it or a
runner at the proxy (protocols/services/feed.py, docs/services.md).
"""

import asyncio
import time

from clawlite.core.image.image import GUARD, SERVICES
from clawlite.host.gateway.service_calls import call_tool
from clawlite.protocols.services.feed import feeds_of, render
from clawlite.protocols.services.service_call import MEDIATED, Service
from clawlite.scan.guard import Guard


class Feeds:
    """The mediated feeds of one caller.

    image   ``image.Image``;  device: the caller, as the gateway knows it
    codecs  (loads, dumps);  secret: function(name) -> value; may block
    """

    def __init__(self, image, device: str, codecs: tuple, secret):
        self._image, self._device, self._codecs, self._secret = image, device, codecs, secret
        services = list(map(Service, image.section(SERVICES) or ()))
        self._feeds = feeds_of(services, MEDIATED, device)
        self._guard = Guard(image) if self._feeds and image.size_of(GUARD) else None
        self._lock = asyncio.Lock()  # requests at the same time fetch once

    def __bool__(self) -> bool:
        return bool(self._feeds)

    async def text(self) -> str:
        """Return what a model reads of them, fetched anew where they are older than their ttl."""
        async with self._lock:
            now = _now_s()
            await asyncio.gather(*(self._fetch(feed) for feed in self._feeds if feed.is_due(now)))
        return render(self._feeds, _now_s())

    async def _fetch(self, feed) -> None:
        result = await call_tool(
            self._image, feed.name, self._device, "{}", self._codecs, None, self._secret
        )
        feed.took(result, _now_s(), self._guard)


def _now_s() -> int:
    return int(time.monotonic())
