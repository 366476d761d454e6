"""What a task of a swarm may use, with all its parts, in all processes (CKP 5.9
``resource_limits``): one more limit beside those of the agent that does it.

1. A request reserves what it may use before it is sent (``reserve``): one that a limit does not
   admit is refused (-32021), and an answer gets no more tokens than were reserved for it.  So parts
   that run at the same time never use more than the limit.
2. What an answer used takes the place of what was reserved for it.
3. Where the bus is on an engine, a request waits until its reservation has come back.
"""

from typing import Any

from clawlite.core.base.effect import SLEEP
from clawlite.core.base.errors import InvalidRequest
from clawlite.core.policy.meter import Meter, make_error
from clawlite.core.providers.provider_order import ProviderOrder
from clawlite.linux.swarm.bus_protocol import Budget
from clawlite.linux.swarm.reserve import room_of
from clawlite.protocols.session.group_session import Later

_NANO = 1000000000
_NAMES = ("max_total_tokens", "max_total_cost_usd")
_UNITS = (1, _NANO)  # of what people read
_LOOK_MS = 1  # between looks whether a reservation has come back


class TaskMeter:
    """A ``meter.Meter`` that also counts for one task.

    meter   of the agent
    bus     of the swarm
    task    id of the task, which this process is at
    swarm   ``swarm.Swarm``: ``most_tokens`` and ``most_nano`` dollars, None without a limit
    tokens  what was read and written for this task by this process
    """

    def __init__(self, meter: Meter, bus: Budget, task: str, swarm):
        self._meter, self._bus, self._task = meter, bus, task
        # what belongs to the agent alone
        self.now_ms, self.now_s, self.jitter = meter.now_ms, meter.now_s, meter.jitter
        self.pause, self.count_request = meter.pause, meter.count_request
        self.limits_answers = meter.limits_answers
        self._limits = [swarm.most_tokens, swarm.most_nano]
        self._is_limited = self._limits != [None, None]
        self._held: Any = None  # a ``Later``: a reservation under way
        self._needs = [0, 0]  # the least of its request
        self.tokens = 0

    def admit_request(self, provider, asked: int, most=None) -> int:
        """As ``Meter.admit_request``; what it returns is reserved, or will be after ``wait``."""
        most_allowed, least = self._meter.admit_request(provider, asked, most), most or 1
        if not self._is_limited:
            return most_allowed
        read, written = provider.prices or (0, 0)
        needs = [asked + least, asked * read + least * written]
        while True:
            now = self._bus.budget(self._task)
            self._check(now, needs)
            allowed = most_allowed
            for at, price in enumerate((1, written)):
                if self._limits[at] is not None and price:
                    spare = room_of(self._limits[at], now[at], needs[at]) - needs[at]
                    allowed = min(allowed, least + spare // price)
            amounts = [asked + allowed, asked * read + allowed * written]
            held = self._bus.hold(self._task, amounts, self._limits)
            if isinstance(held, Later):
                self._held, self._needs = held, needs
                return allowed
            if held:
                return allowed
            self._still_at_it()  # another process was faster: there is less now

    def wait(self):
        """A generator of effects: wait until what ``admit_request`` returned is reserved.  Raises
        ``QuotaExceeded``: others were faster.
        """
        held, self._held = self._held, None
        if held is None:
            return
        while not held.is_done:
            yield (SLEEP, _LOOK_MS)
        if not held.value():
            self._still_at_it()
            self._check(self._bus.budget(self._task), self._needs, True)

    def count_answer(self, provider, read: int, written: int) -> list:
        """As ``Meter.count_answer``."""
        self._count(provider, read, written)
        return self._meter.count_answer(provider, read, written)

    def owe(self, provider, read: int, written: int):
        """As ``Meter.owe``."""
        self._count(provider, read, written)
        self._meter.owe(provider, read, written)

    def _count(self, provider, read: int, written: int):
        self.tokens += read + written
        if self._is_limited:
            prices = provider.prices or (0, 0)
            nano = read * prices[0] + written * prices[1]
            self._bus.use(self._task, read + written, nano)

    def _still_at_it(self):
        if not self._bus.holds(self._task):
            raise InvalidRequest("the task was canceled, or given to another process")

    def _check(self, now: list, needs: list, was_refused: bool = False):
        """Raise ``QuotaExceeded`` where *now* (``reserve.budget``) does not admit *needs*.

        was_refused  others had reserved what was left, a moment ago
        """
        for limit, (used, reserved, own), asks, name, unit in zip(
            self._limits, now, needs, _NAMES, _UNITS, strict=True
        ):
            if limit is None or not asks:
                continue
            if not was_refused and room_of(limit, (used, reserved, own), asks) >= asks:
                continue
            if unit > 1:
                limit, used, reserved, own, asks = (
                    each / unit for each in (limit, used, reserved, own, asks)
                )
            raise make_error(
                "",
                name,
                str(limit),
                "this request of some %s would exceed it: %s are used, and %s are reserved for "
                "others" % (asks, used, reserved - own),
                limit,
                used,
                reserved - own + asks,
                "give the swarm a smaller task, or raise resource_limits",
            )


class TaskProviders(ProviderOrder):
    """The providers of *order* for one task.

    said  the words of the task, without its input: rules see these when none fits words and input
    """

    def __init__(self, order: ProviderOrder, said: str, **changes):
        self.__dict__.update(order.__dict__, **changes)
        self._rules: dict = {}
        self._said = said

    def _at(self, place: int) -> tuple:
        name, provider = super()._at(place)
        if name == "reflex":
            if place not in self._rules:
                self._rules[place] = self._rules_of(provider)
            provider = self._rules[place]
        return name, provider

    def _rules_of(self, provider):
        return type(provider)(provider._rules, self._said)


class MeteredProviders(TaskProviders):
    """The same, and *meter* counts their use."""

    def __init__(self, order: ProviderOrder, said: str, meter: TaskMeter):
        super().__init__(order, said, _meter=meter)

    def ask(self, history):
        return _reserving(super().ask(history), self._meter)

    def text(self, prompt: str, most: int, place=None):
        return _reserving(super().text(prompt, most, place), self._meter)


def _reserving(work, meter: TaskMeter):
    """Carry on *work*, a generator of effects, but nothing is sent before what it may use is
    reserved.
    """
    resume, given = work.send, None
    while True:
        try:
            effect = resume(given)
        except StopIteration as end:
            return end.value
        try:
            yield from meter.wait()
            resume, given = work.send, (yield effect)
        except GeneratorExit:
            work.close()
            raise
        except BaseException as e:
            resume, given = work.throw, e


def meter_task(order: ProviderOrder, said: str, bus, task: str, swarm) -> tuple:
    """Return (what the turn of a task that says *said* asks, its ``TaskMeter``, None where nothing
    is counted).
    """
    if not isinstance(order._meter, Meter):  # nothing that costs is asked
        return TaskProviders(order, said), None
    meter = TaskMeter(order._meter, bus, task, swarm)
    return MeteredProviders(order, said, meter), meter
