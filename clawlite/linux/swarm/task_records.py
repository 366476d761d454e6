"""What the tables of a swarm's bus say, whoever reads them: a process with the file, one that has
an engine's log in memory, or a member that shares either with others.

Everything is read in one statement, or in one transaction.  What another program wrote as something
else is the empty text, 0 or None.
"""

from abc import ABC, abstractmethod

from clawlite.core.base.errors import ClawError
from clawlite.linux.io.jsontext import loads
from clawlite.linux.swarm import reserve
from clawlite.protocols.swarm.deadlock import Open, Peer, WaitGraph
from clawlite.protocols.swarm.swarm import FAILED, RUNNING, WAITING

# the events of no task are those of the whole swarm; the last one says whether it is stopped
WHOLE, STOPPED, RESUMED = "", "stopped", "resumed"
TAKABLE = (
    "from tasks where state = ? and (recipient = ? or recipient = '' and ?) and "
    "(? is null or (parent != '') = ?) and not exists (select 1 from tries where task = tasks.id "
    "and identity = ? and is_over) order by created_ms, rowid limit 1"
)
DONE_HERE = "from tasks where id = ? and state = ? and process = ?"
UNREAD = object()
_NOTHING: dict = {str: "", int: 0}


class TaskRecords(ABC):
    """The tables of one swarm, as one process reads them.

    process  id of this process, or of the member that it speaks for
    What raises, raises ``ClawError``: the tables cannot be read.
    """

    process: str
    # the tables, and the row of the last report in them that ``new_reports`` gave
    _reported: tuple = (None, 0)

    @abstractmethod
    def read(self, act, *values):
        """Return what *act*, a function(connection of SQLite, *values), returns."""

    @abstractmethod
    def which_are_there(self, processes: list) -> set:
        """Return those of *processes* that have not ended."""

    @abstractmethod
    def wall_ms(self) -> int:
        """Return the time by which tasks are judged, ms since 1970."""

    def _rows(self, query: str, *values) -> list:
        return self.read(_select, query, values)

    # -- tasks

    def tasks(self, most: int) -> list:
        """Return the last *most* tasks, the newest first: [(id, description, state, sender, tries,
        created ms), ...].
        """
        rows = self._rows(
            "select id, description, state, sender, tries, created_ms from tasks "
            "order by created_ms desc, rowid desc limit ?",
            most,
        )
        return [keep_kinds(row, str, str, str, str, int, int) for row in rows]

    def page(self, states: list, before, most: int, sender=None) -> list:
        """Return the *most* newest tasks in one of *states* that are older than the number
        *before* (None: all), of *sender* or of all: [(number, id, state, created ms), ...].
        """
        marks = ", ".join("?" * len(states))
        rows = self._rows(
            "select rowid, id, state, created_ms from tasks where (? is null or rowid < ?) and "
            "(? is null or sender = ?) and state in (%s) order by rowid desc limit ?" % marks,
            before,
            before,
            sender,
            sender,
            *states,
            most,
        )
        return [keep_kinds(row, int, str, str, int) for row in rows]

    def count(self, states: tuple, sender=None) -> int:
        """Return how many tasks are in one of *states*, of *sender* or of all."""
        query = "select count(*) from tasks where state in (%s)" % ", ".join("?" * len(states))
        if sender is None:
            return self._rows(query, *states)[0][0]
        return self._rows(query + " and sender = ?", *states, sender)[0][0]

    def state(self, task_id: str):
        """Return the state of a task, None of an unknown one."""
        rows = self._rows("select state from tasks where id = ?", task_id)
        return rows[0][0] if rows else None

    def sender(self, task_id: str):
        """Return who gave a task, None of an unknown one."""
        rows = self._rows("select sender from tasks where id = ?", task_id)
        return rows[0][0] if rows else None

    def outcome(self, task_id: str):
        """Return (by, status, result, tokens, duration ms) of the report that ended a task, or
        None.
        """
        rows = self._rows(
            "select who, status, result, tokens, duration_ms from reports "
            "where rowid = (select report from tasks where id = ?)",
            task_id,
        )
        return _report(rows[0]) if rows else None

    def history(self, task_id: str) -> tuple:
        """Return ([(ms, what, who), ...], [(ms, who, status, result, tokens, duration ms), ...],
        state) of a task: its events, its reports, and what ``state`` says, all of one moment.
        """
        events, reports, state = self.read(_read_history, task_id)
        return (
            [keep_kinds(row, int, str, str) for row in events],
            [(*keep_kinds((at_ms,), int), *_report(row)) for at_ms, *row in reports],
            state and state[0],
        )

    def new_reports(self) -> list:
        """Return the ids of the tasks that got a report since the last call."""
        found, self._reported = self.read(_read_new_reports, *self._reported)
        return found

    # -- who does them

    def holds(self, task_id: str) -> bool:
        """Return whether this process is at a task."""
        return bool(self._rows("select 1 " + DONE_HERE, task_id, RUNNING, self.process))

    def holdings(self) -> dict:
        """Return {process: {id of a task that it is at, ...}} of all processes."""
        found: dict = {}
        query = "select process, id from tasks where state = ?"
        for process, task_id in self._rows(query, RUNNING):
            found.setdefault(process, set()).add(task_id)
        return found

    def waiting(self) -> dict:
        """Return {identity, or "" for whoever is free: how many tasks wait for it}."""
        query = "select recipient, count(*) from tasks where state = ? group by recipient"
        return dict(self._rows(query, WAITING))

    def waits(self, identity: str, any_of: bool, part=None) -> bool:
        """Return whether a task waits that ``take`` with these values may give."""
        values = WAITING, identity, any_of, part, part, identity
        return bool(self._rows("select 1 " + TAKABLE, *values))

    def is_open(self) -> bool:
        """Return whether a task waits, or another process is at one."""
        rows = self._rows(
            "select 1 from tasks where state = ? or state = ? and process != ? limit 1",
            WAITING,
            RUNNING,
            self.process,
        )
        return bool(rows)

    def late(self, timeout_ms: int) -> list:
        """Return the ids of what waited longer than *timeout_ms*, parts not counted."""
        rows = self._rows(
            "select id from tasks where state = ? and created_ms <= ? and parent = ''",
            WAITING,
            self.wall_ms() - timeout_ms,
        )
        return [row[0] for row in rows]

    def find_gone(self) -> list:
        """Return the processes that have ended and were at a task."""
        rows = self._rows("select distinct process from tasks where state = ?", RUNNING)
        held = [process for (process,) in rows]
        there = self.which_are_there(held)
        return [process for process in held if process not in there]

    def why_stuck(self, task_id: str, swarm) -> str:
        """Return why the task, for which a turn of this process waits, can never be done, or ""."""
        open_tasks = self._rows(
            "select id, state, process, recipient, parent, divided, coalesce(asker, '') from tasks "
            "left join asks on task = id where state = ? or state = ? and (parent != '' or "
            "asker is not null) order by tasks.rowid",
            RUNNING,
            WAITING,
        )
        rows = self._rows("select process, identity, at_once from peers")
        peers = [Peer(*row) for row in rows]
        there = self.which_are_there([peer.process for peer in peers])
        peers = [peer for peer in peers if peer.process in there]
        return WaitGraph([Open(*row) for row in open_tasks], peers, swarm).why_refused(task_id)

    def budget(self, task_id: str) -> list:
        """Return what a task that is done here may use: ``reserve.budget``."""
        return self.read(reserve.budget, task_id, self.process)

    # -- the swarm

    def present(self) -> dict:
        """Return {identity: [is free, ...]} of the processes that are there."""
        found, peers = {}, self._rows("select process, identity, at_once from peers")
        there = self.which_are_there([process for process, _, _ in peers])
        runs = dict(
            self._rows(
                "select process, count(*) from tasks where state = ? and divided = 0 "
                "group by process",
                RUNNING,
            )
        )
        for process, identity, at_once in peers:
            if process in there and isinstance(at_once, int):
                found.setdefault(identity, []).append(runs.get(process, 0) < at_once)
        return found

    def there(self, swarm) -> tuple:
        """Return (``present()``, the identities that take nothing for now because their last tasks
        have failed): what ``Swarm.statuses`` asks.
        """
        paused = [
            one.identity
            for one in swarm.members
            if swarm.breaker and self.pause_ms(one.identity, swarm.breaker)
        ]
        return self.present(), paused

    def pause_ms(self, identity: str, breaker) -> int:
        """Return for how long *identity* takes nothing, because its last tasks have failed: ms, 0
        when it does.
        """
        failed = self.read(find_last_failure, identity, breaker) if breaker else None
        return max(0, failed.at_ms + breaker[1] - self.wall_ms()) if failed else 0

    def list_declared(self) -> list:
        """Return [(process, identity, what it has declared), ...]."""
        return self._rows(
            "select peers.process, identity, terms from declared join peers using (process)"
        )

    def find_stop(self):
        """Return (who, ms since 1970) of a stop that holds, or None."""
        return self.read(read_stop)


def _select(db, query: str, values: tuple) -> list:
    return db.execute(query, values).fetchall()


def _read_history(db, task_id: str) -> tuple:
    db.execute("begin")  # else a report could come between what is read
    try:
        return (
            db.execute(
                "select at_ms, what, who from events where task = ? order by rowid", (task_id,)
            ).fetchall(),
            db.execute(
                "select at_ms, who, status, result, tokens, duration_ms from reports "
                "where task = ? order by rowid",
                (task_id,),
            ).fetchall(),
            db.execute("select state from tasks where id = ?", (task_id,)).fetchone(),
        )
    finally:
        db.execute("rollback")


def _read_new_reports(db, seen_db, seen: int) -> tuple:
    after = seen if seen_db is db else 0  # the file was made anew
    query = "select rowid, task from reports where rowid > ?"
    rows = db.execute(query, (after,)).fetchall()
    return [task_id for _, task_id in rows], (db, rows[-1][0] if rows else after)


def read_stop(db):
    """Return (who, ms since 1970) of a stop that holds, or None."""
    what, *of = db.execute(
        "select what, who, at_ms from events where task = ? order by rowid desc limit 1",
        (WHOLE,),
    ).fetchone() or (RESUMED,)
    return keep_kinds(of, str, int) if what == STOPPED else None


def find_last_failure(db, identity: str, breaker):
    """Return the last failure of *identity*, a ``_Failure``, if as many tasks in a row failed as
    *breaker* says; else None.
    """
    failures, _ = breaker
    rows = db.execute(
        "select status, task, at_ms from reports where who = ? and not exists "
        "(select 1 from tasks where parent = task) order by at_ms desc, rowid desc limit ?",
        (identity, failures),
    ).fetchall()
    if len(rows) < failures or any(status != FAILED for status, _, _ in rows):
        return None
    return _Failure(*rows[0][1:])


class _Failure:
    """The last task of an agent, which failed at *at_ms* since 1970."""

    def __init__(self, task: str, at_ms: int):
        self.task, self.at_ms = task, at_ms


def read_json(text):
    """Return the JSON value that *text* of the file has, or ``UNREAD``."""
    try:
        return loads(text.encode())
    except (ClawError, AttributeError):
        return UNREAD


def _result(text):
    """Return the result of a report."""
    value = read_json(text)
    return {"error": "it cannot be read"} if value is UNREAD else value


def _report(row) -> tuple:
    """Return (by, status, result, tokens, duration ms) of a *row* that has the same columns."""
    by, status, result, *counts = row
    numbers = int | None, int | None
    return (*keep_kinds((by, status), str, str), _result(result), *keep_kinds(counts, *numbers))


def keep_kinds(row, *kinds) -> tuple:
    """Return the values of *row*, each of its kind: one that another program wrote as something
    else is the empty text, 0 or None.
    """
    return tuple(
        value if isinstance(value, kind) else _NOTHING.get(kind)
        for value, kind in zip(row, kinds, strict=True)
    )
