"""The token of a build for an MCP server at a URL, by client credentials or in the name of the
person who builds: what a device does with linux/mcp/remote_token.py, here with one connection that
is waited for.

A build keeps no token: the agent gets its own, and its person signs in on its device.
"""

import json
import os
import socket
import ssl
import sys
import time

from clawlite.core.base.effect import CLOSE, OPEN, RECEIVE, SLEEP
from clawlite.core.base.errors import ClawError, ProviderError
from clawlite.core.net.oauth2 import token
from clawlite.core.providers.wire import Codec
from clawlite.host.mcp.listing import now_ms, read_json
from clawlite.protocols.net import device_flow
from clawlite.protocols.net.device_flow import sign_in

_PIECE = 16384


class _Meter:
    def now_ms(self) -> int:
        return now_ms()

    def now_s(self) -> int:
        return int(time.time())


def header(oauth2, row: list, url: str, authorities: list) -> tuple[str, str]:
    """Return the header that requests to the MCP server at *url* have.

    oauth2       ``mcp_settings.MCPOAuth2``; the secret comes from the variable of its name
    row          of ``pinned.image_row``
    authorities  as in remote_listing.py
    Raises ``ClawError``.
    """
    *row, _, resource, device = row
    codec = Codec(read_json, json.dumps)
    if device is not None:
        if not sys.stderr.isatty():
            raise ClawError(
                f"the MCP server {url} wants a person to sign in before it lists its tools",
                "run clawlite build at a terminal; clawlite.lock keeps the answer",
            )
        *place, name = device
        secret = _read_secret(url, name) if name else ""
        work = sign_in(row, tuple(place), codec, read_json, _Meter(), resource, _tell, secret)
    else:
        work = token(row, _read_secret(url, oauth2.credential), codec, _Meter(), resource)
    try:
        found = _carry_out(work, authorities)
    except ClawError as e:
        raise ClawError(
            f"the MCP server {url}: {e.message}", "look at [mcp.NAME] oauth2 in clawlite.toml"
        ) from None
    if device is not None:
        found, _ = found
    return "Authorization", "Bearer " + found.value


def _read_secret(url: str, name: str) -> str:
    if name not in os.environ:
        raise ClawError(
            f"the MCP server {url} gets tokens for the secret {name}, which is not known here",
            f"set the variable {name} for the build, which asks it for its tools",
        )
    return os.environ[name]


def _tell(uri: str, code: str, whole: str, seconds: int) -> None:
    sys.stderr.write(device_flow.sign_in_text(uri, code, whole, seconds) + "\n")
    sys.stderr.flush()


def _carry_out(work, authorities: list):
    """Carry out the effects of *work*; return its result."""
    connection = None
    outcome: tuple | None = None
    try:
        while True:
            kind, *details = work.send(outcome)
            outcome = None
            if kind == SLEEP:
                (ms,) = details
                time.sleep(ms / 1000)
            elif kind in (OPEN, CLOSE) and connection is not None:
                connection.close()
                connection = None
            if kind == OPEN:
                scheme, host, port, parts, timeout_ms = details
                connection = _connect(scheme, host, port, parts, timeout_ms, authorities)
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


def _connect(scheme: str, host: str, port: int, parts: list, timeout_ms: int, authorities: list):
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
        raise ClawError(
            f"no token from {host}: {e}",
            "check that the network and the server are up, then build again",
        ) from None
    return connection
