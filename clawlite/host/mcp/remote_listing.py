"""The tools of an MCP server over Streamable HTTP, asked of the server itself."""

import http.client
import json
import ssl
import time
from urllib import error, request

from clawlite import __version__
from clawlite.core.base.errors import ClawError
from clawlite.host.base.proxies import Proxies
from clawlite.host.mcp.listing import TIMEOUT_S, notes_of, now_ms, read_json
from clawlite.protocols.mcp.mcp_client import DISCOVER, PROBE_MS, READY
from clawlite.protocols.mcp.mcp_http import HTTPClient
from clawlite.protocols.net.netrules import parse_url

_PIECE = 65536


class _Still(request.HTTPRedirectHandler):
    """No redirect is followed here: the client decides."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        return None


def opener_of(url: str, authorities: list) -> request.OpenerDirector:
    """Return what opens *url*, and follows no redirect; *authorities* as in ``tools_at``."""
    context = ssl.create_default_context(cadata=b"".join(authorities) or None)
    handlers = [request.HTTPSHandler(context=context), _Still()]
    if url.startswith("http://"):  # this machine: no proxy reaches it
        handlers.append(request.ProxyHandler({}))
    else:
        handlers.append(Proxies())
    return request.build_opener(*handlers)


def tools_at(url: str, headers: list[tuple[str, str]], authorities: list) -> tuple:
    """Ask the server at *url* for its tools; return ({name: definition}, whether it needs the
    handshake of the older era, ``notes_of`` it).

    headers      (name, value) that each request gets: those of clawlite.toml, and credentials
    authorities  certificates (DER) in place of the machine's list; none: that list
    Raises ``ClawError``.
    """
    # some servers list more for who can ask a person, as the agent perhaps can
    client = HTTPClient(parse_url(url), (read_json, json.dumps), __version__, now_ms(), asks=True)
    opener = opener_of(url, authorities)
    until = time.monotonic() + TIMEOUT_S
    try:
        while client.state != READY:
            for wanted in client.requests(now_ms()):
                _exchange(client, opener, headers, wanted, until)
            client.tick(now_ms())
            if time.monotonic() >= until:
                raise ClawError(f"it did not list its tools within {TIMEOUT_S} s")
        last = client.goodbye()
        if last is not None:
            _goodbye(client, opener, headers, last)
    except ClawError as e:
        raise ClawError(
            f"the MCP server {url}: {e.message}",
            e.hint
            or "is it up, and is the address right? clawlite.toml, [[credentials]] gives it a key",
        ) from None
    return client.tools, not client.is_stateless, notes_of(client)


def _exchange(client: HTTPClient, opener, headers: list, wanted: tuple, until: float) -> None:
    """Make one request, and give *client* what comes of it until it needs no more."""
    key = wanted[0]
    probes = client.state == DISCOVER
    is_short = probes or client.is_looking
    left = max(until - time.monotonic(), 0.001)
    try:
        with _open(
            client, opener, headers, wanted, min(left, PROBE_MS / 1000) if is_short else left
        ) as answer:
            fields = {name.lower(): value for name, value in answer.headers.items()}
            client.event(key, ("head", answer.status, fields), now_ms())
            while key not in client.closed:
                if time.monotonic() >= until:
                    raise ClawError(f"it did not list its tools within {TIMEOUT_S} s")
                data = answer.read1(_PIECE)
                client.event(key, ("data", data) if data else ("end",), now_ms())
    except TimeoutError:
        if not probes:
            client.cut(key, "it did not answer in time", now_ms())
    except (OSError, http.client.HTTPException) as e:
        client.cut(key, str(getattr(e, "reason", e)) or type(e).__name__, now_ms())


def _open(client: HTTPClient, opener, headers: list, wanted: tuple, timeout_s: float):
    _, verb, target, own, body = wanted
    scheme, host, port, _ = client.url
    host = f"[{host}]" if ":" in host else host
    asked = request.Request(f"{scheme}://{host}:{port}{target}", body, method=verb)
    for name, value in [*headers, *own]:
        asked.add_header(name, value)
    try:
        return opener.open(asked, timeout=timeout_s)
    except error.HTTPError as e:
        return e
    except error.URLError as e:
        raise (e.reason if isinstance(e.reason, TimeoutError) else e) from None


def _goodbye(client: HTTPClient, opener, headers: list, last: tuple) -> None:
    try:
        _open(client, opener, headers, last, 2).close()
    except (OSError, http.client.HTTPException):
        pass  # the server ends the session by itself, too
