"""The operator's session: CKP methods over JSON-RPC (CKP 0.2.0, 9.3).

The agent's lifecycle and the session are two state machines: a board is READY for its console
before an operator connects, and ``claw.initialize`` opens a session later.  After ``claw.shutdown``
the same line accepts a new ``initialize``.  Decisions (docs/adr/0006):

1. Checks come in the order version, params, state.
2. When the manifest in ``initialize`` and the image differ, the image counts.
3. A refused ``initialize`` leaves an open session as it was.
4. ``status`` works in every state, once an ``initialize`` was answered.
5. A batch of requests gets a batch of answers."""

from clawlite.core.protocol import rpc
from clawlite.core.protocol.method_table import NEVER, OPEN, START, find
from clawlite.core.base.effect import LOG, SEND
from clawlite.core.base.errors import (
    ClawError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    wrap_error,
)
from clawlite.core.image.image import MEMORY
from clawlite.core.agent.lifecycle import ERROR, READY, STOPPED
from clawlite.core.protocol.rpc import field

DRAIN_MS = 5000  # claw.shutdown without timeout_ms


class Session:
    """One operator's line.

    agent    ``agent.Agent``; with ``image`` None it gets its image from the manifest in
             ``initialize`` (linux/runtime/bootstrap_session.py)
    loads    the shell's JSON decoder: bytes -> value, raises ``ParseError``
    answer   function(id, result) -> bool that answers a tool call with its ``effect.Result``, or
             None.  False: the answer must go the way of all messages
    """

    def __init__(self, agent, loads, answer=None):
        self.agent = agent
        self._reply = self._send  # bound once, for all calls that wait for an answer
        self._loads = loads
        self._asked = False  # True once an initialize was answered, whatever the answer
        self._opened_ms = None  # None until one succeeded
        self._open = False
        self._beat_ms = None
        # (epoch seconds, at monotonic ms), None while the clock is unset
        self._clock = None
        self._calls, self._answer = None, answer  # ``calls.Calls``, from the first call on
        self._line_bytes = 0  # of the record that is being handled
        # of the message that is being handled: its id, the function that takes its answer (None
        # once that is sent), and its batch
        self._id = self._to = self._open_batch = None

    def set_clock(self, epoch_s: int, now_ms: int):
        """Set the time, which heartbeats carry as a time stamp."""
        self._clock = (epoch_s, now_ms)

    def record(self, data: bytes, now_ms: int):
        """Take one machine record: a request, a notification or a batch of them."""
        self._id, self._to = None, self._reply
        try:
            message = self._loads(data)
        except ClawError as e:
            self._send(rpc.unreadable(e))
            return
        except Exception as e:  # no memory for it, where nobody unwinds
            self._send(rpc.error(None, wrap_error(e)))
            return
        self._line_bytes = len(data)
        if not isinstance(message, list):
            self._one(message, self._reply, now_ms)
        elif not message or len(message) > rpc.MAX_BATCH:
            self._send(
                rpc.error(
                    None,
                    InvalidRequest(
                        "batch: expected 1 to %d requests, got %d" % (rpc.MAX_BATCH, len(message))
                    ),
                )
            )
        else:
            self._batch(message, now_ms)

    def too_long(self, size: int, limit: int):
        """Answer a line that the framer dropped."""
        self._send(
            rpc.error(
                None, InvalidRequest("record: expected at most %d bytes, got %d" % (limit, size))
            )
        )

    def _batch(self, messages: list, now_ms: int):
        batch = self._open_batch = rpc.Batch(len(messages), self._send)
        # nothing may run before initialize is answered (9.3.1), and the answers of a batch are sent
        # together, so a batch with initialize may have no other method
        opens = False
        for message in messages:
            opens = (
                opens or isinstance(message, dict) and message.get("method") == "claw.initialize"
            )
        for message in messages:
            if not self._one(message, batch.add, now_ms, opens):
                batch.add(None)
        self._open_batch = None

    def _send(self, message):
        self.agent.emit((SEND, message))
        if isinstance(message, dict) and message.get("id") == self._id:
            self._to = None

    def excuse(self, error):
        """Answer the message or batch during which memory ran out, unless that is done already."""
        batch, self._open_batch = self._open_batch, None
        if batch:
            batch.cut(rpc.error(None, error))
        elif self._to:
            self._send(rpc.error(self._id, error))

    def _one(self, message, reply, now_ms: int, opens: bool = False) -> bool:
        """Handle one message; return whether *reply* gets an answer, now or later.  *opens*: its
        batch contains an initialize.
        """
        try:
            request = rpc.parse(message)
            if request is None:
                self._to = None
                return False
            id, method, params = request
            self._id = id
            if opens and method != "claw.initialize":
                raise InvalidRequest(
                    "%s: expected claw.initialize alone, got a batch with both" % method[:60],
                    "send it after the answer",
                )
            value = self._call(id, method, params, reply, now_ms)
        except Exception as e:
            reply(rpc.error(rpc.id_of(message), e if isinstance(e, ClawError) else wrap_error(e)))
        else:
            if value is not None:
                reply(rpc.result(id, value))
        return True

    def _call(self, id, method: str, params, reply, now_ms: int):
        """Return the result, or None when *reply* is called later."""
        if (
            method == "claw.tool.call"
            and self._open
            and self.agent.lifecycle.state == READY
            and self.agent.image.has_tools
            and isinstance(params, dict)
        ):
            # the most frequent method
            return (self._calls or self._begin_calls()).begin(
                id, params, reply, now_ms, self._line_bytes
            )
        if method == "claw.initialize":
            self._asked = True
            if isinstance(params, dict):
                return self._initialize(params, now_ms)
        return self._other(id, method, params, reply, now_ms)

    def _other(self, id, method: str, params, reply, now_ms: int):
        if isinstance(params, list):
            raise InvalidParams("params: expected an object, got an array")
        if not self._asked:
            raise InvalidRequest("expected claw.initialize first, got %s" % method[:60])
        _, taken, needs = self._find_row(method)[:3]
        if taken == NEVER:
            raise InvalidRequest("%s is a notification" % method, "send it without an id")
        if taken == START:
            told = {
                "state": self.agent.lifecycle.state,
                "uptime_ms": 0 if self._opened_ms is None else now_ms - self._opened_ms,
            }
            if self.agent.setup.conditions:
                told["conditions"] = [tell() for tell in self.agent.setup.conditions]
            return told
        if not (self._open and (taken == OPEN or self.agent.is_ready)):
            raise self._refusal(method, now_ms)
        if taken == OPEN:
            return self._shutdown(id, params, reply, now_ms)
        if needs == "memory":
            return self.agent.setup.memories().begin(id, method, params, reply, now_ms)
        calls = self._calls or self._begin_calls()
        return calls.answer(id, params, method == "claw.tool.approve", reply, now_ms)

    def _begin_calls(self):
        """Load what runs calls, at the first one: until READY nobody waits for it."""
        from clawlite.core.protocol.calls import Calls

        self._calls = Calls(self.agent, self._reply, self._answer)
        return self._calls

    def _refusal(self, method: str, now_ms: int):
        """Return the error for *method*, which is not accepted in the present state."""
        state = self.agent.lifecycle.state
        if state == ERROR:
            return self.agent.lifecycle.recovery.refusal(method, now_ms)
        if self.agent.is_ready:
            return InvalidRequest("expected claw.initialize first, got %s" % method)
        return InvalidRequest(
            "%s: the agent is %s" % (method, state),
            "send claw.initialize first" if state == STOPPED else "",
        )

    def _find_row(self, method: str) -> list:
        """Return the row of *method*.  Raises ``MethodNotFound`` when there is none, or the image
        lacks what the method needs.
        """
        row, image = find(method), self.agent.image
        needs = row and row[2]
        if (
            needs == "-"
            or image
            and (image.has_tools if needs == "tools" else row and image.size_of(MEMORY))
        ):
            return row
        known = method.startswith("claw.") and image
        raise MethodNotFound(
            "unknown method %s" % method[:60], "this agent is %s" % self._level() if known else ""
        )

    def _level(self) -> str:
        return "level-%d" % self.agent.image.agent.level

    def _initialize(self, params: dict, now_ms: int):
        from clawlite.core.protocol.handshake import agree

        image = self.agent.image
        spoken, asked, event = agree(params, image and image.agent)
        if self._open:
            raise InvalidRequest(
                "claw.initialize: this session is open already", "send claw.shutdown first"
            )
        stopped = self.agent.lifecycle.state == STOPPED
        if self._adopt(params["manifest"], image is None or stopped):
            return None  # the manifest's own agent takes over, and its session answers
        if stopped:
            self.agent.start(now_ms)
        if not self.agent.is_ready:
            raise self._refusal("claw.initialize", now_ms)
        agent = image.agent
        self._open = True
        self._opened_ms = now_ms
        self._beat_ms = now_ms + agent.heartbeat_ms
        event["agent"] = agent.name
        self.agent.effects.append((LOG, event))
        capabilities = {}
        for group, is_here in (("tools", image.has_tools), ("memory", image.size_of(MEMORY) > 0)):
            if is_here and (asked is None or group in asked):
                capabilities[group] = {}
        result = {
            "protocolVersion": spoken,
            "agentInfo": {"name": agent.identity, "version": agent.version},
            "conformanceLevel": self._level(),
            "capabilities": capabilities,
        }
        if "tools" in capabilities:
            # so many calls of tools that may not run twice are taken in so many seconds: those of
            # idempotency_record.KEPT_S, which is loaded with the first call
            result["limits"] = {"calls": self.agent.setup.remembered, "seconds": 300}
        return result

    def _adopt(self, manifest, is_free: bool) -> bool:
        """Return whether the agent of *manifest* takes over.  Raises ``ClawError``."""
        adopt = self.agent.setup.adopt
        return bool(adopt and adopt(manifest, is_free))

    def _shutdown(self, id, params: dict, reply, now_ms: int):
        reason = field(params, "reason", str, "", False)
        timeout_ms = field(params, "timeout_ms", int, "", False)
        if timeout_ms is not None and not 0 <= timeout_ms <= 86400000:
            raise InvalidParams("timeout_ms: expected 0 to 86400000, got %d" % timeout_ms)
        self._open = False
        self._beat_ms = None
        self.agent.effects.append(
            (LOG, {"event": "session.closed", "reason": (reason or "")[:200]})
        )
        self.agent.stop(
            DRAIN_MS if timeout_ms is None else timeout_ms,
            lambda drained, _: reply(rpc.result(id, {"drained": drained})),
            now_ms,
        )

    def tick(self, now_ms: int):
        """Send a heartbeat when one is due and the agent is READY (CKP 0.2.0, 9.3.1)."""
        if self._beat_ms is not None and now_ms >= self._beat_ms:
            interval = self.agent.image.agent.heartbeat_ms
            self._beat_ms += interval * ((now_ms - self._beat_ms) // interval + 1)
            if self.agent.is_ready:
                self._beat(now_ms)

    def _beat(self, now_ms: int):
        from clawlite.core.base.clock import iso8601

        clock = self._clock
        self._send(
            rpc.notification(
                "claw.heartbeat",
                {
                    "state": self.agent.lifecycle.state,
                    "uptime_ms": now_ms - self._opened_ms,
                    "timestamp": "unset"
                    if clock is None
                    else iso8601(clock[0] + (now_ms - clock[1]) // 1000),
                },
            )
        )

    def deadline(self):
        """Return the monotonic time of the next heartbeat, or None."""
        return self._beat_ms
