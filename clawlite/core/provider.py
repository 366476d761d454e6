"""A remote provider: one request and its attempts, as effects (CKP 0.2.0, 5.2).

    limits -> secret -> OPEN -> RECEIVE ... -> answer          an attempt
    a failure that may pass -> wait -> the next attempt        at most ``max_attempts``

1. Nothing here knows sockets: bytes go out with OPEN and come in with RECEIVE.  2. A failure says itself in one line:
which provider, why, tried how often, what comes next.  3. No attempt follows one whose tool calls were handed on.
"""
from clawlite.core.effect import CLOSE, OPEN, RECEIVE, SECRET, SLEEP, STORE, TELL, WRITE
from clawlite.core.errors import ProviderError, QuotaExceeded
from clawlite.core.image import WIRE
from clawlite.core.meter import MAX_TOKENS
from clawlite.core.turn import Reply

OPENAI, ANTHROPIC = 2, 3
NONE, BEARER, KEY_HEADER = range(3)
EXPONENTIAL, LINEAR, CONSTANT = range(3)
CONNECT_MS = 10000
SILENCE_MS = 60000              # without a byte, before or inside an answer
MAX_BODY = 1048576              # bytes of an answer
MAX_WAIT_MS = 60000             # a longer Retry-After goes to the next provider
PASSING = (408, 425, 429, 500, 502, 503, 504, 529)      # statuses that another attempt may not meet


class Passing(ProviderError):
    """A failure that another attempt may not meet.  ``wait_ms``: what Retry-After asked for, or None."""
    wait_ms = None


class Provider:
    """One row of the image's PROVIDERS.

    name      str;  kind: OPENAI or ANTHROPIC
    tls       bool, host str, port int, target str of the request line
    auth      NONE, BEARER or KEY_HEADER; secret: the reference
    prefix    (offset, length) in WIRE: the body up to the first message of the conversation
    keep      bytes of a streamed answer that the conversation remembers, about: more is shown and forgotten
    """

    def __init__(self, row: list, image, loads, dumps, keep: int):
        (self.name, self.kind, self.tls, self.host, self.port, self.target, self.model, self.auth, self.secret, self.stream,
         self.max_attempts, self.backoff, self.delay_ms, self.per_day, self.per_request, self.per_minute, self.window,
         self.prefix) = row
        self.image = image
        self.keep = keep
        self._ends_line = True
        if self.kind == OPENAI:
            from clawlite.core.openai import Codec
        else:
            from clawlite.core.anthropic import Codec
        self.codec = Codec(loads, dumps)

    def ask(self, history, meter):
        """A generator of effects that returns a ``Reply``.

        history  ``history.History``
        meter    ``meter.Meter``
        Raises ``ProviderError`` when its attempts are used up, ``QuotaExceeded`` before a request that a limit forbids.
        """
        attempt = 1
        while True:
            try:
                answer = yield from self._attempt(history, meter)
                return Reply(answer.text, answer.calls, answer.shown, answer.stop)
            except QuotaExceeded:
                raise
            except ProviderError as e:
                wait = self._wait(e, attempt, meter)
                said = "provider %s: %s (tried %d of %d" % (self.name, e.message, attempt, self.max_attempts)
                if wait is None:
                    raise ProviderError(said + ")", e.hint)
            yield (TELL, "%s, again in %d.%d s)" % (said, wait // 1000, wait % 1000 // 100))
            yield (SLEEP, wait)
            attempt += 1

    def _wait(self, e, attempt: int, meter):
        """Return the milliseconds before the next attempt, None when there is none.

        As ``Retry-After`` asks, or as declared and up to a quarter more, so that many do not come at once.
        """
        if not isinstance(e, Passing) or attempt >= self.max_attempts:
            return None
        if e.wait_ms is not None:
            return e.wait_ms if e.wait_ms <= MAX_WAIT_MS else None
        wait = self.delay_ms
        if self.backoff == EXPONENTIAL:
            wait <<= attempt - 1 if attempt < 12 else 11
        elif self.backoff == LINEAR:
            wait *= attempt
        wait = MAX_WAIT_MS if wait > MAX_WAIT_MS else wait
        return wait + meter.jitter(wait // 4)

    def _attempt(self, history, meter):
        from clawlite.core.http1 import request
        wait = meter.pause(self)
        if wait:
            yield (TELL, "provider %s: %d requests a minute are its limit, waiting %d s" % (self.name, self.per_minute, wait // 1000 + 1))
            yield (SLEEP, wait)
        parts, size = self._body(history, meter)
        headers = [("Content-Type", "application/json"), ("Accept", "text/event-stream" if self.stream else "application/json"),
                   ("Accept-Encoding", "identity"), ("User-Agent", "clawlite")]
        if self.kind == ANTHROPIC:
            headers.append(("anthropic-version", "2023-06-01"))
        key = ""
        if self.auth != NONE:
            done, key = yield (SECRET, self.secret)
            if not done:
                raise ProviderError(key.message, key.hint)
            headers.append(("Authorization", "Bearer " + key) if self.auth == BEARER else
                           ("x-api-key" if self.kind == ANTHROPIC else "api-key", key))
        host = "[%s]" % self.host if ":" in self.host else self.host
        if self.port != (443 if self.tls else 80):
            host = "%s:%d" % (host, self.port)
        try:
            head = request("POST", self.target, host, headers, size)
        except ValueError:
            raise ProviderError("its key has characters that no header can carry")
        meter.sent(self)
        yield (OPEN, "https" if self.tls else "http", self.host, self.port, [head] + parts, CONNECT_MS)
        head = parts = headers = None   # sent: while an answer comes, a board needs their room
        try:
            answer = yield from self._answer(key)
        except Exception as e:              # also MemoryError: no connection outlives its attempt
            yield (CLOSE,)
            if isinstance(e, ProviderError):
                e.message = _without(key, e.message)
            raise
        yield (CLOSE,)
        if answer.shown and not self._ends_line:
            yield (WRITE, "\n")
        spent = meter.spend(self, answer, size // 4)
        if spent is not None:
            yield (STORE, "meters", spent)
        return answer

    def _body(self, history, meter) -> tuple:
        """Return (parts of the body, its bytes): the image's prefix, the messages that fit the window, the end."""
        prefix = self.image.part(WIRE, self.prefix[0], self.prefix[1])
        body = self._fitting(history, len(prefix))
        first = b"," if self.kind == OPENAI else b""        # behind the system message, which Anthropic keeps apart
        allowed = meter.allowed(self, (len(prefix) + len(body)) // 4)
        end = b'],"max_tokens":%d}' % allowed
        return [prefix, first, body, end], len(prefix) + len(first) + len(body) + len(end)

    def _fitting(self, history, begun: int) -> bytes:
        """Return the conversation's messages, and leave out as many of the oldest turns as the limits of a request demand.

        begun  bytes of the request before them
        Of the limit a quarter, but not more than an answer may have, stays free for the answer.
        """
        limits = [limit for limit in (self.window, self.per_request) if limit]
        room = 0
        if limits:
            limit = min(limits)
            room = max(1, (limit - min(limit // 4, MAX_TOKENS)) * 4 - begun)
        fewer = 0
        while True:
            messages = history.context(room, fewer)
            body = ",".join(self.codec.messages(messages)).encode()
            if not room or len(body) <= room or len(messages) == len(history.turn):
                return body
            fewer += 1

    def _answer(self, key: str):
        """Receive one answer; a generator that returns a ``wire.Answer`` whose text is whole."""
        from clawlite.core.http1 import Response
        response, stream, said, body = Response(), None, bytearray(), bytearray()
        status, headers = 0, {}
        while True:
            done, data = yield (RECEIVE, SILENCE_MS)
            if not done:
                raise (ProviderError if data.message.startswith("certificate") else Passing)(data.message)
            if data:
                response.feed(data)
            else:
                response.at_end()
            event = self._event(response, data)
            while event:
                if event[0] == "head":
                    status, headers = event[1], event[2]
                    if status == 200 and "event-stream" in headers.get("content-type", ""):
                        stream = self.codec.stream()
                elif event[0] == "end":
                    if status != 200:
                        raise self._refused(status, headers, _without(key, bytes(body)))
                    return self._whole(_ended(stream) if stream else self.codec.whole(_without(key, bytes(body))), said)
                elif stream:
                    stream.feed(event[1])
                    answer = yield from self._pieces(stream, said)
                    if answer:
                        return answer
                elif len(body) + len(event[1]) <= MAX_BODY:
                    body.extend(event[1])
                else:
                    raise ProviderError("the answer is longer than %d bytes" % MAX_BODY)
                event = self._event(response, data)
            if not data:
                raise Passing("the connection was closed before the answer was whole")

    def _event(self, response, data):
        try:
            return response.next_event()
        except ProviderError as e:
            if data:
                raise
            raise Passing(e.message)        # cut off: another attempt may not be

    def _pieces(self, stream, said: bytearray):
        """Show what a stream has; return the answer when it is whole, else None."""
        event = stream.next_event()
        while event:
            if event[0] == "end":
                return self._whole(event[1], said)
            if len(said) < self.keep:
                said.extend(event[1].encode())      # one buffer: a thousand small strings cost ten times their text
            self._ends_line = event[1].endswith("\n")
            yield (WRITE, event[1])
            event = stream.next_event()

    def _whole(self, answer, said: bytearray):
        """Put an answer's text together, for the conversation; what a stream has shown is not shown again."""
        answer.shown = len(said) > 0
        if said:
            answer.text = str(bytes(said), "utf-8") + answer.text
        return answer

    def _refused(self, status: int, headers: dict, body: bytes):
        message = self.codec.error(status, body)
        if status not in PASSING:
            return ProviderError(message)
        e = Passing(message)
        after = headers.get("retry-after", "")
        if after.isdigit():
            e.wait_ms = int(after) * 1000 if len(after) < 6 else MAX_WAIT_MS + 1
        return e


def _ended(stream):
    """Return the answer of a stream whose connection ended before the API's own last event, when it is whole."""
    try:
        return stream.at_end()
    except ProviderError as e:
        raise (Passing if stream.answer.stop is None else ProviderError)(e.message)


def _without(key: str, said):
    """Return *said* (str or bytes) without the key: some servers repeat what they refuse."""
    if not key:
        return said
    return said.replace(key, "[redacted]") if isinstance(said, str) else said.replace(key.encode(), b"[redacted]")
