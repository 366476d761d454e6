"""The bus of a swarm on an engine: each process has all of it in memory, and every change is an
entry of the engine's log, which all processes apply in the same order.

    a change -> appended to the log -> comes back to all -> ``bus.Bus`` in memory, the same in each

1. Nothing is true before it has come back: ``put`` and ``begins`` return a ``Later``, and ``take``
   gives a task only then.  Who was first is what the log says.
2. Reading waits for nobody: what is asked is answered from memory, or refused while the engine is
   away.
3. An entry that is no change, comes of somebody who is not in the swarm, or speaks in the name of
   another, changes nothing and is told to the log (docs/adr/0137).
4. A stop holds for who knows of it, whether the engine is there or not: it is kept in a file, and
   until all that is on record has come, that file says whether the swarm is stopped.
5. A process that the engine no longer knows is said to be gone by another one, in an entry.  When
   it was only cut off, it joins again: what it ran is no longer its own, and a tool with side
   effects does not begin there any more.
6. A report is kept in a file until its entry has come back: the next process of the agent sends it
   again when this one is killed before.
7. A process that is several members (``shared_bus.py``) has one connection for all of them: the
   engine is asked whether it is there, and when it is not, all of them are gone.
8. What is asked of shared stores, and its answers, are entries that change nothing here
   (``shared_stores.py``).
"""

import select
import sqlite3
import time
from typing import Any

from clawlite.core.base.errors import ClawError, ParseError
from clawlite.linux.files.files import swarm_folder
from clawlite.linux.files.inherited_log import InheritedLog
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.secrets.secrets import resolve, stores
from clawlite.linux.swarm.bus import (
    SCHEMA,
    Bus,
    TooLong,
    check_size,
    check_tables,
    host_of,
    is_process,
)
from clawlite.linux.swarm.stop_file import StopFile
from clawlite.linux.swarm.task_records import TaskRecords
from clawlite.linux.swarm_engines.engine import (
    DOWN,
    ENTRY,
    MOST_WAITING,
    NOTE,
    OPERATOR,
    REMOVE,
    SNAPSHOT,
    SNAPSHOT_BYTES,
    SNAPSHOT_EACH,
    SYNC_S,
    SYNCED,
    THERE,
    UP,
    engine_of,
)
from clawlite.protocols.session.group_session import Later
from clawlite.protocols.swarm.swarm import (
    LEADER,
    MOST_AMOUNT,
    ROOT,
    RUNNING,
    SOURCE,
    STATUSES,
    WAITING,
    Task,
)

VERSION = 1  # of entries
REPORTS = "reports"  # end of the names of files
ACK_MS = 10000  # that an entry may take to come back before its caller is told
_SILENT = "it does not answer", "check whether it is overloaded"
_NOT_KEPT = "it has not acknowledged this", "send it again: a task_id runs only once"
# what helps against entries that are refused
_UPDATE = "update clawlite on every machine"
_BUILD = "build all agents from one Swarm; clawlite swarm acl ENGINE prints who may speak"
LOOK_MS = 1000  # between looks for processes that are gone
GRACE_MS = 3000  # a process that comes back by then was never gone
LEAVE_MS = 2000  # for the last entries of a process that ends
_OF_PERSONS = {  # changes that no member may ask for
    "stop": "stop a swarm",
    "resume": "resume a swarm",
    "again": "let a task begin again",
    "drop": "drop a task",
}
# changes that name who asks for them, and the place of that identity among their values
_NAMES_ITSELF = {"broadcast": 0, "report": 5, "take": 0, "here": 0}
_SENDER = 3  # the same in the task of a put
# the changes that an entry may be, and what values each has; object: any JSON
_NUMBER = int | None
_CHANGES = {
    "put": (list,),
    "asks": (str, str),
    "report": (str, str, object, _NUMBER, _NUMBER, str, bool),
    "broadcast": (str, object),
    "take": (str, bool, _NUMBER, bool | None, list | None),
    "divide": (str,),
    "allot": (str, list, bool, list),
    "hold": (str, list, list),
    "use": (str, int, int),
    "begins": (str,),
    "release": (str,),
    "reclaim": (int | list, bool),
    "expire": (int, bool),
    "withdraw": (str,),
    "again": (str,),
    "drop": (str,),
    "stop": (str,),
    "resume": (str,),
    "here": (str, int),
    "declare": (str,),
    "gone": (str,),
    "remember": (object,) * 5,
    "remembered": (object,) * 3,
}
_TASK = (str, str, object, str, str, str)  # the value of a put
# Which entries of a process have been applied: those up to a number, without some ranges.  One that
# a full engine refused comes again after later ones that were shorter.
_APPLIED = """
create table if not exists ops (process text primary key, number int);
create table if not exists gaps (process text, first int, last int);
create index if not exists gaps_by_process on gaps (process);
"""


class _Replica(Bus):
    """All that the log says, in memory."""

    def __init__(self, draw, now):
        self.at_ms = None  # of the entry that is being applied
        super().__init__(None, lambda: now() if self.at_ms is None else self.at_ms, draw)
        self.own = self.process  # while an entry is applied, ``process`` is who wrote it
        self._db.executescript(_APPLIED)

    def here(self, identity: str, at_once: int):
        row = (self.process, identity, at_once)
        self._db.execute("insert or replace into peers values (?, ?, ?)", row)

    def gone(self, process: str):
        self._db.execute("delete from peers where process = ?", (process,))

    def broadcast(self, sender: str, message):
        number = self._say(sender, message)
        if host_of(self.process) == self.own:
            self._own.append(number)

    def remember(self, *request):
        """It changes nothing here."""

    def remembered(self, *answer):
        """It changes nothing here."""

    def hear_from_now(self):
        """What was said before is not heard."""
        self._seen = self._rows("select coalesce(max(number), 0) from messages")[0][0]

    def is_new(self, process: str, number: int) -> bool:
        """Return whether the entry of *process* with this number was never applied; from now on it
        was.
        """
        row = self._db.execute("select number from ops where process = ?", (process,)).fetchone()
        last = row[0] if row else 0
        if number > last:
            self._leave_out(process, last + 1, number - 1)
            self._db.execute("insert or replace into ops values (?, ?)", (process, number))
            return True
        gap = "select rowid, first, last from gaps where process = ? and ? between first and last"
        found = self._db.execute(gap, (process, number)).fetchone()
        if found is None:
            return False
        row_id, first, last = found
        self._db.execute("delete from gaps where rowid = ?", (row_id,))
        self._leave_out(process, first, number - 1)
        self._leave_out(process, number + 1, last)
        return True

    def _leave_out(self, process: str, first: int, last: int):
        if first <= last:
            self._db.execute("insert into gaps values (?, ?, ?)", (process, first, last))

    def identity_of(self, process: str):
        """Return the identity as which a process has joined, None where it is not there."""
        rows = self._rows("select identity from peers where process = ?", process)
        return rows[0][0] if rows else None

    def may_withdraw(self, task_id: str, process: str, identity: str) -> bool:
        """Return whether *identity* gave the task, or *process* does the one of which it is a part:
        the process that gave the parts may have been killed since.
        """
        query = (
            "select 1 from tasks as one left join tasks as whole on whole.id = one.parent "
            "where one.id = ? and one.sender != ? "
            "and not (whole.state is ? and whole.process is ?)"
        )
        return not self._rows(query, task_id, identity, RUNNING, process)

    def peers(self, identity=None) -> list:
        """Return the processes that are there, those of *identity* alone if one is given; who came
        first first.
        """
        query = "select process from peers where ? is null or identity = ? order by rowid"
        return [row[0] for row in self._rows(query, identity, identity)]

    def save(self) -> bytes:
        return self._db.serialize()

    def load(self, data: bytes):
        """Take over what *data*, a snapshot, says.  Raises ``sqlite3.Error``, ``MemoryError``: it
        is none, and nothing has changed.
        """
        tried = sqlite3.connect(":memory:", isolation_level=None)
        try:
            tried.deserialize(data)
            check_tables(tried)
            tried.executescript(SCHEMA + _APPLIED)  # it may be of a version before this one
            rows = tried.execute("pragma quick_check").fetchall()
            if rows != [("ok",)]:
                raise sqlite3.DatabaseError(str(rows[0][0])[:200])
        except BaseException:
            tried.close()
            raise
        old, self._db = self._db, tried
        old.close()

    def which_are_there(self, processes: list) -> set:
        return set(self.peers()).intersection(processes)


class _Waiting:
    """An entry that has not come back.

    who     (process, identity) that it speaks for;  data: its bytes
    key     (process, name, values) of its change, as text;  name: of it
    later   ``Later``;  due_ms: when its caller is told that it is not there, or None
    """

    __slots__ = ("who", "data", "key", "name", "values", "later", "due_ms")

    def __init__(self, who: tuple, data: bytes, name: str, values, due_ms):
        self.who, self.data, self.name, self.values = who, data, name, values
        self.key = _key(who[0], name, values)
        self.later, self.due_ms = Later(), due_ms


def _are(values, kinds: tuple) -> bool:
    """Return whether *values* are of *kinds*, one each, and no number is larger than SQLite adds
    up without loss.
    """
    return len(values) == len(kinds) and all(
        isinstance(value, kind) and not (isinstance(value, int) and abs(value) > MOST_AMOUNT)
        for value, kind in zip(values, kinds, strict=True)
    )


def _is_sound(name: str, values: list) -> bool:
    """Return whether the *values* of a change can mean something: nothing that was used is given
    back by less than nothing, and a report ends a task in one of its ways.
    """
    if name == "report":
        return values[1] in STATUSES and all(value is None or value >= 0 for value in values[3:5])
    if name == "use":
        return values[1] >= 0 and values[2] >= 0
    if name == "hold":
        amounts, limits = values[1:]
        return _are(amounts, (int, int)) and min(amounts) >= 0 and _are(limits, (_NUMBER,) * 2)
    if name == "allot":
        parts, limits = values[1], values[3]
        return all(isinstance(part, str) for part in parts) and _are(limits, (_NUMBER,) * 2)
    return True


def _key(process: str, name: str, values) -> tuple:
    return process, name, *map(repr, values)


class ReplicatedBus(TaskRecords):
    """One process' end, as ``bus.Bus``.

    make     function(process, identity) -> ``engine.Engine``
    swarm    ``swarm.Swarm``
    keep     ``stop_file.StopFile``, in whose folder the reports are kept, too
    What raises, raises ``ClawError``: the engine is away.
    """

    def __init__(self, make, swarm, wall_ms, now_ms, draw, keep):
        self._local_ms, self._now_ms = wall_ms, now_ms
        self._offset_ms = 0  # of the engine's clock, by which tasks are judged, from this one
        self._replica = _Replica(draw, self.wall_ms)
        self.process = self._host = self._replica.process
        self._identity = OPERATOR
        self._known = {one.identity for one in swarm.members} | {OPERATOR, ""}
        self._make, self._keep = make, keep
        self._joined = {}  # id of each member that this process is -> [identity, at once]
        self._engine: Any = None
        self._refused = lambda reason: None
        self._stores: Any = None
        self.keeper = keeper_of(swarm)  # the identity of the member that keeps shared stores
        self._number = 0
        self._waiting = {}  # number -> ``_Waiting``
        self._reports = {}  # identity -> ``InheritedLog`` of what is not acknowledged
        self._results = {}  # of take: its key -> [Taken, ...]
        self._asked = set()  # changes under way that are asked for once
        self._ended = []  # what reclaim and expire have come to
        self._is_up = self.is_synced = False
        self._is_sound = True  # what the engine keeps can be read
        self._why = ("it does not answer yet", "start it, or mend [swarm] address in clawlite.toml")
        self._look_ms, self._missed, self._up_ms = 0, {}, 0
        self._entries, self._bytes, self._position = 0, 0, ""

    def fileno(self) -> int:
        return self._engine.fileno() if self._engine else -1

    def wall_ms(self) -> int:
        return self._local_ms() + self._offset_ms

    def deadline(self):
        """Return the monotonic time at which ``receive`` has something to do, or None."""
        due = [one.due_ms for one in self._waiting.values() if one.due_ms is not None]
        return min([*due, self._look_ms] if self._joined and self.is_synced else due, default=None)

    def subscribe(self, refused=None, stores=None):
        """Tell *refused*, a function(reason), of each entry that changes nothing, and *stores*, a
        ``shared_stores.SharedStores``, of those about shared stores.
        """
        self._refused, self._stores = refused or self._refused, stores or self._stores

    def join(self, identity: str = "", at_once: int = 0):
        self._identity = identity or OPERATOR
        if identity:
            self._joined[self.process] = [identity, at_once]
        if self._engine is None:
            self._engine = self._make(self._host, identity)
            self._engine.start()
        elif identity and self.is_synced:
            self._append("here", identity, at_once)
        if identity and identity not in self._reports:
            place = self._keep.folder, identity, self._host
            self._reports[identity] = InheritedLog(*place, REPORTS, dumps, loads)
            self._send_again(self._reports[identity])

    def _send_again(self, file: InheritedLog):
        """Send the reports that ended processes of this agent have left in their files."""
        wrong: list = []
        rows = []
        try:
            rows = file.take_over(wrong.append)
        except OSError as e:
            wrong.append(e)
        for task_id, *report in rows:
            try:
                self._append("report", task_id, *report, self._identity, False)
            except TooLong as e:  # no later process could send it either
                wrong.append(e)
                self._on_disk(file.remove, task_id)
            except ClawError as e:  # the next process sends it
                wrong.append(e)
        for why in dict.fromkeys(map(str, wrong)):
            self._refused("reports of a process that ended cannot be sent: %s" % why)

    def speak_as(self, process: str, identity: str):
        """What is asked from now on is asked for this member."""
        self.process = self._replica.process = process
        self._identity = identity

    def part(self):
        """One of the members that this process is has gone, with what it ran."""
        if self._joined.pop(self.process, None) and self.is_synced:
            self._append("gone", self.process)

    def wait(self, later=None):
        """For a command: wait until all that is on record has come, or *later* is done; return
        its value.  Raises ``ClawError``.
        """
        until = time.monotonic() + SYNC_S
        while not (later.is_done if later else self.is_synced and self._is_up):
            left = until - time.monotonic()
            if left <= 0 or later is None and self._why[0] and self._was_down:
                self._check()
                raise self._away(*(self._since_kept or _SILENT))
            select.select([self.fileno()], [], [], left)
            self.receive()
        return later.value() if later else None

    _was_down = False
    _since_kept = None  # why it was down since it last kept an entry: one that is full comes back

    def leave(self):
        if self._engine is None:
            return
        self._say_goodbye()
        self._engine.close()
        self._engine = None
        for file in self._reports.values():
            self._on_disk(file.close)

    def _say_goodbye(self):
        if self._joined and self._is_up:
            joined, self._joined = self._joined, {}
            for process, (identity, _) in joined.items():
                self.speak_as(process, identity)
                last = self._append("gone", process)
            until = time.monotonic() + LEAVE_MS / 1000
            while self._is_up and not last.is_done and time.monotonic() < until:
                select.select([self.fileno()], [], [], max(0, until - time.monotonic()))
                self.receive()

    # -- what comes of the engine

    def receive(self) -> bool:
        """Take what has come; return whether something has changed."""
        news = False
        for kind, *given in self._engine.take():
            news = True
            if kind == ENTRY and self._is_sound:
                self._apply(*given)
            elif kind == UP and not self._is_sound:
                continue
            elif kind == UP:
                self._is_up, self._up_ms = True, self._now_ms()
                self._missed.clear()
                for _, one in sorted(self._waiting.items()):
                    self._engine.append(one.who[1], one.data)
            elif kind == DOWN:
                *self._why, is_forbidden = given
                self._since_kept = self._why
                self._is_up, self._was_down = False, True
                for file in self._reports.values():
                    self._on_disk(file.sync)
                if is_forbidden:
                    self._give_up()
            elif kind == SNAPSHOT:
                self._load(*given)
            elif kind == SYNCED and not self.is_synced and self._is_sound:
                self.is_synced = True
                self._replica.hear_from_now()
                self._here(list(self._joined))
            elif kind == NOTE:
                self._refused(*given)
            elif kind == THERE:
                self._note_presence(*given)
        if news and self.is_synced:
            self._keep_stop()
        now = self._now_ms()
        for one in list(self._waiting.values()):
            if one.due_ms is not None and now >= one.due_ms:
                one.due_ms = None
                one.later.fail(self._away(*(self._since_kept or _NOT_KEPT)))
                news = True
        if self._joined and self.is_synced and now >= self._look_ms:
            self._look_ms = now + LOOK_MS
            self._look()
        return news

    def _load(self, position: str, data: bytes):
        """Begin with a snapshot.  One that is none leaves this process outside of the swarm: what
        follows it means nothing without what was before.
        """
        try:
            self._replica.load(data)
        except (sqlite3.Error, MemoryError) as e:
            self._is_sound = self._is_up = False
            said = str(e) or type(e).__name__
            self._why = "its snapshot cannot be read: %s" % said[:200], REMOVE
            self._was_down = True
            self._refused("%s - %s" % self._why)
            return
        self._is_sound, self._position = True, position
        self._entries = self._bytes = 0

    def _give_up(self):
        """Tell all who wait for an entry that it is refused, and would be again."""
        for number, one in list(self._waiting.items()):
            if one.due_ms is not None:
                del self._waiting[number]
                one.later.fail(self._away(*self._why))

    def _here(self, processes: list):
        """Say that these members are there."""
        was = self.process, self._identity
        for process in processes:
            identity, at_once = self._joined[process]
            self.speak_as(process, identity)
            self._append("here", identity, at_once)
        self.speak_as(*was)

    def _keep_stop(self):
        stop = self._replica.find_stop()
        try:
            self._keep.set(stop)
        except OSError as e:
            self._refused("whether the swarm is stopped cannot be kept: %s" % e.strerror)

    def _apply(self, position: str, at_ms: int, sender, data: bytes):
        self._position = position
        at_ms = min(at_ms, MOST_AMOUNT)  # Redis takes it of who writes
        self._entries += 1
        self._bytes += len(data)
        entry = self._read(sender, data)
        if entry is None:
            return
        process, number, name, values = entry
        host = host_of(process)
        mine = self._waiting.pop(number, None) if host == self._host else None
        if not self._replica.is_new(host, number):
            if mine:  # it lay in what a snapshot stands for
                self._finish(mine, None, self._away("it was restarted", "give it again"))
            return
        replica, speaks = self._replica, self.process
        replica.process, replica.at_ms = process, at_ms
        error = value = None
        try:
            value = getattr(replica, name)(*values)
        except Exception as e:  # all processes apply it: no entry may end them all
            error = e if isinstance(e, ClawError) else ClawError(str(e))
            if not mine:
                self._refused("an entry of the log (%s): %s" % (name, str(e)[:300]))
        finally:
            replica.process, replica.at_ms = speaks, None
        if name in ("remember", "remembered") and self._stores:
            about = (process, at_ms, *values) if name == "remember" else values
            getattr(self._stores, name)(*about)
        if mine:
            self._offset_ms = at_ms - self._local_ms()
            self._since_kept = None
            self._finish(mine, value, error)
        elif name == "gone" and values[0] in self._joined and self.is_synced:
            self._here(values[:1])  # it was only cut off
        is_long = self._entries >= SNAPSHOT_EACH or self._bytes >= SNAPSHOT_BYTES
        if is_long and mine and self.is_synced:
            self._entries = self._bytes = 0
            self._engine.save(position, replica.save())

    def _read(self, sender, data: bytes):
        """Return (process, number, name, values) of an entry, or None for what is no change."""
        try:
            entry = loads(data)
            version, process, number, identity, name, values = entry
            if version != VERSION:
                raise ValueError(
                    "version %s of entries, and this is %d - %s" % (version, VERSION, _UPDATE)
                )
            if not (
                isinstance(process, str)
                and _are((number, values), (int, list))
                and number > 0
                and name in _CHANGES
                and _are(values, _CHANGES[name])
                and (name != "put" or _are(values[0], _TASK))
                and is_process(process)
                and _is_sound(name, values)
            ):
                raise ValueError("not a change that this version knows - " + _UPDATE)
            if identity not in self._known:
                raise ValueError("%s is not in the swarm - %s" % (str(identity)[:63], _BUILD))
            if name in _OF_PERSONS and identity != OPERATOR:
                raise ValueError("%s: only a person may %s" % (identity, _OF_PERSONS[name]))
            if sender not in (None, identity or OPERATOR):
                raise ValueError("%s spoke in the name of %s" % (sender[:63], identity))
            self._check_names(process, identity or OPERATOR, name, values)
            if name == "put":
                values = [Task(*values[0])]
            elif name == "take" and values[4]:
                values[4] = tuple(values[4])
            return process, number, name, values
        except (ValueError, TypeError, LookupError, ClawError) as e:
            self._refused("an entry of the log: %s" % str(e)[:300])
            return None

    def _check_names(self, process: str, identity: str, name: str, values: list):
        """Raises ``ValueError``: an entry of *identity* speaks in the name of another, or for the
        process of another.
        """
        named = identity
        if name == "put":
            named = values[0][_SENDER]
        elif name in _NAMES_ITSELF:
            named = values[_NAMES_ITSELF[name]]
        if name == "report" and named == OPERATOR:  # an agent's own operator reports a task
            named = identity
        if named != identity:
            raise ValueError("%s spoke in the name of %s (%s)" % (identity, str(named)[:63], name))
        if name == "remembered" and identity != self.keeper:
            raise ValueError("%s answers for the stores that %s keeps" % (identity, self.keeper))
        if name == "withdraw" and not self._replica.may_withdraw(values[0], process, identity):
            raise ValueError("%s took back a task of another (withdraw)" % identity)
        joined = self._replica.identity_of(process)
        if joined not in (None, identity):
            raise ValueError("%s spoke for a process of %s (%s)" % (identity, joined, name))

    def _finish(self, mine: _Waiting, value, error):
        self._asked.discard(mine.key)
        file = self._reports.get(mine.who[1])
        if mine.name == "report" and file:
            self._on_disk(file.remove, mine.values[0])
        if mine.name == "take" and value is not None:
            self._results.setdefault(mine.key, []).append(value)
        elif mine.name in ("reclaim", "expire") and value:
            self._ended += value
        mine.later.fail(error) if error else mine.later.give(value)

    def _look(self):
        """Ask the engine for the processes that this one looks after: who came first looks after
        all, and the others after that one; after all, while it does not answer, so that many that
        ended at once are found at once.
        """
        peers = list(map(host_of, self._replica.peers()))
        if not self._is_up or self._host not in peers:
            return
        is_first = peers[0] == self._host or peers[0] in self._missed
        asked = dict.fromkeys(peers if is_first else peers[:1])
        asked.pop(self._host, None)
        for process in [one for one in self._missed if one not in asked]:
            del self._missed[process]  # what it did before says nothing later
        if asked:
            self._engine.ask_there(list(asked))

    def _note_presence(self, there: dict):
        now = self._now_ms()
        for process, is_there in there.items():
            if is_there:
                self._missed.pop(process, None)
                continue
            since = self._missed.setdefault(process, now)
            if now - max(since, self._up_ms) >= GRACE_MS:
                del self._missed[process]
                for one in self._replica.peers():
                    if host_of(one) == process:
                        self._once("gone", one)

    # -- changes

    def put(self, task) -> Later:
        self._check()
        row = [task.id, task.description, task.input, task.sender, task.recipient, task.parent]
        return self._append("put", row, ms=ACK_MS)

    def asks(self, asker: str, task_id: str) -> Later:
        if asker:
            self._check()
        return self._append("asks", asker, task_id, ms=ACK_MS)

    def declare(self, terms: str) -> bool:
        if self._is_up and self.is_synced:
            self._once("declare", terms)
        return self._is_up and self.is_synced

    def report(self, task_id: str, status: str, result, tokens, duration_ms, by: str, held=False):
        if not held:
            self._check()
            if self.state(task_id) is None:
                return False
        report = task_id, status, result, tokens, duration_ms
        file = self._reports.get(self._identity) if held else None
        if file:
            self._entry("report", (*report, by, False))  # raises ``TooLong`` before it is kept
            self._on_disk(file.keep, list(report), not self._is_up)
        later = self._append("report", *report, by, held)
        return True if held else later

    def _on_disk(self, act, *values):
        """Call *act*, a method of a file of reports; when the disk fails, only log it."""
        try:
            act(*values)
        except OSError as e:
            self._refused("a report that is not acknowledged cannot be kept: %s" % e.strerror)

    def broadcast(self, sender: str, message):
        self._check()
        self._append("broadcast", sender, message)

    def take(self, identity: str, any_of: bool, most, part=None, breaker=None):
        self._check()
        values = (identity, any_of, most, part, breaker and list(breaker))
        key = _key(self.process, "take", values)
        while self._results.get(key):
            taken = self._results[key].pop(0)
            if self.holds(taken.id):
                return taken
        if self.waits(identity, any_of, part):
            self._once(*("take", *values))
        return None

    def divide(self, task_id: str):
        self._append("divide", task_id)

    def allot(self, task_id: str, parts: list, decides: bool, limits: list):
        self._append("allot", task_id, parts, decides, limits)

    def hold(self, task_id: str, amounts: list, limits: list) -> Later:
        self._check()
        return self._append("hold", task_id, amounts, limits, ms=ACK_MS)

    def use(self, task_id: str, tokens: int, nano: int):
        self._append("use", task_id, tokens, nano)

    def begins(self, task_id: str) -> Later:
        self._check()
        return self._append("begins", task_id, ms=ACK_MS)

    def release(self, task_id: str):
        self._append("release", task_id)

    def reclaim(self, retries: int, keeps_dead: bool) -> list:
        self._check()
        if self.find_gone():
            self._once("reclaim", retries, keeps_dead)
        found, self._ended = self._ended, []
        return found

    def expire(self, timeout_ms: int, keeps_dead: bool) -> list:
        if self.late(timeout_ms):
            self._once("expire", timeout_ms, keeps_dead)
        return []

    def withdraw(self, task_id: str):
        if self.state(task_id) in (None, WAITING):
            self._once("withdraw", task_id)

    def again(self, task_id: str) -> Later:
        self._check()
        return self._append("again", task_id, ms=ACK_MS)

    def drop(self, task_id: str) -> Later:
        self._check()
        return self._append("drop", task_id, ms=ACK_MS)

    def stop(self, who: str) -> Later:
        self._check()
        return self._append("stop", who, ms=ACK_MS)

    def resume(self, who: str) -> Later:
        self._check()
        return self._append("resume", who, ms=ACK_MS)

    def keeper_of_stores(self) -> str:
        """Return the process that keeps the stores which the agents share, "" when none is there.
        Raises ``ClawError``.
        """
        self._check()
        return next(iter(self._replica.peers(self.keeper)), "")

    def is_there(self, process: str) -> bool:
        return self._replica.identity_of(process) is not None

    def remember(self, *request) -> Later:
        self._check_form("remember", request)
        return self._append("remember", *request, ms=ACK_MS)

    def remembered(self, *answer):
        self._check_form("remembered", answer)
        self._append("remembered", *answer)

    def _check_form(self, name: str, values: tuple):
        """Raises ``ValueError`` for what no process could read."""
        try:
            loads(self._entry(name, values))
        except ParseError as e:
            raise ValueError(e.message) from None

    def _once(self, name: str, *values):
        """Append a change, unless the same one is under way."""
        key = _key(self.process, name, values)
        if key not in self._asked:
            self._asked.add(key)
            self._append(name, *values)

    def _append(self, name: str, *values, ms=None) -> Later:
        if len(self._waiting) >= MOST_WAITING:
            raise self._away(
                "%d entries wait for it" % MOST_WAITING, "find out why it does not answer"
            )
        data = self._entry(name, values)
        self._number += 1
        due_ms = None if ms is None else self._now_ms() + ms
        one = _Waiting((self.process, self._identity), data, name, values, due_ms)
        self._waiting[self._number] = one
        if self._is_up:
            self._engine.append(self._identity, data)
        return one.later

    def _entry(self, name: str, values: tuple) -> bytes:
        """Return the next entry.  Raises ``TooLong``."""
        entry = [VERSION, self.process, self._number + 1, self._identity, name, values]
        data = dumps(entry).encode()
        check_size(len(data), self._engine and self._engine.most_bytes)
        return data

    # -- reading

    def read(self, act, *values):
        return self._replica.read(act, *values)

    def which_are_there(self, processes: list) -> set:
        return self._replica.which_are_there(processes)

    def budget(self, task_id: str) -> list:
        found = super().budget(task_id)
        for one in self._waiting.values():
            if one.name == "use" and one.values[0] == task_id:
                found = [
                    (used + amount, reserved - min(own, amount), max(0, own - amount))
                    for amount, (used, reserved, own) in zip(one.values[1:], found, strict=True)
                ]
        return found

    def messages(self) -> list:
        return self._replica.messages()

    def there(self, swarm) -> tuple:
        self._check()
        return super().there(swarm)

    def is_known(self) -> bool:
        return self.is_synced or self._was_down

    def find_stop(self):
        """Return (who, ms since 1970) of a stop that holds, as far as this process knows, or None.
        Raises ``ClawError``: what is kept of it cannot be read.
        """
        return super().find_stop() if self.is_synced else self._keep.find_stop()

    def _check(self):
        if not (self._is_up and self.is_synced):
            raise self._away(*self._why)

    def _away(self, why: str, hint: str) -> ClawError:
        address = self._engine.address if self._engine else ""
        return ClawError("the swarm's engine %s cannot be used: %s" % (address, why), hint)


def keeper_of(swarm) -> str:
    """Return the identity of the member that keeps what an engine cannot: who leads, else who is
    first in the manifest.
    """
    leads = [one for one in swarm.members if one.role in (LEADER, SOURCE, ROOT)]
    return (leads or swarm.members)[0].identity


def login_of(swarm, image, by_person: bool = False, guard=None) -> tuple:
    """Return ([kind, secure, host, port, user] of the engine of *swarm*, the password): as
    ``bus_of`` has it.
    """
    *place, user, secret, operator_secret = swarm.engine
    if by_person and operator_secret:
        user, secret = OPERATOR, operator_secret
    password = ""
    if secret:
        password = resolve(secret, stores(image.agent.name))
        if guard is not None:
            guard.learn(password)
    return [*place, user], password


def bus_of(
    swarm, image, wall_ms, now_ms, draw, by_person: bool = False, guard=None
) -> ReplicatedBus:
    """Return the bus of *swarm*, whose engine the *image* names.  Raises ``ClawError``: its secret
    or its package is missing.

    by_person  it is for a command that changes something: with the login of a person's commands,
               where the image names its secret, else with the agent's
    guard      ``guard.Guard``, which learns the password, or None
    """
    place, password = login_of(swarm, image, by_person, guard)
    folder = swarm_folder(swarm.name)

    def make(process: str, identity: str):
        return engine_of(place, password, swarm.name, process, identity)

    keep = StopFile(folder)
    return ReplicatedBus(make, swarm, wall_ms, now_ms, draw, keep)
