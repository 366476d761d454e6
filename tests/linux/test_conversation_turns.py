"""What of a store becomes a conversation again, and what of a turn is stored."""
from clawlite.linux.conversation import lasting
from clawlite.core.effect import REMEMBER, TELL
from clawlite.core.errors import StoreError
from clawlite.core.history import History
from clawlite.core.turn import Message



class Store:
    compaction = 0


def turn_of(history):
    history.begin(Message("user", "hello"))
    history.turn.append(Message("assistant", "yes"))
    return True
    yield


def played(history, answers):
    work = lasting(turn_of(history), (Store, ""), history)
    effects, value = [], None
    try:
        while True:
            effects.append(work.send(value))
            value = None if effects[-1][0] == TELL else answers.pop(0)
    except StopIteration as e:
        return effects, e.value


def said(history):
    return [(message.role, message.text) for message in history.context(100000)]


def entry(role, text, **more):
    return {"content": dict({"role": role, "text": text}, **more)}


def test_earlier_turns_come_first_and_this_one_is_stored_whole():
    history = History(10000)
    found = [entry("assistant", "cut"), entry("user", "a"), entry("assistant", "", calls=[["1", "t", "{}"], ["2", "t", "{}"]]),
             entry("tool", "r", id="1", tool="t", failed=True), entry("tool", "s", id="2", tool="t"), entry("assistant", "b"),
             entry("user", "no answer"), entry("user", "c"), entry("assistant", "d"),
             {"content": "in short", "metadata": {"summary_of": 3}}]
    effects, value = played(history, [(True, {"entries": found}), (True, {"stored": 2, "ids": []})])
    assert value is True and [effect[:2] for effect in effects] == [(REMEMBER, "query"), (REMEMBER, "store")]
    assert effects[1][4] == (None, [(None, {"role": "user", "text": "hello"}, None, None), (None, {"role": "assistant", "text": "yes"}, None, None)])
    assert said(history) == [("user", "a"), ("assistant", ""), ("tool", "r"), ("tool", "s"), ("assistant", "b"), ("user", "c"), ("assistant", "d"),
                             ("user", "What was said before, in short: in short"), ("assistant", "I remember."), ("user", "hello"), ("assistant", "yes")]
    tool = history.context(100000)[2]
    assert tool.id == "1" and tool.tool == "t" and tool.result.is_error is True
    assert [effect[1] for effect in played(history, [(True, {"stored": 2})])[0]] == ["store"], "what was said before is looked for once"


def test_a_result_that_is_missing_takes_its_turn_away():
    history = History(10000)
    found = [entry("user", "a"), entry("assistant", "", calls=[["1", "t", "{}"]]), entry("assistant", "b"), entry("user", "c"), entry("tool", "r"),
             entry("assistant", "d", calls="x"), entry("user", 1), {"content": "note"}]
    played(history, [(True, {"entries": found}), (True, {})])
    assert said(history) == [("user", "hello"), ("assistant", "yes")]


def test_what_fails_is_told_and_the_turn_goes_on():
    history = History(10000)
    error = StoreError("the disk is full", "make room")
    effects, value = played(history, [(False, error), (False, error)])
    assert value is True and [effect[0] for effect in effects] == [REMEMBER, TELL, REMEMBER, TELL]
    assert effects[1][1] == "the disk is full; what was said before is not known. Next: make room."
    assert [effect[0] for effect in played(history, [(False, error)])[0]] == [REMEMBER], "once"


def test_a_provider_that_sees_no_earlier_turn_gets_none():
    history = History(0)
    played(history, [(True, {"entries": [entry("user", "a"), entry("assistant", "b")]}), (True, {})])
    history.begin(Message("user", "next"))
    assert [message.text for message in history.context(0)] == ["next"]
