"""A remote provider without a network: what goes out, what comes in, what is tried again, and
what a person reads.
"""

import transcripts

from clawlite.core.base import effect as E
from clawlite.core.base.effect import Result
from clawlite.core.base.errors import ClawError, ProviderError, QuotaExceeded
from clawlite.core.policy.meter import Meter
from clawlite.core.providers.provider import CONSTANT, EXPONENTIAL, LINEAR
from clawlite.core.turns.history import History
from clawlite.core.turns.turn import Message

PREFIX = b'{"model":"m","messages":[{"role":"system","content":"You are."}'
SYSTEM = len(PREFIX) - PREFIX.index(b'{"role"')
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
    changes=None,
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
        [0, len(PREFIX), SYSTEM],
        [0, len(PREFIX), SYSTEM],
        changes or [],
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


def ask(world, *rows, text="hello", meter=None, repetition=None):
    history = History(65536)
    history.begin(Message("user", text))
    chain = transcripts.order(
        Image(list(rows)),
        transcripts.decoder(),
        meter or meter_of(),
        65536,
        repetition=repetition,
    )
    return world.run(chain.ask(history))


def failed(world, *rows, text="xyzzy", **more):
    """Ask with a text that no rule fits, the rules taken away: what no provider answers is an
    error.
    """
    history = History(65536)
    history.begin(Message("user", text))
    image = Image(list(rows))
    image.agent.providers = image.agent.providers[:-1]
    chain = transcripts.order(
        image,
        transcripts.decoder(),
        more.get("meter") or meter_of(),
        more.get("keep", 65536),
        repetition=more.get("repetition"),
    )
    try:
        world.run(chain.ask(history))
    except ClawError as e:
        return e
    return None


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
    chain = transcripts.order(Image([row(**more)]), transcripts.decoder(), meter_of(), 65536)
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
    for headers, wait in (
        (b"retry-after-ms: 250\r\n", 250),
        (b"Retry-After: 9\r\nretry-after-ms: 1500.9\r\n", 1500),
        (b"Retry-After: 9\r\nretry-after-ms: soon\r\n", 9000),
        (b"Retry-After: 0.25\r\n", 250),
        (b"Retry-After: 1.5\r\n", 1500),
        (b"Retry-After: .5\r\n", 500),
        (b"Retry-After: 0\r\n", 0),
        (b"retry-after-ms: 60000\r\n", 60000),
    ):
        world = World(status(429, b"", headers), ok())
        ask(world, row())
        assert world.slept == [wait], headers
    for headers in (b"retry-after-ms: 60001\r\n", b"Retry-After: 60.001\r\n"):
        world = World(status(429, b"", headers))
        assert "60 s are the most" in failed(world, row()).message and world.slept == []
    for words in (b"\xc2\xb2", b"-1", b"1.5.2", b".", b"soon", b""):  # as if it were not there
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
    assert world.said[0] == "provider a: refused (tried 1 of 1); next: b"
    assert world.said[1].endswith("; next: c")
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
        e = failed(World(*[ok(body)] * 3), row())
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
        (head + b"\r\n", [b"{" + b" " * 8191, b" " * 8192, b" "]),
    ):
        world = World([head] + parts)
        assert "longer than 16384" in failed(world, row(), keep=1024).message and world.open is None
    body = TEXT + b" " * (16384 - len(TEXT))
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
        transcripts.order(Image([row("a", 1)]), transcripts.decoder(), meter_of(), 65536),
    )
    history.begin(Message("user", "hello"))
    assert world.run(chain.ask(history)).text == "From rules."
    history.turn.append(Message("tool", "done", (), "", "t", Result("done", False, "done")))
    assert world.run(chain.ask(history)).text == "done" and len(world.requests) == 1
    history.begin(Message("user", "hello"))
    assert world.run(chain.ask(history)).text == "From rules." and len(world.requests) == 2


def inside(body: bytes) -> list:
    """Return a whole answer with the status 200 that is *body*, a JSON object or events."""
    return [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)]


def test_a_failure_inside_an_answer_is_tried_again_like_one_outside():
    passing = (
        b'{"error":{"code":429,"type":"provider_error","message":"Provider returned error"}}',
        b'{"error":{"code":"503","message":"no"}}',
        b'{"error":{"code":"rate_limit_exceeded","message":"no"}}',
        b'{"error":{"type":"overloaded_error","message":"no"}}',
        b'{"error":{"message":"no","metadata":{"error_type":"rate_limit_exceeded"}}}',
        b'{"object":"error","message":"no","code":503}',
        b'{"error":"Service overloaded, try again"}',
        b'{"error":{"message":"upstream: 503 Service Unavailable"}}',
        b'{"error":{"code":"tool_use_failed","type":"invalid_request_error","message":"no"}}',
        b'{"choices":[{"message":{"content":"Hal"},"finish_reason":"error"}]}',
        b'{"choices":[{"message":{},"finish_reason":"error","error":{"code":502}}]}',
        b'{"choices":[{"message":{},"finish_reason":"MALFORMED_FUNCTION_CALL"}]}',
    )
    lasting = (
        b'{"error":{"code":400,"message":"try again"}}',
        b'{"error":{"code":"insufficient_quota","type":"rate_limit_error","message":"no"}}',
        b'{"error":{"type":"invalid_request_error","message":"no"}}',
        b'{"error":"the context has 5030 tokens, 503 too many; try again with fewer"}',
        b'{"choices":[{"message":{},"finish_reason":"error","error":{"code":401}}]}',
    )
    for bodies, tries in ((passing, 2), (lasting, 1)):
        for body in bodies:
            for made in (
                body,
                b"data: " + body + b"\n\n",
                b"event: error\ndata: " + body + b"\n\n",
            ):
                if b"choices" in body and made.startswith(b"event"):
                    continue
                world = World(inside(made), ok())
                e = failed(world, row())
                assert (e is None) == (tries == 2) and len(world.requests) == tries, made
    bare = b'event: error\ndata: {"message":"Overloaded","code":529}\n\n'
    world = World([inside(bare)[0].replace(b"OK\r\n", b"OK\r\nRetry-After: 3\r\n")], ok())
    assert ask(world, row()).text == "Hi." and world.slept == [3000]


def test_a_chance_failure_is_tried_again_and_a_quota_is_not():
    body = b'{"error":{"message":"Failed to call a function.","code":"tool_use_failed"}}'
    world = World(status(400, body), ok())
    assert ask(world, row()).text == "Hi." and len(world.slept) == 1
    world = World(status(429, b'{"error":{"message":"You are out.","code":"insufficient_quota"}}'))
    e = failed(world, row())
    assert "tried 1 of 3" in e.message and "account at http://h/v1" in e.hint and e.never


def test_a_model_that_is_loading_is_waited_for_longer():
    """It costs no attempts, and ends with the time for the answer."""
    loading = status(503, b'{"error":{"code":503,"message":"Loading model","type":"unavailable"}}')
    world = World(loading, loading, loading, loading, loading, loading, ok())
    assert ask(world, row(attempts=1)).text == "Hi."
    assert world.slept == [1000, 2000, 4000, 8000, 15000, 15000]
    world = World(status(503, b'{"error":"Model m is busy","estimated_time":20.0}'), ok())
    assert ask(world, row(attempts=1)).text == "Hi."
    clock = [0]

    class Clocked(World):
        def answer(self, effect):
            clock[0] += effect[1] if effect[0] == E.SLEEP else 0
            return World.answer(self, effect)

    world = Clocked(*[loading] * 20)
    e = failed(world, row(attempts=1), meter=meter_of(lambda: (clock[0], 86400)))
    assert "Loading model" in e.message and "total_ms" in e.hint and clock[0] <= 120000
    overloaded = status(503, b'{"error":{"message":"The model is overloaded."}}')
    assert "tried 1 of 1" in failed(World(overloaded), row(attempts=1)).message


def lists(*names) -> list:
    items = ",".join(['{"id":"%s"}' % name for name in names])
    return ok(('{"object":"list","data":[%s]}' % items).encode())


def hint_of(code, body, *more, target="/v1/chat/completions", attempts=1, **fields) -> str:
    asked = row(attempts=attempts, **fields)
    asked[5] = target
    world = World(status(code, body), *more)
    e = failed(world, asked)
    assert not world.connections, (code, body)
    return e.hint


def test_hints_come_from_status_and_code_and_name_the_address():
    plain = b"404 page not found"
    here = "http://h/v1/chat/completions"
    for hint, words in (
        (hint_of(401, b"no", auth=1), "clawlite secrets set KEY"),
        (hint_of(401, b"no"), "auth.secret_ref"),
        (
            hint_of(400, b'[{"error":{"details":[{"reason":"API_KEY_INVALID"}]}}]', auth=1),
            "set KEY",
        ),
        (hint_of(402, b"no"), "account"),
        (hint_of(403, b'{"error":{"code":"unsupported_country_region_territory"}}'), "country"),
        (hint_of(400, b'{"error":"m does not support tools"}'), "takes no tools for the model m"),
        (hint_of(429, b"slow"), "less often"),
        (hint_of(500, b"tools param requires --jinja flag"), "takes no tools"),
        (hint_of(404, b"{}", lists("a", "b")), "change the model, m; " + here + " lists a, b"),
        (hint_of(404, b"{}", lists("m")), "protocol"),
        (hint_of(404, plain, status(404)), "check the endpoint, http://h/v1, and the model, m"),
        (hint_of(400, b'{"error":"Model m not exist"}', lists("a")), "change the model, m"),
        (hint_of(400, b'{"error":"no such field in this model"}'), "check what " + here + " takes"),
        (hint_of(400, b'{"error":{"code":"model_not_found"}}', status(404)), "check the model, m"),
        (hint_of(503, b"down"), "the network and " + here),
    ):
        assert words in hint and "http://h/v1" in hint, hint


def test_an_address_that_is_too_short_is_told_with_the_right_one():
    plain = b"404 page not found"
    for target, lists_at, right in (
        ("/chat/completions", 1, "http://h/v1"),
        ("/api/chat/completions", 1, "http://h/api/v1"),
        ("/api/chat/completions", 2, "http://h/v1"),
    ):
        others = [status(404)] * lists_at + [lists("m")]
        hint = hint_of(404, plain, *others, target=target)
        assert "write %s as the endpoint" % right in hint, hint
    hint = hint_of(404, plain, *[status(404)] * 4, target="/chat/completions")
    assert hint == "check the endpoint, http://h: most servers want http://h/v1"
    azure = "/openai/deployments/m/chat/completions"
    for code, body in ((404, b'{"error":{"code":"404"}}'), (400, b"Missing api-version")):
        assert "?api-version=" in hint_of(code, body, target=azure)
    assert "check the deployment" in hint_of(404, b"{}", target=azure + "?api-version=1")


def test_a_slow_first_word_names_its_setting():
    e = failed(World(["it said nothing for 30 s"]), row())
    assert "tried 1 of 3" in e.message and "[answer] first_byte_ms" in e.hint


def test_a_server_that_cannot_be_reached_is_named():
    e = failed(World(["connection refused"]), row(attempts=1))
    assert "http://h/v1/chat/completions" in e.hint


def test_text_that_is_no_unicode_is_replaced_and_told():
    half = b'{"choices":[{"message":{"content":"a\\ud83cb"},"finish_reason":"stop"}]}'
    for body in (half, half.replace(b"\\ud83c", b"\xff")):
        world = World(ok(body))
        assert ask(world, row()).text == "a\ufffdb"
        assert "not Unicode" in world.said[0]
    world = World(inside(b"data: " + half.replace(b"message", b"delta") + b"\n\ndata: [DONE]\n\n"))
    assert ask(world, row()).text == "a\ufffdb" and "not Unicode" in world.said[0]
    assert ask(World(ok()), row()).text == "Hi."


def test_rules_do_not_pass_the_result_of_a_models_tool_off_as_an_answer():
    call = (
        b'{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"t",'
        b'"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}'
    )
    history = History(65536)
    history.begin(Message("user", "hello"))
    chain = transcripts.order(Image([row(attempts=1)]), transcripts.decoder(), meter_of(), 65536)
    world = World(ok(call), ["connection refused"])
    reply = world.run(chain.ask(history))
    history.turn.append(Message("assistant", "", [("a", "t", "{}")]))
    history.turn.append(
        Message("tool", '{"percent":21}', (), "a", "t", Result("{}", False, {"percent": 21}))
    )
    assert reply.calls and not chain.broken
    try:
        world.run(chain.ask(history))
        raise AssertionError("the rules answered")
    except ProviderError as e:
        assert "connection refused" in e.message and "percent" not in e.message


def test_a_turn_that_no_provider_could_answer_is_marked():
    for text, is_broken in (("hello", False), ("xyzzy", True)):
        history = History(65536)
        history.begin(Message("user", text))
        chain = transcripts.order(
            Image([row(attempts=1)]), transcripts.decoder(), meter_of(), 65536
        )
        World(["connection refused"]).run(chain.ask(history))
        assert chain.broken == is_broken, text
    history = History(65536)
    history.begin(Message("user", "xyzzy"))
    chain = transcripts.order(Image([]), transcripts.decoder(), meter_of(), 65536)
    assert "no rule" in World().run(chain.ask(history)).text and not chain.broken


def test_a_call_that_is_written_as_text_is_shown_and_not_run():
    for text, is_told in (
        ('<tool_call>\\n{\\"name\\": \\"t\\", \\"arguments\\": {}}\\n</tool_call>', True),
        ("<think>hm</think>[TOOL_CALLS] [{}]", True),
        ("<function=t>{}</function>", True),
        ("Write <tool_call> first.", False),
        ("<b>bold</b>", False),
    ):
        body = '{"choices":[{"message":{"content":"%s"},"finish_reason":"stop"}]}' % text
        world = World(ok(body.encode()))
        reply = ask(world, row())
        assert reply.calls == [] and reply.text.startswith(("<", "[", "Write"))
        assert [" as text, which is not run" in one for one in world.said] == [True] * is_told, text


def cut_by(told, window, text, model="m:latest", spec=None):
    """Ask *text* of a server that says to have read *told* tokens, and whose context has *window*;
    return (what a person reads of a cut, the requests, the provider's window then).
    """
    usage = b',"usage":{"prompt_tokens":%d,"completion_tokens":3}}' % told
    answer = TEXT[: TEXT.index(b',"usage"')] + usage
    loaded = b'{"models":[{"name":"%s","context_length":%d}]}' % (model.encode(), window)
    world = World(ok(answer), ok(loaded) if window else status(404))
    history = History(65536)
    history.begin(Message("user", text))
    chain = transcripts.order(Image([spec or row()]), transcripts.decoder(), meter_of(), 65536)
    assert world.run(chain.ask(history)).text == "Hi."
    said = [line for line in world.said if "without a word" in line]
    return said, world.requests, chain._at(0)[1].told_window


def test_a_request_that_its_server_cut_without_a_word_is_told_with_what_to_do():
    words = "word " * 4000  # 20,000 characters
    for told, window in ((2050, 4096), (2051, 4096), (4090, 4096), (1500, 4096)):
        said, requests, kept = cut_by(told, window, words if told < 4000 else words * 2)
        assert len(said) == 1 and "read %d tokens of about " % told in said[0], told
        assert "its context has 4096" in said[0] and "limits.max_context_window" in said[0]
        assert "OLLAMA_CONTEXT_LENGTH=%d" % (16384 if told < 4000 else 32768) in said[0]
        assert requests[1][1].startswith(b"GET /api/ps HTTP/1.1") and kept == 4096


def test_a_request_that_was_read_as_a_whole_is_no_cut():
    words = "word " * 4000
    for told, window, text, looks in (
        (4500, 0, words, 0),  # four characters to a token
        (3400, 4096, words, 0),
        (2050, 0, words, 1),  # no such server
        (2900, 131072, words, 1),  # it fits, whatever its text is
        (3000, 8192, words, 1),
        (3100, 4096, "." + " " * 20000, 1),  # a text of few tokens
        (3000, 4096, "\u0928\u092e\u0938\u094d\u0924\u0947 " * 1800, 0),  # bytes, not characters
    ):
        said, requests, kept = cut_by(told, window, text)
        assert said == [] and kept is None and len(requests) == 1 + looks, (told, window)
    assert cut_by(2050, 4096, words, "other")[0] == []


def test_a_cut_is_told_once_and_looked_for_three_times():
    words = "word " * 4000
    usage = b',"usage":{"prompt_tokens":2050,"completion_tokens":3}}'
    answer = TEXT[: TEXT.index(b',"usage"')] + usage
    loaded = b'{"models":[{"name":"m","context_length":4096}]}'
    for found, looks in ((ok(loaded), 1), (status(404), 3)):
        world = World()
        chain = transcripts.order(Image([row()]), transcripts.decoder(), meter_of(), 65536)
        for number in range(5):
            world.connections = [ok(answer), list(found)]
            history = History(65536)
            history.begin(Message("user", words))
            world.run(chain.ask(history))
        assert len(world.requests) == 5 + looks
        assert len([line for line in world.said if "without a word" in line]) == (looks == 1)
