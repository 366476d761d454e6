"""Channels of type cron: a schedule that begins turns (CKP 0.2.0, 5.3), driven by the loop's
deadlines.

1. Runs that were due while the machine was asleep or off, or when the clock jumped ahead, are
   missed runs.  ``once`` makes up for them with one run, ``skip`` with none, and ``all`` with one
   for each, at most 100.
2. When the clock goes back by up to an hour, no time of a schedule runs twice.  When it goes back
   further, the clock was wrong before, and the schedule starts again from the new time.
3. The clock is read at least once a minute, because a wait does not notice that a machine slept.
"""

from collections import deque
from datetime import datetime, timezone

from clawlite.core.base.errors import ClawError
from clawlite.linux.channels.schedule import Schedule

SKIP, ONCE, ALL = range(3)
LATE_S = 60  # a run that is late by this much was missed
BACK_S = 3600
LOOK_MS = 60000
MOST_MADE_UP = 100
_MOST_COUNTED = 1000


class Cron:
    """One schedule.

    channel  ``channel.Channel``
    own      [schedule, masks, time zone, missed, text of its message or ""] of the image
    Raises ``ClawError`` for a time zone that this machine does not know.
    """

    def __init__(self, channel, own: list):
        self._channel = channel
        self._text, masks, zone, self._missed, self._says = own
        self._zone = zone_of(zone)
        self._zone_name = zone
        self._schedule = Schedule(masks, self._zone)
        now_s = channel.now_s()
        last = channel.state.data.get("last")
        is_known = isinstance(last, int) and 0 <= last <= now_s + BACK_S
        self._last = last if is_known else now_s
        self._next = self._schedule.after(self._last)

    def poll(self):
        """Begin the runs that are due."""
        now_s = self._channel.now_s()
        if now_s < self._last - BACK_S:
            self._last = now_s
            self._next = self._schedule.after(now_s)
        due = self._due(now_s)
        # the first start: what is missed counts from now
        if "last" not in self._channel.state.data:
            self._channel.state.data["last"] = self._last
            self._channel.keep(False)
        if not due:
            return
        self._last = due[-1]
        runs = (
            due[-MOST_MADE_UP:]
            if self._missed == ALL
            else due[-1:]
            if self._missed == ONCE or now_s - due[-1] < LATE_S
            else []
        )
        if len(runs) < len(due):
            self._channel.log("missed", count=len(due) - len(runs))
        self._channel.state.data["last"] = self._last
        self._channel.keep(False)
        for at in runs:
            self._channel.trigger(
                self._says
                or "The schedule %s has come: it is %s (%s)."
                % (
                    self._text,
                    datetime.fromtimestamp(at, self._zone).strftime("%Y-%m-%d %H:%M"),
                    self._zone_name,
                )
            )

    def _due(self, now_s: int) -> list:
        """Return the times that have come, the last ones of very many; ``_next`` is the one after
        them.
        """
        due: list = []
        while self._next is not None and self._next <= now_s:
            if len(due) == _MOST_COUNTED:
                return [*due, *self._last_of(now_s, due[-1] - due[0])][-_MOST_COUNTED:]
            due.append(self._next)
            self._next = self._schedule.after(self._next)
        return due

    def _last_of(self, now_s: int, seconds: int) -> deque:
        """Return the last of the times from ``_next`` on that have come, enough to make up for.

        seconds  how long before now it looks at first, twice as long each time
        """
        begin_s = self._next - 1
        while True:
            last: deque = deque(maxlen=_MOST_COUNTED)
            from_s = max(begin_s, now_s - seconds)
            self._next = self._schedule.after(from_s)
            while self._next is not None and self._next <= now_s:
                last.append(self._next)
                self._next = self._schedule.after(self._next)
            if len(last) >= MOST_MADE_UP or from_s == begin_s:
                return last
            seconds *= 2

    def deadline(self):
        """Return the monotonic time of the next look at the clock, or None."""
        if self._next is None:
            return None
        now_ms, wall_ms = self._channel.now_ms(), self._channel.wall_ms()
        return now_ms + min(LOOK_MS, max(0, self._next * 1000 - wall_ms))

    def reply(self, to, text: str, final: bool = True, failed: bool = False):
        """Show the answer of a run on the console."""
        self._channel.tell(text)

    def close(self):
        """Nothing is open."""


def zone_of(name: str):
    """Return the ``tzinfo`` of an IANA time zone.  Raises ``ClawError``."""
    if name == "UTC":
        return timezone.utc
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        raise ClawError(
            "this machine does not know the time zone %s" % name,
            "install its time zones (package tzdata), or use UTC",
        ) from None


Source = Cron  # the class that channel.py loads for this kind of channel
