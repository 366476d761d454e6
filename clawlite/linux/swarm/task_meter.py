"""What a task of a swarm may use, with all its parts, in all processes (CKP 5.9
``resource_limits``): one more limit beside those of the agent that does it.

1. A request that would exceed it is refused before it is sent (-32021), and an answer gets no more
   tokens than are left.
2. What was used is on the bus before the next request.  Parts that run at the same time do not know
   of each other's answers under way: each may use what was left when it asked.
"""

from clawlite.core.base.errors import QuotaExceeded
from clawlite.core.providers.provider_order import ProviderOrder

_NANO = 1000000000


class TaskMeter:
    """A ``meter.Meter`` that also counts for one task.

    meter   of the agent
    bus     ``bus.Bus``
    root    id of the task that counts: the one of which this one is a part
    swarm   ``swarm.Swarm``: ``most_tokens`` and ``most_nano`` dollars, None without a limit
    tokens  what was read and written for this task by this process
    """

    def __init__(self, meter, bus, root: str, swarm):
        self._meter, self._bus, self._root, self._swarm = meter, bus, root, swarm
        self.tokens = 0

    def __getattr__(self, name: str):
        return getattr(self._meter, name)

    def allowed(self, provider, asked: int, most=None) -> int:
        """As ``Meter.allowed``."""
        allowed, least = self._meter.allowed(provider, asked, most), most or 1
        swarm = self._swarm
        if swarm.most_tokens is None and swarm.most_nano is None:
            return allowed
        tokens, nano = self._bus.used(self._root)
        if swarm.most_tokens is not None:
            left = swarm.most_tokens - tokens - asked
            if left < least:
                raise _exceeded("max_total_tokens", swarm.most_tokens, tokens, asked + least)
            allowed = min(allowed, left)
        if swarm.most_nano is not None:
            read, written = provider.prices
            left, price = swarm.most_nano - nano, asked * read + least * written
            if price and left < price:
                limits = [amount / _NANO for amount in (swarm.most_nano, nano, price)]
                raise _exceeded("max_total_cost_usd", *limits)
            if written:
                allowed = min(allowed, (left - asked * read) // written)
        return allowed

    def spend(self, provider, read: int, written: int) -> list:
        """As ``Meter.spend``."""
        self._count(provider, read, written)
        return self._meter.spend(provider, read, written)

    def owe(self, provider, read: int, written: int):
        """As ``Meter.owe``."""
        self._count(provider, read, written)
        self._meter.owe(provider, read, written)

    def _count(self, provider, read: int, written: int):
        self.tokens += read + written
        if self._swarm.most_tokens is not None or self._swarm.most_nano is not None:
            prices = provider.prices or (0, 0)
            nano = read * prices[0] + written * prices[1]
            self._bus.use(self._root, read + written, nano)


class MeteredProviders(ProviderOrder):
    """The providers of *order*, whose use *meter* counts."""

    def __init__(self, order: ProviderOrder, meter: TaskMeter):
        self.__dict__.update(order.__dict__, _meter=meter)


def metered(order: ProviderOrder, bus, root: str, swarm) -> tuple:
    """Return (what a turn asks, its ``TaskMeter``); (*order*, None) where nothing is counted."""
    if order._meter is None:
        return order, None
    meter = TaskMeter(order._meter, bus, root, swarm)
    return MeteredProviders(order, meter), meter


def _exceeded(name: str, most, used, reserved) -> QuotaExceeded:
    return QuotaExceeded(
        "the swarm's %s is %s, and this request would exceed it (%s are used)" % (name, most, used),
        "give the swarm a smaller task, or raise resource_limits",
        {"limit": name, "max": most, "used": used, "reserved": reserved},
    )
