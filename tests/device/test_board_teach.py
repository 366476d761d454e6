"""Rules that people teach a board, at its console: checked, approved, kept in its flash, run
without anything else, and forgotten.
"""

import json

import pytest
from rule_board import RuleBoard
from rules_world import ASK, EPOCH_S, READING

from clawlite.core.rules.rehearsal import NOTHING_ACTS

HEAP = "280k"
TEACH = "[teach]\n"
FORM = '/teach at = "08:02", if = "soil < 30", call = "water", arguments = { seconds = 3 }'


@pytest.fixture
def taught(micropython, mpy_cross, tmp_path):
    """Return a function that makes a ``RuleBoard`` that is taught."""

    def make(rules=READING, policy=None, settings=TEACH, **more):
        return RuleBoard(tmp_path / "board", rules, policy, HEAP, settings=settings, **more)

    return make


def test_a_rule_is_taught_runs_outlives_a_reset_and_is_forgotten(taught):
    board = taught()
    said = board.run(30, [(5, FORM), (10, "y")], dies=True, off_s=10)
    assert "Teach this rule?" in said
    assert "water-1: Each day at 08:02 (UTC), if soil < 30: call water(seconds=3)." in said
    assert "Taught: water-1" in said and board.acted == []
    said = board.run(120, [(5, "/rules taught"), (6, "/rules")])
    assert "water-1: Each day at 08:02 (UTC), if soil < 30: call water(seconds=3)." in said
    assert board.acted == [(EPOCH_S + 120, "begin"), (EPOCH_S + 123, "end")]
    said = board.run(10, [(5, "/rules forget water-1"), (6, "/rules taught")])
    assert "Rule water-1 is forgotten." in said and "Nothing was taught yet." in said
    board.run(86400)
    assert len(board.acted) == 2
    assert not list((board.flash / "taught").iterdir())


def test_it_is_rehearsed_with_what_is_on_record(taught):
    board = taught()
    said = board.run(240, [(5, FORM), (10, "y"), (200, "/rehearse water-1")])
    assert "water-1: water(seconds=3) would run" in said and NOTHING_ACTS in said


def test_each_run_is_judged_and_the_rule_is_switched_off_and_on(taught):
    board = taught(policy=ASK)
    said = board.run(130, [(5, FORM), (10, "y"), (125, "y")])
    assert "rule/water-1 asked for it" in said and [at for at, _ in board.acted][0] > EPOCH_S + 120
    board.run(86400, [(5, "/rules off water-1")])
    said = board.run(10, [(5, "/rules taught"), (6, "/rules on water-1")])
    assert "It is off: a person switched it off." in said and "is on" in said
    assert len(board.acted) == 2


@pytest.mark.parametrize(
    "row, why",
    [
        ('at = "25:00", call = "read-soil"', "at: expected a time"),
        ('at = "07:00", call = "launch"', 'there is no tool "launch" here; known: read-soil, wat'),
        ('at = "07:00", call = "water", arguments = { seconds = 90 }', "water refuses it: "),
        (
            'every = "5m", if = "mood < 3", call = "read-soil"',
            'no reading "mood" here; known: soil',
        ),
        ('at = "07:00", call = "repeatable", arguments = { seconds = 3 }', "none of the tools"),
        ('at = "07:00", call = "read-soil", at_most = "9/day"', "more than a taught rule may run"),
        ('at = "07:00", call = "water", "x": [', "expected"),
        ('pin = "door", name = "A", call = "read-soil"', "name: expected lower-case letters"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_with_a_sentence(taught, row, why):
    board = taught(settings='[teach]\ntools = ["water", "read-soil"]\nat_most = "8/day"\n')
    said = board.run(20, [(5, "/teach " + row), (10, "/rules taught")])
    assert why in said and "Nothing was taught yet." in said and "Teach this rule" not in said


def test_a_rule_that_would_run_too_often_is_refused(taught):
    said = taught().run(20, [(5, '/teach every = "10s", call = "read-soil"')])
    assert "it would run 8640 times a day" in said and "Teach this rule" not in said


def test_no_and_silence_teach_nothing(taught):
    board = taught()
    said = board.run(400, [(5, FORM), (10, "n"), (20, FORM), (390, "/rules taught")])
    assert said.count("Teach this rule?") == 2 and "Nothing was taught yet." in said


def test_a_reminder_is_said_and_what_runs_once_is_forgotten(taught):
    board = taught()
    rows = ['every = "2m", once = true, say = "Soil is {soil}."', 'pin = "door", say = "Ding!"']
    board.write("pin-4", "1 if 200000 < now < 210000 else 0")
    inputs = [(5, "/teach " + rows[0]), (8, "y"), (10, "/teach " + rows[1]), (12, "y")]
    said = board.run(300, [*inputs, (290, "/rules taught")])
    assert said.count("[rule reminder-1] Soil is 20.") == 1
    assert said.count("[rule reminder-2] Ding!") == 2
    listed = said.rpartition("[rule reminder-2]")[2]
    assert "reminder-1" not in listed and "reminder-2: When the pin door changes" in listed


def test_what_an_update_removes_rests_with_a_notice(taught):
    board = taught()
    board.run(20, [(5, FORM), (10, "y")])
    board.build(READING.replace("soil", "mud", 1), settings=TEACH)  # without the reading
    said = board.run(20, [(5, "/rules taught")])
    assert "[rule water-1] it was taught, and does not fit this agent any more" in said
    assert 'It rests: the rule: there is no reading "soil" here' in said
    board.build(READING, settings=TEACH)
    assert "rests" not in board.run(10, [(5, "/rules taught")])


def test_at_most_eight_are_taught_and_a_damaged_file_is_told(taught):
    board = taught()
    row = '/teach at = "07:0%d", call = "read-soil"'
    inputs = [(5 + 4 * at + 2 * no, (row % at, "y")[no]) for at in range(9) for no in (0, 1)]
    said = board.run(60, inputs)
    assert said.count("Taught: ") == 8 and "8 rules are taught already" in said
    path = board.flash / "taught" / "read-soil-3"
    path.write_bytes(path.read_bytes()[:-9])
    said = board.run(20, [(5, "/rules taught")])
    assert "[rule read-soil-3] it was taught, and is damaged: it is forgotten" in said
    assert said.count("Each day at") == 7


def test_who_taught_what_and_how_is_in_flash_and_in_the_log(taught):
    board = taught(policy=[{"id": "all", "action": "audit-only", "scope": "all"}])
    board.run(20, [(5, FORM), (10, "y")])
    kept = json.loads((board.flash / "taught" / "water-1").read_bytes()[8:])
    assert (kept["by"], kept["at_s"]) == ("console", EPOCH_S + 5)
    assert kept["said"] == FORM[7:] and kept["row"]["at"] == "08:02"
    [call] = [one for one in board.events("tool.call") if one["tool"] == "add-rule"]
    assert (call["status"], call["approval"], call["caller"]) == ("ok", "approved", "console")
    assert board.events("rule.taught")[0]["rule"] == "water-1"


def test_without_teach_a_board_has_no_form_and_no_file_of_it(taught):
    board = taught(settings="")
    said = board.run(20, [(5, FORM)])
    assert 'No command "/teach"' in said and not (board.flash / "taught").exists()
