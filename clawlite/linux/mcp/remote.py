"""The connections to an MCP server over Streamable HTTP (protocols/mcp/mcp_http.py), in the
place of the process that a server on stdio has (server_process.py).

1. Each connection goes where the network rules of the sandbox let tools go; http to this machine
   alone.  An address that stands in the maker's own manifest may be private.
2. The credentials of clawlite.toml for its host are put on the wire here, and nowhere else.
3. With OAuth, nothing is sent before there is a token (remote_token.py).
4. A session is ended with its agent (DELETE), which waits ``GOODBYE_MS`` for it and no longer.
"""

import os
import select
from time import monotonic

from clawlite.core.base.errors import ClawError
from clawlite.core.net.http1 import request
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.mcp.remote_token import KEY, Tokens
from clawlite.linux.net.connections import Connections
from clawlite.protocols.mcp.mcp_http import HTTPClient
from clawlite.protocols.net.netaddress import address_of, is_loopback
from clawlite.protocols.net.netrules import (
    OwnAddress,
    authority,
    decide_addresses,
    decide_host,
    parse_url,
    refusal,
)

CONNECT_MS = 10000
GOODBYE_MS = 1000  # for the ends of all sessions together
_SCHEME, _HOST, _PORT = range(3)


class _Wake:
    """What the loop watches: readable when a connection has something."""

    def __init__(self, reader: int):
        self._reader = reader

    def fileno(self) -> int:
        return self._reader


class RemoteServer:
    """A server at a URL.

    url         str
    rules       profile whose network fields decide
    headers     list of (name, value) of clawlite.toml
    injections  list of (host, header name, function -> value)
    authorities as in net/tls.py
    oauth       None, or (row of core/net/oauth2.py, ``Secret``, resource)
    """

    def __init__(
        self, url: str, rules, headers: list, injections: list, authorities: list, oauth=None
    ):
        self.url = parse_url(url)
        self._rules = OwnAddress(rules) if _is_address(self.url[_HOST]) else rules
        decide_host(self._rules, self.url[_HOST])
        self._headers = headers
        self._injections = [one for one in injections if one[0] == self.url[_HOST]]
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._connections = Connections(self._writer, None, authorities)
        self.stream = _Wake(self._reader)
        self._parts = False  # the end of its session is under way
        self._tokens = None
        if oauth is not None:
            row, secret, resource = oauth
            _, host, *_ = row
            named = OwnAddress(rules) if _is_address(host) else rules
            decide_host(named, host)
            self._tokens = Tokens(
                row,
                secret,
                resource,
                self._connections,
                lambda scheme: lambda found: _check_addresses(named, scheme, host, found),
            )

    @property
    def is_waiting(self) -> bool:
        """Whether nothing can be sent until a token comes."""
        return self._tokens is not None and self._tokens.is_asking

    @property
    def retry_ms(self):
        """When ``send`` has to be called because a token may be there by then, or is given up, or
        None.
        """
        return None if self._tokens is None else self._tokens.due_ms

    def client(self, version: str, now_ms: int, is_handshake: bool, asks: bool) -> HTTPClient:
        return HTTPClient(
            self.url,
            (loads, dumps),
            version,
            now_ms,
            is_handshake,
            asks,
            self._tokens is not None,
        )

    def send(self, client: HTTPClient, now_ms: int):
        """Open what *client* wants.  Raises ``ClawError``."""
        if self._tokens is not None:
            if client.take_refusal():
                self._tokens.drop()
            if not self._tokens.ensure_token(now_ms):
                return
        wanted = client.requests(now_ms)
        self._drop(client)
        for one in wanted:
            self._open(*one)

    def _open(self, key, verb: str, target: str, headers: list, body):
        scheme, host, port, _ = self.url
        injected = [(name, value()) for _, name, value in self._injections]
        if self._tokens is not None and self._tokens.value is not None:
            injected.append(("Authorization", "Bearer " + self._tokens.value))
        headers = self._headers + injected + headers
        size = None if body is None else len(body)
        try:
            head = request(verb, target, authority(scheme, host, port), headers, size)
        except ValueError as e:
            raise ClawError(str(e)) from None
        parts = [head, body or b""]
        self._connections.open(key, scheme, host, port, parts, CONNECT_MS, self._check)

    def receive(self, client: HTTPClient, now_ms: int) -> list:
        """Return [(task, outcome), ...] of what has come, never waiting.  Raises ``ClawError``."""
        try:
            os.read(self._reader, 512)
        except BlockingIOError:
            pass
        done = []
        for key, kind, data in self._connections.poll():
            if key == KEY and self._tokens is not None:
                self._tokens.take(kind, data, now_ms)
                client.begin(now_ms)
                continue
            done += client.take(key, kind, data, now_ms)
            self._drop(client)
        return done

    def _drop(self, client: HTTPClient):
        for key in client.closed:
            self._connections.close(key)
        client.closed.clear()

    def _check(self, addresses: list) -> list:
        return _check_addresses(self._rules, self.url[_SCHEME], self.url[_HOST], addresses)

    def part(self, client: HTTPClient):
        """Begin to end the session, if there is one; nothing else is heard any more."""
        self._connections.close_all()
        last = client.goodbye()
        if last is not None:
            try:
                self._open(*last)
                self._parts = True
            except ClawError:  # a credential that has gone: the server ends the session by itself
                pass

    def wait(self, until_s: float):
        """Wait until the end of the session is answered, at most until *until_s*."""
        while self._parts:
            left = until_s - monotonic()
            if left <= 0 or not select.select([self._reader], (), (), left)[0]:
                return
            os.read(self._reader, 512)
            self._parts = not self._connections.poll()

    def has_ended(self) -> bool:
        return True

    def errors(self) -> str:
        return ""

    def end(self):
        self._connections.close_all()
        if self._tokens is not None:
            self._tokens.close()
        ends, self._reader, self._writer = (self._reader, self._writer), -1, -1
        for fd in ends:
            if fd >= 0:
                os.close(fd)


def _check_addresses(rules, scheme: str, host: str, addresses: list) -> list:
    """Return those of *addresses* that may be connected to.  Raises ``SandboxDenied``."""
    if scheme == "http" and not all(is_loopback(address) for address in addresses):
        raise refusal(
            rules,
            host,
            "http",
            "%s is not this machine, and http:// is for this machine only" % host,
            "use https://",
        )
    return decide_addresses(rules, host, addresses)


def _is_address(host: str) -> bool:
    return host == "localhost" or address_of(host) is not None
