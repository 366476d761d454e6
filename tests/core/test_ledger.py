"""What is used of limits (CKP 0.2.0, 5.8): in any minute, over restarts, other processes and
clocks that jump.
"""

from clawlite.core.policy import ledger
from clawlite.core.policy.ledger import CALLS, DAY, Ledger, count_use

EPOCH = 1800000000


class Process:
    """One process of an agent: its own monotonic clock, the shared store, the calendar that it
    sees.
    """

    def __init__(self, stored, epoch=EPOCH, at_ms=0):
        self.ms, self.epoch, self.stored = at_ms, epoch, stored
        self.ledger = Ledger(lambda: (self.ms, self.epoch), lambda: self.stored)

    def call(self, most, at_ms=None):
        """As a shell does it.  The calendar goes with the clock, where there is one."""
        if at_ms is not None:
            if self.epoch is not None:
                self.epoch += at_ms // 1000 - self.ms // 1000
            self.ms = at_ms
        return count_use(self.stored, self.ledger.make_call_entries(most))


def test_no_minute_has_more_calls_than_the_limit():
    """5.8 ``tool_calls_per_minute``: one below, at, and one above; a window, wherever it begins."""
    one = Process({})
    assert [one.call(3, at) for at in (0, 30000, 59999, 59999)] == [True, True, True, False]
    assert [one.call(3, at) for at in (60000, 60000, 89999, 90000)] == [True, False, False, True]


def test_a_limit_of_nothing_admits_nothing():
    one = Process({})
    assert not one.call(0) and one.stored == {}


def test_a_refused_call_is_not_counted():
    one = Process({})
    for _ in range(50):
        one.call(2, 10)
    assert one.stored[CALLS] == [EPOCH * 1000, 2] and one.call(2, 60010 + 1000)


def test_a_restart_does_not_reset_the_minute():
    stored = {}
    assert Process(stored).call(1) and not Process(stored, EPOCH + 59, 777).call(1)
    assert Process(stored, EPOCH + 60, 5).call(1)


def test_a_clock_that_jumps_does_not_reset_the_minute():
    for jump in (-(10**6), 10**6):
        one = Process({})
        assert one.call(1)
        one.epoch += jump
        assert not one.call(1, 59999) and one.call(1, 60000), jump
    stored = {}
    assert Process(stored).call(1)
    back = Process(stored, EPOCH - 10**6)
    assert not back.call(1) and not back.call(1, 59999) and back.call(1, 60000), (
        "set back while it was away: time goes on where it was"
    )


def test_a_clock_that_is_set_later():
    stored = {}
    one = Process(stored, None)
    assert one.call(1, 5000) and not one.call(1, 10000)
    one.epoch = EPOCH
    assert not one.call(1, 59999)
    assert one.call(1, 65000) and stored[CALLS][0] == 65000
    other = Process(stored, EPOCH + 3600)
    assert not other.call(1) and other.call(1, 60000), (
        "nobody knows how long it was away: as if it had not been"
    )
    assert other.call(1, 200000) and stored[CALLS][0] > EPOCH * 1000, (
        "from here on the calendar counts"
    )


def test_two_processes_count_together():
    stored = {}
    one, two = Process(stored), Process(stored, EPOCH + 7, 123456)
    assert one.call(3) and two.call(3) and one.call(3, 100)
    assert not one.call(3, 200) and not two.call(3, 123500)
    assert one.call(3, 68000)


def test_many_calls_a_minute_stand_together_by_the_second():
    one = Process({})
    admitted = 0
    for at in range(0, 120000, 100):
        admitted += one.call(300, at)
        assert len(one.stored[CALLS]) <= 2 * 62
    assert admitted == 600, "10 a second: 300 until the 30th second, and again from the 61st on"


def test_days_are_those_of_the_calendar():
    stored = {}
    one = Process(stored)
    count_use(stored, [[ledger.DAY_TOKENS, EPOCH // DAY, 70], [ledger.DAY_COST, EPOCH // DAY, 5]])
    assert one.ledger.read_use_of_day() == (70, 5)
    one.epoch -= DAY
    assert one.ledger.read_use_of_day() == (70, 5), "a clock that has gone back resets nothing"
    one.epoch = None
    assert one.ledger.read_use_of_day() == (70, 5)
    one.epoch = EPOCH + DAY
    assert one.ledger.read_use_of_day() == (0, 0)
