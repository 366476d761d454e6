"""core/anthropic: answers, streams and messages.  What both APIs share is tested in test_openai."""

from test_openai import broken, fuzz
from wire_samples import (
    ANTHROPIC_CALLS,
    ANTHROPIC_CALLS_STREAM,
    ANTHROPIC_ERROR,
    ANTHROPIC_START,
    ANTHROPIC_TEXT,
    ANTHROPIC_TEXT_BLOCK,
    ANTHROPIC_TEXT_STREAM,
    HTML,
    OPENAI_TEXT,
    OPENAI_TEXT_STREAM,
    Message,
    Result,
    anthropic_stream,
    check_portions,
    events,
    facts,
    jsontext,
    merged,
    refused,
    whole_answer,
)

from clawlite.core.base.errors import PolicyDenied
from clawlite.core.providers.anthropic import Codec
from clawlite.core.providers.wire import MAX_ARGUMENTS, MAX_CALLS

CODEC = Codec(jsontext.loads, jsontext.dumps)
STOP = (b"message_stop", b"")


def stream(*parts) -> list:
    return merged(events(CODEC.stream(), [anthropic_stream(*parts)]))


def block(index: int, key: str, name: str, given: str = "{}") -> tuple:
    return b"content_block_start", (
        '"index":%d,"content_block":{"type":"tool_use","id":"%s","name":"%s","input":%s}'
        % (index, key, name, given)
    ).encode()


def piece(index: int, text: str) -> tuple:
    return b"content_block_delta", (
        '"index":%d,"delta":{"type":"input_json_delta","partial_json":%s}'
        % (index, jsontext.dumps(text))
    ).encode()


def stop(reason: str) -> tuple:
    return b"message_delta", (
        '"delta":{"stop_reason":"%s"},"usage":{"output_tokens":5}' % reason
    ).encode()


def test_whole_answers():
    assert facts(whole_answer(CODEC, ANTHROPIC_TEXT)) == (
        "It is dry: 21\u00a0%. Water it.",
        [],
        "stop",
        2200,
        503,
        "claude-sonnet-4-5",
    )
    assert facts(whole_answer(CODEC, ANTHROPIC_CALLS)) == (
        "Let me look.",
        [
            ("toolu_01A", "read_soil", {}, "{}"),
            ("toolu_01B", "water", {"seconds": 3}, '{"seconds":3}'),
        ],
        "tools",
        472,
        91,
        "claude-sonnet-4-5",
    )


def test_streams_in_any_portions():
    answer = ("", [], "stop", 472, 15, "claude-sonnet-4-5")
    assert check_portions(CODEC.stream, ANTHROPIC_TEXT_STREAM) == [
        ("text", "It is dry: 21\u202f% \U0001f331"),
        ("end", answer),
        ("closed", answer),
    ]
    calls = [
        ("toolu_01A", "read_soil", {"pot": "caf\u00e9"}, '{"pot": "caf\u00e9"}'),
        ("toolu_01B", "stop_all", {}, "{}"),
    ]
    answer = ("", calls, "tools", 472, 89, "claude-sonnet-4-5")
    assert check_portions(CODEC.stream, ANTHROPIC_CALLS_STREAM) == [
        ("text", "Let me look."),
        ("end", answer),
        ("closed", answer),
    ]


def test_reasons_to_stop():
    for reason, meant in (
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("tool_use", "tools"),
        ("refusal", "refused"),
        ("pause_turn", "cut"),
        ("model_context_window_exceeded", "length"),
    ):
        assert stream(ANTHROPIC_START, stop(reason), STOP)[-1][1][2] == meant
        assert (
            whole_answer(
                CODEC, ('{"type":"message","content":[],"stop_reason":"%s"}' % reason).encode()
            ).stop
            == meant
        )


def test_ends_of_streams():
    text = (b"content_block_delta", b'"index":0,"delta":{"type":"text_delta","text":"a"}')
    # nothing but the last event is missing
    assert stream(ANTHROPIC_START, ANTHROPIC_TEXT_BLOCK, text, stop("end_turn"))[-1][0] == "closed"
    assert stream(ANTHROPIC_START, text, STOP)[-1][1][2] == "stop"
    for parts in ((ANTHROPIC_START, ANTHROPIC_TEXT_BLOCK, text), (ANTHROPIC_START,)):
        assert "broke off" in broken(stream(*parts))
    assert "expected API" in broken(stream(STOP))
    assert "expected API" in broken(merged(events(CODEC.stream(), [OPENAI_TEXT_STREAM])))


def test_usage_is_the_last_one_told():
    late = (
        b"message_delta",
        b'"delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":7,"cache_read_input_tokens":3,"output_tokens":15}',
    )
    assert stream(ANTHROPIC_START, late, STOP)[-1][1][3:5] == (10, 15)
    assert stream(
        (b"message_start", b'"message":{"content":[]}'),
        (b"message_delta", b'"delta":{"stop_reason":"end_turn"}'),
        STOP,
    )[-1][1][3:] == (None, None, None)


def test_calls():
    assert stream(ANTHROPIC_START, block(0, "a", "t", '{"x":1}'), STOP)[-1][1][1] == [
        ("a", "t", {"x": 1}, '{"x":1}')
    ]
    both = (
        ANTHROPIC_START,
        block(0, "a", "t"),
        block(1, "b", "u"),
        piece(0, '{"x"'),
        piece(1, "{}"),
        piece(0, ":1}"),
        STOP,
    )
    assert stream(*both)[-1][1][1] == [("a", "t", {"x": 1}, '{"x":1}'), ("b", "u", {}, "{}")]
    for raw in ('{"x":', "[1]", "nonsense"):
        assert stream(ANTHROPIC_START, block(0, "a", "t"), piece(0, raw), STOP)[-1][1][1] == [
            ("a", "t", None, raw)
        ]
    # cut, not empty
    assert stream(ANTHROPIC_START, block(0, "a", "t"), stop("max_tokens"), STOP)[-1][1][1] == [
        ("a", "t", None, "")
    ]


def test_refused_calls():
    for parts, words in (
        ((block(0, "a", ""),), "without a name"),
        ((piece(3, "{}"),), "without a name"),
        (((b"content_block_start", b'"index":0'),), "type"),
        (((b"content_block_delta", b'"index":0'),), "type"),
        (((b"content_block_start", b'"content_block":{"type":"tool_use","id":1}'),), "id"),
    ):
        assert words in broken(stream(ANTHROPIC_START, *(parts + (STOP,)))), parts
    for count in (MAX_CALLS - 1, MAX_CALLS):
        assert (
            len(
                stream(
                    ANTHROPIC_START, *([block(i, "id%d" % i, "t") for i in range(count)] + [STOP])
                )[-1][1][1]
            )
            == count
        )
    assert "more than 16" in broken(
        stream(ANTHROPIC_START, *[block(i, "id%d" % i, "t") for i in range(MAX_CALLS + 1)])
    )
    assert "bytes of arguments" in broken(
        stream(
            ANTHROPIC_START,
            block(0, "a", "t"),
            *[piece(0, "y" * 8192)] * (MAX_ARGUMENTS // 8192) + [piece(0, "y")],
        )
    )


def test_errors_inside_a_stream():
    found = stream(
        ANTHROPIC_START, (b"error", b'"error":{"type":"overloaded_error","message":"Overloaded"}')
    )
    assert found == [("error", "the provider reported: Overloaded")]


def test_what_is_no_answer():
    for body, words in (
        (b"", "nothing"),
        (HTML, "HTML"),
        (ANTHROPIC_TEXT[:-1], "JSON byte"),
        (b"{}", "expected API"),
        (OPENAI_TEXT, "expected API"),
        (b'{"content":7}', "content: expected list"),
        (b'{"content":[1]}', "type"),
        (b'{"content":[null]}', "type"),
        (b'{"content":[{"type":"text","text":1}]}', "text"),
        (b'{"content":[],"stop_reason":1}', "stop_reason"),
        (b'{"type":5}', "type"),
        (b'{"content":[],"model":[]}', "model"),
        (ANTHROPIC_ERROR, "model: claude-nope"),
    ):
        assert words in refused(whole_answer, CODEC, body), body
    assert "HTML" in broken(merged(events(CODEC.stream(), [HTML])))
    assert "message" in broken(stream((b"message_start", b'"message":"hi"')))
    assert CODEC.error(404, ANTHROPIC_ERROR) == "HTTP 404: model: claude-nope"


def test_messages_alternate():
    denied = PolicyDenied("no")
    said = CODEC.messages(
        [
            Message("user", "Water it"),
            Message(
                "assistant",
                "Sure.",
                [("a", "water", '{"seconds": 3}'), ("b", "read", ""), ("c", "bad", "[")],
            ),
            Message("tool", "done", id="a", result=Result(False)),
            Message("tool", "no", id="b", result=denied),
            Message("tool", "not JSON", id="c", result=Result(True)),
            Message("user", "And \u00e9?"),
            Message("assistant", " \n", [("d", "t", "{}")]),
            Message("tool", "", id="d", result=Result(False)),
            Message("assistant", "", []),
            Message("user", "Still there?"),
            Message("user", " "),
        ]
    )
    assert [jsontext.loads(text.encode()) for text in said] == [
        {"role": "user", "content": [{"type": "text", "text": "Water it"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Sure."},
                {"type": "tool_use", "id": "a", "name": "water", "input": {"seconds": 3}},
                {"type": "tool_use", "id": "b", "name": "read", "input": {}},
                {"type": "tool_use", "id": "c", "name": "bad", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "done"},
                {"type": "tool_result", "tool_use_id": "b", "content": "no", "is_error": True},
                {
                    "type": "tool_result",
                    "tool_use_id": "c",
                    "content": "not JSON",
                    "is_error": True,
                },
                {"type": "text", "text": "And \u00e9?"},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "d", "name": "t", "input": {}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "d", "content": ""},
                {"type": "text", "text": "Still there?"},
            ],
        },
    ]
    assert CODEC.messages([]) == [] == CODEC.messages([Message("user", "")])


def test_hidden_reasoning_is_nowhere():
    for found in (
        merged(events(CODEC.stream(), [ANTHROPIC_TEXT_STREAM])),
        facts(whole_answer(CODEC, ANTHROPIC_TEXT)),
    ):
        assert "SECRET" not in repr(found)


def test_damaged_answers():
    fuzz(CODEC, (ANTHROPIC_TEXT, ANTHROPIC_CALLS), (ANTHROPIC_CALLS_STREAM,), 20260121)


def test_second_shapes():
    """A text in place of blocks, arguments as text, a count that is no integer."""
    answer = whole_answer(
        CODEC,
        b'{"model":"m","content":"Hi.","stop_reason":"end_turn",'
        b'"usage":{"input_tokens":"7","output_tokens":3.0}}',
    )
    assert facts(answer) == ("Hi.", [], "stop", 7, 3, "m")
    called = whole_answer(
        CODEC,
        b'{"content":[{"type":"tool_use","id":"a","name":"t","input":"{\\"x\\":1}"}],'
        b'"stop_reason":"tool_use","usage":[]}',
    )
    assert facts(called)[1:4] == ([("a", "t", {"x": 1}, '{"x":1}')], "tools", None)
    thought = (
        b'{"content":[{"type":"text","text":"<think>hm</think>\\n\\nHi."}],'
        b'"stop_reason":"end_turn"}'
    )
    assert whole_answer(CODEC, thought).text == "Hi."
    found = stream(ANTHROPIC_START, block(0, "a", "t", "[]"), STOP)
    assert found[-1][1][1] == [("a", "t", None, "[]")]
