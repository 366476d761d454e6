"""MCP servers that a gateway asks for its devices: each device has its own, started by the first
call of one of its tools (docs/mcp.md; linux/mcp/servers.py is the like for a device's own).

1. protocols/mcp/server_state.py decides when a server is started and ended, and which calls it
   gets.  Where its image says nothing, it is ended when no call has needed it for ``IDLE_S``.
2. The image that the device runs names the server and pins its tools; one that differs from its pin
   is refused.  The device says nothing but the name of a granted tool and its arguments.
3. A server on stdio runs here, contained as the Sandbox of that image says (program.py).
4. Tokens of OAuth are obtained here, for each device; no device sees one.  They come by client
   credentials, or in the name of a person who has signed in on this machine.
5. What a server tells of a call's progress goes to the *caller* of that call, if it wants it.
6. A server may ask a person during a call whose caller can ask one; the time of the call stands
   still meanwhile.  It is told that at its start, by the first call.
"""

import abc
import asyncio
import contextlib
import functools
import time
from typing import Any
from urllib.parse import urlsplit

from clawlite import __version__
from clawlite.core.base.effect import IS_OK, VALUE
from clawlite.core.base.errors import ClawError, wrap_error
from clawlite.core.base.render import canonical
from clawlite.core.image.image import LOCAL, MCP, SANDBOX, SERVICES
from clawlite.core.net import http1
from clawlite.core.net.oauth2 import Token, token
from clawlite.core.policy.approval import APPROVAL_S
from clawlite.core.providers.wire import Codec
from clawlite.host.base.problems import error_sentence
from clawlite.host.gateway.http import Connection, carry_out
from clawlite.host.gateway.program import Programs, quiet
from clawlite.host.gateway.service_calls import NOBODY, Caller, own_name
from clawlite.protocols.mcp.mcp_client import (
    ASKED,
    ELICIT,
    Broken,
    MCPClient,
    make_input_error,
)
from clawlite.protocols.mcp.mcp_http import HTTPClient, SessionEnded
from clawlite.protocols.mcp.server_state import MAX_UNSENT, Call, ServerState
from clawlite.protocols.net.device_flow import Ended, renew
from clawlite.protocols.net.netrules import authority, parse_url
from clawlite.protocols.services.service_call import (
    MEDIATED,
    SERVED,
    Service,
    ServiceResult,
    failure,
    make_timeout,
    refusal,
    result_of,
)

CONNECT_MS = 10000
SILENT_MS = 86400000  # of a stream that is listened to
IDLE_S = 600
ASK_S = APPROVAL_S + 60  # for an answer; a device whose line broke may need some time more
ANSWER_S = 120  # that a token endpoint may take, for all of its answer
AGAIN_S = 0.2  # between two looks whether another process has finished its renewal
# positions in a row of section MCP
_NAME, _ARGV, _ENV, _IS_HANDSHAKE, _PINS, _HEADERS, _TOKENS, _LIFE = range(8)


def is_program(row: list) -> bool:
    """Return whether *row*, of the section MCP, is a server on stdio."""
    return row[_ARGV][0].startswith("/")


def _programs_of(image):
    """Yield (name, [rule that only a sandbox enforces, ...]) of each program that a gateway starts
    for a device that runs *image*.
    """
    services = map(Service, image.section(SERVICES) or ())
    served = {one.name for one in services if one.scheme == SERVED and one.mode == MEDIATED}
    for row in image.section(MCP) or ():
        if is_program(row) and row[_NAME] in served:
            *_, hosts, cpu_s, folders = _start_of(row)
            rules = ("hosts", hosts is not None), ("cpu_s", cpu_s), ("mount_paths", folders)
            yield row[_NAME], [rule for rule, is_there in rules if is_there]


def _start_of(row: list) -> tuple:
    """Return the arguments of ``Programs.of`` for *row*, those after the image."""
    hosts, _, _, cpu_s, *folders = row[_LIFE]
    return row[_NAME], row[_ARGV], row[_ENV], hosts, cpu_s, folders[0] if folders else None


class _Call(Call):
    """One call under way; *future* gets its outcome, as ``MCPClient.feed`` gives it.

    limit  the ``asyncio.Timeout`` of its time
    """

    def __init__(self, tool: str, arguments: dict, caller: Caller, limit: asyncio.Timeout):
        super().__init__(tool, arguments, caller.watches)
        self.caller, self.limit = caller, limit
        self.one_by_one, self.asking = asyncio.Lock(), []  # questions to a person, and their tasks
        self.future = asyncio.get_running_loop().create_future()

    def settle(self, outcome: tuple) -> None:
        """Hand over the outcome, where somebody waits for it."""
        if not self.future.done():
            self.future.set_result(outcome)

    def refuse(self, code: str, message: str) -> None:
        """Say that no server got it."""
        if not self.future.done():
            self.future.set_exception(_NotMade(code, message))


class _NotMade(ClawError):
    """A call that no server got.  *code*: of the result that says so."""

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.result_code = code


class MCPServers:
    """All servers of a gateway.

    codecs    (loads, dumps)
    programs  ``Programs``, what starts those on stdio
    warn      function(text) for who runs the gateway
    secret    function(agent, name) -> value, with keep(agent, name, value) and renewal(agent, name)
              (linux/secrets/secrets.py) for people who have signed in; all may block
    """

    def __init__(self, codecs: tuple, programs: Programs, warn=lambda text: None, secret=None):
        self._codecs, self._programs, self._warn, self._secret = codecs, programs, warn, secret
        # (device, name of a server) -> (its _Server, the parts of the image that it depends on)
        self._servers: dict = {}
        self._ending: set = set()  # tasks that end a server or renew a token
        self._is_closing = False

    async def call(
        self,
        image,
        name: str,
        tool: str,
        arguments: dict,
        device: str,
        find,
        ms: int,
        most: int,
        caller: Caller = NOBODY,
    ):
        """Return the ``ServiceResult`` of a call of *tool* of the server *name* of *image*.

        find  coroutine function(name of a credential) -> value; raises ``ClawError``
        ms    the time that the call has;  most: bytes of the result
        """
        row = next(row for row in image.section(MCP) if row[_NAME] == name)
        server = self._server(device, image, row)
        try:
            async with asyncio.timeout(ms / 1000) as limit:
                try:
                    credentials = await _credentials(image, row, find)
                    if server.tokens is not None:
                        credentials.append(await server.tokens.header(find))
                except ClawError as e:
                    return refusal("no_credential", e.message, most)
                done, value = await server.call(_Call(tool, arguments, caller, limit), credentials)
        except TimeoutError:
            return make_timeout(ms, most)
        except _NotMade as e:
            return refusal(e.result_code, e.message, most)
        if not done:
            hint = " - " + value.hint if value.hint else ""
            return failure("failed", value.message + hint, most)
        found = ServiceResult(ok=True, data=value)
        if len(canonical(found).encode()) <= most:
            return found
        text = value if isinstance(value, str) else canonical(value)
        return result_of(200, text.encode("utf-8", "replace"), self._codecs[0], most)

    async def warnings(self, images) -> list[str]:
        """Return warnings about the programs of *images*, for the person who runs the gateway."""
        found: dict = {}  # name of a program -> its rules that only a sandbox enforces
        for image in images:
            for name, rules in _programs_of(image):
                found.setdefault(name, set()).update(rules)
        named = self._programs.uncontained
        lines = [
            f"--uncontained {name}: no project has a program of this name that a gateway starts"
            for name in sorted(named - set(found))
        ]
        for name in sorted(named & set(found)):
            rules = f", and nothing keeps its {', '.join(sorted(found[name]))}" * bool(found[name])
            lines.append(
                f"nothing contains the MCP server {name}: it may do what this user may{rules}"
            )
        left = sorted(set(found) - named)
        why = await self._programs.missing() if left else ""
        if why:
            lines.append(
                f"the MCP servers {', '.join(left)} are not started, because nothing here would "
                f"contain them: {why}, or name one that may run all the same: --uncontained NAME"
            )
        return lines

    def _server(self, device: str, image, row: list):
        key = device, row[_NAME]
        agent = image.agent.name  # whose tokens it sends
        rules = agent, row, image.section(SANDBOX), image.section(LOCAL)
        server, known = self._servers.get(key, (None, rules))
        if server is not None and known != rules:  # the device runs another image
            server.end("its agent was built anew")
            server = None
        if server is None:
            warn = lambda text: self._warn(f"{device}: {text}")
            if is_program(row):
                start = functools.partial(self._programs.of, image, *_start_of(row))
                server = _Program(row, self._codecs, self._later, warn, start)
            else:
                server = _Remote(row, self._codecs, self._later, warn)
            server.tokens = self._tokens(device, row[_TOKENS], agent)
            self._servers[key] = server, rules
        return server

    def _tokens(self, device: str, row, agent: str):
        if not row:
            return None
        *_, place = row
        if place is None:
            return _Tokens(row, self._codecs)
        return _PersonTokens(
            row, self._codecs, self._secret, agent, device, self._later, lambda: self._is_closing
        )

    def _later(self, work):
        """Carry out the coroutine *work*, and return its task; ``close`` waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    async def close(self) -> None:
        """End all of them."""
        self._is_closing = True
        for server, _ in self._servers.values():
            server.end("the gateway ends")
        while self._ending:  # gather would not let the loop go on when all of them are done
            await asyncio.wait(self._ending)


async def _credentials(image, row: list, find) -> list:
    """Return [(header, value)] that clawlite.toml's credentials give requests to the server of
    *row*.
    """
    host, local, found = urlsplit(row[_ARGV][0]).hostname, image.section(LOCAL), []
    for name, _, hosts, header, form in local[4] if local and host else ():
        if host in hosts:
            found.append((header, form.replace("{}", await find(name))))
    return found


class _Tokens:
    """The tokens of one device for one server, by client credentials; *row* as in section MCP."""

    def __init__(self, row: list, codecs: tuple):
        *self._row, self._name, self._resource, _ = row
        self._codec = Codec(*codecs)
        self._token: Token | None = None
        self._find: Any = None
        self._lock = asyncio.Lock()

    async def header(self, find) -> tuple:
        """Return the header Authorization; *find* as of ``MCPServers.call``.  Raises
        ``ClawError``.
        """
        self._find = find
        async with self._lock:
            if self._token is None or not self._token.lasts(_now_ms()):
                self._token = await self._another()
            return "Authorization", "Bearer " + self._token.value

    async def _another(self) -> Token:
        secret = await self._find(self._name)
        work = token(self._row, secret, self._codec, self, self._resource)
        return await self._await_answer(work)

    async def _await_answer(self, work):
        """Carry out *work*, whose answer may come a byte at a time, for ever."""
        try:
            return await asyncio.wait_for(carry_out(work), ANSWER_S)
        except TimeoutError:
            _, host, *_ = self._row
            raise ClawError(
                f"no token from {host}: it did not answer within {ANSWER_S} s",
                "look whether that server works, or name another token endpoint",
            ) from None

    async def another(self) -> tuple:
        """The server has refused the token: return the header with a new one."""
        self._token = None
        return await self.header(self._find)

    # -- the meter of core/net/oauth2.py

    def now_ms(self) -> int:
        return _now_ms()

    def now_s(self) -> int:
        return int(time.time())


class _PersonTokens(_Tokens):
    """The tokens of one device in the name of a person, who has signed in on this machine for that
    device, or for all (``clawlite secrets login``).

    1. One process renews at a time, and one task in it: a server may end a sign-in whose refresh
       token comes twice.
    2. A renewal goes on when the call that needed it is given up, because the server may have sent
       a new refresh token, which must not be lost.  Later calls wait for the same renewal.
    3. While another process renews, this one waits, but not beyond the end of the gateway.
    """

    def __init__(
        self, row: list, codecs: tuple, secret, agent: str, device: str, later, is_closing
    ):
        super().__init__(row, codecs)
        *_, place = row
        *_, self._client = place  # the name of the client's own secret, or ""
        self._loads = codecs[0]
        self._secret, self._agent = secret, agent
        self._later, self._is_closing = later, is_closing
        self._names = own_name(self._name, device), self._name
        self._renewing: asyncio.Task | None = None
        # the refresh token that could not be stored: {(name, value of the stored secret): token}
        self._unkept: dict = {}

    async def _another(self) -> Token:
        if self._renewing is None or self._renewing.done():
            self._renewing = self._later(self._renew_alone())
            self._renewing.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._renewing)

    async def _renew_alone(self) -> Token:
        name, _ = await self._find_sign_in()
        renewal = self._secret.renewal(self._agent, name)
        try:
            while not await _in_thread(renewal.take):
                if self._is_closing():
                    raise ClawError(f"{name} was not renewed: the gateway ends")
                await asyncio.sleep(AGAIN_S)
            self._token = await self._renew()  # kept, even if the call has been given up
            return self._token
        except OSError as e:
            raise ClawError(f"{name} cannot be renewed: {e.strerror}") from None
        finally:
            renewal.release()

    async def _find_sign_in(self) -> tuple:
        """Return (name of the secret, refresh token).  Raises ``ClawError``."""
        for name in self._names:
            try:
                return name, await _in_thread(self._secret, self._agent, name)
            except ClawError as e:
                if not getattr(e, "is_missing", False):
                    raise
        raise ClawError(f"a person has to sign in first, {self._how()}")

    async def _renew(self) -> Token:
        name, written = await self._find_sign_in()
        used = self._unkept.get((name, written), written)
        own = await self._find(self._client) if self._client else ""
        work = renew(self._row, used, self._codec, self._loads, self, self._resource, own)
        try:
            found, refresh = await self._await_answer(work)
        except Ended as e:
            self._unkept = {}
            message = f"{e.message}: the person has to sign in again, {self._how()}"
            raise ClawError(message) from None
        self._unkept = {}
        if refresh != written:
            try:
                await _in_thread(self._secret.keep, self._agent, name, refresh)
            except (OSError, ClawError):  # no room: the next renewal tries again to store it
                self._unkept = {(name, written): refresh}
        return found

    def _how(self) -> str:
        return f"at the gateway: clawlite secrets login {self._name}"


async def _in_thread(work, *args):
    return await asyncio.get_running_loop().run_in_executor(None, work, *args)


class _Server(ServerState, abc.ABC):
    """One server of one device, begun when it is first called; *later* as ``MCPServers._later``."""

    _has_gone = False  # a program has closed its stdout: nothing is sent any more
    _can_ask = False  # whether the server was told that a person can be asked
    _asks = False  # for a token, before which nothing is sent

    def __init__(self, row: list, codecs: tuple, later, warn):
        _, idle_s, life_s, *_ = row[_LIFE]
        super().__init__(row[_NAME], row[_PINS], 1000 * (idle_s or IDLE_S), 1000 * life_s, warn)
        self.row, self._codecs, self._later = row, codecs, later
        self.tokens: _Tokens | None = None
        self._credentials: list = []
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None  # of ``due_ms``

    async def call(self, call: _Call, credentials: list) -> tuple:
        """Return the outcome of a call.  Raises ``_NotMade``."""
        self._credentials = credentials
        if self.client is None:
            pause_ms = self.pause_ms(_now_ms())
            if pause_ms:
                raise _NotMade(
                    "unreachable",
                    f"the MCP server {self.name} has failed {self.failures} times in a row: "
                    f"{self.why}; nothing was called, try again in {-(-pause_ms // 1000)} s",
                )
            self._can_ask = call.caller.asks
            self.begin(self._open(), _now_ms())
        self._count += 1
        number = self._count
        self.add(number, call)
        self._go_on()
        try:
            done, value = await call.future
            if call.note and not done:
                value.message += " - during the call " + call.note
            return done, value
        except asyncio.CancelledError:  # nobody waits for it, or its time is over
            if self.give_up(number, call.limit.expired(), _now_ms()):
                self._fail("two calls in a row were not answered in time")
            else:
                self._go_on()
            raise
        finally:
            for task in call.asking:
                task.cancel()
            self.calls.pop(number, None)
            self._check_time()

    # -- what a transport does

    @abc.abstractmethod
    def _open(self) -> MCPClient:
        """Start the program, or begin to connect; return the client."""

    @abc.abstractmethod
    def _flush(self) -> None:
        """Send what the client has to say.  Raises ``ClawError``."""

    @abc.abstractmethod
    def _close(self) -> None:
        """End the program or the connections."""

    def _errors(self) -> str:
        return ""

    # -- one conversation

    def _go_on(self) -> None:
        """Send what can be sent."""
        if self.client is None or self._has_gone:
            return
        now_ms = _now_ms()
        try:
            self.tick(now_ms)
            for _, call, error in self.send_calls(now_ms):
                if error is None:
                    self._refuse_changed(call)
                else:
                    call.refuse("bad_argument", error.message)
            self._flush()
            self._wait()
        except ClawError as e:
            self._handle_error(e)

    def _refuse_changed(self, call: _Call) -> None:
        call.refuse("changed", f"the MCP server {self.name} {self.find_difference(call.tool)}")

    def _wait(self) -> None:
        """Set a timer for the time at which something is due."""
        if self._timer is not None:
            self._timer.cancel()
        due_ms, self._timer = self.due_ms(self._asks or self._has_gone), None
        if due_ms is not None:
            left_s = max(due_ms - _now_ms(), 0) / 1000
            self._timer = asyncio.get_running_loop().call_later(left_s, self._wake)

    def _wake(self) -> None:
        why = self.check_ready(_now_ms())
        if why:
            self._fail(why)
        elif self._check_time():
            self._go_on()

    def _check_time(self) -> bool:
        """End the server if its time is over; return whether it runs."""
        if self.client is not None and self.is_over(_now_ms()):
            self.end("its time is over")
        self._wait()
        return self.client is not None

    def _take(self, done: list, is_blank: bool = False) -> None:
        """Take what a client makes of what has come; blank lines are no sign that it works."""
        if not is_blank:
            self.note_sign()
        if self.client is not None:
            told, self.client.progress = self.client.progress, {}
            for number in told.keys() & self.calls.keys():
                self.calls[number].caller.report(told[number])
        for number, outcome in done:
            call = self.calls.get(number)
            if call is not None and not call.future.done():
                self.note_answer()
                if outcome[IS_OK] is ASKED:
                    self._take_questions(number, call, *outcome[VALUE])
                else:
                    call.settle(outcome)
        self._go_on()

    def _take_questions(self, key: int, call: _Call, number, state, requests: dict) -> None:
        """Take what the server wants to know during *call* (``MCPClient.feed``).  Questions beyond
        the limit are refused at once, so that no server fills the memory with them.
        """
        if not call.has_asked_enough(requests):
            work = self._put_all(key, call, number, state, requests)
            call.asking.append(self._later(work))
        elif number is not None:
            self.client.answer(number, {"action": "decline"})
        else:
            call.settle((False, self.make_unfinished_error()))

    async def _put_all(self, key: int, call: _Call, number, state, requests: dict) -> None:
        """Put what the server wants to know during *call* to a person, and tell it what they say
        (``MCPClient.feed``).
        """
        client, answers = self.client, {}
        async with call.one_by_one:
            for name, params in requests.items():
                answers[name], why = await self._put(call, params)
                call.note = why or call.note
                if call.future.done():
                    return
                if answers[name] is None and number is None:
                    error = make_input_error({name: {"method": ELICIT, "params": params}})
                    call.settle((False, error))
                    return
        if client is not self.client or call.future.done():
            return
        if number is not None:
            client.answer(number, answers[""] or {"action": "decline"})
        elif self.find_difference(call.tool):
            self._refuse_changed(call)
        else:
            client.again(key, call.tool, call.arguments, answers, state)
        self._go_on()

    async def _put(self, call: _Call, params) -> tuple:
        """Return (what a person says to a question, or None: it was not put; what the call did not
        get, or "").
        """
        if not call.caller.asks or call.limit.expired():
            return None, "it asked a person, and nobody can be asked at the device"
        loop = asyncio.get_running_loop()
        left_s = (call.limit.when() or loop.time()) - loop.time()
        call.limit.reschedule(None)
        try:
            async with asyncio.timeout(ASK_S):
                answer, why = await call.caller.ask(self.name, params)
        except TimeoutError:
            answer, why = None, "the device did not say what a person answered"
        call.limit.reschedule(loop.time() + left_s)
        if answer is not None and answer["action"] != "accept":
            why = "a person was asked, and did not answer"
        return answer, why

    def _handle_error(self, e: ClawError) -> None:
        if isinstance(e, SessionEnded):
            if not self.is_anew:
                self._begin_anew(e.key)
                return
            self.note_refusal(e.key)
        self._fail(e.message + (f" - {e.hint}" if e.hint else ""))

    def _begin_anew(self, key) -> None:
        """A session has ended: begin another one.  When that ends, too, before it has answered any
        call, the server has failed.
        """
        for _, call in self.end_session(key):
            call.settle((False, self.make_lost_error("ended its session during the call")))
        self._close()
        self.begin(self._open(), _now_ms())
        self._go_on()

    def _fail(self, why: str) -> None:
        self.note_failure(why, self._errors(), _now_ms())
        self.end(self.why)

    def end(self, why: str) -> None:
        """End it, and the calls that it has."""
        if self.client is None:
            return
        for _, call in self.take_calls():
            if call.sent_ms is not None:
                call.settle((False, self.make_lost_error(f"failed during the call: {why}")))
            else:
                message = f"the MCP server {self.name} failed: {why}; nothing was called"
                call.refuse("unreachable", message)
        self._close()
        self.stop()
        self._wait()


class _Program(_Server):
    """A server on stdio; *start* returns its ``program.Program``, or raises ``ClawError`` or
    ``OSError``.
    """

    def __init__(self, row: list, codecs: tuple, later, warn, start):
        super().__init__(row, codecs, later, warn)
        self._start = start
        self._program: Any = None
        self._run: Any = None  # the task that reads

    def _open(self) -> MCPClient:
        self._has_gone = False
        self._run = asyncio.get_running_loop().create_task(self._live())
        is_handshake = self.row[_IS_HANDSHAKE]
        return MCPClient(self._codecs, __version__, _now_ms(), is_handshake, self._can_ask)

    async def _live(self) -> None:
        """Start it, and read what it says."""
        client, program = self.client, None
        try:
            program = self._start()
            await program.open()
            self._program = program
            self._go_on()
            while client is self.client and (data := await program.read()):
                self._take(client.feed(data), data.isspace())
            if client is self.client:
                self._has_gone = True
                await program.settle()
                if client is self.client:
                    self._fail("it ended")
        except ClawError as e:
            self._fail(error_sentence(e))
        except OSError as e:  # its folder, its sandbox or its pipes
            self._fail(f"{e.filename or self.row[_ARGV][0]}: {e.strerror or e}")
        except Exception as e:  # a bug: its calls are told at once, the gateway goes on
            if client is self.client:
                self._fail(error_sentence(wrap_error(e)))
        finally:
            if program is not None:
                self._later(program.end())

    def _errors(self) -> str:
        return self._program.errors() if self._program is not None else ""

    def _flush(self) -> None:
        if self._program is None:
            return
        out = self.client.out
        unread = self._program.write(bytes(out))
        out.clear()
        if unread > MAX_UNSENT:
            raise Broken(f"it has not read {MAX_UNSENT} bytes that it was sent")

    def _close(self) -> None:
        self._program = None
        run, self._run = self._run, None
        if run is not None and run is not asyncio.current_task():
            run.cancel()
            self._later(quiet(run))


class _Remote(_Server):
    """A server at a URL."""

    def _open(self) -> HTTPClient:
        self._exchanges: dict = {}  # key -> task
        url = parse_url(self.row[_ARGV][0])
        rest = self._codecs, __version__, _now_ms(), self.row[_IS_HANDSHAKE], self._can_ask
        self._asks = False
        return HTTPClient(url, *rest, self.tokens is not None)

    async def _renew(self, client) -> None:
        """Get another token: what was refused is sent once more with it."""
        assert self.tokens is not None  # the client renews none else
        try:
            header = await self.tokens.another()
            own = [one for one in self._credentials if one[0] != "Authorization"]
            self._credentials = [*own, header]
        except ClawError as e:
            if client is self.client:
                self._fail(e.message)
            return
        finally:
            self._asks = False
        if client is self.client:
            self._go_on()

    def _flush(self) -> None:
        client = self.client
        if client.take_refusal():
            self._asks = True
            self._later(self._renew(client))
        if self._asks:
            return
        for wanted in client.requests(_now_ms()):
            self._exchanges[wanted[0]] = asyncio.get_running_loop().create_task(
                self._exchange(client, *wanted)
            )
        for key in client.closed:
            task = self._exchanges.pop(key, None)
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        client.closed.clear()

    async def _exchange(self, client, key, verb: str, target: str, headers: list, body) -> None:
        connection = self._connection(client.url, verb, target, headers, body)
        try:
            while client is self.client and key in self._exchanges:
                done, data = await connection.receive(SILENT_MS)
                kind = ("data" if data else "end") if done else "error"
                took = client.take(key, kind, data if done else data.message, _now_ms())
                self._take(took)
                if kind != "data":
                    break
        except ClawError as e:
            if client is self.client:
                self._handle_error(e)
        finally:
            connection.close()

    def _connection(self, url: tuple, verb: str, target: str, headers: list, body) -> Connection:
        scheme, host, port, _ = url
        own = [tuple(header) for header in self.row[_HEADERS]]
        size = None if body is None else len(body)
        try:
            place = authority(scheme, host, port)
            head = http1.request(verb, target, place, own + self._credentials + headers, size)
        except ValueError as e:
            raise Broken(f"its request cannot be sent: {e}") from None
        return Connection(scheme, host, port, [head, body or b""], CONNECT_MS)

    def _close(self) -> None:
        client, exchanges = self.client, self._exchanges
        self._exchanges = {}
        for task in exchanges.values():
            if task is not asyncio.current_task():
                task.cancel()
                self._later(quiet(task))
        last = client.goodbye() if client is not None else None
        if last is not None:
            self._later(self._goodbye(client.url, *last[1:]))

    async def _goodbye(self, url: tuple, verb: str, target: str, headers: list, body) -> None:
        """End the session; the server does that by itself, too."""
        with contextlib.suppress(ClawError):
            connection = self._connection(url, verb, target, headers, body)
            try:
                await connection.receive(1000)
            finally:
                connection.close()


def _now_ms() -> int:
    return int(time.monotonic() * 1000)
