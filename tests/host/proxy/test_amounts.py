"""What a runner asks for counts, whatever field says it; the tables are those of both vendors."""

import asyncio
import json
import typing

import pytest
import typing_extensions
from gateways import project
from llm_server import MODEL, Server, say
from proxies import Proxied, run

from clawlite.host.proxy import amounts
from clawlite.host.proxy.amounts import Amount, amount
from clawlite.host.proxy.anthropic import Anthropic
from clawlite.host.proxy.dialect import Refused
from clawlite.host.proxy.openai import OpenAI
from clawlite.host.proxy.usage import UsageReader

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
APIS = [("openai-compatible", "openai", CHAT), ("anthropic-native", "anthropic", MESSAGES)]
COUNTED = {*amounts.CHOICES, *amounts.LENGTHS, *(outer for outer, _ in amounts.INNER_LENGTHS)}
COUNTED |= {"prediction", "compaction", "context_management"}
REFUSED = {*amounts.MODELS, *amounts.ORDINARY, "modalities", "tools"}
# What of both vendors' types neither multiplies nor raises what is generated or charged: it is read
# (and counts as the bytes that it is), forms an answer, or stands for who asks.
FREE = """
audio betas billing_policy cache_control container diagnostics fallback_credit_token
frequency_penalty function_call functions logit_bias logprobs mcp_servers messages metadata model
moderation output_config parallel_tool_calls presence_penalty prompt_cache_key prompt_cache_options
prompt_cache_retention reasoning_effort response_format safety_identifier seed stop stop_sequences
store stream stream_options system temperature thread tool_choice top_k top_logprobs top_p user
user_profile_id verbosity workspace_id
""".split()


def asked(**more) -> dict:
    return {"model": MODEL, "messages": [{"role": "user", "content": "how is it?"}], **more}


def message(answer: bytes) -> str:
    return json.loads(answer)["error"]["message"]


def limited(folder, server, protocol: str, limit: str) -> None:
    project(folder, server.endpoint, protocol=protocol)
    claw = folder / "claw.yaml"
    claw.write_text(claw.read_text().replace("auth:", "limits: { %s }, auth:" % limit, 1))


def post(tmp_path, server, protocol: str, path: str, limit: str, body) -> tuple:
    """Return (status, body) of the answer to *body*, and what the provider was sent."""
    limited(tmp_path / "garden", server, protocol, limit)

    async def inside():
        async with Proxied(tmp_path / "garden") as it, asyncio.timeout(60):
            status, _, said = await it.post(path, body)
            return status, said

    return asyncio.run(inside())


# -- the vendors' own types


def _types() -> list:
    openai = pytest.importorskip("openai.types.chat.completion_create_params")
    older = pytest.importorskip("openai.types.completion_create_params")
    anthropic = pytest.importorskip("anthropic.types.message_create_params")
    beta = pytest.importorskip("anthropic.types.beta.message_create_params")
    return [
        openai.CompletionCreateParamsNonStreaming,
        anthropic.MessageCreateParamsNonStreaming,
        beta.MessageCreateParamsNonStreaming,
        older.CompletionCreateParamsNonStreaming,
    ]


def test_each_field_of_both_vendors_is_counted_refused_or_free():
    """A new field of theirs: does it multiply or raise what is generated or charged?"""
    *chats, older = [set(typing_extensions.get_type_hints(one)) for one in _types()]
    ours = COUNTED | REFUSED | set(FREE)
    assert set.union(*chats) - ours == set()
    assert not (set(FREE) & (COUNTED | REFUSED))
    # of the older API, which is not here: what servers took over from it, and what has no meaning
    assert older - ours == {"prompt", "suffix", "echo"}


def _inner(kind, seen: set):
    """Yield (name of a field, its type) of all objects in *kind*."""
    for one in typing.get_args(kind):
        yield from _inner(one, seen)
    if typing_extensions.is_typeddict(kind) and kind not in seen:
        seen.add(kind)
        for name, value in typing_extensions.get_type_hints(kind).items():
            yield name, value
            yield from _inner(value, seen)


def test_each_number_inside_a_field_of_both_vendors_is_known():
    """Numbers of tokens that stand deeper: in thinking, in tools, in edits of the context."""
    found = set()
    for kind in _types()[:3]:
        for field, value in typing_extensions.get_type_hints(kind).items():
            if field in ("messages", "system"):
                continue
            inner = _inner(value, set())
            found |= {(field, name) for name, kind in inner if kind in (int, int | None)}
    counted = {("thinking", "budget_tokens")}
    refused = {
        ("fallbacks", name) for name in ("max_tokens", "budget_tokens", "total", "remaining")
    }
    # what a tool may be called, and read, at most; what of a context is left out, and when
    lower = {
        ("tools", name)
        for name in ("max_uses", "max_content_tokens", "max_characters", "max_tokens")
    }
    shown = {"display_width_px", "display_height_px", "display_number"}
    lower |= {("tools", name) for name in shown} | {("context_management", "value")}
    lower |= {("output_config", "total"), ("output_config", "remaining")}
    assert found - counted - refused - lower == set()
    assert counted <= found


# -- what is counted


@pytest.mark.parametrize("name", amounts.CHOICES)
@pytest.mark.parametrize("value", ["5", 5.0, True, False, -1, 0, [], {}, 1e400])
def test_a_number_of_choices_of_a_wrong_type_is_refused(name, value):
    with pytest.raises(Refused, match="%s: expected a whole number of at least 1" % name) as e:
        amount(asked(**{name: value}))
    assert e.value.status == 400


@pytest.mark.parametrize("name", amounts.LENGTHS)
@pytest.mark.parametrize("value", ["5000", 5000.0, True, -5, -1, [5]])
def test_a_length_of_a_wrong_type_is_refused(name, value):
    with pytest.raises(Refused, match="%s: expected a whole number of at least 0" % name):
        amount(asked(**{name: value}))


@pytest.mark.parametrize("outer, name", amounts.INNER_LENGTHS)
def test_a_length_inside_counts_and_is_held_to_its_type(outer, name):
    assert amount(asked(max_tokens=10, **{outer: {name: 5000}})).total == 5000
    with pytest.raises(Refused, match=r"%s\.%s: expected a whole number" % (outer, name)):
        amount(asked(**{outer: {name: "5000"}}))
    with pytest.raises(Refused, match="expected it as " + name):
        amount(asked(**{outer: {name.upper(): 5000}}))


@pytest.mark.parametrize("key", ["N", "Best_Of", "Max_tokens", "MAX_TOKENS", "max_to\u212aens"])
def test_a_name_in_another_case_is_refused(key):
    """Go's JSON reads it as the field, U+212A (Kelvin) as a k."""
    with pytest.raises(Refused, match="expected it as " + key.casefold()):
        amount(asked(**{key: 1000}))


@pytest.mark.parametrize(
    "more, found",
    [
        ({}, Amount(1, None, 0)),
        ({"n": None, "max_tokens": None}, Amount(1, None, 0)),
        ({"n": 1, "max_tokens": 1}, Amount(1, 1, 0)),
        ({"max_tokens": 0}, Amount(1, 0, 0)),
        ({"n": 2, "best_of": 5, "max_tokens": 3, "max_completion_tokens": 9}, Amount(5, 9, 0)),
        ({"n": 10**9}, Amount(10**9, None, 0)),
        ({"prediction": {"type": "content", "content": "x" * 369}}, Amount(1, None, 100)),
        ({"compaction": {"type": "summarize"}, "max_tokens": 9}, Amount(1, 9, 4096)),
        (
            {"context_management": {"edits": [{"type": "compact_20260112"}, {"type": "clear_x"}]}},
            Amount(1, None, 4096),
        ),
        ({"context_management": {"edits": [5, {"type": 5}]}}, Amount(1, None, 0)),
    ],
)
def test_what_a_request_asks_for(more, found):
    assert amount(asked(**more)) == found


@pytest.mark.parametrize(
    "more",
    [
        {"n": 5, "max_tokens": 1000},
        {"n": 10**9},
        {"n": 10**9, "max_tokens": 10},
        {"best_of": 10**9, "n": 1},
        {"n": 2**31, "max_tokens": 1},
        {"max_completion_tokens": 5000, "max_tokens": 10},
        {"max_output_tokens": 10**6},
        {"n_predict": 10**6},
        {"thinking": {"type": "enabled", "budget_tokens": 10**6}, "max_tokens": 10},
        {"prediction": {"type": "content", "content": "x" * 9000}},
        {"compaction": {"type": "summarize"}, "max_tokens": 10},
    ],
)
@pytest.mark.parametrize("protocol, api, path", APIS)
def test_what_exceeds_a_limit_is_never_sent(tmp_path, protocol, api, path, more):
    with Server([], api=api) as server:
        status, said = post(
            tmp_path, server, protocol, path, "tokens_per_request: 2048", asked(**more)
        )
        assert status == 429 and "tokens_per_request is 2048" in message(said)
        assert server.requests == []


@pytest.mark.parametrize("more, count", [({"n": 100}, 100), ({"best_of": 20, "n": 2}, 20), ({}, 1)])
def test_what_is_left_is_divided_among_the_choices(tmp_path, more, count):
    """n without a length was sent with all that was left, for each of its answers."""
    with Server([say("Hi.")]) as server:
        limit = "tokens_per_request: 2048"
        status, said = post(tmp_path, server, APIS[0][0], CHAT, limit, asked(**more))
        assert status == 200, said
        sent = server.requests[0].body["max_tokens"]
        assert 1900 < sent * count <= 2048 and server.requests[0].body.items() >= more.items()


def test_without_a_limit_it_passes_as_it_came(tmp_path):
    async def play(it):
        assert (await it.post(CHAT, raw))[0] == 200

    raw = json.dumps(asked(n=3, best_of=7, service_tier="priority")).encode()
    with Server([say("Hi.")]) as server:
        run(play, tmp_path, server)
    assert server.requests[0].raw == raw


@pytest.mark.parametrize("protocol, api, path", APIS)
@pytest.mark.parametrize(
    "more, words",
    [
        ({"fallbacks": [{"model": "dear"}]}, "fallbacks: expected none"),
        ({"fallbacks": "default"}, "fallbacks: expected none"),
        ({"models": ["dear"]}, "models: expected none"),
        (
            {"tools": [{"type": "advisor_20260301", "name": "advisor", "model": "dear"}]},
            "tools: expected none that is another model",
        ),
    ],
)
def test_another_model_is_refused(tmp_path, protocol, api, path, more, words):
    async def play(it):
        status, _, said = await it.post(path, asked(**more, max_tokens=10))
        assert status == 400 and message(said).startswith(words)

    with Server([], api=api) as server:
        run(play, tmp_path, server, protocol)
        assert server.requests == []


@pytest.mark.parametrize(
    "more, is_ordinary",
    [
        ({"service_tier": "priority"}, False),
        ({"service_tier": "fast"}, False),
        ({"service_tier": ["auto"]}, False),
        ({"service_tier": "flex"}, True),
        ({"service_tier": None}, True),
        ({"speed": "fast"}, False),
        ({"speed": "standard"}, True),
        ({"inference_geo": "us"}, False),
        ({"web_search_options": {}}, False),
        ({"modalities": ["text", "audio"]}, False),
        ({"modalities": ["text"]}, True),
        ({"tools": [{"type": "web_search_20260318", "name": "web_search"}]}, False),
        ({"tools": [{"type": 5}]}, False),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, True),
        ({"tools": [{"name": "own", "input_schema": {"type": "object"}}]}, True),
        ({"Speed": "fast"}, False),
    ],
)
def test_a_price_that_cannot_be_counted_is_refused_where_money_has_a_limit(more, is_ordinary):
    amounts.check_charges({key: value for key, value in more.items() if key != "Speed"}, False)
    if is_ordinary:
        amounts.check_charges(more, True)
        return
    with pytest.raises(Refused) as e:
        amounts.check_charges(more, True)
    assert e.value.status == 400


@pytest.mark.parametrize(
    "more",
    [
        '"n": 1000, "n": 1',
        '"model": "dear", "n": 1',
        r'"\u006e": 1000, "n": 1',
        '"a": {"b":1,"b":2}',
    ],
)
def test_a_name_that_comes_twice_is_refused(tmp_path, more):
    """A parser takes the last or the first one, and the body is passed on as it came."""

    async def play(it):
        status, _, said = await it.post(CHAT, raw)
        assert status == 400 and "expected it once" in message(said)

    raw = ("{%s, %s" % (more, json.dumps(asked())[1:])).encode()
    with Server([]) as server:
        run(play, tmp_path, server)
        assert server.requests == []


# -- what an answer came to


def test_a_summary_that_an_answer_does_not_count_counts():
    """anthropic: "A `compaction` entry's tokens are not included in the top-level `usage`"."""
    part = {"type": "compaction", "input_tokens": 1000, "output_tokens": 500}
    mine = {"type": "message", "input_tokens": 10, "output_tokens": 20}
    usage = {"input_tokens": 10, "output_tokens": 20, "iterations": [part, mine, 5]}
    assert Anthropic().tokens(usage) == (1010, 520)
    assert Anthropic().tokens({**usage, "iterations": "x"}) == (10, 20)
    reader = UsageReader(Anthropic(), json.loads, True)
    event = {"type": "message_delta", "delta": {}, "usage": usage}
    reader.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    assert reader.tokens(5) == (1010, 520)


@pytest.mark.parametrize("is_stream", [True, False])
def test_all_choices_of_an_answer_without_usage_are_estimated(is_stream):
    reader = UsageReader(OpenAI(), json.loads, is_stream)
    key = "delta" if is_stream else "message"
    answer = {"choices": [{"index": i, key: {"content": "x" * 400}} for i in range(10)]}
    data = json.dumps(answer).encode()
    reader.feed(b"data: " + data + b"\n\n" if is_stream else data)
    reader.end()
    assert 1000 <= reader.tokens(5)[1] < 1200
