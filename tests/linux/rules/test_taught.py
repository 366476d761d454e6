"""Rules that people teach: drafted by a person alone, approved by an admin, judged at each run,
kept over restarts, and forgotten.
"""

import json

import pytest
from rules_world import ALLOW, ASK, READING
from taught_world import PATTERNS, Pupil

from clawlite.core.base.errors import ClawError
from clawlite.linux.admin import taught_rules
from clawlite.linux.rules.taught_store import MOST, find_teacher_obstacle
from clawlite.linux.rules.teaching import adopt, make_draft

DAY = 86400
SENTENCE = "every day at 9 water for 5 seconds if the soil is below 30, at most twice a day"
ROW = {
    "at": "09:00",
    "if": ["soil < 30"],
    "at_most": "2/day",
    "call": "water",
    "arguments": {"seconds": 5},
}
WATER = {"call": "water", "arguments": {"seconds": 5}}


def adopted(pupil, row: dict, by: str = "console"):
    made = make_draft(pupil.rules, row, by, "a test")
    adopt(pupil.rules, made)
    return made


def test_a_sentence_becomes_a_rule_once_a_person_approves_it(tmp_path):
    pupil = Pupil(tmp_path)
    asked = pupil.say(SENTENCE)
    assert "Teach this rule?" in asked and "Each day at 09:00 (UTC), if soil < 30" in asked
    assert "water(seconds=5), at most twice in each day" in asked
    assert pupil.rows() == []
    assert "Taught: water-1" in pupil.say("y")
    assert pupil.rows() == [ROW]
    [event] = [one for one in pupil.events("tool.call") if one["tool"] == "add-rule"]
    assert (event["caller"], event["status"], event["approval"]) == ("console", "ok", "approved")
    pupil.move(3700)
    assert [act[:2] for act in pupil.acted] == [("water", {"seconds": 5})]
    [call] = [one for one in pupil.events("tool.call") if one["tool"] == "water"]
    assert call["caller"] == "rule/water-1"
    assert "[rule water-1] done" in pupil.told


def test_no_is_no(tmp_path):
    pupil = Pupil(tmp_path)
    assert "not approved" in pupil.say(SENTENCE, "n")
    assert pupil.rows() == [] and pupil.rules.engine.rules == []


def test_it_lives_over_restarts_and_is_listed_switched_and_forgotten(tmp_path):
    pupil = Pupil(tmp_path)
    pupil.say(SENTENCE, "y")
    pupil.start()
    pupil.move(10)
    assert "water-1: Each day at 09:00 (UTC)" in pupil.say("/rules taught")
    assert "is off" in pupil.say("/rules off water-1")
    pupil.move(3700)
    assert pupil.acted == []
    pupil.say("/rules on water-1")
    assert "is forgotten" in pupil.say("/rules forget water-1")
    assert "no taught rule" in pupil.say("/rules forget water-1")
    pupil.move(2 * DAY, 60000)
    pupil.start()
    assert pupil.acted == [] and pupil.rows() == [] and pupil.rules.engine.rules == []


def test_only_what_there_is_to_do_outlasts_its_input(tmp_path):
    pupil = Pupil(tmp_path)
    pupil.rebuild(PATTERNS)
    assert not pupil.rules.lasts
    pupil.say("every hour water for 5 seconds", "y")
    assert pupil.rules.lasts
    pupil.start()
    pupil.move(10)
    assert pupil.rules.lasts
    pupil.say("/rules forget water-1")
    assert not pupil.rules.lasts


def test_an_update_that_removes_what_it_names_lets_it_rest(tmp_path):
    pupil = Pupil(tmp_path)
    pupil.say(SENTENCE, "y")
    pupil.rebuild(PATTERNS)
    [told] = [text for text in pupil.told if "rests" in text]
    assert 'there is no reading "soil"' in told and "/rules forget water-1" in told
    pupil.start()
    assert len([text for text in pupil.told if "rests" in text]) == 1  # once
    assert "It rests" in pupil.say("/rules taught")
    pupil.move(3700)
    assert pupil.acted == []
    pupil.rebuild(READING + PATTERNS)
    assert [rule.name for rule in pupil.rules.engine.rules] == ["water-1"]


def test_each_run_is_judged_by_policy(tmp_path):
    pupil = Pupil(tmp_path, policy=ASK)
    pupil.say("every hour water for 5 seconds", "y")
    pupil.move(3601)
    assert pupil.acted == [] and len(pupil.agent.waiting) == 1
    pupil.answer(True)
    pupil.move(10)
    assert [act[0] for act in pupil.acted] == ["water"]


def test_a_supervised_agent_asks_for_each_run(tmp_path):
    pupil = Pupil(tmp_path, autonomy="supervised")
    pupil.say("every hour water for 5 seconds", "y")
    pupil.move(3601)
    assert pupil.acted == [] and len(pupil.agent.waiting) == 1


@pytest.mark.parametrize(
    "row, said",
    [
        ({"every": "1m", **WATER}, "it would run 1440 times a day"),
        ({"cron": "* * * * *", **WATER}, "it would run 1440 times a day"),
        ({"on": "moisture", "below": 30, **WATER}, 'there is no reading "moisture" here'),
        ({"every": "1h", "call": "wter"}, 'there is no tool "wter" here'),
        ({"pin": "gate", **WATER}, 'there is no pin "gate" here'),
        ({"every": "1h", "call": "water", "arguments": {"seconds": 500}}, "at most 60, got 500"),
        ({"every": "1h", "call": "water", "arguments": {"seconds": "5"}}, "water refuses it"),
        ({"every": "1h", "call": "water"}, "water refuses it"),
        ({"every": "1h", "call": "water", "arguments": {"litres": 5}}, "water refuses it"),
        ({"every": "1h", "at": "07:00", **WATER}, "begins in one way"),
        ({**WATER}, "begins in one way"),
        ({"at": "7:00", **WATER}, "at: expected a time"),
        ({"at": "25:00", **WATER}, "at: expected a time"),
        ({"at": [], **WATER}, "at: expected a time"),
        ({"at": "sunrise", **WATER}, "where the sun rises is not known"),
        ({"every": "5 parsecs", **WATER}, "every: expected a time"),
        ({"every": "999ms", **WATER}, "every: expected a time"),
        ({"cron": "0 7", **WATER}, "expected five fields"),
        ({"cron": "0 7 31 2 *", **WATER}, "it would never run"),
        ({"every": "1h", "if": "soil is dry", **WATER}, "if: expected a comparison"),
        ({"every": "1h", "if": "mud < 3", **WATER}, 'there is no reading "mud"'),
        ({"every": "1h", "at_most": "2", **WATER}, "at_most: expected"),
        ({"on": "soil", **WATER}, "one side"),
        ({"on": "soil", "below": "30", **WATER}, "below: expected a number"),
        ({"on": "soil", "below": 30, "again_above": 20, **WATER}, "ready again"),
        ({"every": "1h", "when": "x", **WATER}, 'unknown field "when"'),
        ({"every": "1h", "name": "Water!", **WATER}, "name: expected"),
        ({"every": "1h", "call": "water", "arguments": {"seconds": "{mud}"}}, 'no reading "mud"'),
        ({"every": "1h"}, "nothing says what it does"),
        ({"every": "1h", "say": "{mud}"}, 'no reading "mud"'),
        ([], "is a table of fields"),
    ],
)
def test_a_draft_that_is_wrong_gets_one_sentence(tmp_path, row, said):
    pupil = Pupil(tmp_path)
    with pytest.raises(ClawError) as e:
        make_draft(pupil.rules, row, "console", "x")
    assert said in e.value.message and "\n" not in e.value.message


PUMP = '[[pins]]\nname = "pump"\npin = 5\nkind = "output"\n'
WRITE = ["claw://registry/clawlite/digital-write@1.0.0", "claw://registry/clawlite/adc-read@1.0.0"]


def test_a_draft_that_fires_itself_is_refused(tmp_path):
    on_pump = READING + '[[reading]]\nname = "pumping"\npin = "pump"\nevery = "10s"\n'
    pupil = Pupil(tmp_path, on_pump, settings=PUMP, more_tools=WRITE)
    write = {"call": "digital-write", "arguments": {"pin": "pump", "value": True}}
    for row in ({"pin": "pump", **write}, {"on": "pumping", "below": 1, **write}):
        with pytest.raises(ClawError, match="it would fire itself"):
            make_draft(pupil.rules, row, "console", "x")
    make_draft(pupil.rules, {"on": "soil", "below": 30, **write}, "console", "x")


def test_a_draft_that_policy_would_never_let_through_is_refused(tmp_path):
    deny = [{"id": "no", "action": "deny", "scope": "tool", "match": {"name": "water"}}, *ALLOW]
    pupil = Pupil(tmp_path, policy=deny)
    with pytest.raises(ClawError, match="rule no blocks water"):
        make_draft(pupil.rules, {"every": "1h", **WATER}, "console", "x")
    pupil = Pupil(tmp_path / "2", autonomy="observer")
    with pytest.raises(ClawError, match="only observes"):
        make_draft(pupil.rules, {"every": "1h", **WATER}, "console", "x")


def test_settings_narrow_what_is_taught(tmp_path):
    limits = '[teach]\ntools = ["water"]\nat_most = "3/day"\n'
    pupil = Pupil(tmp_path, settings=limits)
    with pytest.raises(ClawError, match="none of the tools that a taught rule may call"):
        make_draft(
            pupil.rules,
            {"every": "1h", "call": "repeatable", "arguments": {"seconds": 1}},
            "console",
            "x",
        )
    with pytest.raises(ClawError, match="more than a taught rule may run"):
        make_draft(pupil.rules, {"every": "1h", "at_most": "4/day", **WATER}, "console", "x")
    adopted(pupil, {"every": "1h", **WATER})
    pupil.move(6 * 3600, 60000)
    assert len(pupil.acted) == 3
    pupil.rebuild(READING + PATTERNS, settings='[teach]\ntools = ["repeatable"]\n')
    assert pupil.rules.engine.rules == [] and "It rests" in pupil.say("/rules taught")


def test_at_most_32(tmp_path):
    pupil = Pupil(tmp_path)
    for _ in range(MOST):
        adopted(pupil, {"every": "1h", **WATER})
    with pytest.raises(ClawError, match="32 rules are taught already"):
        make_draft(pupil.rules, {"every": "1h", **WATER}, "console", "x")
    pupil.say("/rules forget water-7")
    assert adopted(pupil, {"every": "1h", **WATER}).name == "water-7"


def test_a_draft_is_rehearsed_with_the_readings_on_record(tmp_path):
    pupil = Pupil(tmp_path, READING + 'keep = "7d"\n' + PATTERNS)
    for hour in range(16 + 8):  # until 08:00 of the next day
        pupil.soil = 20 if hour in (3, 9) else 50
        pupil.move(3600, 60000)
    row = {"on": "soil", "below": 30, **WATER}
    assert make_draft(pupil.rules, row, "console", "x").lines[1] == (
        "In the last 24 hours it would have run 3 times, at 8:00, 11:01 and 17:01, 15 s in all."
    )
    pupil.move(DAY, 60000)
    pupil.move(DAY, 60000)
    made = make_draft(pupil.rules, {"every": "6h", "if": "soil > 30", **WATER}, "console", "x")
    assert made.lines[1].startswith("Yesterday it would have run 3 times, at 6:00, 12:00 and 18:00")
    assert made.lines[1].endswith("15 s in all.")
    made = make_draft(pupil.rules, {"at": "10:00", "if": "soil < 30", **WATER}, "console", "x")
    assert "it would not have run: soil < 30 does not hold" in made.lines[1]
    assert pupil.acted == []


def test_once_is_forgotten_after_its_run(tmp_path):
    pupil = Pupil(tmp_path)
    pupil.say("tomorrow at 7 water for 5 seconds", "y")
    assert pupil.rows()[0] == {"cron": "0 7 16 1 *", "once": True, **WATER}
    pupil.move(DAY, 60000)
    assert [act[:2] for act in pupil.acted] == [("water", {"seconds": 5})]
    assert pupil.rows() == [] and pupil.rules.engine.rules == []
    pupil.start()
    pupil.move(DAY, 60000)
    assert len(pupil.acted) == 1


def test_a_reminder_asks_nobody_and_calls_nothing(tmp_path):
    pupil = Pupil(tmp_path)
    assert "Taught: reminder-1" in pupil.say("remind me in 10 minutes to look at the pump")
    pupil.move(601)
    assert "[rule reminder-1] Reminder: look at the pump" in pupil.told
    assert pupil.rows() == [] and pupil.acted == []


def test_a_rule_that_is_forgotten_while_it_runs_ends(tmp_path):
    pupil = Pupil(tmp_path, hold=True)
    pupil.say("every hour water for 5 seconds", "y")
    pupil.move(3601)
    assert len(pupil.held) == 1
    pupil.say("/rules forget water-1")
    pupil.finish()
    pupil.move(10)
    assert pupil.rules.engine.active is None
    adopted(pupil, {"every": "1h", **WATER})
    pupil.move(3601)
    assert len(pupil.held) == 1


def test_a_teacher_who_may_call_nothing_any_more_stops_the_rule(tmp_path):
    pupil = Pupil(tmp_path)
    adopted(pupil, {"every": "1h", **WATER}, "telegram/42")  # there is no such channel
    pupil.move(3601)
    assert pupil.acted == []
    [off] = pupil.events("rule.off")
    assert "telegram/42, who taught it, may call no tools here any more" in off["reason"]


class _Channels:
    def __init__(self, role):
        self.all = [self]
        self.name, self.access, self._role = "telegram", self, role

    def role(self, actor):
        return self._role


@pytest.mark.parametrize("role, may", [(None, False), (0, False), (1, True), (2, True)])
def test_the_role_of_a_teacher_is_looked_up(role, may):
    entry = {"by": "telegram/42", "is_known": False}
    assert (find_teacher_obstacle(entry, _Channels(role), dict) == "") is may
    entry = {"by": "operator/ann", "is_known": True}
    people = {} if role is None else {"ann": ("viewer", "user", "admin")[role]}
    assert (find_teacher_obstacle(entry, None, lambda: people) == "") is may


def test_a_damaged_file_drops_what_is_damaged(tmp_path):
    pupil = Pupil(tmp_path)
    pupil.say(SENTENCE, "y")
    path = tmp_path / "state/rules/taught.json"
    data = json.loads(path.read_text().rpartition(" ")[0])
    data["rules"] += [{"name": "x"}, 7, dict(data["rules"][0], row="rm -rf")]
    path.write_text(json.dumps(data))
    pupil.start()
    assert [rule.name for rule in pupil.rules.engine.rules] == ["water-1"]
    assert any("3 taught rules were damaged" in text for text in pupil.told)


def test_what_was_taught_is_exported_for_the_rules_file(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "states"))
    pupil = Pupil(tmp_path)
    image = tmp_path / "claw.cbor"
    image.write_bytes(pupil.data)
    pupil.say(SENTENCE, "y")
    adopted(pupil, {"on": "soil", "below": 30, "for": "5m", "say": 'say "{soil}"', **WATER})
    adopted(pupil, {"every": "2h", "once": True, **WATER})
    adopted(pupil, {"every": "2h", "say": "drink"})
    (tmp_path / "states").mkdir()
    (tmp_path / "state").rename(tmp_path / "states/ruled")
    assert taught_rules.export(str(image)) == 0
    text = capfd.readouterr().out
    assert text.count("[[rule]]") == 2 and text.count("# not a rule of the file") == 2
    assert taught_rules.show(str(image), True) == 0
    rows = json.loads(capfd.readouterr().out)
    assert rows[0]["by"] == "console" and rows[0]["said"] == SENTENCE and rows[0]["row"] == ROW
    again = Pupil(tmp_path / "again", READING + PATTERNS + text)
    [first, second] = pupil.agent.image.section(27)[1], again.rules.own_section[1]
    assert [rule[:8] for rule in second] == [rule[:8] for rule in pupil.rules.section[1][:2]]
    assert first == []
