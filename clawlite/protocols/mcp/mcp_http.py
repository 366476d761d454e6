"""A client of the Model Context Protocol over Streamable HTTP, without I/O.  ``requests`` returns
what to send; ``take`` gets the bytes that come back, or ``event`` the events of their ``Response``.

1. Each message is a POST of its own.  Its answer is JSON, or a stream of events that ends with it.
   Until the tools are known, one request is under way at a time; later at most ``MAX_AT_ONCE``.
2. In the handshake era a server may assign a session id, which every later request carries.  When
   a POST is answered by 404, the server does not know it any more: ``SessionEnded`` is raised.  To
   a GET the same status says that there is no stream.  A stream that ends before its answer is
   resumed by a GET with Last-Event-ID, if its events had ids.  The request itself is not sent
   again.
3. The client listens to a server that may change its list of tools: by a GET in the handshake era,
   by ``subscriptions/listen`` in the stateless one.  When a person can be asked, the GET brings the
   server's questions, too.  Calls then wait until the GET is answered, at most ``HOLD_MS``.
4. A server that refuses ``initialize`` without an error of JSON-RPC may speak the transport of
   2024-11-05, HTTP+SSE, which this client does not.  A GET tells: there its first event is
   ``endpoint``.  The error then names it.
5. A redirect (307, 308) is followed only to the same scheme, host and port, and at most
   ``MAX_MOVES`` times.
"""

from clawlite.core.base.errors import ClawError, ProviderError
from clawlite.core.base.jsonvalue import show
from clawlite.core.net.http1 import Response
from clawlite.core.net.sse import Events
from clawlite.protocols.mcp.mcp_client import (
    INITIALIZE,
    LISTEN,
    LONGEST_PAUSE_MS,
    MAX_LINE,
    OUTCOME_UNKNOWN,
    PAUSE_MS,
    PROBE_MS,
    READY,
    STATELESS,
    Broken,
    MCPClient,
)
from clawlite.protocols.mcp.mcp_headers import of_arguments, plain

MAX_AT_ONCE = 8
MAX_MOVES = 3
MAX_REFUSAL = 65536  # bytes read of an answer whose status is no success
MAX_SESSION = 1024  # characters of a session's id, and of an event's
MAX_RESUMES = 10  # of one request's stream, without an event in between
HOLD_MS = 1000
_NO_ROUTE = (400, 404, 405)  # what a server of the old transport says to a POST
_OLD = "it speaks HTTP+SSE, the transport of MCP 2024-11-05, which clawlite does not speak"
_OLD_HINT = (
    "look in its docs for the address of its Streamable HTTP, often /mcp in place of /sse; or name "
    "as stdio:// server a program that speaks for it, such as mcp-proxy or mcp-remote"
)
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class SessionEnded(ClawError):
    """The server does not know the session any more; it has not run the request.

    key   of the call whose request said so, None for a request of the client's own
    """

    def __init__(self, key: object) -> None:
        super().__init__("its session has ended")
        self.key = key


class _Stream(Events):
    """Server-sent events that can be resumed: *last* is the id of the last event that was returned,
    *retry_ms* how long the server asks to wait before that.
    """

    def __init__(self, limit: int, last: str | None) -> None:
        super().__init__(limit)
        self.last = self._id = last
        self.retry_ms = PAUSE_MS

    def next_event(self) -> tuple | None:
        event = super().next_event()
        if event is not None:
            self.last = self._id
        return event

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if name == b"id" and plain(value) and len(value) <= MAX_SESSION:
            self._id = value.decode()
        elif name == b"retry" and value.isdigit():
            self.retry_ms = min(int(value[:6]), LONGEST_PAUSE_MS)
        super()._field(line)


class _Exchange:
    """One request and its answer.

    number   of the JSON-RPC request that it answers, or None
    message  the body of its POST, None for a GET
    last     id of the event after which a GET resumes, or None
    """

    def __init__(self, number, message, last=None, resumes: int = 0) -> None:
        self.number, self.message, self.last, self.resumes = number, message, last, resumes
        self.response = Response()
        self.events: _Stream | None = None
        self.body = bytearray()
        self.status = 0
        self.headers = {}

    @property
    def retry_ms(self) -> int:
        return self.events.retry_ms if self.events else PAUSE_MS


class HTTPClient(MCPClient):
    """One conversation.  What it has besides the fields of ``MCPClient``:

    url      (scheme, host, port, target)
    closed   keys of requests that are over; the caller closes their connections and empties the
             list
    renews   bool, the caller can get another token when the server refuses one (401).  The request
             is then sent once more; the server refused it, so nothing runs twice
    """

    def __init__(
        self,
        url: tuple,
        codecs: tuple,
        version: str,
        now_ms: int,
        is_handshake: bool = False,
        asks: bool = False,
        renews: bool = False,
    ) -> None:
        self.url = url
        self.closed = []
        self._renews, self._is_token_refused = renews, False
        self._renewed = set()  # numbers of requests that were sent once more
        self._queue = []  # messages that wait to be posted
        self._open = {}  # key -> _Exchange
        self._later = []  # (monotonic ms, _Exchange)
        self._last_key = 0
        self._session = None
        self._moves = 0
        self._is_settled = False  # the tools were known once
        # the GET that looks for the old transport, until when, and what is told if it is not that
        self._look: _Exchange | None = None
        self._look_ms, self._refusal = 0, {}
        # no call is sent before this time; -1: the GET was answered, so none waits any more
        self._hold_ms = 0
        super().__init__(codecs, version, now_ms, is_handshake, asks)

    # -- what goes out

    def take_refusal(self) -> bool:
        """Return whether a 401 has come since this was asked last."""
        is_refused, self._is_token_refused = self._is_token_refused, False
        return is_refused

    def requests(self, now_ms: int) -> list:
        """Return [(key, method, target, [(name, value)], body or None), ...] to be sent now.
        Raises ``Broken``: the server has not begun in time to answer what looks for the old
        transport.
        """
        if self._look is not None and now_ms >= self._look_ms:
            self._refuse([])
        if self._queue and self._queue[0].get("method") == "initialize":
            self._drop_all()
        starting = []
        for due in list(self._later):
            if now_ms >= due[0]:
                self._later.remove(due)
                starting.append(due[1])
        self._listen(now_ms, starting)
        self._is_settled = self._is_settled or self.state == READY
        most = MAX_AT_ONCE if self._is_settled else 1
        under_way = 0
        for one in self._open.values():
            if one.message is not None and self._waiting.get(one.number) != LISTEN:
                under_way += 1
        for message in list(self._queue):
            is_answer = "method" not in message  # a call that is under way waits for it
            if message.get("method") == "tools/call" and now_ms < self._hold_ms:
                continue
            if under_way < most or is_answer:
                self._queue.remove(message)
                under_way += not is_answer
                number = message["id"] if "id" in message and not is_answer else None
                starting.append(_Exchange(number, message))
        found = []
        for one in starting:
            self._last_key += 1
            self._open[self._last_key] = one
            body = None
            if one.message is not None:
                body = self._dumps(one.message).encode()
            verb = "GET" if body is None else "POST"
            found.append((self._last_key, verb, self.url[3], self._headers(one), body))
        return found

    @property
    def is_looking(self) -> bool:
        """Whether it looks for the old transport: ``PROBE_MS`` are enough for that."""
        return self._look is not None

    def due_ms(self) -> int | None:
        """Return the monotonic ms at which ``tick`` and ``requests`` must be called even if nothing
        has come, or None.
        """
        times = [due[0] for due in self._later]
        if self._look is not None:
            times.append(self._look_ms)
        if self._hold_ms > 0 and self._queue:
            times.append(self._hold_ms)
        due_ms = super().due_ms()
        if due_ms is not None:
            times.append(due_ms)
        return min(times) if times else None

    def _renew(self, now_ms: int) -> None:
        """Do nothing: here ``requests`` subscribes, on a connection of its own (``_listen``)."""

    def call(self, key: object, tool: str, arguments: dict, is_watched: bool = False) -> None:
        """As ``MCPClient.call``; raises ``ClawError`` when the schema of *tool* asks for headers
        that cannot be made.
        """
        if self.is_stateless:
            of_arguments(self.tools[tool].get("inputSchema") or {}, arguments)
        super().call(key, tool, arguments, is_watched)

    def cancel(self, key: object) -> None:
        for number, one in list(self._waiting.items()):
            if one == key:
                self._forget(number)
        if self.is_stateless:  # the end of its stream cancels it
            for number, one in list(self._waiting.items()):
                if one == key:
                    del self._waiting[number]
        else:
            super().cancel(key)

    def goodbye(self) -> tuple | None:
        """Return the request that ends the session, as ``requests`` does; None without one."""
        if self._session is None:
            return None
        return 0, "DELETE", self.url[3], self._headers(_Exchange(None, None)), None

    def _headers(self, one: _Exchange) -> list:
        headers = [("Accept-Encoding", "identity"), ("User-Agent", "clawlite")]
        message = one.message
        if message is None:
            headers.append(("Accept", "text/event-stream"))
            if one.last is not None:
                headers.append(("Last-Event-ID", one.last))
        else:
            headers.append(("Accept", "application/json, text/event-stream"))
            headers.append(("Content-Type", "application/json"))
        if self.is_stateless:
            headers.append(("MCP-Protocol-Version", STATELESS))
            if message is not None and "method" in message:
                headers += self._routing(message)
        elif self.version is not None:
            headers.append(("MCP-Protocol-Version", self.version))
            if self._session is not None:
                headers.append(("Mcp-Session-Id", self._session))
        return headers

    def _routing(self, message: dict) -> list:
        method, params = message["method"], message["params"]
        headers = [("Mcp-Method", method)]
        if method in _NAMED:
            headers += of_arguments(None, {"Mcp-Name": params[_NAMED[method]]})
        if method == "tools/call":
            schema = self.tools.get(params["name"], {}).get("inputSchema") or {}
            headers += of_arguments(schema, params["arguments"])
        return headers

    def _wants_to_listen(self) -> bool:
        if self.is_stateless:
            return super()._wants_to_listen()
        if not (self._listens and self.state == READY and (self.may_change or self.asks)):
            return False
        gets = [one for one in self._open.values() if one.message is None and one.number is None]
        return not gets

    def _listen(self, now_ms: int, starting: list) -> None:
        self._look_at_subscription(now_ms)
        if not self._wants_to_listen() or now_ms < self._listen_ms:
            return
        if self.is_stateless:
            self._subscribe()
            # sent at once: it does not count against MAX_AT_ONCE
            message = self._queue.pop()
            starting.append(_Exchange(message["id"], message))
        else:
            starting.append(_Exchange(None, None, self._listen_from))
            if self.asks and self._listen_from is None and not self._hold_ms:
                self._hold_ms = now_ms + HOLD_MS

    _listen_from = None  # id of the last event of the listening stream

    def _send(self, message: dict) -> None:
        message["jsonrpc"] = "2.0"
        self._queue.append(message)

    # -- what comes in

    def take(self, key: object, kind: str, data, now_ms: int) -> list:
        """Take an event of the connection *key* ("data", "end", "error", "refused"); return what
        ``feed`` does.

        Raises ``Broken``, ``SessionEnded``, and *data* when a network rule refused the connection.
        """
        one = self._open.get(key)
        if one is None:
            return []
        if kind == "refused":
            raise data
        done = []
        if kind == "error":
            self._cut(key, one, data, now_ms, done)
            return done
        try:
            if kind == "end":
                one.response.at_end()
            else:
                one.response.feed(data)
            event = one.response.next_event()
            while event is not None and key in self._open:
                done += self.event(key, event, now_ms)
                event = one.response.next_event()
        except ProviderError as e:
            if kind != "end":
                raise Broken(e.message)
            self._cut(key, one, e.message, now_ms, done)
        return done

    def cut(self, key: object, why: str, now_ms: int) -> list:
        """The connection *key* has failed; return what ``feed`` does."""
        done = []
        if key in self._open:
            self._cut(key, self._open[key], why, now_ms, done)
        return done

    def event(self, key: object, event: tuple, now_ms: int) -> list:
        """Take one event of ``http1.Response``; return what ``feed`` does."""
        one, done = self._open.get(key), []
        if one is None:
            return done
        if event[0] == "head":
            _, one.status, one.headers = event
            if one.message is None and one.number is None:
                self._hold_ms = -1  # the GET is answered: calls need not wait
            self._begin(one)
        elif event[0] == "data" and one.events is not None:
            self._read(key, one, one.events, event[1], done)
        elif event[0] == "data":
            one.body += event[1]
            if one.status < 300 and len(one.body) > MAX_LINE:
                raise Broken("it sent a message of more than %d bytes" % MAX_LINE)
            if one.status >= 300 and len(one.body) > MAX_REFUSAL:
                one.body = one.body[:MAX_REFUSAL]
                self._whole(key, one, now_ms, done)
        elif one.events is not None:
            self._cut(key, one, "the stream ended", now_ms, done)
        else:
            self._whole(key, one, now_ms, done)
        return done

    def _begin(self, one: _Exchange) -> None:
        encoding = one.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise Broken("its answer is compressed (%s), which nobody asked for" % encoding[:40])
        if not 200 <= one.status < 300:
            return
        kind = one.headers.get("content-type", "").split(";")[0].strip().lower()
        if kind == "text/event-stream":
            one.events = _Stream(MAX_LINE, one.last)
        session = one.headers.get("mcp-session-id")
        if session and one.message is not None and one.message.get("method") == "initialize":
            if not plain(session.encode()) or len(session) > MAX_SESSION:
                raise Broken("the id of its session is no text that a header can carry")
            self._session = session

    def _read(self, key: object, one: _Exchange, events: _Stream, data: bytes, done: list) -> None:
        try:
            events.feed(data)
            event = events.next_event()
            while event is not None and key in self._open:
                name, text = event
                if one is self._look:
                    if name == "endpoint":
                        raise Broken(_OLD, _OLD_HINT)
                    self._refuse(done)
                one.resumes = 0
                if one.message is None and one.number is None:
                    self._listen_from, self._pause_ms = events.last, PAUSE_MS
                if name == "message" and text:
                    self._text(one, text.encode(), done)
                else:
                    self._count()
                if one.number is not None and one.number not in self._waiting:
                    self._close(key)
                event = events.next_event()
        except ProviderError as e:
            raise Broken(e.message)

    def _text(self, one: _Exchange, text: bytes, done: list) -> None:
        message = self._decode(text)
        if "method" not in message:
            if one.message is not None and one.number is None:
                self._count()
                return  # some servers answer a notification
            number = message.get("id")
            if number is None and "error" in message:
                message["id"] = one.number
            elif type(number) is not int or number != one.number:
                raise Broken(
                    "it answered a request that was never sent on this connection, id %s"
                    % show(number)
                )
        self._during = one.number
        self._take(message, done)

    def _whole(self, key: object, one: _Exchange, now_ms: int, done: list) -> None:
        """Take a complete answer that is no stream of events."""
        self._close(key)
        if one is self._look:
            self._refuse(done)
        status, body, method = one.status, bytes(one.body).strip(), None
        if one.message is not None:
            method = one.message.get("method")
        if status != 401:
            self._renewed.discard(one.number)
        if 200 <= status < 300:
            if body and one.message is not None:
                self._text(one, body, done)
            if one.number in self._waiting:
                self._fail(one, "HTTP %d, and no answer to %s" % (status, method), done)
            elif one.message is None:  # a GET gives events, or nothing
                self._hears_nothing(one)
        elif (
            status == 401
            and self._renews
            and one.message is not None
            and one.number not in self._renewed
        ):
            self._renewed.add(one.number)
            self._is_token_refused = True
            self._queue.insert(0, one.message)
        elif (
            status == 404
            and self._session is not None
            and one.message is not None
            and method != "initialize"
        ):
            raise SessionEnded(self._waiting.get(one.number))
        elif 300 <= status < 400:
            self._follow(one, done)
        elif one.number is None:
            if one.message is None:
                self._hears_nothing(one)
            elif self.state != READY and "method" in one.message:
                raise Broken("it answers %s with HTTP %d" % (method, status))
        elif one.message is None and one.number in self._waiting:
            self._fail(one, "its answer was cut off, and its rest is HTTP %d" % status, done)
        else:
            self._take_refusal(one, body, now_ms, done)

    def _hears_nothing(self, one: _Exchange) -> None:
        """The server gives no stream to listen to.  Where it gave one before, nobody has heard what
        it told since.
        """
        self._listens = False
        self.is_stale = self.is_stale or one.last is not None

    def _take_refusal(self, one: _Exchange, body: bytes, now_ms: int, done: list) -> None:
        """Take an answer with a status that is no success; some have a JSON-RPC error in them."""
        self._renewed.discard(one.number)
        error = None
        try:
            message = self._loads(body)
            error = message.get("error") if isinstance(message, dict) else None
        except ClawError:
            pass
        if not isinstance(error, dict):
            said = "HTTP %d" % one.status
            if one.status == 401 or one.status == 403:
                said += (
                    ": it wants another credential (clawlite.toml: [[credentials]] of its host, "
                )
                said += "or [mcp.NAME.oauth2])"
            error = {"code": -32603, "message": said}
            if self.state == INITIALIZE and one.status in _NO_ROUTE:
                self._refusal, self._look = error, _Exchange(one.number, None)
                self._look_ms = now_ms + PROBE_MS
                self._later.append((now_ms, self._look))
                return
        self._text(one, self._dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode(), done)

    def _refuse(self, done: list) -> None:
        """Tell why ``initialize`` was refused: the server does not speak the old transport."""
        one, self._look = self._look, None
        assert one is not None
        error = self._dumps({"jsonrpc": "2.0", "id": None, "error": self._refusal})
        self._text(one, error.encode(), done)  # raises ``Broken``

    def _follow(self, one: _Exchange, done: list) -> None:
        place = one.headers.get("location", "")
        scheme, host, port, _ = self.url
        own = "%s://%s%s" % (scheme, "[%s]" % host if ":" in host else host, "/")
        if port != (443 if scheme == "https" else 80):
            own = own[:-1] + ":%d/" % port
        if place.startswith(own):
            place = place[len(own) - 1 :]
        target = place.split("#")[0]
        is_ours = target.startswith("/") and not target.startswith("//") and "\\" not in target
        if one.status in (307, 308) and is_ours and plain(target.encode()):
            self._moves += 1
            if self._moves > MAX_MOVES:
                raise Broken("it redirects more than %d times" % MAX_MOVES)
            self.url = (scheme, host, port, target)
            if one.message is not None:
                self._queue.insert(0, one.message)
            return
        raise Broken(
            "HTTP %d: it redirects to %s, which is not followed; if that is right, write it as uri"
            % (one.status, show(place[:200]))
        )

    def _cut(self, key: object, one: _Exchange, why: str, now_ms: int, done: list) -> None:
        """The connection has ended before the answer."""
        self._close(key)
        if one is self._look:
            self._refuse(done)
        last = one.events.last if one.events else one.last
        if self._waiting.get(one.number) == LISTEN:
            del self._waiting[one.number]
            self._begin_pause(now_ms, one.retry_ms)
        elif one.number is None:
            if one.message is None:
                self._hold_ms = -1
                self._pause(one, now_ms)
                self.is_stale = self.is_stale or last is None
            elif not one.status:
                raise Broken(why)
        elif one.number not in self._waiting:
            pass
        elif not self.is_stateless and last is not None and one.resumes < MAX_RESUMES:
            again = _Exchange(one.number, None, last, one.resumes + 1)
            self._later.append((now_ms + one.retry_ms, again))
        elif not one.status:
            raise Broken(why)
        else:
            self._fail(one, "its answer was cut off: %s" % why, done)

    def _pause(self, one: _Exchange, now_ms: int) -> None:
        self._listen_ms = now_ms + max(self._pause_ms, one.retry_ms)
        self._pause_ms = min(self._pause_ms * 2, LONGEST_PAUSE_MS)

    def _fail(self, one: _Exchange, why: str, done: list) -> None:
        key = self._waiting.pop(one.number)
        if key is None:
            raise Broken(why)
        if key == LISTEN:
            self._listens = False
            return
        done.append((key, (False, ClawError("the MCP server: " + why, OUTCOME_UNKNOWN))))

    def _forget(self, number: int) -> None:
        self._renewed.discard(number)
        self._later = [due for due in self._later if due[1].number != number]
        self._queue = [one for one in self._queue if one.get("id") != number or "method" not in one]
        for key, one in list(self._open.items()):
            if one.number == number:
                self._close(key)

    def _close(self, key: object) -> None:
        del self._open[key]
        self.closed.append(key)

    def _drop_all(self) -> None:
        for key in list(self._open):
            self._close(key)
        self._later = []
        self._look = self._session = None
        self._is_settled = False
