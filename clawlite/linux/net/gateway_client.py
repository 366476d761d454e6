"""Calls of services that a gateway on the LAN carries out for this agent (docs/gateway.md): the
device's side of the protocol, over TCP or TLS.

1. Each call has a thread, but there is one connection at a time, because a gateway keeps only the
   newest connection of a token.
2. A call has an id.  When the connection breaks, the device connects again, and the gateway goes on
   with the call that it has begun: nothing is called twice.
3. When the gateway cannot have begun the call, the call is refused, and may be sent again with its
   request id.
4. The token is never sent: the gateway sends a nonce, and the answer is its HMAC-SHA256.
5. Where somebody watches the progress of a call, the gateway is asked to tell it; one that does not
   know how says nothing.
6. When the tool's server asks a person, the connection ends, so that other calls have it meanwhile.
   The answer goes up with the next one, where the call goes on.
7. The next connection tells the gateway which calls were given up, so that they do not count among
   those that are under way there.
"""

import _thread
import os
from binascii import hexlify

from clawlite.core.base.effect import ASKS_PERSON, VALUE
from clawlite.core.base.errors import ClawError, InvalidRequest, ParseError
from clawlite.core.idempotency.idempotency import not_run
from clawlite.core.image.header import shaped
from clawlite.core.image.image import NETWORK
from clawlite.core.image.image_signature import sign
from clawlite.core.line.frame import RECORD, Framer
from clawlite.core.net.service_call import ServiceResult, failure
from clawlite.linux.net.connections import Connection
from clawlite.linux.net.stream import Cancelled, Failure, Stream, TimedOut

TOKEN = (
    "GATEWAY_TOKEN"  # the secret that holds NAME:TOKEN, as clawlite gateway token NAME prints it
)
CONNECT_MS = 5000
GREET_MS = 10000  # time for authentication and the gateway's hello
WAIT_MS = 6000  # time to reach the gateway before a call is refused
_AGAIN_MS = 500  # pause after a connection broke
_MAX_RECORD = 65536
_MAX_ANSWER = _MAX_RECORD - 512  # bytes; the gateway drops a record that is longer
_PIECE = 512  # characters of a text in one record
_MORE = 2000  # ms after a call's end, in which the gateway can report its own time-out
_ASKED = object()  # of ``_talk``: a question has come, and no result
_SHAPE = ([None, (str, 65536, bool)], [bytes])


class _Call:
    """One call.  *due_ms*: when it is given up;  *sent*: the gateway may have begun it;
    *watches*: its progress is wanted, and *progress* is what came of it and was not told yet.

    wanted  params of a question that has come and was not put yet, or None
    number  of the question that was put, at ``asking_ms``
    answer  what goes up for it: params of ``claw.gateway.answer``
    """

    def __init__(self, id: str, name: str, text: str, due_ms: int, watches: bool, asks: bool):
        self.id, self.name, self.text, self.due_ms = id, name, text, due_ms
        self.watches, self.progress, self.is_told = watches, None, False
        self.asks = asks
        self.wanted = self.number = self.asking_ms = self.answer = None
        self.connection = Connection()
        self.said, self.seen, self.sent, self.outcome = "", 0, False, None


class GatewayCalls:
    """All calls of one agent.

    image   ``image.Image``
    wake    descriptor of a pipe: a byte is written when ``poll`` has something
    now_ms  function -> monotonic ms
    token   function() -> value of the secret; raises ``ClawError``
    codecs  (loads, dumps) of JSON
    seam    asks(task), watches(task), tell(task, progress): as of linux/mcp/servers.py
    question  function(task, server, params) -> what asks a person (linux/mcp/question.py); raises
              ``ClawError``: it cannot be put
    """

    def __init__(self, image, wake: int, now_ms, token, codecs: tuple, seam, question):
        self._seam, self._question = seam, question
        self._loads, self._dumps = codecs
        where, self._authorities = shaped(image.section(NETWORK), _SHAPE, "the gateway")
        self._host, self._port, self._is_tls = where
        self._image, self._wake, self._now_ms, self._token = image, wake, now_ms, token
        self._boot = str(hexlify(os.urandom(4)), "ascii")
        self._count = 0
        self._calls = {}  # task -> _Call
        self._given_up = []  # ids of calls that the gateway may still carry out
        self._lock = _thread.allocate_lock()  # protects the data that both threads use
        self._line = _thread.allocate_lock()  # held by the thread that has the connection

    @property
    def is_busy(self) -> bool:
        return bool(self._calls)

    def start(self, task: int, name: str, arguments: dict, due_ms: int):
        """Begin the call of the tool *name*, which ends at *due_ms* at the latest."""
        self._count += 1
        id, text = "%s-%d" % (self._boot, self._count), self._dumps(arguments)
        wants = self._seam.watches(task), self._seam.asks(None)
        call = _Call(id, name, text, due_ms + _MORE, *wants)
        call.connection.reader, call.connection.writer = os.pipe()
        try:
            _thread.start_new_thread(self._work, (call,))
        except RuntimeError as e:
            self._close(call)
            call.outcome = False, not_run("no thread for the call (%s)" % e, "send it again later")
        self._calls[task] = call

    def poll(self) -> list:
        """Return [(task, outcome)] of what has ended, or asks a person, never waiting."""
        done = []
        for task, call in list(self._calls.items()):
            outcome = call.outcome  # once: its thread may set it meanwhile
            self._tell(task, call, outcome is not None)
            if outcome is None and call.wanted is not None:
                self._put(task, call, done)
            elif outcome is None and call.asking_ms is None and self._now_ms() >= call.due_ms:
                self.cancel(task)
                done.append((task, self._late(call)))
            elif outcome is not None:
                del self._calls[task]
                done.append((task, outcome))
        return done

    def _put(self, task: int, call: _Call, done: list):
        """Put the question that has come to a person."""
        wanted, call.wanted = call.wanted, None
        call.number = wanted.get("number")
        try:
            question = self._question(task, str(wanted.get("server")), wanted.get("params"))
        except ClawError as e:
            self._answer(call, {"why": e.message + (": " + e.hint if e.hint else "")})
        else:
            call.asking_ms = self._now_ms()
            done.append((task, (ASKS_PERSON, question)))

    def resume(self, task: int, outcome: tuple, now_ms: int):
        """Go on with the call *task*, which has asked a person: *outcome* is (True, what the server
        is told).
        """
        call = self._calls.get(task)
        if call is not None:  # its time goes on once it has the connection
            answer, size = {"result": outcome[VALUE]}, len(self._dumps(outcome[VALUE]).encode())
            if size > _MAX_ANSWER:
                said = "what a person answered takes %d bytes, and the gateway takes %d"
                answer = {"why": said % (size, _MAX_ANSWER)}
            self._answer(call, answer)

    def has(self, task: int) -> bool:
        """Return whether the call *task* is under way here."""
        return task in self._calls

    def _answer(self, call: _Call, answer: dict):
        with self._lock:
            call.answer = {"id": call.id, "number": call.number, **answer}
            call.connection.nudge()

    def _tell(self, task: int, call: _Call, has_ended: bool):
        """Show the progress of *call* that has come, or take it away once the call has ended."""
        with self._lock:
            progress, call.progress = call.progress, None
        if has_ended and call.is_told:
            self._seam.tell(task, None)
        elif progress is not None and not has_ended:
            call.is_told = True
            self._seam.tell(task, progress)

    def deadline(self):
        waiting = [call for call in self._calls.values() if call.asking_ms is None]
        return min((call.due_ms for call in waiting), default=None)

    def cancel(self, task: int):
        """End the call; ``poll`` returns nothing about it."""
        call = self._calls.pop(task, None)
        if call is not None:
            with self._lock:
                call.connection.cancelled = True
                call.connection.nudge()

    def close(self):
        for task in list(self._calls):
            self.cancel(task)

    def _late(self, call: _Call):
        if call.sent:
            said = "The gateway did not say in time what became of the call"
            return True, failure("timeout", said)
        return False, self._nobody("it does not answer")

    def _nobody(self, why: str) -> InvalidRequest:
        return not_run(
            "no gateway at %s:%d (%s): nothing was called" % (self._host, self._port, why),
            "start the gateway, and send it again",
        )

    # -- in the thread of a call

    def _work(self, call: _Call):
        outcome = None
        try:
            result = _ASKED
            while result is _ASKED:
                with self._line:
                    self._go_on(call)
                    result = self._until_done(call)
                if result is _ASKED:
                    self._await_answer(call)
            outcome = True, result
        except Cancelled:
            if call.sent:
                with self._lock:
                    self._given_up.append(call.id)
        except InvalidRequest as e:
            outcome = False, e
        except ClawError as e:
            outcome = self._failed(call, e.message, e.hint)
        except Exception as e:  # MemoryError, or a bug
            message = "the call failed inside (%s)" % type(e).__name__
            outcome = self._failed(call, message, "this is a bug in clawlite")
        with self._lock:
            self._close(call)
            if not call.connection.cancelled:
                call.outcome = outcome
                self._nudge_loop()

    def _nudge_loop(self):
        try:
            os.write(self._wake, b"\0")
        except OSError:  # full: it is readable then
            pass

    def _failed(self, call: _Call, message: str, hint: str) -> tuple:
        if call.sent:
            return True, failure("unreachable", message)
        return False, not_run("%s; nothing was called" % message, hint)

    def _close(self, call: _Call):
        for fd in (call.connection.reader, call.connection.writer):
            os.close(fd)
        call.connection.reader = call.connection.writer = None

    def _until_done(self, call: _Call):
        token, give_up = self._token(), self._now_ms() + WAIT_MS
        while True:
            if call.connection.cancelled:
                raise Cancelled
            stream = Stream(call.connection, self._lock, CONNECT_MS)
            try:
                return self._talk(stream, call, token)
            except (Failure, OSError) as e:
                why = str(e) if isinstance(e, Failure) else stream.words(e)
            finally:
                stream.close()
            if not call.sent and self._now_ms() >= give_up:
                raise self._nobody(why)
            self._pause(call)

    def _go_on(self, call: _Call):
        """Let the time of *call* go on, if it stood still for a question."""
        if call.asking_ms is not None:
            call.due_ms += self._now_ms() - call.asking_ms
            call.asking_ms = None
            self._nudge_loop()

    def _await_answer(self, call: _Call):
        stream = Stream(call.connection, self._lock, 0)
        stream.due = None  # ``poll`` watches the time
        while call.answer is None:
            stream.wait(0)

    def _pause(self, call: _Call):
        pause = Stream(call.connection, self._lock, _AGAIN_MS)
        try:
            pause.wait(0)
        except TimedOut:
            pass

    def _talk(self, stream: Stream, call: _Call, token: str):
        """Return the result of *call*.  Raises ``Failure``, ``OSError``: the connection ended."""
        stream.connect(self._host, self._port)
        if self._is_tls:
            from clawlite.linux.net import tls

            tls.wrap(stream, tls.context(self._authorities), self._host)
        stream.due += GREET_MS / 1000
        framer = Framer(_MAX_RECORD)
        while True:
            data = stream.receive(16384)
            if not data:
                raise Failure("it has ended the connection; is %s right?" % TOKEN)
            framer.feed(data)
            event = framer.next_event()
            while event:
                if event[0] == RECORD:
                    done = self._take(stream, call, token, self._parsed(event[1]))
                    if done is not None:
                        return done
                event = framer.next_event()

    def _take(self, stream: Stream, call: _Call, token: str, message: dict):
        """Handle one record; return the result of the call when it is the answer, else None."""
        method, params, id = message.get("method"), message.get("params"), message.get("id")
        if method == "claw.gateway.auth":
            self._send(stream, {"jsonrpc": "2.0", "id": id, "result": _proof(token, params)})
        elif method == "claw.gateway.hello":
            stream.due = None  # from here on, ``poll`` watches the time
            self._send(stream, {"jsonrpc": "2.0", "id": id, "result": self._who()})
            self._end_given_up(stream)
            for record in _records(call):
                self._send(stream, record)
                call.sent = True
        elif method == "claw.gateway.text" and params.get("id") == call.id:
            call.seen += 1
            call.said += str(params.get("text"))
        elif method == "claw.gateway.progress" and params.get("id") == call.id:
            self._went_on(call, params)
        elif method == "claw.gateway.asks" and params.get("id") == call.id:
            call.seen += 1
            with self._lock:
                call.answer, call.wanted = None, params
                self._nudge_loop()
            return _ASKED
        elif method is None and id == call.id:
            error = message.get("error")
            if isinstance(error, dict):
                said = "the gateway: %s" % error.get("message")
                if _has_not_run(error.get("data")):
                    raise not_run(said, "")
                return failure("unreachable", said)
            result = ServiceResult(self._parsed(call.said.encode()))
            if _has_not_run(message.get("result")):
                raise not_run("the gateway: %s" % result["error"]["message"], "")
            return result
        return None

    def _end_given_up(self, stream: Stream):
        """Tell the gateway of the calls that nobody waits for any more."""
        while self._given_up:
            params = {"id": self._given_up[-1]}
            note = {"jsonrpc": "2.0", "method": "claw.gateway.cancel", "params": params}
            self._send(stream, note)
            with self._lock:
                self._given_up.remove(params["id"])

    def _went_on(self, call: _Call, params: dict):
        number, total, said = [params.get(name) for name in ("progress", "total", "message")]
        if call.watches and _is_number(number):
            total = total if _is_number(total) else None
            said = said if isinstance(said, str) else ""
            with self._lock:
                call.progress = number, total, said
                self._nudge_loop()

    def _who(self) -> dict:
        image = self._image
        digest = image.read(image.seal_at + 7, 32)
        return {
            "version": 1,
            "boot": self._boot,
            "agent": image.agent.name,
            "record": _MAX_RECORD,
            "image": str(hexlify(digest), "ascii"),
            "joins": True,  # this agent joins its swarm by itself
        }

    def _parsed(self, data: bytes) -> dict:
        try:
            value = self._loads(data)
        except ParseError as e:
            raise Failure("it sent no JSON: %s" % e.message) from None
        if not isinstance(value, dict):
            raise Failure("it sent JSON that is no object")
        return value

    def _send(self, stream: Stream, message: dict):
        stream.send(b"\x1e" + self._dumps(message).encode() + b"\n")


def _has_not_run(said) -> bool:
    return isinstance(said, dict) and said.get("ran") is False


def _is_number(value) -> bool:
    return type(value) is int or type(value) is float and value - value == 0


def _proof(token: str, params) -> dict:
    name, _, key = token.partition(":")
    nonce = str(params.get("nonce") if isinstance(params, dict) else "").encode()
    mac = sign(lambda at, size: nonce[at : at + size], len(nonce), key.encode())
    return {"name": name, "mac": str(hexlify(mac), "ascii")}


def _records(call: _Call):
    """Yield the records of a request: the arguments in pieces, then the call."""
    again = call.sent
    params = {"id": call.id, "role": "tool", "text": call.text[:_PIECE]}
    yield {"jsonrpc": "2.0", "method": "claw.gateway.message", "params": params}
    for at in range(_PIECE, len(call.text), _PIECE):
        params = {"id": call.id, "text": call.text[at : at + _PIECE]}
        yield {"jsonrpc": "2.0", "method": "claw.gateway.message", "params": params}
    # "again" stops a restarted gateway from beginning the call a second time
    params = {"tool": call.name, "seen": call.seen, "again": again}
    if call.watches:
        params["watches"] = True
    if call.asks:
        params["asks"] = True
    if call.answer is not None:
        yield {"jsonrpc": "2.0", "method": "claw.gateway.answer", "params": call.answer}
    yield {"jsonrpc": "2.0", "id": call.id, "method": "claw.gateway.tool", "params": params}
