"""The agent's tools for MCP clients: each call goes through the one pipeline, as any other.

1. A call is a task of the agent, its caller "mcp": policy, approval, sandbox, limits and audit are
   those of ``core/turns/tools.py``.
2. An unknown tool is an error of the protocol; all else that ends a call is a result with
   ``isError``, which a model reads, with the CKP error in its ``_meta``.
3. A skill's instruction is a prompt, too.
4. What an MCP server asks a person during a call goes to the client whose call it is, if that has
   forms (question.py); what comes back is checked here.
5. A question and an error leave without secrets, where policies look for them, as on a channel; a
   result has been looked at by the pipeline.
"""

import os

from clawlite.core.base.effect import SEND
from clawlite.core.base.errors import ClawError, InvalidRequest, ParseError
from clawlite.core.policy.approval import question
from clawlite.core.turns.tools import call as run
from clawlite.linux.io.stdio import Part, now_ms
from clawlite.protocols.mcp.mcp_server import MCPServer, error_result, result_of, without_secrets
from clawlite.protocols.mcp.tool_definitions import definitions, prompts

CALLER = "mcp"
_CANCELLED = object()


def random() -> str:
    return os.urandom(16).hex()


class Offer:
    """The tools of *agent* (``agent.Agent``) for any number of clients."""

    def __init__(self, agent):
        self._agent = agent
        self._tools = None
        self._under_way = {}  # number of a task -> Call
        self._beginning = None
        agent.on_wait.append(lambda task, at_ms: self._put_approvals())

    @property
    def info(self) -> dict:
        about = self._agent.image.agent
        return {"name": about.name, "version": about.version or "0"}

    def tools(self) -> list:
        """Return the definitions of all tools."""
        if self._tools is None:
            from json import JSONDecoder

            self._tools = definitions(self._agent.image, JSONDecoder().raw_decode)
        return self._tools

    def prompts(self) -> list:
        """Return the definitions of the skills that are instructions."""
        return prompts(self._agent.image, self.tools())

    # -- calls

    def begin(self, call):
        """Start *call*.  Raises ``InvalidParams`` for a tool that there is not."""
        agent = self._agent
        if not agent.is_ready:
            raise InvalidRequest("the agent is %s" % agent.lifecycle.state)
        is_known = agent.image.tool(call.name) is not None
        call.is_over, call.shown = False, None
        work = run(agent.setup, call.name, call.arguments, CALLER)

        def handle_end(value, error, at_ms):
            call.is_over = True
            self._under_way.pop(call.number, None)
            if error is not None and not is_known:
                call.server.finish(call, None, error)
            elif call.number is not _CANCELLED:
                result = (
                    error_result(self._without_secrets(error.to_json()))
                    if error
                    else self._result(call, value)
                )
                call.server.finish(call, result, None)

        self._beginning = call
        number = agent.begin(work, handle_end, now_ms())
        self._beginning = None
        if not call.is_over:
            call.number = number
            self._under_way[number] = call
            self._put_approvals()

    def answer(self, call, approved: bool, reason: str):
        """A person has decided; nothing when the call waits for none any more."""
        task = self._running_task(call)
        if task is not None and task.approval is not None:
            self._agent.answer(task, approved, reason, now_ms(), "mcp-client")

    def fill_form(self, call, said: dict):
        """A person has answered a server's form, *said*: {"action", "content"}."""
        task = self._running_task(call)
        approval = None if task is None else task.approval
        if approval is None or not approval.form:
            return
        approved, reason = said.get("action") == "accept", ""
        try:
            if approved:
                approval.form.fill(said.get("content") or {})
            elif said.get("action") != "decline":
                approval.form.read(None)  # it is left open
        except ClawError as e:
            approved, reason = False, e.message
        self._agent.answer(task, approved, reason, now_ms(), "mcp-client")

    def can_ask(self, task) -> bool:
        """Return whether a client can be asked by a form during the call at work in *task*; None:
        during any.
        """
        if task is None:
            calls = list(self._under_way.values()) + [self._beginning]
            return any(call is not None and call.can_ask for call in calls)
        for call in self._under_way.values():
            at_work = self._running_task(call)
            if at_work is not None and at_work.number == task:
                return call.can_ask
        return False

    def cancel(self, call):
        """End *call*; nobody hears of it any more."""
        number, call.number = call.number, _CANCELLED
        if self._under_way.pop(number, None) is not None:
            self._agent.cancel(number, ClawError("the client cancelled it"), now_ms())

    @property
    def watches(self) -> bool:
        """Whether some client wants to know how its call goes on."""
        calls = list(self._under_way.values()) + [self._beginning]
        return any(call is not None and call.token is not None for call in calls)

    def tell(self, task: int, progress):
        """Say how the call at work in *task* goes on: (progress, total or None, message)."""
        for call in self._under_way.values():
            at_work = self._running_task(call)
            if progress is not None and at_work is not None and at_work.number == task:
                call.server.went_on(call, *progress)

    def _put_approvals(self):
        """Put the approvals that wait now to the clients whose calls they are."""
        for call in list(self._under_way.values()):
            task = self._running_task(call)
            approval = task and task.approval
            if approval is not None and approval is not call.shown:
                call.shown = approval
                form = approval.form.to_json()["requestedSchema"] if approval.form else None
                asked = self._without_secrets(question(approval, now_ms(), None))
                call.server.ask(call, asked, form and self._without_secrets(form))

    def _without_secrets(self, value):
        return without_secrets(self._agent.setup.guard, value)

    def _running_task(self, call):
        """Return the task that is at work for *call*: of a composite tool, what it calls."""
        tasks = self._agent.tasks
        task = tasks.get(call.number)
        while task is not None and task.child:
            task = tasks.get(task.child)
        return task

    def _result(self, call, value) -> dict:
        result = result_of(value.to_json())
        tool = self._agent.image.tool(call.name)
        if tool.output is not None and isinstance(value.value, dict) and not value.is_error:
            result["structuredContent"] = value.value
        return result


class Session(Part):
    """What the loop of an agent asks of every session, and those of MCP clients have nothing to do
    for.
    """

    _offer: Offer

    def can_ask(self, task) -> bool:
        return self._offer.can_ask(task)

    @property
    def watches(self) -> bool:
        return self._offer.watches

    def tell(self, task: int, progress):
        self._offer.tell(task, progress)

    def serve(self, group):
        pass

    def set_clock(self, epoch_s: int, at_ms: int):
        pass

    def tick(self, at_ms: int):
        pass


class StdioSession(Session):
    """The one client of a line, in the place of an operator's session
    (core/protocol/session.py).
    """

    swarm = None

    def __init__(self, agent, loads, answer=None):
        self._agent, self._loads = agent, loads
        self._offer = offer = Offer(agent)
        self._server = MCPServer(offer, offer.info, self._send, random)

    def _send(self, message: dict, origin):
        self._agent.emit((SEND, message))

    def record(self, data: bytes, at_ms: int):
        """Take one line."""
        try:
            self._server.take(self._loads(data))
        except ParseError as e:
            self._send({"jsonrpc": "2.0", "id": None, "error": e.to_json()}, None)

    def too_long(self, size: int, limit: int):
        """Answer a line that the framer dropped."""
        e = InvalidRequest("message: expected at most %d bytes, got %d" % (limit, size))
        self._send({"jsonrpc": "2.0", "id": None, "error": e.to_json()}, None)

    def deadline(self):
        return None
