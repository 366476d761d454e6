"""Tokens in the name of a person, for a device without a browser: the device flow (RFC 8628), and
the renewal of its tokens (RFC 6749, 6).

1. The person opens an address on any other device and enters a code there.  Meanwhile this client
   polls the authorization server, never faster than the server allows.
2. The lasting result is a refresh token.  A server may issue a new one with each renewal, and the
   old one is then invalid: the caller must keep the new one.
3. The client has no secret (RFC 6749, 2.1, public), or sends the one that it was given.
4. No error contains a token or a secret.
"""

from clawlite.core.base.effect import SLEEP
from clawlite.core.base.errors import ClawError, ProviderError, TransientError
from clawlite.core.base.printable import escape_name, join_lines
from clawlite.core.net.exchange import error_of, without
from clawlite.core.net.oauth2 import MAX_TOKEN, basic, percent_encode, post, token_of

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
LONGEST_S = 1800  # how long to wait for a person
MAX_CODE = 64  # characters of the code that the person enters
MAX_URI = 512
_INTERVAL_S, _SLOWER_S = 5, 5  # between two questions (RFC 8628, 3.5)
_LONGEST_INTERVAL_S = 60
_LIFE_S = 600  # of a code whose server does not send its lifetime, although it must


class Ended(ProviderError):
    """The sign-in of the person is no longer valid: they have to sign in again."""


def sign_in(row: list, device: tuple, codec, loads, meter, resource: str, tell, secret: str = ""):
    """A generator of effects that returns (``Token``, refresh token or "") when a person agrees.

    row       as in core/net/oauth2.py
    device    (tls, host, port, target) of the device authorization endpoint
    codec, meter, resource  as for ``oauth2.token``;  loads: function(bytes) -> value of JSON
    tell      function(address to open, code to enter there, the address with the code or "",
              seconds until the code expires)
    secret    of the client, "" for a public one
    Raises ``ProviderError`` when nobody agreed in time, the person refused, or the server has no
    such flow.
    """
    tls, host, port, target, client, scope = row
    where, own = (tls, host, port, target), "client_id=" + client
    shown = basic(client, secret) if secret else []
    target = "&resource=" + percent_encode(resource) if resource else ""
    body = own + ("&scope=" + scope if scope else "") + target
    status, headers, body = yield from _post(device, body, shown)
    answer = _answer(device, status, headers, body, codec, meter, [secret])
    code, uri = answer.get("device_code"), answer.get("verification_uri", "")
    entered, whole = answer.get("user_code"), answer.get("verification_uri_complete", "")
    if (
        not isinstance(code, str)
        or not 0 < len(code) <= MAX_TOKEN
        or not _is_shown(entered, MAX_CODE)
        or not _is_page(uri)
    ):
        raise ProviderError(
            "no sign-in at %s: expected device_code, user_code and an https verification_uri "
            "in its answer" % host,
            "check device_authorization_endpoint, or ask its operator",
        )
    left = _seconds(answer.get("expires_in"), _LIFE_S, LONGEST_S)
    pause = _seconds(answer.get("interval"), _INTERVAL_S, _LONGEST_INTERVAL_S)
    ends_ms = meter.now_ms() + left * 1000
    if not _is_page(whole) or _host_and_path(whole)[0] != _host_and_path(uri)[0]:
        whole = ""
    tell(uri, entered, whole, left)
    body = (
        "grant_type="
        + percent_encode(GRANT)
        + "&device_code="
        + percent_encode(code)
        + "&"
        + own
        + target
    )
    while meter.now_ms() + pause * 1000 < ends_ms:
        yield (SLEEP, pause * 1000)
        try:
            status, headers, said = yield from _post(where, body, shown)
        except TransientError:  # the server may be back before the code expires
            pause = min(2 * pause, _LONGEST_INTERVAL_S)
            continue
        why = _error(said, loads) if status != 200 else None
        if why == "slow_down":
            pause = min(pause + _SLOWER_S, _LONGEST_INTERVAL_S)
        elif why == "access_denied":
            raise ProviderError(
                "no sign-in at %s: it was refused there" % host, "sign in again, and agree"
            )
        elif why == "expired_token":
            break
        elif why != "authorization_pending":
            answer = _answer(where, status, headers, said, codec, meter, [code, secret])
            return token_of(answer, host, meter), _refresh(answer)
    raise ProviderError(
        "no sign-in at %s: nobody agreed within %d s" % (host, left),
        "sign in again, and agree in time",
    )


def sign_in_text(uri: str, code: str, whole: str, seconds: int) -> str:
    """Return the text for the person; the arguments are those of ``tell`` in ``sign_in``.  It names
    the host and the path of the address, because a long one may look like another's.
    """
    lines = ["Open %s on any device, and enter the code %s there." % (uri, escape_name(code))]
    lines.append("(Its host is %s, its path is %s.)" % _host_and_path(uri))
    if whole and whole != uri:
        lines.append("(%s has the code in it already.)" % whole)
    lines.append(
        "It counts for %d minutes; this waits until you have agreed. Ctrl-C ends it."
        % -(-seconds // 60)
    )
    return join_lines(lines)


def renew(row: list, refresh: str, codec, loads, meter, resource: str, secret: str = ""):
    """A generator of effects that returns (``Token``, the refresh token to use from now on).

    secret  of the client, "" for a public one
    Raises ``Ended``, ``ProviderError``, ``TransientError``.
    """
    tls, host, port, target, client, _ = row
    where = (tls, host, port, target)
    body = (
        "grant_type=refresh_token&refresh_token=" + percent_encode(refresh) + "&client_id=" + client
    )
    body += "&resource=" + percent_encode(resource) if resource else ""
    shown = basic(client, secret) if secret else []
    status, headers, said = yield from _post(where, body, shown)
    if status != 200 and _error(said, loads) == "invalid_grant":
        raise Ended("the sign-in at %s has ended" % host)
    answer = _answer(where, status, headers, said, codec, meter, [refresh, secret])
    return token_of(answer, host, meter), _refresh(answer) or refresh


def _post(where: tuple, body: str, shown: list):
    try:
        return (yield from post(where, body, shown))
    except ProviderError as e:
        _, host, _, _ = where
        e.message = "no token from %s: %s" % (host, e.message)
        raise


def _answer(
    where: tuple, status: int, headers: dict, body: bytes, codec, meter, secrets: list
) -> dict:
    _, host, _, _ = where
    try:
        if status != 200:
            for secret in secrets:
                body = without(secret, body)
            raise error_of(status, headers, codec.error(status, body), meter.now_s())
        return codec.parse(body)
    except ProviderError as e:
        for secret in secrets:
            e.message = without(secret, e.message)
        e.message = "no token from %s: %s" % (host, e.message)
        raise


def _error(body: bytes, loads) -> str | None:
    """Return the error code of an answer (RFC 6749, 5.2), or None."""
    try:
        found = loads(body)
    except ClawError:
        return None
    return found.get("error") if isinstance(found, dict) else None


def _refresh(answer: dict) -> str:
    found = answer.get("refresh_token")
    return found if isinstance(found, str) and _is_shown(found, MAX_TOKEN) else ""


def _seconds(value: object, default: int, most: int) -> int:
    if not isinstance(value, int) or value is True or value <= 0:
        return default
    return min(value, most)


def _is_shown(text: object, most: int) -> bool:
    """Return whether *text* is printable ASCII: it is shown on a terminal, or put into a file."""
    return isinstance(text, str) and 0 < len(text) <= most and min(text) >= " " and max(text) <= "~"


def _is_page(uri: object) -> bool:
    """Return whether *uri* is one that a person may be asked to open: with user information
    (``https://good.example@other.example/``) it would look like the page of another host.
    """
    return (
        isinstance(uri, str)
        and _is_shown(uri, MAX_URI)
        and " " not in uri
        and "\\" not in uri
        and uri.startswith(("https://", "http://127.0.0.1:", "http://localhost:", "http://[::1]:"))
        and _host_and_path(uri)[0] != ""
        and "@" not in _host_and_path(uri)[0]
    )


def _host_and_path(uri: str) -> tuple:
    """Return (host and port, path) of an absolute *uri*, without what follows its path."""
    rest = uri.split("://", 1)[1]
    for end in "?#":
        rest = rest.split(end, 1)[0]
    host, _, path = rest.partition("/")
    return host, "/" + path
