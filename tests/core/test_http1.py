"""core/http1: requests are well formed or refused, answers come out the same in any portions."""

from test_cbor_fuzz import Random
from wire_samples import (
    HTML,
    HTTP_CHUNKED,
    HTTP_CLOSE,
    HTTP_LENGTH,
    check_portions,
    damaged,
    events,
    merged,
)

from clawlite.core.net.http1 import MAX_FIELDS, MAX_HEAD, Response, request


def run(data: bytes, close: bool = True) -> list:
    """Return the events without the mark of the close."""
    return [event for event in merged(events(Response(), [data], close)) if event[0] != "closed"]


def error(data: bytes, close: bool = True) -> str:
    last = run(data, close)[-1]
    assert last[0] == "error", last
    return last[1]


def test_request():
    assert request(
        "POST", "/v1/messages?beta=1", "localhost:8080", [("X-Api-Key", "a b"), ("X-Empty", "")], 12
    ) == (
        b"POST /v1/messages?beta=1 HTTP/1.1\r\nHost: localhost:8080\r\nX-Api-Key: a b\r\nX-Empty: "
        b"\r\n"
        b"Content-Length: 12\r\nConnection: close\r\n\r\n"
    )
    assert (
        request("GET", "/", "h", [], None)
        == b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    )


def test_request_refuses_what_would_begin_another_part():
    good = ("POST", "/v1", "host", "Name", "value")
    for position in range(5):
        for bad in ("\r", "\n", "\0", "\x7f", "\u00e9", "\U0001f331", "\t"):
            parts = list(good)
            parts[position] += bad
            message = refuse(parts)
            assert "value" not in message and "ASCII" in message
        if position < 4:
            for bad in (good[position] + " x", ""):
                parts = list(good)
                parts[position] = bad
                refuse(parts)
    for name in ("Host", "CONTENT-LENGTH", "connection", "Transfer-Encoding", "a:b"):
        refuse(["POST", "/", "h", name, "v"])


def refuse(parts: list) -> str:
    try:
        request(parts[0], parts[1], parts[2], [(parts[3], parts[4])], 0)
    except ValueError as e:
        return str(e)
    raise AssertionError(parts)


def test_content_length():
    assert check_portions(Response, HTTP_LENGTH) == [
        (
            "head",
            200,
            {
                "date": "Mon, 01 Jan 2029 00:00:00 GMT",
                "content-type": "application/json",
                "content-length": "7",
            },
        ),
        ("data", b'{"a":1}'),
        ("end",),
        ("closed", None),
    ]
    assert run(HTTP_LENGTH + b"more") == run(HTTP_LENGTH)
    # a body of known length needs no close
    assert run(HTTP_LENGTH, False) == run(HTTP_LENGTH)


def test_chunked_after_1xx_with_folded_lines_and_trailers():
    assert check_portions(Response, HTTP_CHUNKED) == [
        (
            "head",
            200,
            {
                "content-type": "text/event-stream",
                "transfer-encoding": "chunked",
                "via": "a, b",
                "x-long": "one two",
            },
        ),
        ("data", b"hello world0123456789"),
        ("end",),
        ("closed", None),
    ]


def test_until_close_and_bare_line_feeds():
    assert check_portions(Response, HTTP_CLOSE) == [
        ("head", 429, {"retry-after": "20"}),
        ("data", b"slow down"),
        ("closed", None),
        ("end",),
    ]
    assert run(HTTP_CLOSE, False)[-1][0] == "data"


def test_answers_without_a_body():
    for head in (
        b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 304\r\nContent-Length: 9\r\n\r\n",
        b"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 00, 00\r\n\r\n",
    ):
        found = run(head, False)
        assert found[0][0] == "head" and found[1:] == [("end",)], found


def test_pieces_go_out_as_they_come():
    response = Response()
    response.feed(b"HTTP/1.1 200 OK\r\n\r\n")
    assert response.next_event()[0] == "head" and response.next_event() is None
    for piece in (b"a", b"bc" * 5000):
        response.feed(piece)
        assert response.next_event() == ("data", piece) and response.next_event() is None


def test_what_field_values_may_not_hold_becomes_a_space():
    head = run(b"HTTP/1.1 200 OK\r\nServer: caf\xe9\0\x01 x\ry\r\nContent-Length: 0\r\n\r\n")[0]
    assert head[2]["server"] == "caf    x y"


def test_cut_answers():
    for end in range(len(HTTP_CHUNKED)):
        message = error(HTTP_CHUNKED[:end])
        assert ("before an answer" in message) == (end < HTTP_CHUNKED.find(b"\n") + 1), (
            end,
            message,
        )
    for end in range(len(HTTP_LENGTH)):
        assert "closed" in error(HTTP_LENGTH[:end])


def test_no_answer_of_http1():
    for data in (
        HTML,
        b"H2",
        b"HTTP/2 200\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"SSH-2.0-OpenSSH_9\r\n",
        b" HTTP/1.1 200 OK",
    ):
        assert "found" in error(data, False)
    for line in (
        b"HTTP/1.1 200OK",
        b"HTTP/1.1 20",
        b"HTTP/1.1  200",
        b"HTTP/1.12 200",
        b"HTTP/1.x 200",
        b"HTTP/1.1 2000",
        b"HTTP/1.1",
        b"HTTP/1.1 -20 OK",
    ):
        assert "status line" in error(line + b"\r\n", False), line
    for status in (b"000", b"099", b"101"):
        assert "nobody asked for" in error(b"HTTP/1.1 " + status + b" X\r\n\r\n", False)


def test_wrong_fields():
    for line in (
        b"no colon",
        b": no name",
        b"na me: v",
        b"name : v",
        b" folded: first",
        b"n\xc3\xa9: v",
    ):
        assert "expected a header" in error(b"HTTP/1.1 200 OK\r\n" + line + b"\r\n\r\n", False), (
            line
        )
    for length in (b"", b"-1", b"+1", b"1_0", b"0x1", b"1 1", b"1, 2", b"1,", b"9" * 16, b"\xb2"):
        assert "Content-Length" in error(
            b"HTTP/1.1 200 OK\r\nContent-Length: " + length + b"\r\n\r\n", False
        ), length
    assert (
        run(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 15 + b"\r\n\r\n", False)[0][0] == "head"
    )
    for coding in (b"gzip", b"gzip, chunked", b"identity", b""):
        assert "Transfer-Encoding" in error(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + coding + b"\r\n\r\n", False
        )
    # RFC 9112, 6.3: the coding wins over a length
    assert ("data", b"ab") in run(
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: "
        b"Chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
    )


def test_wrong_chunks():
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    for size in (b"", b";x", b"-1", b"+1", b"0x1", b"1_0", b"g", b"1 1", b"000000001", b"\xff"):
        assert "size of a chunk" in error(head + size + b"\r\n", False), size
    assert run(head + b"fFfFfFfF\r\nabc", False)[-1] == ("data", b"abc")
    assert run(head + b" 3 ; a=b\r\nabc\r\n0\r\n\r\n")[-1] == ("end",)
    for gap in (b"x\r\n", b"\rx\n"):
        assert "end of a chunk" in error(head + b"1\r\na" + gap, False)


def test_bound_of_the_head():
    for size, wanted in ((MAX_HEAD - 1, "head"), (MAX_HEAD, "head"), (MAX_HEAD + 1, "error")):
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: \r\n\r\n"
        head = head[:-4] + b"x" * (size - len(head)) + b"\r\n\r\n"
        assert len(head) == size
        for portion in (len(head), 1000):
            portions = [head[i : i + portion] for i in range(0, len(head), portion)]
            assert events(Response(), portions)[0][0] == wanted, size
    # informational answers count too: a server that sends nothing else is left
    assert "longer" in error(b"HTTP/1.1 100 Continue\r\n\r\n" * 700, False)
    assert "longer" in error(b"HTTP/1.1 200 " + b"x" * MAX_HEAD, False)
    # the whole room of a head does not take that of its first chunk
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: \r\n\r\n"
    head = head[:-4] + b"x" * (MAX_HEAD - len(head)) + b"\r\n\r\n"
    assert run(head + b"1\r\na\r\n0\r\n\r\n")[-1] == ("end",)


def test_bound_of_the_fields():
    for count, wanted in (
        (MAX_FIELDS - 1, "head"),
        (MAX_FIELDS, "head"),
        (MAX_FIELDS + 1, "error"),
    ):
        lines = b"".join([b"X-%d: v\r\n" % i for i in range(count)])
        assert run(b"HTTP/1.1 204 OK\r\n" + lines + b"\r\n")[0][0] == wanted, count


def test_bound_of_chunk_lines_and_trailers():
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    for size, bad in ((MAX_HEAD - 1, False), (MAX_HEAD, False), (MAX_HEAD + 1, True)):
        assert (run(head + b"1;" + b"x" * (size - 4) + b"\r\na")[-2][0] == "head") == bad
        assert (run(head + b"0\r\n" + b"x" * (size - 4) + b"\r\n\r\n")[-1][0] == "error") == bad


def test_many_chunks_in_one_portion():
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert run(head + b"1\r\na\r\n" * 1000 + b"0\r\n\r\n")[1] == ("data", b"a" * 1000)


def test_damaged_answers():
    random = Random(20260118)
    for sample in (HTTP_LENGTH, HTTP_CHUNKED, HTTP_CLOSE):
        good = bad = 0
        for data in damaged(sample, random):
            found = merged(events(Response(), [data]))
            pieces = merged(events(Response(), [data[i : i + 3] for i in range(0, len(data), 3)]))
            assert [event[0] for event in pieces] == [event[0] for event in found], data
            if found[-1][0] == "error":
                bad += 1
            else:
                good += 1
        assert good and bad
