"""claw.swarm.delegate, report, broadcast and discover (CKP 0.2.0, 9.3.3): this module checks their
parameters, and a bus performs them.

1. A ``task_id`` is the key of its task: delegated again, it is acknowledged and nothing runs twice;
   with other content it is refused.
2. A report of a task that nobody delegated here is not recorded: ``acknowledge`` is false.
3. A broadcast is a notification: nothing answers it, right or wrong.
4. An operator that declares ``swarm`` among its capabilities is a peer as well: it is sent the
   report of each task that it delegates, as a request that it acknowledges, and each broadcast of
   the others.  A report that it has not acknowledged is sent again to the next session, also after
   a restart of the agent, or when its task is delegated again.
"""

from clawlite.core.base.effect import LOG, SEND
from clawlite.core.base.errors import ClawError, InvalidParams
from clawlite.core.protocol.calls import is_uuid
from clawlite.core.protocol.rpc import field, notification
from clawlite.protocols.session.group_session import Later
from clawlite.protocols.swarm.swarm import FAILED, MOST_AMOUNT, STATUSES, Task

MAX_DESCRIPTION = 65536  # characters
ROWS = """
swarm.delegate   ready  swarm  task_id  9.3.3  task context
swarm.report     ready  swarm  -        9.3.3  task_id status result token_usage? duration_ms?
swarm.broadcast  -      swarm  -        9.3.3  swarm message
swarm.discover   ready  swarm  -        9.3.3  swarm?
"""
MOST_SENT = 256  # reports that may wait for the operator's answer at once
MOST_OWED = 10000  # tasks whose report is not acknowledged; a bus keeps no more ended tasks
_BROADCAST, _REPORT = "claw.swarm.broadcast", "claw.swarm.report"


class SwarmMethods:
    """The methods of one agent: a group of ``group_session.GroupSession``.

    agent  ``agent.Agent``
    swarm  ``swarm.Swarm``
    bus    put(Task) -> bool, False when its id has another content
           report(task_id, status, result, token_usage, duration_ms, by) -> bool, False for an
           unknown task
           broadcast(sender, message)
           ask(description, to, data, call), a generator of milliseconds to wait, which returns
           (status, by, result) of the report
           look_again(), called when ``send_reports`` has something to do
           statuses() -> {identity: "ready" | "busy" | "unavailable"}
           Its methods raise ``ClawError`` only.  put and report may return a ``Later``.
    owed   what of the operator's reports outlives this process, or None
           left() -> [(task_id, id as the operator wrote it), ...] of processes that ended
           keep(task_id, written);  done(task_id)
    """

    capability, rows = "swarm", ROWS

    def __init__(self, agent, swarm, bus, owed=None) -> None:
        self._agent, self.swarm, self._bus, self._kept = agent, swarm, bus, owed
        self._is_peer = False  # the operator is sent reports and broadcasts
        # id of a task whose report is not acknowledged -> the id as the operator wrote it
        self._owed = {}
        self._due = set()  # ids of tasks whose report has to be looked for and sent
        self._sent = set()  # ids of tasks whose report went to this session, not yet acknowledged
        self._unanswered = set()  # those of ``_sent`` to which no answer of any kind has come

    def open(self, is_peer: bool) -> None:
        """Begin a session; *is_peer*: its operator declares the capability ``swarm``."""
        self._is_peer = is_peer
        if is_peer and self._kept:
            self._owed.update(self._kept.take_over())
        self._due.update(self._owed)
        self._sent, self._unanswered = set(), set()
        if self.owes:
            self._bus.look_again()

    def begin(self, method: str, params: dict):
        """Return the result of one of the requests, or a ``Later``.  Raises ``ClawError``."""
        if method.endswith("delegate"):
            return self._delegate(params)
        if method.endswith("report"):
            return self._report(params)
        return {"peers": self._discover(params)}

    def notify(self, message: dict) -> None:
        """Take a notification, or the answer to a report; one that is wrong is only logged."""
        if "method" not in message:
            self._acknowledge(message)
        if message.get("method") != _BROADCAST:
            return
        try:
            params = message.get("params")
            if not isinstance(params, dict):
                raise InvalidParams("params: expected an object")
            self._of_this(params, "")
            if "message" not in params:
                raise InvalidParams("message: there is none")
            self._bus.broadcast(self.swarm.own.identity, params["message"])
            self._log("broadcast", sender=self.swarm.own.identity)
        except ClawError as e:
            self._log("refused", method=_BROADCAST, reason=e.message)

    def hear(self, message) -> None:
        """Pass the broadcast *message* of another agent on to the operator."""
        if self._is_peer:
            params = {"swarm": self.swarm.name, "message": message}
            self._agent.effects.append((SEND, notification(_BROADCAST, params)))

    @property
    def owes(self) -> bool:
        """Whether the operator is still to be sent a report, now or later."""
        return self._is_peer and bool(self._owed)

    def send_reports(self, ended, outcome) -> None:
        """Send the operator the reports of its tasks that have ended.

        ended    ids of tasks that have a new report
        outcome  function(id) -> (status, result, tokens or None, duration ms or None) of the report
                 that ended a task, None while it goes on
        """
        for task_id in ended:
            if task_id in self._owed:
                self._due.add(task_id)
        for task_id in list(self._due):
            if len(self._unanswered) >= MOST_SENT:
                return  # the next answer makes room
            found = outcome(task_id)
            self._due.discard(task_id)
            if found is None or task_id in self._sent:
                continue
            self._sent.add(task_id)
            self._unanswered.add(task_id)
            status, result, tokens, duration_ms = found
            params = {"task_id": self._owed[task_id], "status": status, "result": result}
            if tokens is not None:
                params["token_usage"] = tokens
            if duration_ms is not None:
                params["duration_ms"] = duration_ms
            message = notification(_REPORT, params)
            message["id"] = task_id  # a message with an id is a request
            self._agent.effects.append((SEND, message))

    def _acknowledge(self, message: dict) -> None:
        """Take the operator's answer to a report."""
        task_id, answer = message.get("id"), message.get("result")
        if not isinstance(task_id, str) or task_id not in self._sent:
            return
        self._unanswered.discard(task_id)
        if self._due:
            self._bus.look_again()
        if isinstance(answer, dict) and answer.get("acknowledged") is True:
            for held in (self._sent, self._due):
                held.discard(task_id)
            if self._owed.pop(task_id, None) and self._kept:
                self._kept.remove(task_id)
            return
        error = message.get("error")
        said = error.get("message") if isinstance(error, dict) else None
        reason = said[:200] if isinstance(said, str) else "it was not acknowledged"
        self._log("refused", method=_REPORT, task_id=task_id, reason=reason)

    def ask(self, description: str, to: str, data, call=None):
        """A generator, for the tool ``delegate``: it yields milliseconds to wait until the report
        of another agent has come, and returns {"status", "by"} with the "text" of its answer, or
        else with its "result".

        to    identity of the agent that should do it, "" for any that is free
        call  number of the agent's task whose turn delegates, or None
        Raises ``ClawError`` when no agent may do it, or it has failed.
        """
        swarm = self.swarm
        if not swarm.is_shared:
            raise ClawError(
                "the swarm %s is this process alone" % swarm.name, "use backend: sqlite-wal"
            )
        able = swarm.may_ask()
        if to not in able and (to or not able):
            raise InvalidParams(
                "to: no other member of the swarm does tasks under the name %s" % to[:63],
                "these do: %s" % ", ".join(able),
            )
        status, by, result = yield from self._bus.ask(description, to, data, call)
        if status == FAILED:
            raise ClawError("the task failed: %s" % _error_text(result))
        found = {"status": status, "by": by}
        if isinstance(result, dict) and isinstance(result.get("text"), str):
            found["text"] = result["text"]  # the report is an agent's answer
        else:
            found["result"] = result
        return found

    def _delegate(self, params: dict):
        task_id = _id(params)
        task = field(params, "task", dict, "")
        description = field(task, "description", str, "task.")
        if len(description) > MAX_DESCRIPTION:
            raise InvalidParams(
                "task.description: expected at most %d characters, got %d"
                % (MAX_DESCRIPTION, len(description))
            )
        context = field(params, "context", dict, "")
        request_id = field(context, "request_id", str, "context.")
        if not is_uuid(request_id):
            raise InvalidParams("context.request_id: expected a UUID, got %s" % request_id[:40])
        self._of_this(context, "context.")
        own = self.swarm.own.identity
        recipient = "" if self.swarm.leads and self.swarm.hands_on else own

        def acknowledge(known: bool) -> dict:
            if not known:
                raise InvalidParams(
                    "task_id: %s is the id of another task" % task_id,
                    "give each task an id of its own",
                )
            self._log("delegate", task_id=task_id, request_id=request_id.lower())
            if self._is_peer:
                self._owe(task_id, params["task_id"])
            return {"acknowledged": True}

        given = Task(task_id, description, task.get("input"), own, recipient)
        return _with(self._bus.put(given), acknowledge)

    def _owe(self, task_id: str, written: str) -> None:
        """Note that the operator wants the report of a task whose id it wrote as *written*."""
        if task_id not in self._owed and len(self._owed) >= MOST_OWED:
            reason = "its report is not sent: %d wait to be acknowledged" % MOST_OWED
            self._log("refused", method=_REPORT, task_id=task_id, reason=reason)
            return
        self._owed[task_id] = written
        if self._kept:
            self._kept.keep(task_id, written)
        self._due.add(task_id)
        for held in (self._sent, self._unanswered):
            held.discard(task_id)

    def _report(self, params: dict):
        task_id = _id(params)
        status = field(params, "status", str, "")
        if status not in STATUSES:
            raise InvalidParams("status: expected %s, got %s" % (", ".join(STATUSES), status[:40]))
        if "result" not in params:
            raise InvalidParams("result: there is none")
        numbers = [_amount(params, name) for name in ("token_usage", "duration_ms")]

        def acknowledge(known: bool) -> dict:
            self._log("report", task_id=task_id, status=status, known=known)
            return {"acknowledged": known}

        known = self._bus.report(task_id, status, params["result"], *numbers, "operator")
        return _with(known, acknowledge)

    def _discover(self, params: dict) -> list:
        name = field(params, "swarm", str, "", False)
        self._log("discover")
        if name is not None and name != self.swarm.name:
            return []
        statuses = self._bus.statuses()
        return [
            {"identity": one.identity, "uri": one.uri, "status": statuses[one.identity]}
            for one in self.swarm.members
        ]

    def _of_this(self, holder: dict, where: str) -> None:
        name = field(holder, "swarm", str, where)
        if name != self.swarm.name:
            raise InvalidParams(
                "%sswarm: unknown swarm %s" % (where, name[:60]),
                "this agent is in: %s" % self.swarm.name,
            )

    def _log(self, what: str, **more) -> None:
        event = {"event": "swarm." + what, "swarm": self.swarm.name}
        event.update(more)
        self._agent.effects.append((LOG, event))


def _with(value, function):
    """Return ``function(value)``: at once, or as a ``Later`` when *value* is one."""
    if not isinstance(value, Later):
        return function(value)
    made = Later()

    def finish(value: Later) -> None:
        try:
            made.give(function(value.value()))
        except ClawError as e:
            made.fail(e)

    value.then(finish)
    return made


def _error_text(result: object) -> str:
    error = result.get("error") if isinstance(result, dict) else None
    return error if isinstance(error, str) else "nothing says why"


def _id(params: dict) -> str:
    task_id = field(params, "task_id", str, "")
    if not is_uuid(task_id):
        raise InvalidParams("task_id: expected a UUID, got %s" % task_id[:40])
    return task_id.lower()


def _amount(params: dict, name: str) -> int | None:
    value = field(params, name, int, "", False)
    if value is not None and not 0 <= value <= MOST_AMOUNT:
        raise InvalidParams("%s: expected 0 to %d, got %d" % (name, MOST_AMOUNT, value))
    return value
