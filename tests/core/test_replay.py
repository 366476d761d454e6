"""Recorded turns: each turn goes its own way through its recording, also when others go on."""

from clawlite.core.base.errors import ProviderError
from clawlite.core.providers.replay import Replay
from clawlite.core.turns.history import History
from clawlite.core.turns.turn import Message

TURNS = [
    [None, [["one", [["first", {}]]], ["one ends", []]]],
    ["two", [["two", [["second", {}]]], ["two goes on", [["third", {}]]], ["two ends", []]]],
]


def begin(text: str) -> History:
    history = History(1000)
    history.begin(Message("user", text))
    return history


def go_on(replay, history) -> str:
    history.turn.append(Message("tool", "done", (), "", "t"))
    return replay.reply(history).text


def test_turns_at_the_same_time_each_keep_their_place():
    replay, ann, bob = Replay(TURNS), begin("anything"), begin("two")
    assert (replay.reply(ann).text, replay.reply(bob).text) == ("one", "two")
    assert go_on(replay, bob) == "two goes on"
    assert go_on(replay, ann) == "one ends"
    assert go_on(replay, bob) == "two ends"


def test_the_recording_starts_over_after_its_last_turn():
    replay = Replay(TURNS)
    assert [replay.reply(begin(text)).text for text in ("a", "two", "b")] == ["one", "two", "one"]


def refusal(replay, history) -> str:
    try:
        replay.reply(history)
    except ProviderError as e:
        return e.message
    return ""


def test_another_message_than_the_recorded_one_is_refused_and_disturbs_no_other_turn():
    replay, ann, bob = Replay(TURNS), begin("anything"), begin("three")
    replay.reply(ann)
    assert "begins with" in refusal(replay, bob)
    assert go_on(replay, ann) == "one ends"
    bob.turn.append(Message("tool", "done", (), "", "t"))
    assert refusal(replay, bob) == "replay: another provider began this turn"


def test_more_rounds_than_were_recorded_are_refused():
    replay, ann = Replay(TURNS[:1]), begin("anything")
    replay.reply(ann)
    go_on(replay, ann)
    ann.turn.append(Message("tool", "done", (), "", "t"))
    assert "has 2 rounds" in refusal(replay, ann)
