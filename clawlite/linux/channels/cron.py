"""Channels of type cron: a schedule that begins turns (CKP 0.2.0, 5.3).

1. The scheduler is that of rules (core/rules/engine.py): it says which times have come, which were
   missed and are made up for, and whether the clock is believed.  Its state stands below
   ``schedule`` in the state of the channel.
2. A run is on record (delivery.py) before the state says that it has come, so a run that was under
   way when its process was killed begins again.
3. The clock is read at least once a minute, because a wait does not notice that a machine slept.
"""

from clawlite.core.base.errors import ClawError
from clawlite.core.rules import cron
from clawlite.core.rules.engine import Engine, Times
from clawlite.core.rules.saved_state import drop_damaged
from clawlite.core.rules.schedule import LATE_S, ONCE, SKIP
from clawlite.linux.channels.delivery import Delivery
from clawlite.linux.channels.inbox import Item

AGAIN_MS = 5000  # after runs could not be put on record


class Cron:
    """One schedule.

    channel  ``channel.Channel``
    own      the channel's own part of its record in the image (core/rules/cron.py)
    Raises ``ClawError`` for an image of an earlier version.
    """

    def __init__(self, channel, own: list):
        if len(own) <= cron.CHANGES:
            raise ClawError("its image is of an earlier version of clawlite", "clawlite build")
        self._channel, self._own, self._missed = channel, own, own[cron.MISSED]
        self._kept = Delivery(channel, self._queue, self._answer, own[cron.GIVES_UP] is True)
        self._is_first = True  # the next poll is the first one
        self._again_ms = None
        section = [[], [cron.make_rule(channel.name, own)], cron.make_clock(own)]
        self._engine = Engine(section, _state_of(channel), self._times())
        if not self._engine.is_set:
            channel.log(
                "clock",
                reason="it is not believed, so no run begins: it is from before 2024, or behind "
                "the last record",
            )

    def _times(self) -> Times:
        wall_ms = self._channel.wall_ms()
        return Times(wall_ms - self._channel.set_ms(), wall_ms // 1000)

    def poll(self):
        """Begin the runs that are due."""
        if self._channel.is_draining:
            return
        now_ms = self._channel.now_ms()
        if self._again_ms is None or now_ms >= self._again_ms:
            self._again_ms, times = None, self._times()
            self._engine.poll(times)
            for event in self._engine.take_events():
                self._channel.log("missed", count=event["count"])
            if not self._begin_due(times):
                self._again_ms = now_ms + AGAIN_MS
            elif self._engine.changed:
                self._save()
        self._kept.poll()

    def _begin_due(self, times) -> bool:
        """Begin what is in the queue; return False when that fails: it comes again."""
        due, run = [], self._engine.next_run(times)
        while run:
            due.append(run)
            run = self._engine.next_run(times)
        runs = [run.at_s for run in due]
        if self._is_first:
            self._leave_out(times.wall_s, bool(runs))
            # they are on record, but the process ended before the state said so
            runs = [at for at in runs if not self._kept.inbox.knows(at, "")]
        if runs and not self._take(runs):
            for run in reversed(due):
                self._engine.put_back(run)
            return False
        self._is_first = False
        return True

    def _save(self):
        if self._channel.keep(False):
            self._engine.note_kept()

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
            self._kept.remove(item)
        if out:
            self._channel.log("missed", count=len(out))

    def _take(self, runs: list) -> bool:
        """Put *runs* on record, and begin them; return False when that fails."""
        items = self._kept.take([(at, "", "", self._message(at), b"%d" % at) for at in runs])
        if items is None:
            return False
        self._save()
        for item in items:
            self._queue(item)
        return True

    def _message(self, at: int) -> str:
        return cron.make_text(self._own, at, self._engine.zone.offset(at))

    def _queue(self, item: Item):
        if not self._channel.trigger(item.text, item):
            self._kept.remove(item)

    def _answer(self, item: Item):
        self._channel.tell(item.answer)
        self._kept.remove(item)

    def deadline(self):
        """Return the monotonic time of the next look at the clock, or None."""
        times, now_ms = [self._again_ms, self._kept.deadline()], self._channel.now_ms()
        wait_ms = self._engine.wait_ms(self._times())
        if wait_ms is not None and self._again_ms is None:
            # the scheduler counts whole seconds
            times.append(now_ms + max(0, wait_ms - self._channel.wall_ms() % 1000))
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


def _state_of(channel) -> dict:
    """Return the state of the scheduler, which is a part of the channel's."""
    data = channel.state.data
    last = data.pop("last", None)  # as earlier versions kept it
    data.pop("new", None)
    state = data.get("schedule")
    if not isinstance(state, dict):
        is_known = isinstance(last, int) and last >= 0
        state = {"wall_s": last, "rules": {channel.name: {"done_s": last}}} if is_known else {}
    if drop_damaged(state):
        channel.trouble(
            "a part of the state of its schedule was damaged and is dropped",
            "look at what it did last, clawlite trace; it goes on from now",
        )
    data["schedule"] = state
    return state


Source = Cron  # the class that channel.py loads for this kind of channel
