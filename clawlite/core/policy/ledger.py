"""How much of its limits an agent has used: by day, by hour, and its tool calls of the last minute
(CKP 0.2.0, 5.8).

A shell keeps one dict {key: [when, amount, ...]} over restarts and shares it with other processes
of the same agent: it calls ``count_use`` when it performs a STORE effect.

1. Days and hours are in UTC, with one pair for each key.  While the clock is unset or has gone
   back, the last period goes on.
2. The calls of the last minute (CALLS) have a pair for each moment, so that no interval of a minute
   has more calls than the limit.  Their time never goes back: it follows the monotonic clock, and
   continues after a restart where it was, or later.
3. A call that the limit refuses is not counted; else a loop of refused calls would never end.
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.effect import STORE
from clawlite.core.base.errors import PolicyDenied

DAY, HOUR = 86400, 3600
CALLS, DAY_TOKENS, DAY_COST = ".calls", ".day", ".cost"  # no name of a provider has a dot
ENTRY_KEY, ENTRY_AMOUNT = 0, 2  # positions in an entry of STORE; the amount of CALLS is the limit
TOKENS, COST = 1, 2  # bits of ``AgentInfo.rates``: which amounts rules ask for
_MINUTE_MS = 60000
_SET_MS = 1700000000000  # a clock that shows less has not been set
# up to this many calls a minute are stored to the ms; with more, the calls of a second share a pair
_EXACT = 60
_MONOTONIC_MS = const(0)  # of what a clock says
_SECONDS = const(1)
_LAST_MS = const(-2)  # of the pairs of CALLS
_LAST_COUNT = const(-1)


class Ledger:
    """What one agent has used.

    clock   function -> (monotonic ms, seconds since 1970 or None while the clock is unset)
    stored  function -> the dict above, as it stands now
    calls   the same for CALLS, where a shell keeps those elsewhere
    add     function(entries) -> the value of the effect STORE for them; the shell sets it
    owed, tokens  what ``meter.Meter`` has of providers: nothing here
    """

    owed = tokens = ()

    def __init__(self, clock, stored, calls=None, add=None):
        self._clock = clock
        self._stored = stored
        self._calls = calls or stored
        self.add = add
        self._ahead_ms = None  # how far the time of the calls is ahead of the monotonic clock
        self._born_ms = clock()[_MONOTONIC_MS]

    def now_ms(self) -> int:
        return self._clock()[_MONOTONIC_MS]

    def now_s(self):
        """Return the seconds since 1970, or None."""
        return self._clock()[_SECONDS]

    def read_use(self, key: str, seconds: int) -> int:
        """Return how much *key* has used in this period of *seconds*."""
        period, amount = self._stored().get(key, (0, 0))
        return amount if period == self.period(period, seconds) else 0

    def period(self, last: int, seconds: int) -> int:
        """Return the number of this period, or *last*, the last known one, while the clock is unset
        or has gone back.
        """
        epoch = self.now_s()
        period = last if epoch is None else epoch // seconds
        return period if period > last else last

    def read_use_of_day(self) -> tuple:
        """Return (tokens, nano-dollars) that all providers have used today, for rules with a
        ``rate_limit``.
        """
        return self.read_use(DAY_TOKENS, DAY), self.read_use(DAY_COST, DAY)

    def make_call_entries(self, most: int) -> list:
        """Return the entries that count one tool call, with a limit of *most* in any minute.
        ``count_use`` says whether the call is admitted.
        """
        ms, epoch = self._clock()
        last = (self._calls().get(CALLS) or (0, 0))[_LAST_MS]
        # after a restart, time has gone on if the clock is set now and was set before
        if self._ahead_ms is None:
            now = last + ms - self._born_ms  # at least so late
            free = not last or last > _SET_MS
        else:
            now = ms + self._ahead_ms
            if now < last:  # another process counts, and its time is ahead
                now = last
            free = now - last > _MINUTE_MS + 1000  # every counted call is older than a minute
        if free and epoch is not None and epoch * 1000 > now:
            now = epoch * 1000
        self._ahead_ms = now - ms
        return [[CALLS, now, most]]


def admit(most: int, tool, event: dict):
    """A generator of effects that counts a call of *tool*, with a limit of *most* in any minute.

    event  the log event of the call
    Raises ``PolicyDenied`` when the limit does not admit the call, and when nobody counts calls.
    """
    done, admitted = yield (STORE, [[CALLS, 0, most]])
    if not (done and admitted):
        event["limit"] = "tool_calls_per_minute"
        raise PolicyDenied(
            "Policy denied: tool_calls_per_minute is %d, and %s would exceed it"
            % (most, tool.name),
            "call it later",
            {"tool": tool.name, "action": "deny", "limit": "tool_calls_per_minute"},
        )


def count_use(stored: dict, entries: list) -> bool:
    """Add *entries* to *stored*, in place.  Return False, and count nothing, when a limit does not
    admit the call.

    An amount of a period that is over counts for the last period.
    """
    for key, period, amount in entries:
        if key == CALLS:
            return _admit(stored, period, amount)
        last, used = stored.get(key, (0, 0))
        stored[key] = [period, amount] if period > last else [last, used + amount]
    return True


def _admit(stored: dict, now: int, most: int) -> bool:
    times = stored.get(CALLS, [])
    step = 1 if most <= _EXACT else 1000
    window = _MINUTE_MS + step - 1
    kept, count = [], 0
    for at in range(0, len(times), 2):
        if now - times[at] < window:
            kept += times[at : at + 2]
            count += times[at + 1]
    if count >= most:
        return False
    now -= now % step
    if kept and kept[_LAST_MS] >= now:
        kept[_LAST_COUNT] += 1
    else:
        kept += [now, 1]
    stored[CALLS] = kept
    return True
