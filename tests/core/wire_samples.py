"""What providers send, written after the public references of both APIs: whole answers, streams,
heads, errors.
"""

import sys

from clawlite.core.base.errors import ProviderError
from clawlite.core.turns.turn import Message  # noqa: F401

if sys.implementation.name == "micropython":
    import jsontext
else:
    from clawlite.linux.io import jsontext  # noqa: F401


class Result:
    def __init__(self, is_error: bool):
        self.is_error = is_error


def refused(function, *arguments) -> str:
    """Return the message of the ``ProviderError`` that the call must raise."""
    try:
        function(*arguments)
    except ProviderError as error:
        assert error.message and "\n" not in error.message and len(error.message) < 400
        return error.message
    raise AssertionError("nothing was raised")


def whole_answer(codec, body: bytes):
    """Return the ``Answer`` of a body that is one JSON object."""
    reader = codec.stream()
    reader.feed(body)
    return reader.at_end()


def events(reader, portions, close: bool = True) -> list:
    """Return the events of *portions*; an error ends them, as ("error", message)."""
    found = []
    try:
        for portion in portions:
            reader.feed(portion)
            take(reader, found)
        if close:
            found.append(("closed", facts(reader.at_end())))
            take(reader, found)
    except ProviderError as error:
        found.append(("error", error.message))
    return found


def take(reader, found: list) -> None:
    event = reader.next_event()
    while event is not None:
        found.append(
            (event[0], facts(event[1])) if event[0] == "end" and len(event) == 2 else event
        )
        event = reader.next_event()


def facts(answer):
    return answer and (
        answer.text,
        answer.calls,
        answer.stop,
        answer.input_tokens,
        answer.output_tokens,
        answer.model,
    )


def merged(found: list) -> list:
    """Return events with neighbouring pieces of text or data made one: portions may cut those."""
    out = []
    for event in found:
        if event[0] in ("text", "data") and out and out[-1][0] == event[0]:
            event = (event[0], out.pop()[1] + event[1])
        out.append(event)
    return out


def check_portions(make, data: bytes, close: bool = True) -> list:
    """Feed *data* whole, split at every border, and byte by byte: the same events.  Returns
    them.
    """
    whole = merged(events(make(), [data], close))
    for at in range(1, len(data)):
        assert merged(events(make(), [data[:at], data[at:]], close)) == whole, at
    assert merged(events(make(), [data[i : i + 1] for i in range(len(data))], close)) == whole
    return whole


def damaged(data: bytes, random, step: int = 1):
    """Yield truncations of *data* and one flipped bit in a byte, both at every *step*-th byte,
    and some random damage.
    """
    for end in range(0, len(data), step):
        yield data[:end]
    copy = bytearray(data)
    for i in range(0, len(data), step):
        bit = 1 << random.below(8)
        copy[i] ^= bit
        yield bytes(copy)
        copy[i] ^= bit
    for _ in range(100):
        copy = bytearray(data)
        for _ in range(1 + random.below(4)):
            copy[random.below(len(copy))] = random.below(256)
        yield bytes(copy)


# -- OpenAI-compatible

OPENAI_TEXT = (
    b'{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion","created":1741569952,'
    b'"model":"gpt-4.1-2025-04-14","choices":[{"index":0,"message":{"role":"assistant","content":"The '  # noqa: E501
    b"soil is dry: 21\xc2\xa0%. "
    b'\\ud83c\\udf31","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":19,'
    b'"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0}},'
    b'"service_tier":"default"}'
)

OPENAI_CALLS = (
    b'{"id":"chatcmpl-abc123","object":"chat.completion","created":1699896916,"model":"gpt-4o-mini","choices":[{"index":0,'
    b'"message":{"role":"assistant","content":null,"reasoning_content":"SECRET '
    b'THOUGHT","tool_calls":['
    b'{"id":"call_abc1","type":"function","function":{"name":"read_soil","arguments":"{}"}},'
    b'{"id":"call_abc2","type":"function","function":{"name":"water","arguments":"{\\n\\"seconds\\": '  # noqa: E501
    b'3}"}}]},'
    b'"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":82,"completion_tokens":17,"total_tokens":99}}'
)


def openai_stream(*chunks, end: bytes = b"data: [DONE]\n\n") -> bytes:
    """Return a stream of chunks, each the text of ``choices[0]`` or, when it begins with "{", a
    whole object.
    """
    head = b'{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini",'  # noqa: E501
    return (
        b"".join(
            [
                b"data: "
                + (
                    chunk
                    if chunk.startswith(b"{")
                    else head + b'"choices":[{"index":0,' + chunk + b"}]}"
                )
                + b"\n"
                b"\n"
                for chunk in chunks
            ]
        )
        + end
    )


OPENAI_USAGE = (
    b'{"id":"chatcmpl-123","object":"chat.completion.chunk","model":"gpt-4o-mini","choices":[],'
    b'"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29}}'
)

OPENAI_TEXT_STREAM = openai_stream(
    b'"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null',
    b'"delta":{"reasoning_content":"SECRET THOUGHT"},"finish_reason":null',
    b'"delta":{"content":"It is "},"finish_reason":null',
    b'"delta":{"content":"dry: 21\xe2\x80\xaf% \xf0\x9f\x8c\xb1"},"finish_reason":null',
    b'"delta":{},"finish_reason":"stop"',
    OPENAI_USAGE,
)

OPENAI_CALLS_STREAM = openai_stream(
    b'"delta":{"role":"assistant","content":null},"finish_reason":null',
    b'"delta":{"content":"Let me look."},"finish_reason":null',
    b'"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"read_soil","arguments":""}}]},"finish_reason":null',
    b'"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"pot\\":"}}]},"finish_reason":null',
    b'"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\"caf\xc3\xa9\\"}"}}]},"finish_reason":null',
    b'"delta":{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"water","arguments":""}}]},"finish_reason":null',
    b'"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\\"seconds\\":3}"}}]},"finish_reason":null',
    b'"delta":{},"finish_reason":"tool_calls"',
    OPENAI_USAGE,
)

OPENAI_ERROR = (
    b'{"error":{"message":"Incorrect API key '
    b'provided.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}'
)

# -- Anthropic-native

ANTHROPIC_TEXT = (
    b'{"model":"claude-sonnet-4-5","id":"msg_013Zva2CMHLNnjNjJKqJ2EF","type":"message","role":"assistant","content":[{"type":"thinking",'
    b'"thinking":"SECRET THOUGHT","signature":"zbbJhb"},{"type":"text","text":"It is dry: '
    b'21\xc2\xa0%."},{"type":"text","text":" Water it."}],'
    b'"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":2095,"cache_creation_input_tokens":100,'
    b'"cache_read_input_tokens":5,"output_tokens":503}}'
)

ANTHROPIC_CALLS = (
    b'{"id":"msg_01Aq9w938a90dw8q","model":"claude-sonnet-4-5","type":"message","role":"assistant","content":[{"type":"text",'
    b'"text":"Let me '
    b'look."},{"type":"tool_use","id":"toolu_01A","name":"read_soil","input":{}},{"type":"tool_use","id":"toolu_01B",'
    b'"name":"water","input":{"seconds":3}}],"stop_reason":"tool_use","stop_sequence":null,'
    b'"usage":{"input_tokens":472,"output_tokens":91}}'
)


def anthropic_stream(*events) -> bytes:
    """Return a stream of events, each (type, the other members as text)."""
    return b"".join(
        [
            b'event: %s\ndata: {"type":"%s"%s}\n\n' % (kind, kind, b"," + rest if rest else b"")
            for kind, rest in events
        ]
    )


ANTHROPIC_START = (
    b"message_start",
    (
        b'"message":{"id":"msg_014p7gG3wDgGV9EUtLvnow3U","type":"message","role":"assistant","model":"claude-sonnet-4-5","stop_sequence":null,'
        b'"usage":{"input_tokens":472,"output_tokens":2},"content":[],"stop_reason":null}'
    ),
)
ANTHROPIC_TEXT_BLOCK = (
    b"content_block_start",
    b'"index":0,"content_block":{"type":"text","text":""}',
)

ANTHROPIC_TEXT_STREAM = anthropic_stream(
    ANTHROPIC_START,
    (
        b"content_block_start",
        b'"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}',
    ),
    (b"ping", b""),
    (
        b"content_block_delta",
        b'"index":0,"delta":{"type":"thinking_delta","thinking":"SECRET THOUGHT"}',
    ),
    (
        b"content_block_delta",
        b'"index":0,"delta":{"type":"signature_delta","signature":"EqQBCgIYAhIM"}',
    ),
    (b"content_block_stop", b'"index":0'),
    (b"content_block_start", b'"index":1,"content_block":{"type":"text","text":""}'),
    (b"content_block_delta", b'"index":1,"delta":{"type":"text_delta","text":"It is "}'),
    (
        b"content_block_delta",
        b'"index":1,"delta":{"type":"text_delta","text":"dry: 21\xe2\x80\xaf% \xf0\x9f\x8c\xb1"}',
    ),
    (b"content_block_stop", b'"index":1'),
    (
        b"message_delta",
        b'"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}',
    ),
    (b"message_stop", b""),
)

ANTHROPIC_CALLS_STREAM = anthropic_stream(
    ANTHROPIC_START,
    ANTHROPIC_TEXT_BLOCK,
    (b"content_block_delta", b'"index":0,"delta":{"type":"text_delta","text":"Let me look."}'),
    (b"content_block_stop", b'"index":0'),
    (
        b"content_block_start",
        b'"index":1,"content_block":{"type":"tool_use","id":"toolu_01A","name":"read_soil","input":{}}',
    ),
    (b"content_block_delta", b'"index":1,"delta":{"type":"input_json_delta","partial_json":""}'),
    (
        b"content_block_delta",
        b'"index":1,"delta":{"type":"input_json_delta","partial_json":"{\\"pot\\": \\"ca"}',
    ),
    (
        b"content_block_delta",
        b'"index":1,"delta":{"type":"input_json_delta","partial_json":"f\xc3\xa9\\"}"}',
    ),
    (b"content_block_stop", b'"index":1'),
    (
        b"content_block_start",
        b'"index":2,"content_block":{"type":"tool_use","id":"toolu_01B","name":"stop_all","input":{}}',
    ),
    (b"content_block_stop", b'"index":2'),
    (
        b"message_delta",
        b'"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89}',
    ),
    (b"message_stop", b""),
)

ANTHROPIC_ERROR = (
    b'{"type":"error","error":{"type":"not_found_error","message":"model: '
    b'claude-nope"},"request_id":"req_011CSHoEeqs5"}'
)

# -- HTTP

HTML = (
    b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head>\r\n"
    b"<body><center><h1>502 Bad Gateway</h1></center><hr>nginx</body></html>\n"
)
HTTP_LENGTH = (
    b"HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2029 00:00:00 GMT\r\nContent-Type: "
    b'application/json\r\nContent-Length: 7\r\n\r\n{"a":1}'
)
HTTP_CHUNKED = (
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Type:text/event-stream\r\n"
    b"Transfer-Encoding: chunked\r\nVia: a\r\nvia: b\r\nX-Long: one\r\n\t two \r\n\r\n"
    b'5\r\nhello\r\n0006;name="v"\r\n world\r\nA\n0123456789\n0\r\nTrailer: t\r\n'
    b"\r\n"
)
HTTP_CLOSE = b"HTTP/1.0 429 Too Many Requests\nRetry-After: 20\n\nslow down"
