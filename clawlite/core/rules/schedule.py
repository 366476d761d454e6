"""When a schedule comes next, in a time zone (CKP 0.2.0, 5.3 ``trigger.schedule``), and which runs
are made up for.  Cron channels and rules share it.

1. Times are epoch seconds of whole minutes.
2. A local time that the clocks skip in spring runs at the first minute after the gap.
3. A local time that comes twice in autumn runs once, the first time.  A schedule whose hour is
   ``*`` runs both times.
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.clock import date_of, days_of

SKIP, ONCE, ALL = range(3)  # what becomes of runs that were missed
LATE_S = 60  # a run that is late by this much was missed
MOST_MADE_UP = 100
_LOOK_BACK_S = const(7200)  # for missed runs, at first
# days until a schedule comes, at most: eight years, for 29 February around 2100
_DAYS = const(2930)
_DAY = const(86400)
_YEAR = const(370)
_FROM = const(0)  # of a change of the clocks
_OFFSET = const(1)
# no zone moves its clocks twice within this time, nor by more
_FOLD_S = const(10800)


def find_due(after, done_s: int, now_s: int, most: int) -> list:
    """Return the last times of a schedule that have come since *done_s*, the earliest first: all,
    or at least *most* of them.

    after  function(time) -> the next one, or None
    """
    back_s = _LOOK_BACK_S
    while True:
        from_s, due = max(done_s, now_s - back_s), []
        at = after(from_s)
        while at is not None and at <= now_s:
            due.append(at)
            at = after(at)
        if len(due) >= most or from_s == done_s:
            return due
        back_s *= 4


def pick_runs(due: list, missed: int, now_s: int) -> list:
    """Return those of the times *due*, one at least, whose runs begin now; the others are left out.

    missed  SKIP, ONCE or ALL: what becomes of those that are late by ``LATE_S``
    """
    if missed == ALL:
        return due[-MOST_MADE_UP:]
    return due[-1:] if missed == ONCE or now_s - due[-1] < LATE_S else []


class Zone:
    """A time zone of an image: changes of the clocks.

    changes  [[from: epoch s, offset: s east of UTC], ...], the earliest first; the first offset
             also holds before it, the last one for ever
    """

    def __init__(self, changes: list):
        self._changes = changes

    def offset(self, at_s: int) -> int:
        """Return the seconds that local time is ahead of UTC at *at_s*."""
        found = self._changes[0][_OFFSET]
        for change in self._changes:
            if change[_FROM] > at_s:
                break
            found = change[_OFFSET]
        return found


class Schedule:
    """One schedule.

    masks   [minutes, hours, days, months, weekdays, either day, any hour] of
            core/teach/cron_fields.py
    offset  function(epoch s) -> seconds that local time is ahead of UTC
    """

    def __init__(self, masks: list, offset):
        (
            self._minutes,
            self._hours,
            self._days,
            self._months,
            self._weekdays,
            self._either,
            self._any_hour,
        ) = masks
        self._offset = offset

    def after(self, at_s: int):
        """Return the first time of the schedule after *at_s*, None when it does not come within
        eight years.
        """
        at = at_s - at_s % 60 + 60
        for _ in range(_DAYS + 48):
            offset = self._offset(at)
            minute = (at + offset) // 60
            if self._skips(at, offset):
                return at
            if not self._is_day(minute // 1440):
                at = self._day_after(minute // 1440, offset)
                if at is None:
                    return None
            elif not self._hours >> minute // 60 % 24 & 1 or (
                not self._any_hour and self._is_second(at, offset)
            ):
                at += 60 * (60 - minute % 60)
            else:
                left = self._minutes >> minute % 60
                if left & 1:
                    return at
                ahead = 1
                while left >> ahead and not left >> ahead & 1:
                    ahead += 1
                at += 60 * (ahead if left else 60 - minute % 60)
        return None

    def _is_day(self, day: int) -> bool:
        """Return whether the schedule has *day*, counted from 1970-01-01."""
        _, month, date = date_of(day)
        if not self._months >> month & 1:
            return False
        in_month, in_week = self._days >> date & 1, self._weekdays >> (day + 4) % 7 & 1
        return bool(in_month or in_week if self._either else in_month and in_week)

    def _day_after(self, day: int, offset: int):
        """Return the time at which the next day of the schedule begins, or None.

        offset  of the present time
        """
        for _ in range(_DAYS):
            day += 1
            if self._is_day(day):
                later = self._offset(day * _DAY - offset)
                at = day * _DAY - (offset if offset > later else later)
                # where the clocks skip midnight, the day begins after the gap
                while (at + self._offset(at)) // _DAY < day:
                    at += 60
                return at
        return None

    def _is_second(self, at: int, offset: int) -> bool:
        """Return whether the local time of *at* has been before: the clocks went back."""
        before = self._offset(at - _FOLD_S)
        return before > offset and self._offset(at - before + offset) == before

    def _skips(self, at: int, offset: int) -> bool:
        """Return whether the clocks go forward at *at* and skip a time of this schedule.  Always
        False for a schedule whose hour is ``*``: it misses nothing.
        """
        before = self._offset(at - 60)
        if self._any_hour or before >= offset:
            return False
        for minute in range((at + before) // 60, (at + offset) // 60):
            if (
                self._is_day(minute // 1440)
                and self._hours >> minute // 60 % 24 & 1
                and self._minutes >> minute % 60 & 1
            ):
                return True
        return False


class Sun:
    """Sunrise, or sunset, at the place of an image, with the methods of ``Schedule``.

    weeks     [[sunrise, sunset] or None, ...] of each week of a year, in minutes after 00:00 UTC of
              the date there; None where it does not come
    is_set    0 for sunrise, 1 for sunset
    offset_s  so much later
    """

    def __init__(self, weeks: list, is_set: int, offset_s: int):
        self._weeks, self._is_set, self._offset_s = weeks, is_set, offset_s

    def after(self, at_s: int):
        """Return the first time after *at_s*, None when it does not come within a year."""
        day = (at_s - self._offset_s) // _DAY - 2
        for _ in range(_YEAR):
            minute = self._minute(day)
            if minute is not None:
                at = day * _DAY + minute * 60 + self._offset_s
                if at > at_s:
                    return at
            day += 1
        return None

    def _minute(self, day: int):
        """Return the minute of *day*, counted from 1970-01-01, between those of two weeks."""
        year, _, _ = date_of(day)
        in_year = day - days_of(year, 1, 1)
        week, rest = in_year // 7, in_year % 7
        first, then = self._weeks[week], self._weeks[(week + 1) % len(self._weeks)]
        if first is None or then is None:
            return None
        begin, end = first[self._is_set], then[self._is_set]
        return begin + (end - begin) * rest // 7
