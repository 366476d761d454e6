"""Tokens for an MCP server at a URL (OAuth 2.1), by client credentials (core/net/oauth2.py) or in
the name of a person, who has signed in once (protocols/net/device_flow.py).

1. The authorization server is the one that clawlite.toml names, at the addresses that were pinned
   when the agent was built: nothing that an MCP server says leads a secret elsewhere.
2. The network rules of the sandbox hold for it as for the server itself.
3. A token is asked for when a request is to be sent and none lasts.  Nothing here waits.
4. A refresh token that the server gives in place of the last one is kept as the agent's secret.
   One process of the agent renews at a time, because a server may end a sign-in whose refresh
   token comes twice; the next one begins with what that one has kept.
5. An answer that is not whole in time is given up, whatever comes of it meanwhile: the next call
   asks again.
"""

from time import time
from typing import Any

from clawlite.core.base.effect import CLOSE, OPEN, RECEIVE
from clawlite.core.base.errors import ClawError, ProviderError
from clawlite.core.net.oauth2 import Token, token
from clawlite.core.providers.wire import Codec
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.protocols.net.device_flow import Ended, renew

KEY = "token"  # of its connection
ANSWER_MS = 30000  # that an answer may take
AGAIN_MS = 200  # until it is looked again whether another process has renewed


class Secret:
    """The secret of a client, or the refresh token of a person.

    name  str;  value  function() -> str
    learn function(token), so that leak scans know it
    Of a person it has more:
    keep     function(str) that keeps another value in its place; None: it never changes
    renewal  ``secrets.Renewal``;  client: function() -> the client's own secret, or ""
    """

    def __init__(self, name: str, value, learn):
        self.name, self.value, self.learn = name, value, learn
        self.keep: Any = None
        self.renewal: Any = None
        self.client: Any = None


class Tokens:
    """The tokens of one server.

    row          as of core/net/oauth2.py
    secret       ``Secret``
    resource     that the tokens are for (RFC 8707)
    connections  ``Connections``; check  function(scheme) -> what its ``open`` takes as *check*
    """

    def __init__(self, row: list, secret: Secret, resource: str, connections, check):
        self._row, self._secret, self._resource = row, secret, resource
        self._connections, self._check = connections, check
        self._token: Token | None = None
        self._work: object = None  # the generator that asks
        self._ends_ms = 0  # when it is given up
        self._now_ms = 0
        self._used = ""  # the refresh token that was shown last
        self.retry_ms: int | None = None  # when to look again, while another process renews it
        self._unkept = ""  # one that could not be written: it counts as long as this process lives

    @property
    def is_asking(self) -> bool:
        """Whether a token is on its way, here or in another process."""
        return self._work is not None or self.retry_ms is not None

    @property
    def due_ms(self):
        """When ``ensure_token`` has something to do by itself, or None."""
        return self.retry_ms if self._work is None else self._ends_ms

    @property
    def value(self):
        """The last token, or None."""
        return self._token and self._token.value

    def drop(self):
        """The server has refused the token."""
        self._token = None

    def ensure_token(self, now_ms: int) -> bool:
        """Return whether there is a token for now; if not, one is asked for.  Raises
        ``ClawError``.
        """
        if self._work is not None and now_ms >= self._ends_ms:
            self._connections.close(KEY)
            self.close()
            raise ProviderError(
                "no token from %s: it did not answer within %d s"
                % (self._row[1], ANSWER_MS // 1000),
                "look whether that server works, or name another token endpoint",
            )
        if self._work is not None or self.retry_ms is not None and now_ms < self.retry_ms:
            return False
        if self._token is not None and self._token.lasts(now_ms):
            return True
        self._now_ms = now_ms
        self._begin()
        return False

    def close(self):
        """Nothing is asked for any more."""
        self._work = self.retry_ms = None
        if self._secret.renewal is not None:
            self._secret.renewal.release()

    def _begin(self):
        codec = Codec(loads, dumps)
        if self._secret.keep is None:
            work = token(self._row, self._secret.value(), codec, self, self._resource)
        else:
            if not self._take_lock():
                return
            try:
                self._used = self._unkept or self._refresh_token()
                own = self._secret.client()
            except ClawError:
                self._secret.renewal.release()
                raise
            work = renew(self._row, self._used, codec, loads, self, self._resource, own)
        self._work, self._ends_ms = work, self._now_ms + ANSWER_MS
        self._go_on(work, None)

    def _take_lock(self) -> bool:
        """Return whether it is this process that renews now."""
        self.retry_ms = None
        try:
            if self._secret.renewal.take():
                return True
        except OSError as e:
            raise ClawError(
                "%s cannot be renewed: %s" % (self._secret.name, e.strerror),
                "check the disk, and who may write the store of secrets",
            ) from None
        self.retry_ms = self._now_ms + AGAIN_MS
        return False

    def _refresh_token(self) -> str:
        try:
            return self._secret.value()
        except ClawError as e:
            if getattr(e, "is_missing", False):
                e.message = "a person has to sign in first, %s: %s" % (
                    self._sign_in_command(),
                    e.message,
                )
            raise

    def take(self, kind: str, data, now_ms: int):
        """Take an event of the connection ``KEY``.  Raises ``ClawError``: there is no token."""
        self._now_ms = now_ms
        if self._work is None:  # the token was whole before the answer was: the end of its chunks
            return
        if kind == "refused":
            self.close()
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
            if self._secret.keep is not None:
                self._token, refresh = e.value
                self._keep_refresh(refresh)
            self._secret.learn(self._token.value)
            self.close()
        except Ended as e:
            self.close()
            self._handle_ended(e)
        except Exception:
            self.close()
            raise

    def _keep_refresh(self, refresh: str):
        if refresh == self._used:
            return
        self._secret.learn(refresh)
        try:
            self._secret.keep(refresh)
            self._unkept = ""
        except (OSError, ClawError):  # no room: it is tried again with the next one
            self._unkept = refresh

    def _handle_ended(self, e: Ended):
        """The person may have signed in anew meanwhile: then that counts."""
        self._unkept = ""
        if self._refresh_token() != self._used:
            self._begin()
            return
        e.message = "%s: the person has to sign in again, %s" % (e.message, self._sign_in_command())
        raise e

    def _sign_in_command(self) -> str:
        return "with clawlite secrets login " + self._secret.name

    # -- the meter of core/net/oauth2.py

    def now_ms(self) -> int:
        return self._now_ms

    def now_s(self) -> int:
        return int(time())
