"""The agent's tools for MCP clients over Streamable HTTP, at http://127.0.0.1:PORT/mcp.

1. It listens on this machine alone, and each request must carry a token (``Authorization: Bearer
   ...``).  A request whose Host or Origin is not this machine is refused: a web page in a browser
   may use a name that resolves to this machine (DNS rebinding).
2. Clients of the handshake era have sessions, each a conversation of its own
   (protocols/mcp/mcp_server.py).  At most ``MAX_SESSIONS``: one more ends the session that has been
   silent for longest.  Clients of the stateless era share one conversation.
3. The answer to a request is JSON.  It is a stream of events instead when something comes before
   the answer: progress, or a question for a person.
4. A client of the stateless era cancels its call when it closes its connection.  In the handshake
   era the call goes on, and its result is lost.  A request that is cancelled by a message is
   answered by a stream without an answer in it: an open connection would keep one of the client's
   places, and a client that waits on it while it ends the session would get an error.
5. Messages of one step of the loop are sent in the next step, when the log and the audit are
   written.
"""

import os
from urllib.parse import urlsplit

from clawlite.core.base.errors import ClawError, InvalidRequest, ParseError, wrap_error
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.mcp.offer import Offer, Session, random
from clawlite.linux.net.http_request import Refused, Request
from clawlite.linux.net.http_server import Server
from clawlite.protocols.mcp.mcp_client import HANDSHAKE
from clawlite.protocols.mcp.mcp_headers import decode, of_arguments
from clawlite.protocols.mcp.mcp_server import MCPServer
from clawlite.protocols.net.netaddress import address_of, is_loopback

PATH = "/mcp"
MAX_BODY = 4194304  # bytes of a message
MAX_SESSIONS = 64
HEADER_MISMATCH = -32020
_META = "io.modelcontextprotocol/protocolVersion"
_NAMED = {"tools/call": "name", "prompts/get": "name"}
# of the stateless era: code of an error -> status of its answer
_STATUS = {-32700: 400, -32600: 400, -32602: 400, -32020: 400, -32022: 400, -32601: 404}


class Door:
    """Checks the head of each request before its body is read, in the server's thread.

    is_right   function(bearer, bytes) -> whether its sender may ask
    """

    def __init__(self, is_right):
        self._is_right = is_right

    def admit(self, request: Request):
        """Raise ``Refused`` for who may not ask, and for what is no message."""
        headers = request.headers
        origin = headers.get("origin")
        if not _is_here("//" + headers.get("host", "")):
            raise Refused(403, "Host: expected 127.0.0.1 or localhost, use one of them in the URL")
        if origin is not None and not _is_here(origin):
            raise Refused(403, "Origin: web pages of other machines may not call this server")
        if request.path != PATH:
            raise Refused(404, "there is nothing here: the tools are at %s" % PATH)
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self._is_right(bearer.strip().encode("latin-1")):
            raise Refused(
                401,
                "expected the header Authorization: Bearer TOKEN",
                [("WWW-Authenticate", "Bearer")],
            )
        if request.method not in ("POST", "DELETE"):
            raise Refused(405, "a message is sent with POST", [("Allow", "POST, DELETE")])
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if request.method == "POST" and kind != "application/json":
            raise Refused(415, "expected Content-Type: application/json")


class _Client:
    """A request that waits for its answer in *conversation*."""

    def __init__(self, conversation: MCPServer, is_stateless: bool):
        self.conversation, self.is_stateless = conversation, is_stateless
        self.is_stream, self.headers = False, []


class HTTPSession(Session):
    """All MCP clients of an agent.  It takes the place of an operator's session
    (core/protocol/session.py), and is a member of the shell's loop (``AgentParts.add_part``).
    """

    swarm = None
    _server: Server

    def __init__(self, agent, loads, answer=None):
        self._offer = Offer(agent)
        self._shared = self._conversation(True)
        self._sessions = {}  # id -> MCPServer, the one used last at the end
        self._clients = {}  # number of a client -> _Client
        self._out = []  # (message, number of a client)
        self._heard = None
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def listen(self, host: str, port: int, is_right, heard) -> str:
        """Begin to listen; return the URL.

        is_right  see ``Door``
        heard   function(message) -> what is sent instead (``Startup.flush_answer``), or None
        Raises ``ClawError`` for an address that is taken.
        """
        self._heard = heard
        admit, check = Door(is_right).admit, lambda request: request
        self._server = Server(host, port, MAX_BODY, check, self._writer, True, admit)
        shown = "[%s]" % host if ":" in host else host
        return "http://%s:%d%s" % (shown, self._server.port, PATH)

    def _conversation(self, is_shared: bool = False) -> MCPServer:
        offer = self._offer
        return MCPServer(offer, offer.info, self._say, random, self._close_stream, is_shared)

    # -- what comes

    def poll(self):
        """Send the messages of the last step, and handle the requests that have come."""
        out, self._out = self._out, []
        for message, number in out:
            self._send(message, number)
        try:
            os.read(self._reader, 512)
        except BlockingIOError:
            pass
        for number, request in self._server.poll():
            if request is not None:
                self._request(number, request)
            elif number in self._clients and self._clients.pop(number).is_stateless:
                self._shared.drop(number)

    def _request(self, number: int, request: Request):
        try:
            if request.method == "DELETE":
                self._end(self._session(request.headers, True))
                self._server.answer(number, 200, b"")
            else:
                self._message(number, request)
        except _Answered as e:
            self._refuse(number, e.status, e.error)
        except Exception as e:  # this request fails, and no other one
            self._clients.pop(number, None)
            self._refuse(number, 500, wrap_error(e))

    def _message(self, number: int, request: Request):
        try:
            message = loads(request.body)
        except ClawError as e:
            raise _Answered(400, ParseError(e.message)) from None
        if not isinstance(message, dict):
            raise _Answered(400, InvalidRequest("expected one JSON-RPC 2.0 message"))
        version = _version(message)
        if version is not None:
            conversation = self._shared
            _compare(message, version, request.headers, self._offer)
        else:
            conversation = self._of_session(message, request.headers)
        if "method" not in message or "id" not in message:
            conversation.take(message, number)
            self._server.answer(number, 202, b"")
            return
        client = self._clients[number] = _Client(conversation, version is not None)
        conversation.take(message, number)
        if message["method"] == "initialize" and conversation.is_open and version is None:
            client.headers = [("Mcp-Session-Id", self._keep(conversation))]

    def _of_session(self, message: dict, headers: dict) -> MCPServer:
        version = headers.get("mcp-protocol-version")
        if version is not None and version not in HANDSHAKE:
            raise _Answered(
                400,
                InvalidRequest(
                    "MCP-Protocol-Version %s: expected one of %s, or 2026-07-28 and _meta with the "
                    "same" % (version[:40], ", ".join(HANDSHAKE))
                ),
            )
        if message.get("method") == "initialize":
            return self._conversation()
        return self._session(headers)

    def _session(self, headers: dict, ends: bool = False) -> MCPServer:
        id = headers.get("mcp-session-id")
        if id is None:
            raise _Answered(400, InvalidRequest("expected Mcp-Session-Id, or initialize first"))
        conversation = self._sessions.pop(id, None)
        if conversation is None:
            raise _Answered(404, _no_session())
        if not ends:
            self._sessions[id] = conversation
        return conversation

    def _keep(self, conversation: MCPServer) -> str:
        if len(self._sessions) >= MAX_SESSIONS:
            self._end(self._sessions.pop(next(iter(self._sessions))))
        id = random()
        self._sessions[id] = conversation
        return id

    def _end(self, conversation: MCPServer):
        """End a session and its calls, and answer the clients that wait for one."""
        conversation.close()
        for number, client in list(self._clients.items()):
            if client.conversation is conversation:
                del self._clients[number]
                if client.is_stream:
                    self._server.send(number, b"", True)
                else:
                    self._refuse(number, 404, _no_session())

    def _refuse(self, number: int, status: int, error: ClawError):
        data = dumps({"jsonrpc": "2.0", "id": None, "error": error.to_json()})
        self._server.answer(number, status, data.encode())

    # -- what is said

    def _say(self, message: dict, origin):
        self._out.append((message, origin))

    def _close_stream(self, number):
        client = self._clients.pop(number, None)
        if client is not None:
            if not client.is_stream:
                self._server.begin(number, client.headers)
            self._server.send(number, b"", True)

    def _send(self, message: dict, number):
        client = self._clients.get(number)
        if client is None:  # it has gone, or sent what has no answer
            return
        if self._heard is not None:
            message = self._heard(message)
        try:
            text = dumps(message)
        except ValueError as e:  # a handler gave what JSON lacks
            error = {"code": -32603, "message": "no JSON: %s" % e}
            message = {"jsonrpc": "2.0", "id": message.get("id"), "error": error}
            text = dumps(message)
        is_last = "method" not in message
        if not is_last and not client.is_stream:
            client.is_stream = True
            self._server.begin(number, client.headers)
        if client.is_stream:
            self._server.send(number, b"event: message\ndata: %s\n\n" % text.encode(), is_last)
        else:
            code = message.get("error", {}).get("code", 0)
            status = _STATUS.get(code, 200) if client.is_stateless else 200
            self._server.answer(number, status, text.encode(), client.headers)
        if is_last:
            del self._clients[number]

    # -- for the loop

    def fileno(self) -> int:
        return self._reader

    def deadline(self):
        return 0 if self._out else None

    def close(self):
        self._server.close()

    def record(self, data: bytes, at_ms: int):
        """Ignore input on stdin."""

    def too_long(self, size: int, limit: int):
        pass


class _Answered(Exception):
    """A request that is answered with an error at once."""

    def __init__(self, status: int, error: ClawError):
        super().__init__(error.message)
        self.status, self.error = status, error


class _Mismatch(ClawError):
    code = HEADER_MISMATCH


def _no_session() -> ClawError:
    return InvalidRequest("there is no such session: send initialize again")


def _is_here(url: str) -> bool:
    """Return whether the host of *url* is this machine."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    address = address_of(host)
    return host == "localhost" or address is not None and is_loopback(address)


def _version(message: dict):
    """Return the version that a message of the stateless era names, else None."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(_META) if isinstance(meta, dict) else None
    return version if isinstance(version, str) else None


def _compare(message: dict, version: str, headers: dict, offer: Offer):
    """Raise ``_Answered`` when a header and the body differ: a proxy may have looked at the headers
    alone.
    """
    method, params = message.get("method"), message["params"]
    if not isinstance(method, str):
        raise _Answered(400, InvalidRequest("method: expected a string"))
    expected = {"mcp-protocol-version": version, "mcp-method": method}
    if method in _NAMED:
        expected["mcp-name"] = params.get(_NAMED[method])
    if method == "tools/call" and isinstance(params.get("arguments"), dict):
        for tool in offer.tools():
            if tool["name"] == params.get("name"):
                try:
                    found = of_arguments(tool["inputSchema"], params["arguments"])
                except ClawError:  # no client can make headers of it either
                    found = []
                expected.update((name.lower(), decode(value)) for name, value in found)
    for name in sorted({name for name in headers if name.startswith("mcp-param-")} | set(expected)):
        given = decode(headers[name]) if name in headers else None
        if given != expected.get(name):
            text = "the header %s differs from the body: send the body's value" % name
            raise _Answered(400, _Mismatch(text))
