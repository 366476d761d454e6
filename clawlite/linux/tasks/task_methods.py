"""claw.task.create, get, list, cancel and subscribe: parameters are checked here, and a
``TaskRunner`` does the tasks.

    submitted -> working <-> input_required -> completed | failed | canceled
    rejected: too many are open, and nothing was put on record

1. ``task_id`` is chosen by the caller and is the key of its task: created again with the same
   messages, it is answered with the state that it has, whatever it waits for; with others it is
   refused, or is an answer.
2. ``input_required``: a call of the turn waits for an approval, or its MCP server asks a person
   something (linux/mcp/question.py).  Another message under the same id answers it: ``approve``,
   ``deny``, or what the form wants.  Whoever holds this line is trusted as the owner of the
   process.
3. Whoever passes on the messages of others says with ``is_answer`` which of the two one may be:
   false, and it answers nothing; true, and it makes no task and is compared with none.  With a
   ``number`` it answers that question and no later one.
4. Of a task its texts leave, and nothing of prompts, arguments, results of tools, or secrets.
"""

from clawlite.core.base.clock import iso8601
from clawlite.core.base.effect import SEND
from clawlite.core.base.errors import InvalidParams
from clawlite.core.protocol.rpc import field, notification
from clawlite.linux.tasks.task_runner import CANCELED, runner_of
from clawlite.protocols.session.task_params import STATES, read_id, read_messages
from clawlite.protocols.swarm.swarm import COMPLETED, DEAD, FAILED, PARTIAL, RUNNING, WAITING, Task

PREFIX = "claw.task."
UPDATED = PREFIX + "updated"
MAX_CALLER = 80
MOST_OPEN = 64  # tasks that wait or are under way
MOST_OF_ONE = MOST_OPEN // 4  # of one caller in whose name an operator gives tasks
PAGE, MAX_PAGE = 50, 100
OPERATOR = "operator"
_STATES = {  # of the bus -> of a task
    WAITING: "submitted",
    RUNNING: "working",
    COMPLETED: "completed",
    PARTIAL: "completed",
    FAILED: "failed",
    DEAD: "failed",
    CANCELED: "canceled",
}
_ENDED = ("completed", "failed", "canceled")
_ANSWERS = {"approve": True, "yes": True, "deny": False, "no": False}


class TaskMethods:
    """The methods of one operator's line.

    agent, folder, what raises  as ``runner_of`` has them
    """

    def __init__(self, agent, folder: str):
        self._agent = agent
        self.runner = runner_of(agent, folder, self._notify_state, self._notify_text)
        self._watchers: dict = {}  # id of a task -> [function(message)] of who hears of it

    def begin(self, method: str, params: dict, send=None, caller=None) -> dict:
        """Return the result of a request.  Raises ``ClawError``.

        send    function(message) for what is told later; None: the operator on stdin hears it
        caller  of whose tasks alone this speaks; None: of all
        """
        name = method[len(PREFIX) :]
        if name == "list":
            return self._list(params, caller)
        if name == "create":
            return self._create(params)
        if caller is not None:
            self._check_caller(params, caller)
        if name == "get":
            return self._get(params)
        return getattr(self, "_" + name)(params, send or self._send)

    def forget(self, send):
        """Tell *send* nothing more: its line has ended."""
        for task_id, watchers in list(self._watchers.items()):
            if send in watchers:
                watchers.remove(send)
                if not watchers:
                    self._unwatch(task_id)

    def _check_caller(self, params: dict, caller: str):
        """Raise as for an unknown task when another person gave it."""
        task_id = read_id(params)
        if self.runner.caller(task_id) != caller:
            raise _unknown(task_id)

    def _send(self, message: dict):
        self._agent.effects.append((SEND, message))

    def _tell(self, task_id: str, found: dict, but=None):
        for send in self._watchers.get(task_id, ()):
            if send != but:
                send(notification(UPDATED, found))

    def _unwatch(self, task_id: str):
        self._watchers.pop(task_id, None)
        self.runner.watched.discard(task_id)

    def _create(self, params: dict) -> dict:
        task_id = read_id(params)
        caller = _caller(params)
        *before, (role, text) = read_messages(params)
        if role != "user":
            raise InvalidParams('messages: expected the last one to have the role "user"')
        is_answer = _is_answer(params)
        if not is_answer:
            is_new = self.runner.state(task_id) is None
            if is_new and self._is_full(caller):
                return {"task_id": task_id, "state": "rejected"}
            task = Task(task_id, text, before or None, caller, self.runner.swarm.own.identity)
            if self.runner.put(task):
                return self._state_of(task_id)
        self._check_number(params, task_id)
        if is_answer is False or before or not self._take_answer(task_id, text.strip(), caller):
            if is_answer:
                raise InvalidParams("task_id: %s is not waiting for such an answer" % task_id[:63])
            raise InvalidParams(
                "task_id: %s is the id of another task" % task_id[:63],
                "give each task an id of its own",
            )
        return self._state_of(task_id)

    def _is_full(self, caller: str) -> bool:
        """Return whether there is no room for one more task: of one caller, no more than a part."""
        if self.runner.open_tasks() >= MOST_OPEN:
            return True
        return caller != OPERATOR and self.runner.open_tasks(caller) >= MOST_OF_ONE

    def _check_number(self, params: dict, task_id: str):
        """Raise ``InvalidParams`` when the message answers a question that is over."""
        number, asking = field(params, "number", int, "", False), self.runner.asking(task_id)
        if number is not None and (asking is None or asking.number != number):
            raise InvalidParams(
                "number: %s does not wait for %d" % (task_id[:63], number),
                "ask claw.task.get with with_number what it waits for",
            )

    def _take_answer(self, task_id: str, text: str, by: str) -> bool:
        """Answer with *text*, in the name *by*, what a task waits for; return False when that is no
        answer to it.  Raises ``InvalidParams``: a form wants another value, and waits on.
        """
        asking, word = self.runner.asking(task_id), text.lower()
        if asking is None:
            return False
        if asking.form is not None and asking.form.how:
            approved = word != "deny"
            if approved:
                asking.form.fill_text("" if word == "approve" else text)
        elif word in _ANSWERS:
            approved = _ANSWERS[word]
        else:
            return False
        self.runner.answer(task_id, approved, by)
        return True

    def _get(self, params: dict) -> dict:
        task_id = self._check_id(params)
        found = self._state_of(task_id, params.get("with_number") is True)
        ended = self.runner.outcome(task_id)
        if ended is not None:
            _, status, result, *_ = ended
            found["result"] = result
            if status == PARTIAL:
                found["partial"] = True  # a call of its turn was refused, or has failed
        return found

    def _list(self, params: dict, caller=None) -> dict:
        state = field(params, "state", str, "", False)
        if state is not None and state not in STATES:
            raise InvalidParams("state: expected %s, got %s" % (", ".join(STATES), state[:40]))
        most = field(params, "page_size", int, "", False)
        if most is not None and not 1 <= most <= MAX_PAGE:
            raise InvalidParams("page_size: expected 1 to %d, got %d" % (MAX_PAGE, most))
        before = field(params, "page_token", str, "", False)
        if before is not None and not (before.isascii() and before.isdigit() and len(before) < 19):
            raise InvalidParams(
                "page_token: expected the token of an earlier answer, got %s" % before[:40]
            )
        # those that wait for an approval are running for the bus
        wanted = "working" if state == "input_required" else state
        states = [name for name, said in _STATES.items() if wanted in (None, said)]
        most = PAGE if most is None else most
        rows = self.runner.page(states, before and int(before), most + 1, caller)
        tasks = []
        for _, task_id, _, created_ms in rows[:most]:
            one = self._state_of(task_id, params.get("with_number") is True)
            if state in (None, one["state"]):
                tasks.append(dict(one, created=iso8601(created_ms // 1000)))
        found = {"tasks": tasks}
        if len(rows) > most:
            found["next_page_token"] = str(rows[most - 1][0])
        return found

    def _cancel(self, params: dict, send) -> dict:
        task_id = self._check_id(params)
        reason = field(params, "reason", str, "", False)
        if self._state_of(task_id)["state"] not in _ENDED:
            self.runner.cancel(task_id, (reason or "canceled by its caller")[:1000])
            self._tell(task_id, self._get(params), send)  # who asks for it hears so in the answer
            self._unwatch(task_id)
        return self._state_of(task_id)

    def _subscribe(self, params: dict, send) -> dict:
        task_id = self._check_id(params)
        if self._state_of(task_id)["state"] not in _ENDED:
            self.runner.watched.add(task_id)
            watchers = self._watchers.setdefault(task_id, [])
            if send not in watchers:
                watchers.append(send)
        return dict(self._state_of(task_id), subscribed=True)

    def _check_id(self, params: dict) -> str:
        task_id = read_id(params)
        if self.runner.state(task_id) is None:
            raise _unknown(task_id)
        return task_id

    def _state_of(self, task_id: str, with_number: bool = False) -> dict:
        state = _STATES[self.runner.state(task_id)]
        found = {"task_id": task_id, "state": state}
        asking = self.runner.asking(task_id)
        if asking and state == "working":
            found["state"] = "input_required"
            found["message"] = self.runner.question(task_id)
            if asking.form is not None:
                found["is_question"] = True
            if with_number:
                found["number"] = asking.number
        return found

    def _notify_state(self, task_id: str):
        found = self._get({"task_id": task_id})
        self._tell(task_id, found)
        if found["state"] in _ENDED:
            self._unwatch(task_id)

    def _notify_text(self, task_id: str, text: str):
        self._tell(task_id, {"task_id": task_id, "state": "working", "text": text})


def _unknown(task_id: str) -> InvalidParams:
    return InvalidParams("task_id: unknown task %s" % task_id[:63])


def _caller(params: dict) -> str:
    """Return in whose name the calls of a task stand in log and audit."""
    caller = field(params, "caller", str, "", False)
    if caller is None:
        return OPERATOR
    if not 1 <= len(caller) <= MAX_CALLER or not caller.isprintable():
        raise InvalidParams("caller: expected 1 to %d printable characters" % MAX_CALLER)
    return caller


def _is_answer(params: dict):
    """Return whether the message may only be an answer (True) or none (False); None: either."""
    value = params.get("is_answer")
    if "is_answer" in params and value is not True and value is not False:
        raise InvalidParams("is_answer: expected true or false")
    return value
