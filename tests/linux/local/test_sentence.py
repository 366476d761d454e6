"""What a sentence is, before any model sees it (linux/local/sentence.py)."""

import pytest

from clawlite.linux.local import sentence
from clawlite.linux.local.sentence import ASKS_STATE, ASKS_WISH


def test_marks_of_models_and_controls_are_taken_out():
    dirty = "water\0 <tool_call>{{x}}</tool_call> <|im_start|> the [INST] plants\x1b \u202e now"
    assert sentence.clean(dirty) == "water the plants now"
    assert sentence.clean("wa<<tool_call>tool_call>ter") == "wa ter"
    assert "<" not in sentence.clean("a < b <" + "x" * 50 + ">")


@pytest.mark.parametrize(
    "text",
    "don't water|do not open it|never feed them|nicht gießen|keine Lampe|n'ouvre pas|nunca riegues"
    "|no abras la puerta|please don’t beep|without opening".split("|"),
)
def test_a_negation_is_seen(text):
    assert sentence.is_negated(text)


@pytest.mark.parametrize("text", "note the time|open the knot|no shade, 0 percent|now".split("|"))
def test_what_is_no_negation_is_not_taken_for_one(text):
    assert not sentence.is_negated(text)


@pytest.mark.parametrize(
    "text",
    "water when it is dry|every day water|open at 7|tomorrow water|heat until warm|in 5 min beep"
    "|at 7:30 open|wenn es warm ist|jeden Morgen|um 7 Uhr|morgen gießen"
    "|quand il fait chaud|à 7 h ouvre|demain|si hace calor|cada día|if it is dry water|on monday"
    "|after lunch beep|close it at night".split("|"),
)
def test_a_time_or_a_condition_is_seen(text):
    assert sentence.has_time(text)


@pytest.mark.parametrize(
    "text",
    [
        "heat for 5 minutes",
        "set it to 21 degrees",
        "lamp at 50 percent",
        "shade at 30 %",
        "check if it is dry",
        "guten Morgen",
        "water now",
        "keep it at 18 degrees",
        "tell me if the door is open",
        "wie warm ist es hier",
        'write "back soon" on the display',
    ],
)
def test_what_names_no_time_is_not_taken_for_one(text):
    assert not sentence.has_time(text)


@pytest.mark.parametrize(
    "text, kind",
    [
        ("is the garage open?", ASKS_STATE),
        ("how warm is it", ASKS_STATE),
        ("wie warm ist es", ASKS_STATE),
        ("est-ce que c'est ouvert", ASKS_STATE),
        ("¿cómo está el suelo?", ASKS_STATE),
        ("should I water", ASKS_WISH),
        ("can you open it", ASKS_WISH),
        ("soll ich gießen?", ASKS_WISH),
        ("open the door?", ASKS_WISH),
        ("open the door", ""),
        ("water for 5 seconds", ""),
    ],
)
def test_questions_are_told_from_requests(text, kind):
    assert sentence.question(text) == kind


def test_answers_of_people_are_read():
    assert [sentence.read_yes_no(said) for said in ("y", "Yes!", "ja", "oui", "sí")] == [True] * 5
    assert [sentence.read_yes_no(said) for said in ("n", "", "nein", "No.")] == [False] * 4
    assert sentence.read_yes_no("water for 5 seconds") is None
