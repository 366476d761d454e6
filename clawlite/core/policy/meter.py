"""The use of providers, checked against the limits of each (CKP 0.2.0, 5.2) and of all together
(5.8, ``rate_limits``).

Tokens are counted as the provider reports them, or else as a quarter of the bytes.  Money is
counted in nano-dollars, by the price table.  The totals survive a restart (core/policy/ledger.py):
the shell stores the entries that ``count_answer`` returns."""

from clawlite.core.base.dialect import const
from clawlite.core.base.errors import QuotaExceeded
from clawlite.core.policy.ledger import COST, DAY, DAY_COST, DAY_TOKENS, HOUR, TOKENS, Ledger

MAX_TOKENS = 4096  # of an answer, unless a limit says less
HOUR_TOKENS = ".tokens"  # of all providers; no name of one has a dot
_MINUTE_MS = 60000
_NANO = 1000000000
_MONOTONIC_MS = const(0)  # of what a clock says
_READ = const(0)  # of tokens, and of prices
_WRITTEN = const(1)
_PERIOD = const(0)  # of what is stored


class Meter(Ledger):
    """The meters of one agent whose providers are remote.

    clock, stored, calls, add  see ``ledger.Ledger``
    per_hour               tokens of all providers, or None
    cost                   nano-dollars of all providers in a day, or None
    on_spend               function(provider, read, written), who hears of each answer, or None
    rates                  TOKENS, COST or both: rules ask what all providers have used in a day
    """

    def __init__(
        self, clock, stored, per_hour=None, cost=None, rates=0, calls=None, add=None, on_spend=None
    ):
        super().__init__(clock, stored, calls, add)
        self._on_spend = on_spend
        self._per_hour = per_hour
        self._cost = cost
        self._rates = rates
        self.owed = []  # entries of answers that were cancelled, which nobody has stored yet
        self.tokens = [0, 0]  # read and written, of all providers since the agent began
        # provider -> monotonic ms of its requests of the last minute
        self._sent = {}
        self._seed = clock()[_MONOTONIC_MS] & 0x3FFFFFFF

    def jitter(self, most_ms: int) -> int:
        """Return a number in 0..most_ms, a different one each time."""
        self._seed = (self._seed * 1103515245 + 12345) & 0x3FFFFFFF
        return self._seed % (most_ms + 1)

    def pause(self, provider) -> int:
        """Return the milliseconds until ``requests_per_minute`` of *provider* admits another
        request.

        Raises ``QuotaExceeded`` when it never will.
        """
        if provider.per_minute is None:
            return 0
        if provider.per_minute < 1:
            raise make_error(
                provider.name, "requests_per_minute", "0", "any request exceeds it", 0, 0, 1
            )
        now = self.now_ms()
        sent = self._sent.get(provider.name, [])
        while sent and now - sent[0] >= _MINUTE_MS:
            sent.pop(0)
        if len(sent) < provider.per_minute:
            return 0
        return _MINUTE_MS - (now - sent[-provider.per_minute])

    def count_request(self, provider):
        """Count a request to *provider*."""
        if provider.per_minute is not None:
            self._sent.setdefault(provider.name, []).append(self.now_ms())

    def admit_request(self, provider, asked: int, most=None, least=None) -> int:
        """Return the tokens that an answer may have after a request of *asked* tokens.

        most   so many tokens are wanted; None: MAX_TOKENS, of which one must be admitted
        least  so many must be admitted; None: all
        Raises ``QuotaExceeded`` (-32021), before the request, when a limit does not admit it.
        """
        if least is None:
            least = 1 if most is None else most
        allowed = MAX_TOKENS if most is None else most
        for name, limit, used in (
            ("tokens_per_day", provider.per_day, self.read_use(provider.name, DAY)),
            ("tokens_per_request", provider.per_request, 0),
            ("max_context_window", provider.window, 0),
            ("tokens_per_hour", self._per_hour, self.read_use(HOUR_TOKENS, HOUR)),
        ):
            if limit is not None:
                left = limit - used - asked
                if left < least:
                    raise make_error(
                        provider.name,
                        name,
                        str(limit),
                        "this request of some %d "
                        "tokens would exceed it%s"
                        % (asked, " (%d are used)" % used if used else ""),
                        limit,
                        used,
                        asked + least,
                    )
                allowed = left if left < allowed else allowed
        if self._cost is not None:
            used = self.read_use(DAY_COST, DAY)
            read, written = provider.prices
            left = self._cost - used
            price = asked * read + least * written
            if price and left < price:
                raise make_error(
                    provider.name,
                    "cost_per_day_usd",
                    _dollars(self._cost),
                    "this request of some %d tokens would exceed it (%s are spent)"
                    % (asked, _dollars(used)),
                    self._cost / _NANO,
                    used / _NANO,
                    price / _NANO,
                )
            most = (left - asked * read) // written if written else allowed
            allowed = most if most < allowed else allowed
        return allowed

    def limits_answers(self, provider) -> bool:
        """Return whether some limit says how many tokens an answer of *provider* may have."""
        limits = provider.per_day, provider.per_request, self._per_hour, self._cost
        return [limit for limit in limits if limit is not None] != []

    def owe(self, provider, read: int, written: int):
        """Keep in ``owed`` the use of a cancelled answer, whose task can yield no more effects."""
        self.owed = self.owed + self.count_answer(provider, read, written)

    def take_owed(self) -> list | tuple:
        """Return the entries that nobody has stored yet, for who stores them now."""
        owed, self.owed = self.owed, []
        return owed

    def count_answer(self, provider, read: int, written: int) -> list:
        """Return [[key, period, amount], ...] for ``ledger.count_use``: the use of an
        answer, for each limit that exists.

        read, written  tokens
        """
        self.tokens = [self.tokens[_READ] + read, self.tokens[_WRITTEN] + written]
        if self._on_spend:
            self._on_spend(provider, read, written)
        used = []
        if provider.per_day is not None:
            used.append((provider.name, DAY, read + written))
        if self._per_hour is not None:
            used.append((HOUR_TOKENS, HOUR, read + written))
        if self._rates & TOKENS:
            used.append((DAY_TOKENS, DAY, read + written))
        if self._cost is not None or self._rates & COST:
            used.append(
                (DAY_COST, DAY, read * provider.prices[_READ] + written * provider.prices[_WRITTEN])
            )
        stored = self._stored()
        return [
            [key, self.period(stored.get(key, (0, 0))[_PERIOD], seconds), amount]
            for key, seconds, amount in used
            if amount
        ]


def make_error(provider: str, name: str, limit: str, why: str, most, used, reserved, hint=""):
    """Return the ``QuotaExceeded`` of a limit.

    most      the limit; *used* of it are used already, and *reserved* would be needed by the
              request; all in tokens, dollars or requests
    provider  the provider that has the limit; "": the swarm has it
    """
    data = {"limit": name, "max": most, "used": used, "reserved": reserved}
    if provider:
        data["provider"] = provider
    whose = "provider %s:" % provider if provider else "the swarm's"
    return QuotaExceeded("%s %s is %s, and %s" % (whose, name, limit, why), hint, data)


def _dollars(nano: int) -> str:
    return "%d.%02d" % (nano // _NANO, nano % _NANO // (_NANO // 100))
