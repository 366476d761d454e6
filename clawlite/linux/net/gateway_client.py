"""Calls of services that a gateway on the LAN carries out for this agent (docs/gateway.md): the
device's side of the protocol, over TCP or TLS.

1. All calls share one connection, because a gateway keeps only the newest connection of a token.
   One thread has it; it stands while a call is under way, and ends with the last one.
2. When the connection breaks, the device connects again, and the gateway goes on with the call that
   it has begun (core/line/gateway_call.py).
3. When the gateway cannot have begun the call, the call is refused, and may be sent again with its
   request id.
4. The token is never sent: the gateway sends a nonce, and the answer is its HMAC-SHA256.
5. Where somebody watches the progress of a call, the gateway is asked to tell it; one that does not
   know how says nothing.
6. The connection stands while a person is asked, too: the answer goes up at once, and a call that
   ends first takes its question back.
7. A call that nobody waits for any more is cancelled at the gateway at once, and the gateway
   acknowledges that.  Without an acknowledgement (the connection broke, or the gateway is an older
   one) the cancellation is sent again, for ``_CANCEL_MS``.  One that was never sent goes up when
   another call connects.
8. The gateway takes ``_AT_ONCE`` calls of one device at once; others wait here.
"""

import _thread
import os
import time
from binascii import hexlify

from clawlite.core.base.effect import ASKS_PERSON, VALUE
from clawlite.core.base.errors import ClawError, InvalidRequest, ParseError
from clawlite.core.idempotency.idempotency import not_run
from clawlite.core.image.header import check_shape
from clawlite.core.image.image import NETWORK
from clawlite.core.image.image_signature import prove
from clawlite.core.line.frame import RECORD, Framer
from clawlite.core.line.gateway_call import GatewayCall, read_end
from clawlite.core.line.gateway_records import WAIT_MS, describe, make_note
from clawlite.linux.net.connections import Connection
from clawlite.linux.net.stream import Cancelled, Failure, Stream, TimedOut
from clawlite.protocols.services.service_call import ServiceResult, failure

TOKEN = (
    "GATEWAY_TOKEN"  # the secret that holds NAME:TOKEN, as clawlite gateway token NAME prints it
)
CONNECT_MS = 5000
GREET_MS = 10000  # time for authentication and the gateway's hello
_AGAIN_MS = 500  # pause after a connection broke
_AT_ONCE = 4  # calls; a gateway refuses a fifth
_CANCEL_MS = 60000  # how long a cancellation is tried; then the gateway ends the call by itself
_MOST_GIVEN_UP = 64  # calls of which the gateway could not be told; older ones are forgotten
_SILENT_S = 20  # after which a gateway that acknowledges nothing counts as gone
_PART_S = 1.0  # how long an agent that ends waits until the gateway has its cancellations
_MAX_RECORD = 65536
_MAX_ANSWER = _MAX_RECORD - 512  # bytes; the gateway drops a record that is longer
_SHAPE = ([None, (str, 65536, bool)], [bytes])


class _Call(GatewayCall):
    """One call, which has not its turn yet while *come_ms* is None.

    wants    what the gateway is to tell beside the result: "watches" its progress, "asks" questions
    progress what came of it and was not told yet
    wanted   params of a question that has come and was not put yet, or None
    number   of the question that was put, at ``asking_ms``
    answer   what goes up for it: params of ``claw.gateway.answer``
    """

    def __init__(self, id: str, name: str, text: str, due_ms: int, wants: dict):
        super().__init__(id, name, text, due_ms)
        self.wants, self.progress, self.is_told = wants, None, False
        self.wanted = self.number = self.asking_ms = self.answer = self.outcome = None


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
        where, self._authorities = check_shape(image.section(NETWORK), _SHAPE, "the gateway")
        self._host, self._port, self._is_tls = where
        self._image, self._wake, self._now_ms, self._token = image, wake, now_ms, token
        self._boot = str(hexlify(os.urandom(4)), "ascii")
        self._count = 0
        self._calls = {}  # task -> _Call, in the order of their beginning
        # id of a cancelled call that the gateway may still carry out -> [until when the
        # cancellation is sent again, whether it was ever sent]
        self._given_up = {}
        self._connection = None  # of the thread, while it runs; its pipe wakes it
        self._lock = _thread.allocate_lock()  # protects the data that both threads use
        self._running = _thread.allocate_lock()  # held while the thread runs
        self._framer = None  # of the connection that stands
        self._is_greeted = False  # over that connection
        self._sent = {}  # id of a call that went up over that connection -> the answer that did
        self._cancels_sent = set()  # ids of calls whose cancellation it was sent

    @property
    def is_busy(self) -> bool:
        return bool(self._calls)

    def start(self, task: int, name: str, arguments: dict, due_ms: int):
        """Begin the call of the tool *name*, which ends at *due_ms* at the latest."""
        self._count += 1
        id, text = "%s-%d" % (self._boot, self._count), self._dumps(arguments)
        wants = {"watches": self._seam.watches(task), "asks": self._seam.asks(None)}
        call = _Call(id, name, text, due_ms, {key: True for key in wants if wants[key]})
        with self._lock:
            self._calls[task] = call
            try:
                self._wake_thread()
            except (OSError, RuntimeError) as e:
                why = not_run("no thread for the call (%s)" % e, "send it again later")
                call.outcome = False, why

    def _wake_thread(self):
        """Let the thread see that there is more to do, or start it.  The lock is held.  Raises
        ``OSError``, ``RuntimeError``.
        """
        if self._connection is None:
            connection = Connection()
            connection.reader, connection.writer = os.pipe()
            try:
                _thread.start_new_thread(self._work, (connection,))
            except RuntimeError:
                _close(connection)
                raise
            self._connection = connection
        else:
            self._connection.nudge()

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
                with self._lock:
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
        if call is not None:
            call.due_ms += now_ms - call.asking_ms
            call.asking_ms = None
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
            self._wake_thread_if_any()

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
        with self._lock:
            call = self._calls.pop(task, None)
            if call is not None and call.outcome is None and (call.sent or call.id in self._sent):
                self._give_up(call)
            self._wake_thread_if_any()

    def _give_up(self, call: _Call):
        """Note that the gateway is to end *call*.  The lock is held."""
        self._given_up[call.id] = [self._now_ms() + _CANCEL_MS, False]
        if len(self._given_up) > _MOST_GIVEN_UP:
            del self._given_up[next(iter(self._given_up))]

    def _wake_thread_if_any(self):
        if self._connection is not None:
            self._connection.nudge()

    def close(self):
        """End all calls.  Waits ``_PART_S`` at most, until the gateway has been told."""
        for task in list(self._calls):
            self.cancel(task)
        if self._given_up and self._running.acquire(True, _PART_S):
            self._running.release()
        with self._lock:
            if self._connection is not None:
                self._connection.cancelled = True
                self._connection.nudge()

    def _late(self, call: _Call):
        if call.sent:
            said = "The gateway did not say in time what became of the call"
            return True, failure("timeout", said)
        if call.come_ms is None:
            said = "%d other calls are under way at the gateway: nothing was called" % _AT_ONCE
            return False, not_run(said, "send it again later")
        return False, self._nobody("it does not answer")

    def _nobody(self, why: str) -> InvalidRequest:
        return not_run(
            "no gateway at %s:%d (%s): nothing was called" % (self._host, self._port, why),
            "start the gateway, and send it again",
        )

    # -- in the thread

    def _work(self, connection):
        """Hold the connection while there is something to do."""
        with self._running:
            try:
                while self._has_work(connection):
                    self._connect(connection)
                return
            except Cancelled:  # the agent has ended
                with self._lock:
                    self._end(connection)
                return
            except ClawError as e:
                said = e.message, e.hint
            except Exception as e:  # MemoryError, or a bug
                message = "the call failed inside (%s)" % type(e).__name__
                said = message, "this is a bug in clawlite"
            with self._lock:
                for call in self._calls.values():
                    if call.outcome is None:
                        call.outcome = _make_failure(call, *said)
                        if call.sent:
                            self._give_up(call)
                self._nudge_loop()
                self._end(connection)

    def _has_work(self, connection) -> bool:
        """Return whether a connection is needed; otherwise the thread ends."""
        with self._lock:
            is_needed = self._cancels_until() is not None
            is_needed = bool(self._in_turn()) or is_needed
            if not is_needed:
                self._end(connection)
            return is_needed

    def _cancels_until(self):
        """Return until when cancellations are sent again, or None for none.  Forget those that were
        sent and whose time is over.  The lock is held.
        """
        now_ms = self._now_ms()
        for id, (until_ms, was_sent) in list(self._given_up.items()):
            if was_sent and until_ms <= now_ms:
                del self._given_up[id]
        times = [until_ms for until_ms, _ in self._given_up.values() if until_ms > now_ms]
        return max(times, default=None)

    def _end(self, connection):
        """Let the next call start another thread.  The lock is held."""
        self._connection = None
        _close(connection)

    def _in_turn(self) -> list:
        """Return the calls that the gateway carries out, or is to.  The lock is held."""
        calls = [call for call in self._calls.values() if call.outcome is None][:_AT_ONCE]
        for call in calls:
            if call.come_ms is None:
                call.come_ms = self._now_ms() + WAIT_MS
        return calls

    def _nudge_loop(self):
        """Let ``poll`` be called.  The lock is held."""
        if self._connection is None or self._connection.cancelled:
            return  # the agent has ended, and may have closed the pipe that would be written to
        try:
            os.write(self._wake, b"\0")
        except OSError:  # full: it is readable then
            pass

    def _connect(self, connection):
        """Carry on all calls over one connection, until it ends or there is nothing to do."""
        stream = Stream(connection, self._lock, CONNECT_MS)
        try:
            self._talk(stream)
            return
        except (Failure, OSError) as e:
            why = str(e) if isinstance(e, Failure) else stream.words(e)
        finally:
            stream.close()
        self._broke(why)
        pause = Stream(connection, self._lock, _AGAIN_MS)
        try:
            pause.wait(0)
        except TimedOut:
            pass

    def _broke(self, why: str):
        """Refuse the calls that waited for the gateway long enough."""
        with self._lock:
            now_ms = self._now_ms()
            for call in self._in_turn():
                if not call.sent and now_ms >= call.come_ms:
                    call.outcome = False, self._nobody(why)
                    self._nudge_loop()

    def _talk(self, stream: Stream):
        """Talk to the gateway.  Raises ``Failure``, ``OSError``: the connection ended."""
        token = self._token()
        stream.connect(self._host, self._port)
        stream.watch(_SILENT_S)
        if self._is_tls:
            from clawlite.linux.net import tls

            tls.wrap(stream, tls.context(self._authorities), self._host)
        stream.due += GREET_MS / 1000
        self._framer, self._sent, self._cancels_sent = Framer(_MAX_RECORD), {}, set()
        self._is_greeted = False
        while self._goes_on(stream):
            data = stream.receive_if_any(16384)
            if data == b"":
                raise Failure("it has ended the connection; is %s right?" % TOKEN)
            self._framer.feed(data or b"")
            event = self._framer.next_event()
            while event:
                if event[0] == RECORD:
                    self._take(stream, token, self._parse(event[1]))
                event = self._framer.next_event()

    def _goes_on(self, stream: Stream) -> bool:
        """Send what is to be sent; return whether something more may come."""
        if not self._is_greeted:
            return True
        has_sent = True
        # A send that waits for room in the socket reads the nudges that come meanwhile, so nothing
        # would wake this thread for them: it looks again until there is nothing left to send.
        while has_sent:
            with self._lock:
                gone = [id for id in self._given_up if id not in self._cancels_sent]
                calls = self._in_turn()
            for id in gone:
                self._cancels_sent.add(id)
                self._send(stream, {"id": id, **make_note("cancel", {"id": id})})
                with self._lock:
                    if id in self._given_up:
                        self._given_up[id][1] = True
            has_sent = bool(gone)
            for call in calls:
                for record in self._due_records(call):
                    has_sent = True
                    self._send(stream, record)
        with self._lock:
            until_ms = self._cancels_until()
            left_ms = 0 if until_ms is None else until_ms - self._now_ms()
        # ``poll`` watches the time of calls
        stream.due = None if calls else time.monotonic() + left_ms / 1000
        return bool(calls) or until_ms is not None

    def _due_records(self, call: _Call):
        """Yield the records of *call* that the gateway has not had over this connection, as long
        as somebody waits for the call.
        """
        with self._lock:
            answer, is_new = call.answer, call.id not in self._sent
            if not self._is_wanted(call) or not is_new and answer in (None, self._sent[call.id]):
                return
            self._sent[call.id] = answer
        again = iter([make_note("answer", answer)])
        records = call.records(call.wants, answer) if is_new else again
        while True:
            with self._lock:
                record = next(records, None) if self._is_wanted(call) else None
            if record is None:
                return
            yield record

    def _is_wanted(self, call: _Call) -> bool:
        """Return whether somebody waits for *call*.  The lock is held."""
        return call.outcome is None and call in self._calls.values()

    def _take(self, stream: Stream, token: str, message: dict):
        """Take one record."""
        method, params, id = message.get("method"), message.get("params"), message.get("id")
        if method == "claw.gateway.auth":
            nonce = str(params.get("nonce") if isinstance(params, dict) else "").encode()
            self._send(stream, {"jsonrpc": "2.0", "id": id, "result": prove(token, nonce)})
        elif method == "claw.gateway.hello":
            self._is_greeted, stream.due = True, None
            self._send(stream, {"jsonrpc": "2.0", "id": id, "result": self._who()})
        elif method is None:
            with self._lock:
                self._given_up.pop(str(id), None)
            self._handle_response(self._call_of(id), message)
        elif isinstance(params, dict):
            self._handle_notification(self._call_of(params.get("id")), method, params)

    def _call_of(self, id):
        """Return the call with that *id*, or None: nobody waits for it any more."""
        with self._lock:
            for call in self._calls.values():
                if call.id == id and call.outcome is None:
                    return call
        return None

    def _handle_notification(self, call, method: str, params: dict):
        if call is None:
            return
        if method == "claw.gateway.text":
            call.seen += 1
            call.said.append(str(params.get("text")))
        elif method == "claw.gateway.progress":
            self._note_progress(call, params)
        elif method == "claw.gateway.asks":
            call.seen += 1
            with self._lock:
                call.answer, call.wanted = None, params
                self._nudge_loop()

    def _handle_response(self, call, message: dict):
        if call is None:
            return
        has_run, why = read_end(message)
        result = failure("unreachable", why) if why else self._result("".join(call.said).encode())
        outcome = True, result
        if not has_run:
            why = why or "the gateway: %s" % result.get("error", {}).get("message")
            outcome = False, not_run(why, "")
        with self._lock:
            call.outcome = outcome
            self._nudge_loop()

    def _result(self, said: bytes) -> ServiceResult:
        try:
            return ServiceResult(self._parse(said))
        except Failure as e:  # another connection would bring the same
            return failure("failed", "the gateway's result cannot be read: %s" % e)

    def _note_progress(self, call: _Call, params: dict):
        number, total, said = [params.get(name) for name in ("progress", "total", "message")]
        if "watches" in call.wants and _is_number(number):
            total = total if _is_number(total) else None
            said = said if isinstance(said, str) else ""
            with self._lock:
                call.progress = number, total, said
                self._nudge_loop()

    def _who(self) -> dict:
        found = describe(self._image, self._boot, _MAX_RECORD)
        found["joins"] = True  # this agent joins its swarm by itself
        return found

    def _parse(self, data: bytes) -> dict:
        try:
            value = self._loads(data)
        except ParseError as e:
            raise Failure("it sent no JSON: %s" % e.message) from None
        if not isinstance(value, dict):
            raise Failure("it sent JSON that is no object")
        return value

    def _send(self, stream: Stream, message: dict):
        stream.send(b"\x1e" + self._dumps(message).encode() + b"\n")


def _is_number(value) -> bool:
    return type(value) is int or type(value) is float and value - value == 0


def _make_failure(call: _Call, message: str, hint: str) -> tuple:
    if call.sent:
        return True, failure("unreachable", message)
    return False, not_run("%s; nothing was called" % message, hint)


def _close(connection):
    for fd in (connection.reader, connection.writer):
        os.close(fd)
    connection.reader = connection.writer = None
