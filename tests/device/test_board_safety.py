"""What a board does for the safety of what it moves, when something goes wrong."""

import pytest
from rule_board import RuleBoard
from rules_world import READING, RULE

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
