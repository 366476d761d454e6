"""One HTTP exchange, as effects: connect and send, receive, close (RFC 9112).

Nothing here knows sockets: bytes are sent with OPEN and received with RECEIVE.  An exchange closes
its connection, however it ends.
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.effect import CLOSE, IS_OK, OPEN, RECEIVE, VALUE
from clawlite.core.base.errors import TransientError, ProviderError
from clawlite.core.net.http1 import Response, request

CONNECT_MS = 10000
SILENCE_MS = 60000  # without a byte, before or inside an answer
MAX_REFUSAL = 65536  # bytes of an answer with a status other than 200: one line of it is shown
# statuses after which a retry may succeed; the last ones are those of Cloudflare
PASSING = (408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529)

_TLS = const(0)  # positions in *where*, the target of an exchange
_HOST = const(1)
_PORT = const(2)
_TARGET = const(3)
_KIND = const(0)  # of an event of ``Response``
_DATA = const(1)


def head(where: tuple, headers: list, size: int) -> bytes:
    """Return the head of a POST with a body of *size* bytes.

    where  (tls, host, port, target)
    Raises ``ProviderError`` for a header that HTTP cannot carry: a key, most likely.
    """
    try:
        return request("POST", where[_TARGET], host_of(where), headers, size)
    except ValueError:
        raise ProviderError(
            "its key has characters that no header can carry",
            "set the key again: clawlite secrets set NAME",
        )


def host_of(where: tuple) -> str:
    """Return the value of the header Host."""
    tls, host, port, _ = where
    host = "[%s]" % host if ":" in host else host
    return host if port == (443 if tls else 80) else "%s:%d" % (host, port)


def exchange(where: tuple, parts: list, most: int, begin, first_ms: int = SILENCE_MS, left=None):
    """A generator of effects that returns (status, headers, body); body is None when a reader
    took it.

    where  (tls, host, port, target)
    parts  as in the effect OPEN
    most   bytes of the body that are kept
    begin  function(status, headers) -> None: keep the body; or a reader: take(data) is a generator
           of effects that returns True when the reader needs no more, and at_end() is called when
           no more will come
    first_ms  time until the first byte
    left   function() -> milliseconds until the answer must be complete, or None: no limit
    Raises ``ProviderError``, or ``TransientError`` when another attempt may succeed.
    """
    yield (OPEN, "https" if where[_TLS] else "http", where[_HOST], where[_PORT], parts, CONNECT_MS)
    parts = None  # they are sent; a board needs their memory for the answer
    try:
        # The first receive is here: until it returns, a board need not load the code that reads.
        first = yield (RECEIVE, min(first_ms, left()) if left else first_ms)
        if not first[IS_OK] and first[VALUE].message.startswith("it said nothing"):
            raise ProviderError(first[VALUE].message)  # another attempt would take as long
        answer = yield from _receive(first, most, begin, left)
    except Exception:  # also MemoryError: no connection outlives its exchange
        yield (CLOSE,)
        raise
    yield (CLOSE,)
    return answer


def _receive(outcome: tuple, most: int, begin, left):
    response, reader, body = Response(), None, bytearray()
    status, headers = 0, {}
    while True:
        done, data = outcome
        if not done:
            raise (ProviderError if data.message.startswith("certificate") else TransientError)(
                data.message
            )
        if data:
            response.feed(data)
        else:
            response.at_end()
        event = _event(response, data)
        while event:
            if event[_KIND] == "head":
                _, status, headers = event
                reader = begin(status, headers)
                encoding = headers.get("content-encoding", "identity")
                if encoding != "identity" and status == 200:
                    raise ProviderError(
                        "the answer is compressed (%s), which nobody asked for" % encoding[:40],
                        "turn compression off at the server, or at the proxy before it",
                    )
                if status != 200 and most > MAX_REFUSAL:
                    most = MAX_REFUSAL
                length = headers.get("content-length", "")
                if (
                    (reader is None or "event-stream" not in headers.get("content-type", ""))
                    and status == 200
                    and length.isdigit()
                    and max(length) <= "9"
                    and len(length) < 16
                    and int(length) > most
                ):
                    raise ProviderError("the answer is longer than %d bytes" % most)
            elif event[_KIND] == "end":
                if reader:
                    reader.at_end()
                return status, headers, None if reader else bytes(body)
            elif reader:
                if (yield from reader.take(event[_DATA])):
                    return status, headers, None
            elif len(body) + len(event[_DATA]) <= most:
                body.extend(event[_DATA])
            elif status == 200:
                raise ProviderError("the answer is longer than %d bytes" % most)
            else:
                return status, headers, bytes(body)
            event = _event(response, data)
        if not data:
            raise TransientError("the connection was closed before the answer was whole")
        outcome = yield (RECEIVE, min(SILENCE_MS, left()) if left else SILENCE_MS)


def _event(response, data):
    try:
        return response.next_event()
    except ProviderError as e:
        if data:
            raise
        raise TransientError(e.message)  # cut off: another attempt may succeed


def error_of(status: int, headers: dict, message: str, now_s):
    """Return the error for an answer with a status other than 200; a ``TransientError`` has the
    time that Retry-After asks to wait.

    now_s  seconds since 1970, or None while the clock is unset
    """
    if 300 <= status < 400 and headers.get("location"):
        e = ProviderError(
            "HTTP %d: it redirects to %s" % (status, headers["location"][:200]),
            "if that is right, write it into the manifest's endpoint",
        )
        e.never = status == 301 or status == 308  # permanent (RFC 9110, 15.4)
        return e
    encoding = headers.get("content-encoding", "identity")
    if encoding != "identity":
        message = "HTTP %d, with a compressed reason (%s)" % (status, encoding[:40])
    if status not in PASSING:
        return ProviderError(message)
    e = TransientError(message)
    e.wait_ms = wait_of(headers, now_s)
    return e


def wait_of(headers: dict, now_s):
    """Return the milliseconds that the headers of an answer ask to wait, None when they do not.

    now_s  as in ``error_of``
    Source  RFC 9110, 10.2.3; OpenAI and Azure add Retry-After-Ms, and some servers send fractions.
    """
    wait = _amount(headers.get("retry-after-ms", ""), 0)
    after = headers.get("retry-after", "")
    if wait is None:
        wait = _amount(after, 3)
    if wait is None and after and now_s is not None:
        from clawlite.core.base.clock import from_http

        at = from_http(after)
        if at is not None:
            wait = (at - now_s) * 1000 if at > now_s else 0
    return wait


def _amount(text: str, places: int):
    """Return a decimal number times ten to the power of *places* as int, None for another text."""
    whole, _, part = text.strip().partition(".")
    if not whole + part or (whole + part).strip("0123456789"):
        return None
    return int("0" + whole[:9] + (part + "000")[:places])


def without(key: str, said):
    """Return *said* (str or bytes) without the key: some servers repeat a key that they refuse."""
    if not key:
        return said
    return (
        said.replace(key, "[redacted]")
        if isinstance(said, str)
        else said.replace(key.encode(), b"[redacted]")
    )
