"""A task of a swarm as a task of a remote agent that speaks A2A, in version 1.0 or 0.3.0
(docs/adr/0133): what is asked of it, and what of its answers is believed.  No I/O.

1. The ids of the message and of its context follow from the id of the turn.  Before a message is
   sent, the tasks of its context are asked for: one that is there is followed, and nothing is sent.
2. A server that cannot list its tasks gets a message only once it is on record that the task may
   have effects (``begins``): when this process is killed then, a person decides.
3. What comes is a stranger's: of another shape it is an error, and of its words the answer alone is
   taken, and no more than MAX_TEXT characters.
"""

import uuid

from clawlite.core.base.errors import ClawError, TransientError
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.protocols.swarm.swarm import COMPLETED, FAILED

ASK, BEGINS, WAIT = range(3)  # what ``A2ATurn.work`` yields
MAX_ANSWER = 4194304  # bytes of an answer of HTTP
MAX_TEXT = 65536  # characters of a result
FIRST_MS, LONGEST_MS = 100, 2000  # between two looks at a task: doubled each time
GRACE_MS = 3000  # in which a message of a process that was killed has arrived, or never will
ATTEMPTS, PAUSE_MS = 4, 1000  # of each question while the server is away; the pause is doubled
_LIST, _SEND, _GET, _CANCEL = range(4)
# (version, methods)
_NEW = ("1.0", ("ListTasks", "SendMessage", "GetTask", "CancelTask"))
_OLD = ("0.3", ("tasks/list", "message/send", "tasks/get", "tasks/cancel"))
_NO_METHOD, _NOT_FOUND, _UNSUPPORTED, _VERSION = -32601, -32001, -32004, -32009
_ENDED = ("completed", "failed", "canceled", "rejected")
_ASKS = ("input-required", "auth-required")
_AWAY = (408, 425, 429, 500, 502, 503, 504)  # statuses that another attempt may not meet


class RemoteError(ClawError):
    """The server's answer is an error of JSON-RPC, with its *number*."""

    def __init__(self, number, message: str):
        ClawError.__init__(self, message)
        self.number = number


class Remote:
    """What is known of a server: *target* of its URL, *token* ("": it wants none)."""

    def __init__(self, target: str, token: str):
        self.target, self._token = target, token
        self.version, self.methods = _NEW
        self.lists = True  # whether it can list its tasks, as far as is known
        self._number = 0

    def speak_old(self) -> bool:
        """Speak 0.3.0 from now on; return whether that is another version than before."""
        was, (self.version, self.methods) = self.version, _OLD
        return was != self.version

    def question(self, what: int, params: dict) -> tuple:
        """Return (headers, body) of a request."""
        self._number += 1
        asked = {"jsonrpc": "2.0", "id": self._number, "method": self.methods[what]}
        headers = [("Content-Type", "application/json"), ("A2A-Version", self.version)]
        if self._token:
            headers.append(("Authorization", "Bearer " + self._token))
        return headers, dumps(dict(asked, params=params)).encode()


def answer_of(status: int, body: bytes) -> dict:
    """Return the result of an answer of HTTP.  Raises ``TransientError`` for what another attempt
    may not meet, ``RemoteError``, ``ClawError``.
    """
    if status in _AWAY:
        raise TransientError("it answers with the HTTP status %d" % status)
    if status in (401, 403):
        raise ClawError(
            "it refuses the credential (HTTP status %d)" % status,
            "look at credential of [swarm.remote] in clawlite.toml",
        )
    try:
        said = loads(body)
    except ClawError:
        raise ClawError(
            "it answers with the HTTP status %d and no JSON" % status,
            "check url of [swarm.remote]: it must be the JSON-RPC address in the agent's card",
        ) from None
    error = said.get("error") if isinstance(said, dict) else None
    if isinstance(error, dict):
        message = "it answers with the error %s: %s" % (
            str(error.get("code"))[:20],
            str(error.get("message"))[:200],
        )
        raise RemoteError(error.get("code"), message)
    if not isinstance(said, dict) or not isinstance(said.get("result"), dict):
        raise ClawError(
            "its answer is not JSON-RPC, or of another version",
            "report it to the operator of the agent",
        )
    return said["result"]


class A2ATurn:
    """One turn at a remote agent.

    remote    ``Remote``
    turn      its id, the same whenever the same task is tried again
    text      what the agent is to do
    is_again  it was tried before, by a process that has ended
    """

    def __init__(self, remote: Remote, turn: str, text: str, is_again: bool):
        self._remote, self._text, self._is_again = remote, text, is_again
        self._context = str(uuid.uuid5(uuid.NAMESPACE_OID, turn))
        self._task = ""  # the server's id of it

    def work(self):
        """A generator that returns (status, text, error or None) of the report.  It yields (ASK,
        headers, body) and is resumed with (HTTP status, body), or ``ClawError`` is thrown where
        there is no answer; (BEGINS,), resumed once that is on record; and (WAIT, ms).
        """
        try:
            return (yield from self._work())
        except ClawError as e:
            return FAILED, "", "the remote agent: " + e.message

    def cancel(self):
        """As ``work``, for a turn that is not wanted any more."""
        if self._task:
            try:
                yield from self._ask(_CANCEL, {"id": self._task}, 1)
            except ClawError:  # it has ended, or is away
                pass

    def _work(self):
        if self._is_again:
            yield (WAIT, GRACE_MS)
        task = yield from self._find_task()
        if task is None and not self._remote.lists:
            yield (BEGINS,)
        if task is None:
            task = yield from self._send()
        pause_ms = FIRST_MS
        while True:
            state = _state(task)
            if state in _ENDED:
                break
            if state in _ASKS:
                yield from self.cancel()
                return FAILED, "", "the remote agent asks for more (%s): nobody can answer" % state
            yield (WAIT, pause_ms)
            pause_ms = min(2 * pause_ms, LONGEST_MS)
            task = yield from self._ask(_GET, {"id": self._task})
        text = _text(task)
        if state == "completed":
            return COMPLETED, text, None
        return FAILED, text, "the remote agent: the task is %s" % state

    def _find_task(self):
        """Return the task that the server has of this turn, or None."""
        if not self._remote.lists:
            return None
        try:
            found = yield from self._ask(_LIST, {"contextId": self._context, "pageSize": 1})
        except RemoteError as e:
            if e.number not in (_NO_METHOD, _UNSUPPORTED):
                raise
            self._remote.lists = False
            return None
        tasks = found.get("tasks")
        if not isinstance(tasks, list):
            raise ClawError("its list has no tasks", "report it to the operator of the agent")
        for task in tasks:
            if isinstance(task, dict) and task.get("contextId") == self._context:
                self._note_task_id(task)
                # a list has no artifacts
                return (yield from self._ask(_GET, {"id": self._task}))
        return None

    def _send(self):
        """Send the message; return the task that it has become, or a message in its place."""
        is_new = self._remote.methods is _NEW[1]
        part: dict = {"text": self._text}
        message = {"messageId": self._context, "contextId": self._context, "parts": [part]}
        if is_new:
            how = {"returnImmediately": True}
            message["role"] = "ROLE_USER"
        else:
            how = {"blocking": False}
            part["kind"] = "text"
            message.update(kind="message", role="user")
        try:
            params = {"message": message, "configuration": how}
            found = yield from self._ask(_SEND, params, 1)
        except TransientError as e:  # it may have come all the same
            yield (WAIT, PAUSE_MS)
            task = yield from self._find_task()
            if task is not None:
                return task
            raise ClawError(
                "%s; it is unknown whether it has the task" % e.message,
                "check there before you send it again",
            ) from None
        task = found.get("task", found)
        if "message" in found or found.get("kind") == "message":  # it answers at once
            reply = found.get("message", found)
            return {"status": {"state": "completed"}, "artifacts": [reply]}
        return self._note_task_id(task)

    def _note_task_id(self, task):
        if not isinstance(task, dict) or not isinstance(task.get("id"), str) or not task["id"]:
            raise ClawError("its task has no id", "report it to the operator of the agent")
        self._task = task["id"]
        return task

    def _ask(self, what: int, params: dict, attempts: int = ATTEMPTS):
        remote, pause_ms = self._remote, PAUSE_MS
        while True:
            attempts -= 1
            try:
                status, body = yield (ASK, *remote.question(what, params))
                return answer_of(status, body)
            except RemoteError as e:
                # a server of 1.0 need not list its tasks, so that says nothing of its version
                is_strange = e.number == _VERSION or e.number == _NO_METHOD and what != _LIST
                if not is_strange or not remote.speak_old():
                    raise
                attempts += 1
            except TransientError:
                if not attempts:
                    raise
                yield (WAIT, pause_ms)
                pause_ms *= 2


def _state(task: dict) -> str:
    status = task.get("status")
    state = status.get("state") if isinstance(status, dict) else None
    if not isinstance(state, str):
        raise ClawError("its task has no state", "report it to the operator of the agent")
    state = state.lower().replace("_", "-")
    return state[len("task-state-") :] if state.startswith("task-state-") else state


def _text(task: dict) -> str:
    """Return the words of the artifacts of a task, else of the message of its state."""
    artifacts = task.get("artifacts")
    said = artifacts if isinstance(artifacts, list) else []
    if not said and isinstance(task.get("status"), dict):
        said = [task["status"].get("message")]
    found = []
    for one in said:
        parts = one.get("parts") if isinstance(one, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                found.append(part["text"])
    return "\n".join(found)[:MAX_TEXT]
