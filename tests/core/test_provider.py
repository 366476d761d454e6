"""A remote provider without a network: what goes out, what comes in, what is tried again, and
what a person reads.
"""

import transcripts

from clawlite.core.base import effect as E
from clawlite.core.base.effect import Result
from clawlite.core.base.errors import ClawError, ProviderError, QuotaExceeded
from clawlite.core.policy.meter import Meter
from clawlite.core.providers.provider import CONSTANT, EXPONENTIAL, LINEAR, Provider
from clawlite.core.providers.provider_order import ProviderOrder
from clawlite.core.providers.repetition import Repetition
from clawlite.core.turns.history import History
from clawlite.core.turns.turn import Message

PREFIX = b'{"model":"m","stream":false,"messages":[{"role":"system","content":"You are."}'
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
TEXT = b'{"id":"1","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hi."}}],"usage":{"prompt_tokens":7,"completion_tokens":3}}'  # noqa: E501
STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"""data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}

""",
    b"""data: {"choices":[{"index":0,"delta":{"content":"lo."},"finish_reason":"stop"}]}

data: [DONE]

""",
)


class Agent:
    providers = [2]


class Image:
    """As much of an image as a chain asks for."""

    agent = Agent()
    guard = None

    def __init__(self, rows):
        self.rows = rows
        self.agent = Agent()
        self.agent.providers = [2 + number for number in range(len(rows))] + [0]

    def provider(self, number):
        return self.rows[number]

    def section(self, number):
        return [[[[["hello"]]], [["From rules."], None, [], []]]]


def row(
    name="p",
    attempts=3,
    backoff=EXPONENTIAL,
    delay=100,
    auth=0,
    per_day=None,
    per_minute=None,
    stream=False,
    oauth2=None,
    prices=(0, 0),
    window=None,
):
    return [
        name,
        2,
        False,
        "h",
        80,
        "/v1/chat/completions",
        "m",
        auth,
        "KEY",
        oauth2,
        stream,
        attempts,
        backoff,
        delay,
        per_day,
        None,
        per_minute,
        window,
        30000,
        120000,
        prices,
        [0, len(PREFIX)],
        [0, len(PREFIX)],
    ]


def meter_of(now=lambda: (0, 86400), spent=None, **limits):
    spent = {} if spent is None else spent
    return Meter(now, lambda: spent, **limits)


class World:
    """A shell with a script: for each connection the list of what it gives: bytes, or a sentence
    that it failed with.
    """

    def __init__(self, *connections, secret=(True, "k3y")):
        self.connections = list(connections)
        self.secret = secret
        self.requests, self.said, self.slept, self.stored, self.written = [], [], [], [], ""
        self.open = None

    def run(self, generator):
        value = None
        while True:
            try:
                effect = generator.send(value)
            except StopIteration as e:
                return e.value
            value = self.answer(effect)

    def answer(self, effect):
        kind = effect[0]
        if kind == E.OPEN:
            assert self.open is None
            self.requests.append(
                (
                    effect[1:4],
                    b"".join(
                        [
                            part if isinstance(part, bytes) else PREFIX[part[0] : part[0] + part[1]]
                            for part in effect[4]
                        ]
                    ),
                )
            )
            self.open = list(self.connections.pop(0))
        elif kind == E.RECEIVE:
            item = self.open.pop(0) if self.open else b""
            return (False, ProviderError(item)) if isinstance(item, str) else (True, item)
        elif kind == E.CLOSE:
            self.open = None
        elif kind == E.SAY or kind == E.TELL:
            self.said.append(effect[1])
        elif kind == E.WRITE:
            self.written += effect[1]
        elif kind == E.SLEEP:
            self.slept.append(effect[1])
        elif kind == E.SECRET:
            return self.secret
        elif kind == E.STORE:
            self.stored.append(effect[1])
        return None


def ok(body=TEXT):
    return [OK % (len(body), body)]


def status(code, body=b"", headers=b""):
    return [b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n%s\r\n%s" % (code, len(body), headers, body)]


def chunked(parts):
    return [parts[0]] + [b"%x\r\n%s\r\n" % (len(part), part) for part in parts[1:]] + [b"0\r\n\r\n"]


def ask(world, *rows, text="hello", meter=None):
    history = History(65536)
    history.begin(Message("user", text))
    chain = ProviderOrder(Image(list(rows)), transcripts.decoder(), meter or meter_of(), 65536)
    return world.run(chain.ask(history))


def failed(world, *rows, text="xyzzy", **more):
    """Ask with a text that no rule fits, the rules taken away: what no provider answers is an
    error.
    """
    history = History(65536)
    history.begin(Message("user", text))
    image = Image(list(rows))
    image.agent.providers = image.agent.providers[:-1]
    chain = ProviderOrder(
        image, transcripts.decoder(), more.get("meter") or meter_of(), more.get("keep", 65536)
    )
    try:
        world.run(chain.ask(history))
    except ClawError as e:
        return e
    return None


def test_an_answer_that_only_repeats_itself_is_ended_and_not_tried_again():
    piece = b"""data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}

""" % (b"ha " * 20)
    Provider.repetition = Repetition
    try:
        world = World(chunked([STREAM[0]] + [piece] * 100))
        e = failed(world, row(stream=True))
        world = World(chunked([STREAM[0]] + [piece] * 100))
        reply = ask(world, row(stream=True))
    finally:
        Provider.repetition = None
    assert e.message == "provider p: the answer repeated itself and was cut (tried 1 of 3)"
    assert reply.text == "From rules." and len(world.requests) == 1


def test_a_request_is_whole_http():
    world = World(ok())
    reply = ask(world, row())
    assert reply.text == "Hi." and reply.calls == [] and not reply.shown and world.said == []
    where, request = world.requests[0]
    head, _, body = request.partition(b"\r\n\r\n")
    assert (
        where == ("http", "h", 80)
        and head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
        and b"\r\nHost: h\r\n" in head + b"\r\n"
    )
    assert b"Content-Length: %d" % len(body) in head and b"uthorization" not in head
    loads = transcripts.decoder()[0]
    assert loads(body) == {
        "model": "m",
        "stream": False,
        "max_tokens": 4096,
        "messages": [
            {"role": "system", "content": "You are."},
            {"role": "user", "content": "hello"},
        ],
    }


def talk(turns: int, text: str, **more):
    """Yield the bodies of the requests of a conversation."""
    world = World()
    history = History(65536)
    chain = ProviderOrder(Image([row(**more)]), transcripts.decoder(), meter_of(), 65536)
    for turn in range(turns):
        history.begin(Message("user", "%d %s" % (turn, text)))
        world.connections.append(ok())
        reply = world.run(chain.ask(history))
        history.turn.append(Message("assistant", reply.text))
        yield world.requests.pop()[1].partition(b"\r\n\r\n")[2]


def test_requests_of_a_long_conversation_stay_below_12_kb_and_seldom_begin_anew():
    before, longest, anew = PREFIX, 0, 0
    for body in talk(100, "x" * 300):
        assert body.startswith(PREFIX)
        longest = max(longest, len(body))
        anew += not body.startswith(before)
        before = body[: body.rindex(b"]")]
    assert 11000 < longest <= 11700 and 0 < anew < 100 / 6


def test_a_window_says_how_long_requests_are():
    assert max([len(body) for body in talk(40, "x" * 300, window=100000)]) > 14000
    assert max([len(body) for body in talk(30, "x" * 300, window=2000)]) / 4 <= 1500


def test_a_long_answer_does_not_push_out_what_was_said_before():
    for body in talk(4, "x" * 6000):
        messages = transcripts.decoder()[0](body)["messages"]
        said = [message["content"] for message in messages if message["role"] == "user"]
        for text in said[:-1]:
            assert text.endswith("x\n[truncated: true, original_bytes: 6002]")
            assert len(text) < 2100
        assert len(said[-1]) == 6002
    assert [text[0] for text in said] == ["2", "3"]


def test_a_key_goes_into_its_header_and_nowhere_else():
    world = World(ok())
    ask(world, row(auth=1))
    assert b"\r\nAuthorization: Bearer k3y\r\n" in world.requests[0][1]
    world = World(ok())
    ask(world, row(auth=2))
    assert b"\r\napi-key: k3y\r\n" in world.requests[0][1]


def test_a_key_that_is_missing_or_unfit_sends_nothing():
    world = World(secret=(False, ClawError("the secret KEY is nowhere")))
    assert (
        failed(world, row(auth=1)).message == "provider p: the secret KEY is nowhere (tried 1 of 3)"
        and world.requests == []
    )
    world = World(secret=(True, "a\r\nb"))
    e = failed(world, row(auth=1))
    assert "no header can carry" in e.message and world.requests == [] and "a\r\nb" not in e.message


def test_a_key_that_a_server_echoes_is_not_repeated():
    world = World(status(401, b'{"error":{"message":"Incorrect API key provided: k3y."}}'))
    e = failed(world, row(auth=1))
    assert "k3y" not in e.message and "[redacted]" in e.message


def test_a_stream_is_shown_as_it_comes():
    world = World(chunked(STREAM))
    reply = ask(world, row(stream=True))
    assert world.written == "Hello.\n" and reply.text == "Hello." and reply.shown


def test_what_may_pass_is_tried_again_with_growing_pauses():
    world = World(["connection refused"], status(503, b"busy"), ok())
    assert ask(world, row()).text == "Hi."
    assert len(world.requests) == 3 and len(world.said) == 2
    assert world.said[0].startswith("provider p: connection refused (tried 1 of 3, again in 0.1 s)")
    assert 100 <= world.slept[0] <= 125 and 200 <= world.slept[1] <= 250


def test_pauses_are_linear_or_constant_when_so_declared():
    for backoff, second in ((LINEAR, 200), (CONSTANT, 100)):
        world = World(["reset"], ["reset"], ok())
        ask(world, row(backoff=backoff))
        assert 100 <= world.slept[0] <= 125 and second <= world.slept[1] <= second * 5 // 4


def test_retry_after_is_obeyed():
    world = World(status(429, b"", b"Retry-After: 7\r\n"), ok())
    ask(world, row())
    assert world.slept == [7000]
    world = World(status(429, b"", b"Retry-After: 3600\r\n"))
    assert "tried 1 of 3" in failed(world, row()).message and world.slept == []
    for words in (b"\xc2\xb2", b"-1", b"soon", b""):  # as if it were not there
        world = World(status(429, b"", b"Retry-After: " + words + b"\r\n"), ok())
        ask(world, row())
        assert 100 <= world.slept[0] <= 125


def test_what_will_not_pass_is_not_tried_again():
    for code in (400, 401, 403, 404):
        world = World(status(code, b'{"error":{"message":"no such place"}}'), status(404))
        e = failed(world, row())
        assert e.code == -32020 and "no such place" in e.message, e.message
        assert e.never == (code != 400) and len(world.requests) == (2 if code == 404 else 1)
    for code in (301, 302, 307, 308):
        world = World(status(code, b"", b"Location: https://h/v2\r\n"))
        e = failed(world, row())
        assert "HTTP %d: it redirects to https://h/v2" % code in e.message and "endpoint" in e.hint
        assert e.never == (code in (301, 308)) and len(world.requests) == 1, "for ever, or for now"
    world = World(["certificate of h has expired"])
    assert "expired" in failed(world, row()).message and len(world.requests) == 1


def test_an_end_is_declared():
    world = World(["refused"], ["refused"], ["refused"])
    assert (
        failed(world, row()).message == "provider p: refused (tried 3 of 3)"
        and len(world.requests) == 3
    )


def test_the_next_provider_is_asked_in_order_and_said():
    """5.2: fallback in array order, none skipped."""
    world = World(["refused"], status(500), ok())
    assert ask(world, row("a", 1), row("b", 1), row("c", 1)).text == "Hi."
    assert world.said[0] == "provider a: refused (tried 1 of 1); next: b" and world.said[
        1
    ].endswith("; next: c")
    world = World(["refused"], ["refused"])
    assert ask(world, row("a", 1), row("b", 1)).text == "From rules." and world.said[1].endswith(
        "; next: reflex"
    )


def test_when_none_is_left_all_reasons_are_told():
    e = failed(World(["refused"], ["timed out"]), row("a", 1), row("b", 1))
    assert (
        e.code == -32020
        and "provider a: refused" in e.message
        and "provider b: timed out" in e.message
    )


def test_a_cut_answer_is_tried_again():
    cut = ok()[0][:-10]
    world = World([cut], ok())
    assert ask(world, row()).text == "Hi." and len(world.said) == 1
    world = World([STREAM[0]], chunked(STREAM))
    assert ask(world, row(stream=True)).text == "Hello."


def test_nonsense_is_one_clear_line():
    for body in (
        b"",
        b"<html>hi</html>",
        b"{",
        b"[]",
        b'{"choices":[]}',
        b'{"choices":[{"message":{"content":5}}]}',
        b"\xff",
    ):
        e = failed(World(ok(body)), row())
        assert (
            e.code == -32020
            and e.message.startswith("provider p: ")
            and "\n" not in e.message
            and len(e.message) < 300
        ), body
    for data in (b"SSH-2.0-x\r\n\r\n", b"\x16\x03\x01", b"HTTP/1.1 abc\r\n\r\n"):
        assert failed(World([data], [data], [data]), row()).message.startswith("provider p: ")


def test_a_long_answer_is_refused():
    """A body has at most 16 times what is kept of its text; one that says its length is refused
    before it comes.
    """
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    for head, parts in (
        (head + b"Content-Length: 50000000\r\n\r\n", []),
        (head + b"\r\n", [b" " * 8192] * 2 + [b" "]),
    ):
        world = World([head] + parts)
        assert "longer than 16384" in failed(world, row(), keep=1024).message and world.open is None
    body = b" " * (16384 - len(TEXT)) + TEXT
    assert failed(World([head, body]), row(), keep=1024) is None


def test_a_day_that_is_used_up_asks_nobody():
    """5.2: -32021 before the request that would exceed the limit; what does not ask a provider
    goes on.
    """
    meter = meter_of(spent={"p": [1, 995]})
    world = World()
    e = failed(world, row(per_day=1000), meter=meter)
    assert isinstance(e, QuotaExceeded) and e.code == -32021 and world.requests == []
    world = World()
    assert ask(world, row(per_day=1000), meter=meter).text == "From rules."


def test_what_was_used_is_stored():
    world = World(ok())
    ask(world, row(per_day=1000))
    assert world.stored == [[["p", 1, 10]]]


def test_requests_per_minute_wait_their_turn():
    clock = [0]
    meter = meter_of(lambda: (clock[0], 86400))
    world = World(ok(), ok())
    ask(world, row(per_minute=1), meter=meter)
    clock[0] = 15000
    ask(world, row(per_minute=1), meter=meter)
    assert world.slept == [45000] and "1 requests a minute" in world.said[0]


def test_a_turn_stays_with_who_answers_it():
    """The rounds after a fallback do not ask again who could not answer the first; the next turn
    does.
    """
    world = World(["refused"], ["refused"])
    history, chain = (
        History(65536),
        ProviderOrder(Image([row("a", 1)]), transcripts.decoder(), meter_of(), 65536),
    )
    history.begin(Message("user", "hello"))
    assert world.run(chain.ask(history)).text == "From rules."
    history.turn.append(Message("tool", "done", (), "", "t", Result("done", False, "done")))
    assert world.run(chain.ask(history)).text == "done" and len(world.requests) == 1
    history.begin(Message("user", "hello"))
    assert world.run(chain.ask(history)).text == "From rules." and len(world.requests) == 2
