"""Channels of type cron on a board: the scheduler of rules begins their turns, over resets, clocks
that jump and people who answer late.
"""

import random

import pytest
from rule_board import RuleBoard
from rules_world import EPOCH_S, READING, RULE

LOGGED = [{"id": "all", "action": "audit-only", "scope": "all"}]
ASK = [
    {
        "id": "ask",
        "action": "require-approval",
        "scope": "tool",
        "match": {"name": "water"},
        "approval": {"timeout_seconds": 60},
    },
    *LOGGED,
]
SAYS = """
[[rule]]
when = "water the beds"
call = "water"
arguments = { seconds = 3 }

[[rule]]
when = "twice"
call = "repeatable"
arguments = { seconds = 3 }

[[rule]]
when = "hello"
say = "Good morning."
"""
CONFIRMED = """
[[pins]]
name = "pump"
pin = 5
kind = "output"
[confirm.water]
reading = "soil"
above = 50
within = "2s"
pins = ["pump"]
"""
CONSOLE = {
    "inline": {
        "name": "console",
        "type": "cli",
        "transport": "stdio",
        "auth": {"secret_ref": "C"},
    }
}


def cron(schedule: str, name: str = "morning", **trigger) -> dict:
    return {
        "inline": {
            "name": name,
            "type": "cron",
            "transport": "polling",
            "auth": {"secret_ref": "NONE"},
            "trigger": {"schedule": schedule, **trigger},
        }
    }


@pytest.fixture
def timed(micropython, mpy_cross, tmp_path):
    """Return a function that makes a ``RuleBoard`` with Channels of type cron."""

    def make(
        channels,
        says="water the beds",
        rules="",
        policy=None,
        cron_toml="",
        more_toml="",
        zone="",
        heap="192k",
    ):
        settings = zone + "[cron]\n%s\n" % cron_toml
        settings += "messages = { morning = '%s' }\n" % says if says else ""
        return RuleBoard(
            tmp_path / "board",
            SAYS + rules,
            policy or LOGGED,
            channels=[CONSOLE, *channels],
            heap=heap,
            settings=settings + more_toml,
        )

    return make


def statuses(board) -> dict:
    """Return {time of the schedule: [how each run of it ended]} of the channel."""
    found = {}
    for event in board.events("rule.run"):
        found.setdefault(event["at"], []).append(event["status"])
    return found


def test_a_schedule_begins_a_turn_whose_calls_bear_its_name(timed):
    board = timed([cron("*/10 * * * *")])
    board.run(610)
    assert board.acted == [(EPOCH_S + 600, "begin"), (EPOCH_S + 603, "end")]
    calls = board.events("tool.call")
    assert [(one["caller"], one["status"]) for one in calls] == [("morning", "ok")]
    assert [one["channel"] for one in board.events("channel.turn")] == ["morning"]
    assert "[morning] done" in board.told


@pytest.mark.parametrize("seed", range(2))
def test_a_week_with_resets_loses_no_run_and_acts_twice_for_none(timed, seed):
    """50 resets at random moments, some while the tool runs."""
    dice = random.Random(seed)
    board = timed([cron("0 */2 * * *", overlap_policy="queue")], cron_toml='missed = "all"')
    for _ in range(50):
        seconds = dice.randint(1, 150) * 60
        if dice.random() < 0.5:  # in the middle of a run
            seconds = 7200 - board.wall_s % 7200 + dice.randint(0, 3)
        board.run(seconds, dies=True, off_s=dice.choice((2, 30, 600, 7200, 30000)))
    board.run(2 * 3600)
    ended = statuses(board)
    assert all(len(one) == 1 for one in ended.values()), ended
    wanted = [at for at in range(EPOCH_S, board.wall_s) if at % 7200 == 0 and at > EPOCH_S]
    begun = [at for at, what in board.acted if what == "begin"]
    assert sorted(ended) == wanted and len(begun) == len(wanted)
    cut = [at for at in ended if ended[at] == ["cut"]]
    assert cut and board.told.count("water had begun when the agent ended") == len(cut)


@pytest.mark.parametrize("missed, runs", [("once", 1), ("skip", 0), ("all", 3)])
def test_runs_that_were_missed(timed, missed, runs):
    channel = cron("0 * * * *", overlap_policy="queue")
    board = timed([channel], cron_toml='missed = "%s"' % missed)
    board.run(60, dies=True, off_s=3 * 3600 + 600)
    board.run(600)
    assert [one for one in statuses(board).values()] == [["ok"]] * runs
    assert len([what for _, what in board.acted if what == "begin"]) == runs


@pytest.mark.parametrize("by_s", [366 * 86400 + 5, 3600, -3600, -400 * 86400])
def test_a_clock_that_jumps_runs_nothing_twice(timed, by_s):
    board = timed([cron("*/10 * * * *", overlap_policy="queue")], cron_toml='missed = "all"')
    board.run(1210, dies=True)
    board.wall_s += by_s
    board.run(1210)
    ended = statuses(board)
    assert all(len(one) == 1 for one in ended.values())
    assert 2 <= len(ended) <= 4 + max(0, min(by_s // 600, 100))


def test_no_run_begins_before_the_clock_is_set(timed):
    board = timed([cron("*/10 * * * *")])
    board.wall_s = 0
    said = board.run(7200, [(3600, "/rules next")])
    assert board.acted == [] and "The clock of this machine is not set" in said


@pytest.mark.parametrize("default, runs", [("allow", 1), ("deny", 0)])
def test_what_nobody_answers_runs_where_the_policy_says_allow(timed, default, runs):
    """For a Channel it holds as CKP says; a call of a rule is denied."""
    policy = [dict(ASK[0], approval={"timeout_seconds": 60, "default_if_timeout": default})]
    rule = RULE + 'cron = "5 * * * *"\n'
    board = timed([cron("10 8 * * *")], rules=rule, policy=policy + LOGGED)
    board.run(800)
    begun = [at - EPOCH_S for at, what in board.acted if what == "begin"]
    assert begun == [660] * runs, board.told


def test_a_person_is_asked_and_asked_again_after_a_reset(timed):
    policy = [dict(ASK[0], approval={"timeout_seconds": 600}), *LOGGED]
    rule = RULE.replace("water", "repeatable") + 'every = "1m"\n'
    board = timed([cron("10 8 * * *")], rules=rule, policy=policy)
    said = board.run(700, dies=True, off_s=5)
    assert "Approve water(seconds=3)?" in said and "morning asked for it" in said, said
    # rules go on while it waits
    assert len([what for at, what in board.acted if at > EPOCH_S + 605]) == 1
    assert "begin" not in [what for _, what in board.acted]
    said = board.run(60, [(20, "y")])
    assert "Approve water(seconds=3)?" in said
    assert [what for _, what in board.acted if what != "again"] == ["begin", "end"]


@pytest.mark.parametrize("policy, ends, skipped", [("skip", 1, 4), ("queue", 5, 0)])
def test_what_comes_while_its_turn_is_under_way(timed, policy, ends, skipped):
    asks = [dict(ASK[0], approval={"timeout_seconds": 290}), *LOGGED]
    board = timed([cron("* * * * *", overlap_policy=policy)], policy=asks)
    answers = [(339 + number, "n") for number in range(5)]
    board.run(345, answers)
    assert len(statuses(board)) == ends, board.told
    assert len(board.events("channel.skipped")) == skipped


@pytest.mark.parametrize("interrupted, runs", [("repeat", 2), ("give-up", 1), (None, 1)])
def test_a_turn_that_was_cut_after_its_tool_had_begun(timed, interrupted, runs):
    toml = 'interrupted = "%s"' % interrupted if interrupted else ""
    board = timed([cron("0 9 * * *")], cron_toml=toml)
    board.run(3602, dies=True, off_s=5)
    board.run(60)
    assert [what for _, what in board.acted].count("begin") == runs
    assert ("not known, and it is not repeated" in board.told) == (runs == 1)


def test_a_turn_that_ends_its_board_three_times_is_given_up(timed):
    asks = [dict(ASK[0], approval={"timeout_seconds": 6000}), *LOGGED]
    board = timed([cron("0 9 * * *")], policy=asks)
    board.run(3605, dies=True, off_s=5)
    for _ in range(2):
        assert "Approve water" in board.run(5, dies=True, off_s=5)
    said = board.run(5)
    assert "a turn had begun when the agent ended" in said and "Approve" not in said


def test_flash_that_is_full_lets_no_turn_begin(timed):
    board = timed([cron("*/10 * * * *")])
    (board.flash / "rules").write_text("")
    said = board.run(1300)
    assert said.count("what must be kept of the rules cannot be written") == 1, said
    assert "[morning] that it begins cannot be put on record, so it does not" in said
    assert board.acted == []
    (board.flash / "rules").unlink()
    board.run(700)
    assert "begin" in [what for _, what in board.acted]


def test_it_is_listed_and_switched_as_a_rule_is(timed):
    board = timed([cron("*/10 * * * *")], says="hello")
    said = board.run(900, [(610, "/rules last"), (620, "/rules why morning"), (630, "/rules next")])
    assert "[morning] Good morning." in said
    assert "morning              2027-01-15T08:10:0" in said
    assert "morning begins by the clock (1 schedule), and begins a turn." in said
    assert "2027-01-15T08:20:00+00:00" in said
    board.run(60, [(10, "/rules off morning")])
    assert board.run(1200).count("Good morning.") == 0
    assert board.run(1200, [(10, "/rules on morning")]).count("Good morning.") == 2


def test_a_channel_whose_call_was_not_confirmed_rests(timed):
    board = timed([cron("*/10 * * * *")], rules=READING, more_toml=CONFIRMED)
    board.run(1900)
    assert board.acted == [(EPOCH_S + 600, "begin")], board.told
    assert "[rule morning] it is off now: water failed: soil above 50" in board.told


def test_without_a_text_of_its_own_it_says_that_its_time_has_come(timed):
    rules = '[[rule]]\nwhen = "The schedule {words:text}"\nsay = "It is {words}"\n'
    board = timed([cron("*/10 * * * *", "other")], "", rules, zone='time_zone = "Europe/Berlin"\n')
    board.run(610)
    assert "[other] It is */10 * * * * has come: it is 2027-01-15 09:10 (Europe/Berlin)" in (
        board.told
    )
