"""Turns over minutes, in no time: the core of an agent, its real image, and a clock that a test
moves.

What a server would have to keep quiet for is told here: silence, long pauses, a minute's requests,
approvals that run out. The same effects reach real sockets in test_turns.py.
"""

import pytest
from agents import INITIALIZE
from llm_server import ANSWERS, MODEL, when_away, when_silent
from providers.clockwork import Clockwork
from providers.project import provider

from clawlite.core.turns.history import History
from clawlite.core.turns.turn import turn
from clawlite.linux.io.jsontext import dumps

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
ANSWER = "[answer]\ntotal_ms = 600000\n"
ENDLESS = "Next: the model did not come to an end; use another, or a lower tokens_per_request.\n"
AWAY = [("openai", "http://localhost:1/v1"), ("anthropic", "http://localhost:1/v1")]


@pytest.fixture
def clockwork(tmp_path):
    """An agent whose answers may take as long as its turn: the limit of one answer is not what
    is told here.
    """
    return lambda *providers, settings="", **more: Clockwork(
        tmp_path, *providers, settings=ANSWER + settings, **more
    )


@pytest.mark.parametrize("away", AWAY, ids=["openai", "anthropic"])
@pytest.mark.parametrize(
    "came",
    [b"", b"HTTP/1.1 200", HEAD, HEAD + b'data: {"cho'],
    ids=["nothing", "half a head", "a head", "half an event"],
)
def test_a_minute_of_silence_ends_a_request(clockwork, away, came):
    it = clockwork(
        provider(away, retry={"max_attempts": 2, "backoff": "constant", "initial_delay_ms": 1000})
    )
    it.line("hello")
    if came:
        it.move(30000)
        it.receive(came)  # what comes begins the minute anew
    it.move(59999)
    assert it.said == "" and it.open
    it.move(1)
    # who says nothing at all is not tried again: it would take as long
    if not came:
        assert (
            it.said
            == "provider first: it said nothing for 60 s (tried 1 of 2)." + when_silent(away)
            and not it.agent.tasks
        )
        return
    assert (
        it.said.startswith("provider first: it said nothing for 60 s (tried 1 of 2, again in 1.")
        and not it.open
    )
    it.move(1250)
    assert it.requests == 2 and it.open
    it.move(60000)
    assert (
        it.said.splitlines()[1:]
        == ["provider first: it said nothing for 60 s (tried 2 of 2)." + when_silent(away)[:-1]]
        and not it.open
        and not it.agent.tasks
    )


@pytest.mark.parametrize("away", AWAY, ids=["openai", "anthropic"])
def test_silence_inside_an_answer_goes_to_the_rules_and_runs_nothing_of_it(clockwork, away):
    api = away[0]
    it = clockwork(
        provider(away), reflex='[[rule]]\nwhen = "{words:text}"\nsay = "By the rules."\n'
    )
    it.line("hello")
    pieces = ANSWERS[api](
        {"text": "I will write", "calls": [("note", '{"text":"x"}', "c1")]}, MODEL, True, True
    )
    it.receive(HEAD + b"".join(pieces[:-2]))
    it.move(60000)
    assert (
        it.said
        == "I will write\nprovider first: it said nothing for 60 s (tried 1 of 1); next: reflex\n"
        "By the rules.\n"
    )
    assert it.ran == [] and not it.open and not it.agent.tasks


def test_a_slow_answer_is_no_silence(clockwork):
    it = clockwork(provider(AWAY[0]))
    it.line("hello")
    it.receive(HEAD)
    pieces = ANSWERS["openai"]({"text": "word", "calls": ()}, MODEL, True, True)
    assert 2 < len(pieces) < 6  # more of them would use up the turn's time
    for piece in pieces:
        it.move(59999)
        it.receive(b": still here\n\n")
        it.move(50000)
        it.receive(piece)
    assert it.said == "word\n" and it.requests == 1


@pytest.mark.parametrize(
    "settings, due", [("", 600000), ("[budget]\ntotal_timeout_ms = 90000\n", 90000)]
)
def test_a_turn_that_uses_up_its_time_is_ended_with_its_connection(clockwork, settings, due):
    it = clockwork(provider(AWAY[0]), settings=settings)
    it.line("hello")
    it.receive(HEAD)
    while it.now + 30000 < due:
        it.move(30000)
        it.receive(b": still here\n\n")
    it.move(due - it.now - 1)
    assert it.open and it.said == ""
    it.move(1)
    assert not it.open and not it.agent.tasks and it.agent.deadline() is None
    assert it.said == "the turn ran out of time (total_timeout_ms: %d). %s" % (
        due,
        ENDLESS,
    )
    it.line("hello")
    assert it.requests == 2


def test_the_time_of_a_turn_stands_still_while_a_person_is_asked(clockwork):
    it = clockwork(provider(AWAY[0]), settings="[budget]\ntotal_timeout_ms = 30000\n")
    it.line("hello")
    it.move(10000)
    it.receive(
        HEAD
        + b"".join(
            ANSWERS["openai"](
                {"text": "", "calls": [("careful", '{"what":"x"}', "c1")]}, MODEL, True, True
            )
        )
    )
    it.move(55000)
    assert "Approve careful" in it.said
    it.line("y")
    assert it.ran == ["careful"] and it.open
    it.move(19999)
    assert it.open
    it.move(1)
    assert not it.open and it.said.endswith("(total_timeout_ms: 30000). " + ENDLESS)


@pytest.mark.parametrize(
    "backoff, waits",
    [
        ("exponential", [20, 40, 60, 60]),
        ("linear", [20, 40, 60, 60]),
        ("constant", [20, 20, 20, 20]),
    ],
)
def test_no_pause_is_longer_than_a_minute_and_a_quarter(clockwork, backoff, waits):
    it = clockwork(
        provider(AWAY[0], retry={"max_attempts": 5, "backoff": backoff, "initial_delay_ms": 20000})
    )
    it.line("hello")
    for number, wait in enumerate(waits):
        it.refuse("connection refused")
        assert it.requests == number + 1
        it.move(wait * 1000 - 1)
        assert it.requests == number + 1
        it.move(wait * 250 + 1)
        assert it.requests == number + 2
    it.refuse("connection refused")
    assert it.said.endswith("(tried 5 of 5)." + when_away(AWAY[0])) and it.agent.deadline() is None


@pytest.mark.parametrize("seconds, obeyed", [(0, True), (60, True), (61, False)])
def test_retry_after_up_to_a_minute(clockwork, seconds, obeyed):
    it = clockwork(provider(AWAY[0], retry={"max_attempts": 2, "initial_delay_ms": 1}))
    it.line("hello")
    it.receive(b"HTTP/1.1 429 X\r\nContent-Length: 0\r\nRetry-After: %d\r\n\r\n" % seconds)
    too_long = "" if obeyed else "; it asks to wait 61 s, and 60 s are the most"
    assert it.said.startswith(
        "provider first: HTTP 429: no reason given%s (tried 1 of 2" % too_long
    )
    assert ("again in" in it.said) == obeyed
    it.move(max(0, seconds * 1000 - 1))
    assert it.requests == (2 if obeyed and not seconds else 1)
    it.move(1)
    assert it.requests == (2 if obeyed else 1)


def test_a_minute_admits_its_requests_and_rounds_count(clockwork):
    it = clockwork(provider(AWAY[0], streaming=False, limits={"requests_per_minute": 2}))
    body = b'{"choices":[{"message":{"content":"","tool_calls":[{"id":"c%d","function":{"name":"note","arguments":"{\\"text\\":\\"x\\"}"}}]}}]}'  # noqa: E501
    it.line("hello")
    for number in (1, 2):
        it.receive(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body % number) + body % number
        )
        it.move(1000 if number == 1 else 0)
    assert it.ran == ["note", "note"] and it.requests == 2 and not it.open
    assert it.said == "provider first: 2 requests a minute are its limit, waiting 60 s\n"
    it.move(58999)
    assert it.requests == 2
    it.move(1)
    assert it.requests == 3


@pytest.mark.parametrize(
    "limited, code", [((), -32020), (("one",), -32020), (("one", "two"), -32021)]
)
def test_the_code_says_whether_limits_alone_were_in_the_way(clockwork, limited, code):
    it = clockwork(
        *[
            provider(
                AWAY[0], name, **({"limits": {"tokens_per_request": 10}} if name in limited else {})
            )
            for name in ("one", "two")
        ]
    )
    ended = []
    it.agent.begin(
        turn(it.agent.setup, "hello", it.agent.chain(), History(65536)),
        lambda value, error, now: ended.append(error),
        it.now,
    )
    it.settle()
    for _ in range(2 - len(limited)):
        it.refuse("connection refused")
    assert ended[0].code == code and it.requests == 2 - len(limited)
    assert (
        ended[0].message.startswith("no provider left: provider one: ")
        and "; provider two: " in ended[0].message
    )


def test_ctrl_c_in_a_pause_is_the_end_of_it(clockwork):
    it = clockwork(provider(AWAY[0], retry={"max_attempts": 9, "initial_delay_ms": 1000}))
    it.line("hello")
    it.refuse("connection refused")
    assert it.console.interrupt(it.now)
    it.settle()
    it.move(3600000)
    assert it.requests == 1 and it.said.endswith("Interrupted.\n") and not it.agent.tasks


@pytest.mark.parametrize(
    "timeout, waits", [({}, 5000), ({"timeout_ms": 100}, 100), ({"timeout_ms": 0}, 0)]
)
def test_a_shutdown_waits_as_long_as_it_said_and_closes_the_connection(clockwork, timeout, waits):
    it = clockwork(provider(AWAY[0]))
    for number, (method, params) in enumerate(
        [("claw.initialize", INITIALIZE), ("claw.shutdown", timeout)]
    ):
        if number:
            it.line("hello")
        it.session.record(
            dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode(),
            it.now,
        )
        it.settle()
    if waits:
        it.move(waits - 1)
        assert it.open and len(it.sent) == 1
    it.move(1)
    assert not it.open and not it.agent.tasks and it.sent[1]["result"] == {"drained": False}
    assert "the agent stopped before this call ended" in it.said


def test_an_approval_that_runs_out_is_a_result_and_the_turn_goes_on(clockwork):
    it = clockwork(provider(AWAY[0], streaming=False))
    body = b'{"choices":[{"message":{"content":"","tool_calls":[{"id":"c","function":{"name":"careful","arguments":"{\\"what\\":\\"x\\"}"}}]}}]}'  # noqa: E501
    it.line("hello")
    it.receive(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert not it.open and 'Approve careful(what="x")?' in it.said
    it.move(59999)
    assert it.requests == 1
    it.move(1)
    assert it.requests == 2 and it.ran == []
    it.receive(b'HTTP/1.0 200 OK\r\n\r\n{"choices":[{"message":{"content":"Nobody came."}}]}')
    it.receive(b"")
    assert it.said.endswith("Nobody came.\n") and not it.agent.tasks


def test_whatever_ends_an_attempt_closes_its_connection(clockwork):
    def no_room(data):
        raise MemoryError

    it = clockwork(provider(AWAY[0], streaming=False))
    it.agent.setup.codecs = (no_room, dumps)
    it.line("hello")
    assert it.open
    it.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    assert not it.open and not it.agent.tasks and len(it.said.splitlines()) == 1


def test_an_answer_without_end_is_told_with_what_bounds_it(tmp_path):
    it = Clockwork(tmp_path, provider(AWAY[0]))
    it.line("Say five words.")
    it.receive(HEAD)
    for _ in range(5):
        it.move(30000)
        it.receive(b": still here\n\n")
    it.move(30000)
    assert it.said == "", "a loop's clock may be behind by a moment"
    it.move(100)
    assert it.said == (
        "provider first: its answer was not whole after 180 s (tried 1 of 1). "
        "Next: use a faster model, a lower tokens_per_request or a higher [answer] total_ms in "
        "clawlite.toml.\n"
    )
