"""core/gateway: what a device makes of what a gateway sends."""

from clawlite.core.base.effect import CLOSE, OPEN, RECEIVE, STORE, TELL, WRITE
from clawlite.core.base.errors import ProviderError
from clawlite.core.providers.gateway import GatewayProvider
from clawlite.core.turns.history import History
from clawlite.core.turns.turn import Message

try:
    from jsontext import loads
except ImportError:  # CPython
    from clawlite.linux.io.jsontext import loads


def ask(events, meter=None, keep=2048, most=None):
    """Return (the reply or the error, effects) of a request whose gateway sends *events*."""
    history = History(100)
    history.begin(Message("user", "hello"))
    asked = GatewayProvider("model", loads, keep).ask(history, meter, most)
    effects, value = [], None
    try:
        while True:
            effect = asked.send(value)
            value = None
            if effect[0] == RECEIVE:
                event = events.pop(0)
                value = (not isinstance(event, Exception), event)
            else:
                effects.append(effect)
    except StopIteration as e:
        return e.value, effects
    except ProviderError as e:
        return e, effects


def test_text_and_calls():
    reply, effects = ask(
        [
            "Let me ",
            "look.",
            "\n",
            {"calls": [["c1", "look", '{"bed":2}'], ["c2", "look", "nope"]], "stop": "tools"},
        ]
    )
    assert (reply.text, reply.shown, reply.stop) == ("Let me look.", True, "tools")
    assert reply.calls == [("c1", "look", {"bed": 2}, '{"bed":2}'), ("c2", "look", None, "nope")]
    assert [effect[0] for effect in effects] == [OPEN, WRITE, WRITE, WRITE, CLOSE]
    assert effects[0][1:4] == ("gateway", "model", 0) and effects[0][4][0].text == "hello"


def test_a_notice_begins_anew():
    reply, effects = ask(["Half", "\n", ["tried 1 of 2"], "Whole", {"stop": "stop"}], None, 2048, 7)
    assert reply.text == "Whole" and (TELL, "tried 1 of 2") in effects and effects[0][3] == 7


def test_no_more_is_kept_than_wanted():
    reply, _ = ask(["x" * 50, "y" * 50, "z" * 50, {}], None, 60)
    assert reply.text == "x" * 50 + "y" * 50 and reply.stop == ""


def test_an_error_closes():
    error, effects = ask(["Half", ProviderError("gone")])
    assert error.message == "provider model: gone" and effects[-1] == (CLOSE,)
    assert (
        ask([ProviderError("provider model: busy (tried 1 of 1)")])[0].message
        == "provider model: busy (tried 1 of 1)"
    )


def test_what_was_used_goes_to_a_ledger_that_is_there():
    spent = [[".day", 20000, 29], [".cost", 20000, 0]]
    assert (STORE, spent) in ask([{"spent": spent}], object())[1]
    assert ask([{"spent": spent}])[1][-1] == (CLOSE,)


def test_a_malformed_result_is_an_error():
    call = ["i", "n", "{}"]
    for result in (
        {"calls": 1},
        {"calls": [1]},
        {"calls": [["a", "b"]]},
        {"calls": [["a", "b", 1]]},
        {"calls": [call] * 17},
        {"stop": 1},
        {"stop": None},
        {"spent": 1},
        {"spent": [1]},
        {"spent": [[".day", 1]]},
        {"spent": [[".calls", 1, 1]]},
        {"spent": [[".day", -1, 1]]},
        {"spent": [[".day", 1, True]]},
        {"spent": [[".day", 1, 1.5]]},
        {"spent": [[".day", 1, 1]] * 3},
    ):
        error, effects = ask([result])
        assert isinstance(error, ProviderError) and "malformed" in error.message, result
        assert effects[-1] == (CLOSE,)
    assert len(ask([{"calls": [call] * 16}])[0].calls) == 16


def open_effect(speaker, texts=True, nested=False):
    """Return the effect OPEN of a provider that writes *texts*, or the error in its place."""
    history = History(100)
    history.speaker, history.is_nested = speaker, nested
    history.begin(Message("user", "hello"))
    try:
        return next(GatewayProvider("words", loads, 2048, texts).ask(history, None))
    except ProviderError as e:
        return e


def test_who_speaks_is_told_to_the_local_model_alone():
    assert not open_effect(("console", True))[5]
    assert open_effect(("console", True), False)[5] == ("console", True)
    assert not open_effect(None, False)[5]


def test_the_local_model_gets_no_instruction_of_a_skill():
    assert open_effect(None, True, True)[0] == OPEN
    error = open_effect(None, False, True)
    assert "writes no text" in error.message and error.hint
