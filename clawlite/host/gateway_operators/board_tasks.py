"""The methods of tasks for a board: each task is a turn there.  They are kept in memory, and end
with the connection to the board (docs/page.md).
"""

from clawlite.core.base.clock import iso8601
from clawlite.core.base.errors import ClawError, InvalidParams
from clawlite.core.policy.access import ADMIN, ROLE_NAMES
from clawlite.core.protocol.rights import check, least
from clawlite.core.protocol.rpc import field, notification
from clawlite.protocols.session.task_params import read_id, read_messages

UPDATED = "claw.task.updated"
MAX_TASKS = 64  # the oldest that have ended are forgotten
_ENDED = ("completed", "failed", "canceled")


class _Task:
    """One task.  *request*: the id of its turn at the board."""

    state = "working"
    result: dict | None = None

    def __init__(self, id: str, caller: str, messages: list, created_s: int):
        self.id, self.caller, self.messages, self.created_s = id, caller, messages, created_s
        self.request = ""
        self.watchers: list = []  # Viewers

    def describe(self) -> dict:
        told: dict = {"task_id": self.id, "state": self.state}
        if self.state == "input_required":
            told["message"] = "This waits for approval."
        if self.result is not None:
            told["result"] = self.result
        return told


class BoardTasks:
    """The tasks of one board.

    ask    function(viewer, method, params, reply) -> id of the request to the board
    now_s  function() -> epoch seconds
    """

    def __init__(self, ask, now_s):
        self._ask, self._now_s = ask, now_s
        self._all: dict = {}  # id -> _Task, the oldest first

    def begin(self, viewer, method: str, params: dict) -> dict:
        """Return the result of a request of *viewer*.  Raises ``ClawError``."""
        person, (role, _) = viewer.person, least(method)
        check(method, person.name, ROLE_NAMES.index(person.role), role, False)
        name = method.removeprefix("claw.task.")
        if name == "list":
            return {"tasks": [self._list_one(task) for task in self._of(person)]}
        if name == "create":
            return self._create(viewer, params)
        task = self._all.get(read_id(params))
        if task is None or task not in self._of(person):
            raise InvalidParams("task_id: unknown task %s" % read_id(params)[:63])
        if name == "cancel":
            return self._cancel(viewer, task, params)
        if name == "subscribe":
            if task.state not in _ENDED and viewer not in task.watchers:
                task.watchers.append(viewer)
            return {**task.describe(), "subscribed": True}
        return task.describe()

    def _of(self, person) -> list:
        """Return the tasks that *person* may see."""
        is_admin = ROLE_NAMES.index(person.role) == ADMIN
        return [one for one in self._all.values() if is_admin or one.caller == person.caller]

    def _list_one(self, task: _Task) -> dict:
        return {"task_id": task.id, "state": task.state, "created": iso8601(task.created_s)}

    def _create(self, viewer, params: dict) -> dict:
        task_id, messages = read_id(params), read_messages(params)
        known = self._all.get(task_id)
        if known is not None and known.messages == messages:
            return known.describe()
        if known is not None or params.get("is_answer") is True:
            raise InvalidParams(
                "task_id: %s is the id of another task" % task_id[:63],
                "give each task an id of its own; claw.approval.answer answers what it waits for",
            )
        *before, (role, text) = messages
        if role != "user":
            raise InvalidParams('messages: expected the last one to have the role "user"')
        task = _Task(task_id, viewer.person.caller, messages, self._now_s())
        for old in [one.id for one in self._all.values() if one.state in _ENDED]:
            if len(self._all) >= MAX_TASKS:
                del self._all[old]
        if len(self._all) >= MAX_TASKS:
            return {"task_id": task_id, "state": "rejected"}
        self._all[task_id] = task
        asked = {"message": text, "before": before}
        task.request = self._ask(viewer, "turn", asked, lambda said: self._end(task, said))
        return task.describe()

    def _cancel(self, viewer, task: _Task, params: dict) -> dict:
        reason = field(params, "reason", str, "", False)
        if task.state not in _ENDED:
            task.state, task.result = "canceled", {"error": reason or "canceled by its caller"}
            asked = {"id": task.request, "reason": (reason or "")[:200]}
            self._ask(viewer, "cancel", asked, lambda said: None)
            self._tell(task, viewer)
        return task.describe()

    def _end(self, task: _Task, said: dict):
        if task.state in _ENDED:
            return
        result = said.get("result")
        if not isinstance(result, dict):
            error = said.get("error")
            result = {"text": "", "error": error.get("message") if error else "no answer"}
        task.state, task.result = "failed" if "error" in result else "completed", result
        self._tell(task)

    def note_waiting(self, requests: list):
        """The turns of these *requests* wait for a person."""
        for task in self._all.values():
            state = "input_required" if task.request in requests else "working"
            if task.state not in (*_ENDED, state):
                task.state = state
                self._tell(task)

    def _tell(self, task: _Task, but=None):
        for viewer in task.watchers:
            if viewer is not but:
                viewer.tell(notification(UPDATED, task.describe()))
        if task.state in _ENDED:
            task.watchers = []

    def forget(self, viewer):
        """*viewer* has gone."""
        for task in self._all.values():
            if viewer in task.watchers:
                task.watchers.remove(viewer)

    def end_all(self, error: ClawError):
        """The board has gone: nobody knows how the turns went on."""
        for task in self._all.values():
            if task.state not in _ENDED:
                task.state, task.result = "failed", {"text": "", "error": error.message}
                self._tell(task)
