"""The door itself: A2A over HTTP becomes claw.task.* on the line of one agent (docs/a2a.md).

1. Who asks has a token of the gateway, NAME:TOKEN as a bearer.  The card alone is for everybody.
2. A message is a task.  Its id, NAME/CONTEXT.DIGEST on the agent's line, is made from who sent it,
   its context and its messageId: a message that comes twice is one task, and nobody finds the
   tasks of another name.
3. What leaves are states and the answer.  Why a task failed, which call waits for an approval, and
   what an MCP server asks a person, stay inside.
4. A caller may deny what its task waits for, and approves none of its own calls.  A name that the
   gateway was started with, an approver, is told what its tasks wait for, and answers questions.
   It sees tasks of others while they wait, and approves, denies or answers: the question that it
   was shown, if it was shown one, and no later one.  A call of a rule or of a channel that waits is
   a task to it, /question:NUMBER, which is completed when it is answered.
"""

import asyncio
import hashlib
import json
import re
import urllib.parse
import uuid

from clawlite.core.base.errors import ClawError, ParseError
from clawlite.core.base.printable import escape_line, join_lines
from clawlite.core.base.render import call_text
from clawlite.host.a2a import dialects
from clawlite.host.a2a.agent_process import AgentProcess, AgentRefused
from clawlite.host.a2a.card import card_of
from clawlite.host.a2a.dialects import DIALECTS
from clawlite.host.manifest import manifest
from clawlite.host.proxy.http_server import HTTPServer, Unread, bearer_of, body_of

OPTION = "--a2a"
CARD = "/.well-known/agent-card.json"
VERSIONS = ("0.3", "1.0")
MAX_REQUESTS = 256  # of all callers at once
MOST_OPEN = 16  # of them of one caller
WAIT_S = 300  # that a message waits for the end of its task
KEEP_ALIVE_S = 15  # between two comments in a stream
MAX_TEXT = 65536  # characters of one message
MOST_SHOWN = 1024  # questions that the door knows to have been shown
PAGE, MAX_PAGE = 50, 100
_CONTEXT = re.compile(r"[A-Za-z0-9_-]{1,40}\Z")
_TASK = re.compile(r"[A-Za-z0-9_-]{1,40}\.[0-9a-f]{16}\Z")
_OTHER = re.compile(r"[^/]+/[A-Za-z0-9_-]{1,40}\.[0-9a-f]{16}\Z")
_QUESTION = "question:"  # and its number, where a call that waits belongs to no task
_OF_TASKS = "tasks/"  # begins the caller of the calls of tasks
_ENDED = ("completed", "failed", "canceled", "rejected")
_RESTS = (*_ENDED, "input_required")
_WAITS = "This task waits for an approval or an answer: deny it, or have its owner give one."
_OVER = "what the task waited for is over: it was answered, or has ended - nothing was done now"
# of JSON-RPC, and of A2A
_PARSE, _REQUEST, _METHOD, _PARAMS, _INTERNAL = -32700, -32600, -32601, -32602, -32603
_NOT_FOUND, _NOT_CANCELABLE, _NO_PUSH, _UNSUPPORTED, _CONTENT = range(-32001, -32006, -1)
_NO_EXTENDED, _VERSION = -32007, -32009


class Refused(Exception):
    """A request that is answered with an error of JSON-RPC."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code


class A2A:
    """The door to the agent of one project.

    folder     of the project; raises ``ClawError`` when its manifest is wrong
    is_right   function(name, token) -> bool
    approvers  names that may approve calls of others
    note       function(text) for who runs the gateway
    loads      function(bytes) -> value of strict JSON; raises ``ParseError``
    strangers  see ``HTTPServer``
    """

    def __init__(self, folder: str, is_right, approvers, note, loads, strangers=None):
        self._manifest = manifest.load(folder)
        self._is_right, self._approvers, self._note = is_right, approvers, note
        self._loads = loads
        self._agent = AgentProcess(folder, self._manifest.name, bool(approvers))
        self._card, self._open, self._shown_to = {}, {}, {}
        routes = [("GET", CARD, self._get_card), ("POST", "/", self._post)]
        self._server = HTTPServer(routes, self._missing, note, strangers)

    async def open(self, address: str, url=None, certificate=None, key=None) -> str:
        """Listen; return the URL that the card names, *url* if it is given.  Raises
        ``ClawError``.
        """
        if url is not None and not _is_url(url):
            raise ClawError(
                f"--a2a-url: expected https:// or http:// and a host, found {url[:100]}",
                "write the address at which clients reach this door, such as "
                "https://team.example/a2a",
            )
        where = await self._server.open(OPTION, address, certificate, key)
        url = url or f"http{'s' if certificate else ''}://{where}/"
        self._card = card_of(self._manifest, url)
        return url

    async def close(self) -> None:
        await self._server.close()
        await self._agent.close()

    # -- HTTP

    async def _get_card(self, request):
        from aiohttp import web

        return web.json_response(self._card)

    async def _missing(self, request):
        from aiohttp import web

        said = f"{request.method} {request.path[:80]} is not here - expected GET {CARD}, POST /"
        return web.json_response({"error": said}, status=404)

    def _caller(self, request) -> str:
        """Return the name of the caller, or "" for a stranger."""
        name, _, token = (bearer_of(request) or "").partition(":")
        return name if self._is_right(name, token) else ""

    async def _post(self, request):
        from aiohttp import web

        name = self._caller(request)
        if not name:
            self._note(f"a2a: a client at {request.remote} has a wrong token")
            said = "expected a bearer NAME:TOKEN - clawlite gateway token NAME --for a2a makes one"
            headers = {"WWW-Authenticate": "Bearer"}
            return web.json_response({"error": said}, status=401, headers=headers)
        count = self._open.get(name, 0)
        if count >= MOST_OPEN or sum(self._open.values()) >= MAX_REQUESTS:
            return web.json_response({"error": "too many requests are under way"}, status=429)
        self._open[name] = count + 1
        try:
            return await self._answer_call(request, name)
        finally:
            self._open[name] -= 1
            if not self._open[name]:
                del self._open[name]

    async def _answer_call(self, request, name: str):
        from aiohttp import web

        number = stream = None
        try:
            body = self._loads(await body_of(request))
            number = _id_of(body)
            shown = self._shown_to if name in self._approvers else None
            call = _Call(self._agent, name, shown, *_operation(request, body))
            if call.operation in (dialects.STREAM, dialects.SUBSCRIBE):
                events = call.events()
                first = await anext(events)  # what is refused before it begins is no stream
                stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
                stream.headers["Cache-Control"] = "no-store"
                await stream.prepare(request)
                await _stream(stream, number, first, events)
                return stream
            return web.json_response(_result(number, await call.result()))
        except Unread as e:
            return web.json_response({"error": e.message}, status=e.status)
        except (Refused, ClawError) as e:
            answer = _error(number, *self._describe_error(name, e))
        if stream is None:
            return web.json_response(answer)
        await stream.write(_event(answer))
        return stream

    def _describe_error(self, name: str, e) -> tuple:
        """Return (code, message) for the caller: it hears why its parameters are refused."""
        if isinstance(e, Refused):
            return e.code, str(e)
        if isinstance(e, ParseError):
            return _PARSE, "the body is no JSON"
        if isinstance(e, AgentRefused) and e.code == _PARAMS:
            return _PARAMS, e.message
        self._note(f"a2a: {name}: {e.message}")
        return _INTERNAL, "the agent cannot be asked now"


class _Call:
    """One request of a caller whose token is right.

    shown  of an approver: {(its name, id of a task of another): number of the question that it was
           shown last}; else None
    """

    def __init__(self, agent, name: str, shown, dialect, operation: str, params: dict):
        self.operation = operation
        self._agent, self._dialect, self._params = agent, dialect, params
        self._name, self._shown, self._may_approve = name, shown, shown is not None
        self._others: dict = {}  # id that the caller has of another's task -> its id on the line

    async def result(self) -> dict:
        """Return what the operation gives.  Raises ``Refused``, ``ClawError``."""
        if self.operation == dialects.SEND:
            task_id, found = await self._send()
            if self._is_other(task_id):
                return self._dialect.wrap(self._task(task_id, found))
            configuration = _object(self._params, "configuration")
            if found["state"] not in _RESTS and self._dialect.waits(configuration):
                await self._wait_for_rest(task_id)
            if found["state"] != "rejected":
                found = await self._get(task_id)
            return self._dialect.wrap(self._task(task_id, found))
        if self.operation == dialects.LIST:
            return await self._list()
        task_id, found = await self._find(self._params)
        if self.operation == dialects.CANCEL:
            if self._is_other(task_id):
                raise Refused(_NOT_CANCELABLE, "the task is another's - you may deny its call")
            if found["state"] in _ENDED:
                raise Refused(_NOT_CANCELABLE, f"the task is {found['state']} already")
            reason = f"canceled by {self._name}"
            # the agent answers this, and sends nothing to those who watch
            self._agent.tell(await self._request("cancel", task_id, reason=reason))
            found = await self._get(task_id)
        return self._task(task_id, found)

    async def events(self):
        """Yield the events of a task until it rests.  Raises as ``result``."""
        if self.operation == dialects.STREAM:
            task_id, found = await self._send()
            if found["state"] == "rejected" or self._is_other(task_id):
                yield self._dialect.event(self._task(task_id, found))
                return
        else:
            task_id, found = await self._find(self._params)
            if found["state"] in _ENDED:
                raise Refused(_UNSUPPORTED, "the task has ended - use GetTask or tasks/get")
            if self._is_question(task_id):
                yield self._dialect.event(self._task(task_id, found))
                return
        queue = await self._agent.watch(self._inside(task_id))
        try:
            found = await self._get(task_id)
            yield self._dialect.event(self._task(task_id, found))
            while found["state"] not in _RESTS:
                try:
                    news = await asyncio.wait_for(queue.get(), KEEP_ALIVE_S)
                except TimeoutError:
                    yield None
                    continue
                if news is None:
                    raise Refused(_INTERNAL, "the agent has ended - subscribe to the task again")
                if "text" in news:
                    yield self._piece(task_id, news["text"], True, False)
                    continue
                found = news
                if _answer(found):
                    yield self._piece(task_id, _answer(found), False, True)
                yield self._status(task_id, found)
        finally:
            self._agent.unwatch(self._inside(task_id), queue)

    async def _wait_for_rest(self, task_id: str) -> None:
        """Wait until a task has ended or asks, ``WAIT_S`` at most."""
        queue = await self._agent.watch(self._inside(task_id))
        try:
            async with asyncio.timeout(WAIT_S):
                found = await self._get(task_id)
                while found is not None and found["state"] not in _RESTS:
                    found = await queue.get()
        except TimeoutError:
            pass
        finally:
            self._agent.unwatch(self._inside(task_id), queue)

    async def _send(self) -> tuple:
        """Give the message to the agent; return (id of its task, what the agent said)."""
        message = _object(self._params, "message", True)
        text, number = self._text(message), message.get("messageId")
        if not isinstance(number, str) or not 1 <= len(number) <= 256:
            raise Refused(_PARAMS, "message.messageId: expected 1 to 256 characters")
        if message.get("taskId"):
            return await self._reply(message, text)
        context = message.get("contextId") or str(uuid.uuid5(uuid.NAMESPACE_OID, number))
        if not isinstance(context, str) or not _CONTEXT.match(context):
            raise Refused(
                _PARAMS, "message.contextId: expected 1 to 40 letters, digits, hyphens, underscores"
            )
        digest = hashlib.sha256(json.dumps([context, number]).encode()).hexdigest()[:16]
        task_id = f"{context}.{digest}"
        return task_id, await self._begin(task_id, text)

    async def _reply(self, message: dict, text: str) -> tuple:
        """Answer the approval or the question that a task waits for."""
        task_id, found = await self._find(message, "taskId")
        said = text.strip()
        is_word = said.lower() in ("approve", "deny")
        if found["state"] != "input_required" or not (is_word or found.get("is_question")):
            waits = found["state"] == "input_required"
            expected = "expected approve or deny" if waits else "it takes no more messages"
            raise Refused(_UNSUPPORTED, f"the task is {found['state']}: {expected}")
        if said.lower() != "deny":
            self._check_may_answer(task_id, "is_question" in found)
        number = found["number"]
        if self._is_other(task_id) and self._shown.setdefault(self._key(task_id), number) != number:
            raise Refused(_UNSUPPORTED, "the task asks something else by now - get it, and look")
        said = said.lower() if is_word else said
        if self._is_question(task_id):
            return task_id, await self._answer_question(number, said == "approve")
        try:
            return task_id, await self._create(task_id, said, is_answer=True, number=number)
        except AgentRefused as e:
            if e.code != _PARAMS:
                raise
            is_late = e.message.startswith("number:")
            raise Refused(*((_UNSUPPORTED, _OVER) if is_late else (_PARAMS, e.message))) from None

    def _is_question(self, task_id: str) -> bool:
        return self._inside(task_id).startswith(_QUESTION)

    async def _answer_question(self, number: int, is_approved: bool) -> dict:
        params = {"number": number, "is_approved": is_approved, "caller": "a2a:" + self._name}
        said = await self._agent.request("claw.approval.answer", params)
        if not said["acknowledged"]:
            raise Refused(_UNSUPPORTED, _OVER)
        return {"state": "completed"}

    async def _questions(self) -> list:
        """Return, as tasks, the calls of no task that wait, the newest first."""
        if not self._may_approve:
            return []
        said = await self._agent.request("claw.approval.subscribe", {})
        return [
            _describe(one) for one in said["approvals"] if not one["asker"].startswith(_OF_TASKS)
        ][::-1]

    def _check_may_answer(self, task_id: str, is_question: bool) -> None:
        """Raise ``Refused`` unless the caller may approve, or answer a question: the latter in
        tasks of its own, too.
        """
        if self._may_approve and (is_question or self._is_other(task_id)):
            return
        said = "the operator of the agent allows it with --a2a-approver"
        if not is_question:
            said = "the console, the page or another name of --a2a-approver can"
        raise Refused(
            _UNSUPPORTED, f"{self._name} may deny but not approve what it asked for itself - {said}"
        )

    async def _begin(self, task_id: str, text: str) -> dict:
        """Make a task of a message.  One that comes again with other words answers nothing."""
        try:
            return await self._create(task_id, text, is_answer=False)
        except AgentRefused as e:
            if e.code != _PARAMS:
                raise
            is_other = e.message.endswith("is the id of another task")
            said = "message.messageId: another message with other words has this id"
            raise Refused(_PARAMS, said if is_other else e.message) from None

    async def _create(self, task_id: str, text: str, **more) -> dict:
        block = {"role": "user", "content": [{"type": "text", "text": text}]}
        caller = "a2a:" + self._name
        return await self._request("create", task_id, message=block, caller=caller, **more)

    def _text(self, message: dict) -> str:
        if message.get("role") != self._dialect.role:
            raise Refused(_PARAMS, f"message.role: expected {self._dialect.role}")
        parts = message.get("parts")
        if not isinstance(parts, list) or not parts:
            raise Refused(_PARAMS, "message.parts: expected an array of parts")
        for number, part in enumerate(parts):
            if not isinstance(part, dict) or not self._dialect.is_text(part):
                raise Refused(_CONTENT, f"message.parts[{number}]: expected text, nothing else")
            if not isinstance(part.get("text"), str):
                raise Refused(_PARAMS, f"message.parts[{number}].text: expected a string")
        text = "\n".join(part["text"] for part in parts)
        if not text:
            raise Refused(_PARAMS, "message.parts: expected text, found none")
        if len(text) > MAX_TEXT:
            raise Refused(_PARAMS, f"message.parts: expected at most {MAX_TEXT} characters of text")
        return text

    async def _list(self) -> dict:
        """Return a page of the tasks that this caller may see, the newest first."""
        field = self._dialect.status_field
        wanted = self._params.get(field) or None
        states = {said: name for name, said in self._dialect.states.items()}
        if wanted is not None and (not isinstance(wanted, str) or wanted not in states):
            raise Refused(_PARAMS, f"{field}: expected one of {', '.join(states)}")
        most = self._params.get("pageSize") or PAGE
        if type(most) is not int or not 1 <= most <= MAX_PAGE:
            raise Refused(_PARAMS, f"pageSize: expected 1 to {MAX_PAGE}")
        context, after = self._params.get("contextId"), self._params.get("pageToken")
        found = [
            task
            for task in await self._all(states.get(wanted))
            if self._may_see(task) and context in (None, "", _context(task["task_id"]))
        ]
        begin = await self._behind(self._inside(str(after)), found) if after else 0
        tasks = []
        for task in found[begin : begin + most]:
            task_id = self._outside(task["task_id"])
            if self._params.get("includeArtifacts") is True and not self._is_other(task_id):
                task = await self._get(task_id)
            tasks.append(self._task(task_id, task))
        more = begin + most < len(found)
        return {
            "tasks": tasks,
            "nextPageToken": tasks[-1]["id"] if more else "",
            "pageSize": most,
            "totalSize": len(found),
        }

    async def _behind(self, last: str, found: list) -> int:
        """Return the index of the first of *found* that comes after the task *last*, which may have
        another state since it ended a page.
        """
        ids = [task["task_id"] for task in found]
        if last in ids:
            return ids.index(last) + 1
        every = [task["task_id"] for task in await self._all(None)]
        if last not in every:
            raise Refused(_PARAMS, "pageToken: expected the token of an earlier answer")
        later = set(every[every.index(last) + 1 :])
        return next((index for index, one in enumerate(ids) if one in later), len(ids))

    async def _all(self, state) -> list:
        found, params = [], {"page_size": 100, "with_number": True}
        if state in (None, "input_required"):
            found += await self._questions()
        if state:
            params["state"] = state
        while True:
            page = await self._agent.request("claw.task.list", params)
            found += page["tasks"]
            if "next_page_token" not in page:
                return found
            params["page_token"] = page["next_page_token"]

    # -- ids and shapes

    async def _find(self, params: dict, field: str = "id") -> tuple:
        """Return (id, what the agent has of it) of a task that this caller may see."""
        task_id = params.get(field)
        if not isinstance(task_id, str) or not task_id:
            raise Refused(_PARAMS, f"{field}: expected the id of a task")
        is_own = _TASK.match(task_id)
        try:
            if not is_own and not self._may_approve:
                raise Refused(_NOT_FOUND, "unknown task")
            return task_id, await self._get(task_id)
        except Refused:
            if not is_own or not self._may_approve:
                raise
        # the other told its id, which has no name
        every = [
            task
            for task in await self._all(None)
            if task["task_id"].rpartition("/")[2] == task_id and self._is_of_other(task["task_id"])
        ]
        every = [task for task in every if self._may_see(task)] or every
        if len(every) != 1:
            said = "several tasks have this id: write NAME/ID" if every else "unknown task"
            raise Refused(_NOT_FOUND, said)
        self._others[task_id] = every[0]["task_id"]
        return task_id, await self._get(task_id)

    def _inside(self, task_id: str) -> str:
        """Return the id on the agent's line of a task that the caller calls *task_id*."""
        if task_id in self._others:
            return self._others[task_id]
        return task_id.removeprefix("/") if "/" in task_id else f"{self._name}/{task_id}"

    def _outside(self, inside: str) -> str:
        """Return what the caller calls the task *inside*, the reverse of ``_inside``."""
        if not self._is_of_other(inside):
            return inside[len(self._name) + 1 :]
        return inside if _OTHER.match(inside) else "/" + inside

    def _is_of_other(self, inside: str) -> bool:
        return not inside.startswith(self._name + "/")

    def _is_other(self, task_id: str) -> bool:
        return self._is_of_other(self._inside(task_id))

    def _may_see(self, task: dict) -> bool:
        """Return whether a task of the agent's line is the caller's, or waits for an approver."""
        is_waiting = task["state"] == "input_required"
        return not self._is_of_other(task["task_id"]) or self._may_approve and is_waiting

    def _key(self, task_id: str) -> tuple:
        return self._name, self._inside(task_id)

    async def _get(self, task_id: str) -> dict:
        if self._is_question(task_id):
            inside = self._inside(task_id)
            for one in await self._questions():
                if one["task_id"] == inside:
                    return one
            raise Refused(_NOT_FOUND, _OVER)
        try:
            found = await self._request("get", task_id, with_number=True)
        except AgentRefused as e:
            raise Refused(_NOT_FOUND, "unknown task") if e.code == _PARAMS else e
        if not self._may_see(found):
            raise Refused(_NOT_FOUND, _OVER)
        return found

    async def _request(self, verb: str, task_id: str, **more) -> dict:
        params = {"task_id": self._inside(task_id), **more}
        return await self._agent.request("claw.task." + verb, params)

    def _task(self, task_id: str, found: dict) -> dict:
        fields = self._fields(task_id, found)
        answer = _answer(found)
        if answer:
            fields["artifacts"] = [self._artifact(answer)]
        return self._dialect.task({"id": fields.pop("taskId"), **fields})

    def _status(self, task_id: str, found: dict) -> dict:
        return self._dialect.status(self._fields(task_id, found), found["state"] in _RESTS)

    def _fields(self, task_id: str, found: dict) -> dict:
        context = _context(self._inside(task_id))
        status = {"state": self._dialect.states[found["state"]]}
        said = _WAITS if found["state"] == "input_required" else ""
        if said and self._may_approve:
            said = self._show_text(task_id, found)
        if said:
            status["message"] = self._dialect.message(task_id, context, said)
        return {"taskId": task_id, "contextId": context, "status": status}

    def _show_text(self, task_id: str, found: dict) -> str:
        """Return what an approver is told of a task that waits, and keep that it was."""
        text = found.get("message", _WAITS)
        if not self._is_other(task_id):
            if "is_question" in found:
                return text
            return text.rpartition("\n")[0] + "\n  Answer with deny; another approves it"
        if found.get("number"):
            self._shown[self._key(task_id)] = found["number"]
            while len(self._shown) > MOST_SHOWN:
                del self._shown[next(iter(self._shown))]
        return text

    def _piece(self, task_id: str, text: str, append: bool, is_last: bool) -> dict:
        return self._dialect.artifact(
            {
                "taskId": task_id,
                "contextId": _context(self._inside(task_id)),
                "artifact": self._artifact(text),
                "append": append,
                "lastChunk": is_last,
            }
        )

    def _artifact(self, text: str) -> dict:
        return {"artifactId": dialects.ANSWER, "parts": [self._dialect.part(text)]}


def _is_url(text: str) -> bool:
    try:
        url = urllib.parse.urlsplit(text)
        return url.scheme in ("https", "http") and bool(url.hostname) and url.port != 0
    except ValueError:
        return False


def _context(inside: str) -> str:
    """Return the context of a task by its id on the agent's line; "" where it came by no A2A."""
    return inside.rpartition("/")[2].rpartition(".")[0]


def _describe(one: dict) -> dict:
    """Return, as a task that waits, what ``claw.approval.subscribe`` says of a call."""
    why = f"{one['why']}; {one['asker'] or 'the console'} asked for it"
    lines = [
        f"Approve {call_text(one['tool'], one['arguments'], None)}?",
        "  " + escape_line(why),
        "  Answer with approve or deny",
    ]
    number = one["number"]
    found = {"task_id": f"{_QUESTION}{number}", "state": "input_required", "number": number}
    return {**found, "message": join_lines(lines)}


def _answer(found: dict) -> str:
    """Return the answer of a task that is completed, else ""."""
    return found.get("result", {}).get("text", "") if found["state"] == "completed" else ""


def _object(params: dict, field: str, is_needed: bool = False) -> dict:
    value = params.get(field)
    if value is None and not is_needed:
        return {}
    if not isinstance(value, dict):
        raise Refused(_PARAMS, f"{field}: expected an object")
    return value


def _id_of(body):
    """Return the id of a JSON-RPC request.  Raises ``Refused``."""
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0":
        raise Refused(_REQUEST, "expected one request of JSON-RPC 2.0")
    number = body.get("id")
    if type(number) not in (str, int):
        raise Refused(_REQUEST, "id: expected a string or an integer")
    return number


def _operation(request, body: dict) -> tuple:
    """Return (dialect, operation, params) of a request.  Raises ``Refused``."""
    version = request.headers.get("A2A-Version", "").strip()
    if version and ".".join(version.split(".")[:2]) not in VERSIONS:
        raise Refused(_VERSION, f"A2A-Version: expected {' or '.join(VERSIONS)}")
    method, params = body.get("method"), body.get("params", {})
    for dialect in DIALECTS:
        operation = dialect.methods.get(method) if isinstance(method, str) else None
        if operation == dialects.PUSH:
            raise Refused(_NO_PUSH, "push notifications are not supported - subscribe to the task")
        if operation == dialects.EXTENDED:
            raise Refused(_NO_EXTENDED, f"there is one card for everybody, at {CARD}")
        if operation:
            if not isinstance(params, dict):
                raise Refused(_PARAMS, "params: expected an object")
            return dialect, operation, params
    raise Refused(_METHOD, f"unknown method {str(method)[:60]}")


async def _stream(stream, number, first, events) -> None:
    try:
        await stream.write(_event(_result(number, first)))
        async for event in events:
            lines = b": working\n\n" if event is None else _event(_result(number, event))
            await stream.write(lines)
    finally:
        await events.aclose()


def _event(message: dict) -> bytes:
    return b"data: " + json.dumps(message).encode() + b"\n\n"


def _result(number, result: dict) -> dict:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _error(number, code: int, message: str) -> dict:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
