"""Nights in which clocks change, and a leap day."""

import pytest
from rules_world import HALF_PAST_TWO, World, name_runs


@pytest.mark.parametrize(
    "midnight_s, reset_s, runs",
    [
        (1806192000, 3600, ["r 02:30", "r 03:00", "r 02:30"]),  # 02:00 becomes 03:00
        (1824940800, 4500, ["r 02:30", "r 02:30", "r 02:30"]),  # 03:00 becomes 02:00
        (1835395200, 3600, ["r 02:30", "r 02:30", "leap 09:00", "r 02:30"]),  # 2028-02-29
    ],
)
def test_nights_in_which_clocks_change_and_a_leap_day(tmp_path, midnight_s, reset_s, runs):
    """Three days around it, with a reset in that night: each time of a rule comes once."""

    class Dated(World):
        def start(self):
            self.wall_s = self.wall_s if self.agent else midnight_s - 86400
            super().start()

    world = Dated(tmp_path, HALF_PAST_TWO, settings='time_zone = "Europe/Berlin"\n')
    world.move(86400 + reset_s, 60000)
    world.reset(120)
    world.move(2 * 86400 - reset_s - 120, 60000)
    assert name_runs(world.events("rule.run")) == runs
    assert len(world.acted) == len(runs)
