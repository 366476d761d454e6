"""The MCP servers of one agent: started by the first call of one of their tools, ended with the
agent.

1. Nothing here waits, but ``close``: what a server says is read when the loop finds it readable.
2. A tool that differs from what was pinned when the agent was built is refused, until it is built
   again.
3. A server that ends, breaks the protocol or does not answer in time is ended.  The next call
   starts another one, not before a pause that doubles with each failure.
4. Calls that were sent to a server that then ended are errors: what they did is not known, and
   nothing sends them again.  Calls that it never got say so, and may be sent again.
5. A server may ask a person during a call (question.py), ``MAX_QUESTIONS`` times; the time of the
   call stands still meanwhile.  Where nobody can be asked it is told so at once.
6. A server hangs when two calls in a row run out of time, the second sent after the first was given
   up, and it says nothing in between: it is ended.  One call alone may just be slow.
7. Whatever a server sends, the agent and the calls of other servers go on.
"""

from time import monotonic

from clawlite import __version__
from clawlite.core.base.effect import ASKS_PERSON, IS_OK, VALUE
from clawlite.core.base.errors import ClawError, SandboxDenied, ToolTimeout, unexpected
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.io.watch import READ, WRITE, Watch
from clawlite.linux.mcp.server_process import MAX_ERRORS
from clawlite.protocols.mcp.mcp_client import (
    ASKED,
    OUTCOME_UNKNOWN,
    READY,
    Broken,
    MCPClient,
    make_input_error,
    often_ended,
    spoke_oddly,
)
from clawlite.protocols.mcp.mcp_pin import name_changes, pin_of

CALL_MS = 60000  # of a call that nothing else limits
MAX_QUESTIONS = 8  # to a person, of one call
TELL_MS = 250  # between two words of a call's progress
START_MS = 20000  # from the start of a server to its list of tools
WAIT_MS = 1000  # for what is told of its end, once its stream has closed
FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 1000, 60000
MAX_UNSENT = 8388608  # bytes that a server has not read
AGAIN = "send it again"  # the hint of a call that a server never got
_PIECE = 65536


class _Call:
    """One call under way: *tool* and *arguments* as the server has them."""

    def __init__(self, tool: str, arguments: dict, due_ms: int):
        self.tool, self.arguments, self.due_ms = tool, arguments, due_ms
        self.sent_ms = None
        self.is_again = False
        # what the server wants to know (``MCPClient.feed``), and what a person has said to it
        self.wanted, self.answers = [], {}
        self.name = None  # of the question that is put
        self.asking_ms = None  # since when
        self.questions = 0
        self.note = ""  # what it asked for, and did not get
        self.progress = None  # what is to be told of it, not before ``tell_ms``
        self.tell_ms = 0


class _Server:
    """One server.

    name   str;  argv  list of str;  env  names of the agent's variables that it gets
    is_handshake  bool, it spoke the older era alone when the agent was built
    pins   {name of a tool: bytes of ``pin_of``}
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
    ):
        self.hosts, idle_s, life_s, self.cpu_s, *_ = life
        self.idle_ms, self.life_ms = idle_s * 1000, life_s * 1000
        self.old_ms = self.idle_since_ms = (
            None  # when its lifetime is over; since when no call needs it
        )
        self.number, self.name, self.argv, self.env = number, name, argv, env
        self.oauth = oauth
        self.is_handshake, self.pins, self.headers = is_handshake, dict(pins), headers
        self.is_remote = not argv[0].startswith("/")
        self.process = self.client = None
        self.calls = {}  # task -> _Call
        self.failures = 0  # in a row
        self.is_anew = False  # a session ended, and no call was answered since
        self.resume_ms = 0  # not started again before
        self.ready_ms = self.gone_ms = None  # deadlines: READY, and the end of one that has gone
        self.mute_ms = None  # since a call ran out of time, if nothing has come from it since
        self.why = ""
        self.is_writing = False
        self.is_silent = True  # nothing has come from it yet
        self.is_due = False  # a remote one has something to send
        self.has_warned = False  # that it often ends its subscriptions
        self.has_told = False  # that it writes what is no message

    @property
    def is_waiting(self) -> bool:
        """Whether it is a remote one to which nothing can be sent until a token comes."""
        return self.is_remote and self.process is not None and self.process.is_waiting

    def idle_end_ms(self):
        """Return when it is ended because no call needs it, or its lifetime is over, or None."""
        if self.process is None or self.calls or self.gone_ms is not None:
            return None
        times = [self.old_ms]
        if self.idle_ms and self.idle_since_ms is not None:
            times.append(self.idle_since_ms + self.idle_ms)
        return min([at for at in times if at is not None], default=None)


class Servers:
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
        self._servers = {row[0]: _Server(-1 - i, *row) for i, row in enumerate(rows)}
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
            if server.gone_ms is not None or now_ms < server.resume_ms:
                return False, _not_run(
                    "the MCP server %s has failed %d times in a row: %s"
                    % (server.name, max(server.failures, 1), server.why or "it has just ended"),
                    "send it again in %d s" % -(-max(server.resume_ms - now_ms, 1000) // 1000),
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
                self._note_failure(server, e.message, now_ms)
                return False, _not_run(
                    "the MCP server %s cannot be started: %s" % (server.name, e.message), e.hint
                )
        due_ms = now_ms + CALL_MS if due_ms is None else due_ms
        server.calls[task] = _Call(tool, arguments, due_ms)
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
            error = unexpected(e)
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
            times += [server.ready_ms, server.gone_ms, server.idle_end_ms()]
            is_open = server.client is not None and server.gone_ms is None
            if is_open and not server.is_waiting:
                times.append(server.client.due_ms())
            elif server.is_waiting:
                times.append(server.process.retry_ms)
        return min([at for at in times if at is not None], default=None)

    def has(self, task: int) -> bool:
        """Return whether the call *task* is under way here."""
        return task in self._tasks

    def cancel(self, task: int):
        """End the call at once; nothing more is heard of it."""
        server = self._tasks.pop(task, None)
        if server is not None:
            call = server.calls.pop(task)
            if call.sent_ms is not None and server.client is not None:
                server.client.cancel(task)
                if server.is_remote:
                    server.is_due = True
                else:
                    self._flush(server)

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
            server.client = server.process.client(
                __version__, now_ms, server.is_handshake, self._asks(None)
            )
        else:
            server.process = self._begin(
                server.number, server.argv, server.env, server.hosts, server.cpu_s, now_ms
            )
            server.client = MCPClient(
                (loads, dumps), __version__, now_ms, server.is_handshake, self._asks(None)
            )
        if self._keep is not None:
            server.client.keep = lambda kind, data: self._keep(server.name, kind, data)
        server.ready_ms, server.why = now_ms + START_MS, ""
        server.old_ms = now_ms + server.life_ms if server.life_ms else None
        server.idle_since_ms = None
        server.is_writing, server.is_silent, server.mute_ms = False, True, None
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
                    server.mute_ms = None
            else:
                done = self._receive(server, now_ms)
        except ClawError as e:
            self._end_broken(server, e, now_ms)
            return
        if server.client.odd_line and not server.has_told:
            server.has_told = True
            self._seam.warn(spoke_oddly(server.name, server.client.odd_line))
        told, server.client.progress = server.client.progress, {}
        for task in told:
            if task in server.calls:
                server.calls[task].progress = told[task]
        for task, outcome in done:
            call = server.calls.get(task)
            if call is None:
                continue
            server.failures, server.is_anew = 0, False
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
        call.questions += len(requests) or 1
        if call.questions > MAX_QUESTIONS:
            call.note = "it asked a person more than %d questions" % MAX_QUESTIONS
            if number is None:
                error = ClawError(
                    "the MCP server %s did not finish the call" % server.name,
                    "give all that it needs in the arguments",
                )
                self._end_call(server, task, (False, error))
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
            server.mute_ms = None
        return server.client.feed(data)

    def _end_broken(self, server: _Server, e: ClawError, now_ms: int):
        """The conversation cannot go on."""
        from clawlite.protocols.mcp.mcp_http import SessionEnded

        has_ended = isinstance(e, SessionEnded)
        if has_ended and server.calls and not server.is_anew:
            server.is_anew = True
            self._begin_anew(server, e.key, now_ms)
            return
        if has_ended and e.key in server.calls:
            server.calls[e.key].sent_ms = None  # it was refused
        refusal = e if isinstance(e, SandboxDenied) else None
        self._fail(server, e.message, now_ms, refusal, e.hint or AGAIN)

    def _begin_anew(self, server: _Server, key, now_ms: int):
        """A session has ended: those calls that it refused, or never got, are made in another one.
        When that ends, too, before it has answered any, the server has failed.
        """
        for task, call in list(server.calls.items()):
            if task == key and not call.is_again:
                call.sent_ms, call.is_again = None, True
            elif call.sent_ms is not None:
                del server.calls[task], self._tasks[task]
                error = "the MCP server %s ended its session during the call" % server.name
                self._done.append((task, (False, ClawError(error, OUTCOME_UNKNOWN))))
        self._end(server)
        try:
            self._open(server, now_ms)
        except (ClawError, OSError) as e:
            self._note_failure(server, str(e), now_ms)
            self._end_calls(server, e if isinstance(e, SandboxDenied) else None)
            return
        self._write(server, now_ms)

    def _go_on(self, server: _Server, now_ms: int):
        """Send what can be sent."""
        if server.client is None or server.gone_ms is not None:
            return
        if server.client.is_stale and server.client.state == READY:
            server.client.ask_for_tools()
        if server.client.state == READY:
            server.ready_ms = None
            for task, call in list(server.calls.items()):
                if call.sent_ms is None:
                    refusal = _pin_mismatch(server, call.tool)
                    if refusal is None:
                        try:
                            server.client.call(
                                task, call.tool, call.arguments, self._seam.watches(task)
                            )
                            call.sent_ms = now_ms
                        except ClawError as e:
                            refusal = e
                    if refusal is not None:
                        del server.calls[task], self._tasks[task]
                        self._done.append((task, (False, refusal)))
        self._write(server, now_ms)

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
        if server.ready_ms is not None and now_ms >= server.ready_ms:
            why = "it did not list its tools within %d s" % (START_MS // 1000)
            odd = server.client.odd_line
            self._fail(server, why + (", and wrote: " + odd if odd else ""), now_ms)
            return
        if self._end_idle(server, now_ms):
            return
        if not server.is_waiting:
            server.client.tick(now_ms)
        if server.client.is_often_ended and not server.has_warned:
            server.has_warned = True
            self._seam.warn(often_ended(server.name))
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
                self.cancel(task)
                error = "the MCP server %s did not answer in time" % server.name
                hint = AGAIN if call.sent_ms is None else OUTCOME_UNKNOWN
                self._done.append((task, (False, ToolTimeout(error, hint))))
                if call.sent_ms is None:
                    continue
                if server.mute_ms is None:
                    server.mute_ms = now_ms
                does_hang = does_hang or call.sent_ms >= server.mute_ms
        if does_hang:
            self._fail(server, "two calls in a row were not answered in time", now_ms)

    def _end_idle(self, server: _Server, now_ms: int) -> bool:
        """End *server* when its time is over and no call needs it: the next call starts another."""
        if server.calls:
            server.idle_since_ms = None
        elif server.idle_since_ms is None:
            server.idle_since_ms = now_ms
        at = server.idle_end_ms()
        if at is None or now_ms < at:
            return False
        self._end(server)
        return True

    def _note_closed(self, server: _Server, now_ms: int):
        """Its stream has closed: what it said last comes by another way, soon."""
        self._watch.forget(server.process.stream.fileno())
        del self._by_fd[server.process.stream.fileno()]
        server.gone_ms = now_ms + WAIT_MS

    def _fail(self, server: _Server, why: str, now_ms: int, refusal=None, hint=AGAIN):
        """End *server*, and the calls that it has; *refusal* is the error of those that it never
        got, if there is a better one than that, and *hint* is what they may do.
        """
        last_words = server.process.errors().strip()
        self._note_failure(
            server, why + (", and said: " + last_words if last_words else ""), now_ms
        )
        self._end_calls(server, refusal, hint)
        self._end(server)

    def _end_calls(self, server: _Server, refusal, hint=AGAIN):
        for task, call in server.calls.items():
            del self._tasks[task]
            if call.sent_ms is not None:
                error = ClawError(
                    "the MCP server %s failed during the call: %s" % (server.name, server.why),
                    OUTCOME_UNKNOWN,
                )
            else:
                error = refusal or _not_run(
                    "the MCP server %s failed: %s" % (server.name, server.why),
                    hint,
                )
            self._done.append((task, (False, error)))
        server.calls.clear()

    def _note_failure(self, server: _Server, why: str, now_ms: int):
        pause_ms = min(FIRST_PAUSE_MS << min(server.failures, 16), LONGEST_PAUSE_MS)
        server.failures, server.why, server.resume_ms = server.failures + 1, why, now_ms + pause_ms

    def _end(self, server: _Server):
        for fd in [fd for fd, one in self._by_fd.items() if one is server]:
            self._watch.forget(fd)
            del self._by_fd[fd]
        server.process.end()
        server.process = server.client = server.ready_ms = server.gone_ms = None
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
    definition = server.client.tools.get(tool)
    if definition is None and not server.client.asks:
        return _not_run(
            "the MCP server %s does not offer its tool %s here, where it can ask no person; when "
            "this agent was built, it could" % (server.name, tool),
            "call it where somebody answers: clawlite run on a terminal, a client or an operator "
            "that takes questions, a channel with an admin; if it is missing there too, clawlite "
            "build --refresh shows what has changed",
        )
    if definition is None:
        what = "the MCP server %s has no tool %s any more" % (server.name, tool)
    else:
        pin = server.pins[tool]
        parts = name_changes(pin, pin_of(definition)) if pin else ""  # none: trust = "start"
        if not parts:
            return None
        what = "the MCP server %s has changed the %s of its tool %s since this agent was built" % (
            server.name,
            parts,
            tool,
        )
    return _not_run(
        what,
        "clawlite build --refresh shows the difference, and --accept %s takes it" % server.name,
    )


def _not_run(message: str, hint: str):
    from clawlite.core.idempotency.idempotency import not_run

    return not_run(message, hint)
