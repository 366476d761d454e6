"""What a board does for the safety of what it moves and keeps, when something goes wrong."""

import pytest
from rule_board import RuleBoard
from rules_world import READING, RULE

from clawlite.core.rules import table
from clawlite.host.fit import samples
from clawlite.linux.files.files import image_of

# each call is in the log
LOGGED = [{"id": "all", "action": "audit-only", "scope": "all"}]


@pytest.fixture
def ruled(micropython, mpy_cross, tmp_path):
    """Return a function that makes a ``RuleBoard``."""
    return lambda *args, **more: RuleBoard(tmp_path / "board", *args, **more)


def test_a_relay_that_is_off_while_high_is_off_when_nothing_follows(ruled):
    board = ruled(
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
def test_what_is_kept_of_a_day_takes_what_a_build_counts(ruled, rules):
    """Samples, and when the agent was seen: with each write of the state of the rules."""
    board = ruled(rules)
    board.write("soil", "20.25")
    board.run(86400)
    found = sum(path.stat().st_size for path in (board.flash / "readings").iterdir())
    image = image_of((board.flash / "claw.cbor").read_bytes(), "test")
    readings, of_rules, _ = image.section(table.SECTION)
    counted = samples.measure_day(readings, of_rules)
    assert 0.8 * counted <= found <= 1.03 * counted, (found, counted)
