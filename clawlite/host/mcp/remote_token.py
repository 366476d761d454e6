"""The token of a build for an MCP server at a URL, by client credentials: what a device does with
linux/mcp/remote_token.py, here with one connection that is waited for.
"""

import json
import os
import socket
import ssl
import time

from clawlite.core.base.effect import OPEN, RECEIVE
from clawlite.core.base.errors import ClawError, ProviderError
from clawlite.core.net.oauth2 import token
from clawlite.core.providers.wire import Codec
from clawlite.host.mcp.listing import now_ms, read_json
from clawlite.host.providers.remotes import token_row

_PIECE = 16384


class _Meter:
    def now_ms(self) -> int:
        return now_ms()

    def now_s(self) -> int:
        return int(time.time())


def header(oauth2, url: str, authorities: list) -> tuple[str, str]:
    """Return the header that requests to the MCP server at *url* have.

    oauth2       ``settings.MCPOAuth2``; the secret comes from the variable of its name
    authorities  as in remote_listing.py
    Raises ``ClawError``.
    """
    if oauth2.credential not in os.environ:
        raise ClawError(
            f"the MCP server {url} gets tokens for the secret {oauth2.credential}, which is "
            "not known here",
            f"set the variable {oauth2.credential} for the build, which asks it for its tools",
        )
    codec = Codec(read_json, json.dumps)
    work = token(token_row(oauth2), os.environ[oauth2.credential], codec, _Meter(), url)
    try:
        found = _carried_out(work, authorities)
    except ClawError as e:
        raise ClawError(
            f"the MCP server {url}: {e.message}", "look at [mcp.NAME] oauth2 in clawlite.toml"
        ) from None
    return "Authorization", "Bearer " + found.value


def _carried_out(work, authorities: list):
    """Carry out the effects of *work*; return its result."""
    connection = None
    outcome: tuple | None = None
    try:
        while True:
            kind, *details = work.send(outcome)
            outcome = None
            if kind == OPEN:
                scheme, host, port, parts, timeout_ms = details
                connection = _opened(scheme, host, port, parts, timeout_ms, authorities)
            elif kind == RECEIVE and connection is not None:
                (timeout_ms,) = details
                connection.settimeout(timeout_ms / 1000)
                try:
                    outcome = (True, connection.recv(_PIECE))
                except OSError as e:
                    outcome = (False, ProviderError(str(e) or type(e).__name__))
    except StopIteration as e:
        return e.value
    finally:
        if connection is not None:
            connection.close()


def _opened(scheme: str, host: str, port: int, parts: list, timeout_ms: int, authorities: list):
    connection = None
    try:
        connection = socket.create_connection((host, port), timeout_ms / 1000)
        if scheme == "https":
            context = ssl.create_default_context(cadata=b"".join(authorities) or None)
            connection = context.wrap_socket(connection, server_hostname=host)
        connection.sendall(b"".join(parts))
    except OSError as e:
        if connection is not None:
            connection.close()
        raise ClawError(f"no token from {host}: {e}") from None
    return connection
