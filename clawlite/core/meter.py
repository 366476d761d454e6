"""What providers have used, held against the limits of each (CKP 0.2.0, 5.2) and of all together (5.8, ``rate_limits``).

Tokens are counted as the provider reports them, else as a quarter of the bytes; money in nano-dollars, by the price table.
Days and hours are those of UTC; until the clock is set, and while it has gone back, the last one goes on.  What is spent
survives a restart: the shell stores the entries that ``spend`` returns, and adds them to what other processes of the same
agent have stored (``add``).
"""
from clawlite.core.errors import QuotaExceeded

MAX_TOKENS = 4096               # of an answer, unless a limit says less
DAY, HOUR = 86400, 3600
ALL_TOKENS, ALL_COST = ".tokens", ".cost"       # of all providers; no name of one has a dot
_MINUTE_MS = 60000
_NANO = 1000000000


class Meter:
    """The meters of one agent.

    clock      function -> (monotonic ms, seconds since 1970 or None while the clock is unset)
    stored     function -> {key: [number of the day or hour, amount]}: what is spent, as it stands now
    per_hour   tokens of all providers, or None
    cost       nano-dollars of all providers in a day, or None
    """

    def __init__(self, clock, stored, per_hour=None, cost=None):
        self._clock = clock
        self._stored = stored
        self._per_hour = per_hour
        self._cost = cost
        self._sent = {}                 # provider -> monotonic ms of its requests of the last minute
        self._seed = clock()[0] & 0x3fffffff

    def now_ms(self) -> int:
        return self._clock()[0]

    def now_s(self):
        """Return the seconds since 1970, or None."""
        return self._clock()[1]

    def jitter(self, most_ms: int) -> int:
        """Return 0..most_ms, another one each time."""
        self._seed = (self._seed * 1103515245 + 12345) & 0x3fffffff
        return self._seed % (most_ms + 1)

    def pause(self, provider) -> int:
        """Return the milliseconds until ``requests_per_minute`` of *provider* admits one more.

        Raises ``QuotaExceeded`` when it never does.
        """
        if provider.per_minute is None:
            return 0
        if provider.per_minute < 1:
            raise _exceeded(provider.name, "requests_per_minute", "0", "any request exceeds it")
        now = self.now_ms()
        sent = self._sent.get(provider.name, [])
        while sent and now - sent[0] >= _MINUTE_MS:
            sent.pop(0)
        if len(sent) < provider.per_minute:
            return 0
        return _MINUTE_MS - (now - sent[-provider.per_minute])

    def sent(self, provider):
        """Count a request to *provider*."""
        if provider.per_minute is not None:
            self._sent.setdefault(provider.name, []).append(self.now_ms())

    def allowed(self, provider, asked: int, most=None) -> int:
        """Return the tokens that an answer may have after a request of *asked* tokens.

        most  so many must be admitted, and no more are wanted; None: at least one, and MAX_TOKENS are
        Raises ``QuotaExceeded`` (-32021) before a request that a limit does not admit.
        """
        allowed = MAX_TOKENS if most is None else most
        least = 1 if most is None else most
        for name, limit, used in (("tokens_per_day", provider.per_day, self.used(provider.name, DAY)),
                                  ("tokens_per_request", provider.per_request, 0), ("max_context_window", provider.window, 0),
                                  ("tokens_per_hour", self._per_hour, self.used(ALL_TOKENS, HOUR))):
            if limit is not None:
                left = limit - used - asked
                if left < least:
                    raise _exceeded(provider.name, name, str(limit), "this request of some %d tokens would exceed it%s"
                                    % (asked, " (%d are used)" % used if used else ""))
                allowed = left if left < allowed else allowed
        if self._cost is not None:
            used = self.used(ALL_COST, DAY)
            read, written = provider.prices
            left = self._cost - used
            price = asked * read + least * written
            if price and left < price:
                raise _exceeded(provider.name, "cost_per_day_usd", _dollars(self._cost),
                                "this request of some %d tokens would exceed it (%s are spent)" % (asked, _dollars(used)))
            most = (left - asked * read) // written if written else allowed
            allowed = most if most < allowed else allowed
        return allowed

    def used(self, key: str, seconds: int) -> int:
        """Return what *key* has used in this period of so many *seconds*."""
        period, amount = self._stored().get(key, (0, 0))
        return amount if period == self._period(period, seconds) else 0

    def spend(self, provider, read: int, written: int) -> list:
        """Return [[key, period, amount], ...] for ``add``: what an answer used of the limits that there are.

        read, written  tokens
        """
        used = []
        if provider.per_day is not None:
            used.append((provider.name, DAY, read + written))
        if self._per_hour is not None:
            used.append((ALL_TOKENS, HOUR, read + written))
        if self._cost is not None:
            used.append((ALL_COST, DAY, read * provider.prices[0] + written * provider.prices[1]))
        stored = self._stored()
        return [[key, self._period(stored.get(key, (0, 0))[0], seconds), amount] for key, seconds, amount in used if amount]

    def _period(self, last: int, seconds: int) -> int:
        """Return the number of this period; the last known one while the clock is unset or has gone back."""
        epoch = self.now_s()
        period = last if epoch is None else epoch // seconds
        return period if period > last else last


def add(stored: dict, entries: list) -> None:
    """Add the *entries* of ``Meter.spend`` to *stored*, in place; an amount of a period that is over counts for the last one."""
    for key, period, amount in entries:
        last, used = stored.get(key, (0, 0))
        stored[key] = [period, amount] if period > last else [last, used + amount]


def _exceeded(provider: str, name: str, limit: str, why: str):
    return QuotaExceeded("provider %s: %s is %s, and %s" % (provider, name, limit, why), "", {"provider": provider, "limit": name})


def _dollars(nano: int) -> str:
    return "%d.%02d" % (nano // _NANO, nano % _NANO // (_NANO // 100))
