"""Readings and rules on a board: the same engine and pipeline as on Linux, in the board's loop, and
what must survive is in its flash.
"""

import random

import pytest
from rule_board import RuleBoard
from rules_world import EPOCH_S, READING, RULE

# each call is in the log
LOGGED = [{"id": "all", "action": "audit-only", "scope": "all"}]


@pytest.fixture
def ruled(micropython, mpy_cross, tmp_path):
    """Return a function that makes a ``RuleBoard``."""
    return lambda *args, **more: RuleBoard(tmp_path / "board", *args, **more)


def test_a_rule_acts_through_the_pipeline_with_its_name_as_the_caller(ruled):
    board = ruled(
        READING + RULE + 'every = "5m"\nif = "soil < 30"\n'
        'then = [{ say = "Watered at {soil}: {result}", to = "admins" }]\n',
        LOGGED,
    )
    board.run(310)
    assert board.acted == [(EPOCH_S + 300, "begin"), (EPOCH_S + 303, "end")]
    calls = [one for one in board.events("tool.call") if one["tool"] == "water"]
    assert [(one["caller"], one["status"]) for one in calls] == [("rule/r", "ok")]
    assert board.events("rule.run")[0]["values"] == {"soil": 20}
    assert "[rule r] Watered at 20: done" in board.told


@pytest.mark.parametrize("seed", range(2))
def test_a_week_with_resets_loses_no_run_and_repeats_none(ruled, seed):
    """50 resets at random moments, some while the tool runs: each time of the schedule ends once,
    whatever way.
    """
    dice = random.Random(seed)
    board = ruled(
        READING.replace("60s", "10m")
        + RULE
        + 'cron = "0 */2 * * *"\nmissed = "all"\nif = "soil < 30"\n',
        LOGGED,
    )
    for _ in range(50):
        seconds = dice.randint(1, 150) * 60
        if dice.random() < 0.5:  # in the middle of a run
            seconds = 7200 - board.wall_s % 7200 + dice.randint(0, 3)
        board.run(seconds, dies=True, off_s=dice.choice((2, 30, 600, 7200, 30000)))
    board.run(2 * 3600)
    ended = {}
    for event in board.events("rule.run"):
        ended.setdefault(event["at"], []).append(event["status"])
    assert all(len(statuses) == 1 for statuses in ended.values()), ended
    wanted = [at for at in range(EPOCH_S, board.wall_s) if at % 7200 == 0 and at > EPOCH_S]
    begun = [at for at, what in board.acted if what == "begin"]
    assert sorted(ended) == wanted and len(begun) == len(wanted)
    statuses = [status for one in ended.values() for status in one]
    assert {"ok", "cut"} == set(statuses)
    assert statuses.count("ok") <= len([1 for _, what in board.acted if what == "end"])
    assert board.told.count("how it ended is not known, and it is not repeated") == (
        statuses.count("cut")
    )


def test_what_must_follow_a_call_is_looked_at_while_it_runs(ruled):
    board = ruled(
        READING.replace("60s", "1h") + RULE + 'every = "1m"\n',
        LOGGED,
        settings='[[pins]]\nname = "pump"\npin = 5\nkind = "output"\n[confirm.water]\n'
        'reading = "soil"\nabove = 50\nwithin = "2s"\npins = ["pump"]\n',
    )
    board.run(200)
    assert board.acted == [(EPOCH_S + 60, "begin")]  # it was ended, and the rule rests
    why = "soil above 50 within 2000 ms is not confirmed: it is 20"
    assert "it is off now: water failed: " + why in board.told
    assert (board.world / "set").read_text().count("5=0") >= 1
    (event,) = [one for one in board.events("tool.call") if one["tool"] == "water"]
    assert event["status"] == "error" and why in event["confirm"]
    board.run(200)
    assert len(board.acted) == 1
    board.write("soil", "60")
    board.run(100, [(1, "/rules on r")])
    board.run(100)
    assert [what for _, what in board.acted][:3] == ["begin", "begin", "end"]
    assert "was 60" in board.events("tool.call")[-1]["confirm"]
