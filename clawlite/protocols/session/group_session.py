"""The session of an operator whose shell answers more methods than ``session.Session``: those of a
swarm (CKP 0.2.0, 9.3.3) and those of tasks.  A class of its own, so that a board, which has none of
them, does not load it.
"""

from clawlite.core.base.errors import ClawError, PolicyDenied
from clawlite.core.protocol import rpc
from clawlite.core.protocol.method_table import NEVER, find
from clawlite.core.protocol.session import Session

_ANSWERS = ("claw.approval.answer", "claw.rule.answer", "claw.tool.approve", "claw.tool.deny")


class Later:
    """A value that is not known yet: ``give`` or ``fail`` sets it, once."""

    def __init__(self) -> None:
        self.is_done = False
        self._value: object = None
        self._error: ClawError | None = None
        self._then = None

    def give(self, value: object) -> None:
        self._end(value, None)

    def fail(self, error: ClawError) -> None:
        """*error*: a ``ClawError``."""
        self._end(None, error)

    def value(self) -> object:
        """Return the value, or raise the error that came in its place."""
        if self._error is not None:
            raise self._error
        return self._value

    def then(self, function) -> None:
        """Call *function* with this ``Later`` when it is done."""
        self._then = function
        if self.is_done:
            function(self)

    def _end(self, value: object, error: ClawError | None) -> None:
        if not self.is_done:
            self.is_done, self._value, self._error = True, value, error
            if self._then:
                self._then(self)


class Group:
    """More methods for a ``GroupSession``; ``begin(method, params)`` returns the result of one, or
    a ``Later``, and raises ``ClawError``.  Each default is that of a group that has nothing to do.

    capability  a name for ``capabilities`` of claw.initialize, or ""
    rows        its methods, as in method_table.py; a session has the group only when the image
                needs one of them
    """

    capability = ""

    def open(self, is_peer: bool) -> None:
        """A session begins, whose operator declares the capability itself or does not; asked of a
        group with a capability.
        """

    def has(self, number: int) -> bool:
        """Return whether the task *number* is a turn for which the operator answers forms, too;
        asked of a group without a capability.
        """
        return False

    def notify(self, message: dict) -> None:
        """Handle a notification, or a response; never raises."""

    def close(self) -> None:
        """The line has ended."""


class GroupSession(Session):
    """A ``Session`` with more methods, those of each ``Group`` that it is told to ``serve``."""

    watches = False  # the operator does not want to know how calls go on
    _takes_forms = False  # the operator fills in the forms of tools

    def __init__(self, *given) -> None:
        super().__init__(*given)
        self._groups = []

    def serve(self, group) -> None:
        """Answer the methods of *group*, too."""
        self._groups.append(group)

    def close(self) -> None:
        """Its operator has gone: no form is put to them any more."""
        if self._takes_forms:
            self._takes_forms = False
            self.agent.on_wait.remove(self._ask)

    def can_ask(self, task) -> bool:
        """Return whether a form can be put to the operator during the call *task*; None: during any
        call.
        """
        if not self._takes_forms or not self._is_heard:
            return False
        if task is None:
            return True
        known = self.agent.tasks.get(task)
        return known is not None and (
            bool(known.once)
            or any(group.has(task) for group in self._groups if not group.capability)
        )

    def tell(self, task, progress) -> None:
        """Do nothing: nobody ``watches``."""

    def _ask(self, task, now_ms: int) -> None:
        """Notify the operator of each form that waits for an answer."""
        for one in self.agent.waiting:
            form, once = one.approval.form, one.once
            if form and once and not form.is_told:
                form.is_told = True
                params = {"request_id": once.id, "timeout_ms": one.approval.due_ms - now_ms}
                params.update(form.to_json())
                self._send(rpc.notification("claw.tool.asks", params))

    answers_as = ""  # who the operator is in the log and the audit, where a login says so

    def _watch_answer(self, message: dict, reply):
        """Return *reply*; an answer to an approval that does nothing is put on record before."""
        is_task = message["method"] == "claw.task.create"
        params = message.get("params")
        by = self.answers_as or isinstance(params, dict) and params.get("caller") or "operator"

        def finish(said: dict) -> None:
            error = said.get("error")
            is_refused = error and (is_task or error["code"] == PolicyDenied.code)
            if is_refused or said.get("result") == {"acknowledged": False}:
                from clawlite.core.protocol.channel_answers import note_ignored

                why = error["message"] if error else "it waits no more"
                note_ignored(self.agent, str(by)[:80], why)
            reply(said)

        return finish

    def _one(self, message, reply, now_ms: int, opens: bool = False) -> bool:
        if isinstance(message, dict):
            method, params = message.get("method"), message.get("params")
            if method in _ANSWERS or (
                method == "claw.task.create"
                and isinstance(params, dict)
                and params.get("is_answer") is True
            ):
                reply = self._watch_answer(message, reply)
        if super()._one(message, reply, now_ms, opens):
            return True
        # a response has no method; groups act on notifications alone
        if self._is_heard and isinstance(message, dict):
            self.notify_groups(message)
        return False

    def notify_groups(self, message: dict) -> None:
        """Let each group take a notification, or a response."""
        for group in self._groups:
            group.notify(message)

    def _other(self, id: object, method: str, params, reply, now_ms: int):
        if self._is_heard and isinstance(params, dict):
            for group in self._groups:
                row = find(method, group.rows)
                if row and row[1] != NEVER:
                    value = group.begin(method, params)
                    if not isinstance(value, Later):
                        return value
                    value.then(lambda done: reply(_answer(id, done)))
                    return None
        return super()._other(id, method, params, reply, now_ms)

    def _find_row(self, method: str) -> list:
        for group in self._groups:
            row = find(method, group.rows)
            if row:
                return row
        return super()._find_row(method)

    @property
    def _is_heard(self) -> bool:
        return self._open and self.agent.is_ready

    def _initialize(self, params: dict, now_ms: int):
        value = super()._initialize(params, now_ms)
        if value is not None:
            asked = params["capabilities"]
            if "asks" in asked.get("tools", ()):
                if not self._takes_forms:
                    self._takes_forms = True
                    self.agent.on_wait.append(self._ask)
                value["capabilities"]["tools"]["asks"] = {}
            for group in self._groups:
                if not group.capability:
                    continue
                group.open(group.capability in asked)
                if not asked or group.capability in asked:
                    value["capabilities"][group.capability] = {}
        return value


def _answer(id: object, done: Later) -> dict:
    try:
        return rpc.result(id, done.value())
    except ClawError as e:
        return rpc.error(id, e)
