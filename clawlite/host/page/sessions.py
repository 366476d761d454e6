"""CKP for operators at /ckp/AGENT: Streamable HTTP and WebSocket, in front of control sockets.

Same methods and same answers as over stdio; whose rights count, a login has said (site.py).
"""

import asyncio
import collections
import contextlib
import json

from clawlite.host.page import agent_line, messages
from clawlite.host.page.agent_line import MAX_LINE, AgentGone
from clawlite.host.page.boards import find_absence
from clawlite.host.page.guard import HEADERS
from clawlite.host.page.http_session import ALIVE_S, IDLE_S, PATIENCE_S, Session
from clawlite.host.page.known_people import BOARD

SESSION = "Claw-Session-Id"
MAX_OPEN = 256  # requests, streams and WebSockets under way
MAX_OF_ONE = 64  # of them of one login
BODY_S = 10  # within which a body comes
TAKES_S = 30  # within which a client takes what it is sent
SWEEP_S = 5  # between looks who may still be here
_MOST_AHEAD = 64  # messages for a client, above which the agent is not read
_PIECE = 65536  # bytes that are read at once
_TEXT = 1  # the frame of a text: WSMsgType.TEXT, which only a page that runs has
_STREAM = "text/event-stream"


class Sessions:
    """The sessions of all operators.

    people, logins  ``KnownPeople``, ``Logins``
    """

    def __init__(self, people, logins):
        self._people, self._logins = people, logins
        self._sessions = {}  # id -> Session
        self._open = {}  # key of a login -> how many requests of it are under way
        self._sockets = {}  # WebSocketResponse -> (place, person, login)
        self._senders = {}  # WebSocketResponse -> _Sender

    # -- limits and ends

    @contextlib.contextmanager
    def _place(self, login):
        """Count a request while it is under way.  Raises an error of HTTP."""
        from aiohttp import web

        count = self._open.get(login.key, 0)
        if count >= MAX_OF_ONE or sum(self._open.values()) >= MAX_OPEN:
            raise web.HTTPTooManyRequests(text="too many requests are under way\n")
        self._open[login.key] = count + 1
        try:
            yield
        finally:
            self._open[login.key] -= 1
            if not self._open[login.key]:
                del self._open[login.key]

    async def sweep(self):
        """End, now and then, what is idle, and what belongs to people who may not be here."""
        while True:
            await asyncio.sleep(SWEEP_S)
            now_s = agent_line.now_s()
            for session in list(self._sessions.values()):
                is_late = session.is_idle and now_s - session.used_s > IDLE_S
                if is_late or session.is_over or not self._may_stay(session):
                    self._end(session)
            for socket, held in list(self._sockets.items()):
                if not self._is_held(*held):
                    await socket.close(code=1008, message=b"the login has ended")
            for sender in self._senders.values():
                sender.drop_slow(now_s)

    def _may_stay(self, session) -> bool:
        return self._is_held(session.place, session.person, session.login)

    def _is_held(self, place: str, person, login) -> bool:
        return self._logins.is_open(login) and login.person(place) == person

    def _end(self, session):
        self._sessions.pop(session.id, None)
        if session.line is not None:
            session.line.close()
        session.handle_end()

    async def end_login(self, login):
        """End all that belongs to *login*."""
        for session in [one for one in self._sessions.values() if one.login is login]:
            self._end(session)
        for socket, (_, _, owner) in list(self._sockets.items()):
            if owner is login:
                await socket.close(code=1008, message=b"the login has ended")

    async def close(self):
        for session in list(self._sessions.values()):
            self._end(session)
        for socket in list(self._sockets):
            await socket.close(code=1001)

    # -- Streamable HTTP

    async def post(self, request, login, place: str):
        """Answer a POST: a message or a batch for the agent *place*."""
        from aiohttp import web

        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(text="expected Content-Type: application/json\n")
        with self._place(login):
            body = await _read_body(request)
            if body is None:
                said = messages.too_long(request.content_length or MAX_LINE + 1, MAX_LINE)
                return web.Response(body=said, status=413, content_type="application/json")
            id = request.headers.get(SESSION)
            session = await self._begin(login, place) if id is None else self._of(id, login, place)
            try:
                return await self._answer(request, session, body)
            finally:
                # it is a session once claw.initialize was answered
                if session.id not in self._sessions:
                    self._end(session)

    async def _begin(self, login, place: str) -> Session:
        session = Session(place, login, agent_line.now_s())
        session.line = await self._connect(
            place, session.person, login, session.hear, session.handle_end
        )
        return session

    async def _connect(self, place: str, person, login, hear, ended):
        """Return a line to the agent or board *place*.  Raises ``AgentGone``."""
        folder = self._people.folder(place)
        try:
            return await agent_line.connect(folder, person, login.at_s, hear, ended)
        except AgentGone as e:
            if place.startswith(BOARD):
                raise find_absence(self._people.root, place[len(BOARD) :]) from None
            raise e

    def _of(self, id: str, login, place: str) -> Session:
        """Return the session *id* of this login, and of nobody else.  Raises an error of HTTP."""
        from aiohttp import web

        session = self._sessions.get(id)
        is_own = session is not None and session.place == place and session.login.key == login.key
        if session is None or not is_own or session.is_over or not self._may_stay(session):
            raise web.HTTPNotFound(text="there is no such session: send claw.initialize again\n")
        session.used_s = agent_line.now_s()
        return session

    async def _answer(self, request, session, body: bytes):
        from aiohttp import web

        future = session.send(body)
        if future is None:
            return web.Response(status=202)
        try:
            return await self._await_answer(request, session, future)
        finally:
            future.cancel()  # of a client that has gone: its answer becomes an event

    async def _await_answer(self, request, session, future):
        from aiohttp import web

        takes_stream = _STREAM in request.headers.get("Accept", "")
        done, _ = await asyncio.wait((future,), timeout=PATIENCE_S if takes_stream else None)
        if done:
            line = future.result()
            if line is None:
                raise AgentGone("the agent has ended", "send claw.initialize to the next one")
            headers = self._note_begun(session, line)
            return web.Response(body=line, content_type="application/json", headers=headers)
        stream = await _start_stream(request)
        while not future.done():
            await _write(stream, b": \n\n")
            await asyncio.wait((future,), timeout=ALIVE_S)
        if future.result() is not None:
            await _write(stream, _event(future.result()))
        return stream

    def _note_begun(self, session, line: bytes) -> dict:
        """Keep *session* when *line* is the answer that opens it; return headers of the answer."""
        if session.id in self._sessions:
            return {}
        result = json.loads(line)
        result = result.get("result") if isinstance(result, dict) else None
        if not isinstance(result, dict) or "agentInfo" not in result:
            return {}
        self._sessions[session.id] = session
        return {SESSION: session.id}

    async def get(self, request, login, place: str):
        """Answer a GET: the stream of what the agent tells by itself."""
        from aiohttp import web

        if _STREAM not in request.headers.get("Accept", ""):
            raise web.HTTPNotAcceptable(text="expected Accept: text/event-stream\n")
        session = self._of(request.headers.get(SESSION, ""), login, place)
        last = request.headers.get("Last-Event-ID", "")
        if last and not (last.isascii() and last.isdigit() and len(last) < 16):
            raise web.HTTPBadRequest(text="Last-Event-ID: expected the number of an event\n")
        with self._place(login):
            stream = await _start_stream(request)
            events = session.events(int(last) if last else None)
            async with contextlib.aclosing(events):
                async for event in events:
                    number, line = event or (None, None)
                    if number is None:
                        await _write(stream, b": \n\n")
                    elif line is None:
                        await _write(stream, b"event: lost\ndata: %d\n\n" % number)
                    else:
                        await _write(stream, _event(line, number))
                    session.used_s = agent_line.now_s()
        return stream

    async def delete(self, request, login, place: str):
        """Answer a DELETE: the session ends."""
        from aiohttp import web

        self._end(self._of(request.headers.get(SESSION, ""), login, place))
        return web.Response(status=204)

    # -- WebSocket

    async def websocket(self, request, login, place: str):
        """Pass messages between a WebSocket and a line of its own, one frame each."""
        from aiohttp import web

        with self._place(login):
            socket = web.WebSocketResponse(
                max_msg_size=4 * MAX_LINE,
                compress=False,
                heartbeat=30,
                timeout=5,
                protocols=("ckp",),
            )
            _read_small_pieces(request.transport)
            person, sender = login.person(place), _Sender(socket, request.transport)
            line = await self._connect(place, person, login, sender.put, sender.end)
            task = None
            try:
                await socket.prepare(request)
                self._sockets[socket] = place, person, login
                self._senders[socket] = sender
                task = asyncio.get_running_loop().create_task(sender.run(line))
                async for message in socket:
                    data = message.data.encode() if message.type == _TEXT else message.data
                    if len(data) > MAX_LINE:
                        sender.put(messages.too_long(len(data), MAX_LINE))
                        continue
                    line.send(data)
                    await line.drain()
            finally:
                self._sockets.pop(socket, None)
                self._senders.pop(socket, None)
                line.close()
                if task is not None:
                    task.cancel()
            return socket


def _read_small_pieces(transport):
    """Let *transport* read into a buffer that the allocator keeps: asyncio's own, of 256 KiB, is
    mapped and unmapped for each message.  It works without this, and is slower.
    """
    setattr(transport, "max_size", _PIECE)


class _Sender:
    """What an agent says, on its way to one WebSocket."""

    def __init__(self, socket, transport):
        self._socket, self._transport = socket, transport
        self._waiting: collections.deque = collections.deque()
        self._news = asyncio.Event()
        self._since_s = None  # when the send that goes on now began
        self._is_busy = False  # ``run`` sends
        self._is_over = False

    def put(self, said: bytes):
        """Send *said*: at once where nothing waits, because another round of the loop would take
        as long as all else that is done here.
        """
        if self._waiting or self._is_busy or not self._is_ready():
            self._waiting.append(said)
            self._news.set()
            return
        sending = self._socket.send_frame(said, _TEXT)
        try:
            sending.send(None)  # it waits for nothing: no byte waits in the transport
        except StopIteration:
            return
        except ConnectionError:
            self.end()
            return
        sending.close()
        self._transport.abort()

    def _is_ready(self) -> bool:
        return self._socket.prepared and self._transport.get_write_buffer_size() == 0

    def end(self):
        """The agent says nothing more."""
        self._is_over = True
        self._news.set()

    async def run(self, line):
        """Send all of it, until either end has gone."""
        try:
            while self._waiting or not self._is_over:
                if not self._waiting:
                    line.pause(False)
                    self._news.clear()
                    await self._news.wait()
                    continue
                if len(self._waiting) > _MOST_AHEAD:
                    line.pause(True)
                self._since_s, self._is_busy = agent_line.now_s(), True
                await self._socket.send_frame(self._waiting.popleft(), _TEXT)
                self._since_s, self._is_busy = None, False
            await self._socket.close(code=1001, message=b"the agent has ended")
        except ConnectionError:  # it has gone
            line.close()

    def drop_slow(self, now_s: float):
        """Hang up on a client that has taken nothing for ``TAKES_S``."""
        if self._since_s is not None and now_s - self._since_s > TAKES_S and self._transport:
            self._transport.abort()


async def _start_stream(request):
    from aiohttp import web

    headers = {**HEADERS, "Content-Type": _STREAM, "X-Accel-Buffering": "no"}
    stream = web.StreamResponse(headers=headers)
    await stream.prepare(request)
    return stream


async def _write(stream, data: bytes):
    """Write to *stream*.  Raises ``ConnectionError`` when its client takes nothing."""
    try:
        async with asyncio.timeout(TAKES_S):
            await stream.write(data)
    except TimeoutError:
        raise ConnectionResetError("the client takes nothing") from None


def _event(line: bytes, number: int | None = None) -> bytes:
    head = b"" if number is None else b"id: %d\n" % number
    return head + b"event: message\ndata: " + line + b"\n\n"


async def _read_body(request) -> bytes | None:
    """Return the body of *request*, None of one that is too long.  Raises an error of HTTP."""
    from aiohttp import web

    if (request.content_length or 0) > MAX_LINE:
        return None
    pieces, size = [], 0
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.content.iter_any():
                pieces.append(piece)
                size += len(piece)
                if size > MAX_LINE:
                    return None
    except TimeoutError:
        raise web.HTTPRequestTimeout(text="the body came too slowly\n") from None
    return b"".join(pieces)
