"""What providers have used, held against their limits (CKP 0.2.0, 5.2).

Tokens are counted as the provider reports them, else as a quarter of the bytes.  A day is a UTC day; until the clock is
set it does not end.  What is spent survives a restart: the shell stores the dict that ``spend`` returns.
"""
from clawlite.core.errors import QuotaExceeded

MAX_TOKENS = 4096               # of an answer, unless a limit says less
_MINUTE_MS = 60000


class Meter:
    """The meters of one agent.

    clock  function -> (monotonic ms, seconds since 1970 or None while the clock is unset)
    spent  {provider: [day, tokens]}, as the last run stored it
    """

    def __init__(self, clock, spent: dict = None):
        self._clock = clock
        self._spent = spent if spent is not None else {}
        self._sent = {}                 # provider -> monotonic ms of its requests of the last minute
        self._seed = clock()[0] & 0x3fffffff

    def jitter(self, most_ms: int) -> int:
        """Return 0..most_ms, another one each time."""
        self._seed = (self._seed * 1103515245 + 12345) & 0x3fffffff
        return self._seed % (most_ms + 1)

    def pause(self, provider) -> int:
        """Return the milliseconds until ``requests_per_minute`` of *provider* admits one more."""
        now = self._clock()[0]
        sent = self._sent.get(provider.name, [])
        while sent and now - sent[0] >= _MINUTE_MS:
            sent.pop(0)
        if not provider.per_minute or len(sent) < provider.per_minute:
            return 0
        return _MINUTE_MS - (now - sent[-provider.per_minute])

    def sent(self, provider):
        """Count a request to *provider*."""
        if provider.per_minute:
            self._sent.setdefault(provider.name, []).append(self._clock()[0])

    def allowed(self, provider, asked: int) -> int:
        """Return the tokens that an answer may have after a request of *asked* tokens.

        Raises ``QuotaExceeded`` (-32021) before a request that a limit does not admit.
        """
        allowed = MAX_TOKENS
        for name, limit, used in (("tokens_per_day", provider.per_day, self.today(provider.name)),
                                  ("tokens_per_request", provider.per_request, 0), ("max_context_window", provider.window, 0)):
            if limit:
                left = limit - used - asked
                if left < 1:
                    raise QuotaExceeded("provider %s: %s is %d, and this request of some %d tokens would exceed it%s"
                                        % (provider.name, name, limit, asked, " (%d are used)" % used if used else ""),
                                        "", {"provider": provider.name, "limit": name})
                allowed = left if left < allowed else allowed
        return allowed

    def today(self, name: str) -> int:
        """Return the tokens that the provider *name* has used on this day."""
        day, tokens = self._spent.get(name, (0, 0))
        return tokens if day == self._day(day) else 0

    def spend(self, provider, answer, asked: int):
        """Count an answer; return what the shell has to store, or None when nothing limits it.

        asked  tokens of the request, for a provider that does not tell
        """
        if not provider.per_day:
            return None
        tokens = asked if answer.input_tokens is None else answer.input_tokens
        tokens += len(answer.text) // 4 if answer.output_tokens is None else answer.output_tokens
        day = self._day(self._spent.get(provider.name, (0, 0))[0])
        self._spent[provider.name] = [day, self.today(provider.name) + tokens]
        return self._spent

    def _day(self, last: int) -> int:
        """Return the number of this day; the last known one while the clock is unset or has gone back."""
        epoch = self._clock()[1]
        day = last if epoch is None else epoch // 86400
        return day if day > last else last
