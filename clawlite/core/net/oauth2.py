"""Tokens by client credentials (RFC 6749, 4.4): requested when one is needed, and kept in memory
until shortly before it expires.

Compiled (host/providers/remotes.py) to a row: [tls, host, port, target, client id, scope or ""];
the last two are percent-encoded."""

from binascii import b2a_base64

from clawlite.core.base.errors import ProviderError
from clawlite.core.net.exchange import exchange, head, error_of, without

MAX_ANSWER = 16384  # bytes
MAX_TOKEN = 8192
LIFE_S = 300  # of a token without a lifetime
_EARLY_S = 60  # a token is not used any more so long before it expires
# Errors of a token endpoint (RFC 6749, 5.2) that it would answer to the same request each time.
# Others, such as temporarily_unavailable, may have passed when it is asked again.
_REFUSALS = (
    b'"invalid_client"',
    b'"invalid_grant"',
    b'"invalid_scope"',
    b'"invalid_request"',
    b'"unauthorized_client"',
    b'"unsupported_grant_type"',
)
_MEND = "clawlite secrets set NAME for the client's secret, or mend client_id, scope or endpoint"
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"


class Token:
    """An access token.

    value    str, of characters that a header can carry
    ends_ms  monotonic ms
    """

    def __init__(self, value: str, ends_ms: int):
        self.value = value
        self._ends_ms = ends_ms

    def lasts(self, now_ms: int) -> bool:
        """Return whether it may be used now."""
        return now_ms < self._ends_ms


def token(row: list, secret: str, codec, meter, resource: str = ""):
    """A generator of effects that returns a new ``Token``.

    secret  of the client (RFC 6749, 2.3.1: it goes into the Authorization header, percent-encoded)
    codec   reads JSON and errors; meter tells the time
    resource  URL of the server that the token is for (RFC 8707), or ""
    Raises ``ProviderError``, ``TransientError``; no message contains the secret.
    """
    tls, host, port, target, client, scope = row
    body = "grant_type=client_credentials" + ("&scope=" + scope if scope else "")
    body += "&resource=" + percent_encode(resource) if resource else ""
    try:
        status, headers, body = yield from post(
            (tls, host, port, target), body, basic(client, secret)
        )
        if status != 200:
            e = error_of(status, headers, codec.error(status, without(secret, body)), meter.now_s())
            if status in (401, 404) or any([word in body for word in _REFUSALS]):
                e.never, e.hint = True, _MEND
            raise e
        answer = codec.parse(without(secret, body))
    except ProviderError as e:
        e.message = "no token from %s: %s" % (host, without(secret, e.message))
        raise
    return token_of(answer, host, meter)


def basic(client: str, secret: str) -> list:
    """Return the headers that authenticate a client by its secret (RFC 6749, 2.3.1).

    client  percent-encoded
    """
    pair = b2a_base64((client + ":" + percent_encode(secret)).encode()).decode().strip()
    return [("Authorization", "Basic " + pair)]


def post(where: tuple, body: str, more: list):
    """A generator of effects that returns (status, headers, body) of the answer to a form.

    where  as for ``exchange``;  more: headers in addition to those of a form
    """
    headers = [
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Accept", "application/json"),
        ("User-Agent", "clawlite"),
    ]
    body = body.encode()
    parts = [head(where, headers + more, len(body)), body]
    return (yield from exchange(where, parts, MAX_ANSWER, lambda status, headers: None))


def token_of(answer: dict, host: str, meter):
    """Return the ``Token`` of an *answer* of *host* (RFC 6749, 5.1).  Raises ``ProviderError``."""
    value, life = answer.get("access_token"), answer.get("expires_in")
    if (
        not isinstance(value, str)
        or not 0 < len(value) <= MAX_TOKEN
        or min(value) <= " "  # a header could not carry it, or would be two
        or max(value) > "~"
        or str(answer.get("token_type")).lower() != "bearer"
    ):
        raise ProviderError(
            "no token from %s: expected access_token and token_type Bearer in its answer" % host,
            "check the token endpoint in clawlite.toml",
        )
    # some say the number as a string
    if isinstance(life, str) and life.isdigit() and max(life) <= "9":
        life = int(life[:9])
    if not isinstance(life, int) or life is True or life <= 0:
        life = LIFE_S
    return Token(
        value, meter.now_ms() + (life - (_EARLY_S if life > 4 * _EARLY_S else life // 4)) * 1000
    )


def percent_encode(text: str) -> str:
    """Return *text* percent-encoded: all but the unreserved characters of RFC 3986, 2.3."""
    return "".join([chr(c) if c in _PLAIN else "%%%02X" % c for c in text.encode()])
