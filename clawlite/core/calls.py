"""The operator's tool calls (CKP 0.2.0, 9.3.2): claw.tool.call, and claw.tool.approve and deny of those that wait for a person."""
from clawlite.core import rpc
from clawlite.core.errors import InvalidParams, InvalidRequest
from clawlite.core.rpc import field
from clawlite.core.tools import call


class Calls:
    """The calls of one operator's line.

    agent  ``agent.Agent``
    """

    def __init__(self, agent):
        self.agent = agent
        self._under_way = {}            # request_id -> task number

    def begin(self, id, params: dict, reply, now_ms: int):
        """Begin ``claw.tool.call``; *reply* gets its answer, now or later."""
        name = field(params, "name", str, "")
        arguments = field(params, "arguments", dict, "")
        context = field(params, "context", dict, "")
        request_id = field(context, "request_id", str, "context.")
        if not is_uuid(request_id):
            raise InvalidParams("context.request_id: expected a UUID, got %s" % request_id[:40])
        field(context, "identity", str, "context.")
        policy = field(context, "policy", str, "context.", False)
        sandbox = field(context, "sandbox", str, "context.", False)
        if sandbox is not None and sandbox != self.agent.image.agent.sandbox:
            raise InvalidParams("context.sandbox: unknown sandbox %s" % sandbox[:60], "this agent has: %s" % self.agent.image.agent.sandbox)
        if request_id in self._under_way:
            raise InvalidRequest("context.request_id: a call with this id is under way", "send a new id with a new call")
        ran = []                        # not empty once the call has ended, which may be before begin returns

        def ended(value, error, _):
            self._under_way.pop(request_id, None)
            ran.append(True)
            reply(rpc.error(id, error) if error else rpc.result(id, value.to_json()))
        number = self.agent.begin(call(self.agent.image, name, arguments, "operator", policy, request_id), ended, now_ms)
        if not ran:
            self._under_way[request_id] = number

    def answer(self, id, params: dict, approved: bool, reply, now_ms: int):
        """Answer a pending call.  An id that is unknown, expired or used releases nothing, and the reply says so."""
        number = self._under_way.get(field(params, "request_id", str, ""))
        reason = field(params, "reason", str, "", False)
        task = self.agent.tasks.get(number)
        waits = task is not None and task.approval is not None
        reply(rpc.result(id, {"acknowledged": waits}))
        if waits:                       # after the reply: the acknowledgement comes before the call's own result
            self.agent.answer(task, approved, reason or "", now_ms)


def is_uuid(text: str) -> bool:
    """Return whether *text* is a UUID in its text form (RFC 9562, 4): 8-4-4-4-12 hexadecimal digits."""
    if len(text) != 36 or not text[8] == text[13] == text[18] == text[23] == "-":
        return False
    digits = text.replace("-", "")
    return len(digits) == 32 and not digits.strip("0123456789abcdefABCDEF")
