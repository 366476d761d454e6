"""The uplink of a board without a network: a gateway at the other end of the line
(docs/gateway.md).

1. A request is sent in records: the conversation, message by message, long messages in pieces, then
   ``claw.gateway.provider``.
2. The received records are counted.  When a session broke and a gateway sends a new hello, the
   request is sent again, with its id and that count.  The gateway continues there, and asks no
   provider twice.
3. A request waits for a gateway for WAIT_MS, because the line may have to be opened first.  Loaded
   for images that require ``gateway``.
"""

from binascii import hexlify

from clawlite.core.base import effect as E
from clawlite.core.base.errors import ClawError, ProviderError, QuotaExceeded
from clawlite.core.line.gateway_records import WAIT_MS, describe, make_note, split_text
from jsontext import loads
from random_bytes import random_bytes
from unload import drop

_HOST, _PORT, _PARTS, _SPEAKER = 3, 4, 5, 6  # of OPEN

AHEAD = 1024  # bytes of records that may wait for the line before more are made
MAX_RECORD = 8192
# a reset without a session: a host on the line answers with a hello (docs/line.md, rule 8)
_ASKS = b"\x1e~0000rd20e7449\n"


class _Asked:
    """One request in progress."""

    def __init__(self, id: str, effect: tuple, due_ms: int):
        self.id, self.name, self.most = id, effect[_HOST], effect[_PORT]
        self.messages, self.speaker = effect[_PARTS], effect[_SPEAKER]
        self.due_ms = due_ms  # until then a gateway must have connected; None: one is connected
        # records of the answer so far; generator of the records that are still to be sent
        self.seen, self.parts = 0, None


class Uplink:
    """The connection of one device to its gateway.  ``is_up``: a gateway is connected.

    device  ``device.Device``: its ``net`` is this, or the object in front of it (mediated.py), that
            gets records and breaks first; its ``listener`` gets what answers no request
    """

    def __init__(self, device):
        self._device, self._agent, self._stdio = device, device.agent, device.stdio
        self._now_ms = device.now_ms
        self._asked = {}  # task -> _Asked
        self._boot = str(hexlify(random_bytes()), "utf-8")
        # is_up: a gateway has said hello in this session of the line
        self._count, self.is_up = 0, False
        self._operators = None  # ``operators.Operators``, while somebody is there

    def down(self):
        """The session is over: requests wait for the next one."""
        self.is_up = False
        now = self._now_ms()
        for task in self._asked:
            self._asked[task].due_ms = now + WAIT_MS
            self._asked[task].parts = None

    # -- from the agent

    def carry_out(self, effect: tuple):
        """Perform an effect of a provider."""
        if effect[E.KIND] == E.OPEN:
            self._count += 1
            id = "%s-%d" % (self._boot, self._count)
            asked = _Asked(id, effect, self._now_ms() + WAIT_MS)
            self._asked[effect[E.TASK]] = asked
            if self.is_up:
                self._begin(asked)
            else:
                self.call()
        else:
            self.close(effect[E.TASK])

    # -- the wire: lan.py has another

    def has_room(self) -> bool:
        """Return whether another record may be sent."""
        line = self._stdio.line
        return line and line.is_up and line.waiting < AHEAD

    def tell(self, message):
        """Send a record to the gateway."""
        self._stdio.record(message)

    def notify(self, name: str, params: dict) -> bool:
        """Send a note to the gateway, if one is connected; return whether it is."""
        if self.is_up:
            self.tell(make_note(name, params))
        return self.is_up

    def nobody(self) -> str:
        """Return the message for when there is no gateway."""
        return "no gateway at the other end of the line (clawlite gateway starts one there)"

    def call(self):
        """Ask the other end of the line for a hello, unless an operator is there, who would read it
        as JSON.
        """
        if self._stdio.line is None and not self._stdio.operator:
            prompt = self._stdio.prompt
            self._stdio.write((b"\n" if prompt else b"") + _ASKS, prompt)

    def probe(self):
        """Do nothing: a line finds out by itself whether a gateway is there."""

    def close(self, task: int):
        """Cancel the request of *task*, whose answer nobody waits for any more."""
        asked = self._asked.pop(task, None)
        if asked:
            self.notify("cancel", {"id": asked.id})

    def ready(self, polled):
        """Do nothing: an uplink registers nothing with the poll."""

    def deadline(self):
        """Return the time in ms of the next ``tick`` that matters, or None."""
        first = None
        for task in self._asked:
            due = self._asked[task].due_ms
            if due is not None and (first is None or due < first):
                first = due
        return first

    def tick(self):
        """Give up requests that have waited too long, and send what the line has room for."""
        now = self._now_ms()
        for task in list(self._asked):
            asked = self._asked.get(task)
            if asked and asked.due_ms is not None and now >= asked.due_ms:
                del self._asked[task]
                self._agent.receive(task, (False, ProviderError(self.nobody())), now)
            elif asked and asked.parts:
                self.go_on(asked)

    def _begin(self, asked):
        asked.due_ms = None
        asked.parts = _parts(asked)
        self.go_on(asked)

    def go_on(self, asked):
        """Send records of ``asked.parts`` as long as the wire has room."""
        while asked.parts and self.has_room():
            part = next(asked.parts, None)
            if part is None:
                asked.parts = None
            else:
                self.tell(part)

    # -- from the gateway

    def record(self, data: bytes) -> bool:
        """Handle a record; return False when it is not from a gateway."""
        if b'"claw.gateway.' not in data and b'"method"' in data:
            return False
        try:
            message = loads(data)
        except ClawError:
            return False
        if not isinstance(message, dict):
            return False
        method, params = message.get("method"), message.get("params")
        if method is None:
            return self._take_answer(message)
        if method == "claw.gateway.hello":
            self._greet(message.get("id"))
        elif isinstance(params, dict) and isinstance(params.get("text"), str):
            text = params["text"]
            if self._device.listener and self._device.listener.hear(method, params):
                pass
            elif method == "claw.gateway.text":
                self._hand_in(params.get("id"), text)
            elif method == "claw.gateway.notice":
                self._hand_in(params.get("id"), [text])
            elif method == "claw.gateway.operator":
                self._operate(params)
        return True

    def _operate(self, params: dict):
        """Hand on what somebody at the gateway's page says; the first of them is waited for."""
        device = self._device
        if self._operators is None:
            if not params["text"]:
                return
            from operators import Operators

            self._operators = Operators(device, self)
            device.beside += (self._operators,)
        self._operators.hear(params)

    def forget_operators(self):
        """Drop what people at the gateway's page need: nobody is there any more."""
        device, gone, self._operators = self._device, self._operators, None
        device.beside = tuple([part for part in device.beside if part is not gone])
        drop("operators")

    def on_loss(self, size: bytes) -> bool:
        """Handle the loss of a record: end the waiting requests, whose answers would be incomplete.
        Return whether there were any.
        """
        waiting = list(self._asked)
        for task in waiting:
            self.close(task)
            self._agent.receive(
                task,
                (
                    False,
                    ProviderError(
                        "%s bytes of its answer did not fit" % str(size, "utf-8"),
                        "ask for less at once",
                    ),
                ),
                self._now_ms(),
            )
        return len(waiting) > 0

    def _greet(self, id):
        found = describe(self._agent.image, self._boot, MAX_RECORD)
        found["operators"] = True
        self.tell({"jsonrpc": "2.0", "id": id, "result": found})
        self.is_up = True
        for task in sorted(self._asked):
            self._begin(self._asked[task])

    def _take_answer(self, message: dict) -> bool:
        id = message.get("id")
        result, error = message.get("result"), message.get("error")
        if isinstance(result, dict):
            return self._hand_in(id, result)
        if not isinstance(error, dict) or not isinstance(error.get("message"), str):
            return False
        kind = QuotaExceeded if error.get("code") == -32021 else ProviderError
        return self._hand_in(id, kind(error["message"], "", error.get("data")))

    def _hand_in(self, id, event) -> bool:
        for task in self._asked:
            asked = self._asked[task]
            if asked.id == id:
                asked.seen += 1
                is_error = isinstance(event, ClawError)
                if is_error or isinstance(event, dict):
                    del self._asked[task]
                self._agent.receive(task, (not is_error, event), self._now_ms())
                return True
        return False


def _parts(asked):
    """Generate the records of a request."""
    for message in asked.messages:
        params = {"id": asked.id, "role": message.role}
        if message.role == "tool":
            params["of"] = message.id
            params["failed"] = isinstance(message.result, ClawError) or message.result.is_error
        for record in split_text(params, message.text):
            yield record
        for id, name, raw in message.calls:
            for record in split_text({"id": asked.id, "call": [id, name]}, raw):
                yield record
    params = {"provider": asked.name, "max_tokens": asked.most, "seen": asked.seen}
    if asked.speaker:
        params["speaker"] = asked.speaker
    yield {"jsonrpc": "2.0", "id": asked.id, "method": "claw.gateway.provider", "params": params}
