"""Reflex rules: patterns, slots, branches, and honesty."""

from clawlite.core.base.effect import Result
from clawlite.core.base.errors import PolicyDenied, ProviderError
from clawlite.core.providers.reflex import (
    ANY,
    FAILED,
    INT,
    NUMBER,
    OPTIONAL,
    TEXT,
    WORD,
    Reflex,
    Sentence,
    match,
    words,
)
from clawlite.core.turns.history import History
from clawlite.core.turns.turn import Message


def fits(pattern, text):
    return match(pattern, 0, Sentence(text), 0)


def test_words_are_folded_in_latin_1_alone():
    assert words("  Is the SOIL, dry?! ") == ["is", "the", "soil", "dry"]
    assert words("2.5 V at pin-3...") == ["2.5", "v", "at", "pin-3"]
    assert words("Ärger 🌱 ×2 Łódź") == ["ärger", "🌱", "×2", "Łódź"]
    assert words("") == [] and words("?!.") == []


def test_words_and_alternatives():
    pattern = [["is"], ["soil", "earth"], ["dry"]]
    assert fits(pattern, "is soil dry") == [] and fits(pattern, "IS EARTH DRY") == []
    assert (
        fits(pattern, "is sand dry") is None
        and fits(pattern, "is soil") is None
        and fits(pattern, "is soil dry now") is None
    )


def test_what_may_be_left_out():
    pattern = [["water"], ["the", OPTIONAL], ["plants"]]
    assert fits(pattern, "water the plants") == [] and fits(pattern, "water plants") == []
    assert fits(pattern, "water the") is None
    assert fits([["a", OPTIONAL], ["a"]], "a") == [] and fits([["a", OPTIONAL], ["a"]], "a a") == []


def test_any_words():
    assert fits([ANY, ["dry"]], "dry") == [] and fits([ANY, ["dry"]], "very very dry") == []
    assert fits([["a"], ANY, ["b"], ANY], "a b b c") == []
    assert fits([["a"], ANY, ["b"]], "a c") is None


def test_slots_have_types():
    pattern = [["for"], [0, "n", INT], ["s"]]
    assert fits(pattern, "for 12 s") == [("n", 12)] and fits(pattern, "for -3 s") == [("n", -3)]
    for wrong in (
        "for x s",
        "for 1.5 s",
        "for s",
        "for ² s",
        "for 1234567890123456 s",
        "for - s",
        "for +3x s",
    ):
        assert fits(pattern, wrong) is None, wrong
    assert fits([[0, "n", NUMBER]], "2.50") == [("n", 2.5)] and fits([[0, "n", NUMBER]], "7") == [
        ("n", 7)
    ]
    assert fits([[0, "n", NUMBER]], "1.2.3") is None
    assert fits([[0, "w", WORD]], "Tomato") == [("w", "Tomato")]
    assert (
        fits([["say"], [0, "t", TEXT]], "say one two") == [("t", "one two")]
        and fits([["say"], [0, "t", TEXT]], "say") is None
    )
    assert fits([[0, "a", TEXT], ["to"], [0, "b", WORD]], "x to y to z") == [
        ("a", "x to y"),
        ("b", "z"),
    ]


# when "go {n:int}": say "Going {n}." and call t(n=slot, k=1); then: failed / v < 5 / else
RULES = [
    [
        [[["go"], [0, "n", INT]]],
        [
            ["Going ", ["n"], "."],
            "t",
            [["k", 1], ["n", ["n"]]],
            [
                [[FAILED], [["No: ", ["result"]], None, [], []]],
                [["v", "<", 5], [["low ", ["v"], ", asked ", ["n"]], "t", [], []]],
                [None, [["ok ", ["v"]], None, [], []]],
            ],
        ],
    ]
]


def asked(reflex, text: str) -> tuple:
    """Begin a turn of a conversation of its own; return (its ``History``, the first reply)."""
    history = History(1000)
    history.begin(Message("user", text))
    return history, reflex.reply(history)


def begin(text="go 3", rules=RULES):
    reflex = Reflex(rules)
    return (reflex,) + asked(reflex, text)


def go_on(reflex, history, result, text=""):
    history.turn.append(Message("tool", text, (), "", "t", result))
    return reflex.reply(history)


def test_a_rule_says_and_calls_with_slots():
    _, _, reply = begin()
    assert reply.text == "Going 3." and reply.calls == [("", "t", {"n": 3, "k": 1}, "")]


def test_the_first_branch_that_holds_goes_on():
    reflex, history, _ = begin()
    reply = go_on(reflex, history, Result("{}", False, {"v": 4}))
    assert reply.text == "low 4, asked 3" and reply.calls == [("", "t", {}, "")]
    reflex, history, _ = begin()
    assert go_on(reflex, history, Result("{}", False, {"v": 5})).text == "ok 5"
    reflex, history, _ = begin()
    # text is no number
    assert go_on(reflex, history, Result("{}", False, {"v": "4"})).text == "ok 4"


def test_a_refusal_takes_the_branch_for_failures():
    reflex, history, _ = begin()
    assert go_on(reflex, history, PolicyDenied("denied"), "denied").text == "No: denied"
    reflex, history, _ = begin()
    assert go_on(reflex, history, Result("broke", True), "broke").text == "No: broke"


def test_without_a_branch_the_answer_is_the_reply():
    reflex, history, _ = begin()
    go_on(reflex, history, Result("{}", False, {"v": 4}))
    reply = go_on(reflex, history, Result("said", False, "said"), "said")
    assert reply.text == "said" and reply.calls == []


def test_no_rule_is_said_with_examples():
    _, _, reply = begin("dance")
    assert reply.text == "I have no rule for that. Try: go <n>." and reply.calls == []
    assert asked(Reflex([]), "x")[1].text == "I have no rule for that."


def test_a_turn_that_another_provider_began_is_not_continued():
    reflex, _, _ = begin()
    other = History(1000)
    other.begin(Message("user", "go 3"))
    refuse(reflex, other)


def refuse(reflex, history):
    """What a tool returned to another provider is no answer of the rules."""
    try:
        go_on(reflex, history, Result("from elsewhere", False, {"v": 1}), "from elsewhere")
    except ProviderError as e:
        assert "another provider" in e.message
        return
    raise AssertionError("the rules answered")


def test_turns_at_the_same_time_each_keep_their_place_and_their_slots():
    reflex = Reflex(RULES)
    ann, _ = asked(reflex, "go 3")
    bob, _ = asked(reflex, "go 7")
    eve, said = asked(reflex, "dance")
    assert reflex.fits("go 5") and said.text.startswith("I have no rule")
    assert go_on(reflex, ann, Result("{}", False, {"v": 4})).text == "low 4, asked 3"
    assert go_on(reflex, bob, Result("{}", False, {"v": 2})).text == "low 2, asked 7"


def test_the_next_turn_of_a_conversation_begins_without_the_values_of_the_last():
    reflex, history, _ = begin()
    go_on(reflex, history, Result("{}", False, {"v": 4}))
    history.begin(Message("user", "dance"))
    reflex.reply(history)
    refuse(reflex, history)


def test_messages_have_a_bound():
    long = [[[[ANY]], [["fits"], None, [], []]]]
    assert asked(Reflex(long), "a " * 64)[1].text == "fits"
    assert asked(Reflex(long), "a " * 65)[1].text.startswith("I have no rule")


def test_slots_keep_what_was_typed():
    word = [["open"], [0, "w", WORD]]
    for typed in (
        "Notes/Today.txt",
        "/etc/Hosts",
        "../a.B",
        "Jürgen",
        "ÄÖÜ",
        "a-b_c",
        "@bob",
        "~/x",
    ):
        assert fits(word, "Open %s" % typed) == [("w", typed)], typed
        assert fits(word, "OPEN '%s'!" % typed) == [("w", typed)], typed
    assert fits(word, "open: Notes/") == [("w", "Notes/")]
    text = [["note"], [0, "t", TEXT]]
    for typed in (
        "Buy Milk & eggs",
        "St. John's/Market",
        "Grüße,  an Ölaf",
        'say "Hi"',
        "5 % more",
    ):
        assert fits(text, "Note  %s." % typed) == [("t", typed)], typed
    # words of the pattern may stand directly beside a slot
    pattern = [["room"], [0, "w", WORD], ["now"]]
    assert fits(pattern, "room:Kitchen, now") == [("w", "Kitchen")]
    assert fits(pattern, "room kitchen,now") == [("w", "kitchen")]
    assert fits([[0, "a", WORD], [0, "b", WORD]], "X y") == [("a", "X"), ("b", "y")]
    assert fits([[0, "n", INT], ["s"]], "5,s") == [("n", 5)]


def test_umlauts_of_a_pattern_match_in_any_case():
    assert fits([["öffne"], ["tür"]], "ÖFFNE Tür") == []


def test_a_missing_value_makes_every_comparison_false():
    for condition in (["gone", "!=", 5], ["gone", "<", 5], ["gone", "==", 5], ["gone", ">=", 5]):
        for value in ({"v": 1}, {"gone": None}, "text", 7):
            branches = [[condition, [["wrong"], "t", [], []]], [None, [["else"], None, [], []]]]
            rules = [[[[["go"]]], [["first"], "t", [], branches]]]
            reflex, history, _ = begin("go", rules)
            reply = go_on(reflex, history, Result("", False, value))
            assert reply.text == "else" and reply.calls == []
            assert reply.note == {"event": "rule.missing", "fields": ["gone"]}
    reflex, history, reply = begin()
    assert reply.note is None
    assert go_on(reflex, history, Result("{}", False, {"v": 4})).note is None
