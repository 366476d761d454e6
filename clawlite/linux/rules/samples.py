"""The samples of readings: ``readings.db`` in the agent's state folder, SQLite.

    sample   reading, at_s, value         as it was read, for ``keep``
    hourly   reading, hour_s, least, mean, most, count      of numbers, for ``keep_hourly``
    edge     number, pin, at_s, level   of pins that rules begin with, for ``EDGES_S``
    life     number, start_s, set_s, seen_s, cut      when the agent began, with a set clock since
             set_s, when it was seen last, and [[rule, when], ...] of the runs that were cut before,
             for a rehearsal

Samples wait in memory and are written together, at most once in ``WRITE_S``: each commit wears a
card.  What a power cut takes is the last of them.  A file that cannot be written is reported once,
and rules go on with what is in memory.
"""

import os
from typing import Any

from clawlite.linux.files.files import own_file, print_to_stderr
from clawlite.linux.io.jsontext import dumps, loads

FILE = "readings.db"
EDGE = "="  # before the name of a pin, whose levels stand among the samples
WRITE_S = 30
EDGES_S = 7 * 86400
MOST_EDGES = 100000
MOST_WAITING = 10000
_HOUR = 3600
_TABLES = """
CREATE TABLE IF NOT EXISTS sample(
    reading TEXT NOT NULL, at_s INTEGER NOT NULL, value, PRIMARY KEY(reading, at_s)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS hourly(
    reading TEXT NOT NULL, hour_s INTEGER NOT NULL, least REAL, mean REAL, most REAL,
    count INTEGER, PRIMARY KEY(reading, hour_s)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS edge(
    number INTEGER PRIMARY KEY, pin TEXT NOT NULL, at_s INTEGER NOT NULL, level INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS life(
    number INTEGER PRIMARY KEY, start_s INTEGER NOT NULL, set_s INTEGER NOT NULL,
    seen_s INTEGER NOT NULL, cut TEXT NOT NULL);
"""


class Samples:
    """The samples of one agent.

    folder  its state folder, or None: nothing is kept
    keeps   {reading: (seconds for samples, seconds for hours)}
    """

    def __init__(self, folder, keeps: dict):
        self._path = os.path.join(folder, FILE) if folder else ""
        self._folder, self._keeps = folder, keeps
        self._connection: Any = None
        self._waiting, self._edges = [], []
        self._start: Any = None  # (when, since when the clock is set, cut runs) of this process
        self._life: Any = None  # the number of its row
        self._thinned_s = self._written_s = 0
        self._has_reported = False

    def add(self, name: str, at_s: int, value):
        """Take a sample."""
        if isinstance(value, bool):
            value = int(value)
        self._waiting.append((name, at_s, value))
        del self._waiting[:-MOST_WAITING]

    def add_edge(self, pin: str, at_s: int, level: int):
        """Take a level that a pin has from *at_s* on."""
        self._edges.append((pin, at_s, level))
        del self._edges[:-MOST_WAITING]

    def add_start(self, at_s: int, set_s: int, cut: list):
        """Take when the agent began; it is written with what comes after."""
        self._start, self._life = (at_s, set_s, cut), None

    def lives_since(self, from_s: int) -> list:
        """Return [[begun_s, seen_s, set_s, cut], ...] of the starts from *from_s* on; seen_s: when
        the agent was seen last before it.
        """
        rows = self._run(
            lambda db: db.execute(
                "SELECT start_s, coalesce((SELECT max(seen_s) FROM life AS a WHERE "
                "a.number < b.number), (SELECT max(at_s) FROM sample WHERE at_s < start_s), 0), "
                "set_s, cut FROM life AS b WHERE start_s >= ? ORDER BY number",
                (from_s,),
            )
        )
        return [[*row[:3], loads(row[3].encode())] for row in rows or ()]

    def edges_since(self, from_s: int) -> list:
        """Return [(at_s, pin, level), ...] from *from_s* on, in their order."""
        rows = self._run(
            lambda db: db.execute(
                "SELECT at_s, pin, level FROM edge WHERE at_s >= ? ORDER BY number", (from_s,)
            )
        )
        return list(rows or ())

    def spread_edges(self, from_s: int) -> list:
        """Return [(at_ms, pin, level), ...] from *from_s* on; those of one second lie in it, one
        after the other.
        """
        return spread(self.edges_since(from_s))

    def exists(self) -> bool:
        """Return whether an earlier process has kept samples."""
        return bool(self._path) and os.path.exists(self._path)

    def latest(self) -> dict:
        """Return {reading: (at_s, value)} of what an earlier process has kept."""
        if not self.exists():
            return {}
        rows = self._run(
            lambda db: db.execute("SELECT reading, max(at_s), value FROM sample GROUP BY reading")
        )
        return {name: (at_s, value) for name, at_s, value in rows or ()}

    def since(self, from_s: int) -> list:
        """Return [(at_s, reading, value), ...] from *from_s* on, the earliest first."""
        rows = self._run(
            lambda db: db.execute(
                "SELECT at_s, reading, value FROM sample WHERE at_s >= ? ORDER BY at_s, reading",
                (from_s,),
            )
        )
        kept = [(at_s, name, value) for name, at_s, value in self._waiting if at_s >= from_s]
        return sorted(list(rows or ()) + kept, key=lambda row: row[:2])

    def spread(self, name: str, from_s: int, to_s: int, points: int) -> list:
        """Return about *points* [(at_s, value), ...] of a reading, the earliest first: of each part
        of the time the least and the most, and before the first sample the means of hours.
        """
        if not self.exists() and not self._waiting:
            return []
        width_s = max(1, 2 * (to_s - from_s) // points)
        part = "value IS NOT NULL GROUP BY (at_s - ?) / ?"
        query = "SELECT at_s, %%s(value) FROM sample WHERE reading = ? AND at_s >= ? AND %s" % part
        bounds = name, from_s, from_s, width_s
        rows = self._run(
            lambda db: [row for how in ("min", "max") for row in db.execute(query % how, bounds)]
        )
        kept = [(at_s, value) for one, at_s, value in self._waiting if one == name]
        found = {*(rows or ()), *(row for row in kept if row[0] >= from_s)}
        first_s = min([at_s for at_s, _ in found], default=to_s)
        hours = self._run(
            lambda db: db.execute(
                "SELECT hour_s, mean FROM hourly WHERE reading = ? AND hour_s >= ? AND hour_s < ?",
                (name, from_s, first_s - _HOUR),
            )
        )
        return sorted([*(hours or ()), *found], key=lambda row: row[0])

    def write(self, now_s: int, at_once: bool = False):
        """Write what waits, when it has waited for long enough, and thin out what is old."""
        is_early = 0 <= now_s - self._written_s < WRITE_S
        waits = self._waiting or self._edges or at_once and self._start
        if not waits or not self._path or is_early and not at_once:
            return
        self._written_s = now_s
        rows, edges, hour_s = self._waiting, self._edges, now_s - now_s % _HOUR

        def change(db):
            db.executemany("INSERT OR REPLACE INTO sample VALUES(?, ?, ?)", rows)
            db.executemany("INSERT INTO edge(pin, at_s, level) VALUES(?, ?, ?)", edges)
            self._note_life(db, now_s)
            if hour_s != self._thinned_s:
                db.execute("DELETE FROM edge WHERE at_s < ?", (now_s - EDGES_S,))
                db.execute(
                    "DELETE FROM edge WHERE number <= (SELECT max(number) FROM edge) - ?",
                    (MOST_EDGES,),
                )
                longest_s = max([EDGES_S, *(keep_s for keep_s, _ in self._keeps.values())])
                db.execute("DELETE FROM life WHERE seen_s < ?", (now_s - longest_s,))
                self._thin(db, now_s, hour_s)
            db.commit()
            return ()

        if self._run(change) is not None:
            self._waiting, self._edges, self._thinned_s = [], [], hour_s

    def _note_life(self, db, now_s: int):
        """Put on record that the agent is seen now, and once when it began."""
        if self._life is None and self._start:
            at_s, set_s, cut = self._start
            row = at_s, set_s, now_s, dumps(cut)
            made = db.execute("INSERT INTO life(start_s, set_s, seen_s, cut) VALUES(?,?,?,?)", row)
            self._life = made.lastrowid
        elif self._life is not None:
            db.execute("UPDATE life SET seen_s = ? WHERE number = ?", (now_s, self._life))

    def _thin(self, db, now_s: int, hour_s: int):
        for name, (keep_s, hourly_s) in self._keeps.items():
            first_s = (now_s - keep_s) // _HOUR * _HOUR  # hours are whole, or gone
            if hourly_s:
                db.execute(
                    "INSERT OR REPLACE INTO hourly SELECT reading, at_s - at_s % 3600, "
                    "min(value), avg(value), max(value), count(*) FROM sample "
                    "WHERE reading = ? AND at_s >= ? AND at_s < ? "
                    "AND typeof(value) IN ('integer', 'real') GROUP BY at_s / 3600",
                    (name, first_s, hour_s),
                )
            db.execute("DELETE FROM sample WHERE reading = ? AND at_s < ?", (name, first_s))
            db.execute(
                "DELETE FROM hourly WHERE reading = ? AND hour_s < ?", (name, now_s - hourly_s)
            )

    def _run(self, work):
        """Return the rows of *work(connection)*, None when that failed."""
        import sqlite3

        try:
            if self._connection is None:
                os.makedirs(self._folder, 0o700, exist_ok=True)
                own_file(self._path)
                self._connection = sqlite3.connect(self._path, timeout=1)
                self._connection.execute("PRAGMA journal_mode=WAL")
                self._connection.execute("PRAGMA synchronous=NORMAL")
                self._connection.executescript(_TABLES)
            return list(work(self._connection))
        except (sqlite3.Error, OSError) as e:
            self.close()
            if not self._has_reported:
                self._has_reported = True
                print_to_stderr("the readings %s cannot be kept: %s" % (self._path, e))
            return None

    def close(self):
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def spread(rows: list) -> list:
    """Return [(at_ms, pin, level), ...] of [(at_s, pin, level), ...]: those of one second lie in
    it, one after the other.
    """
    counts, places, found = {}, {}, []
    for at_s, _, _ in rows:
        counts[at_s] = counts.get(at_s, 0) + 1
    for at_s, pin, level in rows:
        place = places[at_s] = places.get(at_s, -1) + 1
        found.append((at_s * 1000 + place * 1000 // counts[at_s], pin, level))
    return sorted(found, key=lambda edge: edge[0])
