"""The mediating proxy (Clawdapus ADR-020; docs/proxy.md): runners that are not clawlite ask the
providers of an agent, and its service tools run here.

1. A runner is who has a token; it speaks for the agent of its name, or for the only one.
2. Without managed tools a request goes on as it is, and the bytes of its answer come back as they
   are.  With them it goes on without streaming, and ``Mediation`` runs its hidden rounds.
3. Each request is one row of the history, also one that failed or that nobody waited for.
4. What fails here is 502, and what a provider refuses keeps its own status.
"""

import asyncio
import contextlib
import json
import time

from clawlite.core.base.errors import ClawError, ParseError, ProviderError, TransientError
from clawlite.core.policy.ledger import count_use
from clawlite.core.providers.provider import Provider
from clawlite.host.base.problems import client_sentence, error_sentence
from clawlite.host.proxy.amounts import amount, check_charges
from clawlite.host.proxy.anthropic import Anthropic
from clawlite.host.proxy.continuity import Continuity
from clawlite.host.proxy.dialect import OWNER, Refused, json_text
from clawlite.host.proxy.http_server import HTTPServer, Unread, bearer_of, body_of
from clawlite.host.proxy.mediation import Managed, Mediation
from clawlite.host.proxy.openai import OpenAI
from clawlite.host.proxy.text_calls import with_text_calls
from clawlite.host.proxy.upstream import (
    MAX_ANSWER,
    Failed,
    Outgoing,
    RunnerMeter,
    Upstream,
    first_piece,
    read,
)
from clawlite.host.proxy.usage import MAX_SAID, UsageReader
from clawlite.protocols.image.features import LOCAL_API

MAX_REQUESTS = 512  # of all runners at once
FIRST_S, KEEP_ALIVE_S = 1, 5  # until a stream says that it lives, and between two such comments
_DIALECTS = (OpenAI(), Anthropic())
# what runners ask for that is not here, and what to ask instead
# what a value of a wrong type raises where a form is taken for granted
_WRONG_TYPES = (TypeError, AttributeError, LookupError, ValueError)
_REFUSED = {
    "/v1/responses": "the Responses API is not spoken here - use POST /v1/chat/completions",
    "/v1/completions": "the API of completions is not spoken here - use POST /v1/chat/completions",
    "/v1/messages/count_tokens": "tokens are not counted here - read usage of an answer",
}
# of an answer, what belongs to one connection, or would be the gateway's own word
_HOP = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "date",
    "server",
    "alt-svc",
}


class Runner:
    """Who asks: its name, and the ``image.Image`` of the agent that it speaks for.

    managed  see ``Proxy``
    """

    def __init__(self, name: str, image, loads, dumps, spent, known=None):
        self.name, self.image = name, image
        info = image.agent
        rows = [image.provider(number - 2) for number in info.providers if number >= 2]
        rows = [row for row in rows if row[1] != LOCAL_API]  # it calls tools, and writes no text
        self.providers = [Provider(row, loads, dumps, 0, known=known) for row in rows]
        self.managed = Managed([], None, None)
        self.meter = RunnerMeter(_clock, spent, info.tokens_per_hour, info.cost_per_day, info.rates)

    def order(self, dialect, model) -> list:
        """Return the providers to ask for *model*, a model or a provider's name.  Raises
        ``Refused``.
        """
        mine = [provider for provider in self.providers if provider.kind == dialect.kind]
        if not mine:
            other = next(each for each in _DIALECTS if each is not dialect)
            raise Refused(
                404,
                f"no provider of {self.image.agent.name} speaks this API",
                f"use POST {other.path}" if self.providers else "its providers are not remote",
                "model_not_found",
            )
        for number, provider in enumerate(mine):
            if model in (provider.model, provider.name):
                return mine[number:]
        names = ", ".join(dict.fromkeys(provider.model for provider in mine))
        raise Refused(
            404, f"model: expected one of {names}, found {str(model)[:80]}", kind="model_not_found"
        )


class Proxy:
    """All runners, and what they share.

    agents  function() -> {name: ``image.Image``} of the projects
    is_right  function(name, token) -> bool
    store   ``store.Store``
    secret  function(agent, name) -> value; may block
    note    function(text) for who runs the gateway
    codecs  (loads, dumps)
    managed  function(runner) -> ``mediation.Managed``, asked once for each runner
    strangers  see ``HTTPServer``
    """

    def __init__(self, agents, is_right, store, secret, note, codecs, managed, strangers=None):
        self._agents, self._is_right, self._store, self._note = agents, is_right, store, note
        self._codecs, self._managed = codecs, managed
        self._upstream = Upstream(secret, note)
        self._runners = {}  # (name, image) -> Runner
        self._continuity = Continuity(store.hidden, store.hide, store.unhide)
        self._open = 0
        self._tasks = set()  # requests, and rows that are written: ``close`` waits for them
        self.first_s, self.keep_alive_s = FIRST_S, KEEP_ALIVE_S
        routes = [("POST", dialect.path, self._handler(dialect)) for dialect in _DIALECTS]
        routes.append(("GET", "/v1/models", self._models))
        self._server = HTTPServer(routes, self._missing, note, strangers)

    async def open(self, address: str, certificate=None, key=None) -> str:
        """Listen; return the address with its port.  Raises ``ClawError``."""
        return await self._server.open("--proxy", address, certificate, key)

    async def close(self) -> None:
        """Refuse runners, cancel what they asked, and return once all of it is on record."""
        await self._server.close()
        while self._tasks:  # the server forgets a request whose connection is gone
            await asyncio.wait(self._tasks)
        await self._upstream.close()

    def _start(self, coroutine):
        """Return *coroutine* as a task that ``close`` waits for."""
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -- the caller

    def _runner(self, request) -> Runner:
        """Return the runner that sent *request*.  Raises ``Refused``."""
        given = bearer_of(request)
        key = request.headers.get("x-api-key", "") if given is None else given
        name, _, token = key.partition(":")
        if not self._is_right(name, token):
            self._note(f"a client at {request.remote} has a wrong token")
            raise Refused(
                401,
                "expected the token of a runner as a bearer, NAME:TOKEN",
                "clawlite gateway token NAME --for proxy makes one",
                "invalid_api_key",
            )
        agents = self._agents()
        image = agents.get(name) or (next(iter(agents.values())) if len(agents) == 1 else None)
        if image is None:
            raise Refused(
                403,
                f"no agent is called {name}, and there are several: {', '.join(sorted(agents))}"
                if agents
                else "the gateway knows no agent",
                "clawlite gateway token AGENT --for proxy makes the token of its runner",
            )
        place = name, id(image)
        if place not in self._runners:
            spent = lambda: self._store.meters(name, image.agent.name)
            runner = Runner(name, image, *self._codecs, spent, self._store.dialects)
            runner.managed = self._managed(runner)
            self._runners[place] = runner
        return self._runners[place]

    async def _models(self, request):
        """Answer GET /v1/models: what this runner may ask for, in a form that both APIs read."""
        from aiohttp import web

        try:
            runner = self._runner(request)
        except Refused as e:
            dialect = _DIALECTS["anthropic-version" in request.headers]
            return web.json_response(
                dialect.problem(e.status, client_sentence(e), e.kind), status=e.status
            )
        listed = [
            {
                "id": model,
                "object": "model",
                "type": "model",
                "display_name": model,
                "created": 0,
                "created_at": "1970-01-01T00:00:00Z",
                "owned_by": "clawlite",
            }
            for model in dict.fromkeys(provider.model for provider in runner.providers)
        ]
        return web.json_response({"object": "list", "data": listed, "has_more": False})

    async def _missing(self, request):
        from aiohttp import web

        paths = ", ".join(f"POST {dialect.path}" for dialect in _DIALECTS)
        said = _REFUSED.get(
            request.path.rstrip("/"),
            f"{request.method} {request.path[:80]} is not here - expected {paths}, GET /v1/models",
        )
        dialect = _DIALECTS[request.path.startswith(_DIALECTS[1].path)]
        return web.json_response(dialect.problem(404, said, "unknown_url"), status=404)

    # -- one request

    def _handler(self, dialect):
        async def handle(request):
            return await self._start(self._turn(request, dialect))

        return handle

    async def _turn(self, request, dialect):
        turn = None
        try:
            runner = self._runner(request)
            raw = await body_of(request)
            body = _parse(raw, self._codecs[0])
            providers = runner.order(dialect, body["model"])
            amount(body)
            check_charges(body, runner.meter.counts_money)
            if self._open >= MAX_REQUESTS:
                raise Refused(429, f"{MAX_REQUESTS} requests are under way already", "try later")
            turn = Turn(runner, dialect, providers, raw, body, request)
            self._open += 1
            try:
                return await self._answer_turn(turn)
            finally:
                self._open -= 1
        except asyncio.CancelledError:
            if turn and turn.outcome != "ok":
                turn.outcome = "cancelled: the runner went away"
            raise
        except Exception as e:
            return await self._answer_error(request, dialect, turn, e)
        finally:
            if turn:
                await asyncio.shield(self._start(self._record(turn)))

    async def _answer_turn(self, turn: "Turn"):
        self._store.event(
            turn.runner.name, "request.began", request=turn.id, provider=turn.provider
        )
        if turn.runner.managed.context:
            turn.context = await turn.runner.managed.context()
        if turn.runner.managed.tools:
            return await self._mediate(turn)
        return await self._pass_on(turn)

    async def _pass_on(self, turn: "Turn"):
        """Send the request on as it is, and its answer back as it is."""
        from aiohttp import ClientConnectionResetError, ClientError, web

        turn.rounds = 1
        raw = None if turn.context else turn.raw
        response, first = await self._ask(
            turn, raw, turn.in_context(turn.body), self._make_take(turn)
        )
        try:
            kind = response.headers.get("Content-Type", "")
            turn.reader = UsageReader(turn.dialect, self._codecs[0], "event-stream" in kind)
            out = web.StreamResponse(status=response.status)
            for name, value in response.headers.items():
                if name.lower() not in _HOP:
                    out.headers.add(name, value)
            out.content_length = response.content_length
            await out.prepare(turn.request)
            turn.is_begun = True
            if first:
                turn.reader.feed(first)
                await out.write(first)
            async for piece in response.content.iter_any():
                turn.reader.feed(piece)
                await out.write(piece)
            turn.outcome = "ok"  # a runner may go as soon as it has the last byte
            await out.write_eof()
        except ClientConnectionResetError:
            raise  # the runner's connection
        except (ClientError, TimeoutError) as e:
            raise ProviderError(f"the answer broke off: {e or type(e).__name__}") from None
        finally:
            response.close() if not response.content.at_eof() else response.release()
        return out

    def _make_take(self, turn: "Turn"):
        """Return the ``take`` of an answer that passes through: it gives the response and the
        first bytes of its body.  An answer that is the report of a failure that may pass is none.
        """

        async def take(response) -> tuple:
            if "json" not in response.headers.get("Content-Type", "json"):
                return response, b""  # of a stream the head passes through at once
            first = await first_piece(response)
            try:
                found = self._codecs[0](first)
            except ParseError:
                return response, first
            e = turn.failure_in(found) if isinstance(found, dict) else None
            if isinstance(e, TransientError):
                raise e
            return response, first

        return take

    async def _mediate(self, turn: "Turn"):
        """Run the hidden rounds, and answer with what comes after them.  Until all of the answer
        has been written, the same request goes on from these rounds.
        """
        _check_form(turn.dialect, turn.body)
        talk = turn.runner.name, turn.dialect, turn.body["messages"]
        async with contextlib.AsyncExitStack() as alone:
            try:
                out = await _write_answer(turn, await self._answer(turn, alone))
            except BaseException:
                if turn.mediation:
                    self._continuity.note_pending(*talk, turn.mediation.hidden)
                raise
            self._continuity.forget(*talk)
        return out

    async def _answer(self, turn: "Turn", alone) -> dict:
        """Return the answer for the runner, whose stream is kept alive meanwhile."""
        task = asyncio.create_task(self._rounds(turn, alone))
        try:
            if turn.body.get("stream"):
                wait_s = self.first_s
                while not (await asyncio.wait({task}, timeout=wait_s))[0]:
                    wait_s = self.keep_alive_s
                    if turn.out is None:
                        await _begin_stream(turn)
                    await turn.out.write(b": working\n\n")
            return await task
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    async def _rounds(self, turn: "Turn", alone) -> dict:
        """Return the answer after the hidden rounds; *alone* (an exit stack) ends the hold on the
        conversation.
        """
        runner, dialect = turn.runner, turn.dialect
        tools, call, budget, _ = runner.managed
        visible = turn.body["messages"]
        talk = runner.name, dialect, visible
        await alone.enter_async_context(self._continuity.alone(*talk))
        restored = self._continuity.restore(*talk)

        async def keep(messages: list, is_lasting: bool) -> None:
            self._continuity.note_pending(*talk, messages)
            if is_lasting and not await self._store.flush():
                raise ClawError("gateway.db cannot be written", "look at the gateway's disk")

        turn.mediation = mediation = Mediation(
            dialect,
            tools,
            lambda tool, arguments: call(tool, arguments, turn.id),
            lambda body: self._ask_whole(turn, body),
            self._codecs[0],
            budget,
            keep,
            self._continuity.pending_rounds(*talk),
        )
        answer = await mediation.run(turn.in_context({**turn.body, "messages": restored}))
        del answer[OWNER]
        turn.said = dialect.text(answer)[:MAX_SAID]
        answer = dialect.show(answer, turn.body, mediation.usage)
        # before it is written: a runner that has read all of it may go, or ask on, at once
        self._continuity.note_answer(*talk, dialect.final(answer), mediation.hidden)
        return answer

    async def _ask_whole(self, turn: "Turn", body: dict) -> dict:
        """Ask a provider for a whole answer, and count it."""

        async def take(response) -> dict:
            try:
                data = await read(response, MAX_ANSWER)
            except TransientError as e:  # it counts all the same
                asked, received = len(json_text(body)), getattr(e, "received", 0)
                await self._spend(turn, asked // 4, received // 4)
                raise
            response.release()
            answer = turn.providers[0].codec.parse(data)
            try:  # now, so that the next provider of the chain can be asked
                if e := turn.failure_in(answer):
                    raise e
                turn.dialect.complete(answer)
                turn.dialect.calls(answer, self._codecs[0])
                turn.dialect.is_cut(answer)
            except _WRONG_TYPES as e:
                raise ProviderError(f"its answer has a value of a wrong type: {e}") from None
            return answer

        answer = await self._ask(turn, None, body, take)
        read_tokens, written = turn.dialect.tokens(turn.dialect.usage(answer))
        await self._spend(turn, read_tokens, written)
        self._release(turn)
        runner = turn.runner
        found = with_text_calls(
            turn.dialect, answer, turn.providers[0], runner.image, runner.managed.tools
        )
        return {**found, OWNER: turn.providers[0].key}

    async def _ask(self, turn: "Turn", raw, body: dict, take):
        outgoing = Outgoing(
            turn.providers,
            raw,
            body,
            {name.lower(): value for name, value in turn.request.headers.items()},
            turn.request.rel_url.raw_query_string,
            turn.runner.meter,
        )
        turn.under_way.append(outgoing)
        provider, taken = await self._upstream.ask(turn.runner.image.agent.name, outgoing, take)
        turn.provider, turn.model = provider.name, provider.model
        # all rounds of a turn stay with the provider that answered the first
        turn.providers = turn.providers[turn.providers.index(provider) :]
        return taken

    def _release(self, turn: "Turn") -> None:
        # an attempt that follows may hold again: they stay with the turn
        for outgoing in turn.under_way:
            outgoing.meter.release(outgoing)

    # -- what it comes to

    async def _answer_error(self, request, dialect, turn, e: Exception):
        """Answer with the error *e*."""
        from aiohttp import web

        if isinstance(e, ConnectionError):  # the runner's own: nobody is there to be told
            if turn:
                turn.outcome = "cancelled: the runner went away"
            raise e
        status, body, headers = 502, None, {}
        if isinstance(e, (Refused, Failed)):
            status, body = e.status, getattr(e, "body", None)
        elif isinstance(e, Unread):
            status = e.status
        elif not isinstance(e, ClawError):
            self._note(f"a request failed: {type(e).__name__}: {e}")
            e = ClawError("the proxy failed at this request", "its gateway says why")
        if turn:
            turn.outcome = error_sentence(e)
            self._note(f"{turn.runner.name}: {turn.provider}: {error_sentence(e)}")
            if turn.mediation and turn.mediation.has_run:
                headers["x-should-retry"] = "false"  # clients would ask all of it again
        if getattr(e, "after_ms", None) is not None:
            headers["Retry-After"] = str(-(-e.after_ms // 1000))
        problem = dialect.problem(status, client_sentence(e), getattr(e, "kind", ""))
        if turn and turn.out is not None:  # a stream has begun: its status is said
            await turn.out.write(dialect.problem_event(problem))
            await turn.out.write_eof()
            return turn.out
        if turn and turn.is_begun:  # bytes that pass through break off where they broke off
            request.transport.abort()
            raise ConnectionResetError
        return web.Response(
            body=body or json_text(problem).encode("utf-8", "replace"),
            status=status,
            headers=headers,
            content_type="application/json",
        )

    async def _record(self, turn: "Turn") -> None:
        """Write the row of the history, and count what an answer used that passed through."""
        (read_tokens, written), trace = (0, 0), []
        if turn.reader:
            turn.reader.end()
            turn.said = turn.reader.said
            read_tokens, written = turn.reader.tokens(len(turn.raw) // 4)
            await self._spend(turn, read_tokens, written)
        elif turn.mediation:
            read_tokens, written = turn.dialect.tokens(turn.mediation.usage)
            trace, turn.rounds = turn.mediation.trace, turn.mediation.rounds
        self._release(turn)
        self._store.event(
            turn.runner.name,
            "request.ended",
            request=turn.id,
            provider=turn.provider,
            outcome=turn.outcome,
        )
        self._store.note_request(
            turn.runner.name,
            turn.runner.image.agent.name,
            turn.provider,
            turn.id,
            turn.asked,
            turn.said,
            turn.outcome,
            model=turn.model,
            usage={
                "prompt_tokens": read_tokens,
                "completion_tokens": written,
                "total_rounds": turn.rounds,
            },
            tool_trace=trace,
        )

    async def _spend(self, turn: "Turn", read_tokens: int, written: int) -> None:
        runner, name = turn.runner, turn.runner.image.agent.name
        provider = next(each for each in runner.providers if each.name == turn.provider)
        entries = runner.meter.count_answer(provider, read_tokens, written)
        if entries:
            spent = self._store.meters(runner.name, name)
            count_use(spent, entries)
            self._release(turn)
            await self._store.spend(runner.name, name, spent)


class Turn:
    """One request of a runner, and what it came to.

    out        a stream that was begun for hidden rounds, or None
    context    what feeds say, or ""
    is_begun   bytes of an answer have passed through
    outcome    "ok", or a sentence
    """

    _count = 0

    def __init__(self, runner: Runner, dialect, providers: list, raw: bytes, body: dict, request):
        Turn._count += 1
        self.id = f"{int(time.time()):x}-{Turn._count}"
        self.runner, self.dialect, self.providers = runner, dialect, providers
        self.raw, self.body, self.request = raw, body, request
        self.provider, self.model = providers[0].name, providers[0].model
        self.out = self.reader = self.mediation = None
        self.is_begun, self.outcome = False, "it ended without an answer"
        self.said, self.rounds, self.context = "", 0, ""
        self.under_way: list = []  # ``Outgoing``s that hold tokens
        try:
            self.asked = _anchors(dialect, body)[-1][3][:MAX_SAID]
        except _WRONG_TYPES:  # the provider says what is wrong
            self.asked = ""

    def failure_in(self, answer: dict):
        """Return the error that *answer*, whose status says 200, reports, or None."""
        codec = self.providers[0].codec  # those of one API are alike
        if answer.get("error"):
            return codec.failure(answer)
        part = self.dialect.report(answer)
        return None if part is None else codec.failure(part, "error")

    def in_context(self, body: dict) -> dict:
        """Return *body* with what feeds say."""
        return self.dialect.in_context(body, self.context) if self.context else body


async def _write_answer(turn: Turn, answer: dict):
    """Return the response with *answer* when all of it has been written."""
    from aiohttp import web

    if turn.body.get("stream"):
        out = turn.out or await _begin_stream(turn)
        for event in turn.dialect.stream(answer, turn.body):
            await out.write(event)
    else:
        out = web.json_response(answer, dumps=json_text)
        await out.prepare(turn.request)
    turn.outcome = "ok"
    await out.write_eof()
    return out


async def _begin_stream(turn: Turn):
    """Return the begun stream of *turn*."""
    from aiohttp import web

    headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
    turn.out = web.StreamResponse(headers=headers)
    await turn.out.prepare(turn.request)
    return turn.out


def _parse(raw: bytes, loads) -> dict:
    """Return the body of a request.  Raises ``Refused``."""
    try:
        body = loads(raw)
    except ParseError as e:
        raise Refused(400, f"the body is no JSON: {e.message}") from None
    if not isinstance(body, dict):
        raise Refused(400, "the body: expected a JSON object")
    json.loads(raw.decode(), object_pairs_hook=_once)
    if not isinstance(body.get("model"), str):
        raise Refused(400, "model: expected a string")
    for name in ("messages", "tools", "functions"):
        value = body.get(name)
        if value is None and name != "messages":
            continue
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise Refused(400, f"{name}: expected a list of objects")
    if not body["messages"]:
        raise Refused(400, "messages: expected at least one")
    return body


def _once(pairs: list) -> None:
    """Raise ``Refused`` for a name that comes twice: the body may be passed on as it came, and a
    provider could read the other one.
    """
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise Refused(400, f"{twice[:40]}: expected it once in an object", "leave one of them out")


def _check_form(dialect, body: dict) -> None:
    """Raise ``Refused`` for a request that could not be mediated to its end: before any tool has
    run.
    """
    try:
        names = dialect.own_names(body)
        dialect.relax(dialect.offer(body, []), names)
        (body.get("stream_options") or {}).get("include_usage")
        _anchors(dialect, body)
    except _WRONG_TYPES as e:
        said = f"messages, tools, tool_choice or stream_options have a value of a wrong type: {e}"
        raise Refused(400, said, "send what the API describes") from None


def _anchors(dialect, body: dict) -> list:
    return dialect.anchors([*body["messages"], {"role": "assistant", "content": ""}])


def _clock() -> tuple:
    return time.monotonic_ns() // 1000000, int(time.time())
