"""Who may teach, and how: a person's own message, the form, and an operator; never a tool, another
agent or a text of theirs.
"""

from types import SimpleNamespace
from unittest import mock

import pytest
import rules_world
from rules_world import ALLOW, READING
from taught_world import PATTERNS, Pupil

from clawlite.core.base.effect import LOG, Result
from clawlite.core.base.errors import ClawError, PolicyDenied, ProviderError
from clawlite.core.turns.history import History
from clawlite.core.turns.tools import call
from clawlite.core.turns.turn import Message
from clawlite.protocols.teach.clause import propose
from clawlite.protocols.teach.reader import WHOLE

WATER = {"call": "water", "arguments": {"seconds": 5}}
TOOLS = [
    "claw://registry/clawlite/%s@1.0.0" % name
    for name in ("add-rule", "list-rules", "forget-rule", "remind")
]


def test_a_question_is_asked_and_the_answer_completes_the_sentence(tmp_path):
    pupil = Pupil(tmp_path)
    assert pupil.say("water tomorrow morning for 5 seconds") == "At what time of the day?"
    assert pupil.acted == []  # it does not water now
    assert "On 16 January at 07:00" in pupil.say("at 7")
    pupil.say("y")
    assert pupil.rows()[0]["once"] is True
    assert pupil.say("water at 9 for 5 seconds") == "Every day at 09:00, or just once?"
    assert "Each day at 09:00" in pupil.say("every day", "y")


class _Talker(Pupil):
    """Beside a remote model."""

    reads = WHOLE


def test_beside_a_model_only_whole_rules_are_read(tmp_path):
    pupil = _Talker(tmp_path)
    for said in ("if I have three apples and eat one", "water tomorrow morning for 5 seconds"):
        assert "Teach" not in pupil.say(said) and pupil.agent.waiting == []
    assert "Teach this rule?" in pupil.say("every day at 9 water for 5 seconds")


def test_several_questions_come_one_after_the_other(tmp_path):
    pupil = Pupil(tmp_path, READING)
    assert "time" in pupil.say("tomorrow morning water")
    assert pupil.say("at 7") == "For how many seconds?"
    assert "On 16 January at 07:00 (UTC): call water(seconds=5)" in pupil.say("5 seconds", "y")


def test_another_message_is_no_answer(tmp_path):
    pupil = Pupil(tmp_path)
    assert pupil.say("water tomorrow morning for 5 seconds").endswith("?")
    pupil.say("water the plants for 3 seconds")  # an order for now
    assert [act[:2] for act in pupil.acted] == [("water", {"seconds": 3})]
    assert "Teach" not in pupil.say("at 7")  # the question is over
    pupil.say("water tomorrow morning for 5 seconds")
    assert pupil.say("no") == "Then nothing is taught."


@pytest.mark.parametrize(
    "said",
    [
        "when did you water?",
        "is the soil dry?",
        "what happens when the soil is below 30?",
        "should I water every day at 7?",
    ],
)
def test_a_question_teaches_nothing(tmp_path, said):
    pupil = Pupil(tmp_path)
    assert "Teach" not in pupil.say(said)
    assert pupil.rows() == [] and pupil.agent.waiting == []


def test_an_order_for_now_is_done_now(tmp_path):
    pupil = Pupil(tmp_path)
    pupil.say("water the plants for 5 seconds")
    assert [act[:2] for act in pupil.acted] == [("water", {"seconds": 5})]


def test_a_pattern_with_such_words_of_its_own_is_left_alone(tmp_path):
    own = '[[rule]]\nwhen = ["report every day"]\nsay = "A report comes every day."\n'
    pupil = Pupil(tmp_path, READING + own + PATTERNS)
    assert "A report comes" in pupil.say("report every day")


def test_the_form_takes_a_row_and_says_how(tmp_path):
    pupil = Pupil(tmp_path)
    assert 'at = "07:00"' in pupil.say("/teach")
    row = 'on = "soil", below = 30, call = "water", arguments = { seconds = 5 }'
    assert "When soil falls below 30: call water(seconds=5)" in pupil.say("/teach " + row, "y")
    assert pupil.rows() == [{"on": "soil", "below": 30, **WATER}]
    assert "no row of TOML" in pupil.say('/teach at = "07:00" call = ')
    assert "it would run 1440 times" in pupil.say(
        '/teach every = "1m", call = "water", arguments = { seconds = 5 }'
    )
    assert "teaches no rule" in pupil.say("/teach hello there")


# -- tools of a model


def carried(pupil, name: str, arguments: dict, history, skill=None):
    """Return the effects of a call of a tool that teaches, up to its result or error, in a turn."""
    run = pupil.lessons.watch(call, history)
    work = run(pupil.agent.setup, name, arguments, "provider", None, None, skill)
    done = []
    pupil.agent.begin(work, lambda value, error, ms: done.append((value, error)), pupil.ms)
    pupil.settle()
    return done


def spoken(*tools) -> History:
    history = History(0)
    history.speaker = "console", True
    history.begin(Message("user", "water each day at seven, for five seconds"))
    for tool in tools:
        history.turn.append(Message("tool", "x", (), "1", tool, Result("x", False)))
    return history


def test_a_model_drafts_for_a_person_and_an_admin_approves(tmp_path):
    pupil = Pupil(tmp_path, more_tools=TOOLS)
    done = carried(pupil, "add-rule", {"at": "07:00", **WATER}, spoken("list-rules"))
    assert done == [] and "Each day at 07:00" in "\n".join(pupil.agent.waiting[0].approval.told)
    pupil.answer(True)
    assert "Taught: water-1" in done[0][0].text
    [entry] = pupil.rules.taught.entries
    assert entry["said"] == "water each day at seven, for five seconds"
    done = carried(pupil, "list-rules", {}, spoken())
    assert "water-1: Each day at 07:00" in done[0][0].text
    done = carried(pupil, "forget_rule", {"name": "water-1"}, spoken())
    assert done[0][0].text == "Forgotten: water-1" and pupil.rows() == []
    done = carried(pupil, "remind", {"text": "look", "in": "10m"}, spoken())
    assert "In 10 minutes" in done[0][0].text


def test_a_supervised_agent_asks_once(tmp_path):
    pupil = Pupil(tmp_path, more_tools=TOOLS, autonomy="supervised")
    done = carried(pupil, "add-rule", {"at": "07:00", **WATER}, spoken())
    assert "Each day at 07:00" in "\n".join(pupil.agent.waiting[0].approval.told)
    pupil.answer(True)
    assert done[0][0] is not None and pupil.agent.waiting == []


def test_silence_approves_no_rule(tmp_path):
    rules = [
        {
            "id": "ask",
            "action": "require-approval",
            "scope": "tool",
            "match": {"name": "add-rule"},
            "approval": {"timeout_seconds": 60, "default_if_timeout": "allow"},
        },
        *ALLOW,
    ]
    pupil = Pupil(tmp_path, policy=rules, more_tools=TOOLS)
    done = carried(pupil, "add-rule", {"at": "07:00", **WATER}, spoken())
    pupil.move(61)
    pupil.move(301)
    assert pupil.rows() == [] and isinstance(done[0][1], ClawError)


@pytest.mark.parametrize("name", ["add-rule", "remind", "forget-rule"])
@pytest.mark.parametrize("who", ["a tool has answered", "no person", "a skill"])
def test_nothing_else_drafts(tmp_path, name, who):
    pupil = Pupil(tmp_path, more_tools=TOOLS)
    history, skill = spoken(), None
    if who == "a tool has answered":
        history = spoken("list-rules", "read-soil")
    elif who == "no person":
        history.speaker = None
    else:
        skill = SimpleNamespace(name="x", names=[name])

    arguments = {
        "add-rule": {"at": "07:00", **WATER},
        "remind": {"text": "x", "in": "10m"},
        "forget-rule": {"name": "water-1"},
    }[name]
    [(value, error)] = carried(pupil, name, arguments, history, skill)
    assert value is None and isinstance(error, PolicyDenied)
    assert pupil.rows() == [] and pupil.agent.waiting == []


def test_a_wrong_draft_of_a_model_is_told_to_it(tmp_path):
    pupil = Pupil(tmp_path, more_tools=TOOLS)
    wrong = {"every": "1h", "call": "water", "arguments": {"seconds": 500}}
    [(_, error)] = carried(pupil, "add-rule", wrong, spoken())
    assert "at most 60, got 500" in error.message and pupil.agent.waiting == []


# -- an operator


def test_an_operator_drafts_looks_and_teaches(tmp_path):
    pupil = Pupil(tmp_path)
    made = pupil.group.begin("claw.rule.draft", {"row": {"at": "07:00", **WATER}})
    assert made["sentence"] == "water-1: Each day at 07:00 (UTC): call water(seconds=5)."
    assert made["rehearsal"] and pupil.rows() == []
    assert pupil.group.begin("claw.rule.teach", {"draft": made["draft"]}) == {"name": "water-1"}
    with pytest.raises(ClawError):
        pupil.group.begin("claw.rule.teach", {"draft": made["draft"]})
    [listed] = pupil.group.begin("claw.rule.list", {})["rules"]
    assert listed["taught_by"] == "operator"
    text = "water tomorrow for 5 seconds"
    assert "time" in pupil.group.begin("claw.rule.draft", {"text": text})["question"]
    made = pupil.group.begin("claw.rule.draft", {"text": text + " at 7", "caller": "operator/ann"})
    assert made["row"]["once"] is True
    assert pupil.group.begin("claw.rule.forget", {"name": "water-1"}) == {"name": "water-1"}
    for params in ({}, {"row": {}, "text": ""}, {"text": 7}, {"row": 7}):
        with pytest.raises(ClawError):
            pupil.group.begin("claw.rule.draft", params)
    for params in ({}, {"name": 7}, {"name": "x"}):
        with pytest.raises(ClawError):
            pupil.group.begin("claw.rule.forget", params)


# -- a local model reads the clause


class _Model:
    """Stands where builtin:local would be (linux/local/provider.py)."""

    def __init__(self, found):
        self.found, self.asked = found, []

    def propose(self, text: str, is_clause: bool):
        self.asked.append((text, is_clause))
        if isinstance(self.found, Exception):
            raise self.found
        yield (LOG, {"event": "x"})
        return self.found


@pytest.mark.parametrize(
    "found, said",
    [
        ({"kind": "act", "calls": [["water", {"seconds": 4}]], "text": "", "missing": "",
          "confidence": 0.9}, "call water(seconds=4)"),
        ({"kind": "ask", "calls": [["water", {"seconds": 4}]], "text": "Did you mean?",
          "missing": "", "confidence": 0.4}, "call water(seconds=4)"),
        ({"kind": "ask", "calls": [["water", {}]], "text": "For how many seconds?",
          "missing": "seconds", "confidence": 0.4}, "For how many seconds?"),
        ({"kind": "refuse", "calls": [], "text": "water: at most 60.", "missing": "",
          "confidence": 0}, "water: at most 60."),
        ({"kind": "nothing", "calls": [], "text": "", "missing": "", "confidence": 0},
         "I know no tool for"),
        (ProviderError("it is dead"), "I know no tool for"),
    ],
)  # fmt: skip
def test_a_local_model_reads_what_no_pattern_has(tmp_path, found, said):
    pupil = Pupil(tmp_path)
    model = _Model(found)
    pupil.lessons._reader._get_local = lambda: model
    assert said in pupil.say("every day at 9 give the tomatoes a drink for 4 seconds")
    assert model.asked == [("give the tomatoes a drink for 4 seconds", True)]
    pupil.say("n")
    text = "every day at 9 give the tomatoes a drink for 4 seconds"
    assert "I know no tool" in pupil.group.begin("claw.rule.draft", {"text": text})["question"]
    pupil.say("every day at 9 water for 4 seconds")  # a pattern has it
    assert len(model.asked) == 2


def test_a_number_that_a_pattern_takes_is_no_time(tmp_path):
    """ "look at 4" is about bed 4; nothing of it is left out by the pattern."""
    own = '[[rule]]\nwhen = "look at {bed:int}"\nsay = "Bed {bed}."\n'
    pupil = Pupil(tmp_path, READING + own + PATTERNS)
    assert pupil.say("look at 4") == "Bed 4."
    assert "once" in pupil.say("water at 9 for 5 seconds")


def test_on_is_low_where_off_is_high(tmp_path):
    """What a person says of a relay that is on while its pin is low becomes the right level."""
    pins = '[[pins]]\nname = "heater"\npin = 6\nkind = "output"\nsafe = 1\n'
    with mock.patch.object(rules_world, "PINS", pins):
        pupil = Pupil(tmp_path, more_tools=["claw://registry/clawlite/digital-write@1.0.0"])
    image = pupil.agent.image
    for clause, level in (("turn the heater on", False), ("switch off the heater", True)):
        assert propose(clause, image).arguments == {"pin": "heater", "value": level}
