"""core/sse: event streams as the HTML standard has them, in any portions."""

from test_cbor_fuzz import Random
from wire_samples import (
    ANTHROPIC_TEXT_STREAM,
    OPENAI_CALLS_STREAM,
    check_portions,
    damaged,
    events,
    refused,
)

from clawlite.core.net.sse import LIMIT, Events

# The examples of the standard, 9.2.6.
EXAMPLES = (
    (b"data: YHOO\ndata: +2\ndata: 10\n\n", [("message", "YHOO\n+2\n10")]),
    (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third "
        b"event\n"
        b"\n",
        [("message", "first event"), ("message", "second event"), ("message", " third event")],
    ),
    (b"data\n\ndata\ndata\n\ndata:", [("message", ""), ("message", "\n")]),
    (b"data:test\n\ndata: test\n\n", [("message", "test"), ("message", "test")]),
)
MIX = (
    b"\xef\xbb\xbfevent: add\r\ndata: caf\xc3\xa9 \xf0\x9f\x8c\xb1\r\n\r\n: comment\r\rdata: "
    b"a\rdata:\rdata: c\r\revent: none\n\n"
    b"event:\ndata: : x\nretry: 10\ndat: no\ndatab: no\nDATA: no\n data: no\n\r\nevent: cut\n"
    b"data: never told\n"
)


class Closed(Events):
    def at_end(self):
        pass


def run(data: bytes) -> list:
    return events(Closed(), [data])[:-1]


def test_examples_of_the_standard():
    for data, wanted in EXAMPLES:
        assert check_portions(Closed, data)[:-1] == wanted
        assert run(data.replace(b"\n", b"\r\n")) == run(data.replace(b"\n", b"\r")) == wanted


def test_line_ends_names_bom_and_what_is_ignored():
    assert check_portions(Closed, MIX)[:-1] == [
        ("add", "caf\u00e9 \U0001f331"),
        ("message", "a\n\nc"),
        ("message", ": x"),
    ]


def test_only_the_first_bom_is_one():
    assert run(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n") == [("message", "b")]
    assert run(b"\n\xef\xbb\xbfdata: a\n\n") == []


def test_real_streams_in_any_portions():
    assert len(check_portions(Closed, ANTHROPIC_TEXT_STREAM)) == 13
    assert len(run(OPENAI_CALLS_STREAM)) == 10


def test_not_utf8():
    for bad in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"):
        for name in (b"data: ", b"event: "):
            stream = Events()
            stream.feed(name + bad + b"\n\n")
            assert "UTF-8" in refused(stream.next_event)
        assert run(b": " + bad + b"\nid: " + bad + b"\ndata: a\n\n") == [("message", "a")]


def test_bound_one_below_at_and_above():
    for portion in (1, 7, 1000):
        for limit, fits in ((19, True), (18, True), (17, False)):
            data = b"event: e\ndata: abcd\n\n" * 3
            stream = Events(limit - 1)
            found = events(
                stream, [data[i : i + portion] for i in range(0, len(data), portion)], False
            )
            assert len([event for event in found if event[0] == "e"]) == (
                3 if fits and limit == 19 else 0
            ), (limit, portion)
    for size, fits in ((LIMIT - 1, True), (LIMIT, True), (LIMIT + 1, False)):
        stream = Events()
        stream.feed(b"data:" + b"x" * (size - 5))
        if fits:
            assert stream.next_event() is None
            stream.feed(b"\n\n")
            assert len(stream.next_event()[1]) == size - 5
        else:
            assert "%d bytes" % LIMIT in refused(stream.next_event)


def test_comments_may_go_on_for_ever():
    stream = Events(40)
    for _ in range(1000):
        stream.feed(b": keep-alive\n")
        assert stream.next_event() is None
    stream.feed(b"data: x\n\n")
    assert stream.next_event() == ("message", "x")


def test_many_events_in_a_chunk_and_many_chunks_in_an_event():
    """Linear in the input: a quadratic reader would take minutes here."""
    assert run(b"data: x\n\n" * 1000) == [("message", "x")] * 1000
    stream = Events()
    stream.feed(b"data:")
    for _ in range(20000):
        stream.feed(b"abc")
        assert stream.next_event() is None
    stream.feed(b"\n\n")
    assert stream.next_event() == ("message", "abc" * 20000)


def test_damaged_streams():
    random = Random(20260119)
    for data in damaged(MIX, random):
        found = events(Closed(), [data])
        assert events(Closed(), [data[i : i + 3] for i in range(0, len(data), 3)]) == found
