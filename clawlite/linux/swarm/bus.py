"""The bus of a swarm on one machine: an SQLite file that its processes share, and a FIFO of each by
which the others wake it.

    swarms/NAME/swarm.db       tasks, what became of them, reports, broadcasts, and who is there
    swarms/NAME/PROCESS.fifo   read by that process alone; whoever can open it for writing knows
                               that the process lives

1. What was acknowledged, and that a tool with side effects begins, is on disk, synced.  Who takes
   a task need not be: after a power cut it waits again.
2. Nothing polls: who changes something writes a byte into the FIFOs of the others.
3. A process that ended holds nothing: the kernel closes its FIFO, and what it ran is given back
   (``reclaim``).
4. Who changes the file has a lock on the folder meanwhile: the kernel wakes the next one, where
   SQLite lets who finds it locked sleep for a millisecond and more.
5. A peer is who may write this folder: it is the user's alone (0700).
6. A process may be several members (``shared_bus.py``): each has an id of its own, HOST-NUMBER,
   below that of the process, whose FIFO is theirs.  Such a member is there as long as its process
   lives and has not said that it left.
"""

import errno
import fcntl
import os
import re
import sqlite3
import stat
import time
from collections import deque

from clawlite.core.base.errors import ClawError
from clawlite.core.base.render import canonical
from clawlite.linux.files import rollback_marks, sqlite_log
from clawlite.linux.files.files import own_file, tell_replaced
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.swarm import reserve
from clawlite.linux.swarm.task_records import (
    DONE_HERE,
    RESUMED,
    STOPPED,
    TAKABLE,
    UNREAD,
    WHOLE,
    TaskRecords,
    find_last_failure,
    read_json,
    read_stop,
)
from clawlite.protocols.swarm.swarm import DEAD, FAILED, RUNNING, WAITING

FILE, _FIFO = "swarm.db", ".fifo"
BUSY_S = 10  # that another process may hold the file
MAX_ENTRY = 524288  # bytes of a task, a report or a broadcast: within what every engine takes
MOST_MESSAGES = 1000  # broadcasts that are kept
MOST_TASKS = 10000  # that are kept: older ones that have ended make room
VERSION = 6  # of the tables: 2: reserved, 3: tries, 4: who asks, 5: accounts, 6: declared
_DROPPED = "dropped"
# One transaction: each statement alone would write the same pages of the file once more.  It is
# immediate: SQLite refuses to wait for a lock once a transaction has begun to read.
SCHEMA = """
begin immediate;
create table if not exists peers (process text primary key, identity text, at_once int);
create table if not exists tasks (
    id text primary key, description text, input text, sender text, recipient text, state text,
    process text, began int, tries int, created_ms int, parent text, root text, divided int,
    report int);
create table if not exists tries (
    task text, identity text, times int, is_over int, primary key (task, identity));
create table if not exists asks (task text primary key, asker text) without rowid;
create table if not exists declared (process text primary key, terms text) without rowid;
create table if not exists used (root text primary key, tokens int, nano int);
create table if not exists events (task text, at_ms int, what text, who text);
create table if not exists reports (
    task text, at_ms int, who text, status text, result text, tokens int, duration_ms int);
create table if not exists messages (
    number integer primary key autoincrement, sender text, body text, at_ms int);
create index if not exists tasks_by_state on tasks (state, created_ms);
create index if not exists tasks_by_parent on tasks (parent);
create index if not exists events_by_task on events (task);
create index if not exists reports_by_task on reports (task);
create index if not exists reports_by_agent on reports (who, at_ms);
%s
pragma user_version = %d;
commit;
""" % (reserve.SCHEMA, VERSION)
_PARTS_OF = (  # a task and, below it, its parts
    "with recursive those(id) as (values (?) union select tasks.id from tasks "
    "join those on tasks.parent = those.id) "
)
_SAME_REPORT = (
    "select 1 from reports where task = ? and who = ? and status = ? and result = ? and "
    "tokens is ? and duration_ms is ?"
)

_LOCKED = "another process has locked its folder for %d s"
_NOT_SOUND = "what the swarm has on record of it cannot be read"
_PROCESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}\Z")


def is_process(name) -> bool:
    """Return whether *name* can be the id of a process: it becomes the name of a FIFO, and part of
    what engines are asked.
    """
    return isinstance(name, str) and bool(_PROCESS.match(name))


def host_of(process: str) -> str:
    """Return the id of the process that *process* is, or is a member of."""
    return process.partition("-")[0]


class Bus(TaskRecords):
    """One process' end of a swarm's bus.

    folder      of the swarm (``files.swarm_folder``), or None: this process is alone, and nothing
                outlasts it
    wall_ms     function -> ms since 1970
    draw        function(count) -> that many random bytes
    most_bytes  of a task, a report or a broadcast; None: any number
    What raises, raises ``ClawError``: the file cannot be used.
    """

    is_synced = True  # it knows all that is on record

    def __init__(self, folder, wall_ms, draw, most_bytes: int | None = MAX_ENTRY):
        self._folder, self._wall_ms, self._most_bytes = folder, wall_ms, most_bytes
        self.process = draw(8).hex()
        self._fd = self._turn = -1
        self._news = False  # something changed here
        self._seen = 0  # number of the last broadcast that ``messages`` has passed
        self._own = deque(maxlen=MOST_MESSAGES)  # numbers of those that this process sent
        self._number = 0  # of the file, as ``rollback_marks.count_up`` has it
        self._joined = {}  # id of each member that this process is -> what ``join`` was asked
        self._open()

    def _open(self):
        folder, db, turn, opened = self._folder, None, -1, False
        try:
            if folder:
                os.makedirs(folder, 0o700, exist_ok=True)
                # One after the other: SQLite waits for nobody while a file becomes a WAL file,
                # and several processes of a swarm begin at once.  An end of this one unlocks it.
                turn = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                _lock(turn)
            place = os.path.join(folder, FILE) if folder else ":memory:"
            if folder:
                own_file(place)
            log = sqlite_log.last_commit(place) if folder else None
            db = sqlite3.connect(place, timeout=BUSY_S, isolation_level=None)
            sqlite_log.check(db.execute, place, "the bus of the swarm", log)
            db.execute("pragma journal_mode = wal")
            version = db.execute("pragma user_version").fetchone()[0]
            if version > VERSION:
                raise sqlite3.DatabaseError(
                    "version %d of clawlite's tables, and this is %d" % (version, VERSION)
                )
            check_tables(db)
            if version < VERSION:
                db.executescript(SCHEMA)
            self._status = os.stat(place) if folder else None
            opened = True
        except (OSError, sqlite3.Error) as e:
            if db is not None:
                db.close()
            raise _unusable(folder, e) from None
        finally:
            if turn >= 0 and opened:
                fcntl.flock(turn, fcntl.LOCK_UN)
            elif turn >= 0:
                os.close(turn)
        self._db, old, self._turn = db, self._turn, turn
        if old >= 0:
            os.close(old)

    def _sure(self):
        """Begin anew where the file was removed or replaced while it was in use, and say so: the
        others would never see what is written to the old one.
        """
        if not self._folder:
            return
        path = os.path.join(self._folder, FILE)
        try:
            if self._status and os.path.samestat(os.stat(path), self._status):
                return
        except OSError:
            pass
        old = self._db
        self._open()
        old.close()
        tell_replaced("the bus of the swarm", path)
        if self._joined:
            was, self._fd = self._fd, -1
            try:
                self._be_there(self._joined)
            except ClawError:
                self._status = None  # once more at the next use
                self._let_go()
                self._fd = was
                raise
            if was >= 0:  # the loop polls this number: keep it
                fd, self._fd = self._fd, was
                try:
                    os.dup2(fd, was, False)
                finally:
                    os.close(fd)

    def fileno(self) -> int:
        """Return the descriptor that is readable when another process has changed something; -1
        before ``join``, and where the process is alone.
        """
        return self._fd

    def subscribe(self, refused=None, stores=None):
        """As that of ``ReplicatedBus``, of whose events a file has none: nobody is told."""

    def join(self, identity: str = "", at_once: int = 0):
        """Join as a member that does *at_once* tasks at once; with 0, only watch."""
        self._joined[self.process] = identity, at_once
        self._be_there({self.process: self._joined[self.process]})

    def _be_there(self, members: dict):
        is_first, ended = self._fd < 0, []
        if self._folder and is_first:
            ended = self._rows("select process from peers")
            there = self.which_are_there([process for (process,) in ended])
            ended = [row for row in ended if row[0] not in there]
            path = self._path(self.process)
            part = path + ".part"
            try:
                # The FIFO gets its final name only once it is open.  So one that nobody reads
                # belongs to a process that ended, and any member may remove it.
                os.mkfifo(part, 0o600)
                # for writing too: a FIFO that nobody writes would always be readable
                self._fd = os.open(part, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
                os.rename(part, path)
            except OSError as e:
                self._let_go()
                raise _unusable(self._folder, e) from None
        with _Change(self, lasts=False) as db:  # no process outlasts a power cut
            if is_first:
                newest = "select coalesce(max(number), 0) from messages"
                self._seen = db.execute(newest).fetchone()[0]
            db.executemany("delete from peers where process = ?", ended)
            rows = [(process, *of) for process, of in members.items() if of[0]]
            db.executemany("insert or replace into peers values (?, ?, ?)", rows)
            self._number = rollback_marks.count_up(db.execute) if rows and self._folder else 0
        self._note()

    def _note(self):
        """Write how far the file has come: a start tells when it is behind that."""
        if self._number:
            mark = rollback_marks.Mark(os.path.join(self._folder, FILE))
            mark.note((self._number, rollback_marks.COUNTED, 0), False)
            mark.close()

    def speak_as(self, process: str, identity: str):
        """What is asked from now on is asked for this member, which this process is."""
        self.process = process

    def part(self):
        """One of the members that this process is has gone, with what it ran: to the others, as if
        a process had been killed.
        """
        with _Change(self, lasts=False) as db:
            db.execute("delete from peers where process = ?", (self.process,))
        self._joined.pop(self.process, None)

    def leave(self):
        """Be gone; what this process ran is given back before."""
        try:
            gone = [(process,) for process in self._joined] or [(self.process,)]
            self._db.execute("begin immediate")
            self._db.executemany("delete from peers where process = ?", gone)
            self._number = self._number and rollback_marks.count_up(self._db.execute)
            self._db.execute("commit")
            self._note()
            self._wake_all()
        except (OSError, sqlite3.Error):  # the others see that nobody reads the FIFO
            pass
        turn, self._turn = self._turn, -1
        try:
            self._let_go()
        finally:
            try:
                if turn >= 0:
                    os.close(turn)
            finally:
                self._db.close()

    def _let_go(self):
        """Close the FIFO, and remove it."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
        for end in ("", ".part") if self._folder else ():
            try:
                os.unlink(self._path(self.process) + end)
            except OSError:
                pass

    def receive(self) -> bool:
        """Return whether something has changed since this was asked last."""
        news, self._news = self._news, False
        try:
            while self._fd >= 0 and os.read(self._fd, 4096):
                news = True
        except BlockingIOError:
            pass
        return news

    # -- what an agent is asked

    def put(self, task) -> bool:
        """Put *task* on record, once; return False when its id is that of another task.

        A part of another task, and a task that the turn of another one delegates (``asks``), count
        towards the limits of that other task.
        """
        row = (task.description, dumps(task.input), task.sender, task.recipient)
        self._check_size(*row[:2])
        with _Change(self) as db:
            known = db.execute(
                "select description, input from tasks where id = ?", (task.id,)
            ).fetchone()
            if known:
                return known == row[:2] or _normalise(known) == _normalise(row)
            if task.parent:  # a part belongs to its parent, whatever ``asks`` said before
                reserve.forget(db, task.id)
            above = db.execute(
                "select root from tasks where id = ?",
                (task.parent or reserve.account_of(db, task.id),),
            ).fetchone()
            root = above[0] if above else task.id
            db.execute(
                "insert into tasks values (?, ?, ?, ?, ?, ?, '', 0, 0, ?, ?, ?, 0, null)",
                (task.id, *row, WAITING, self._wall_ms(), task.parent, root),
            )
            self._make_room(db)
            self._event(task.id, "delegated", task.sender)
        return True

    def asks(self, asker: str, task_id: str) -> bool:
        """Record that the turn of the task *asker* waits for a task, which it is about to ``put``.
        That one counts towards the limits of *asker*.  With *asker* "", the turn no longer waits.
        Return False when the task must not be put: this process does not do *asker* any more, or
        somebody else has that task already.
        """
        with _Change(self, lasts=False) as db:
            mine = "select id from tasks where state = ? and process = ?"
            waited = db.execute(
                "delete from asks where task = ? and asker in (%s)" % mine,
                (task_id, RUNNING, self.process),
            ).rowcount
            is_there = reserve.is_known(db, task_id)
            if waited and not is_there:
                reserve.forget(db, task_id)
            if not asker:
                return True
            insert = "insert or ignore into asks select ?, id from (%s) where id = ?" % mine
            values = task_id, RUNNING, self.process, asker
            if is_there or not db.execute(insert, values).rowcount:
                return False
            reserve.share(db, task_id, asker)
        return True

    def _waits_no_longer(self, db, asker: str):
        """Forget what the turn of the task *asker* waited for.  That turn has ended, and the next
        process that does *asker* begins another one.
        """
        for (task_id,) in db.execute("select task from asks where asker = ?", (asker,)).fetchall():
            if not reserve.is_known(db, task_id):
                reserve.forget(db, task_id)
        db.execute("delete from asks where asker = ?", (asker,))

    def _make_room(self, db):
        """Forget tasks that ended long ago.  A task stays when it waits for a person, or when
        an open task counts towards it.
        """
        old = db.execute("select max(rowid) from tasks").fetchone()[0] - MOST_TASKS
        gone = (
            "select id from tasks where rowid <= ? and state not in (?, ?, ?) and id not in "
            "(select root from tasks where state in (?, ?))"
        )
        values = (old, WAITING, RUNNING, DEAD, WAITING, RUNNING)
        if old > 0 and db.execute(gone, values).fetchone():
            for table, column in (
                ("events", "task"),
                ("reports", "task"),
                ("tries", "task"),
                ("asks", "task"),
                ("accounts", "task"),
                ("used", "root"),
                ("reserved", "root"),
            ):
                db.execute("delete from %s where %s in (%s)" % (table, column, gone), values)
            db.execute("delete from tasks where id in (%s)" % gone, values)

    def report(
        self, task_id: str, status: str, result, tokens, duration_ms, by: str, held: bool = False
    ) -> bool:
        """Put a report on record; return False when nobody delegated the task.  The first one ends
        the task; the same report counts once.

        held  the reporting process does the task; if another process does it by now, the report
              ends nothing
        """
        text = dumps(result)
        self._check_size(text)
        with _Change(self) as db:
            row = db.execute("select state, process from tasks where id = ?", (task_id,)).fetchone()
            if row is None:
                return False
            ends = row == (RUNNING, self.process) if held else row[0] in (WAITING, RUNNING)
            ends = ends or self._gave_up_on(db, task_id, by)
            report = by, status, text, tokens, duration_ms
            if not ends and db.execute(_SAME_REPORT, (task_id, *report)).fetchone():
                return True
            number = db.execute(
                "insert into reports values (?, ?, ?, ?, ?, ?, ?)",
                (task_id, self._wall_ms(), *report),
            ).lastrowid
            self._event(task_id, status, by)
            if ends:
                db.execute(
                    "update tasks set state = ?, report = ? where id = ?",
                    (status, number, task_id),
                )
                reserve.give_back(db, task_id)
        return True

    def _check_size(self, *texts: str):
        if self._most_bytes is not None:
            check_size(sum(len(text.encode()) for text in texts))

    def _gave_up_on(self, db, task_id: str, by: str) -> bool:
        """Return whether the task was given up because the process of *by* that did it ended, and
        no person has dropped it since.  Then a report of *by* still ends the task.
        """
        row = db.execute(
            "select what, who from events where task = ? and what in ('taken', ?) and exists "
            "(select 1 from tasks join reports on reports.rowid = tasks.report where id = ? and "
            "who = '') order by rowid desc limit 1",
            (task_id, _DROPPED, task_id),
        ).fetchone()
        return row == ("taken", by)

    def broadcast(self, sender: str, message):
        """Send *message* to all members that are there; this process does not hear it."""
        self._own.append(self._say(sender, message))

    def _say(self, sender: str, message) -> int:
        """Put a broadcast on record; return its number."""
        text = dumps(message)
        self._check_size(text)
        with _Change(self) as db:
            row = (sender, text, self._wall_ms())
            number = db.execute("insert into messages values (null, ?, ?, ?)", row).lastrowid
            db.execute("delete from messages where number <= ?", (number - MOST_MESSAGES,))
        return number

    def messages(self) -> list:
        """Return [(sender, message), ...] of the others that came since this was asked last."""
        rows = self._rows(
            "select number, sender, body from messages where number > ? order by number",
            self._seen,
        )
        if rows:
            self._seen = rows[-1][0]
        said = [(by, read_json(body)) for number, by, body in rows if number not in self._own]
        return [(by, value) for by, value in said if value is not UNREAD and isinstance(by, str)]

    def declare(self, terms: str) -> bool:
        """Declare which version of the swarm this process has, a digest of ``Swarm.terms``.  Return
        False when the bus cannot be used now.
        """
        with _Change(self, lasts=False) as db:
            db.execute("delete from declared where process not in (select process from peers)")
            db.execute("insert or replace into declared values (?, ?)", (self.process, terms))
        return True

    # -- tasks

    def take(self, identity: str, any_of: bool, most, part=None, breaker=None):
        """Return the next task for *identity*, which runs here from now on, or None: a ``Taken``.

        any_of   also what is for whoever is free
        most     tasks at once in the whole swarm, those that are divided not counted; or None
        part     True: only parts of other tasks, False: only others, None: both
        breaker  (failures in a row, ms) after which *identity* takes nothing for so long, and then
                 one task alone until that one has ended; or None
        """
        # Looked at before the file is locked: SQLite lets who finds it locked, by a process that
        # syncs what it gives, sleep for a millisecond and more.
        if not self.waits(identity, any_of, part):
            return None
        with _Change(self, wakes=False, lasts=False) as db:
            running = "select count(*) from tasks where state = ? and divided = 0"
            if most is not None and db.execute(running, (RUNNING,)).fetchone()[0] >= most:
                return None
            failed = find_last_failure(db, identity, breaker) if breaker else None
            if failed and (
                self._wall_ms() < failed.at_ms + breaker[1]
                or self._is_tried(db, identity, failed.task)
            ):
                return None
            row = db.execute(
                "select id, description, input, sender, parent, root, created_ms, "
                "(select created_ms from tasks as whole where whole.id = tasks.root) " + TAKABLE,
                (WAITING, identity, any_of, part, part, identity),
            ).fetchone()
            if row is None:
                return None
            db.execute(
                "update tasks set state = ?, process = ?, began = 0, tries = tries + 1 "
                "where id = ?",
                (RUNNING, self.process, row[0]),
            )
            self._event(row[0], "taken", identity)
            if not _is_sound(row):  # nobody could do it, and it would come again and again
                self._set(row[0], DEAD, _NOT_SOUND, False)
                db.execute("delete from tasks where typeof(id) != 'text'")
                return None
        return Taken(*row)

    def divide(self, task_id: str):
        """The task runs here, and others do all of its parts: it takes no place of ``most``."""
        with _Change(self, wakes=False, lasts=False) as db:
            db.execute("update tasks set divided = 1 where id = ?", (task_id,))

    def _is_tried(self, db, identity: str, failed: str) -> bool:
        """Return whether *identity* does a task that it took after its task *failed* had failed.
        One that waits for a task which it delegated does not count: that one may be for *identity*.
        """
        query = (
            "select 1 from tasks join peers using (process) where state = ? and divided = 0 and "
            "identity = ? and "
            "(select max(rowid) from events where task = tasks.id and what = 'taken') > "
            "(select max(rowid) from events where task = ? and what = ? and who = ?) and "
            "not exists (select 1 from asks join tasks as below on below.id = asks.task "
            "where asks.asker = tasks.id and below.state in (?, ?)) limit 1"
        )
        values = RUNNING, identity, failed, FAILED, identity, WAITING, RUNNING
        return db.execute(query, values).fetchone() is not None

    # -- what a task may use

    def allot(self, task_id: str, parts: list, decides: bool, limits: list):
        """Share what a task may use among *parts*: ``reserve.allot``."""
        with _Change(self, wakes=False, lasts=False) as db:
            reserve.allot(db, task_id, self.process, parts, decides, limits)

    def hold(self, task_id: str, amounts: list, limits: list) -> bool:
        """Reserve [tokens, nano-dollars] for a request that is about to be sent for a task; return
        False when *limits* do not admit it, or this process is not at the task any more.
        """
        with _Change(self, wakes=False, lasts=False) as db:
            row = (task_id, RUNNING, self.process)
            if not db.execute("select 1 " + DONE_HERE, row).fetchone():
                return False
            return reserve.hold(db, task_id, self.process, amounts, limits)

    def use(self, task_id: str, tokens: int, nano: int):
        """Count *tokens* and *nano* dollars of a task or of one of its parts: what its request had
        reserved is not any more.
        """
        with _Change(self, wakes=False) as db:
            reserve.use(db, task_id, self.process, tokens, nano)

    def begins(self, task_id: str) -> bool:
        """What follows may have side effects: should this process end, a person decides.  Return
        False when this process is not at the task any more: nothing may follow.
        """
        with _Change(self, wakes=False) as db:
            return bool(
                db.execute(
                    "update tasks set began = 1 where id = ? and state = ? and process = ?",
                    (task_id, RUNNING, self.process),
                ).rowcount
            )

    def release(self, task_id: str):
        """Give a task back that has done nothing yet: this process ends in order."""
        with _Change(self) as db:
            was_here = db.execute(
                "update tasks set state = ?, process = '', tries = tries - 1 where id = ? and "
                "state = ? and process = ? and began = 0",
                (WAITING, task_id, RUNNING, self.process),
            ).rowcount
            if was_here:
                self._waits_no_longer(db, task_id)

    def reclaim(self, retries, keeps_dead: bool) -> list:
        """Take back what processes that have ended were at; return [(id, state, why), ...] of it.

        retries  as ``Swarm.retries``
        A task that may have had side effects is never begun again by itself.
        """
        most, each, able = retries if isinstance(retries, (list, tuple)) else (retries, None, ())
        gone = self.find_gone()
        if not gone:
            return []
        found = []
        with _Change(self) as db:
            for process in gone:
                for task_id, began, tries in db.execute(
                    "select id, began, tries from tasks where state = ? and process = ?",
                    (RUNNING, process),
                ).fetchall():
                    state, why = WAITING, "its process ended"
                    if began:
                        state = DEAD
                        why = "its process ended while a tool ran: what it did is not known"
                    elif tries > most:
                        state, why = DEAD, "its process ended, %d times in all" % tries
                    elif each is not None and not self._others(task_id, each, able):
                        state = DEAD
                        why = "its process ended, as often as each agent may begin it again"
                    found.append((task_id, state, why))
                    self._set(task_id, state, why, keeps_dead)
                db.execute("delete from peers where process = ?", (process,))
        return found

    def _others(self, task_id: str, each: int, able) -> bool:
        """Count that who had a task has ended; return whether an agent may begin it again."""
        db = self._db
        (had,) = db.execute(
            "select who from events where task = ? and what = 'taken' order by rowid desc limit 1",
            (task_id,),
        ).fetchone()
        db.execute(
            "insert into tries values (?, ?, 1, 1 > ?) on conflict do update "
            "set times = times + 1, is_over = times + 1 > ?",
            (task_id, had, each, each),
        )
        (recipient,) = db.execute("select recipient from tasks where id = ?", (task_id,)).fetchone()
        over = db.execute("select identity from tries where task = ? and is_over", (task_id,))
        return bool(set([recipient] if recipient else able).difference(row[0] for row in over))

    def expire(self, timeout_ms: int, keeps_dead: bool) -> list:
        """Give up what waited longer than *timeout_ms*; return [(id, state, why), ...] of it.

        Who divides a task sees to its parts.
        """
        if not self.late(timeout_ms):
            return []
        why = "nobody took it within %d ms" % timeout_ms
        with _Change(self):
            found = [(task_id, DEAD, why) for task_id in self.late(timeout_ms)]
            for task_id, state, _ in found:
                self._set(task_id, state, why, keeps_dead)
        return found

    def withdraw(self, task_id: str):
        """Take back a task that nobody has taken; one that somebody is at goes on."""
        with _Change(self) as db:
            changed = db.execute(
                "update tasks set state = ? where id = ? and state = ?", (FAILED, task_id, WAITING)
            ).rowcount
            if changed:
                reserve.give_back(db, task_id)
                self._event(task_id, "withdrawn", "its sender")

    def again(self, task_id: str) -> bool:
        """Let a task that was given up begin again as if for the first time, and with it its parts
        that have no answer.  If a turn delegated it, it becomes a task of its own: that turn has
        ended.  Return False when it is not given up; its report may have come meanwhile.
        """
        with _Change(self) as db:
            if not self._is_dead(db, task_id):
                return False
            if db.execute("delete from accounts where task = ?", (task_id,)).rowcount:
                db.execute(
                    _PARTS_OF + "update tasks set root = ? where id in those", (task_id,) * 2
                )
            db.execute(
                _PARTS_OF
                + "update tasks set state = ?, began = 0, tries = 0, divided = 0, report = null, "
                "created_ms = ? where id in those and (id = ? or state in (?, ?))",
                (task_id, WAITING, self._wall_ms(), task_id, DEAD, FAILED),
            )
            db.execute(
                "delete from tries where exists (select 1 from tasks where id = task and tries = 0)"
            )
            begun = _PARTS_OF + "select id from those join tasks using (id) where tries = 0"
            for (one,) in db.execute(begun, (task_id,)).fetchall():
                self._waits_no_longer(db, one)
            self._event(task_id, "delegated again", "a person")
        return True

    def _is_dead(self, db, task_id: str) -> bool:
        row = db.execute("select state from tasks where id = ?", (task_id,)).fetchone()
        return row == (DEAD,)

    def drop(self, task_id: str) -> bool:
        """Let a task that was given up count as failed.  Return False when it is not given up."""
        with _Change(self) as db:
            if not self._is_dead(db, task_id):
                return False
            db.execute("update tasks set state = ? where id = ?", (FAILED, task_id))
            self._event(task_id, _DROPPED, "a person")
        return True

    def stop(self, who: str):
        """From now on, tools with side effects are refused in the whole swarm, until ``resume``."""
        self._set_stopped(True, who)

    def resume(self, who: str):
        """Tools with side effects may run again."""
        self._set_stopped(False, who)

    def _set_stopped(self, wanted: bool, who: str):
        with _Change(self) as db:
            if bool(read_stop(db)) != wanted:
                self._event(WHOLE, STOPPED if wanted else RESUMED, who)

    def is_known(self) -> bool:
        """Return whether what is read here is what the others have written, as far as that can be
        known now.
        """
        return True

    def wall_ms(self) -> int:
        return self._wall_ms()

    def wait(self, later=None):
        """Return the value that *later* brings: here everything is there at once."""
        return later

    def deadline(self):
        """Return the monotonic time at which ``receive`` has something to do of itself, or None."""
        return None

    # -- below

    def _set(self, task_id: str, state: str, why: str, keeps_dead: bool):
        number = None
        if state == DEAD:
            row = (task_id, self._wall_ms(), "", FAILED, dumps({"error": why}), None, None)
            number = self._db.execute(
                "insert into reports values (?, ?, ?, ?, ?, ?, ?)", row
            ).lastrowid
            state = DEAD if keeps_dead else FAILED
            self._db.execute(
                "update tasks set state = ? where parent = ? and state = ?",
                (FAILED, task_id, WAITING),
            )
        self._db.execute(
            "update tasks set state = ?, process = '', divided = 0, report = ? where id = ?",
            (state, number, task_id),
        )
        reserve.give_back(self._db, task_id)
        self._waits_no_longer(self._db, task_id)
        self._event(task_id, state, why)

    def _event(self, task_id: str, what: str, who: str):
        row = (task_id, self._wall_ms(), what, who)
        self._db.execute("insert into events values (?, ?, ?, ?)", row)

    def read(self, act, *values):
        self._sure()
        try:
            return act(self._db, *values)
        except sqlite3.Error as e:
            raise _unusable(self._folder, e) from None

    def _path(self, process: str) -> str:
        return os.path.join(self._folder, host_of(process) + _FIFO)

    def which_are_there(self, processes: list) -> set:
        own, processes = host_of(self.process), list(filter(is_process, processes))
        hosts = {host_of(one) for one in processes}
        hosts = {host for host in hosts if host == own or self._poke(host, b"")}
        found = {one for one in processes if host_of(one) in hosts}
        if found - hosts:  # members of one process
            found &= hosts | {row[0] for row in self._rows("select process from peers")}
        return found

    def _poke(self, process: str, data: bytes) -> bool:
        """Write *data* into the FIFO of *process*; return whether somebody reads it."""
        if not self._folder or not is_process(process):
            return False
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(self._path(process), flags)
        except OSError as e:
            if e.errno == errno.ENXIO:
                try:
                    os.unlink(self._path(process))
                except OSError:
                    pass
            return e.errno not in (errno.ENXIO, errno.ENOENT)
        try:
            if not stat.S_ISFIFO(os.fstat(fd).st_mode):
                return False
            if data:
                os.write(fd, data)
        except BlockingIOError:  # it is full: that process will wake anyway
            pass
        except BrokenPipeError:  # it has ended meanwhile
            return False
        finally:
            os.close(fd)
        return True

    def _wake_all(self):
        """Wake all who are there, this process too."""
        self._news = True
        if not self._folder:
            return
        try:
            names = os.listdir(self._folder)
        except OSError:  # it was removed meanwhile: nobody waits there
            return
        own = host_of(self.process) + _FIFO
        for name in names:
            if name.endswith(_FIFO) and name != own:
                self._poke(name[: -len(_FIFO)], b"!")


class TooLong(ClawError):
    """The bus takes nothing of this size, now or later."""


def check_size(size: int, most: int | None = None):
    """Raises ``TooLong`` for a task, a report or a broadcast of *size* bytes.

    most  bytes that the engine takes, None where it takes ``MAX_ENTRY``
    """
    if size <= min(MAX_ENTRY, most or MAX_ENTRY):
        return
    if size > MAX_ENTRY:
        raise TooLong(
            "a task or a report of a swarm has at most %d bytes, got %d" % (MAX_ENTRY, size),
            "put long texts into a file, and send its path",
        )
    raise TooLong(
        "the swarm's engine takes a task or a report of at most %s bytes, got %d" % (most, size),
        "let it take more (max_payload of NATS), or put long texts into a file, and send its path",
    )


class Taken:
    """A task that a process has taken.

    id, description, data, sender   as in ``swarm.Task``; parent: the id of the task whose part it
                                    is, or ""
    root        id of the task that somebody gave to the swarm, of which this is a part of a part
    created_ms  when it was delegated, ms since 1970;  root_ms: when root was
    """

    def __init__(
        self, id: str, description: str, text: str, sender: str, parent, root, created_ms, root_ms
    ):
        self.id, self.description, self.sender = id, description, sender
        self.data = loads(text.encode())
        self.parent, self.root, self.created_ms = parent, root, created_ms
        self.root_ms = created_ms if root_ms is None else root_ms


class _Change:
    """One transaction.

    wakes  the others are woken when it is there;  lasts  it outlives a power cut
    """

    def __init__(self, bus: Bus, wakes: bool = True, lasts: bool = True):
        self._bus, self._wakes, self._lasts = bus, wakes, lasts

    def __enter__(self):
        bus = self._bus
        bus._sure()
        try:
            if bus._turn >= 0:
                _lock(bus._turn)
            bus._db.execute("pragma synchronous = %s" % ("full" if self._lasts else "normal"))
            bus._db.execute("begin immediate")
        except (OSError, sqlite3.Error) as e:
            self._unlock()
            raise _unusable(bus._folder, e) from None
        return bus._db

    def __exit__(self, kind, error, _):
        db = self._bus._db
        try:
            db.execute("rollback" if error else "commit")
        except sqlite3.Error as e:
            if error is None:
                error = e
        if isinstance(error, sqlite3.Error) and db.in_transaction:
            db.execute("rollback")
        self._unlock()
        if isinstance(error, (TypeError, OverflowError)):  # of a row that no version wrote
            error = sqlite3.DatabaseError(_NOT_SOUND)
        if isinstance(error, sqlite3.Error):
            raise _unusable(self._bus._folder, error) from None
        if error is None and self._wakes:
            self._bus._wake_all()

    def _unlock(self):
        if self._bus._turn >= 0:
            fcntl.flock(self._bus._turn, fcntl.LOCK_UN)


def _normalise(row: tuple) -> tuple:
    """Return (description, input) of a *row*, with the keys of the input, JSON, in one order."""
    try:
        return row[0], canonical(loads(row[1].encode()))
    except (ClawError, AttributeError):  # nested too deep: such an input is compared as it is
        return row[:2]


def _is_sound(row: tuple) -> bool:
    """Return whether *row* can be a ``Taken``: others write to the file, too."""
    *texts, created_ms, root_ms = row
    times = isinstance(created_ms, int) and isinstance(root_ms, int | None)
    return (
        times and all(isinstance(text, str) for text in texts) and read_json(row[2]) is not UNREAD
    )


def check_tables(db):
    """Raises ``sqlite3.DatabaseError``: *db* has more than tables, which would run with each change
    or read, for ever if somebody likes.
    """
    if db.execute("select 1 from sqlite_master where type in ('trigger', 'view')").fetchone():
        raise sqlite3.DatabaseError("it has triggers or views")


def _lock(turn: int):
    """Lock the folder that *turn* is open for.  Raises ``OSError``: another process keeps it for
    longer than any change takes, because it was stopped, say.
    """
    until, pause_s = time.monotonic() + BUSY_S, 0.0001
    while True:
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise TimeoutError(errno.EAGAIN, _LOCKED % BUSY_S) from None
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.001)


def _unusable(folder, e: Exception) -> ClawError:
    said = e.strerror if isinstance(e, OSError) else str(e)
    hint = "look at the folder: it must be writable, and its disk must have room"
    if type(e) is sqlite3.DatabaseError:  # what its subclasses say is of the disk, or of a lock
        hint = "stop all agents of the swarm, and move %s away: it is made anew" % FILE
    if isinstance(e, TimeoutError):
        hint = "find that process (fuser -v %s), and end it" % folder
    return ClawError("the swarm's file in %s cannot be used: %s" % (folder or "memory", said), hint)
