"""Channels of type cron: a schedule that begins turns (CKP 0.2.0, 5.3), driven by the loop's
deadlines.

1. Runs that were due while the machine was asleep or off, or when the clock jumped ahead, are
   missed runs.  ``once`` makes up for them with one run, ``skip`` with none, and ``all`` with one
   for each, at most 100.
2. A run is on record (delivery.py) before the state says that it has come, so a run that was under
   way when its process was killed begins again.
3. When the clock goes back by up to an hour, no time of a schedule runs twice.  When it goes back
   further, the clock was wrong before, and the schedule starts again from the new time.
4. A machine without a clock of its own boots in the past, until it hears the time.  What was done
   before is not missed then: runs begin as the clock passes their times, and none is made up until
   the clock has passed the last run on record.  A clock that goes on for a day is believed.
5. A first start, or one after more than a year, knows nothing of runs before it: when the clock is
   set after that, the schedule starts from the new time.  So it does when the clock of an agent
   that runs jumps by more than a year.
6. The clock is read at least once a minute, because a wait does not notice that a machine slept.
"""

from datetime import datetime, timedelta, timezone

from clawlite.core.base.errors import ClawError
from clawlite.core.rules.schedule import LATE_S, ONCE, SKIP, Schedule, find_due, pick_runs
from clawlite.linux.channels.delivery import Delivery
from clawlite.linux.channels.inbox import Item

BACK_S = 3600
LOOK_MS = 60000
AGAIN_MS = 5000  # after runs could not be put on record
YEAR_S = 366 * 86400
BELIEVED_MS = 86400000
_MOST_COUNTED = 1000
_NONE, _SECOND = timedelta(0), timedelta(seconds=1)


class Cron:
    """One schedule.

    channel  ``channel.Channel``
    own      [schedule, masks, time zone, missed, text of its message or "", gives up (delivery.py)]
             of the image
    Raises ``ClawError`` for a time zone that this machine does not know.
    """

    def __init__(self, channel, own: list):
        self._channel = channel
        self._text, masks, zone, self._missed, self._says, *gives_up = own
        self._zone = zone_of(zone)
        self._zone_name = zone
        self._schedule = Schedule(masks, offset_in(self._zone))
        self._kept = Delivery(channel, self._begin, self._answer, gives_up == [True])
        self._is_first = True  # the next poll is the first one
        self._again_ms = None
        self._doubt_ms: int | None = None  # monotonic time since which the clock may be wrong
        self._set_ms = channel.set_ms()
        now_s = channel.now_s()
        last = channel.state.data.get("last")
        last = last if isinstance(last, int) and last >= 0 else None
        # the last run that is on record or done; what came before it was not missed
        self._done = now_s if last is None else last
        is_known = self._done == last and now_s - self._done <= YEAR_S
        self._last: int = self._done if is_known else now_s
        # no run has come yet by the clock of this time
        self._is_new = not is_known or bool(channel.state.data.get("new"))
        if self._done > now_s + BACK_S:
            self._last, self._doubt_ms = now_s, channel.now_ms()
            channel.log("clock", reason="it is behind the last run, so none is made up for now")
        self._next = self._schedule.after(self._last)

    def poll(self):
        """Begin the runs that are due."""
        if self._channel.is_draining:
            return
        now_s, now_ms = self._channel.now_s(), self._channel.now_ms()
        if self._again_ms is None or now_ms >= self._again_ms:
            self._again_ms = None
            self._look_at_clock(now_s, now_ms)
            before, due = self._last, self._due(now_s)
            # the first start: what is missed counts from now
            if "last" not in self._channel.state.data:
                self._channel.state.data["new"] = True
                self._save(self._last)
            runs = self._to_run(due, now_s)
            if self._is_first:
                self._leave_out(now_s, bool(runs))
                # they are on record, but the process ended before the state said so
                runs = [at for at in runs if not self._kept.inbox.knows(at, "")]
            if due and not self._take(due, runs):
                self._last, self._next = before, self._schedule.after(before)
                self._again_ms = now_ms + AGAIN_MS
            else:
                self._is_first = False
        self._kept.poll()

    def _look_at_clock(self, now_s: int, now_ms: int):
        """Start the schedule again where the clock was wrong before."""
        before, self._set_ms = self._set_ms, self._channel.set_ms()
        was_set = abs(self._set_ms - before) > LATE_S * 1000
        if self._set_ms - before > YEAR_S * 1000:  # it was wrong before, or is now
            self._last, self._next = now_s, self._schedule.after(now_s)
        if now_s < self._last - BACK_S or self._is_new and was_set:
            self._last, self._next = now_s, self._schedule.after(now_s)
            if self._doubt_ms is None:
                self._save(now_s)
        if self._doubt_ms is None:
            return
        if was_set:
            self._doubt_ms = now_ms
        if now_s >= self._done:
            self._doubt_ms = None
        elif now_ms - self._doubt_ms >= BELIEVED_MS:
            self._doubt_ms = None
            self._save(self._last)

    def _save(self, last: int):
        self._done = self._channel.state.data["last"] = last
        self._channel.keep(False)

    def _to_run(self, due: list, now_s: int) -> list:
        """Return those of the times *due* whose runs begin now."""
        # in doubt, a time before the last run was not missed: the clock has jumped over it
        due = [at for at in due if at > self._done or now_s - at < LATE_S]
        if not due:
            return []
        runs = pick_runs(due, self._missed, now_s)
        if len(runs) < len(due):
            self._channel.log("missed", count=len(due) - len(runs))
        return runs

    def _leave_out(self, now_s: int, is_made_up: bool):
        """Leave out the runs of an earlier process that ``missed`` does not make up."""
        waiting = [item for item in self._kept.restored if item.answer is None]
        if self._missed == SKIP:
            out = [item for item in waiting if now_s - _time_of(item) >= LATE_S]
        elif self._missed == ONCE:
            out = waiting if is_made_up else waiting[:-1]
        else:
            out = []
        for item in out:
            self._kept.restored.remove(item)
            self._kept.done(item)
        if out:
            self._channel.log("missed", count=len(out))

    def _take(self, due: list, runs: list) -> bool:
        """Put *runs* on record, and begin them; return False when that fails: they come again."""
        items = self._kept.take([(at, "", "", self._message(at), b"%d" % at) for at in runs])
        if items is None:
            return False
        self._last, self._is_new = due[-1], False
        self._channel.state.data.pop("new", None)
        self._save(max(self._done, due[-1]))
        for item in items:
            self._begin(item)
        return True

    def _message(self, at: int) -> str:
        return self._says or "The schedule %s has come: it is %s (%s)." % (
            self._text,
            datetime.fromtimestamp(at, self._zone).strftime("%Y-%m-%d %H:%M"),
            self._zone_name,
        )

    def _begin(self, item: Item):
        if not self._channel.trigger(item.text, item):
            self._kept.done(item)

    def _answer(self, item: Item):
        self._channel.tell(item.answer)
        self._kept.done(item)

    def _due(self, now_s: int) -> list:
        """Return the times that have come, the last ones of very many; ``_next`` is the one after
        them.
        """
        if self._next is None or self._next > now_s:
            return []
        after = self._schedule.after
        due = find_due(after, self._next - 1, now_s, _MOST_COUNTED)[-_MOST_COUNTED:]
        self._next = after(due[-1])
        return due

    def deadline(self):
        """Return the monotonic time of the next look at the clock, or None."""
        now_ms, times = self._channel.now_ms(), [self._again_ms, self._kept.deadline()]
        if self._next is not None and self._again_ms is None:
            wait_ms = self._next * 1000 - self._channel.wall_ms()
            times.append(now_ms + min(LOOK_MS, max(0, wait_ms)))
        return min([at for at in times if at is not None], default=None)

    def begins(self, to, effect: tuple):
        """The run *to* comes to *effect* (``Delivery.begins``)."""
        return self._kept.begins(to, effect) if isinstance(to, Item) else True

    def put_back(self, to):
        """The run *to* was cut off, because the agent stopped."""
        if isinstance(to, Item):
            self._kept.put_back(to)

    def reply(self, to, text: str, final: bool = True, failed: bool = False):
        """Show the answer of a run on the console."""
        if final and isinstance(to, Item):
            self._kept.end(to, text)
        else:
            self._channel.tell(text)

    def close(self):
        self._kept.close()


def _time_of(item: Item) -> int:
    """Return the time of the schedule at which the run *item* was due."""
    return int(item.correlation) if item.correlation.isdigit() else 0


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


def offset_in(zone):
    """Return the function for ``Schedule`` of *zone*, a ``tzinfo``."""

    def offset(at_s: int) -> int:
        return (datetime.fromtimestamp(at_s, zone).utcoffset() or _NONE) // _SECOND

    return offset


Source = Cron  # the class that channel.py loads for this kind of channel
