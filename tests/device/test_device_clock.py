"""The clock of a board counts on while nothing happens, however long that takes: ticks_ms wraps,
and only half a turn can be told.
"""

import re
import subprocess

import pytest
from agents import board, make_bench

DAY_MS = 86400000
# Before MicroPython's own: ticks that pass only while the loop waits, and turn over as on a board.
TIME = """
from utime import *
passed = 0
def ticks_ms():
    return passed & (1 << 30) - 1
def sleep_ms(wait):
    global passed
    passed += wait
def ticks_diff(later, earlier):
    return (later - earlier + (1 << 29) & (1 << 30) - 1) - (1 << 29)
"""
# A wait that nothing ends, until IDLE ms are over; then stdin is ready.
SELECT = """
import time
from uselect import POLLIN, POLLOUT
IDLE = %d
class poll:
    def register(self, stream, mask):
        self.stream = stream
    def unregister(self, stream):
        pass
    def poll(self, timeout=-1):
        left = IDLE - time.passed
        time.passed += left if timeout < 0 or timeout > left > 0 else timeout
        return [(self.stream, POLLIN)] if time.passed >= IDLE else []
"""
START = "import inside_board; inside_board.count_time()"


@pytest.mark.parametrize("days", [1, 6, 7, 13, 40])
def test_days_without_anything_to_do_are_counted(micropython, tmp_path, days):
    (tmp_path / "time").mkdir()
    (tmp_path / "time/time.py").write_text(TIME)
    (tmp_path / "time/select.py").write_text(SELECT % (days * DAY_MS))
    words, env = board(
        make_bench(tmp_path), stand_ins=[tmp_path / "time"], start=START, inside=True
    )
    done = subprocess.run(
        words, input="", capture_output=True, text=True, timeout=300, cwd=tmp_path, env=env
    )
    passed, counted = re.search(r"passed (\d+) counted (\d+)\n$", done.stdout).groups()
    assert done.stderr == "" and passed == counted and int(passed) >= days * DAY_MS
