"""``clawlite mcp serve --port P``: the tools of the agent on a board, for one MCP client on stdin
and stdout.

1. The board decides: each call is a ``claw.tool.call`` of an operator, so the board's own policy,
   limits and audit apply to it.  The descriptions of the tools are read from the image that runs
   there.
2. The board does not notify an operator when a call waits for a person.  So the gates of the image
   are evaluated here, too, up to the tool, to find out whether a person is asked.  A yes is sent as
   ``claw.tool.approve``.
3. A question and an error leave without secrets, where policies look for them: those that have a
   known form (scan/leaks.py).  What the secrets on the board are, the host does not know.
4. When a board goes away or restarts, its calls are lost: they are answered with errors, and are
   not sent again.
"""

import json
import time
import uuid
from typing import Any

from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base.effect import APPROVE, ASK, RESOLVE, RUN, STORE
from clawlite.core.base.errors import ClawError, InvalidParams, ParseError
from clawlite.core.image import image as layout
from clawlite.core.line.frame import RECORD, TOO_LONG, Framer
from clawlite.core.policy.approval import question
from clawlite.core.turns import tools as pipeline
from clawlite.host.base.regular_file import open_regular
from clawlite.host.board_console.line import is_uart
from clawlite.host.board_console.log import ConsoleLog
from clawlite.host.board_console.screens import MAX_LINE, Plain, write
from clawlite.host.board_console.serial import SerialConsole
from clawlite.host.board_console.text import PROMPT, PROMPTS, TEXT
from clawlite.host.board_console.text import RECORD as BOARD_RECORD
from clawlite.host.image.image_reader import read
from clawlite.host.serial import ports
from clawlite.host.serial.serial_line import SerialLine
from clawlite.protocols.mcp.mcp_client import OUTCOME_UNKNOWN
from clawlite.protocols.mcp.mcp_server import MCPServer, error_result, result_of, without_secrets
from clawlite.protocols.mcp.tool_definitions import definitions, prompts
from clawlite.scan.guard import Guard

MAX_MESSAGE = 1 << 20  # bytes of a client's message
AGENT_S = 20  # for the agent's prompt and its session: a board may be starting
_AGAIN = 50  # how often a person's answer is sent at most, until the board takes it
_READY = b" is ready. /help lists the commands.\n"
_REPL = (b">>> ", b"... ")
_CALL, _SESSION = "call", "session"


def serve(path: str, port: str) -> int:
    """Serve the tools of the image in the file *path*, which runs on *port*; return the exit code.

    Raises ``ClawError``.
    """
    setup = setup_of(path)
    entry = ports.choose(port)
    is_shared = entry["id"].startswith(ports.SHARED)
    return _Server(setup, SerialLine(entry), is_uart(entry), is_shared).run()


def setup_of(path: str) -> Setup:
    """Return the image in the file *path*, with the checks that its policies want."""
    with open(path, "rb", opener=open_regular) as file:
        data = file.read()
    image: Any = read(data, 1024)
    return Setup(image, Guard(image) if image.size_of(layout.GUARD) else None)


class _Silent(Plain):
    """stdout belongs to the client, so the board's text for people is dropped."""

    is_paced = False

    def show(self, data: bytes):
        pass


class _Waiting:
    """One call that the board has, or will get: *call* of the client."""

    def __init__(self, call, asks):
        self.call, self.asks = call, asks
        self.request_id = str(uuid.uuid4())
        self.verdict: tuple | None = None  # (verb, reason) of a person
        self.tries = 0


class _Server(SerialConsole):
    """The loop of a console, with a client in the place of a person; and the offer of its
    ``MCPServer``.

    is_shared  a gateway holds the board's line, and hands on records
    """

    def __init__(self, setup, line: SerialLine, is_noisy: bool, is_shared: bool):
        super().__init__(line, _Silent(), False, AGENT_S, [], ConsoleLog(None), is_noisy)
        self._setup = setup
        self._image = image = setup.image
        self._definitions = definitions(image, json.JSONDecoder().raw_decode)
        self._client = Framer(MAX_MESSAGE, True)
        about = image.agent
        info = {"name": about.name, "version": about.version or "0"}
        self._mcp = MCPServer(self, info, _write_message, lambda: uuid.uuid4().hex)
        self._sent = {}  # id of a request to the board -> (what, _Waiting or None)
        self._last = 0
        self._queue = []  # _Waiting that wait for the session
        self._is_open = self._is_asked = False
        # a gateway knows an agent from a REPL, and a prompt is not shown again for an empty line
        self._is_shared = self._is_at_prompt = is_shared
        self._heard_so_far = b""
        self._due = time.monotonic() + AGENT_S

    def run(self) -> int:
        if not self._is_shared:
            self._line.send(b"\n")  # the prompt that comes back tells an agent from a REPL
        return super().run()

    # -- the offer

    def tools(self) -> list:
        return self._definitions

    def prompts(self) -> list:
        return prompts(self._image, self._definitions)

    def begin(self, call):
        if self._image.tool(call.name) is None:
            pipeline.find(self._setup, call.name)  # raises what says so
        size = len(self._call_of(_Waiting(call, None)))
        if size > MAX_LINE:
            raise InvalidParams(f"a board takes calls of at most {MAX_LINE} bytes, this has {size}")
        one = call.number = _Waiting(
            call, approval_question(self._setup, call.name, call.arguments)
        )
        self._queue.append(one)
        if one.asks:
            self._mcp.ask(call, one.asks)
        self._go_out()

    def answer(self, call, approved: bool, reason: str):
        call.number.verdict = ("approve" if approved else "deny", reason)
        self._tell(call.number)

    def cancel(self, call):
        """Of a call that runs on the board already, the result is dropped: CKP ends none."""
        one, call.number = call.number, None
        if one in self._queue:
            self._queue.remove(one)
        elif one is not None and one.asks and one.verdict is None:
            one.verdict = ("deny", "the client cancelled it")
            self._tell(one)

    # -- from the client

    def _take(self, data: bytes):
        if not data:
            self._mcp.close()
            self._code = 0
            return
        self._client.feed(data)
        while event := self._client.next_event():
            if event[0] == TOO_LONG:
                self._mcp.take(None)
            elif event[0] == RECORD:
                try:
                    self._mcp.take(json.loads(event[1]))
                except (ValueError, RecursionError) as e:
                    error = ParseError(f"this is no JSON: {e}").to_json()
                    _write_message({"jsonrpc": "2.0", "id": None, "error": error}, None)

    # -- from the board

    def _show(self, event: tuple):
        super()._show(event)
        kind, shown = event
        if kind == TEXT:
            self._heard_so_far = (self._heard_so_far + shown)[-2 * len(_READY) :]
            if _READY in self._heard_so_far:
                self._heard_so_far = b""
                self._fail_calls("began anew")
        elif kind == PROMPT and shown in _REPL:
            self._fail("no agent runs on that board, its REPL answers - flash one: clawlite flash")
        elif kind == PROMPT and shown == PROMPTS[0].encode():
            self._is_at_prompt = True
        elif kind == BOARD_RECORD:
            self._record(shown)

    def _record(self, data: bytes):
        try:
            message = json.loads(data)
        except ValueError:
            return
        if not isinstance(message, dict) or "method" in message:
            return
        what, one = self._sent.pop(message.get("id"), (None, None))
        if what == _SESSION:
            self._take_session(message)
        elif what == _CALL and one.call.number is one:
            error = message.get("error")
            told = message.get("result")
            if not error and isinstance(told, dict) and isinstance(told.get("content"), list):
                result = result_of(told)
            elif isinstance(error, dict):
                result = refusal(self._setup, error)
            else:
                e = ClawError("the board gave no result", OUTCOME_UNKNOWN)
                result = error_result(e.to_json())
            one.call.number = None
            one.call.server.finish(one.call, result, None)
        elif what == "answer" and one.call.number is one:
            told = message.get("result")
            # Also after an error: a board that loads a file for the answer may run out of stack
            # once, and has the file when the answer comes again.
            if not (isinstance(told, dict) and told.get("acknowledged")) and one.tries < _AGAIN:
                self._tell(one)

    def _take_session(self, message: dict):
        error = message.get("error")
        if error and "open already" not in str(error.get("message")):
            self._fail(f"the board does not take this agent's image: {error.get('message')}")
            return
        self._is_open = True
        self._go_out()

    def _fail_calls(self, how: str):
        """The board has none of the calls any more that it was sent."""
        self._is_open = self._is_asked = self._is_at_prompt = False
        self._due = time.monotonic() + AGENT_S
        lost = [one for what, one in self._sent.values() if what == _CALL]
        self._sent.clear()
        for one in lost:
            if one.call.number is one:
                one.call.number = None
                error = ClawError(
                    f"the board {how} during the call",
                    OUTCOME_UNKNOWN,
                )
                one.call.server.finish(one.call, error_result(error.to_json()), None)

    # -- to the board

    def _go_on(self, has_moved: bool):
        super()._go_on(has_moved)
        if self._line.fd is None:
            if self._is_open or self._is_asked:
                self._fail_calls("went away")
            return
        if self._is_at_prompt and not self._greets and not self._is_asked:
            self._is_asked = True
            identity = self._image.agent.identity
            params = {
                "protocolVersion": "0.3.0",
                "clientInfo": {"name": "clawlite mcp serve", "version": "1"},
                "manifest": "claw://local/identity/" + identity,
                "capabilities": {"tools": {}},
            }
            self._request("claw.initialize", params, _SESSION, None)
        if not self._is_open and time.monotonic() >= self._due:
            self._fail(f"no agent answers on {self._line.path} - is it one that clawlite flashed?")

    def _wait_ms(self):
        own = super()._wait_ms()
        if self._is_open or self._line.fd is None:
            return own
        left = max(0, int((self._due - time.monotonic()) * 1000)) + 1
        return left if own is None else min(own, left)

    def _go_out(self):
        """Send the calls that wait for the session."""
        while self._is_open and self._queue:
            one = self._queue.pop(0)
            self._send(self._call_of(one, self._number(_CALL, one)))
            if one.verdict:
                self._tell(one)

    def _tell(self, one: _Waiting):
        """Send a person's answer about the call *one*, once the board has that call."""
        if self._is_open and one.verdict and one not in self._queue:
            one.tries += 1
            verb, reason = one.verdict
            params = {"request_id": one.request_id, "reason": reason}
            self._request("claw.tool." + verb, params, "answer", one)

    def _request(self, method: str, params: dict, what: str, one):
        self._send(_line(self._number(what, one), method, params))

    def _number(self, what: str, one) -> int:
        self._last += 1
        self._sent[self._last] = what, one
        return self._last

    def _call_of(self, one: _Waiting, id: int = 1 << 31) -> bytes:
        context = {"request_id": one.request_id, "identity": self._image.agent.identity}
        call = one.call
        params = {"name": call.name, "arguments": call.arguments, "context": context}
        return _line(id, "claw.tool.call", params)

    def _fail(self, why: str):
        self._note(why)
        self._code = 1


def refusal(setup, error: dict) -> dict:
    """Return the result of a call that ended with the JSON-RPC *error*, without secrets where the
    policies of *setup* look for them.
    """
    return error_result(without_secrets(setup.guard, error))


def approval_question(setup, name: str, arguments: dict):
    """Return the question that a person is asked before the tool *name* runs, or None when nobody
    is: the gates of *setup*, gone through up to the tool.  It has no secrets where policies look
    for them.
    """
    work = pipeline.call(setup, name, arguments, "operator")
    try:
        effect = next(work)
        while effect[0] not in (RUN, ASK):
            if effect[0] == APPROVE:
                effect[1].due_ms = effect[1].timeout_s * 1000
                return without_secrets(setup.guard, question(effect[1], 0, None))
            # nothing is a link on a board; what is used of its limits, it alone knows
            told = {RESOLVE: (True, effect[1]), STORE: (True, True if effect[1] else (0, 0))}
            effect = work.send(told.get(effect[0]))
    except (StopIteration, ClawError):
        pass  # the board says it
    finally:
        work.close()
    return None


def _line(id: int, method: str, params: dict) -> bytes:
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return b"\x1e" + json.dumps(message, ensure_ascii=False).encode() + b"\n"


def _write_message(message: dict, origin):
    write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
