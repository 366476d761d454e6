"""A client of the Model Context Protocol on one stream of lines, without I/O: bytes go in and come
out.

1. Two eras of the protocol are in use.  In the stateless one (2026-07-28) each request carries its
   version; in the handshake one (up to 2025-11-25) the client says ``initialize`` first.  The newer
   is tried first; a server that answers ``server/discover`` with an error, or not within
   ``PROBE_MS``, is asked in the older way.
2. What a server sends is not trusted.  The length of a line, the number of tools and the number of
   messages that answer nothing are bounded, and an answer to a request that was never sent ends the
   conversation.
3. A server may ask a person by a form (elicitation), where whoever made the client can ask one:
   ``feed`` says so, and the call goes on with ``answer`` or ``again``.  A server that asks for
   anything else gets an error: this client offers no sampling and no roots, and says so from the
   start.  When a call fails after that, its error tells what the server asked for.
4. A server of the stateless era tells of changed tools to those alone who have asked for it
   (``subscriptions/listen``).  One that says that its tools change is asked, once they are known,
   and they are listed again when it acknowledges: what changed in between was told to nobody.
   A server that ends the subscription is asked again after a pause, which doubles each time up to
   ``LONGEST_PAUSE_MS``.  A subscription that lasted that long makes the pause short again.  A
   server that refuses it is not asked again.
5. A line that is no message (a banner, a log) is skipped, as the SDKs of other clients do, and
   counts as a message that answers nothing; ``odd_line`` has the first one, for a person.
"""

from clawlite.core.base.errors import ClawError, InvalidParams
from clawlite.core.base.jsonvalue import show

STATELESS = "2026-07-28"
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MAX_LINE = 4194304  # bytes of one message
MAX_TOOLS = 1000
MAX_PAGES = 100
MAX_UNASKED = 10000  # messages in a row that answer nothing, within COUNT_MS
COUNT_MS = 3600000  # a ping every second ends no server that is not called for days
MAX_SAID = 2000  # characters of a server's error that are shown
MAX_KEPT = 8  # files that are made of one result
MAX_INPUTS = 4  # questions of a server that are shown
ELICIT = "elicitation/create"
PROBE_MS = 3000
PAUSE_MS, LONGEST_PAUSE_MS = 1000, 60000  # between the end of a subscription and the next request
MANY_ENDS = 8  # subscriptions that end in a row before a person is told
ASKED = object()  # of an outcome: the server asks a person
DISCOVER, INITIALIZE, LIST, READY = range(4)  # states
LISTEN = "listen"  # what the client calls its own subscription
# in the message, for a model sees no hints
_UNANSWERED = "clawlite answers no questions of a server: give all that it needs in the arguments"
# the hint of an error after which nobody knows whether a call was carried out
OUTCOME_UNKNOWN = "what the call did is not known: look before calling it again"
# of a server that spoke the older era when the agent was built, and refuses it now
ASK_ANEW = "if it was upgraded, clawlite build --refresh asks which version of MCP it speaks"


class Broken(ClawError):
    """The server does not speak the protocol: the conversation cannot go on."""


class MCPClient:
    """One conversation.

    codecs        (function(bytes) -> value, raising ``ClawError``; function(value) -> str)
    version       str, of this program
    is_handshake  bool, the server is known to speak the older era alone
    asks          bool, a person can be asked
    Public:
    out       bytearray that waits to be sent; the caller takes what it has sent from its start
    state     DISCOVER .. READY
    tools     {name: definition} of the server, once READY
    is_stale  bool, the server says that its tools have changed; ``ask_for_tools`` asks again
    is_stateless  bool, the newer era is spoken, or tried
    version       str, what an ``initialize`` has settled, or None
    may_change    bool, the server says that it tells when its tools change
    is_often_ended  bool, the server has ended ``MANY_ENDS`` subscriptions in a row.  It stays True.
                  A new client begins at False; the caller notes which servers it has told of
    odd_line      str, the start of the first line that was no message, or ""
    left_out      [(name or "", why), ...] of listed tools that are not in ``tools``
    progress      {key: (progress, total or None, message)}, what the server told last of calls that
                  wanted it; the caller takes it out
    keep          None, or function(media type or "", base64) -> where an image, a sound or a blob
                  of a result is kept, in words, or "not shown"; the caller sets it
    """

    def __init__(
        self,
        codecs: tuple,
        version: str,
        now_ms: int,
        is_handshake: bool = False,
        asks: bool = False,
    ) -> None:
        self.asks = asks
        self._during = None  # number of the request in whose answer a message came, if it is known
        self.out = bytearray()
        self.tools = {}
        self.progress = {}
        self.odd_line, self.left_out = "", []
        self.keep = None
        self.is_stale = False
        self._loads, self._dumps = codecs
        self._info = {"name": "clawlite", "version": version}
        self.is_stateless = True
        self._line = bytearray()
        self._waiting = {}  # id of a request -> what the caller calls it
        self._watched = []  # ids of those whose progress is wanted; some may be answered
        self._next = 0
        self._unasked = self._pages = 0
        self._counted_ms = now_ms  # since when messages are counted that answer nothing
        self._is_known = is_handshake  # the era was settled before
        self._found, self._twice = {}, []
        # what the server asked for last, and the id of the first request that came after that
        self._wanted, self._wanted_before = "", 0
        self.version = None
        self.may_change = False
        self._listens = True  # the server lets it listen, as far as is known
        self._listen_ms, self._pause_ms = 0, PAUSE_MS  # when it may subscribe; the next pause
        self._since_ms: int | None = None  # when the subscription was first seen to be open
        self._has_ended = False  # the server ended the subscription; ``tick`` begins the pause
        self._ends = 0  # subscriptions that ended in a row
        self.is_often_ended = False
        self._probe_until = now_ms + PROBE_MS
        self.state = DISCOVER
        if is_handshake:
            self._initialize()
        else:
            self._request("server/discover", {})

    def due_ms(self) -> int | None:
        """Return the monotonic ms at which ``tick`` must be called even if nothing has come, or
        None.
        """
        if self.state == DISCOVER:
            return self._probe_until
        return self._listen_ms if self._wants_to_listen() else None

    def tick(self, now_ms: int) -> None:
        """Do what is due: turn to the older era when the server did not answer in the newer one in
        time, and ask to be told of changes.
        """
        if self.state == DISCOVER and now_ms >= self._probe_until:
            self._initialize()
        if now_ms - self._counted_ms >= COUNT_MS:
            self._unasked, self._counted_ms = 0, now_ms
        self._renew(now_ms)

    def _renew(self, now_ms: int) -> None:
        self._look_at_subscription(now_ms)
        if self._wants_to_listen() and now_ms >= self._listen_ms:
            self._subscribe()

    def _look_at_subscription(self, now_ms: int) -> None:
        """Begin the pause after a subscription that has ended."""
        if self._has_ended:
            self._has_ended = False
            self._begin_pause(now_ms)
        elif self._since_ms is None and LISTEN in self._waiting.values():
            self._since_ms = now_ms

    def _begin_pause(self, now_ms: int, least_ms: int = 0) -> None:
        """Begin the pause, of at least *least_ms*, between two subscriptions."""
        if self._since_ms is not None and now_ms - self._since_ms >= LONGEST_PAUSE_MS:
            self._pause_ms, self._ends = PAUSE_MS, 0
        self._since_ms = None
        self._listen_ms = now_ms + max(self._pause_ms, least_ms)
        self._pause_ms = min(self._pause_ms * 2, LONGEST_PAUSE_MS)
        self._ends += 1
        self.is_often_ended = self.is_often_ended or self._ends == MANY_ENDS
        self.is_stale = True  # until it subscribes again, nobody tells it of changes

    def begin(self, now_ms: int) -> None:
        """Nothing could be sent before now: the time for the newer era begins."""
        self._probe_until = now_ms + PROBE_MS

    def call(self, key: object, tool: str, arguments: dict, is_watched: bool = False) -> None:
        """Send a call of *tool*; its answer comes from ``feed`` as (key, outcome).

        is_watched  its progress is wanted
        """
        params = {"name": tool, "arguments": arguments}
        if is_watched:
            params["_meta"] = {"progressToken": self._next}
            self._watched = [one for one in self._watched if one in self._waiting]
            self._watched.append(self._next)
        self._request("tools/call", params, key)

    def answer(self, number: object, result, error=None) -> None:
        """Answer the server's request *number*."""
        self._send({"id": number, "error": error} if error else {"id": number, "result": result})

    def again(self, key: object, tool: str, arguments: dict, answers: dict, state: object) -> None:
        """Send the call *key* once more, with what a person said to the server's questions."""
        params: dict[str, object] = {"name": tool, "arguments": arguments}
        params["inputResponses"] = answers
        if state is not None:
            params["requestState"] = state
        self._request("tools/call", params, key)

    def cancel(self, key: object) -> None:
        """Tell the server that nobody waits for the call *key* any more."""
        for number, one in list(self._waiting.items()):
            if one == key:
                del self._waiting[number]
                self._notify("notifications/cancelled", {"requestId": number})

    def ask_for_tools(self) -> None:
        """Ask for the tools again; the state is LIST until they are known."""
        self.state, self._found, self._pages, self.is_stale = LIST, {}, 0, False
        self._twice, self.left_out = [], []
        self._request("tools/list", {})

    def feed(self, data: bytes) -> list:
        """Take *data* from the server; return [(key, outcome), ...] of the calls that it answers.

        outcome  (True, text or JSON value), (False, ``ClawError``), or (ASKED, (number, state,
                 {name: params of a question})): the server asks a person, and the call goes on
                 with ``answer`` where there is a number, else with ``again``
        Raises ``Broken``.
        """
        done = []
        start = 0
        while True:
            end = data.find(b"\n", start)
            self._line += data[start:] if end < 0 else data[start:end]
            if len(self._line) > MAX_LINE:
                raise Broken("it sent a message of more than %d bytes" % MAX_LINE)
            if end < 0:
                return done
            line, self._line, start = bytes(self._line).strip(), bytearray(), end + 1
            if line:
                self._message(line, done)
            else:
                self._count()

    # -- one message

    def _message(self, line: bytes, done: list) -> None:
        try:
            message = self._decode(line)
        except Broken:
            self.odd_line = self.odd_line or _start(line)
            self._count()
            return
        self._take(message, done)

    def _decode(self, line: bytes) -> dict:
        try:
            message = self._loads(line)
        except ClawError:
            message = self._mend(line)
            if message is None:
                raise Broken("it sent what is not JSON: %s" % _start(line)) from None
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            raise Broken("it sent what is not JSON-RPC: %s" % _start(line))
        return message

    def _mend(self, line: bytes):
        """Return the value of a line that is JSON but for text that is no Unicode, else None:
        JavaScript cuts a text between the halves of an emoji, and writes the half.
        """
        from clawlite.core.base.text_repair import mend_json

        try:
            return self._loads(mend_json(line))
        except ClawError:
            return None

    def _take(self, message: dict, done: list) -> None:
        if "method" in message:
            self._take_request(message, done)
            return
        number = message.get("id")
        # it could not read a request, or its id: of those that wait the oldest is meant
        if number is None and "error" in message and self._waiting:
            number = min(self._list_waiting() or self._waiting)
        if type(number) is not int or not 0 <= number < self._next:
            raise Broken("it answered a request that was never sent, id %s" % show(number))
        if number not in self._waiting:  # of a call that was cancelled
            result = message.get("result", {})
            if number == 0 and self.state == INITIALIZE and _is_stateless(result):
                self._adopt(result)  # it was slow, and takes no handshake any more
            else:
                self._count()
            return
        self._unasked = 0
        key = self._waiting.pop(number)
        if key is None:
            self._prepare(message)
        elif key == LISTEN:
            self._listens = "error" not in message  # it refused, or said that no more comes
            self._has_ended = self._listens
        else:
            wanted = self._wanted if number < self._wanted_before else ""
            done.append((key, _outcome(message, wanted, self.asks, self.keep)))

    def _take_request(self, message: dict, done: list) -> None:
        method = message["method"]
        is_told = "id" not in message
        if is_told and method == "notifications/progress":
            if self._hear_of(message.get("params")):
                return
        self._count()
        if is_told:
            if method == "notifications/tools/list_changed":
                self.is_stale = True
            elif method == "notifications/subscriptions/acknowledged":
                self.is_stale = self.is_stale or self._pages > 0
        elif type(message["id"]) not in (str, int, float):
            pass  # no id of JSON-RPC: nobody could be answered, and a call must not be sent again
        elif method == "ping":
            self._send({"id": message["id"], "result": {}})
        elif method == ELICIT and self.asks and self._call_of() is not None:
            asked = (message["id"], None, {"": message.get("params")})
            done.append((self._call_of(), (ASKED, asked)))
        else:
            self._wanted, self._wanted_before = show(method), self._next
            error = {"code": -32601, "message": "this client does not offer %s" % self._wanted}
            self._send({"id": message["id"], "error": error})

    def _hear_of(self, params: object) -> bool:
        """Take what a server tells of a call whose progress is wanted, and return True; what is of
        none, or no progress, is dropped.  It is not counted: the call has a time of its own.
        """
        params = params if isinstance(params, dict) else {}
        token, number, total = [params.get(name) for name in ("progressToken", "progress", "total")]
        is_wanted = type(token) is int and token in self._watched
        key = self._waiting.get(token) if is_wanted else None
        is_heard = key is not None and _is_number(number)
        if is_heard:
            message = params.get("message")
            total = total if _is_number(total) else None
            message = message if isinstance(message, str) else ""
            self.progress[key] = number, total, message[:MAX_SAID]
        return is_heard

    def _call_of(self):
        """Return the call in which a message came: on one stream for all, the oldest."""
        number = self._during
        if number is None:
            calls = [one for one in self._list_waiting() if self._waiting[one] is not None]
            number = min(calls) if calls else None
        return self._waiting.get(number)

    def _list_waiting(self) -> list:
        """Return the numbers of the requests that wait; a subscription does not."""
        return [one for one in self._waiting if self._waiting[one] != LISTEN]

    def _count(self) -> None:
        self._unasked += 1
        if self._unasked > MAX_UNASKED:
            raise Broken("it sent %d messages that answer nothing" % MAX_UNASKED)

    def _prepare(self, message: dict) -> None:
        """Take the answer to a request of the client's own."""
        result = message.get("result", {})
        if self.state == DISCOVER:
            if _is_stateless(result):
                self._adopt(result)
            else:
                self._initialize()
        elif "error" in message:
            is_first = self.state == INITIALIZE
            asked = "initialize" if is_first else "tools/list"
            raise Broken(
                "it answers %s with an error: %s" % (asked, _error_message(message["error"])),
                ASK_ANEW if is_first and self._is_known else "",
            )
        elif not isinstance(result, dict):
            raise Broken("it sent an answer without a result")
        elif self.state == INITIALIZE:
            version = result.get("protocolVersion")
            if version not in HANDSHAKE:
                raise Broken(
                    "it speaks version %s of MCP; expected %s or %s"
                    % (show(version), STATELESS, ", ".join(HANDSHAKE))
                )
            self.version, self.may_change = version, _may_change(result)
            self._notify("notifications/initialized", {})
            self.ask_for_tools()
        else:
            self._page(result)

    def _adopt(self, result: dict) -> None:
        """The server speaks the newer era."""
        self._waiting.clear()
        self.is_stateless, self.may_change = True, _may_change(result)
        self.ask_for_tools()

    def _page(self, result: dict) -> None:
        tools = result.get("tools")
        self._pages += 1
        if not isinstance(tools, list):
            raise Broken("its list of tools is none")
        for tool in tools:
            name = tool.get("name") if isinstance(tool, dict) else None
            if isinstance(name, str) and name not in self._found:
                self._found[name] = tool
            elif isinstance(name, str):
                self._twice.append(name)  # which one a call means is not known
            else:
                self.left_out.append(("", "it has no name"))
        if (
            len(self._found) + len(self._twice) + len(self.left_out) > MAX_TOOLS
            or self._pages > MAX_PAGES
        ):
            raise Broken("it lists more than %d tools, or %d pages" % (MAX_TOOLS, MAX_PAGES))
        cursor = result.get("nextCursor")
        if cursor is not None:
            self._request("tools/list", {"cursor": cursor})
        else:
            for name in self._twice:
                if self._found.pop(name, None) is not None:
                    self.left_out.append((name, "it is listed twice"))
            self.tools, self.state = self._found, READY

    def _wants_to_listen(self) -> bool:
        if not (self.is_stateless and self.may_change and self._listens and self.state == READY):
            return False
        return LISTEN not in self._waiting.values()

    # -- what is sent

    def _initialize(self) -> None:
        self._waiting.clear()  # nobody waits for the answer to server/discover any more
        self.is_stateless, self.state = False, INITIALIZE
        self._request(
            "initialize",
            {
                "protocolVersion": HANDSHAKE[0],
                "capabilities": self._list_capabilities(),
                "clientInfo": self._info,
            },
        )

    def _list_capabilities(self) -> dict:
        return {"elicitation": {"form": {}}} if self.asks else {}

    def _subscribe(self) -> None:
        wanted = {"notifications": {"toolsListChanged": True}}
        self._request("subscriptions/listen", wanted, LISTEN)

    def _request(self, method: str, params: dict, key: object = None) -> None:
        number, self._next = self._next, self._next + 1
        self._waiting[number] = key
        self._send({"id": number, "method": method, "params": self._with_meta(params)})

    def _notify(self, method: str, params: dict) -> None:
        self._send({"method": method, "params": self._with_meta(params)})

    def _with_meta(self, params: dict) -> dict:
        if not self.is_stateless:
            return params
        params = dict(params)
        meta = params["_meta"] = dict(params.get("_meta") or {})
        meta["io.modelcontextprotocol/protocolVersion"] = STATELESS
        meta["io.modelcontextprotocol/clientInfo"] = self._info
        meta["io.modelcontextprotocol/clientCapabilities"] = self._list_capabilities()
        return params

    def _send(self, message: dict) -> None:
        message["jsonrpc"] = "2.0"
        self.out += self._dumps(message).encode() + b"\n"


def _start(line: bytes) -> str:
    """Return the start of a line that is perhaps no text, as a person may see it."""
    return show("".join(chr(byte) if 32 <= byte < 127 else "." for byte in line[:80]))


def _is_number(value: object) -> bool:
    return type(value) is int or type(value) is float and value - value == 0


def _is_stateless(result: object) -> bool:
    versions = result.get("supportedVersions") if isinstance(result, dict) else None
    return isinstance(versions, list) and STATELESS in versions


def _may_change(result: dict) -> bool:
    offered = result.get("capabilities")
    tools = offered.get("tools") if isinstance(offered, dict) else None
    return isinstance(tools, dict) and tools.get("listChanged") is True


def _error_message(error: object) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return message[:MAX_SAID] if isinstance(message, str) else show(message)


def _outcome(message: dict, wanted: str, asks: bool, keep=None) -> tuple:
    """Return the outcome of a call out of its answer.

    wanted  what the server asked for while the call was under way, and did not get, or ""
    asks    a person can be asked
    keep    as ``MCPClient.keep``
    """
    if "error" in message:
        error = message["error"]
        cls = (
            InvalidParams if isinstance(error, dict) and error.get("code") == -32602 else ClawError
        )
        return False, _failure(
            cls, "the MCP server says: %s" % _error_message(error), wanted or _list_required(error)
        )
    result = message.get("result")
    if not isinstance(result, dict):
        return False, ClawError("the MCP server sent an answer without a result", OUTCOME_UNKNOWN)
    if result.get("resultType", "complete") != "complete":
        requests, state = result.get("inputRequests") or {}, result.get("requestState")
        if asks and _are_forms(requests, state):
            return ASKED, (
                None,
                state,
                {name: requests[name]["params"] for name in requests},
            )
        return False, make_input_error(requests)
    content = result.get("content", [])
    keep = keep and _first_of(keep)
    text = (
        "\n".join([_block(block, keep) for block in content]) if isinstance(content, list) else ""
    )
    if result.get("isError") is True:
        error = "the tool failed: %s" % (text or "it does not say why")
        return False, _failure(ClawError, error, wanted)
    return True, result["structuredContent"] if "structuredContent" in result else text


def _first_of(keep):
    """Return *keep* for the first ``MAX_KEPT`` pieces of one result: each is a file, and is written
    before anything else goes on.
    """
    count = 0

    def keep_one(kind: str, data: str) -> str:
        nonlocal count
        count += 1
        if count > MAX_KEPT:
            return "not kept: a result has at most %d files" % MAX_KEPT
        return keep(kind, data)

    return keep_one


def _failure(cls, message: str, wanted: str) -> ClawError:
    if not wanted:
        return cls(message)
    return cls("%s - during the call it asked for %s; %s" % (message, wanted, _UNANSWERED))


def make_input_error(requests: object) -> ClawError:
    """Return the error of a call for which the server wants more input, and gets none."""
    asked = _inputs(requests)
    what = "the MCP server wants more input for this call%s; %s"
    return ClawError(what % (": " + asked if asked else "", _UNANSWERED))


def spoke_oddly(name: str, line: str) -> str:
    """Return what a person is told of the server *name* whose ``odd_line`` is *line*."""
    return (
        "the MCP server %s writes to stdout what is no message, and it is skipped: %s - what a "
        "server logs belongs on stderr" % (name, line)
    )


def often_ended(name: str) -> str:
    """Return what a person is told of the server *name* when ``is_often_ended``."""
    return (
        "the MCP server %s has ended %d subscriptions in a row: it is asked for another one every "
        "%d s, so what it changes may be seen that late"
        % (name, MANY_ENDS, LONGEST_PAUSE_MS // 1000)
    )


def _are_forms(requests: object, state: object) -> bool:
    """Return whether all that the server wants is put to a person; nothing is, where it wants the
    call alone once more.
    """
    if not requests:
        return isinstance(state, str)
    return isinstance(requests, dict) and all(
        isinstance(one, dict)
        and one.get("method") == ELICIT
        and isinstance(one.get("params"), dict)
        for one in requests.values()
    )


def _list_required(error: object) -> str:
    """Return the abilities of a client without which the server does not make the call."""
    data = error.get("data") if isinstance(error, dict) else None
    required = data.get("requiredCapabilities") if isinstance(data, dict) else None
    if not isinstance(required, dict):
        return ""
    return ", ".join([show(name) for name in sorted(required)[:MAX_INPUTS]])


def _inputs(requests: object) -> str:
    """Return what the server asks for, and the words of its questions."""
    found = []
    wanted = requests if isinstance(requests, dict) else {}
    for name in sorted(wanted)[:MAX_INPUTS]:
        one = wanted[name] if isinstance(wanted[name], dict) else {}
        params = one.get("params", {})
        params = params if isinstance(params, dict) else {}
        said = " " + show(params["message"]) if "message" in params else ""
        found.append(show(one.get("method")) + said)
    return ", ".join(found)


def _block(block: object, keep) -> str:
    """Return one piece of content as text; what is no text is named with its type and size, and
    where it is kept.
    """
    if not isinstance(block, dict):
        return "[content of no known form]"
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return block["text"]
    if kind == "resource_link":
        return "[resource %s]" % show(block.get("uri"))
    inner = block.get("resource") if kind == "resource" else block
    inner = inner if isinstance(inner, dict) else {}
    if isinstance(inner.get("text"), str):
        return inner["text"]
    data = inner.get("data", inner.get("blob"))
    size = len(data) * 3 // 4 - data[-2:].count("=") if isinstance(data, str) else 0
    mime = inner.get("mimeType")
    where = keep(mime if isinstance(mime, str) else "", data) if keep and size > 0 else "not shown"
    return "[%s %s, %d bytes, %s]" % (show(kind), show(mime), size, where)
