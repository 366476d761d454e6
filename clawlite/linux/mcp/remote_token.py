"""Tokens for an MCP server at a URL, by client credentials (OAuth 2.1; core/net/oauth2.py).

1. The authorization server is the one that clawlite.toml names: nothing that an MCP server says
   leads the client's secret elsewhere.
2. The network rules of the sandbox hold for it as for the server itself.
3. A token is asked for when a request is to be sent and none lasts.  Nothing here waits.
"""

from time import time

from clawlite.core.base.effect import CLOSE, OPEN, RECEIVE
from clawlite.core.base.errors import ProviderError
from clawlite.core.net.oauth2 import Token, token
from clawlite.core.providers.wire import Codec
from clawlite.linux.io.jsontext import dumps, loads

KEY = "token"  # of its connection


class Tokens:
    """The tokens of one server.

    row          as of core/net/oauth2.py
    secret       function() -> str; learn  function(token), for who looks for secrets
    resource     URL of the server
    connections  ``Connections``; check  function(scheme) -> what its ``open`` takes as *check*
    """

    def __init__(self, row: list, secret, learn, resource: str, connections, check):
        self._row, self._secret, self._learn, self._resource = row, secret, learn, resource
        self._connections, self._check = connections, check
        self._token: Token | None = None
        self._work: object = None  # the generator that asks
        self._now_ms = 0

    @property
    def is_asking(self) -> bool:
        """Whether a token is on its way."""
        return self._work is not None

    @property
    def value(self):
        """The last token, or None."""
        return self._token and self._token.value

    def drop(self):
        """The server has refused the token."""
        self._token = None

    def lasts(self, now_ms: int) -> bool:
        """Return whether there is a token for now; if not, one is asked for.  Raises
        ``ClawError``.
        """
        if self.is_asking:
            return False
        if self._token is not None and self._token.lasts(now_ms):
            return True
        self._now_ms = now_ms
        secret = self._secret()
        self._work = token(self._row, secret, Codec(loads, dumps), self, self._resource)
        self._go_on(self._work, None)
        return False

    def take(self, kind: str, data, now_ms: int):
        """Take an event of the connection ``KEY``.  Raises ``ClawError``: there is no token."""
        self._now_ms = now_ms
        if self._work is None:  # the token was whole before the answer was: the end of its chunks
            return
        if kind == "refused":
            self._work = None
            raise data
        outcome = (False, ProviderError(data)) if kind == "error" else (True, data)
        self._go_on(self._work, outcome)

    def _go_on(self, work, outcome):
        try:
            effect = work.send(outcome)
            while effect[0] != RECEIVE:
                if effect[0] == OPEN:
                    _, scheme, host, port, parts, timeout_ms = effect
                    check = self._check(scheme)
                    self._connections.open(KEY, scheme, host, port, parts, timeout_ms, check)
                elif effect[0] == CLOSE:
                    self._connections.close(KEY)
                effect = work.send(None)
        except StopIteration as e:
            self._work, self._token = None, e.value
            self._learn(e.value.value)
        except Exception:
            self._work = None
            raise

    # -- the meter of core/net/oauth2.py

    def now_ms(self) -> int:
        return self._now_ms

    def now_s(self) -> int:
        return int(time())
