"""core/providers/refusal.py: the words with which servers refuse, and what is asked then."""

import transcripts
from test_provider import Image, World, meter_of, ok, row, status

from clawlite.core.base.errors import ClawError
from clawlite.core.providers.refusal import LASTS_S, fresh, setting_problem
from clawlite.core.turns.history import History
from clawlite.core.turns.turn import Message

OPENAI = b'{"error":{"message":"Unsupported parameter: \'max_tokens\' is not supported with this model. Use \'max_completion_tokens\' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}'  # noqa: E501
REFUSALS = (
    (400, OPENAI, "max_tokens", "max_completion_tokens"),
    # Azure, older
    (400, b'{"error":{"message":"Unrecognized request argument supplied: stream_options"}}', 0, 0),
    # vLLM
    (
        400,
        b"{\"object\":\"error\",\"message\":\"[{'type': 'extra_forbidden', 'loc': ('body', "
        b"'stream_options'), 'msg': 'Extra inputs are not permitted'}]\",\"code\":400}",
        0,
        0,
    ),
    # Mistral
    (
        422,
        b'{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],'
        b'"msg":"Extra inputs are not permitted","input":{"include_usage":true}}]}',
        0,
        0,
    ),
    # Groq
    (
        400,
        b'{"error":{"message":"property \'stream_options\' is unsupported, did you mean '
        b"'stream'?\"}}",
        0,
        0,
    ),
    # Gemini
    (
        400,
        b'[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name '
        b'\\"stream_options\\": Cannot find field."}}]',
        0,
        0,
    ),
    # LiteLLM
    (
        400,
        b'{"error":{"message":"litellm.UnsupportedParamsError: bedrock does not support '
        b"parameters: ['stream_options'], for model=m.\"}}",
        0,
        0,
    ),
    # servers in Rust and Go
    (
        422,
        b"Failed to deserialize: unknown field `stream_options`, expected one of `model`, "
        b"`messages`, `max_tokens`, `stream`",
        0,
        0,
    ),
    (400, b'{"error":"json: unknown field \\"stream_options\\""}', 0, 0),
    # Anthropic's wording
    (400, b'{"error":{"message":"stream_options: Extra inputs are not permitted"}}', 0, 0),
    # llama.cpp
    (500, b'{"error":{"code":500,"message":"Unsupported param: stream_options"}}', 0, 0),
)


def bodies(world) -> list:
    loads = transcripts.decoder()[0]
    return [loads(request.partition(b"\r\n\r\n")[2]) for _, request in world.requests]


class Known:
    """What is kept of the changes."""

    def __init__(self, changes=()):
        self.changes, self.learned = list(changes), []

    def of(self, place):
        assert place == "h:80/v1/chat/completions m"
        return self.changes

    def learn(self, place, changes):
        self.learned.append(changes)


def chain_of(known=None, **more):
    return transcripts.order(
        Image([row(**more)]), transcripts.decoder(), meter_of(), 65536, False, known
    )


def play(world, chain, history=None, text="hello"):
    """Return (reply or error, history) of one turn; the rules behind the provider are away."""
    history = history or History(65536)
    history.begin(Message("user", text))
    chain._image.agent.providers = [2]
    try:
        reply = world.run(chain.ask(history))
        history.turn.append(Message("assistant", reply.text))
    except ClawError as e:
        reply = e
    return reply, history


def test_a_field_that_is_refused_by_name_is_renamed_or_left_out():
    for code, body, field, instead in REFUSALS:
        known = Known()
        world = World(status(code, body), ok())
        reply, _ = play(world, chain_of(known, stream=True), None)
        assert reply.text == "Hi.", (body, reply)
        field, instead = field or "stream_options", instead or ""
        first, second = bodies(world)
        assert field in first and field not in second, body
        if instead:
            assert second[instead] == first[field]
        assert len(first) - (not instead) == len(second)
        assert known.learned == [[[field, instead]]] and len(world.said) == 1


def test_what_is_known_or_fixed_is_written_at_once():
    for more in (
        {"known": Known([["max_tokens", "max_completion_tokens"]])},
        {"changes": [["max_tokens", "max_completion_tokens"]]},
    ):
        world = World(ok())
        play(world, chain_of(**more))
        (body,) = bodies(world)
        assert "max_tokens" not in body and body["max_completion_tokens"] == 4096
    # what a person fixed stays
    world = World(status(400, OPENAI))
    reply, _ = play(world, chain_of(changes=[["max_tokens", "max_tokens"]]))
    assert len(world.requests) == 1 and "max_tokens" in reply.message


def test_a_limit_of_tokens_is_not_given_up():
    refusal = b'{"error":"json: unknown field \\"%s\\""}'
    world = World(
        status(400, refusal % b"max_tokens"), status(400, refusal % b"max_completion_tokens")
    )
    reply, _ = play(world, chain_of(per_day=100000))
    assert len(world.requests) == 2 and "max_completion_tokens" in reply.message
    world = World(
        status(400, refusal % b"max_tokens"), status(400, refusal % b"max_completion_tokens"), ok()
    )
    reply, _ = play(world, chain_of())
    assert reply.text == "Hi." and "token" not in " ".join(bodies(world)[2])


def test_a_smaller_answer_is_asked_for():
    world = World(
        status(
            400,
            b'{"error":{"message":"max_tokens is too large: 4096. This model supports at most '
            b'2048 completion tokens, whereas you provided 4096."}}',
        ),
        ok(),
    )
    play(world, chain_of())
    assert [body["max_tokens"] for body in bodies(world)] == [4096, 2048]


def test_a_template_without_a_system_role_has_it_in_the_first_message():
    world = World(status(400, b'{"error":{"message":"System role not supported"}}'), ok(), ok())
    chain = chain_of()
    _, history = play(world, chain)
    play(world, chain, history, "again")
    assert bodies(world)[1]["messages"] == [{"role": "user", "content": "You are.\n\nhello"}]
    assert [message["role"] for message in bodies(world)[2]["messages"]] == [
        "user",
        "assistant",
        "user",
    ]


def calls_of(key, **more):
    return Message("assistant", "", [(key, "t", "{}")], **more)


def in_the_middle(key="call_1", **more):
    history = History(65536)
    history.begin(Message("user", "hello"))
    history.turn.append(calls_of(key, **more))
    history.turn.append(Message("tool", "done", id=key, result=ClawError("")))
    return history


def test_what_another_server_did_not_give_is_stood_for():
    for body, place, found in (
        (
            b"Function call is missing a thought_signature in functionCall parts.",
            0,
            "extra_content",
        ),
        (b"The `reasoning_content` in the thinking mode must be passed back to the API.", 1, ""),
        (b"thinking is enabled but reasoning_content is missing in assistant message", 1, ""),
    ):
        world = World(status(400, b'{"error":{"message":"' + body + b'"}}'), ok())
        assert world.run(chain_of().ask(in_the_middle())).text == "Hi."
        message = bodies(world)[1]["messages"][2]
        part = message if place else message["tool_calls"][0]
        assert part[found or "reasoning_content"]


def test_ids_of_nine_letters_when_the_server_says_so():
    chain = chain_of()
    key = chain._at(0)[1].key
    body = b'{"message":"Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."}'
    world = World(status(500, body), ok())
    assert world.run(chain.ask(in_the_middle(owner=key))).text == "Hi."
    first, second = [body["messages"][2]["tool_calls"][0]["id"] for body in bodies(world)]
    assert first == "call_1" and len(second) == 9
    assert bodies(world)[1]["messages"][3]["tool_call_id"] == second


FULL = (
    # llama.cpp
    b'{"error":{"code":400,"message":"request (3000 tokens) exceeds the available context size '
    b'(2048 tokens), try increasing it","type":"exceed_context_size_error",'
    b'"n_prompt_tokens":3000,"n_ctx":2048}}',
    # OpenAI
    b'{"error":{"message":"This model\'s maximum context length is 2048 tokens. However, you '
    b'requested 5360 tokens (1360 in the messages, 4000 in the completion).",'
    b'"code":"context_length_exceeded"}}',
    # Anthropic
    b'{"error":{"message":"prompt is too long: 208310 tokens > 2048 maximum"}}',
    # vLLM
    b"{\"message\":\"'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's "
    b'maximum context length is 2048 tokens and your request has 500 input tokens."}',
    # Gemini
    b'{"error":{"message":"The input token count (1200000) exceeds the maximum number of tokens '
    b'allowed (2048)."}}',
    # Mistral
    b'{"message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 2048 '
    b'maximum context length"}',
    # SGLang
    b'{"message":"The input (5000 tokens) is longer than the model\'s context length (2048 '
    b'tokens)."}',
)


def test_a_full_context_loses_its_oldest_turns_and_the_person_hears_it_once():
    for body in FULL:
        known, world = Known(), World()
        chain, history = chain_of(known), History(65536)
        for turn in range(4):
            world.connections.append(ok())
            play(world, chain, history, "%d " % turn + "x" * 900)
        world.connections += [status(400, body), ok(), status(413, body), ok()]
        reply, _ = play(world, chain, history, "4 " + "x" * 900)
        assert reply.text == "Hi.", body
        before, after = bodies(world)[-2:]
        assert len(after["messages"]) < len(before["messages"])
        assert after["messages"][1]["role"] == "user" and after["max_tokens"] < 2048
        assert [["max_context_window", "2048"]] in known.learned
        play(world, chain, history, "5 " + "x" * 900)
        assert len([line for line in world.said if "max_context_window" in line]) == 1


def test_a_question_that_is_too_long_alone_is_in_no_later_request():
    world = World(status(400, FULL[0]), status(400, FULL[0]), ok())
    chain = chain_of()
    e, history = play(world, chain, None, "y" * 9000)
    assert "max_context_window" in e.hint and e.refuses
    play(world, chain, history, "short")
    assert "yyy" not in repr(bodies(world)[-1])


def test_an_unknown_refusal_is_tried_without_earlier_turns():
    world = World(ok(), status(400, b'{"error":{"message":"boom"}}'), ok())
    chain = chain_of()
    _, history = play(world, chain)
    reply, _ = play(world, chain, history, "again")
    assert reply.text == "Hi." and [len(body["messages"]) for body in bodies(world)] == [2, 4, 2]
    # when that was not the reason, the turns come back
    world = World(ok(), status(400, b"{}"), status(400, b"{}"), ok())
    _, history = play(world, chain)
    play(world, chain, history, "bad")
    play(world, chain, history, "good")
    assert [len(body["messages"]) for body in bodies(world)] == [2, 4, 2, 4]
    assert "bad" not in repr(bodies(world)[-1])


def test_a_refusal_is_asked_again_a_bounded_number_of_times():
    world = World(*[status(400, OPENAI)] * 20)
    play(world, chain_of())
    assert len(world.requests) < 10


def test_what_was_learned_lasts_thirty_days():
    change = ["stream_options", ""]
    entry = [1000, [change]]
    assert fresh({"a": entry}, 1000 + LASTS_S - 1) == {"a": entry}
    assert fresh({"a": entry}, 1000 + LASTS_S) == {} == fresh({"a": entry}, 1000 - LASTS_S)
    for bad in (None, [], 1, {"a": 1}, {"a": [1]}, {"a": [1, [["x"]]]}, {"a": ["x", []]}):
        assert fresh(bad, 1) == {}
    assert fresh({"a": [1, [["max_context_window", "x"]]]}, 1) == {}


def test_settings_are_checked():
    for field, instead, is_good in (
        ("max_tokens", "max_completion_tokens", True),
        ("max_tokens", "a-b", False),
        ("stream_options", "", True),
        ("stream_options", "x", False),
        ("system", "user", True),
        ("system", "", False),
    ):
        assert (setting_problem(field, instead) == "") == is_good, field
