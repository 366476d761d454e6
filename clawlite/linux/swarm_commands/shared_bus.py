"""One end of a swarm's bus for all members that this process is: boards behind one gateway
(docs/adr/0133).

    members -> ``End``, one each -> ``SharedBus`` -> ``bus.Bus`` or ``replicated_bus.ReplicatedBus``

1. A member speaks by its end under an id of its own, HOST-NUMBER, and what it holds is its own.
   There is one connection, or one file that is open, and one copy of what the swarm knows.
2. A change wakes this process once.  Only those members look at it that have something to do: one
   looks after the whole swarm; of those that are free, as many as there are tasks that wait; and
   whoever lost a task, or waits for one that others do.
3. When this process ends, all of its members are gone.  One that has gone alone says so.
"""

import os

from clawlite.core.base.errors import ClawError
from clawlite.core.image.image import SWARM
from clawlite.linux.files.files import swarm_folder
from clawlite.linux.io.jsontext import dumps
from clawlite.linux.io.stdio import now_ms
from clawlite.linux.memory.memory import wall_ms
from clawlite.linux.swarm.bus import Bus
from clawlite.linux.swarm.bus_protocol import ShareableBus
from clawlite.linux.swarm.task_records import TaskRecords
from clawlite.protocols.session.group_session import Later

LOOK_MS = 1000  # between looks, while tasks are open


class SharedBuses:
    """The buses of this process: one for all members that are in the same swarm and have the same
    login.
    """

    def __init__(self):
        self._buses = {}  # what makes them the same -> (``SharedBus``, members of the swarm)

    def all(self) -> list:
        return [bus for bus, _ in self._buses.values()]

    def end(self, swarm, image, member) -> "End":
        """Return the end of *member* of the bus of *swarm*, that of *image*; *swarm* then has the
        same ``members`` as the others.  Raises ``ClawError``: its bus cannot be used.
        """
        name, _, *rest = image.section(SWARM)
        login = None
        if swarm.engine:
            from clawlite.linux.swarm.replicated_bus import bus_of, login_of

            login = login_of(swarm, image)
        key = name, dumps(rest), login and (tuple(login[0]), login[1])
        if key not in self._buses:
            if swarm.engine:
                bus: ShareableBus = bus_of(swarm, image, wall_ms, now_ms, os.urandom)
            else:
                bus = Bus(swarm_folder(name) if swarm.is_shared else None, wall_ms, os.urandom)
            self._buses[key] = SharedBus(bus, now_ms), swarm.members
        shared, members = self._buses[key]
        swarm.share_members(members)
        return shared.end(member)

    def leave(self):
        """Be gone, with all members."""
        for bus in self.all():
            bus.leave()


class SharedBus:
    """The ends of one bus.

    bus  nobody has joined it;  now_ms: function -> monotonic ms
    """

    def __init__(self, bus: ShareableBus, now_ms):
        self._bus, self._now_ms = bus, now_ms
        self._host, self._count = bus.process, 0
        self._look_ms = None
        self.stopped: tuple | None = None  # as ``find_stop`` has it
        bus.subscribe(refused=self._tell_refusal)
        self.ends: dict = {}  # id -> ``End`` that is there
        self.later: list = []  # (``Later``, ``End``) of what members have asked for
        self.news: dict = {}  # ``End``s whose member has something to do, in the order of news

    def end(self, member) -> "End":
        """Return the end of *member*, a ``Member``."""
        self._count += 1
        return End(self, self._bus, "%s-%d" % (self._host, self._count), member)

    def fileno(self) -> int:
        return self._bus.fileno()

    def deadline(self):
        """Return the monotonic time at which ``poll`` has something to do, or None."""
        due = [ms for ms in (self._look_ms, self._bus.deadline()) if ms is not None]
        return self._now_ms() if self.news else min(due, default=None)

    def poll(self) -> list:
        """Take what has come; return the members that have something to do."""
        is_due = self._look_ms is not None and self._now_ms() >= self._look_ms
        if self.ends and (self._bus.receive() or is_due):
            try:
                self._collect_news()
            except ClawError:  # each member finds that out, and says so
                self.news.update(dict.fromkeys(self.ends.values()))
                self._look_ms = None
        found, self.news = [end.member for end in self.news], {}
        return found

    def leave(self):
        """Be gone, with all members."""
        self._bus.leave()

    def deliver(self, sender: str, message, by=None):
        """*message* has come for all ends but *by*."""
        for end in self.ends.values():
            if end is not by:
                end.heard_of.append((sender, message))
                self.news[end] = None

    def _tell_refusal(self, reason: str):
        for end in self.ends.values():
            end.refused(reason)
            return

    def _collect_news(self):
        bus, ends = self._bus, self.ends
        for sender, message in bus.messages():
            self.deliver(sender, message)
        stopped = bus.find_stop()
        if stopped != self.stopped:
            self.stopped = stopped
            self.news.update(dict.fromkeys(ends.values()))
        for later, end in self.later:
            if later.is_done:
                self.news[end] = None
        self.later = [pair for pair in self.later if not pair[0].is_done]
        held, waiting = bus.holdings(), bus.waiting()
        free: dict = {}
        for process, end in ends.items():
            now = held.get(process, ())
            if end.follows or end.holds_now != set(now):
                self.news[end] = None
            elif len(now) < end.at_once:
                free.setdefault(end.identity, []).append(end)
        for identity, those in free.items():
            for end in those[: waiting.get(identity, 0) + waiting.get("", 0)]:
                self.news[end] = None
        self.news[next(iter(ends.values()))] = None
        self._look_ms = self._now_ms() + LOOK_MS if bus.is_open() else None


class End(TaskRecords):
    """One member's end, as ``bus.Bus``: it reads what the bus has, and asks for changes in the name
    of the member.
    """

    def __init__(self, shared: SharedBus, bus: ShareableBus, process: str, member):
        self._shared, self._bus, self.process, self.member = shared, bus, process, member
        self.identity, self.at_once = "", 0
        self.refused = lambda reason: None  # as that of ``ReplicatedBus``, which one end is told
        self.follows = False  # it waits for what others do
        self.holds_now: set = set()  # ids of the tasks that were given to it
        self.heard_of: list = []  # broadcasts that its member has not taken

    def _act(self, act, *values):
        """Return what *act*, a method of the bus, returns when this member asks for it."""
        self._bus.speak_as(self.process, self.identity)
        found = act(*values)
        if isinstance(found, Later):
            self._shared.later.append((found, self))
        return found

    # -- the connection

    def subscribe(self, refused):
        self.refused = refused

    def join(self, identity: str = "", at_once: int = 0):
        self.identity, self.at_once = identity, at_once
        self._act(self._bus.join, identity, at_once)
        self._shared.ends[self.process] = self
        if self._shared.stopped:
            self._shared.news[self] = None

    def leave(self):
        """The member has gone."""
        ends = self._shared.ends
        if ends.pop(self.process, None):
            self._shared.news.pop(self, None)
            self._act(self._bus.part)

    def fileno(self) -> int:
        return self._shared.fileno()

    def deadline(self):
        return None  # ``SharedBus.poll`` says when

    def receive(self) -> bool:
        """Return True: its member is asked when there is something."""
        return True

    # -- what is read

    @property
    def is_synced(self) -> bool:
        return self._bus.is_synced

    def is_known(self) -> bool:
        return self._bus.is_known()

    def is_open(self) -> bool:
        return False  # ``SharedBus`` looks again by itself

    def read(self, act, *values):
        return self._bus.read(act, *values)

    def which_are_there(self, processes: list) -> set:
        return self._bus.which_are_there(processes)

    def wall_ms(self) -> int:
        return self._bus.wall_ms()

    def find_stop(self):
        return self._bus.find_stop()

    def there(self, swarm) -> tuple:
        return self._bus.there(swarm)

    def budget(self, task_id: str) -> list:
        return self._act(self._bus.budget, task_id)

    def holds(self, task_id: str) -> bool:
        holds = super().holds(task_id)
        if not holds:
            self.holds_now.discard(task_id)
        return holds

    def messages(self) -> list:
        found, self.heard_of = self.heard_of, []
        return found

    # -- changes

    def put(self, task):
        self.follows = True
        return self._act(self._bus.put, task)

    def asks(self, asker: str, task_id: str):
        return self._act(self._bus.asks, asker, task_id)

    def withdraw(self, task_id: str):
        self._act(self._bus.withdraw, task_id)

    def broadcast(self, sender: str, message):
        self._act(self._bus.broadcast, sender, message)
        self._shared.deliver(sender, message, self)

    def declare(self, terms: str) -> bool:
        return self._act(self._bus.declare, terms)

    def take(self, *values):
        taken = self._act(self._bus.take, *values)
        if taken:
            self.holds_now.add(taken.id)
        return taken

    def begins(self, task_id: str):
        return self._act(self._bus.begins, task_id)

    def divide(self, task_id: str):
        self.follows = True
        self._act(self._bus.divide, task_id)

    def release(self, task_id: str):
        self._act(self._bus.release, task_id)

    def report(self, task_id: str, *values):
        self.holds_now.discard(task_id)
        return self._act(self._bus.report, task_id, *values)

    def allot(self, *values):
        self._act(self._bus.allot, *values)

    def hold(self, *values):
        return self._act(self._bus.hold, *values)

    def use(self, *values):
        self._act(self._bus.use, *values)

    def reclaim(self, *values) -> list:
        """One end looks after what others left, for all of this process."""
        return self._act(self._bus.reclaim, *values) if self._is_first() else []

    def expire(self, *values) -> list:
        return self._act(self._bus.expire, *values) if self._is_first() else []

    def _is_first(self) -> bool:
        return self is next(iter(self._shared.ends.values()), None)
