"""core/openai, and what core/wire does for both APIs: answers, streams, errors, bounds."""

from test_cbor_fuzz import Random
from wire_samples import (
    ANTHROPIC_CALLS,
    ANTHROPIC_TEXT_STREAM,
    HTML,
    OPENAI_CALLS,
    OPENAI_CALLS_STREAM,
    OPENAI_ERROR,
    OPENAI_TEXT,
    OPENAI_TEXT_STREAM,
    OPENAI_USAGE,
    Message,
    Result,
    check_portions,
    damaged,
    events,
    facts,
    jsontext,
    merged,
    openai_stream,
    refused,
    whole_answer,
)

from clawlite.core.providers.openai import Codec
from clawlite.core.providers.wire import MAX_ARGUMENTS, MAX_CALLS, MAX_TEXT

CODEC = Codec(jsontext.loads, jsontext.dumps)
CALLS = [
    ("call_1", "read_soil", {"pot": "caf\u00e9"}, '{"pot":"caf\u00e9"}'),
    ("call_2", "water", {"seconds": 3}, '{"seconds":3}'),
]


def stream(data: bytes) -> list:
    return merged(events(CODEC.stream(), [data]))


def calls(*pieces, reason: bytes = b"tool_calls") -> list:
    """Return the calls of a stream that has these texts of ``delta.tool_calls``."""
    deltas = [b'"delta":{"tool_calls":[' + piece + b"]}" for piece in pieces]
    return merged(
        events(
            CODEC.stream(),
            [openai_stream(*(deltas + [b'"delta":{},"finish_reason":"' + reason + b'"']))],
        )
    )[0][1]


def piece(index=None, key=None, name=None, arguments: str = None) -> bytes:
    function = {}
    if name is not None:
        function["name"] = name
    if arguments is not None:
        function["arguments"] = arguments
    made = {"function": function}
    if index is not None:
        made["index"] = index
    if key is not None:
        made["id"] = key
    return jsontext.dumps(made).encode()


def broken(found) -> str:
    assert isinstance(found, list) and found[-1][0] == "error" or isinstance(found, str), found
    return found[-1][1] if isinstance(found, list) else found


def whole(message: str, reason: str = '"stop"') -> bytes:
    return ('{"choices":[{"message":%s,"finish_reason":%s}]}' % (message, reason)).encode()


def test_whole_answers():
    assert facts(whole_answer(CODEC, OPENAI_TEXT)) == (
        "The soil is dry: 21\u00a0%. \U0001f331",
        [],
        "stop",
        19,
        10,
        "gpt-4.1-2025-04-14",
    )
    assert facts(whole_answer(CODEC, OPENAI_CALLS)) == (
        "",
        [
            ("call_abc1", "read_soil", {}, "{}"),
            ("call_abc2", "water", {"seconds": 3}, '{\n"seconds": 3}'),
        ],
        "tools",
        82,
        17,
        "gpt-4o-mini",
    )


def test_streams_in_any_portions():
    answer = ("", [], "stop", 19, 10, "gpt-4o-mini")
    assert check_portions(CODEC.stream, OPENAI_TEXT_STREAM) == [
        ("text", "It is dry: 21\u202f% \U0001f331"),
        ("end", answer),
        ("closed", answer),
    ]
    answer = ("", CALLS, "tools", 19, 10, "gpt-4o-mini")
    assert check_portions(CODEC.stream, OPENAI_CALLS_STREAM) == [
        ("text", "Let me look."),
        ("end", answer),
        ("closed", answer),
    ]
    assert stream(OPENAI_CALLS_STREAM.replace(b"\n", b"\r\n")) == [
        ("text", "Let me look."),
        ("end", answer),
        ("closed", answer),
    ]
    assert CODEC.stream().next_event() is None


def test_text_goes_out_piece_by_piece():
    found = events(CODEC.stream(), [OPENAI_TEXT_STREAM])
    assert [event[0] for event in found] == ["text", "text", "end", "closed"]


def test_reasons_to_stop():
    for reason, stop in (
        (b"stop", "stop"),
        (b"length", "length"),
        (b"tool_calls", "tools"),
        (b"function_call", "tools"),
        (b"eos_token", "stop"),
        (b"model_length", "length"),
        (b"content_filter", "refused"),
        (b"content_filter: PROHIBITED_CONTENT", "refused"),
        (b"SAFETY", "refused"),
        (b"insufficient_system_resource", "cut"),
        (b"odd", "cut"),
        (b"", "stop"),
    ):
        found = stream(openai_stream(b'"delta":{"content":"a"},"finish_reason":"' + reason + b'"'))
        assert found[-1][1][2] == stop
        assert (
            whole_answer(CODEC, whole('{"content":"a"}', '"%s"' % str(reason, "utf-8"))).stop
            == stop
        )
    assert whole_answer(CODEC, whole('{"content":null,"refusal":"No."}')).stop == "refused"
    assert whole_answer(CODEC, whole('{"content":null,"refusal":"No."}')).text == "No."
    assert calls(piece(0, "a", "t", "{}"), reason=b"stop")[2] == "tools"


def test_ends_of_streams():
    text = b'"delta":{"content":"a"}'
    stop = b'"delta":{},"finish_reason":"stop"'
    assert stream(openai_stream(text, stop, end=b""))[-1] == (
        "closed",
        ("", [], "stop", None, None, "gpt-4o-mini"),
    )
    assert stream(openai_stream(text, stop, end=b"data:[DONE]\n\n"))[1][0] == "end"
    # its end is told, its reason is not
    assert stream(openai_stream(text))[-1][1][2] == "stop"
    # nobody reads on
    assert stream(openai_stream(text, stop) + b"data: nonsense\n\n")[-1][0] == "closed"
    for cut in (
        openai_stream(text, end=b""),
        openai_stream(text, stop)[:-24],
        b": nothing\n\n",
        openai_stream(OPENAI_USAGE, end=b""),
    ):
        assert "broke off" in broken(stream(cut)), cut
    for other in (
        openai_stream(),
        openai_stream(OPENAI_USAGE),
        ANTHROPIC_TEXT_STREAM + b"data: [DONE]\n\n",
    ):
        assert "expected API" in broken(stream(other))


def test_usage_is_the_last_one_told():
    first = b'{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}'
    text = b'"delta":{"content":"a"},"finish_reason":"stop"'
    assert stream(openai_stream(first, text, OPENAI_USAGE))[-1][1][3:5] == (19, 10)
    assert stream(openai_stream(text, b'{"choices":[],"usage":null}'))[-1][1][3:5] == (None, None)
    assert stream(openai_stream(text, b'{"choices":[],"usage":{"prompt_tokens":7}}'))[-1][1][
        3:5
    ] == (7, None)


def test_calls_as_servers_send_them():
    one, two = ("a", "t", {"x": 1}, '{"x":1}'), ("b", "u", {}, "{}")
    # whole calls, with an index, without one, all with one index
    assert calls(piece(0, "a", "t", '{"x":1}'), piece(1, "b", "u", "{}"))[1] == [one, two]
    assert calls(piece(None, "a", "t", '{"x":1}') + b"," + piece(None, "b", "u", "{}"))[1] == [
        one,
        two,
    ]
    assert calls(piece(0, "a", "t", '{"x":1}') + b"," + piece(0, "b", "u", "{}"))[1] == [one, two]
    # fragments that repeat id and name, that have no index, that are interleaved
    assert calls(piece(0, "a", "t", '{"x"'), piece(0, "a", "t", ":1}"), piece(1, "b", "u", ""))[
        1
    ] == [one, two]
    assert calls(
        piece(None, "a", "t", '{"x"'), piece(None, None, None, ":1}"), piece(None, "b", "u")
    )[1] == [one, two]
    assert calls(piece(0, "a", "t", '{"x"'), piece(1, "b", "u"), piece(0, None, None, ":1}"))[
        1
    ] == [one, two]
    assert calls(piece(0, "a", "t", '{"x"'), piece(0, "", "", ":1}"), piece(1, "b", "u"))[1] == [
        one,
        two,
    ]
    # no ids at all
    assert calls(piece(0, None, "t", '{"x"'), piece(0, None, None, ":1}"), piece(1, None, "u"))[
        1
    ] == [("",) + one[1:], ("",) + two[1:]]
    assert calls(piece(None, None, "t", '{"x":1}'), piece(None, "", "u", "{}"))[1] == [
        ("",) + one[1:],
        ("",) + two[1:],
    ]


def test_broken_arguments_come_back_as_none():
    for raw in (
        '{"x":',
        "nonsense",
        "[1]",
        "1",
        "null",
        '"a"',
        '{"x":1}{"x":1}',
        '{"x":1,"x":2}',
        "{'x':1}",
    ):
        assert calls(piece(0, "a", "t", raw))[1] == [("a", "t", None, raw)]
    assert calls(piece(0, "a", "t", ""))[1] == [("a", "t", {}, "{}")]
    # cut, not empty
    assert calls(piece(0, "a", "t"), reason=b"length")[1] == [("a", "t", None, "")]
    assert calls(piece(0, "a", "t", "{}"), reason=b"length")[1] == [("a", "t", {}, "{}")]


def test_refused_calls():
    for pieces, words in (
        ((piece(0, "a", None, "{}"),), "without a name"),
        ((piece(0, "a", "", "{}"),), "without a name"),
        ((piece(5, None, None, "{}"),), "without a name"),
        ((b"1",), "function"),
        ((b"null",), "function"),
        ((b'{"function":1}',), "function"),
        ((b'{"function":{"name":1}}',), "name"),
        ((b'{"id":7,"function":{}}',), "id"),
        ((b'{"id":true,"function":{}}',), "id"),
    ):
        assert words in broken(
            stream(openai_stream(*[b'"delta":{"tool_calls":[' + p + b"]}" for p in pieces]))
        ), pieces
    same = '{"tool_calls":[{"id":"a","function":{"name":"t","arguments":"{}"}},{"id":"a","function":{"name":"u","arguments":"{}"}}]}'  # noqa: E501
    # two calls with one id are told apart when they are sent back (dialogue.py)
    assert [call[:2] for call in whole_answer(CODEC, whole(same)).calls] == [("a", "t"), ("a", "u")]


def test_calls_of_a_cut_answer_have_no_arguments_by_default():
    for reason in (b"length", b"odd", b"content_filter"):
        assert calls(piece(0, "a", "t"), reason=reason)[1] == [("a", "t", None, "")]
    assert calls(piece(0, "a", "t"), reason=b"stop")[1] == [("a", "t", {}, "{}")]
    # no reason at all: what is there counts, what is not does not
    assert calls(piece(0, "a", "t"), reason=b"")[1] == [("a", "t", None, "")]
    assert calls(piece(0, "a", "t", "{}"), reason=b"")[1] == [("a", "t", {}, "{}")]


def test_bound_of_calls():
    for count, fits in ((MAX_CALLS - 1, True), (MAX_CALLS, True), (MAX_CALLS + 1, False)):
        pieces = [piece(i, "id%d" % i, "t", "{}") for i in range(count)]
        if fits:
            assert len(calls(*pieces)[1]) == count
        else:
            assert "more than 16" in broken(
                stream(openai_stream(*[b'"delta":{"tool_calls":[' + p + b"]}" for p in pieces]))
            )
    endless = openai_stream(
        *[b'"delta":{"tool_calls":[' + piece(0, "id%d" % i, "t", "{}") + b"]}" for i in range(60)],
        end=b"",
    )
    assert "more than 16" in broken(stream(endless))


def test_bound_of_arguments():
    for size, fits in (
        (MAX_ARGUMENTS - 1, True),
        (MAX_ARGUMENTS, True),
        (MAX_ARGUMENTS + 1, False),
    ):
        size -= len('{"x":""}')
        pieces = [piece(0, "a", "t", '{"x":"')] + [piece(0, None, None, "y" * 4096)] * (
            size // 4096
        )
        pieces += [piece(0, None, None, "y" * (size % 4096) + '"}')]
        found = stream(openai_stream(*[b'"delta":{"tool_calls":[' + p + b"]}" for p in pieces]))
        assert (found[-1][0] == "closed") == fits, size
        if fits:
            assert len(found[-1][1][1][0][2]["x"]) == size
        else:
            assert "%d bytes of arguments" % MAX_ARGUMENTS in found[-1][1]


def test_bound_of_text():
    """Bytes, not characters, and nothing of a stream's text is held."""
    chunk = openai_stream(('"delta":{"content":"%s"}' % ("\u00e9" * 2048)).encode(), end=b"")
    for last, fits in ((4095, True), (4096, True), (4097, False)):
        reader = CODEC.stream()
        left = 0
        for _ in range(MAX_TEXT // 4096 - 1):
            reader.feed(chunk)
            left += len(reader.next_event()[1])
            assert reader.next_event() is None
        reader.feed(
            openai_stream(b'"delta":{"content":"' + b"x" * last + b'"},"finish_reason":"stop"')
        )
        if fits:
            assert left + len(reader.next_event()[1]) == MAX_TEXT // 2 - 2048 + last
            assert reader.next_event()[1].text == ""
        else:
            assert "%d bytes of text" % MAX_TEXT in refused(reader.next_event)


def test_errors_inside_a_stream():
    for error, words in (
        (OPENAI_ERROR, "Incorrect API key provided."),
        (b'{"error":"model overloaded"}', "model overloaded"),
        (b'{"error":{"code":500}}', "without words"),
        (b'{"error":true}', "without words"),
        (b'{"error":{"message":"a\\u0000\\u001b[31m\\u202eb"}}', "a\\x00\\x1b[31m\\u202eb"),
    ):
        text = b'"delta":{"content":"a"}'
        found = stream(openai_stream(text, error))
        assert found[0] == ("text", "a") and found[1] == (
            "error",
            "the provider reported: " + ("an error " if "without" in words else "") + words,
        )
        assert words in refused(whole_answer, CODEC, error)


def test_what_is_no_answer():
    for body, words in (
        (b"", "nothing"),
        (b" \r\n", "nothing"),
        (HTML, "HTML"),
        (OPENAI_TEXT[:-1], "JSON byte"),
        (b"[]", "list"),
        (b"null", "expected a JSON object"),
        (b"{}", "expected API"),
        (b'{"choices":[]}', "expected API"),
        (ANTHROPIC_CALLS, "expected API"),
        (b'{"choices":{}}', "choices: expected list"),
        (b'{"choices":[1]}', "message"),
        (b'{"choices":[{}]}', "expected API"),
        (b'{"choices":[{"message":[]}]}', "message"),
        (b'{"choices":[{"message":"hi"}]}', "message: expected dict, found str"),
        (whole('{"content":[7]}'), "content"),
        (whole('{"content":true}'), "content"),
        (whole('{"content":"a"}', "7"), "finish_reason"),
        (whole('{"content":"a","tool_calls":{}}'), "tool_calls"),
        (b'{"model":1}', "model"),
        (b"\x1f\x8b\x08\x00", "broken JSON"),
    ):
        assert words in refused(whole_answer, CODEC, body), body
    assert (
        whole_answer(
            CODEC,
            b'{"usage":{"prompt_tokens":1073741823},'
            + OPENAI_TEXT[1:].split(b',"usage"')[0]
            + b"}",
        ).input_tokens
        == 1073741823
    )
    for body, words in (
        (HTML, "a page of HTML, expected JSON"),
        (b"", "nothing"),
        (b"data: {\n\n", "broken JSON"),
        (b"data: <html>\n\n", "HTML"),
        (b"data:\n\n", "nothing"),
    ):
        assert words in broken(check_portions(CODEC.stream, body)), body


def test_errors_for_people():
    for body, line in (
        (OPENAI_ERROR, "Incorrect API key provided."),
        (b'{"error":"no such model"}', "no such model"),
        (b"", "no reason given"),
        (b'{"detail":"Not Found"}', "Not Found"),
        (b'{"detail":[{"loc":["body"],"msg":"field required"}]}', "field required"),
        (b'[{"error":{"code":400,"message":"API key not valid."}}]', "API key not valid."),
        (HTML, "a page of HTML 502 Bad Gateway"),
        (b"<html>", "a page of HTML"),
        (b"slow\r\n\tdown\x00\x1b\x7f\xc2\x85", "slow down\\x00\\x1b\\x7f\\x85"),
        (b"caf\xe9 \xff", "caf"),
        (b"{}", "{}"),
        ("caf\u00e9 \u202e\u2067x".encode(), "caf\u00e9 \\u202e\\u2067x"),
        (
            "a\u00a0b\u00a1c\u2027d\u2028e\u202ef\u202fg\u2065h\u2066i\u2069j\u206a".encode(),
            "a\\xa0b\u00a1c\u2027d\\u2028e\\u202ef\\u202fg\\u2065h\\u2066i\\u2069j\\u206a",
        ),
        (b'{"error":{"message":["a"]}}', "a"),
        (b"[]", "[]"),
    ):
        assert CODEC.error(503, body) == "HTTP 503: " + line, body
    for size in (189, 190, 191):
        assert len(CODEC.error(400, b"x" * size)) == min(200, 10 + size)


def test_messages():
    said = CODEC.messages(
        [
            Message("user", 'Water "it"\n\u00e9'),
            Message("assistant", "", [("c1", "water", '{"seconds":3}'), ("c2", "stop", '{"bro')]),
            Message("tool", "done", id="c1", result=Result(False)),
            Message("tool", "not JSON", id="c2", result=Result(True)),
            Message("assistant", "Done."),
        ]
    )
    assert [jsontext.loads(text.encode()) for text in said] == [
        {"role": "user", "content": 'Water "it"\n\u00e9'},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "water", "arguments": '{"seconds":3}'},
                },
                {"id": "c2", "type": "function", "function": {"name": "stop", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
        {"role": "tool", "tool_call_id": "c2", "content": "not JSON"},
        {"role": "assistant", "content": "Done."},
    ]
    assert said[4] == '{"role":"assistant","content":"Done."}'
    assert CODEC.messages([]) == []


def test_hidden_reasoning_is_nowhere():
    for found in (stream(OPENAI_TEXT_STREAM), facts(whole_answer(CODEC, OPENAI_CALLS))):
        assert "SECRET" not in repr(found)


def fuzz(codec, wholes, streams, seed: int) -> None:
    """Damaged answers are answers or ``ProviderError``, in any portions the same."""
    random = Random(seed)
    for body in wholes:
        bad = 0
        for data in damaged(body, random, 3):
            try:
                whole_answer(codec, data)
            except Exception as error:
                assert type(error).__name__ in ("ProviderError", "TransientError"), (data, error)
                bad += 1
            assert len(codec.error(500, data)) <= 200
        assert bad > len(body) // 3
    for body in streams:
        bad = 0
        for data in damaged(body, random, 11):
            found = merged(events(codec.stream(), [data]))
            assert [event for event in found if event[0] != "error"] == [
                event
                for event in merged(
                    events(codec.stream(), [data[i : i + 97] for i in range(0, len(data), 97)])
                )
                if event[0] != "error"
            ], data
            bad += found[-1][0] == "error"
        assert bad > len(body) // 11


def test_damaged_answers():
    fuzz(CODEC, (OPENAI_TEXT, OPENAI_CALLS), (OPENAI_CALLS_STREAM,), 20260120)


def test_arguments_that_are_no_text():
    for given, arguments, raw in (
        ('{"x":1}', {"x": 1}, '{"x":1}'),
        ("{}", {}, "{}"),
        ("null", {}, "{}"),
        ('"{\\"x\\":1}"', {"x": 1}, '{"x":1}'),
        ('"\\"{\\\\\\"x\\\\\\":1}\\""', {"x": 1}, '{"x":1}'),
        ("[1]", None, "[1]"),
        ("true", None, "true"),
    ):
        call = '{"id":"a","function":{"name":"t","arguments":%s}}' % given
        expected = [("a", "t", arguments, raw)]
        assert calls(call.encode())[1] == expected, given
        assert whole_answer(CODEC, whole('{"tool_calls":[%s]}' % call)).calls == expected, given


def test_content_in_typed_parts():
    parts = (
        '[{"type":"thinking","thinking":[{"type":"text","text":"hmm"}]},"a",'
        '{"type":"text","text":"b"},{"text":"c"},{"type":"reference","reference_ids":[1]},'
        '{"type":"output_text","text":"d"},{"type":"reasoning","text":"no"},{"type":"text"}]'
    )
    assert whole_answer(CODEC, whole('{"content":%s}' % parts)).text == "abcd"
    assert whole_answer(CODEC, whole('{"content":{"type":"text","text":"a"}}')).text == "a"
    deltas = [
        b'"delta":{"content":[{"type":"thinking","thinking":"hm"}]}',
        b'"delta":{"content":[{"type":"text","text":"Hi."}]},"finish_reason":"stop"',
    ]
    assert stream(openai_stream(*deltas))[0] == ("text", "Hi.")


def test_use_that_cannot_be_read_loses_no_answer():
    for usage, expected in (
        ('{"prompt_tokens":7.0,"completion_tokens":"3"}', (7, 3)),
        ('{"prompt_tokens":-1,"completion_tokens":true}', (None, None)),
        ('{"prompt_tokens":"many","completion_tokens":1073741824}', (None, None)),
        ("[]", (None, None)),
        ("7", (None, None)),
        ("null", (None, None)),
    ):
        body = whole('{"content":"a"}')[:-1] + (',"usage":%s}' % usage).encode()
        answer = whole_answer(CODEC, body)
        assert (answer.text, answer.input_tokens, answer.output_tokens) == ("a",) + expected, usage


def test_the_first_bytes_say_whether_a_body_is_a_stream():
    for body in (OPENAI_TEXT, b"\xef\xbb\xbf \r\n" + OPENAI_TEXT):
        assert check_portions(CODEC.stream, body)[-1][1] == facts(whole_answer(CODEC, OPENAI_TEXT))
    expected = check_portions(CODEC.stream, OPENAI_TEXT_STREAM)
    for start in (b"\xef\xbb\xbf", b": hi\n\n", b"\r\n"):
        assert check_portions(CODEC.stream, start + OPENAI_TEXT_STREAM) == expected
    chunk = OPENAI_TEXT.replace(b'"message"', b'"delta"')
    assert whole_answer(CODEC, chunk).text == whole_answer(CODEC, OPENAI_TEXT).text
    deltas = b"data: " + OPENAI_TEXT + b"\n\ndata: [DONE]\n\n"
    assert stream(deltas)[0] == ("text", whole_answer(CODEC, OPENAI_TEXT).text)
    for size, fits in ((len(OPENAI_TEXT), True), (len(OPENAI_TEXT) - 1, False)):
        reader = CODEC.stream(size)
        if fits:
            reader.feed(OPENAI_TEXT)
        else:
            assert "longer than" in refused(reader.feed, OPENAI_TEXT)


def said(*pieces) -> str:
    """Return the text that a person sees of a stream of these texts."""
    deltas = ['"delta":{"content":%s}' % jsontext.dumps(text) for text in pieces]
    deltas.append('"delta":{},"finish_reason":"stop"')
    found = stream(openai_stream(*[delta.encode() for delta in deltas]))
    shown = "".join([text for kind, text in found if kind == "text"])
    return shown + [value for kind, value in found if kind == "end"][0][0]


def test_a_thought_before_the_answer_is_not_shown():
    for text, expected in (
        ("<think>\nhm\n</think>\n\nHello!", "Hello!"),
        ("\n<think></think>Hello!", "Hello!"),
        ("<think>a</think>\n<think>b</think> Hi <think>", "Hi <think>"),
        ("[THINK]a[/THINK]Hi", "Hi"),
        ("<thought>a</think></thought>Hi", "Hi"),
        ("<think>never ends", ""),
        ("<think>a</think>\n", ""),
        ("<thin", "<thin"),
        ("<b>bold</b>", "<b>bold</b>"),
        ("[1] a <think>b</think>", "[1] a <think>b</think>"),
        ("Look: <think>a</think>", "Look: <think>a</think>"),
        ("<", "<"),
    ):
        body = whole('{"content":%s}' % jsontext.dumps(text))
        assert whole_answer(CODEC, body).text.strip() == expected, text
        for size in (1, 3, len(text)):
            pieces = [text[i : i + size] for i in range(0, len(text), size)]
            assert said(*pieces).strip() == expected, (text, size)
