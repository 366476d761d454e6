"""The operator's tool calls (CKP 0.2.0, 9.3.2): claw.tool.call, and claw.tool.approve and deny for
calls that wait for a person.
"""

from binascii import unhexlify

from clawlite.core.protocol import rpc
from clawlite.core.base.effect import KEEP
from clawlite.core.base.errors import InvalidParams
from clawlite.core.idempotency.idempotency import IdempotentRequest
from clawlite.core.protocol.rpc import field
from clawlite.core.turns.tools import call

# the arguments of a record of up to so many bytes are kept as they are; longer ones as fingerprints
PLAIN = 1024


class Call(IdempotentRequest):
    """One claw.tool.call, and how it is answered at its end.

    reply_id  the id of its JSON-RPC request
    reply     function(message)
    answered  function(reply_id, result) -> bool, True when it has sent the answer, or None
    """

    answered = None

    def send_answer(self, value, error, now_ms: int):
        """Send the answer; a record that must be kept is written first."""
        self.idempotency.now_ms = now_ms
        record = self.end(value, error)
        if record is not None:
            self.agent.emit((KEEP, 0) + record)
        if self.told:
            self.told()
        # reply is None: it has been answered, and a board ran out of memory after that
        if error and self.reply:
            self.reply(rpc.error(self.reply_id, error))
        elif self.reply and not (self.answered and self.answered(self.reply_id, value)):
            self.reply(rpc.result(self.reply_id, value.to_json()))
        self.reply = None  # the call is remembered for minutes, its caller is not
        for number in self.joined or ():
            self.agent.complete(number, (True, None), now_ms)


class Calls:
    """The calls of one operator's line.

    agent     ``agent.Agent``
    alone     function(message), the *reply* of a call that is not part of a batch
    answer    see ``Session``
    """

    caller = "operator"

    def __init__(self, agent, alone, answer):
        self.agent = agent
        self._alone = alone
        self._answer = answer

    def act_for(self, caller: str):
        """Begin and answer calls in the name of *caller* from now on."""
        self.caller = caller

    def begin(self, id, params: dict, reply, now_ms: int, line_bytes: int):
        """Begin ``claw.tool.call``; *reply* gets its answer, now or later.

        line_bytes  int, of the record that it came in
        """
        name, arguments, context = (
            params.get("name"),
            params.get("arguments"),
            params.get("context"),
        )
        if not (
            name
            and isinstance(name, str)
            and isinstance(arguments, dict)
            and isinstance(context, dict)
        ):
            return _refuse(params)
        request_id, identity = context.get("request_id"), context.get("identity")
        if not (
            isinstance(request_id, str)
            and identity
            and isinstance(identity, str)
            and is_uuid(request_id)
        ):
            return _refuse(params)
        agent = self.agent
        image = agent.image
        if identity != image.agent.identity:
            raise InvalidParams(
                "context.identity: unknown identity %s" % identity[:60],
                "this agent has: %s" % image.agent.identity,
            )
        if "actor" in params and agent.setup.channels:
            agent.setup.channels.permit(params["actor"], False)
        policy = field(context, "policy", str, "context.", False) if "policy" in context else None
        sandbox = context.get("sandbox")
        if sandbox != image.agent.sandbox and "sandbox" in context:
            field(context, "sandbox", str, "context.", False)
            raise InvalidParams(
                "context.sandbox: unknown sandbox %s" % sandbox[:60],
                "this agent has: %s" % image.agent.sandbox,
            )
        request = Call(
            agent.requests(now_ms),
            request_id.lower(),
            [None, arguments, identity, policy, sandbox],
        )
        request.agent = agent
        request.reply_id = id
        request.reply = reply
        if line_bytes > PLAIN:
            request.is_long = True
        if reply is self._alone:
            request.answered = self._answer
        request.number = agent.begin(
            call(agent.setup, name, arguments, self.caller, policy, request),
            request.send_answer,
            now_ms,
            None,
            request,
        )

    def answer(self, id, params: dict, approved: bool, reply, now_ms: int):
        """Approve or deny a waiting call.  An id that is unknown, expired or already answered has
        no effect, and the reply says so.
        """
        if "actor" in params and self.agent.setup.channels:
            self.agent.setup.channels.permit(params["actor"], True)
        known = self.agent.requests(now_ms).find(field(params, "request_id", str, "").lower())
        reason = field(params, "reason", str, "", False)
        task = self.agent.tasks.get(known.number) if known else None
        # the calls of a composite tool may wait, too
        while task is not None and task.child:
            task = self.agent.tasks.get(task.child)
        if task is None or task.approval is None:
            reply(rpc.result(id, {"acknowledged": False}))
            return

        if approved and task.approval.form:
            task.approval.form.fill(params.get("content", {}))

        def tell():  # after the answer is on record, before the call's own answer
            if known.told:
                known.told = None
                reply(rpc.result(id, {"acknowledged": True}))

        known.told = tell
        by = params["actor"] if "actor" in params and self.agent.setup.channels else self.caller
        self.agent.answer(task, approved, reason or "", now_ms, by)
        # the effect of the answer is put on record before it is acknowledged
        self.agent.call_after_catch_up(tell)


def _refuse(params: dict):
    """Raise ``InvalidParams`` for the first required parameter that is missing or wrong."""
    field(params, "name", str, "")
    field(params, "arguments", dict, "")
    context = field(params, "context", dict, "")
    request_id = field(context, "request_id", str, "context.")
    if not is_uuid(request_id):
        raise InvalidParams("context.request_id: expected a UUID, got %s" % request_id[:40])
    field(context, "identity", str, "context.")


def is_uuid(text: str) -> bool:
    """Return whether *text* is a UUID in its text form (RFC 9562, 4): 8-4-4-4-12 hexadecimal
    digits.
    """
    if len(text) != 36 or not text[8] == text[13] == text[18] == text[23] == "-":
        return False
    try:
        return len(unhexlify(text.replace("-", ""))) == 16
    except ValueError:
        return False
