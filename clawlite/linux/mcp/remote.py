"""The connections to an MCP server over Streamable HTTP (core/mcp/mcp_http.py), in the place of the
process that a server on stdio has (server_process.py).

1. Each connection goes where the network rules of the sandbox let tools go; http to this machine
   alone.  An address that stands in the maker's own manifest may be private.
2. The credentials of clawlite.toml for its host are put on the wire here, and nowhere else.
"""

import os

from clawlite.core.base.errors import ClawError
from clawlite.core.mcp.mcp_http import HTTPClient
from clawlite.core.net.http1 import request
from clawlite.core.net.netaddress import address_of, is_loopback
from clawlite.core.net.netrules import authority, decide_addresses, decide_host, parse_url, refusal
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.net.connections import Connections

CONNECT_MS = 10000
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
    """

    def __init__(self, url: str, rules, headers: list, injections: list, authorities: list):
        self.url = parse_url(url)
        self._rules = _Named(rules) if _is_address(self.url[_HOST]) else rules
        decide_host(self._rules, self.url[_HOST])
        self._headers = headers
        self._injections = [one for one in injections if one[0] == self.url[_HOST]]
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._connections = Connections(self._writer, None, authorities)
        self.stream = _Wake(self._reader)

    def client(self, version: str, now_ms: int, is_handshake: bool) -> HTTPClient:
        return HTTPClient(self.url, (loads, dumps), version, now_ms, is_handshake)

    def send(self, client: HTTPClient, now_ms: int):
        """Open what *client* wants.  Raises ``ClawError``."""
        wanted = client.requests(now_ms)
        self._drop(client)
        scheme, host, port, _ = self.url
        for key, verb, target, headers, body in wanted:
            headers = (
                self._headers + [(name, value()) for _, name, value in self._injections] + (headers)
            )
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
            done += client.take(key, kind, data, now_ms)
            self._drop(client)
        return done

    def _drop(self, client: HTTPClient):
        for key in client.closed:
            self._connections.close(key)
        client.closed.clear()

    def _check(self, addresses: list) -> list:
        scheme, host = self.url[_SCHEME], self.url[_HOST]
        if scheme == "http" and not all(is_loopback(address) for address in addresses):
            raise refusal(
                self._rules,
                host,
                "http",
                "%s is not this machine, and http:// is for this machine only" % host,
                "use https://",
            )
        return decide_addresses(self._rules, host, addresses)

    def has_ended(self) -> bool:
        return True

    def errors(self) -> str:
        return ""

    def end(self):
        self._connections.close_all()
        os.close(self._reader)
        os.close(self._writer)


class _Named:
    """The rules of *profile* for an address that stands in the manifest: it may be private."""

    block_private = False

    def __init__(self, profile):
        self.name, self.network, self.hosts = profile.name, profile.network, profile.hosts


def _is_address(host: str) -> bool:
    return host == "localhost" or address_of(host) is not None
