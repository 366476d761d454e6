"""What a gateway keeps, in one SQLite file: the fleet, what each device has spent, what it asked
and was told, what model servers refuse, and what happened.

Everything is read once, at the start, and written as it changes; the file is the truth after a
restart.  Keys are in none of it."""

import asyncio
import errno
import json
import os
import sqlite3
import time

from clawlite.core.base.errors import ClawError
from clawlite.core.providers.refusal import fresh
from clawlite.host.base.problems import disk_hint
from clawlite.host.base.regular_file import make_private

KEPT_ROWS = 10000  # of history and of audit, each; older ones go
GATHER_S = 0.005  # within which rows are gathered for one commit
_EACH = 256  # rows between two looks at that
_TABLES = """
CREATE TABLE IF NOT EXISTS devices (name TEXT PRIMARY KEY, agent TEXT, image TEXT, first_s INTEGER, last_s INTEGER);
CREATE TABLE IF NOT EXISTS spent (device TEXT, agent TEXT, meters TEXT, PRIMARY KEY (device, agent));
CREATE TABLE IF NOT EXISTS history (id INTEGER PRIMARY KEY, time_s INTEGER, device TEXT, agent TEXT, provider TEXT, request TEXT,
                                    asked TEXT, said TEXT, outcome TEXT, model TEXT, usage TEXT, tool_trace TEXT);
CREATE TABLE IF NOT EXISTS hidden (id INTEGER PRIMARY KEY, runner TEXT, anchor TEXT, asked TEXT, messages TEXT);
CREATE TABLE IF NOT EXISTS dialects (place TEXT PRIMARY KEY, time_s INTEGER, changes TEXT);
CREATE TABLE IF NOT EXISTS audit (id INTEGER PRIMARY KEY, time_s INTEGER, device TEXT, event TEXT, detail TEXT);
"""  # noqa: E501
_LATER = ("model", "usage", "tool_trace")  # columns of history that older files lack
MAX_HIDDEN = 128  # rows of one runner's hidden rounds
MAX_DIALECTS = 256  # servers and models


class Dialects:
    """What requests to model servers have otherwise (core/providers/refusal.py), for all devices
    and runners.

    rows  [(place, time in s, changes as JSON), ...] that were kept
    keep  function(place, time in s, changes as JSON, number of places that stay): such a row lasts
    """

    def __init__(self, rows=(), keep=None, now_s=time.time):
        self._keep, self._now_s = keep, now_s
        found = {}
        for place, then_s, changes in rows:
            try:
                found[place] = [then_s, json.loads(changes)]
            except (ValueError, RecursionError, TypeError):
                pass
        self._known = found

    def of(self, place: str) -> list:
        """Return the changes known for *place* ("address model"), [[field, instead], ...]."""
        return fresh(self._known, int(self._now_s())).get(place, (0, []))[1]

    def learn(self, place: str, changes: list) -> None:
        """Keep *changes* for *place*, in place of what was known."""
        now = int(self._now_s())
        self._known.pop(place, None)
        self._known[place] = [now, changes]
        while len(self._known) > MAX_DIALECTS:
            self._known.pop(next(iter(self._known)))
        if self._keep:
            self._keep(place, now, json.dumps(changes), MAX_DIALECTS)


class Store:
    """An open store; ``open`` makes one.  What cannot be written is told once, and counts until
    the process ends.
    """

    def __init__(self, db, spent: dict, note, hidden=(), dialects=()):
        self._db, self._spent, self._note = db, spent, note
        self.dialects = Dialects(dialects, self._note_dialect)
        self.hidden = hidden  # (runner, anchor, asked, messages) of rounds that runners never saw
        self._is_broken = False
        self._tasks = set()
        self._waiting = []  # (table, statement, values) that are not in the file yet
        self._is_gathering, self._is_closing = False, asyncio.Event()
        self._writing = asyncio.Lock()  # two commits in one another would mix their orders
        self._written = self._failures = 0

    @classmethod
    async def open(cls, path: str, note):
        """Return the store in the file *path*, made when it is not there.  Raises ``ClawError``.

        note  function(text) for who runs the gateway
        """
        import aiosqlite

        try:
            make_private(os.path.dirname(path))
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            db = await aiosqlite.connect(path)
            await db.executescript(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;" + _TABLES
            )
            known = [row[1] for row in await db.execute_fetchall("PRAGMA table_info(history)")]
            for name in _LATER:
                if name not in known:
                    await db.execute(f"ALTER TABLE history ADD COLUMN {name} TEXT")
            rows = await db.execute_fetchall("SELECT device, agent, meters FROM spent")
            hidden = await db.execute_fetchall(
                "SELECT runner, anchor, asked, messages FROM hidden ORDER BY id"
            )
            dialects = await db.execute_fetchall(
                "SELECT place, time_s, changes FROM dialects ORDER BY time_s"
            )
        except (OSError, aiosqlite.Error) as e:
            raise ClawError(f"{path}: {e}", _mend(e)) from None
        return cls(
            db,
            {(device, agent): json.loads(meters) for device, agent, meters in rows},
            note,
            hidden,
            dialects,
        )

    def meters(self, device: str, agent: str) -> dict:
        """Return what *device* has used as *agent*, to be changed by ``core.ledger.count_use``."""
        return self._spent.setdefault((device, agent), {})

    async def spend(self, device: str, agent: str, meters: dict) -> None:
        """Keep *meters*; they are in the file when this returns."""
        self._spent[device, agent] = meters
        statement = (
            "INSERT INTO spent VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET meters = excluded.meters"
        )
        await self._write([(statement, [(device, agent, json.dumps(meters))])])

    def note_device(self, device: str, agent: str, image: str) -> None:
        """Note that *device* is here, and runs *image*."""
        now = int(time.time())
        self._later(
            "devices",
            "INSERT INTO devices VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET agent = "
            "excluded.agent, image = excluded.image, "
            "last_s = excluded.last_s",
            (device, agent, image, now, now),
        )

    def note_request(
        self,
        device: str,
        agent: str,
        provider: str,
        request: str,
        asked: str,
        said: str,
        outcome: str,
        model: str = None,
        usage: dict = None,
        tool_trace: list = None,
    ) -> None:
        """Keep one request and its answer; what is None of a device, a runner's requests have."""
        self._later(
            "history",
            "INSERT INTO history (time_s, device, agent, provider, request, asked, said, "
            "outcome, model, usage, tool_trace) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                int(time.time()),
                *(device, agent, provider, request, asked, said, outcome, model),
                usage and json.dumps(usage),
                None if tool_trace is None else json.dumps(tool_trace, ensure_ascii=False),
            ),
        )

    def hide(self, runner: str, anchor: str, asked: str, messages: str) -> None:
        """Keep rounds that *runner* never saw; of one runner the last MAX_HIDDEN stay."""
        self._later(
            "hidden",
            "INSERT INTO hidden (runner, anchor, asked, messages) VALUES (?, ?, ?, ?)",
            (runner, anchor, asked, messages),
        )
        self._later(
            "hidden",
            "DELETE FROM hidden WHERE runner = ? AND id <= (SELECT id FROM hidden WHERE runner = ? "
            "ORDER BY id DESC LIMIT 1 OFFSET ?)",
            (runner, runner, MAX_HIDDEN),
        )

    def unhide(self, runner: str, anchor: str) -> None:
        self._later(
            "hidden", "DELETE FROM hidden WHERE runner = ? AND anchor = ?", (runner, anchor)
        )

    def _note_dialect(self, place: str, now_s: int, changes: str, most: int) -> None:
        """Keep what requests to *place* have otherwise; the last *most* places stay."""
        self._later(
            "dialects",
            "INSERT INTO dialects VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET time_s = "
            "excluded.time_s, changes = excluded.changes",
            (place, now_s, changes),
        )
        self._later(
            "dialects",
            "DELETE FROM dialects WHERE place NOT IN (SELECT place FROM dialects ORDER BY time_s "
            "DESC LIMIT ?)",
            (most,),
        )

    async def flush(self) -> bool:
        """Return once all that waits is on the disk, where it outlives a power cut; False when some
        of it could not be written.  Cost: a sync of the disk, some milliseconds.
        """
        failures = self._failures  # another task may be writing what was kept just now
        waiting, self._waiting = self._waiting, []
        # who asks for this may be cancelled, and what waits belongs to others, too
        await asyncio.shield(self._start(self._write(_groups(waiting), is_synced=True)))
        return self._failures == failures

    def event(self, device: str, event: str, **detail) -> None:
        """Keep one event of the audit."""
        self._later(
            "audit",
            "INSERT INTO audit (time_s, device, event, detail) VALUES (?, ?, ?, ?)",
            (
                int(time.time()),
                device,
                event,
                json.dumps(detail, ensure_ascii=False, sort_keys=True),
            ),
        )

    async def close(self) -> None:
        """Write what waits, and close the file."""
        self._is_closing.set()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._db.close()

    def _later(self, table: str, statement: str, values: tuple) -> None:
        self._waiting.append((table, statement, tuple(map(_clean, values))))
        if not self._is_gathering:
            self._is_gathering = True
            self._start(self._write_gathered())

    def _start(self, coroutine) -> asyncio.Task:
        """Return *coroutine* as a task that ``close`` waits for."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)  # a task that nobody holds may be collected
        task.add_done_callback(self._tasks.discard)
        return task

    async def _write_gathered(self) -> None:
        """Write what comes within GATHER_S in one commit: each one of its own costs a request some
        milliseconds, for which two threads have the interpreter by turns.
        """
        try:
            while self._waiting:
                try:
                    await asyncio.wait_for(self._is_closing.wait(), GATHER_S)
                except TimeoutError:
                    pass
                waiting, self._waiting = self._waiting, []
                await self._write(_groups(waiting))
        finally:
            self._is_gathering = False

    async def _write(self, groups: list, is_synced: bool = False) -> None:
        """Carry out *groups*, [(statement, [values, ...]), ...], and commit; *is_synced*: a power
        cut after that loses none of it.
        """
        async with self._writing:
            try:
                if is_synced:
                    await self._db.commit()  # within a transaction this cannot be set
                    await self._db.execute("PRAGMA synchronous = FULL")
                await self._commit(groups)
                if is_synced:
                    await self._db.execute("PRAGMA synchronous = NORMAL")
                self._is_broken = False  # the next fault is told again
            except sqlite3.Error as e:
                self._failures += 1
                await self._undo()
                if not self._is_broken:
                    self._is_broken = True
                    self._note(f"gateway.db cannot be written: {e} - {_mend(e)}")

    async def _undo(self) -> None:
        """Take back what a failed commit has begun."""
        try:
            await self._db.rollback()
        except sqlite3.Error:  # the next one tells
            pass

    async def _commit(self, groups: list) -> None:
        for statement, rows in groups:
            await self._db.executemany(statement, rows)
            self._written += len(rows)
        if self._written >= _EACH:
            self._written = 0
            for table in ("history", "audit"):
                await self._db.execute(
                    f"DELETE FROM {table} WHERE id <= (SELECT max(id) FROM {table}) - {KEPT_ROWS}"
                )
        await self._db.commit()


def _clean(value):
    """Return *value*; a text without lone surrogates, which SQLite refuses with all of a commit."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _groups(waiting: list) -> list:
    """Return [(statement, [values, ...]), ...] of *waiting*: the order within a table stays."""
    groups: list = []
    last: dict = {}
    for table, statement, values in waiting:
        if table not in last or last[table][0] != statement:
            last[table] = (statement, [])
            groups.append(last[table])
        last[table][1].append(values)
    return groups


def _mend(e) -> str:
    """Return the next step after *e*, an ``OSError`` or an error of SQLite."""
    name = getattr(e, "sqlite_errorname", None) or ""
    if name in ("SQLITE_CORRUPT", "SQLITE_NOTADB"):
        return "move the file away to start empty, or restore a copy"
    if name.startswith("SQLITE_IOERR"):
        code = errno.EIO
    elif name == "SQLITE_FULL":
        code = errno.ENOSPC
    else:
        code = getattr(e, "errno", None)
    return disk_hint(code) or "make its folder and its file writable, or set $CLAWLITE_STATE"
