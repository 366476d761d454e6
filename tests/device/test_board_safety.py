"""What a board does for the safety of what it moves and keeps, when something goes wrong."""

import json

import pytest
from rules_world import EPOCH_S, HALF_PAST_TWO, READING, RULE, name_runs

from clawlite.core.rules import table
from clawlite.core.rules.rehearsal import OF_BOARD
from clawlite.host.rules.feature import measure_day
from clawlite.linux.files.files import image_of
from clawlite.linux.rules.board_samples import read_samples
from clawlite.linux.rules.rehearsal import Rehearsal

# each call is in the log
LOGGED = [{"id": "all", "action": "audit-only", "scope": "all"}]


def test_a_relay_that_is_off_while_high_is_off_when_nothing_follows(make_rule_board):
    board = make_rule_board(
        READING.replace("60s", "1h") + RULE + 'every = "1m"\n',
        LOGGED,
        settings='[[pins]]\nname = "pump"\npin = 5\nkind = "output"\nsafe = 1\n[confirm.water]\n'
        'reading = "soil"\nabove = 50\nwithin = "2s"\npins = ["pump"]\n',
    )
    board.run(200)
    assert "it is off now: water failed: soil above 50 within 2000 ms" in board.told
    assert set((board.world / "set").read_text().split()) == {"5=1"}


@pytest.mark.parametrize(
    "rules",
    [
        READING,
        READING.replace("60s", "10m"),
        READING.replace("60s", "10m") + RULE + 'every = "2m"\n',
        READING.replace("60s", "10m") + RULE + 'cron = "*/2 * * * *"\n',
        READING.replace("60s", "10m") + RULE + 'every = "2m"\nat_most = "30/hour"\n',
        READING.replace("60s", "10m") + RULE + 'every = "2m"\nat_most = "1/day"\n',
    ],
)
def test_what_is_kept_of_a_day_takes_what_a_build_counts(make_rule_board, rules):
    """Samples, and when the agent was seen: with each write of the state of the rules."""
    board = make_rule_board(rules)
    board.write("soil", "20.25")
    board.run(86400)
    found = sum(path.stat().st_size for path in (board.flash / "readings").iterdir())
    image = image_of((board.flash / "claw.cbor").read_bytes(), "test")
    readings, of_rules, _ = image.section(table.SECTION)
    counted = measure_day(readings, of_rules)
    assert 0.8 * counted <= found <= 1.03 * counted, (found, counted)


def test_a_clock_that_is_set_late_is_on_record_and_is_rehearsed(make_rule_board):
    """Samples from before that have their time, and no schedule has run before it."""
    board = make_rule_board(
        READING.replace("60s", "10m")
        + RULE
        + 'at = "10:00"\nmissed = "skip"\n'
        + RULE.replace('"r"', '"dry"')
        + 'on = "soil"\nbelow = 2\nagain_above = 3\n'
        + RULE.replace('"r"', '"each"')
        + 'every = "1h"\nat_most = "5/day"\n',
        LOGGED,
    )
    board.wall_s = 0
    board.write("soil", "now // 1200 % 6")
    set_s = EPOCH_S + 3 * 3600
    told = {"jsonrpc": "2.0", "method": "claw.clock", "params": {"epoch_s": set_s}}
    board.run(6 * 3600, [(3 * 3600, "\x1e" + json.dumps(told))])
    happened = [(one["rule"], one["values"]) for one in board.events("rule.run")]
    assert {name for name, _ in happened} == {"dry", "each"} and len(happened) >= 8
    rows, edges, lives = read_samples(str(board.flash / "readings"))
    assert rows[0][0] < EPOCH_S + 700 and lives[0][2] >= set_s
    image = image_of((board.flash / "claw.cbor").read_bytes(), "test")
    end_s = EPOCH_S + 6 * 3600
    played = Rehearsal(image, rows, EPOCH_S, end_s, lives=lives, habits=OF_BOARD)
    played.play()
    assert [(run["rule"], run["values"]) for run in played.runs] == happened


@pytest.mark.parametrize(
    "midnight_s, reset_s, runs",
    [
        (1806192000, 3600, ["r 02:30", "r 03:00", "r 02:30"]),  # 02:00 becomes 03:00
        (1824940800, 4500, ["r 02:30", "r 02:30", "r 02:30"]),  # 03:00 becomes 02:00
        (1835395200, 3600, ["r 02:30", "r 02:30", "leap 09:00", "r 02:30"]),  # 2028-02-29
    ],
)
def test_nights_in_which_clocks_change_and_a_leap_day(make_rule_board, midnight_s, reset_s, runs):
    """Three days around it, with a power cut in that night: each time of a rule comes once."""
    board = make_rule_board(HALF_PAST_TWO, LOGGED, settings='time_zone = "Europe/Berlin"\n')
    board.wall_s = midnight_s - 86400
    board.run(86400 + reset_s, dies=True, off_s=120)
    board.run(2 * 86400 - reset_s - 120)
    assert name_runs(board.events("rule.run")) == runs
    assert [what for _, what in board.acted] == ["begin", "end"] * len(runs)
