"""The agent's side of the ``process`` sandbox: it hands calls to the server and collects their
results.

1. Nothing here waits, except ``report`` and ``close``: a socket is read when the loop finds it
   readable.
2. ``prepare`` or the first call starts the server, as a fresh interpreter (posix_spawn), so that it
   contains nothing of the agent's memory, environment or descriptors.  A server that died is
   started again by the next call.
3. What a child sends is not trusted: its length is bounded, its JSON is read strictly, and
   descriptors in it are dropped.
4. The agent is made non-dumpable: no process of the same user can read its memory, environment or
   descriptors from /proc.
5. At most ``MAX_CALLS`` calls run at once, ``MAX_QUEUE`` more wait in order, and further calls are
   refused.
6. A ``jobs.Server`` runs beside the calls and does not count as one.  The agent has the other end
   of its stdin and stdout.
"""

import _socket
import array
import os
import select
import sys

from clawlite.core.base.effect import IS_OK, VALUE
from clawlite.core.base.errors import (
    ClawError,
    Denied,
    InvalidParams,
    InvalidRequest,
    ParseError,
    ProviderError,
    QuotaExceeded,
    SandboxDenied,
    ToolTimeout,
)
from clawlite.core.turns.handlers import question
from clawlite.linux.files.real_path import resolve
from clawlite.linux.files.workspace import NOBODY
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.io.stdio import now_ms as clock
from clawlite.linux.maker import maker_run
from clawlite.linux.sandbox import plan as plans
from clawlite.linux.sandbox import spawn
from clawlite.linux.sandbox.plan_cache import PlanCache

MAX_CALLS = 16
TIMED_OUT = "give it less to do, or raise timeout_ms in the manifest"  # the next step
MAX_QUEUE = 64  # calls that wait until a running call ends; each holds its arguments
# bytes of JSON that a function may return, unless the profile allows more
MAX_RESULT = 4194304
MAX_MESSAGE = 65536
MAX_MESSAGE_TEXT = 4000  # characters of an error's message, and of its hint
# a call is ended with its sandbox when its supervisor is silent for so long after the call's time
LATE_MS = 3000
_SOCKET = 1  # position in ``Engine._server``
_SCM_DATA = 2  # position in an ancillary message of ``recvmsg``: the descriptors, packed
_FLAGS = _socket.MSG_CMSG_CLOEXEC | _socket.MSG_DONTWAIT
_ERRORS = {
    cls.code: cls
    for cls in (
        ClawError,
        Denied,
        SandboxDenied,
        InvalidParams,
        InvalidRequest,
        ToolTimeout,
        ProviderError,
        QuotaExceeded,
    )
}


class _Call:
    """One call under way.

    talk  socket to the child, None when closed
    line  socket to its supervisor, None when closed
    """

    def __init__(self, number: int, profile, job, talk, line, late_ms):
        self.number, self.profile, self.job, self.talk, self.line, self.late_ms = (
            number,
            profile,
            job,
            talk,
            line,
            late_ms,
        )
        self.output, self.parts, self.size, self.printed = [], [], 0, 0
        self.outcome = None  # the child's result, kept until its processes are gone
        # (timeout_ms, now_ms) to send it again when its supervisor dies before it began
        self.again = None
        self.door = None
        # a result beyond the tool's own limit is cut later, with all other results
        self.most = max(profile.max_output_bytes or 0, MAX_RESULT)


class Engine:
    """All sandboxed calls of one agent.

    workspace   str, the folder behind /workspace.  It is created when it is the agent's own, inside
                a hidden folder
    hidden      list of paths that no tool sees (state, secrets), except the workspace in them
    proxy       function(profile) -> object with serve(fd) and close(), for children with network;
                None: calls that need the network are refused
    uid         int, the user that tools run as when the agent is root: not 0
    relaxed     set of names of limits that may be enforced in part (clawlite.toml)
    bubblewrap  bool, bwrap makes the namespaces, or calls are refused (clawlite.toml)
    modules     names of standard library modules that are loaded before a child runs
    paths       of the manifest's mounts, which lead where they lead now (``PlanCache``)
    """

    def __init__(
        self,
        workspace: str,
        hidden: list = (),
        proxy=None,
        uid: int = NOBODY,
        relaxed=frozenset(),
        modules=(),
        bubblewrap=False,
        paths=(),
    ):
        self._workspace = workspace
        self._hidden = [resolve(path) for path in hidden]
        self._proxy = proxy
        self._uid = uid if os.geteuid() == 0 else None
        self._plans = PlanCache(workspace, self._hidden, relaxed, paths)
        self._modules, self._bubblewrap = list(modules), bubblewrap
        self._calls = {}  # number -> _Call
        # (number, profile, job, ms that it may take or None) of the calls that wait, oldest first
        self._queue = []
        self._lines = {}  # fd -> (call, whether the socket is the supervisor's)
        self._ended = []
        self._server = None  # (pid, socket)
        self._found = None  # the result of the server's probe
        self._epoll = select.epoll()

    def fileno(self) -> int:
        """Return a descriptor that is readable when ``poll`` has something to do."""
        return self._epoll.fileno()

    def prepare(self):
        """Start the server, which then probes the machine by itself; this takes a millisecond."""
        if self._server is not None:
            return
        self._server = spawn.start(
            self._workspace, self._hidden, self._uid, self._modules, self._bubblewrap
        )
        self._epoll.register(self._server[_SOCKET], select.EPOLLIN)

    def start(self, number: int, profile, job, due_ms, now_ms: int):
        """Start *job*, or queue it.  Return None when its outcome comes from ``poll`` later, else
        the outcome.

        number  int, identifies the outcome in ``poll``
        due_ms  monotonic time of its end, or None.  The time in the queue does not count
        """
        if not self._queue and not self._is_full():
            return self._start(number, profile, job, due_ms, now_ms)
        if len(self._queue) >= MAX_QUEUE:
            return False, _not_run(
                "%d calls run in sandboxes, and %d wait for their turn" % (MAX_CALLS, MAX_QUEUE),
                "send it again when some of them have ended",
            )
        self._queue.append(
            (number, profile, job, None if due_ms is None else max(due_ms - now_ms, 0))
        )
        return None

    def open(self, number: int, profile, job, now_ms: int):
        """Start the server *job*; return a stream socket, whose other end is its stdin and stdout.
        Its outcome comes from ``poll``, and ``cancel`` ends it.

        number  int below 0, so that it differs from those of calls
        Raises ``ClawError``.  When the program cannot be started, the stream brings ``X`` and the
        error as JSON.
        """
        try:
            call = self._begin(number, profile, job, None, job.pack(), now_ms)
        except OSError as e:
            raise ClawError(
                "the sandbox cannot be started: %s" % e.strerror, "see: clawlite doctor"
            ) from None
        talk, call.talk = call.talk, None
        return talk

    def _is_full(self) -> bool:
        return sum(number >= 0 for number in self._calls) >= MAX_CALLS

    def _start(self, number: int, profile, job, due_ms, now_ms: int):
        try:
            if profile.network and self._proxy is None:
                raise self._make_denial(
                    profile,
                    "its children would need a proxy",
                    ["proxy"],
                    "set the sandbox's network to deny",
                )
            timeout_ms = profile.timeout_ms
            if due_ms is not None and (timeout_ms is None or due_ms - now_ms < timeout_ms):
                timeout_ms = max(due_ms - now_ms, 0)
            self._begin(number, profile, job, timeout_ms, job.pack(), now_ms).again = (
                timeout_ms,
                now_ms,
            )
        except SandboxDenied as e:
            e.data = dict(e.data or {}, ran=False)
            return False, e
        except ClawError as e:
            return False, e
        except ValueError as e:
            return False, InvalidParams("the arguments are not JSON values: %s" % e)
        except OSError as e:
            return False, _not_run(
                "the sandbox cannot be started: %s" % e.strerror,
                "send it again, or see: clawlite doctor",
            )
        return None

    def _begin(self, number: int, profile, job, timeout_ms, packed: bytes, now_ms: int) -> _Call:
        plan = self._plans.memory(profile, job)
        self.prepare()
        for is_last in (False, True):
            try:
                return self._send(number, profile, job, plan, timeout_ms, packed, now_ms)
            # the server has died without receiving this call.  Any other error is this call's
            # alone: other calls go on
            except (BrokenPipeError, ConnectionResetError):
                self._lose()
                if is_last:
                    raise
                self.prepare()

    def _send(
        self, number: int, profile, job, plan: int, timeout_ms, packed: bytes, now_ms: int
    ) -> _Call:
        kind = _socket.SOCK_STREAM if job.KIND == "server" else _socket.SOCK_SEQPACKET
        talk, their_talk = _socket.socketpair(_socket.AF_UNIX, kind)
        line, their_line = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        # the supervisor reads this byte when it begins the call: until then nothing has run
        line.send(b"J")
        memory = spawn.memory("job", packed)
        try:
            self._server[_SOCKET].sendmsg(
                [b"J" if timeout_ms is None else b"J%d" % timeout_ms],
                [
                    (
                        _socket.SOL_SOCKET,
                        _socket.SCM_RIGHTS,
                        array.array("i", (plan, memory, their_talk.fileno(), their_line.fileno())),
                    )
                ],
            )
        finally:
            os.close(memory)
            their_talk.close()
            their_line.close()
        call = self._calls[number] = _Call(
            number,
            profile,
            job,
            talk,
            line,
            None if timeout_ms is None else now_ms + timeout_ms + LATE_MS,
        )
        # a command or server sends nothing on talk but an error at its start, read at the end
        for end in (line,) if job.KIND in ("command", "server") else (line, talk):
            self._lines[end.fileno()] = call, end is line
            self._epoll.register(end, select.EPOLLIN)
        return call

    def resume(self, number: int, outcome: tuple, now_ms: int = 0):
        """Answer the question of call *number*: *outcome* is (True, text) or (False, error)."""
        call = self._calls.get(number)
        if call is None or call.talk is None:
            return
        error = outcome[VALUE]
        answer = (
            {"text": outcome[VALUE]}
            if outcome[IS_OK]
            else {"message": error.message, "hint": error.hint, "code": error.code}
        )
        fd = spawn.memory("answer", dumps(answer).encode())
        try:
            call.talk.sendmsg(
                [b"A"],
                [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [fd]))],
                _socket.MSG_DONTWAIT,
            )
        except OSError:  # the child has ended; its supervisor reports that
            pass
        finally:
            os.close(fd)

    def poll(self, now_ms: int = None) -> list:
        """Return [(number, outcome), ...] of the calls that have ended.  The outcome of a call that
        asks a provider is (ASKS_PROVIDER, (text, most tokens)).
        """
        now_ms = clock() if now_ms is None else now_ms
        # a server that is started in this loop may get the descriptor of the last one, and has
        # sent nothing yet
        server = self._server
        for fd, _ in self._epoll.poll(0):
            if fd in self._lines:
                self._read(*self._lines[fd])
            elif server is not None and server is self._server and fd == server[_SOCKET].fileno():
                self._read_probe()
        for call in list(self._calls.values()):
            if call.late_ms is not None and now_ms >= call.late_ms:
                self._end(
                    call,
                    (
                        False,
                        ToolTimeout(
                            "the call took too long and was stopped with its sandbox", TIMED_OUT
                        ),
                    ),
                )
        while self._queue and not self._is_full():
            number, profile, job, left_ms = self._queue.pop(0)
            outcome = self._start(
                number, profile, job, None if left_ms is None else now_ms + left_ms, now_ms
            )
            if outcome is not None:
                self._ended.append((number, outcome))
        ended, self._ended = self._ended, []
        return ended

    @property
    def has_news(self) -> bool:
        """Whether ``poll`` has something to read.  Even without calls this may be the server's
        probe, or its end.  When the loop waits for that but does not read it, it never sleeps.
        """
        return bool(self._epoll.poll(0))

    @property
    def is_busy(self) -> bool:
        """Whether a call runs, or waits in the queue."""
        return bool(self._calls or self._queue)

    def deadline(self):
        """Return the monotonic time at which ``poll`` has something to do although nothing is
        readable, or None.
        """
        if self._queue and not self._is_full():
            return 0  # a call was cancelled: the next one in the queue can start
        late = [call.late_ms for call in self._calls.values() if call.late_ms is not None]
        return min(late) if late else None

    def cancel(self, number: int):
        """End call *number*: TERM, then KILL after 500 ms.  ``poll`` returns nothing about it."""
        call = self._calls.get(number)
        if call is not None:
            self._drop(call)
        self._queue = [entry for entry in self._queue if entry[0] != number]

    def close(self):
        """End all calls and the server, and wait until they are gone."""
        self._queue = []
        for call in list(self._calls.values()):
            self._drop(call)
        self._lose()
        self._plans.close()
        self._epoll.close()

    # -- what comes

    def _read(self, call, is_supervisor: bool):
        is_unread = False
        while call.number in self._calls:
            end = call.line if is_supervisor else call.talk
            if end is None:
                return
            try:
                data, extra, _, _ = end.recvmsg(
                    MAX_MESSAGE, _socket.CMSG_SPACE(4) if is_supervisor else 0, _FLAGS
                )
            except BlockingIOError:
                return
            except OSError as e:
                data, is_unread = b"", isinstance(e, ConnectionResetError)
            if not data:
                self._forget(call, is_supervisor)
                if is_supervisor:
                    self._handle_early_end(call, is_unread)
                return
            if is_supervisor:
                self._supervisor(call, data, extra)
            else:
                self._child(call, data)

    def _supervisor(self, call, data: bytes, extra):
        kind = data[:1]
        if kind == b"O":
            call.output.append(data[1:])
        elif kind == b"P" and extra:
            call.door = self._proxy(call.profile)
            call.door.serve(int.from_bytes(extra[0][_SCM_DATA][:4], sys.byteorder))
        elif kind == b"E":
            self._end(call, self._outcome(call, loads(data[1:])))

    def _handle_early_end(self, call, is_unread: bool):
        """Handle the end of a supervisor before its call has ended.  If the supervisor had not
        begun the call (*is_unread*), the call is started again, once.
        """
        is_new = call.again is not None and is_unread
        if is_new:
            timeout_ms, now_ms = call.again
            self._drop(call)
            try:
                self._begin(
                    call.number, call.profile, call.job, timeout_ms, call.job.pack(), now_ms
                )
                return
            except (ClawError, OSError):
                self._calls[call.number] = call
        error = (_not_run if is_new else ClawError)(
            "the sandbox ended before its call did", "send it again" if is_new else "try again"
        )
        self._end(call, (False, error))

    def _child(self, call, data: bytes):
        kind = data[:1]
        if kind == b"P":
            call.printed += len(data)
            if (
                call.job.KIND == "function"
                and call.job.show
                and call.printed <= maker_run.MOST_PRINTED
            ):
                call.job.show(data[1:].decode("utf-8", "replace"))
            return
        call.size += len(data)
        if call.size > call.most + MAX_MESSAGE:
            call.outcome = (
                False,
                ClawError(
                    "the result has more than %d bytes" % call.most,
                    "return less, or raise max_output_bytes",
                ),
            )
            self._forget(call, False)
            return
        call.parts.append(data[1:])
        if kind == b"r":
            return
        text, call.parts = b"".join(call.parts), []
        try:
            try:
                value = loads(text)
            except ParseError as e:
                if e.whole is None:
                    raise
                value = e.whole  # half of a character in it, which the turn mends
            if kind == b"R":
                call.outcome = True, value
            elif kind == b"X":
                call.outcome = False, _error(value, call.job.KIND == "function")
            elif kind == b"Q":
                call.size = 0
                self._ended.append((call.number, question(value)))
        except ClawError as e:
            call.outcome = (
                False,
                ClawError(
                    "the function returned something that is not JSON: %s" % e.message,
                    "return a JSON value from it in tools.py",
                )
                if isinstance(e, ParseError)
                else e,
            )
        except (AttributeError, KeyError, TypeError):
            call.outcome = (
                False,
                ClawError(
                    "the function returned an answer of the wrong form",
                    "return a JSON value from it in tools.py",
                ),
            )
        # the child sends no more; if it waits for an answer, closing its socket ends it
        if call.outcome is not None:
            self._forget(call, False)

    def _outcome(self, call, end: dict) -> tuple:
        if "refused" in end:
            return False, self._make_denial(call.profile, end["refused"], None, end["hint"])
        if call.talk is not None:
            # the child's last message may not have been read yet
            self._read(call, False)
        ended = end["ended"]
        if ended == "timeout_ms" and not (call.outcome and call.outcome[IS_OK]):
            return False, ToolTimeout(
                "the call took too long and was stopped with all that it started",
                end["note"] or TIMED_OUT,
            )
        if call.job.KIND in ("command", "server"):
            return call.outcome if call.outcome else (True, self._command(call, end))
        if call.outcome is None or ended:
            said = (
                "ended by its limit %s" % ended
                if ended
                else "ended without a result, exit code %d" % end["exit_code"]
            )
            return call.outcome or (
                False,
                ClawError(
                    "the function was " + said if ended else "the function " + said,
                    end["note"]
                    or (
                        "give it less to do, or raise that limit of its sandbox"
                        if ended
                        else "look in tools.py for what ends its process"
                    ),
                ),
            )
        if end["note"] and not call.outcome[IS_OK] and not call.outcome[VALUE].hint:
            call.outcome[VALUE].hint = end["note"]
        return call.outcome

    def _command(self, call, end: dict) -> dict:
        most = call.profile.max_output_bytes or plans.MAX_OUTPUT
        raw, total = b"".join(call.output), end["original_bytes"]
        # U+FFFD takes three bytes and may replace a single one
        text = raw.decode("utf-8", "replace").encode()[:most].decode("utf-8", "ignore")
        cut = total > len(raw) or len(text.encode()) < len(raw)
        return {
            "exit_code": end["exit_code"],
            "output": text,
            "truncated": cut,
            "original_bytes": total,
            "ended": end["ended"],
            "note": end["note"],
        }

    def _make_denial(self, profile, reason: str, missing, hint: str) -> SandboxDenied:
        if self._found is None and self._server is not None:
            self._read_probe()  # the server sends its probe before it refuses any call
        found = self._found or {}
        data = {
            "sandbox": profile.name,
            "reason": reason,
            "required": "process",
            "missing": found.get("missing", []) if missing is None else missing,
            "available": found.get("available", []),
            "ran": False,
        }
        return SandboxDenied("sandbox %s: %s" % (profile.name or "(default)", reason), hint, data)

    def _read_probe(self):
        """Read the result of the server's probe; a closed socket means that the server is gone."""
        try:
            data = self._server[_SOCKET].recv(MAX_MESSAGE)
        except OSError:
            data = b""
        if data:
            self._found = loads(data)
        else:
            self._lose()

    # -- ends

    def _end(self, call, outcome: tuple):
        if call.number in self._calls:
            self._drop(call)
            self._ended.append((call.number, outcome))

    def _drop(self, call):
        self._calls.pop(call.number, None)
        self._forget(call, False)
        self._forget(call, True)
        if call.door is not None:
            call.door.close()

    def _forget(self, call, is_supervisor: bool):
        end = call.line if is_supervisor else call.talk
        if end is not None:
            if self._lines.pop(end.fileno(), None):
                self._epoll.unregister(end)
            end.close()
            setattr(call, "line" if is_supervisor else "talk", None)

    def _lose(self):
        """Close the server's socket and wait for its end: it ends its supervisors first."""
        if self._server is None:
            return
        pid, line = self._server
        self._server = None
        self._epoll.unregister(line)
        line.close()
        spawn.wait(pid)

    def report(self) -> dict:
        """Return the result of the probe and how each limit is enforced, for ``clawlite doctor``.
        Waits for the probe.
        """
        from clawlite.linux.sandbox.report import report

        self._wait_for_probe()
        return report(self, self._found, self._uid)

    def refusal(self) -> str:
        """Return why this machine cannot confine a process, and what would mend it; "" when it
        can.  Waits for the probe.
        """
        from clawlite.linux.sandbox import probe

        self._wait_for_probe()
        found = self._found
        if found is None:
            return "the sandbox's server does not answer - see: clawlite doctor"
        if found["profile"] is not None:
            return ""
        return "%s - %s" % (probe.reason(found), probe.hint(found))

    def _wait_for_probe(self):
        self.prepare()
        while self._found is None and self._server is not None:
            select.select([self._server[_SOCKET]], [], [], 10)
            self._read_probe()


def _not_run(message: str, hint: str):
    from clawlite.core.idempotency.idempotency import not_run

    return not_run(message, hint)


def _error(value: dict, is_maker: bool) -> ClawError:
    """Return the error in the child's message, with texts of bounded length.  The data that a
    maker's code added is left out, except ``ran: False``.
    """
    cls = _ERRORS.get(value["code"], ClawError)
    data = value["data"]
    if is_maker and isinstance(data, dict) and data.get("ran") is False:
        data, is_maker = {"ran": False}, False
    return cls(
        str(value["message"])[:MAX_MESSAGE_TEXT],
        str(value["hint"])[:MAX_MESSAGE_TEXT],
        data if isinstance(data, dict) and not is_maker else None,
    )
