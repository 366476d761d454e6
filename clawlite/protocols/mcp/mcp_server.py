"""A server of the Model Context Protocol, without I/O: it takes decoded messages and sends others.

1. It speaks both eras, message by message: a request whose ``_meta`` names a version belongs to the
   stateless era (2026-07-28); any other needs ``initialize`` first.
2. Calls are answered by the *offer*, an object with:
       tools(), prompts()   definitions, as ``tools/list`` and ``prompts/list`` return them
       begin(call)          start ``call.name``; later it calls ``finish``, and ``ask`` before that
                            when a person has to approve
       answer(call, approved, reason), cancel(call)
       fill_form(call, said)  a person has answered the form of ``ask``: {"action", "content"},
                            as the client sent it, unchecked
3. In the handshake era a person is asked by ``elicitation/create``.  In the stateless era the
   result asks for input, and the call waits until the client sends the request again, which runs
   nothing twice.  When a client cannot ask anybody, the call is denied and the result says why.
4. Calls that were ended or cancelled are forgotten, and later messages for them are dropped.  A
   request that its client cancels gets no answer.
"""

from clawlite.core.base.errors import (
    ClawError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    wrap_error,
)
from clawlite.core.base.jsonvalue import show
from clawlite.protocols.mcp.mcp_client import HANDSHAKE, STATELESS

PAGE = 100  # tools or prompts of one answer
MAX_PAUSED = 64  # calls that wait for a retry
_META = "io.modelcontextprotocol/"
_APPROVAL = "approval"
NO_WAY = (
    "it needs a person's approval, and this client can ask nobody: use a client that offers "
    "elicitation, or let a rule of the policy allow it"
)


class _Refusal(ClawError):
    """An error with a code that MCP defines."""

    def __init__(self, code: int, message: str, data: dict) -> None:
        super().__init__(message, "", data)
        self.code = code


class Call:
    """One running call.

    server           ``MCPServer``
    name, arguments  of the tool
    is_prompt        the result is returned as the messages of a prompt
    id, origin       of the request that waits for the answer; None while the call is paused
    is_stateless, can_ask   of the client that made the call
    has_form         a person is asked for more than yes or no
    token            of its progress, or None
    progress, base   the number that was sent last, and the last number of this server's own
                     messages
    state            str, by which a retry of the request finds it, or None
    number           any value that the offer keeps
    """

    id: object = None
    origin: object = None
    token: object = None
    state = number = None
    is_stateless = can_ask = has_form = False
    progress = base = 0

    def __init__(self, server, name: str, arguments: dict, is_prompt: bool) -> None:
        self.server = server
        self.name, self.arguments, self.is_prompt = name, arguments, is_prompt


class MCPServer:
    """The server of one client, or of all clients of a stateless transport.

    offer   as above
    info    {"name", "version"} of the agent
    send    function(message, origin): *origin* of the request that it belongs to, as given to
            ``take``
    random  function() -> str that nobody can guess
    closed  function(origin), or None: the request of *origin* was cancelled, so a transport that
            keeps a connection open for its answer closes it
    is_shared  bool, several clients of the stateless era: each origin has ids of its own
    """

    def __init__(
        self, offer, info: dict, send, random, closed=None, is_shared: bool = False
    ) -> None:
        self._closed = closed
        self._offer, self._info, self._send, self._random = offer, info, send, random
        self._calls = {}  # (origin or None, id) -> Call
        self._paused = {}  # state -> Call
        self._questions = {}  # id of ours -> Call
        self._last = 0
        self._capabilities: dict | None = None  # of the client, once initialize came
        self._is_shared = is_shared

    @property
    def is_open(self) -> bool:
        """Whether a handshake was made."""
        return self._capabilities is not None

    def take(self, message: object, origin: object = None) -> None:
        """Take one message; its answer is sent now or later."""
        id = message.get("id") if isinstance(message, dict) else None
        id = id if isinstance(id, str) or type(id) is int else None
        try:
            if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
                raise InvalidRequest("expected one JSON-RPC 2.0 message")
            method, params = message.get("method"), message.get("params", {})
            if "method" not in message and id is not None:
                self._take_answer(id, message)
                return
            if not isinstance(method, str) or not isinstance(params, dict):
                raise InvalidRequest("method: expected a string, params: expected an object")
            if "id" not in message:
                if method == "notifications/cancelled":
                    self.cancel(params.get("requestId"), origin)
                return
            if id is None:
                raise InvalidRequest("id: expected a string or an integer")
            result = self._request(id, method, params, origin)
        except Exception as e:
            self._reply(id, origin, e if isinstance(e, ClawError) else wrap_error(e), True)
            return
        if result is not None:
            self._reply(id, origin, result, False)

    def cancel(self, id: object, origin: object = None) -> None:
        """End the call of the request *id*, which then gets no answer."""
        call = self._calls.pop(self._key(id, origin), None)
        if call is not None:
            self._forget(call)
            self._offer.cancel(call)
            if self._closed is not None:
                self._closed(call.origin)

    def drop(self, origin: object) -> None:
        """End all calls of *origin*: nobody waits for them any more."""
        for key, call in list(self._calls.items()):
            if call.origin == origin:
                self.cancel(key[1], origin)

    def close(self) -> None:
        """End all calls: the client has gone."""
        for call in list(self._calls.values()) + list(self._paused.values()):
            self._offer.cancel(call)
        self._calls, self._paused, self._questions = {}, {}, {}

    # -- from the offer

    def ask(self, call: Call, question: str, form=None) -> None:
        """Ask a person to approve *call* before it continues, or to fill in a form.

        form  its schema, or None
        """
        call.has_form = form is not None
        if not call.can_ask:
            self._offer.answer(call, False, NO_WAY)
            return
        params = {
            "mode": "form",
            "message": question,
            "requestedSchema": form
            or {
                "type": "object",
                "properties": {"approve": {"type": "boolean", "title": "Let it run?"}},
                "required": ["approve"],
            },
        }
        if call.is_stateless:
            self._pause(call, {"method": "elicitation/create", "params": params})
            return
        del params["mode"]  # clients older than 2025-11-25 do not know it; a form is the default
        self._last += 1
        number = self._last
        self._questions[number] = call
        self._tell_progress(call, "waiting for a person" + ("" if form else "'s approval"))
        self._send(
            {"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": params},
            call.origin,
        )

    def finish(self, call: Call, result, error) -> None:
        """Answer *call* with the result of ``tools/call``, or with the ``ClawError`` *error*, and
        take back what it asks a person.
        """
        for number in self._forget(call):
            params = {"requestId": number, "reason": "its call has ended"}
            note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            self._send(note, call.origin)
        if call.id is None:
            return
        self._calls.pop(self._key(call.id, call.origin), None)
        if error is None and call.is_prompt:
            if result.get("isError"):
                error = ClawError(result["content"][0]["text"])
            else:
                messages = [{"role": "user", "content": one} for one in result["content"]]
                result = {"messages": messages}
        if error is None and call.is_stateless:
            result["resultType"] = "complete"
        self._reply(call.id, call.origin, error or result, error is not None)

    # -- requests

    def _request(self, id: object, method: str, params: dict, origin: object) -> dict | None:
        """Return the result, or None when it comes later."""
        if method == "initialize":
            return self._initialize(params)
        capabilities, is_stateless = self._client(params)
        if method == "ping":
            return {}
        if capabilities is None:
            raise InvalidRequest("%s: expected initialize first" % method[:60])
        if method == "server/discover" and is_stateless:
            versions = [STATELESS] + list(HANDSHAKE)
            found: dict = {"supportedVersions": versions, "capabilities": self._list_capabilities()}
        elif method == "tools/list":
            found = self._page("tools", self._offer.tools(), params)
        elif method == "prompts/list":
            found = self._page("prompts", self._offer.prompts(), params)
        elif method in ("tools/call", "prompts/get"):
            self._call(id, method == "prompts/get", params, origin, capabilities)
            return None
        else:
            raise MethodNotFound("this server does not offer %s" % method[:60])
        if is_stateless:
            found["resultType"] = "complete"
            found["ttlMs"], found["cacheScope"] = 0, "private"
            found["_meta"] = {_META + "serverInfo": self._info}
        return found

    def _client(self, params: dict) -> tuple:
        """Return (capabilities of the client that sent *params*, None before its handshake; whether
        it speaks the stateless era).
        """
        meta = params.get("_meta", {})
        version = meta.get(_META + "protocolVersion") if isinstance(meta, dict) else None
        if version is None:
            return self._capabilities, False
        if version != STATELESS:
            data = {"supported": [STATELESS] + list(HANDSHAKE), "requested": version}
            raise _Refusal(-32022, "unsupported protocol version %s" % show(version), data)
        capabilities = meta.get(_META + "clientCapabilities")
        if not isinstance(capabilities, dict):
            raise InvalidParams("_meta: expected %sclientCapabilities, an object" % _META)
        return capabilities, True

    def _initialize(self, params: dict) -> dict:
        version, capabilities = params.get("protocolVersion"), params.get("capabilities")
        if not isinstance(version, str):
            raise InvalidParams("protocolVersion: expected a string, got %s" % show(version))
        if not isinstance(capabilities, dict):
            raise InvalidParams("capabilities: expected an object, got %s" % show(capabilities))
        if self.is_open:
            raise InvalidRequest("initialize: this session is open already")
        self._capabilities = capabilities
        return {
            "protocolVersion": version if version in HANDSHAKE else HANDSHAKE[0],
            "capabilities": self._list_capabilities(),
            "serverInfo": self._info,
        }

    def _list_capabilities(self) -> dict:
        offered: dict[str, dict] = {"tools": {}}
        if self._offer.prompts():
            offered["prompts"] = {}
        return offered

    def _page(self, name: str, found: list, params: dict) -> dict:
        cursor = params.get("cursor", "0")
        # isdigit alone also takes digits that int refuses
        is_number = isinstance(cursor, str) and cursor.isdigit() and max(cursor) <= "9"
        if not is_number or len(cursor) > 9 or int(cursor) > len(found):
            raise InvalidParams("cursor: expected one of this server's, got %s" % show(cursor))
        at = int(cursor)
        page: dict[str, object] = {name: found[at : at + PAGE]}
        if at + PAGE < len(found):
            page["nextCursor"] = str(at + PAGE)
        return page

    def _call(
        self, id: object, is_prompt: bool, params: dict, origin: object, capabilities: dict
    ) -> None:
        name, arguments = params.get("name"), params.get("arguments", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise InvalidParams("expected name, a string, and arguments, an object")
        if self._key(id, origin) in self._calls:
            raise InvalidRequest("id: a request with %s is under way" % show(id))
        meta = params.get("_meta", {})
        meta = meta if isinstance(meta, dict) else {}
        is_stateless = (_META + "protocolVersion") in meta
        state = params.get("requestState")
        call = None
        if is_stateless and state is not None:
            call = self._resume(state, name, arguments, is_prompt)
        if call is None:
            kinds = [one["name"] for one in self._offer.prompts()] if is_prompt else [name]
            if name not in kinds:
                raise InvalidParams("unknown prompt %s" % show(name))
            call = Call(self, name, arguments, is_prompt)
            call.is_stateless, call.can_ask = is_stateless, _can_ask(capabilities)
        call.id, call.origin, call.token = id, origin, meta.get("progressToken")
        self._calls[self._key(id, origin)] = call
        if is_stateless and state is not None:
            responses = params.get("inputResponses")
            self._take_decision(
                call, responses.get(_APPROVAL) if isinstance(responses, dict) else None
            )
            return
        try:
            self._offer.begin(call)
        except Exception:
            del self._calls[self._key(id, origin)]
            raise

    def _resume(self, state, name: str, arguments: dict, is_prompt: bool) -> Call:
        call = self._paused.get(state) if isinstance(state, str) else None
        if call is None:
            raise InvalidParams(
                "requestState: no call waits under it: it has ended, or its time was over",
                "make the call anew, without requestState",
            )
        if (call.name, call.arguments, call.is_prompt) != (name, arguments, is_prompt):
            raise InvalidParams("requestState: it belongs to another call")
        del self._paused[state]
        call.state = None
        return call

    # -- approvals

    def _pause(self, call: Call, request: dict) -> None:
        """Let *call* wait for the retry of its request."""
        if len(self._paused) >= MAX_PAUSED:
            self._offer.answer(call, False, "%d calls wait for approval already" % MAX_PAUSED)
            return
        id, origin = call.id, call.origin
        del self._calls[self._key(id, origin)]
        call.id = call.origin = None
        call.state = self._random()
        self._paused[call.state] = call
        result = {
            "resultType": "input_required",
            "inputRequests": {_APPROVAL: request},
            "requestState": call.state,
        }
        self._reply(id, origin, result, False)

    def _take_answer(self, id: object, message: dict) -> None:
        """Take a client's answer to a question of ours; an unknown id is ignored."""
        call = self._questions.pop(id, None)
        if call is not None:
            self._take_decision(call, message.get("result"))

    def _take_decision(self, call: Call, said) -> None:
        """Take a person's answer: only a plain yes approves."""
        said = said if isinstance(said, dict) else {}
        if call.has_form:
            self._tell_progress(call, "a person has answered")
            self._offer.fill_form(call, said)
            return
        content = said.get("content")
        is_yes = isinstance(content, dict) and content.get("approve") is True
        approved = said.get("action") == "accept" and is_yes
        self._tell_progress(call, "approved" if approved else "not approved")
        self._offer.answer(call, approved, "" if approved else "the client's user did not agree")

    def _forget(self, call: Call) -> list:
        """Return the numbers of the questions of *call* that nobody may answer any more."""
        if call.state is not None:
            self._paused.pop(call.state, None)
        numbers = [number for number in self._questions if self._questions[number] is call]
        for number in numbers:
            del self._questions[number]
        return numbers

    # -- what is sent

    def _key(self, id: object, origin: object) -> tuple:
        return (origin if self._is_shared else None, id)

    def went_on(self, call: Call, progress, total, text: str) -> None:
        """Send the *progress* of *call*'s work, which may only grow (MCP, "Progress")."""
        number, most = call.base + progress, call.base + (total or 0)
        if number > call.progress and number - number == most - most == 0:  # no infinity is JSON
            more: dict[str, object] = {} if total is None else {"total": most}
            if text:
                more["message"] = text
            self._progress(call, number, more)

    def _tell_progress(self, call: Call, text: str) -> None:
        self._progress(call, int(call.progress) + 1, {"message": text})
        call.base = call.progress

    def _progress(self, call: Call, number, more: dict) -> None:
        if call.token is not None and call.id is not None:
            call.progress = number
            params = dict(more, progressToken=call.token, progress=number)
            self._send(
                {"jsonrpc": "2.0", "method": "notifications/progress", "params": params},
                call.origin,
            )

    def _reply(self, id: object, origin: object, value, failed: bool) -> None:
        message = {"jsonrpc": "2.0", "id": id}
        message["error" if failed else "result"] = value.to_json() if failed else value
        self._send(message, origin)


def _can_ask(capabilities: dict) -> bool:
    """Return whether a client can put forms to a person: an empty object means that it can."""
    offered = capabilities.get("elicitation")
    return isinstance(offered, dict) and (not offered or "form" in offered)


def result_of(told: dict) -> dict:
    """Return the result of ``tools/call`` for a result of ``claw.tool.call``: a cut is described in
    text, because a model reads it.
    """
    content = list(told["content"])
    if told.get("original_bytes"):
        cut = "[cut: this was the start of %d bytes]" % told["original_bytes"]
        content.append({"type": "text", "text": cut})
    return {"content": content, "isError": told["isError"]}


def without_secrets(guard, value):
    """Return *value*, JSON, without secrets in its texts, names among them: a field whose name is
    one cannot be filled in.

    guard  ``scan/guard.py``, or None where no policy looks for secrets
    """
    if guard is None:
        return value
    if isinstance(value, str):
        return guard.text(value)
    if isinstance(value, dict):
        return {guard.text(name): without_secrets(guard, one) for name, one in value.items()}
    return [without_secrets(guard, one) for one in value] if isinstance(value, list) else value


def error_result(error: dict) -> dict:
    """Return the result of a call that a gate refused, or that was ended, made from its JSON-RPC
    *error*.
    """
    data = error.get("data")
    hint = data.get("hint") if isinstance(data, dict) else None
    text = "%s%s" % (error.get("message"), " - %s" % hint if hint else "")
    return {
        "content": [{"type": "text", "text": text}],
        "isError": True,
        "_meta": {"clawlite/error": error},
    }
