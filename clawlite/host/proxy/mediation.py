"""The loop of one mediated request: rounds whose calls are all managed run here, hidden from the
runner (Clawdapus ADR-020, "Mediated execution").

    only managed calls                  run in their order; the model is asked again
    only calls of the runner            the answer is the runner's
    managed calls, then the runner's    the managed ones run; the model says the rest again later
    anything else                       nothing runs; the model is told what to do instead
    no call                             the answer is the runner's

1. A tool that nobody declared fails closed: the model gets an error, and nothing runs.
2. Whatever a call comes to is a result for the model, never an error of the request.
3. Rounds stay in ``hidden`` also when the request fails: what has run must not run again.
4. Before each call the round is kept as one in which that call may have run: the process can end
   in any moment after that.
"""

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple

from clawlite.core.base.errors import ClawError
from clawlite.host.proxy.dialect import MAX_CALLS, Refused, add_usage, json_text
from clawlite.protocols.services.service_call import failure, make_timeout

MAX_ROUNDS = 8  # the budgets of ADR-020
TOOL_MS = 30000
TOTAL_MS = 120000
MAX_RESULT = 16384
_TRACED = 4096  # bytes of a result that the history keeps
_MAY_HAVE_RUN = failure("interrupted", "it was interrupted; it may have run")
_NOT_RUN = failure("interrupted", "it was not run")
_ORDER = (
    "Nothing was run: this answer mixes tools of services with other tools in an order that cannot "
    "be kept. Call the tools of services first (%s), and the other tools in a later answer."
)


class Budget:
    """What one request may take.

    rounds, tool_ms, total_ms, result_bytes   int, of rounds, a call, all of it, a result as JSON
    """

    def __init__(self, rounds=MAX_ROUNDS, tool_ms=TOOL_MS, total_ms=TOTAL_MS, result=MAX_RESULT):
        self.rounds, self.tool_ms, self.total_ms, self.result_bytes = (
            rounds,
            tool_ms,
            total_ms,
            result,
        )


class Managed(NamedTuple):
    """What is run and fetched here for one runner.

    tools    list of ``Tool``
    call     coroutine function(tool, arguments, id of the request) -> result
    budget   ``Budget``
    context  coroutine function() -> text that a model reads before the conversation; or None
    """

    tools: list
    call: Callable
    budget: Budget
    context: Callable | None = None


class Mediation:
    """One request.

    dialect  see dialect.py
    tools    list of ``Tool``, at least one
    call     coroutine function(tool, arguments) -> result ({"ok": ...})
    ask      coroutine function(body) -> answer of the provider, a dict
    loads    function(bytes) -> value of JSON, raises ``ParseError``
    keep     coroutine function(messages, is_lasting): the hidden ones, if the request ends now;
             is_lasting: they outlive the process when it returns, or it raises ``ClawError``
    Public, to be read: ``hidden`` (messages of hidden rounds), ``trace`` (as the history has it),
    ``usage`` (of all answers), ``rounds`` (answers of the provider), ``has_run`` (a tool was
    called).
    """

    def __init__(self, dialect, tools: list, call, ask, loads, budget: Budget, keep, hidden=()):
        self._dialect, self._call, self._ask, self._loads = dialect, call, ask, loads
        self._keep = keep
        self._tools = {tool.alias: tool for tool in tools}
        self._budget = budget
        self.hidden, self.trace, self.usage = list(hidden), [], None
        self.rounds = 0
        self.has_run = bool(hidden)

    async def run(self, body: dict) -> dict:
        """Return the answer for the runner.

        body  the runner's, with the rounds of earlier turns in its conversation
        Raises ``Refused``, and what ``ask`` raises.
        """
        own = self._dialect.own_names(body)
        if both := sorted(own & set(self._tools)):
            raise Refused(
                400,
                f"tools: {both[0]} is the name of a managed tool",
                "give the runner's own tool another name",
            )
        self._dialect.check(body)
        sent = self._dialect.offer(body, list(self._tools.values()))
        first = sent["messages"]
        try:
            async with asyncio.timeout(self._budget.total_ms / 1000) as limit:
                return await self._loop(own, sent, first)
        except TimeoutError:
            if not limit.expired():
                raise
            raise Refused(
                502,
                f"the request was not done after {self._budget.total_ms / 1000:g} s",
                "ask for less at once",
                kind="budget_exhausted",
            ) from None

    async def _loop(self, own: set, sent: dict, first: list) -> dict:
        while True:
            body = {**sent, "messages": first + self.hidden}
            if self.hidden:
                body = self._dialect.relax(body, set(self._tools))
            answer = await self._ask(body)
            self.rounds += 1
            usage = self._dialect.usage(answer)
            self.usage = add_usage(self.usage, usage)
            calls = self._dialect.calls(answer, self._loads)
            mine = [call.name in self._tools or call.name not in own for call in calls]
            if not any(mine):
                return answer
            count = len(calls) if all(mine) else mine.index(False)
            is_ordered = count > 0 and not any(mine[count:])
            if len(self.trace) >= self._budget.rounds:
                raise Refused(
                    502,
                    f"the budget of {self._budget.rounds} rounds of tools is used up",
                    "ask for less at once",
                    kind="budget_exhausted",
                )
            calls = calls[:count] if is_ordered else calls
            await self._round(answer, calls, is_ordered, usage)

    async def _round(self, answer: dict, calls: list, is_ordered: bool, usage) -> None:
        """Run *calls*, and add what they came to to the hidden messages, also when nobody waits
        any more.
        """
        read, written = self._dialect.tokens(usage)
        entries = []
        self.trace.append(
            {
                "round": len(self.trace) + 1,
                "tool_calls": entries,
                "round_usage": {"prompt_tokens": read, "completion_tokens": written},
            }
        )
        refusal = None
        if not is_ordered:
            refusal = failure("mixed_order", _ORDER % ", ".join(sorted(self._tools)))
        elif len(calls) > MAX_CALLS:
            refusal = failure("too_many_calls", f"expected at most {MAX_CALLS} calls in one answer")
        elif self._dialect.is_cut(answer):
            refusal = failure("cut", "the answer was cut at its maximum length; nothing was run")
        results, over = [], None
        for call in calls:
            begun = time.monotonic()
            if refusal or over:
                result = refusal or _NOT_RUN
            else:
                left = [_NOT_RUN] * (len(calls) - len(results) - 1)
                so_far = self._dialect.with_round(answer, calls, [*results, _MAY_HAVE_RUN, *left])
                try:
                    result = await self._result(call, self.hidden + so_far)
                except BaseException as e:  # also a bug: what has run must be known
                    over, result = e, _MAY_HAVE_RUN
            results.append(result)
            entries.append(self._make_trace(call, result, time.monotonic() - begun))
        self.hidden += self._dialect.with_round(answer, calls, results)
        if over:
            raise over
        await self._keep(self.hidden, False)

    async def _result(self, call, if_it_ends: list) -> dict:
        """Return what *call* comes to; *if_it_ends*: the hidden messages if nobody learns that."""
        tool = self._tools.get(call.name)
        if tool is None:
            return failure("unknown_tool", f"there is no tool {call.name}")
        if call.arguments is None:
            return failure("bad_argument", "expected arguments that are a JSON object")
        try:
            await self._keep(if_it_ends, True)
        except ClawError:  # it could run twice
            return failure("not_recorded", "it was not run: the gateway cannot record it")
        self.has_run = True
        try:
            async with asyncio.timeout(self._budget.tool_ms / 1000):
                result = await self._call(tool, call.arguments)
        except TimeoutError:
            return make_timeout(self._budget.tool_ms, self._budget.result_bytes)
        return cut_result(result, self._budget.result_bytes)

    def _make_trace(self, call, result: dict, seconds: float) -> dict:
        tool = self._tools.get(call.name)
        return {
            "name": tool.name if tool else call.name,
            "arguments": cut_arguments(call.arguments),
            "result": cut_result(result, _TRACED),
            "latency_ms": round(seconds * 1000),
            "service": tool.service if tool else None,
        }


def cut_result(result: dict, most: int) -> dict:
    """Return *result*, with its data cut when as JSON it has more than *most* bytes."""
    size = len(json_text(result).encode("utf-8", "replace"))
    if size <= most:
        return result
    if not result["ok"]:
        error = result["error"]
        return failure(error["code"], error["message"], most)
    data = result.get("data")
    data = data if isinstance(data, str) else json_text(data)
    made = {"ok": True, "data": "", "truncated": True, "original_bytes": 0}
    made["original_bytes"] = result.get("original_bytes", len(data.encode("utf-8", "replace")))
    room = max(0, most - len(json_text(made)))
    kept = data.encode("utf-8", "replace")[:room].decode("utf-8", "ignore")
    while kept and len(json_text({**made, "data": kept}).encode("utf-8", "replace")) > most:
        kept = kept[: len(kept) - max(1, len(kept) // 16)]  # what JSON escapes takes more
    return {**made, "data": kept}


def cut_arguments(arguments):
    said = json_text(arguments)
    return arguments if len(said) <= _TRACED else said[:_TRACED]
