"""Handlers: plain functions, generators in steps, timeouts that end the work."""

from clawlite.core.base.effect import ASKS_PROVIDER
from clawlite.core.base.errors import SandboxDenied, ToolTimeout
from clawlite.core.image.image import GENERATOR, HAS_BOARD, MAKER
from clawlite.core.turns.handlers import MAX_TOKENS, Handlers


class Tool:
    def __init__(self, function, flags=0):
        self.name = function
        self.flags = flags
        self.handler = [MAKER, function]


LOG = []


def steps(n, wait=10):
    try:
        for i in range(n):
            LOG.append(i)
            yield wait
        return "done"
    finally:
        LOG.append("closed")


def raises():
    raise KeyError("x")
    yield


def asks():
    return (yield {"ask": "Why?"})


def stubborn():
    try:
        yield 1000
    finally:
        raise ValueError("clean-up failed")


def start(function, flags=0, due=None, now=0, **arguments):
    LOG.clear()
    handlers = Handlers(
        {},
        {
            "steps": steps,
            "raises": raises,
            "asks": asks,
            "stubborn": stubborn,
            "plain": lambda a: a + 1,
            "broken": lambda: 1 // 0,
            "wired": lambda board, a: (board, a),
        },
        "BOARD",
    )
    return handlers, handlers.start(1, Tool(function, flags), arguments, due, now)


def test_a_plain_function_ends_at_once():
    assert start("plain", a=1)[1] == (True, 2)


def test_a_handler_gets_the_board_when_it_asks():
    assert start("wired", HAS_BOARD, a=1)[1] == (True, ("BOARD", 1))


def test_what_a_function_raises_is_an_outcome():
    done, error = start("broken")[1]
    assert not done and error.message.startswith("ZeroDivisionError: ")


def test_a_missing_handler_is_denied():
    done, error = start("nobody")[1]
    assert not done and isinstance(error, SandboxDenied)


def test_a_generator_works_in_steps():
    handlers, outcome = start("steps", GENERATOR, n=2)
    assert outcome is None and handlers.deadline() == 0 and LOG == []
    assert handlers.poll(0) == [] and LOG == [0] and handlers.deadline() == 10
    assert handlers.poll(9) == [] and LOG == [0]
    assert handlers.poll(10) == [] and LOG == [0, 1]
    assert handlers.poll(20) == [(1, (True, "done"))] and handlers.deadline() is None


def test_a_generator_that_never_waits_shares_the_loop():
    handlers, _ = start("steps", GENERATOR, n=3, wait=None)
    assert handlers.poll(0) == [] and LOG == [0] and handlers.deadline() == 0


def test_a_timeout_ends_the_work():
    handlers, _ = start("steps", GENERATOR, due=25, n=9)
    for now in (0, 10, 20):
        assert handlers.poll(now) == []
    assert handlers.deadline() == 25
    assert handlers.poll(24) == []
    ended = handlers.poll(25)
    assert (
        isinstance(ended[0][1][1], ToolTimeout)
        and LOG[-1] == "closed"
        and handlers.deadline() is None
    )
    assert handlers.poll(1000) == []


def test_a_handler_that_waits_for_a_provider_is_ended_when_it_is_due():
    """The loop is to wake for that: nothing else may happen until then."""
    handlers, _ = start("asks", GENERATOR, due=25)
    assert handlers.poll(0) == [(1, (ASKS_PROVIDER, ("Why?", MAX_TOKENS)))]
    assert handlers.deadline() == 25
    assert isinstance(handlers.poll(25)[0][1][1], ToolTimeout) and handlers.deadline() is None


def test_what_a_generator_raises_is_an_outcome():
    handlers, _ = start("raises", GENERATOR)
    done, error = handlers.poll(0)[0][1]
    assert not done and error.message.startswith("KeyError")


def test_cancel_closes_the_generator():
    handlers, _ = start("steps", GENERATOR, n=9)
    handlers.poll(0)
    handlers.cancel(2)
    assert LOG == [0]
    handlers.cancel(1)
    assert LOG == [0, "closed"] and handlers.poll(100) == []


def test_a_failing_clean_up_does_not_stop_the_others():
    handlers, _ = start("stubborn", GENERATOR, due=5)
    handlers.start(2, Tool("steps", GENERATOR), {"n": 9}, None, 0)
    handlers.poll(0)
    ended = handlers.poll(5)
    assert len(ended) == 1 and isinstance(ended[0][1][1], ToolTimeout)
    handlers.close()
    assert LOG[-1] == "closed" and handlers.deadline() is None


class Odd(BaseException):
    pass


def leaves(how):
    raise how


def leaves_in_a_step(how):
    LOG.append(0)
    raise how
    yield


def test_whatever_is_raised_ends_one_call_alone():
    for how, said in (
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (Odd("x"), "Odd: x"),
    ):
        handlers = Handlers({}, {"plain": leaves, "step": leaves_in_a_step, "steps": steps}, None)
        done, error = handlers.start(1, Tool("plain"), {"how": how}, None, 0)
        assert not done and error.message == said
        assert handlers.interrupted == isinstance(how, KeyboardInterrupt)
        handlers.start(2, Tool("steps", GENERATOR), {"n": 1, "wait": 0}, None, 0)
        handlers.start(3, Tool("step", GENERATOR), {"how": how}, None, 0)
        handlers.poll(0)
        assert handlers.poll(1) == [(2, (True, "done"))] and handlers.deadline() is None


def test_an_interrupt_in_a_clean_up_does_not_stop_the_others():
    def rude():
        try:
            yield 1000
        finally:
            raise KeyboardInterrupt

    handlers = Handlers({}, {"rude": rude, "steps": steps}, None)
    handlers.start(1, Tool("rude", GENERATOR), {}, None, 0)
    handlers.start(2, Tool("steps", GENERATOR), {"n": 9}, None, 0)
    handlers.poll(0)
    LOG.clear()
    handlers.close()
    assert LOG == ["closed"] and handlers.deadline() is None
