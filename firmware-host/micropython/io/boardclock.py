"""The two clocks of a board: milliseconds since it started, and the time of day, which may be
unset.
"""

import time

_EPOCH_2000 = 946684800  # esp32 counts from 2000, the other ports from 1970
_SET = 1700000000  # 2023: an earlier time means that the clock is unset
_ASK_MS = 60000


class Clock:
    """now: the milliseconds of the last call of ``now_ms``;  begins_s: the time of day when they
    were 0, on a board without a clock that can be set.
    """

    begins_s = None

    def __init__(self):
        self._ticks = time.ticks_ms()
        self.now = self._due = 0

    def now_ms(self) -> int:
        """Return monotonic milliseconds.  They never wrap; ``ticks_ms`` does, on a board after 12
        days.
        """
        ticks = time.ticks_ms()
        self.now += time.ticks_diff(ticks, self._ticks)
        self._ticks = ticks
        return self.now

    def epoch_s(self):
        """Return seconds since 1970, or None while the clock is unset."""
        now = int(time.time()) + (_EPOCH_2000 if time.gmtime(0)[0] == 2000 else 0)
        return (
            now
            if now > _SET
            else None
            if self.begins_s is None
            else self.begins_s + self.now_ms() // 1000
        )

    def both(self) -> tuple:
        """Return (monotonic ms, seconds since 1970 or None)."""
        return self.now_ms(), self.epoch_s()

    def ask(self, stdio, is_new: bool = False):
        """Ask the other end of the line for the time while the clock is unset: once a minute, and
        at once when a new host has connected.
        """
        if self.epoch_s() is None and (is_new or self.now >= self._due):
            self._due = self.now + _ASK_MS
            from settime import ASKS

            stdio.record(ASKS)
