"""Managed tools at the proxy, driven by the official clients of both APIs: which rounds run there,
what the runner sees of them, and what the next request brings back (Clawdapus ADR-020).
"""

import asyncio
import json
import threading

import pytest
from gateways import project
from later import Later
from llm_server import FAULTS, MODEL, Server, calls, error, say
from proxies import Desk, Proxied, run

from clawlite.host.proxy.dialect import Tool
from clawlite.host.proxy.mediation import Budget, cut_result

anthropic, openai = Later("anthropic"), Later("openai")
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
OWN = {"type": "object", "properties": {"path": {"type": "string"}}}
ASKED = [{"role": "user", "content": "how is it?"}]
READ = ("read_file", {"path": "a"})
MARKET = ("desk__market", {"symbol": "X"})
TRADE = ("desk__trade", {"side": "buy"})


class OpenAI:
    """The official client of OpenAI; answers come as (text, [(name, arguments), ...], message)."""

    api, protocol = "openai", "openai-compatible"

    def __init__(self, it, token=None):
        self.client = openai.AsyncOpenAI(
            api_key=token or it.token(), base_url=it.url + "/v1", max_retries=0, timeout=60
        )

    async def ask(self, messages, tools=True, stream=False, **more):
        if tools:
            more["tools"] = [
                {"type": "function", "function": {"name": "read_file", "parameters": OWN}}
            ]
        if not stream:
            answer = await self.client.chat.completions.create(
                model=MODEL, messages=messages, **more
            )
        else:
            more["stream_options"] = {"include_usage": True}
            async with self.client.chat.completions.stream(
                model=MODEL, messages=messages, **more
            ) as events:
                async for _ in events:
                    pass
                answer = await events.get_final_completion()
        message = answer.choices[0].message
        self.usage = answer.usage.prompt_tokens, answer.usage.completion_tokens
        found = [
            (call.function.name, json.loads(call.function.arguments))
            for call in message.tool_calls or ()
        ]
        kept = {"role": "assistant", "content": message.content}
        if message.tool_calls:
            kept["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
                for call in message.tool_calls
            ]
        return message.content or "", found, kept

    def result(self, message: dict, text: str) -> dict:
        return {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": text}


class Anthropic:
    """The official client of Anthropic."""

    api, protocol = "anthropic", "anthropic-native"

    def __init__(self, it, token=None):
        self.client = anthropic.AsyncAnthropic(
            api_key=token or it.token(), base_url=it.url, max_retries=0, timeout=60
        )

    async def ask(self, messages, tools=True, stream=False, **more):
        if tools:
            more["tools"] = [{"name": "read_file", "input_schema": OWN}]
        more = {"model": MODEL, "max_tokens": 100, "messages": messages, **more}
        if stream:
            async with self.client.messages.stream(**more) as events:
                answer = await events.get_final_message()
        else:
            answer = await self.client.messages.create(**more)
        self.usage = answer.usage.input_tokens, answer.usage.output_tokens
        blocks = [block.model_dump(exclude_none=True) for block in answer.content]
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        found = [(b["name"], b["input"]) for b in blocks if b["type"] == "tool_use"]
        kept = [
            {key: block[key] for key in ("type", "text", "id", "name", "input") if key in block}
            for block in blocks
        ]
        return text, found, {"role": "assistant", "content": kept}

    def result(self, message: dict, text: str) -> dict:
        id = next(b["id"] for b in message["content"] if b["type"] == "tool_use")
        block = {"type": "tool_result", "tool_use_id": id, "content": text}
        return {"role": "user", "content": [block]}


both = pytest.mark.parametrize("runner", [OpenAI, Anthropic])
streams = pytest.mark.parametrize("stream", [False, True])


def play(tmp_path, runner, script, talk, desk=None, **options):
    """Run ``talk(it, client, server)`` with the client *runner*; return (requests, desk)."""
    desk = desk or Desk()

    async def inside(it):
        await talk(it, runner(it), server)

    with Server(script, api=runner.api) as server:
        run(inside, tmp_path, server, runner.protocol, desk=desk, **options)
    return server.requests, desk


def names(request) -> list:
    return [tool.get("function", tool)["name"] for tool in request.body["tools"]]


@both
@streams
def test_managed_rounds_run_here_and_the_runner_sees_text(tmp_path, runner, stream):
    """ADR-020, "Managed calls only": validated, executed in order, the model asked again."""

    async def talk(it, client, server):
        text, found, _ = await client.ask(ASKED, stream=stream)
        assert (text, found) == ("Fifty.", [])
        assert client.usage == (57, 30), "the bill of all three answers"
        (row,) = await it.rows("SELECT said, outcome, usage, tool_trace FROM history")
        assert row[:2] == ("Fifty.", "ok")
        assert json.loads(row[2]) == {
            "prompt_tokens": 57,
            "completion_tokens": 30,
            "total_rounds": 3,
        }
        first, second = json.loads(row[3])
        assert first["round"] == 1 and second["round"] == 2
        assert first["round_usage"] == {"prompt_tokens": 19, "completion_tokens": 10}
        (call, _) = first["tool_calls"]
        assert call["name"] == "desk.market" and call["service"] == "desk"
        assert call["arguments"] == {"symbol": "X"} and call["latency_ms"] >= 0
        assert call["result"] == {"ok": True, "data": {"balance": 50}}

    requests, desk = play(
        tmp_path, runner, [calls(MARKET, TRADE), calls(MARKET), say("Fifty.")], talk
    )
    assert desk.calls == [
        ("desk.market", {"symbol": "X"}),
        ("desk.trade", {"side": "buy"}),
        ("desk.market", {"symbol": "X"}),
    ]
    assert [names(request) for request in requests] == [
        ["read_file", "desk__market", "desk__trade"]
    ] * 3
    assert not any(request.body.get("stream") for request in requests)
    assert "stream_options" not in requests[0].body
    assert '{\\"ok\\":true,\\"data\\":{\\"balance\\":50}}' in json.dumps(requests[1].body)


@both
@streams
def test_calls_of_the_runner_alone_are_its_own(tmp_path, runner, stream):
    async def talk(it, client, server):
        text, found, message = await client.ask(ASKED, stream=stream)
        assert found == [READ]
        text, _, _ = await client.ask([*ASKED, message, client.result(message, "x")], stream=stream)
        assert text == "It says x."

    requests, desk = play(tmp_path, runner, [calls(READ, text="Look."), say("It says x.")], talk)
    assert desk.calls == [] and len(requests) == 2


@both
@streams
def test_a_managed_prefix_runs_and_the_runners_rest_comes_later(tmp_path, runner, stream):
    """ADR-020: the runner-native suffix is occluded; the hand-over is reinserted."""

    async def talk(it, client, server):
        text, found, message = await client.ask(ASKED, stream=stream)
        assert found == [READ]
        text, _, _ = await client.ask([*ASKED, message, client.result(message, "x")], stream=stream)
        assert text == "Done."

    requests, desk = play(tmp_path, runner, [calls(MARKET, READ), calls(READ), say("Done.")], talk)
    assert desk.calls == [("desk.market", {"symbol": "X"})]
    second, third = (json.dumps(request.body["messages"]) for request in requests[1:])
    assert second.count('"read_file"') == 0 and second.count("desk__market") == 1
    assert third.count("desk__market") == 1 and "balance" in third, "the hidden round is there"
    assert third.index("desk__market") < third.index("read_file")


@both
@pytest.mark.parametrize("mixture", [(READ, MARKET), (MARKET, READ, TRADE), (READ, MARKET, READ)])
def test_other_mixtures_are_refused_with_an_instruction(tmp_path, runner, mixture):
    async def talk(it, client, server):
        text, found, _ = await client.ask(ASKED)
        assert (text, found) == ("Sorry.", [])

    requests, desk = play(tmp_path, runner, [calls(*mixture), say("Sorry.")], talk)
    assert desk.calls == []
    told = json.dumps(requests[1].body["messages"])
    assert told.count("Nothing was run") == len(mixture)
    assert "Call the tools of services first (desk__market, desk__trade)" in told


@both
def test_hidden_rounds_are_there_in_the_next_turns_and_after_a_restart(tmp_path, runner):
    """ADR-020, continuity: hidden tool rounds must not disappear between user turns."""

    async def inside(server):
        project(tmp_path / "garden", server.endpoint, protocol=runner.protocol)
        async with Proxied(tmp_path / "garden", desk=Desk()) as it:
            client = runner(it)
            _, _, first = await client.ask(ASKED)
            # a runner may put words around what a person said
            told = [{"role": "user", "content": "It is noon.\n\nhow is it?"}, first]
            _, _, second = await client.ask([*told, {"role": "user", "content": "sure?"}])
            talk = [*told, {"role": "user", "content": "sure?"}, second]
        async with Proxied(tmp_path / "garden", desk=Desk()) as it:
            await runner(it).ask([*talk, {"role": "user", "content": "and now?"}])
            other = runner(it, it.token("other"))
            await other.ask([*talk, {"role": "user", "content": "and now?"}])

    with Server(
        [calls(MARKET), say("Fifty."), say("Sure."), say("Still."), say("I saw none.")],
        api=runner.api,
    ) as server:
        asyncio.run(inside(server))
    counts = [json.dumps(r.body["messages"]).count("desk__market") for r in server.requests]
    assert counts == [0, 1, 1, 1, 0], "not for another runner"
    messages = server.requests[2].body["messages"]
    assert "It is noon." in json.dumps(messages[0]) and "desk__market" in json.dumps(messages[1])


@both
def test_the_same_answer_to_another_question_brings_nothing_back(tmp_path, runner):
    async def talk(it, client, server):
        _, _, message = await client.ask(ASKED)
        other = [{"role": "user", "content": "Greet me."}, message]
        await client.ask([*other, {"role": "user", "content": "and?"}])

    requests, _ = play(tmp_path, runner, [calls(MARKET), say("Fine."), say("Hm.")], talk)
    assert "desk__market" not in json.dumps(requests[2].body["messages"])


@both
def test_a_failed_request_that_comes_again_runs_nothing_twice(tmp_path, runner):
    async def talk(it, client, server):
        with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as e:
            await client.ask(ASKED)
        assert e.value.status_code == 503
        assert e.value.response.headers["x-should-retry"] == "false"
        ((outcome, trace),) = await it.rows("SELECT outcome, tool_trace FROM history")
        assert "provider remote: HTTP 503" in outcome and "desk.trade" in trace
        text, _, message = await client.ask(ASKED)
        assert text == "Bought."
        assert await it.rows("SELECT count(*) FROM hidden") == [(1,)], "that of the answer"

    script = [calls(TRADE), FAULTS["overloaded"], FAULTS["overloaded"], say("Bought.")]
    requests, desk = play(tmp_path, runner, script, talk)
    assert desk.calls == [("desk.trade", {"side": "buy"})]
    assert json.dumps(requests[3].body["messages"]).count("desk__trade") == 1


@both
def test_a_tool_that_nobody_declared_fails_closed(tmp_path, runner):
    async def talk(it, client, server):
        assert (await client.ask(ASKED))[:2] == ("Oh.", [])

    requests, desk = play(tmp_path, runner, [calls(("desk__sell_all", {})), say("Oh.")], talk)
    assert desk.calls == [] and "unknown_tool" in json.dumps(requests[1].body)


@both
def test_what_a_tool_fails_with_is_a_result(tmp_path, runner):
    """ADR-020: execution errors are fed back to the model as structured results."""

    def answer(tool, arguments):
        return {"ok": False, "error": {"code": "http_500", "message": "no"}}

    async def talk(it, client, server):
        assert (await client.ask(ASKED))[0] == "It failed."
        ((outcome, trace),) = await it.rows("SELECT outcome, tool_trace FROM history")
        assert outcome == "ok"
        assert json.loads(trace)[0]["tool_calls"][0]["result"]["error"]["code"] == "http_500"

    requests, _ = play(
        tmp_path, runner, [calls(MARKET), say("It failed.")], talk, desk=Desk(answer)
    )
    assert '\\"http_500\\"' in json.dumps(requests[1].body)


@both
def test_a_tool_that_takes_too_long(tmp_path, runner):
    async def never():
        await asyncio.Event().wait()

    async def talk(it, client, server):
        assert (await client.ask(ASKED))[0] == "Late."

    requests, _ = play(
        tmp_path,
        runner,
        [calls(MARKET), say("Late.")],
        talk,
        desk=Desk(lambda tool, arguments: never()),
        budget=Budget(tool_ms=1),
    )
    assert "Service did not respond within 1ms" in json.dumps(requests[1].body)


@both
@streams
def test_a_budget_of_rounds(tmp_path, runner, stream):
    """ADR-020: budget exhaustion is 502, with no partial text."""

    async def talk(it, client, server):
        with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as e:
            await client.ask(ASKED, stream=stream)
        assert e.value.status_code == 502
        assert "the budget of 2 rounds of tools is used up" in str(e.value)

    requests, desk = play(tmp_path, runner, [calls(MARKET)] * 3, talk, budget=Budget(rounds=2))
    assert len(desk.calls) == 2 and len(requests) == 3


@both
def test_a_budget_of_time(tmp_path, runner):
    async def talk(it, client, server):
        with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as e:
            await client.ask(ASKED)
        assert e.value.status_code == 502 and "not done after 0.2 s" in str(e.value)
        assert await asyncio.to_thread(server.gone.wait, 120), "nobody waits upstream either"

    play(tmp_path, runner, [FAULTS["stall before head"]], talk, budget=Budget(total_ms=200))


@pytest.mark.parametrize("size", [16383, 16384, 16385, 52000])
@pytest.mark.parametrize("letter", ["x", "é", '"', "\x01"])
def test_a_result_that_is_too_long_says_so(size, letter):
    """ADR-020: truncation MUST be explicit in the structured result."""
    frame = len(json.dumps({"ok": True, "data": ""}, separators=(",", ":")))
    data = letter * ((size - frame) // len(letter.encode()))
    found = cut_result({"ok": True, "data": data}, 16384)
    told = json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()
    assert len(told) <= 16384
    if letter == "x":
        assert ("truncated" in found) == (size > 16384)
    if "truncated" in found:
        assert found["ok"] and found["original_bytes"] == len(data.encode())
        assert data.startswith(found["data"]) and found["data"]
    failed = cut_result({"ok": False, "error": {"code": "x", "message": data}}, 16384)
    assert failed["error"]["code"] == "x" and len(failed["error"]["message"]) < 16384


def test_a_stream_is_kept_alive_while_tools_run(tmp_path):
    """ADR-020: harmless comments, never tokens, while hidden rounds run."""

    gate = asyncio.Event()

    async def slow():
        await gate.wait()
        return {"ok": True, "data": 1}

    async def talk(it, client, server):
        body = {"model": MODEL, "messages": ASKED, "stream": True}
        headers = {"Authorization": "Bearer " + it.token()}
        async with it.http.post(it.url + CHAT, json=body, headers=headers) as response:
            assert response.headers["Content-Type"] == "text/event-stream"
            assert (await response.content.readline()) == b": working\n"
            gate.set()
            rest = await response.content.read()
        events = [line for line in rest.split(b"\n") if line and not line.startswith(b":")]
        assert events[-1] == b"data: [DONE]" and b"Fifty." in b"".join(events)

    desk = Desk(lambda tool, arguments: slow())
    play(tmp_path, OpenAI, [calls(MARKET), say("Fifty.")], talk, desk=desk, first_s=0.01)


@both
def test_a_failure_after_the_stream_has_begun_is_an_event_of_the_api(tmp_path, runner):
    gate = threading.Event()

    def slow(request):
        gate.wait(120)
        return error(400, "Too long.")

    async def talk(it, client, server):
        body = {"model": MODEL, "max_tokens": 9, "messages": ASKED, "stream": True}
        headers = {"Authorization": "Bearer " + it.token()}
        path = CHAT if runner is OpenAI else MESSAGES
        async with it.http.post(it.url + path, json=body, headers=headers) as response:
            assert (await response.content.readline()) == b": working\n"
            gate.set()
            rest = (await response.content.read()).decode()
        assert "Too long." in rest and "[DONE]" not in rest
        assert ("event: error" in rest) == (runner is Anthropic)

    play(tmp_path, runner, [slow], talk, first_s=0.01)


@both
def test_a_runner_that_goes_away_leaves_what_has_run(tmp_path, runner):
    async def talk(it, client, server):
        asked = asyncio.create_task(client.ask(ASKED))
        await asyncio.to_thread(server.stalled.wait, 30)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert await asyncio.to_thread(server.gone.wait, 120)
        while not (rows := await it.rows("SELECT outcome FROM history")):
            await asyncio.sleep(0)
        assert rows == [("cancelled: the runner went away",)]
        assert (await client.ask(ASKED))[0] == "Bought."

    script = [calls(TRADE), FAULTS["stall before head"], say("Bought.")]
    _, desk = play(tmp_path, runner, script, talk)
    assert desk.calls == [("desk.trade", {"side": "buy"})]


def test_a_name_that_is_managed_already(tmp_path):
    async def talk(it, client, server):
        tools = [{"type": "function", "function": {"name": "desk__market"}}]
        with pytest.raises(openai.BadRequestError, match="the name of a managed tool"):
            await client.ask(ASKED, tools=False, extra_body={"tools": tools})
        with pytest.raises(openai.BadRequestError, match="n: expected 1"):
            await client.ask(ASKED, n=2)

    requests, _ = play(tmp_path, OpenAI, [], talk)
    assert requests == []


@pytest.mark.parametrize(
    "given, first, second",
    [
        (
            {"type": "function", "function": {"name": "desk.market"}},
            {"type": "function", "function": {"name": "desk__market"}},
            "auto",
        ),
        ("required", "required", "auto"),
        ("none", "none", "none"),
        (
            {"type": "function", "function": {"name": "read_file"}},
            {"type": "function", "function": {"name": "read_file"}},
            {"type": "function", "function": {"name": "read_file"}},
        ),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "required",
                    "tools": [{"type": "function", "function": {"name": "desk.market"}}],
                },
            },
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "required",
                    "tools": [{"type": "function", "function": {"name": "desk__market"}}],
                },
            },
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "auto",
                    "tools": [{"type": "function", "function": {"name": "desk__market"}}],
                },
            },
        ),
    ],
)
def test_tool_choice_of_openai(tmp_path, given, first, second):
    """ADR-020: a canonical name becomes the alias; after a hidden round nothing is forced."""

    async def talk(it, client, server):
        await client.ask(ASKED, tool_choice=given)

    requests, _ = play(tmp_path, OpenAI, [calls(MARKET), say("x")], talk)
    assert [request.body["tool_choice"] for request in requests] == [first, second]


@pytest.mark.parametrize(
    "given, first, second",
    [
        (
            {"type": "tool", "name": "desk.market", "disable_parallel_tool_use": True},
            {"type": "tool", "name": "desk__market", "disable_parallel_tool_use": True},
            {"type": "auto", "disable_parallel_tool_use": True},
        ),
        ({"type": "any"}, {"type": "any"}, {"type": "auto"}),
        ({"type": "none"}, {"type": "none"}, {"type": "none"}),
    ],
)
def test_tool_choice_of_anthropic(tmp_path, given, first, second):
    async def talk(it, client, server):
        await client.ask(ASKED, tool_choice=given)

    requests, _ = play(tmp_path, Anthropic, [calls(MARKET), say("x")], talk)
    assert [request.body["tool_choice"] for request in requests] == [first, second]


@streams
def test_legacy_functions_become_tools_and_come_back(tmp_path, stream):
    """ADR-020: functions[] are normalized into tools[] before they are merged."""
    functions = [{"name": "read_file", "parameters": OWN}]

    async def talk(it, client, server):
        async def ask(messages):
            made = await client.client.chat.completions.create(
                model=MODEL,
                messages=messages,
                functions=functions,
                function_call={"name": "read_file"},
                stream=stream,
            )
            if not stream:
                return made.choices[0].message.function_call, made.choices[0].finish_reason
            chunks = [chunk.choices[0] async for chunk in made if chunk.choices]
            return (
                next((c.delta.function_call for c in chunks if c.delta.function_call), None),
                chunks[-1].finish_reason,
            )

        call, reason = await ask(ASKED)
        assert (call.name, reason) == ("read_file", "function_call")
        told = {"name": call.name, "arguments": call.arguments}
        await ask(
            [
                *ASKED,
                {"role": "assistant", "content": None, "function_call": told},
                {"role": "function", "name": "read_file", "content": "x"},
            ]
        )

    requests, desk = play(tmp_path, OpenAI, [calls(MARKET), calls(READ), say("x")], talk)
    assert names(requests[0]) == ["read_file", "desk__market", "desk__trade"]
    assert "functions" not in requests[0].body and "function_call" not in requests[0].body
    assert requests[0].body["tool_choice"]["function"] == {"name": "read_file"}
    last = requests[2].body["messages"]
    assert [message["role"] for message in last] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ], "the hidden round is reinserted before the runner's own"


@both
@pytest.mark.parametrize("fault", ["html", "cut json", "empty", "close early"])
def test_an_answer_that_cannot_be_read(tmp_path, runner, fault):
    async def talk(it, client, server):
        with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as e:
            await client.ask(ASKED)
        assert e.value.status_code == 502 and "provider remote: " in str(e.value)

    play(tmp_path, runner, [FAULTS[fault]] * 2, talk)


@both
def test_too_many_calls_and_arguments_that_are_none(tmp_path, runner):
    many = [("desk__market", {"n": n}) for n in range(17)]
    broken = ("desk__market", '{"symbol": ')

    async def talk(it, client, server):
        assert (await client.ask(ASKED))[0] == "Sorry."

    requests, desk = play(tmp_path, runner, [calls(*many), calls(broken), say("Sorry.")], talk)
    assert desk.calls == []
    last = json.dumps(requests[2].body["messages"])
    assert last.count("too_many_calls") == 17 and last.count("bad_argument") == 1


def test_a_bug_of_the_proxy_is_502_and_the_gateway_goes_on(tmp_path):
    def answer(tool, arguments):
        raise RuntimeError("boom")

    async def talk(it, client, server):
        with pytest.raises(openai.APIStatusError) as e:
            await client.ask(ASKED)
        assert e.value.status_code == 502 and "boom" not in str(e.value)
        assert any("RuntimeError: boom" in note for note in it.notes)
        assert (await client.ask(ASKED))[0] == "Hi."

    requests, desk = play(tmp_path, OpenAI, [calls(MARKET, TRADE), say("Hi.")], talk, Desk(answer))
    assert desk.calls == [("desk.market", {"symbol": "X"})], "and not once more"
    assert json.dumps(requests[1].body["messages"]).count("may have run") == 1


SIGNED = {"extra_content": {"google": {"thought_signature": "c2lnbmVk"}}}


def _gemini(request):
    """Answer as Gemini 3 does: its calls have no id, and without their signatures are refused."""
    messages = request.body["messages"]
    for message in messages:
        for call in message.get("tool_calls", ()):
            if "extra_content" not in call or not call["id"]:
                return error(400, "Function call is missing a thought_signature.")
    if messages[-1]["role"] == "tool":
        return say("Fine.")
    function = {"name": "desk__market", "arguments": '{"symbol":"X"}'}
    call = {"id": "", "type": "function", "function": function, **SIGNED}
    message = {"role": "assistant", "content": None, "reasoning_details": [1], "tool_calls": [call]}
    return {"body": {"choices": [{"message": message, "finish_reason": "tool_calls"}]}}


def test_what_only_the_server_understands_comes_back_in_hidden_rounds(tmp_path):
    async def talk(it):
        status, _, body = await it.post(CHAT, {"model": MODEL, "messages": ASKED})
        assert status == 200 and b"Fine." in body, body

    with Server([_gemini] * 2) as server:
        run(talk, tmp_path, server, desk=Desk())
        (hidden, _) = server.requests[1].body["messages"][-2:]
        assert hidden["tool_calls"][0]["extra_content"] == SIGNED["extra_content"]
        assert hidden["reasoning_details"] == [1]


def test_what_only_the_server_understands_reaches_the_runner_in_a_stream(tmp_path):
    call = {"id": "", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    message = {"role": "assistant", "reasoning_details": [1], "tool_calls": [{**call, **SIGNED}]}
    own = [{"type": "function", "function": {"name": "read_file", "parameters": OWN}}]

    async def talk(it):
        body = {"model": MODEL, "messages": ASKED, "tools": own, "stream": True}
        status, _, said = await it.post(CHAT, body)
        chunks = [json.loads(line[6:]) for line in said.splitlines() if line[:7] == b"data: {"]
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
        ((given,),) = [delta["tool_calls"] for delta in deltas if "tool_calls" in delta]
        assert status == 200 and given["extra_content"] == SIGNED["extra_content"] and given["id"]
        assert [1] in [delta.get("reasoning_details") for delta in deltas]

    answer = {"body": {"choices": [{"message": message, "finish_reason": "tool_calls"}]}}
    with Server([answer]) as server:
        run(talk, tmp_path, server, desk=Desk())


TEXT = '<think>hm</think><tool_call>{"name": "%s", "arguments": {"where": "X"}}</tool_call>'


@both
@pytest.mark.parametrize(
    "name, beside, allowed, runs",
    [
        ("look", "", True, True),
        ("look", "", False, False),
        ("look", " and more", True, False),
        ("read_file", "", True, False),
    ],
)
def test_a_call_of_a_managed_tool_that_is_text(tmp_path, runner, name, beside, allowed, runs):
    class Garden(Desk):
        tools = [Tool("look", "look", "Look.", OWN, "desk")]

    text = TEXT % name + beside
    settings = '[dialect.remote]\ntext_calls = "run"\n' if allowed else ""

    async def inside(server):
        folder = tmp_path / "garden"
        project(folder, server.endpoint, protocol=runner.protocol, gateway=settings)
        async with Proxied(folder, desk=Garden()) as it, asyncio.timeout(60):
            said, found, _ = await runner(it).ask(ASKED)
            assert found == [] and said == ("Fine." if runs else text)
            assert it.desk.calls == [("look", {"where": "X"})] * runs

    with Server([say(text), say("Fine.")], api=runner.api) as server:
        asyncio.run(inside(server))
        assert len(server.requests) == 1 + runs
