"""The MCP servers of one agent: started by the first call of one of their tools, ended with the
agent.

1. protocols/mcp/server_state.py decides when a server is started and ended, and which calls it
   gets.
2. Nothing here waits, but ``close``: what a server says is read when the loop finds it readable.
3. A tool that differs from what was pinned when the agent was built is refused, until it is built
   again.
4. Calls that were sent to a server that then ended are errors: what they did is not known.  Calls
   that it never got say so, and may be sent again.
5. A server may ask a person during a call (question.py); the time of the call stands still
   meanwhile.  Where nobody can be asked it is told so at once.
6. Whatever a server sends, the agent and the calls of other servers go on.
"""

from time import monotonic

from clawlite import __version__
from clawlite.core.base.effect import ASKS_PERSON, IS_OK, VALUE
from clawlite.core.base.errors import ClawError, SandboxDenied, ToolTimeout, wrap_error
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.io.watch import READ, WRITE, Watch
from clawlite.linux.mcp.server_process import MAX_ERRORS
from clawlite.protocols.mcp.mcp_client import (
    ASKED,
    OUTCOME_UNKNOWN,
    Broken,
    MCPClient,
    make_input_error,
)
from clawlite.protocols.mcp.server_state import MAX_UNSENT, Call, ServerState

CALL_MS = 60000  # of a call that nothing else limits
TELL_MS = 250  # between two words of a call's progress
WAIT_MS = 1000  # for what is told of its end, once its stream has closed
AGAIN = "send it again"  # the hint of a call that a server never got
_PIECE = 65536


class _Call(Call):
    """One call under way, until *due_ms*."""

    def __init__(self, tool: str, arguments: dict, is_watched: bool, due_ms: int):
        super().__init__(tool, arguments, is_watched)
        self.due_ms = due_ms
        # what the server wants to know (``MCPClient.feed``), and what a person has said to it
        self.wanted, self.answers = [], {}
        self.name = None  # of the question that is put
        self.asking_ms = None  # since when
        self.progress = None  # what is to be told of it, not before ``tell_ms``
        self.tell_ms = 0


class _Server(ServerState):
    """One server.

    argv   list of str;  env  names of the agent's variables that it gets
    is_handshake  bool, it spoke the older era alone when the agent was built
    headers  list of (name, value): it is a remote server, and *argv* has its URL
    oauth  row that its tokens are asked for with (core/net/oauth2.py), the secret's name, what the
           tokens are for, and where a person signs in, or None; or None
    life   [hosts that it may reach or None, seconds without a call or 0, seconds of its life or 0,
           seconds of processor time or 0]
    """

    def __init__(
        self,
        number: int,
        name: str,
        argv: list,
        env: list,
        is_handshake,
        pins,
        headers,
        oauth,
        life,
        warn,
    ):
        self.hosts, idle_s, life_s, self.cpu_s, *_ = life
        super().__init__(name, pins, idle_s * 1000 or None, life_s * 1000, warn)
        self.number, self.argv, self.env = number, argv, env
        self.is_handshake, self.headers, self.oauth = is_handshake, headers, oauth
        self.is_remote = not argv[0].startswith("/")
        self.process = None
        self.gone_ms = None  # the deadline for the end of one that has gone
        self.is_writing = False
        self.is_silent = True  # nothing has come from it yet
        self.is_due = False  # a remote one has something to send

    @property
    def is_waiting(self) -> bool:
        """Whether it is a remote one to which nothing can be sent until a token comes."""
        return self.is_remote and self.process is not None and self.process.is_waiting


class MCPServers:
    """All servers of one agent.

    rows   section MCP of the image: [[name, argv, names of variables, needs the handshake, [[tool,
           pin], ...], [[header, value], ...], row of its tokens or None, life], ...]; a
           remote server has its URL as argv
    seam   asks(task) -> whether a person can be asked during that call; None: during any;
           watches(task) -> whether somebody wants to know of its progress; tell(task, (progress,
           total or None, message), or None at its end); warn(text), of a server, for the log
    begin  function(number, argv, names of variables, hosts or None, cpu_s, now_ms) -> process
           (server_process.py)
    remote function(url, headers, oauth) -> the same of a server at a URL (remote.py)
    keep   function(server, media type, base64) -> as ``MCPClient.keep``, or None
    """

    def __init__(self, rows: list, begin, remote, seam, keep=None):
        self._keep = keep
        self._asks, self._seam = seam.asks, seam
        self._servers = {row[0]: _Server(-1 - i, *row, seam.warn) for i, row in enumerate(rows)}
        self._begin, self._remote = begin, remote
        self._watch = Watch()
        self._by_fd = {}  # descriptor -> server
        self._tasks = {}  # task -> server
        self._done = []

    def fileno(self) -> int:
        """Return a descriptor that is readable when ``poll`` has something to do."""
        return self._watch.fileno()

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way, or a server: one that ends must be seen."""
        servers = self._servers.values()
        return bool(self._done) or any(one.process is not None for one in servers)

    def start(self, task: int, name: str, arguments: dict, due_ms, now_ms: int):
        """Start a call of the tool *name*, "SERVER/TOOL"; return None, or the outcome if it has one
        at once.
        """
        server, _, tool = name.partition("/")
        server = self._servers[server]
        if server.process is None or server.gone_ms is not None:
            pause_ms = server.pause_ms(now_ms)
            if server.gone_ms is not None or pause_ms:
                return False, _not_run(
                    "the MCP server %s has failed %d times in a row: %s"
                    % (server.name, max(server.failures, 1), server.why or "it has just ended"),
                    "send it again in %d s" % -(-max(pause_ms, 1000) // 1000),
                )
            try:
                self._open(server, now_ms)
            except SandboxDenied as e:
                return False, e
            except (ClawError, OSError) as e:
                if isinstance(e, OSError):
                    e = ClawError(
                        "%s: %s" % (e.filename, e.strerror),
                        "check the path of its program in the mcp_source of its tools",
                    )
                server.note_failure(e.message, "", now_ms)
                return False, _not_run(
                    "the MCP server %s cannot be started: %s" % (server.name, e.message), e.hint
                )
        due_ms = now_ms + CALL_MS if due_ms is None else due_ms
        server.add(task, _Call(tool, arguments, self._seam.watches(task), due_ms))
        self._tasks[task] = server
        self._go_on(server, now_ms)
        return None

    def poll(self, now_ms: int) -> list:
        """Return [(task, outcome), ...] of the calls that have ended."""
        for fd, event in self._watch.poll():
            server = self._by_fd.get(fd)
            if server is not None:
                self._contain(server, now_ms, self._handle_event, fd, event)
        for server in self._servers.values():
            self._contain(server, now_ms, self._check_deadlines)
        done, self._done = self._done, []
        return done

    def _contain(self, server: _Server, now_ms: int, work, *about):
        """Carry out *work* for *server*; a bug of ours that it shows ends that server alone."""
        try:
            work(server, now_ms, *about)
        except Exception as e:
            error = wrap_error(e)
            why = "%s - %s" % (error.message, error.hint)
            self._seam.warn("the MCP server %s was ended: %s" % (server.name, why))
            if server.process is not None:
                self._fail(server, why, now_ms)

    def _handle_event(self, server: _Server, now_ms: int, fd: int, event: int):
        """See to what has come on *fd*."""
        if fd != server.process.stream.fileno():
            self._read_errors(server, fd)
        elif event & READ:
            self._read(server, now_ms)
        else:
            self._write(server, now_ms)

    def deadline(self):
        """Return the monotonic time at which ``poll`` has something to do whatever comes, or
        None.
        """
        if self._done or any(server.is_due for server in self._servers.values()):
            return 0
        times = [
            call.due_ms
            for server in self._servers.values()
            for call in server.calls.values()
            if call.asking_ms is None
        ]
        for server in self._servers.values():
            times += [call.tell_ms for call in server.calls.values() if call.progress is not None]
            is_gone = server.gone_ms is not None
            times.append(server.gone_ms if is_gone else server.due_ms(server.is_waiting))
            if server.is_waiting:
                times.append(server.process.retry_ms)
        return min([at for at in times if at is not None], default=None)

    def has(self, task: int) -> bool:
        """Return whether the call *task* is under way here."""
        return task in self._tasks

    def cancel(self, task: int):
        """End the call at once; nothing more is heard of it."""
        server = self._tasks.get(task)
        if server is not None:
            self._give_up(server, task, False, 0)

    def _give_up(self, server: _Server, task: int, is_late: bool, now_ms: int) -> bool:
        """As ``ServerState.give_up``."""
        del self._tasks[task]
        does_hang = server.give_up(task, is_late, now_ms)
        if server.client is not None:
            if server.is_remote:
                server.is_due = True
            else:
                self._flush(server)
        return does_hang

    def handle_end(self, number: int, outcome: tuple):
        """Take what the sandbox says of the end of server *number*."""
        for server in self._servers.values():
            if server.number == number and server.process is not None:
                server.process.handle_end(outcome)

    def close(self):
        """End all servers, and wait until they are gone."""
        self._tasks.clear()
        running = [one for one in self._servers.values() if one.process is not None]
        remotes = [one for one in running if one.is_remote]
        if remotes:
            from clawlite.linux.mcp.remote import GOODBYE_MS

            for server in remotes:
                server.process.part(server.client)
            until_s = monotonic() + GOODBYE_MS / 1000
            for server in remotes:
                server.process.wait(until_s)
        for server in running:
            server.calls.clear()
            self._end(server)
        self._watch.close()

    # -- one server

    def _open(self, server: _Server, now_ms: int):
        if server.is_remote:
            server.process = self._remote(server.argv[0], server.headers, server.oauth)
            client = server.process.client(
                __version__, now_ms, server.is_handshake, self._asks(None)
            )
        else:
            server.process = self._begin(
                server.number, server.argv, server.env, server.hosts, server.cpu_s, now_ms
            )
            client = MCPClient(
                (loads, dumps), __version__, now_ms, server.is_handshake, self._asks(None)
            )
        if self._keep is not None:
            client.keep = lambda kind, data: self._keep(server.name, kind, data)
        server.begin(client, now_ms)
        server.is_writing, server.is_silent = False, True
        descriptors = [server.process.stream.fileno()]
        if hasattr(server.process, "fileno"):
            descriptors.append(server.process.fileno())
        for fd in descriptors:
            self._by_fd[fd] = server
            self._watch.set(fd, READ)

    def _read_errors(self, server: _Server, fd: int):
        if not server.process.read_errors():  # it has closed it
            self._watch.forget(fd)
            del self._by_fd[fd]

    def _read(self, server: _Server, now_ms: int):
        try:
            if server.is_remote:
                done = server.process.receive(server.client, now_ms)
                if done:
                    server.note_sign()
            else:
                done = self._receive(server, now_ms)
        except ClawError as e:
            self._end_broken(server, e, now_ms)
            return
        told, server.client.progress = server.client.progress, {}
        for task in told:
            if task in server.calls:
                server.calls[task].progress = told[task]
        for task, outcome in done:
            call = server.calls.get(task)
            if call is None:
                continue
            server.note_answer()
            if outcome[IS_OK] is ASKED:
                self._take_questions(server, task, call, outcome[VALUE], now_ms)
            else:
                self._end_call(server, task, outcome)
        self._go_on(server, now_ms)

    def _end_call(self, server: _Server, task: int, outcome: tuple):
        call = server.calls.pop(task)
        del self._tasks[task]
        if call.tell_ms:
            self._seam.tell(task, None)
        if call.note and not outcome[IS_OK]:
            outcome[VALUE].message += " - during the call " + call.note
        self._done.append((task, outcome))

    # -- questions to a person

    def _take_questions(self, server: _Server, task: int, call: _Call, wanted: tuple, now_ms: int):
        """Take what *server* wants to know during *call*."""
        number, _, requests = wanted
        if call.has_asked_enough(requests):
            if number is None:
                self._end_call(server, task, (False, server.make_unfinished_error()))
            else:
                server.client.answer(number, {"action": "cancel"})
        elif number is None and requests and not self._asks(task):
            asked = {
                name: {"method": "elicitation/create", "params": requests[name]}
                for name in requests
            }
            self._end_call(server, task, (False, make_input_error(asked)))
        else:
            call.wanted.append(wanted)
            if call.asking_ms is None:
                self._ask_next(server, task, call, now_ms)

    def _ask_next(self, server: _Server, task: int, call: _Call, now_ms: int):
        """Put the next question of *call* to a person; when there is none, tell the server what
        they said.
        """
        from clawlite.linux.mcp.question import Question, URLWanted

        while call.wanted:
            number, state, requests = call.wanted[0]
            missing = [name for name in requests if name not in call.answers]
            if not missing:
                call.wanted.pop(0)
                answers, call.answers = call.answers, {}
                if number is not None:
                    server.client.answer(number, answers[""])
                    continue
                refusal = _pin_mismatch(server, call.tool)
                if refusal is not None:
                    self._end_call(server, task, (False, refusal))
                    return
                server.client.again(task, call.tool, call.arguments, answers, state)
                return
            call.name = missing[0]
            try:
                question = Question(server.name, requests[call.name], loads)
            except ClawError as e:
                call.note = e.message if isinstance(e, URLWanted) else "it asked for " + e.message
                if number is None:
                    error = ClawError(
                        "the MCP server wants more input for this call",
                        "give all that it needs in the arguments",
                    )
                    self._end_call(server, task, (False, error))
                    return
                call.wanted.pop(0)
                server.client.answer(number, None, {"code": -32602, "message": e.message})
                continue
            if not self._asks(task):
                call.note = 'it asked for "elicitation/create" %s; nobody can be asked here: %s' % (
                    question.said,
                    "give all that it needs in the arguments",
                )
                call.answers[call.name] = {"action": "decline"}
                continue
            call.asking_ms = now_ms
            self._done.append((task, (ASKS_PERSON, question)))
            return

    def resume(self, task: int, outcome: tuple, now_ms: int):
        """Go on with the call *task*, which has asked a person: *outcome* is (True, what the server
        is told).
        """
        server = self._tasks.get(task)
        if server is None:
            return
        call = server.calls[task]
        call.due_ms += now_ms - call.asking_ms
        call.asking_ms = None
        call.answers[call.name] = outcome[VALUE]
        if outcome[VALUE]["action"] != "accept":
            call.note = "a person was asked, and did not answer"
        self._ask_next(server, task, call, now_ms)
        self._go_on(server, now_ms)

    def _receive(self, server: _Server, now_ms: int) -> list:
        """Return what the client makes of what has come on a server's stdout."""
        try:
            data = server.process.stream.recv(_PIECE)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._note_closed(server, now_ms)
            return []
        error = not_started(data[1:]) if data[:1] == b"X" and server.is_silent else None
        if error is not None:
            raise error
        server.is_silent = False
        if not data.isspace():  # blank lines are no sign that it works
            server.note_sign()
        return server.client.feed(data)

    def _end_broken(self, server: _Server, e: ClawError, now_ms: int):
        """The conversation cannot go on."""
        from clawlite.protocols.mcp.mcp_http import SessionEnded

        has_ended = isinstance(e, SessionEnded)
        if has_ended and server.calls and not server.is_anew:
            self._begin_anew(server, e.key, now_ms)
            return
        if has_ended:
            server.note_refusal(e.key)
        refusal = e if isinstance(e, SandboxDenied) else None
        self._fail(server, e.message, now_ms, refusal, e.hint or AGAIN)

    def _begin_anew(self, server: _Server, key, now_ms: int):
        """A session has ended: those calls that it refused, or never got, are made in another one.
        When that ends, too, before it has answered any, the server has failed.
        """
        for task, _ in server.end_session(key):
            self._refuse(task, server.make_lost_error("ended its session during the call"))
        self._end(server)
        try:
            self._open(server, now_ms)
        except (ClawError, OSError) as e:
            server.note_failure(str(e), "", now_ms)
            self._end_calls(server, e if isinstance(e, SandboxDenied) else None)
            return
        self._write(server, now_ms)

    def _go_on(self, server: _Server, now_ms: int):
        """Send what can be sent."""
        if server.client is None or server.gone_ms is not None:
            return
        for task, call, error in server.send_calls(now_ms):
            self._refuse(task, error or _pin_mismatch(server, call.tool))
        self._write(server, now_ms)

    def _refuse(self, task: int, error: ClawError):
        del self._tasks[task]
        self._done.append((task, (False, error)))

    def _write(self, server: _Server, now_ms: int):
        if server.is_remote:
            server.is_due = False
            try:
                server.process.send(server.client, now_ms)
            except ClawError as e:
                self._end_broken(server, e, now_ms)
            return
        if not self._flush(server):
            self._fail(server, "it has not read %d bytes that it was sent" % MAX_UNSENT, now_ms)

    def _flush(self, server: _Server) -> bool:
        """Send what its stream takes; return False when too much waits."""
        out, stream = server.client.out, server.process.stream
        if server.gone_ms is not None:  # nobody reads it, and nothing watches the stream
            return True
        try:
            while out:
                del out[: stream.send(out)]
        except BlockingIOError:
            pass
        except OSError:  # it has closed it, and reading tells so
            out.clear()
        if server.is_writing != bool(out):
            server.is_writing = bool(out)
            self._watch.set(stream.fileno(), READ | WRITE if out else READ)
        return len(out) <= MAX_UNSENT

    def _check_deadlines(self, server: _Server, now_ms: int):
        """See to what is due."""
        if server.process is None:
            return
        if server.gone_ms is not None:
            if server.process.has_ended() or now_ms >= server.gone_ms:
                self._fail(server, "it ended", now_ms)
            return
        why = server.check_ready(now_ms)
        if why:
            self._fail(server, why, now_ms)
            return
        if server.is_over(now_ms):
            self._end(server)
            return
        server.tick(now_ms, server.is_waiting)
        if server.client.out or server.is_remote:
            self._write(server, now_ms)
        if server.process is None:
            return
        does_hang = False
        for task, call in list(server.calls.items()):
            if call.progress is not None and now_ms >= call.tell_ms:
                self._seam.tell(task, call.progress)
                call.progress, call.tell_ms = None, now_ms + TELL_MS
            if now_ms >= call.due_ms and call.asking_ms is None:
                does_hang = self._give_up(server, task, True, now_ms) or does_hang
                error = "the MCP server %s did not answer in time" % server.name
                hint = AGAIN if call.sent_ms is None else OUTCOME_UNKNOWN
                self._done.append((task, (False, ToolTimeout(error, hint))))
        if does_hang:
            self._fail(server, "two calls in a row were not answered in time", now_ms)

    def _note_closed(self, server: _Server, now_ms: int):
        """Its stream has closed: what it said last comes by another way, soon."""
        self._watch.forget(server.process.stream.fileno())
        del self._by_fd[server.process.stream.fileno()]
        server.gone_ms = now_ms + WAIT_MS

    def _fail(self, server: _Server, why: str, now_ms: int, refusal=None, hint=AGAIN):
        """End *server*, and the calls that it has; *refusal* is the error of those that it never
        got, if there is a better one than that, and *hint* is what they may do.
        """
        server.note_failure(why, server.process.errors(), now_ms)
        self._end_calls(server, refusal, hint)
        self._end(server)

    def _end_calls(self, server: _Server, refusal, hint=AGAIN):
        for task, call in server.take_calls():
            if call.sent_ms is not None:
                error = server.make_lost_error("failed during the call: " + server.why)
            else:
                error = refusal or _not_run(
                    "the MCP server %s failed: %s" % (server.name, server.why),
                    hint,
                )
            self._refuse(task, error)

    def _end(self, server: _Server):
        for fd in [fd for fd, one in self._by_fd.items() if one is server]:
            self._watch.forget(fd)
            del self._by_fd[fd]
        server.process.end()
        server.stop()
        server.process = server.gone_ms = None
        server.is_due = False


def not_started(data: bytes):
    """Return the error of a sandbox that could not start a server: what its child sends.  A server
    may send the like itself, so the shape is nothing to rely on.  None: it is none, but a line of a
    server.  Its first line alone counts, whether or not more has come by now.
    """
    try:
        error = loads(data.partition(b"\n")[0])
    except ClawError:
        return None
    texts = [error.get("message"), error.get("hint")] if isinstance(error, dict) else []
    return Broken(" - ".join(str(text)[:MAX_ERRORS] for text in texts if text) or "it said X")


def _pin_mismatch(server: _Server, tool: str):
    """Return the error for a tool that is not what was pinned, or None."""
    difference = server.find_difference(tool)
    if not difference:
        return None
    if tool not in server.client.tools and not server.client.asks:
        return _not_run(
            "the MCP server %s does not offer its tool %s here, where it can ask no person; when "
            "this agent was built, it could" % (server.name, tool),
            "call it where somebody answers: clawlite run on a terminal, a client or an operator "
            "that takes questions, a channel with an admin; if it is missing there too, clawlite "
            "build --refresh shows what has changed",
        )
    return _not_run(
        "the MCP server %s %s" % (server.name, difference),
        "clawlite build --refresh shows the difference, and --accept %s takes it" % server.name,
    )


def _not_run(message: str, hint: str):
    from clawlite.core.idempotency.idempotency import not_run

    return not_run(message, hint)
