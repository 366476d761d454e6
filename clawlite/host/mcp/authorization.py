"""Where the tokens for an MCP server come from: found when an agent is built, and pinned in
clawlite.lock, so that no server can lead a secret elsewhere later.

1. The server says which authorization servers it trusts: protected resource metadata (RFC 9728),
   where its 401 says (``resource_metadata``), or at the well-known place.
2. The maker says which of them it is (``issuer`` in clawlite.toml): nobody else is ever shown a
   secret.  Without one, nothing is asked for, and the error names what the server says.
3. The authorization server says where its endpoints are (RFC 8414, or OpenID Connect Discovery),
   and is believed when ``issuer`` there is the one that was asked, letter by letter.
4. All of it is https, or http to this machine; no redirect is followed; a document has 64 KiB.
"""

import http.client
import json
import re
from time import monotonic
from urllib import error, request
from urllib.parse import urlsplit

from clawlite import __version__
from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import enquote, one_of
from clawlite.host.mcp.remote_listing import opener_of
from clawlite.host.providers.remotes import endpoint_problem, is_secure
from clawlite.protocols.net.device_flow import GRANT

MAX_DOCUMENT = 65536
TIMEOUT_S = 10  # of each wait for bytes
WHOLE_S = 30  # of a document that comes a little at a time
_METADATA = re.compile(r'resource_metadata\s*=\s*(?:"([^"]*)"|([^\s",]+))', re.IGNORECASE)
_FIELDS = ("token_endpoint", "device_authorization_endpoint")
_BY_FLOW = {"client_credentials": "client_credentials", "device": GRANT}


def discover(url: str, oauth2, headers: list, authorities: list) -> dict:
    """Return what is pinned of where tokens for the MCP server at *url* come from: ``issuer``,
    ``resource`` and the endpoints.

    oauth2       ``mcp_settings.MCPOAuth2``
    headers      (name, value) of requests to the server
    authorities  as in remote_listing.py
    Raises ``ClawError``.
    """
    resource, issuers = _find_issuers(url, headers, authorities)
    issuer = oauth2.issuer
    if issuer is None:
        raise ClawError(
            f"the MCP server {url} gets its tokens from {one_of(issuers)}"
            if issuers
            else f"the MCP server {url} does not name its authorization server",
            "write into [mcp.NAME.oauth2] the one where client_id is registered: "
            f'issuer = "{issuers[0] if issuers else "https://..."}"',
        )
    if issuers and issuer.rstrip("/") not in [one.rstrip("/") for one in issuers]:
        raise ClawError(
            f"the MCP server {url} takes no tokens of {issuer}: it names {one_of(issuers)}",
            "look at issuer of [mcp.NAME.oauth2], and at what the server says",
        )
    found = _server(issuer, authorities)
    kept = {"issuer": issuer, "resource": resource}
    for field in _FIELDS:
        if field in found:
            kept[field] = _endpoint(issuer, field, found[field])
    _refuse(issuer, oauth2, found, kept)
    return kept


def _find_issuers(url: str, headers: list, authorities: list) -> tuple[str, list]:
    """Return (what tokens for *url* are asked for, the authorization servers that it names)."""
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    path = parts.path.rstrip("/")
    known = "/.well-known/oauth-protected-resource"
    named = _metadata_url(url, headers, authorities)
    if named is not None and not named.startswith(origin + "/"):
        raise ClawError(
            f"the MCP server {url} says that its metadata are at {enquote(named)}, which is "
            "another server",
            "report it to the operator of the server",
        )
    places = [named] if named else [origin + known + path, origin + known]
    for place in dict.fromkeys(places):
        found = _document(place, authorities)
        if found is None:
            continue
        resource, issuers = found.get("resource"), found.get("authorization_servers")
        if not isinstance(resource, str) or not _is_for(resource, url):
            raise ClawError(
                f"{place} is about the resource {enquote(str(resource))}, not about {url}: "
                "its tokens would be for another server",
                "report it to the operator of the server",
            )
        if not isinstance(issuers, list) or not all(isinstance(one, str) for one in issuers):
            raise ClawError(
                f"{place}: authorization_servers: expected a list of texts",
                "report it to the operator of the server",
            )
        return resource, issuers
    return url, []


def _metadata_url(url: str, headers: list, authorities: list):
    """Return where the 401 of the server says that its metadata are, or None."""
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": {}}
    ).encode()
    kinds = [("Content-Type", "application/json")]
    kinds.append(("Accept", "application/json, text/event-stream"))
    status, fields, _ = _answer(request.Request(url, body), [*headers, *kinds], authorities)
    if status != 401:
        return None
    found = _METADATA.search(", ".join(fields.get_all("WWW-Authenticate") or ()))
    return (found[1] or found[2]) if found else None


def _is_for(resource: str, url: str) -> bool:
    """Return whether *resource* is the server at *url*, or what it is a part of."""
    whole, part = urlsplit(resource), urlsplit(url)
    path = whole.path.rstrip("/")
    return (
        (whole.scheme.lower(), whole.netloc.lower()) == (part.scheme.lower(), part.netloc.lower())
        and not whole.fragment
        and (not whole.query or whole.query == part.query)
        and (part.path.rstrip("/") == path or part.path.startswith(path + "/"))
    )


def _server(issuer: str, authorities: list) -> dict:
    """Return the metadata of the authorization server *issuer*."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    places = [
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    ]
    for place in dict.fromkeys(places):
        found = _document(place, authorities)
        if found is None:
            continue
        if found.get("issuer") != issuer:
            raise ClawError(
                f"{place} is of the issuer {enquote(str(found.get('issuer')))}, expected {issuer}",
                "report it to the operator of the server",
            )
        return found
    raise ClawError(
        f"{issuer} has no metadata of an authorization server (RFC 8414)",
        "name its token endpoint in place of issuer: [mcp.NAME.oauth2] endpoint",
    )


def _endpoint(issuer: str, field: str, value) -> str:
    wrong = "expected a text"
    if isinstance(value, str):
        wrong = endpoint_problem(value) or ("" if is_secure(value) else "expected https://")
    if wrong:
        raise ClawError(
            f"the metadata of {issuer}: {field}: {wrong}", "report it to the operator of the server"
        )
    return value


def _refuse(issuer: str, oauth2, found: dict, kept: dict) -> None:
    """Refuse what *issuer* does not do, as far as it says so."""
    flow, is_public = oauth2.flow, oauth2.flow == "device" and oauth2.client_credential is None
    said = found.get("grant_types_supported")
    is_known, grants = isinstance(said, list), said if isinstance(said, list) else []
    lacks = is_known and _BY_FLOW[flow] not in grants
    if flow == "device":
        lacks = lacks or "device_authorization_endpoint" not in kept
    if lacks or "token_endpoint" not in kept:
        own = [name for name, grant in _BY_FLOW.items() if grant in grants]
        raise ClawError(
            f"{issuer} gives no tokens by {flow}"
            + (f": its grants are {', '.join(map(str, grants))[:200]}" if is_known else ""),
            f'flow = "{own[0]}" is one that it has'
            if own
            else "a sign-in with a browser (authorization_code) is not supported: name a "
            "token that "
            "lasts under [[credentials]] of the server's host",
        )
    methods = found.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    wanted = "client_secret_basic"
    if not is_public and isinstance(methods, list) and wanted not in methods:
        raise ClawError(
            f"{issuer} takes no {wanted} of a client: {', '.join(map(str, methods))[:200]}",
            "a client shows its secret in the header Authorization here; keys that sign "
            "(private_key_jwt) are not supported",
        )


def _document(place: str, authorities: list):
    """Return the JSON object at *place*, None where there is none."""
    if not is_secure(place):
        raise ClawError(
            f"{place}: expected https://, or http:// to this machine",
            "use the https:// address of the server",
        )
    status, _, body = _answer(request.Request(place), [("Accept", "application/json")], authorities)
    if status != 200:
        return None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ClawError(
            f"{place}: expected an object of JSON", "report it to the operator of the server"
        )
    return found


def _answer(asked, headers: list, authorities: list) -> tuple:
    """Return (status, headers, body) of the answer to the request *asked*."""
    for name, value in [("User-Agent", "clawlite/" + __version__), *headers]:
        asked.add_header(name, value)
    try:
        try:
            answer = opener_of(asked.full_url, authorities).open(asked, timeout=TIMEOUT_S)
        except error.HTTPError as e:
            answer = e
        with answer:
            body = _body(answer)
    except (OSError, http.client.HTTPException, ValueError) as e:  # ValueError: an address
        raise ClawError(
            f"{asked.full_url}: {getattr(e, 'reason', e)}",
            "check that the network and the server are up, then build again",
        ) from None
    if len(body) > MAX_DOCUMENT:
        raise ClawError(
            f"{asked.full_url}: more than {MAX_DOCUMENT} bytes",
            "report it to the operator of the server",
        )
    return answer.status, answer.headers, body


def _body(answer) -> bytes:
    """Return the body of *answer*, at most one byte more than a document may have.  Raises
    ``OSError``: it does not come to its end.
    """
    until, body = monotonic() + WHOLE_S, b""
    while len(body) <= MAX_DOCUMENT:
        piece = answer.read1(MAX_DOCUMENT + 1 - len(body))
        if not piece:
            break
        body += piece
        if monotonic() > until:
            raise TimeoutError(f"its answer was not whole within {WHOLE_S} s")
    return body
