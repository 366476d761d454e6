"""What of a store becomes a conversation again, and what of a turn is stored."""

# Loaded before the tests: not linked, as it is here, it nests as no board's imports do.
import clawlite.core.memory.memory_methods  # noqa: F401
from clawlite.core.base.effect import REMEMBER, TELL, Result
from clawlite.core.base.errors import InvalidParams, StoreError
from clawlite.core.image.memories import (
    CONVERSATION,
    KEY_VALUE,
    PER_CHANNEL,
    PER_IDENTITY,
    TRUNCATE,
)
from clawlite.core.memory.conversation import MAX_MESSAGES, TOO_LONG, keep, restore, store_of
from clawlite.core.turns.history import History
from clawlite.core.turns.turn import Message


class Store:
    """What is asked of one here."""

    def __init__(self, type=CONVERSATION, scope=0, compaction=0):
        self.type, self.scope, self.compaction = type, scope, compaction


def turn_of(history):
    history.begin(Message("user", "hello"))
    history.turn.append(Message("assistant", "yes"))
    return True
    yield


def around(history, keep_bytes, store):
    """A turn as a shell plays it."""
    if not history.is_restored:
        history.is_restored = True
        yield from restore((store, ""), history, keep_bytes)
    clean = yield from turn_of(history)
    yield from keep((store, ""), history)
    return clean


def played(history, answers, keep_bytes=10000, store=Store()):
    work = around(history, keep_bytes, store)
    effects, value = [], None
    try:
        while True:
            effects.append(work.send(value))
            value = None if effects[-1][0] == TELL else answers.pop(0)
    except StopIteration as e:
        return effects, e.value


def said(history):
    return [(message.role, message.text) for message in history.context()]


def entry(role, text, **more):
    return {"content": dict({"role": role, "text": text}, **more)}


def test_of_a_conversation_that_is_too_long_for_its_way_the_newest_messages_are_known():
    history = History(1 << 20)
    too_long = (False, StoreError("the answer is too long", "ask for fewer", TOO_LONG))
    entries = [entry("user", "first"), entry("assistant", "second")]
    answers = [too_long, too_long, (True, {"entries": entries}), (True, {"stored": 2})]
    effects, _ = played(history, answers, 1 << 20)
    asked = [effect[4][2] for effect in effects if effect[1] == "query"]
    assert asked == [MAX_MESSAGES, MAX_MESSAGES // 2, MAX_MESSAGES // 4]
    assert said(history)[:2] == [("user", "first"), ("assistant", "second")]
    effects, _ = played(History(1 << 20), [too_long] * 9 + [(True, {"stored": 2})], 1 << 20)
    assert [effect[0] for effect in effects].count(TELL) == 1


def test_earlier_turns_come_first_and_this_one_is_stored_whole():
    history = History(10000)
    found = [
        entry("assistant", "cut"),
        entry("user", "a"),
        entry("assistant", "", calls=[["1", "t", "{}"], ["2", "t", "{}"]]),
        entry("tool", "r", id="1", tool="t", failed=True),
        entry("tool", "s", id="2", tool="t"),
        entry("assistant", "b"),
        entry("user", "no answer"),
        entry("user", "c"),
        entry("assistant", "d"),
        {"content": "in short", "metadata": {"summary_of": 3}},
    ]
    effects, value = played(history, [(True, {"entries": found}), (True, {"stored": 2, "ids": []})])
    assert value is True and [effect[:2] for effect in effects] == [
        (REMEMBER, "query"),
        (REMEMBER, "store"),
    ]
    assert effects[1][4] == (
        None,
        [
            (None, {"role": "user", "text": "hello"}, None, None),
            (None, {"role": "assistant", "text": "yes"}, None, None),
        ],
    )
    assert said(history) == [
        ("user", "What was said before, in short: in short"),
        ("assistant", "I remember."),
        ("user", "a"),
        ("assistant", ""),
        ("tool", "r"),
        ("tool", "s"),
        ("assistant", "b"),
        ("user", "c"),
        ("assistant", "d"),
        ("user", "hello"),
        ("assistant", "yes"),
    ]
    tool = history.context()[4]
    assert tool.id == "1" and tool.tool == "t" and tool.result.is_error is True
    assert [effect[1] for effect in played(history, [(True, {"stored": 2})])[0]] == ["store"], (
        "what was said before is looked for once"
    )


def test_a_result_that_is_missing_takes_its_turn_away():
    history = History(10000)
    found = [
        entry("user", "a"),
        entry("assistant", "", calls=[["1", "t", "{}"]]),
        entry("assistant", "b"),
        entry("user", "c"),
        entry("tool", "r"),
        entry("assistant", "d", calls="x"),
        entry("user", 1),
        {"content": "note"},
    ]
    played(history, [(True, {"entries": found}), (True, {})])
    assert said(history) == [("user", "hello"), ("assistant", "yes")]


def test_what_fails_is_told_and_the_turn_goes_on():
    history = History(10000)
    error = StoreError("the disk is full", "make room")
    effects, value = played(history, [(False, error), (False, error)])
    assert value is True and [effect[0] for effect in effects] == [REMEMBER, TELL, REMEMBER, TELL]
    assert effects[1][1] == "the disk is full; what was said before is not known. Next: make room."
    assert [effect[0] for effect in played(history, [(False, error)])[0]] == [REMEMBER], "once"


def test_a_provider_that_sees_no_earlier_turn_costs_no_question():
    history = History(0)
    effects, _ = played(history, [(True, {})], 0)
    assert [effect[1] for effect in effects] == ["store"]


def test_no_more_messages_are_read_than_a_provider_can_see():
    for keep_bytes, most in (
        (95, 1),
        (96, 2),
        (48 * MAX_MESSAGES - 1, MAX_MESSAGES - 1),
        (48 * MAX_MESSAGES, MAX_MESSAGES),
        (1 << 20, MAX_MESSAGES),
    ):
        effects, _ = played(History(keep_bytes), [(True, {"entries": []}), (True, {})], keep_bytes)
        assert effects[0][4] == ("time-range", None, most, None)


def test_a_turn_that_is_too_long_loses_its_tools():
    history, long = (
        History(10000),
        InvalidParams("entries: expected at most 8192 bytes at once, got 9000"),
    )
    history.begin(Message("user", "look"))
    history.turn += [
        Message("assistant", "", [("1", "t", "{}")]),
        Message("tool", "x" * 9000, (), "1", "t", Result("x", False)),
        Message("assistant", "seen"),
    ]
    work = keep((Store(), ""), history)
    whole = work.send(None)[4][1]
    assert [entry[1]["role"] for entry in whole] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ] and whole[1][1]["calls"] == [["1", "t", "{}"]]
    assert (whole[2][1]["id"], whole[2][1]["tool"], whole[2][1]["failed"]) == ("1", "t", False)
    assert [entry[1]["text"] for entry in work.send((False, long))[4][1]] == ["look", "seen"]
    assert work.send((False, long)) == (
        TELL,
        "entries: expected at most 8192 bytes at once, got "
        "9000; this is forgotten when the agent ends.",
    )


def test_a_store_that_is_full_is_compacted():
    effects, _ = played(
        History(0), [(True, {"is_full": True}), (True, (8, 4))], 0, Store(compaction=TRUNCATE)
    )
    assert [effect[1] for effect in effects] == ["store", "compact"] and effects[1][4] == TRUNCATE


def test_the_first_conversation_has_it_in_the_part_that_its_scope_says():
    talk = Store()
    assert (
        store_of([Store(KEY_VALUE), talk, Store()], "me") == (talk, "")
        and store_of([Store(KEY_VALUE)], "me") is None
    )
    own, console = Store(scope=PER_IDENTITY), Store(scope=PER_CHANNEL)
    assert store_of([own], "me") == (own, "identity/me") and store_of([console], "me") == (
        console,
        "channel/cli",
    )
    assert [store_of([store], "me", "bot/7")[1] for store in (talk, own, console)] == [
        "channel/bot/7"
    ] * 3


def test_a_refused_turn_is_not_stored_and_its_text_is_shown():
    history = History(1000)
    history.begin(Message("user", "hello"))
    history.is_void, history.end = True, ("say", "no")
    assert list(keep((Store(), ""), history)) == [("say", "no")]


def test_a_conversation_that_began_afresh_is_so_after_a_restart():
    history = History(1000)
    history.restore([[Message("user", "old"), Message("assistant", "yes")]])
    history.begin(Message("user", "older"))
    work = history.renew()
    assert next(work)[1] == "A new conversation begins." and history.context() == []
    effects = keep((Store(), ""), history)
    stored = next(effects)
    assert stored[0] == REMEMBER and stored[-1][-1] == [(None, {"new": True}, None, None)]
    # once
    history.begin(Message("user", "hello"))
    assert [entry[1]["role"] for entry in next(keep((Store(), ""), history))[-1][-1]] == ["user"]
    entries = [entry("user", "a"), entry("assistant", "b"), {"content": {"new": True}}]
    entries += [entry("user", "c"), entry("assistant", "d")]
    history = History(1000)
    played(history, [(True, {"entries": entries}), (True, {})])
    assert [text for _, text in said(history)][:2] == ["c", "d"]
