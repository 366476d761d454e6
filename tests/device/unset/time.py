"""Stands before MicroPython's ``time`` on a board whose clock nobody has set: it begins in 2021,
as on rp2, until ``machine.RTC`` sets it.
"""

import os

from utime import *  # noqa: F403
from utime import mktime, ticks_diff, ticks_ms

_BEGUN = ticks_ms()


def time():
    try:
        with open(os.getenv("PINS") + "/clock") as file:
            at = eval(file.read())
            return int(mktime((at[0], at[1], at[2], at[4], at[5], at[6], 0, 0)))
    except OSError:
        return 1609459200 + ticks_diff(ticks_ms(), _BEGUN) // 1000
