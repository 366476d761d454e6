"""When a cron schedule comes next, in a time zone (CKP 0.2.0, 5.3 ``trigger.schedule``).

1. Times are epoch seconds of whole minutes.
2. A local time that the clocks skip in spring runs at the first minute after the gap.
3. A local time that comes twice in autumn runs once, the first time.  A schedule whose hour is
   ``*`` runs both times.
"""

from datetime import date, datetime, timedelta, timezone

# days until a schedule comes, at most: eight years, for 29 February around 2100
_DAYS = 366 * 8 + 2


class Schedule:
    """One schedule.

    masks  [minutes, hours, days, months, weekdays, either day, any hour] of
           host/channels/cron_fields.py
    zone   a ``tzinfo``
    """

    def __init__(self, masks: list, zone=timezone.utc):
        (
            self._minutes,
            self._hours,
            self._days,
            self._months,
            self._weekdays,
            self._either,
            self._any_hour,
        ) = masks
        self._zone = zone

    def after(self, at_s: int):
        """Return the first time of the schedule after *at_s*, None when it does not come within
        eight years.
        """
        at = at_s - at_s % 60 + 60
        for _ in range(_DAYS + 48):
            local = datetime.fromtimestamp(at, self._zone)
            if self._skipped(at, local):
                return at
            if not self._is_day(local.date()):
                at = self._day_after(local.date())
                if at is None:
                    return None
            elif not self._hours >> local.hour & 1 or local.fold and not self._any_hour:
                at += 60 * (60 - local.minute)
            else:
                left = self._minutes >> local.minute
                if left:
                    ahead = (left & -left).bit_length() - 1
                    if not ahead:
                        return at
                    at += 60 * ahead
                else:
                    at += 60 * (60 - local.minute)
        return None

    def _is_day(self, day: date) -> bool:
        if not self._months >> day.month & 1:
            return False
        in_month, in_week = self._days >> day.day & 1, self._weekdays >> (day.isoweekday() % 7) & 1
        return bool(in_month or in_week if self._either else in_month and in_week)

    def _day_after(self, day: date):
        """Return the time at which the next day of the schedule begins, or None."""
        for _ in range(_DAYS):
            day += timedelta(days=1)
            if self._is_day(day):
                begins = int(datetime(day.year, day.month, day.day, tzinfo=self._zone).timestamp())
                return begins - begins % 60
        return None

    def _skipped(self, at: int, local: datetime) -> bool:
        """Return whether the clocks go forward at *at* and skip a time of this schedule.  Always
        False for a schedule whose hour is ``*``: it misses nothing.
        """
        if self._any_hour:
            return False
        before = datetime.fromtimestamp(at - 60, self._zone)
        gap = local.replace(tzinfo=None) - before.replace(tzinfo=None)
        if gap <= timedelta(minutes=1):
            return False
        missing = before.replace(tzinfo=None) + timedelta(minutes=1)
        while missing < local.replace(tzinfo=None):
            if (
                self._is_day(missing.date())
                and self._hours >> missing.hour & 1
                and self._minutes >> missing.minute & 1
            ):
                return True
            missing += timedelta(minutes=1)
        return False
