"""Timed blocks, on CPython and on MicroPython: how long one operation takes, again and again.

On CPython it is processor time: what other processes take meanwhile is not in it.

The cases of one call run in turns, block by block, so that what else the machine does falls on all
of them alike. The collector stays on: what an operation leaves behind is part of its price.
"""

import time

try:
    now_ns = time.process_time_ns
except AttributeError:  # MicroPython: microseconds that wrap after 12 days or more

    def now_ns() -> int:
        return time.ticks_us() * 1000


def once(function, times: int) -> float:
    """Return nanoseconds per call of *function*, over *times* calls."""
    left = times
    begin = now_ns()
    while left:
        function()
        left -= 1
    return (now_ns() - begin) / times


def blocks(functions: list, rounds: int, block_ns: int = 3000000) -> list:
    """Return for each function a list of *rounds* nanoseconds per call.

    block_ns  how long a block should take; a first look, which warms up too, says how many calls
              that is
    Cost      len(functions) * (rounds + 3) * block_ns, and the time of the empty loop (some 20 ns a
              call) is in it
    """
    counts = []
    for function in functions:
        times = 1
        while True:
            spent = once(function, times)
            if spent * times > block_ns / 2:
                break
            times *= 2
        counts.append(max(1, int(block_ns / spent)))
    found = [[] for _ in functions]
    for _ in range(rounds):
        for at in range(len(functions)):
            found[at].append(once(functions[at], counts[at]))
    return found
