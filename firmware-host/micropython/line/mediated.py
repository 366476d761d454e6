"""Tools of services that a gateway, on the LAN or at the other end of the line, calls for this
board (docs/services.md).  The counterpart on Linux is clawlite/linux/net/gateway_client.py; what
both do is in core/line/gateway_call.py.

1. Loaded for images that require ``mediated`` or ``mediated-line``.  It stands in front of the
   uplink, and handles the agent's calls of such tools and the gateway's messages about them.
2. A call that the gateway cannot have made is refused, and may be sent again with its request id.
   Any other failure is a result that describes it (clawlite/protocols/services/service_call.py).
"""

from binascii import hexlify

from clawlite.core.base import effect as E
from clawlite.core.base.errors import ClawError, InvalidRequest
from clawlite.core.image.image import HANDLER_KIND, SERVICE
from clawlite.core.line.gateway_call import GatewayCall, read_end
from clawlite.core.line.gateway_records import WAIT_MS
from jsontext import dumps, loads
from random_bytes import random_bytes

_TOOL, _ARGUMENTS, _DUE_MS = 2, 3, 4  # of RUN
_TIMEOUT_MS = 30000  # of one call (ADR-020)


class Failed(dict):
    """A result that is an error; ``is_error`` is for the tool pipeline."""

    is_error = True


class Mediated:
    """The calls of one agent.  It has the same methods as the uplink behind it.

    device  ``device.Device``, whose ``net`` is an ``uplink.Uplink``
    """

    def __init__(self, device):
        self._device, self._uplink = device, device.net
        self._boot, self._count = str(hexlify(random_bytes()), "utf-8"), 0
        self._calls = {}  # task -> GatewayCall

    # -- from the agent

    def take(self, effect: tuple) -> bool:
        """Begin the call of a service; return False for any other effect of the agent."""
        if effect[E.KIND] != E.RUN or effect[_TOOL].handler[HANDLER_KIND] != SERVICE:
            return False
        tool, now = effect[_TOOL], self._device.now_ms()
        due_ms = effect[_DUE_MS]
        if due_ms is None:
            due_ms = now + _TIMEOUT_MS
        self._count += 1
        id = "%s-t%d" % (self._boot, self._count)
        call = GatewayCall(id, tool.name, dumps(effect[_ARGUMENTS]), due_ms)
        call.come_ms = now + WAIT_MS
        self._calls[effect[E.TASK]] = call
        if self._uplink.is_up:
            self._begin(call)
        else:
            self._uplink.call()
        return True

    def carry_out(self, effect: tuple):
        self._uplink.carry_out(effect)

    def close(self, task: int):
        """Cancel the request of *task*, which nobody waits for any more."""
        call = self._calls.pop(task, None)
        if call is None:
            self._uplink.close(task)
        else:
            self._uplink.notify("cancel", {"id": call.id})

    # -- the loop

    def call(self):
        self._uplink.call()

    def ready(self, polled):
        self._uplink.ready(polled)

    def down(self):
        """The session is over: calls wait for the next one."""
        self._uplink.down()
        for call in self._calls.values():
            call.come_ms, call.parts = self._device.now_ms() + WAIT_MS, None

    def deadline(self):
        first = self._uplink.deadline()
        for task in self._calls:
            due = self._due(self._calls[task])
            if first is None or due < first:
                first = due
        return first

    def _due(self, call) -> int:
        return call.due_ms if call.come_ms is None else min(call.due_ms, call.come_ms)

    def tick(self):
        self._uplink.tick()
        now = self._device.now_ms()
        for task in list(self._calls):
            call = self._calls.get(task)
            if call and now >= self._due(call):
                self.close(task)
                if call.sent:
                    self._fail(task, "timeout", "The gateway did not say what became of the call")
                else:
                    self._refuse(task, self._uplink.nobody() + ": nothing was called")
            elif call and call.parts:
                self._uplink.go_on(call)

    # -- the wire

    def _begin(self, call):
        call.come_ms = None
        call.parts = call.records({}, None)
        self._uplink.go_on(call)
        self._uplink.probe()

    def record(self, data: bytes) -> bool:
        """Handle a record; return False when it is not from a gateway."""
        for task in self._calls:
            if self._calls[task].id.encode() in data and self._take_answer(task, data):
                return True
        if not self._uplink.record(data):
            return False
        if self._calls and b'"claw.gateway.hello"' in data:
            for task in sorted(self._calls):
                self._begin(self._calls[task])
        return True

    def on_loss(self, size: bytes) -> bool:
        """Handle the loss of a record; return whether a task waits for an answer."""
        waiting = list(self._calls)
        for task in waiting:
            self.close(task)
            self._fail(
                task, "unreachable", "%s bytes of its answer did not fit" % str(size, "utf-8")
            )
        return self._uplink.on_loss(size) or len(waiting) > 0

    def _take_answer(self, task: int, data: bytes) -> bool:
        """Handle a record with the id of *task*'s call; return False when it is not for it."""
        call = self._calls[task]
        try:
            message = loads(data)
            method, params = message.get("method"), message.get("params")
            if method == "claw.gateway.text" and params["id"] == call.id:
                call.said.append(params["text"])
                call.seen += 1
                return True
            if method is not None or message.get("id") != call.id:
                return False
            del self._calls[task]
            has_run, why = read_end(message)
            if not why and "result" not in message:
                raise KeyError("result")
            result = None if why else loads("".join(call.said).encode())
            if not has_run:
                self._refuse(task, why or "the gateway: " + result["error"]["message"])
            elif why:
                self._fail(task, "unreachable", why)
            else:
                self._end(task, result if result["ok"] else Failed(result))
        except (ClawError, KeyError, TypeError, AttributeError):
            if task in self._calls:
                return False
            self._fail(task, "unreachable", "the gateway's answer is malformed")
        return True

    def _refuse(self, task: int, message: str):
        error = InvalidRequest(message, "", {"ran": False})
        self._device.agent.complete(task, (False, error), self._device.now_ms())

    def _fail(self, task: int, code: str, message: str):
        self._end(task, Failed({"ok": False, "error": {"code": code, "message": message}}))

    def _end(self, task: int, result):
        self._device.agent.complete(task, (True, result), self._device.now_ms())
