"""An audit in SQLite: ``audit.db``, the same lines and the same chain as in files (files.py), one
row a record.

A transaction holds the records and the head.  WAL, synchronous NORMAL: what a commit has returned
for survives ``kill -9``."""

import os
import sqlite3

from clawlite.linux.audit.chain import Head, beginning, digest, link
from clawlite.linux.audit.files import SEGMENT, SET_S, describe_removal
from clawlite.linux.files import sqlite_log
from clawlite.linux.files.files import sqlite_uri, tell_replaced
from clawlite.linux.files.regular_file import open_regular
from clawlite.linux.files.rollback_marks import COUNTED, Mark, fingerprint
from clawlite.scan.auditline import LOST_HEAD, head_of

_NUMBER, _LINE = range(2)  # positions in a record that is removed
_WAIT_S = 5  # for another process of this agent
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS records (n INTEGER PRIMARY KEY, at INTEGER NOT NULL, line BLOB "
    "NOT NULL);"
    "CREATE TABLE IF NOT EXISTS head (one INTEGER PRIMARY KEY CHECK (one = 1), text BLOB NOT NULL);"
    # the number by which a start sees how far the file has come (files/rollback_marks.py)
    "CREATE VIEW IF NOT EXISTS written AS SELECT coalesce(max(n), 0) AS number FROM records;"
)


class SQLiteStore:
    """The database of one agent's audit; as ``files.FileStore``."""

    def __init__(self, folder: str, agent: str, kept_s=None, most: int = 0):
        self._most = most
        self.removed = self._said = ""
        self._folder, self._agent, self._kept_s = folder, agent, kept_s
        self._db = self._status = None
        self._path = os.path.join(folder, "audit.db")
        self._day = None  # when what is too old last went
        self._mark, self._last = Mark(self._path), 0

    def append(self, make, now_s: int):
        try:
            self._append(make, now_s)
        except sqlite3.Error as e:
            raise OSError(0, "SQLite: %s" % e) from None

    def _append(self, make, now_s: int):
        if self._db is not None and not self._is_in_place():
            self.close()
            tell_replaced("the audit", self._path)
        if self._db is None:
            self._open()
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        try:
            row = db.execute("SELECT text FROM head").fetchone()
            head = head_of(row[0]) if row else None
            if head is None:
                head = self._find_head(row is not None)
            self._make_room(head)
            data = make(head)
            lines = data.splitlines()
            n = head.last - len(lines)
            for number, line in enumerate(lines):
                db.execute("INSERT INTO records VALUES (?, ?, ?)", (n + 1 + number, now_s, line))
            if self._kept_s is not None and now_s // 3600 != self._day:
                self._day = now_s // 3600
                self._forget(head, now_s)
            db.execute("INSERT OR REPLACE INTO head VALUES (1, ?)", (head.text().encode(),))
            db.execute("COMMIT")
            self._last = head.last
            self._mark.note((head.last, COUNTED, 0), False)
        except BaseException:
            self.removed = ""  # nothing was
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def _find_head(self, is_damaged: bool) -> Head:
        """Return the head that the records have without one, and put its loss on record."""
        head, count = beginning(self._agent), 0
        for number, text in self._db.execute("SELECT n, line FROM records ORDER BY n"):
            if not count and number > 1:
                head.first, head.prev = number, link(text)[1] or head.prev
            head.last, head.hash, count = number, digest(text), count + 1
        if count or is_damaged:
            self._said = LOST_HEAD
        return head

    def _make_room(self, head: Head):
        """Remove the oldest records, a segment of them, when the database has more than it may
        have.

        Pages that are free are used again, so the file stays as it is.  One that is far too large,
        of before there was a bound, shrinks by a segment at each append: no transaction is long.
        """
        self.removed = ""
        if not self._most:
            return
        db = self._db
        pages, free, size = [
            db.execute("PRAGMA " + name).fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        ]
        if (pages - free) * size <= self._most:
            return
        room = min(SEGMENT, self._most // 4)
        rows = db.execute("SELECT n, line FROM records WHERE n < ? ORDER BY n", (head.last,))
        last = None
        for last in rows:
            room -= len(last[_LINE])
            if room <= 0:
                break
        rows.close()
        if last:
            self.removed = describe_removal(head.first, last[_NUMBER], self._most)
            self._remove(head, last)

    def _forget(self, head: Head, now_s: int):
        """Remove the records before the first young one, up to the last old one.  What was written
        while the clock was unset, or ahead, says nothing of its age.
        """
        before_s = now_s - self._kept_s
        first = self._db.execute(
            "SELECT n FROM records WHERE at BETWEEN ? AND ? ORDER BY n LIMIT 1", (before_s, now_s)
        ).fetchone()
        last = self._db.execute(
            "SELECT n, line FROM records WHERE n < ? AND at >= ? AND at < ? "
            "ORDER BY n DESC LIMIT 1",
            (
                min(first[0], head.last) if first else head.last,
                SET_S if now_s >= SET_S else 0,
                before_s,
            ),
        ).fetchone()
        if last:
            self._remove(head, last)

    def _remove(self, head: Head, last: tuple):
        """Remove all records up to *last* (number, line)."""
        number, line = last
        self._db.execute("DELETE FROM records WHERE n <= ?", (number,))
        head.first, head.prev = number + 1, digest(line)

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), self._status)
        except FileNotFoundError:
            return False

    def _open(self):
        os.makedirs(self._folder, 0o700, exist_ok=True)
        fd = open_regular(self._path, os.O_RDWR | os.O_CREAT)
        self._status = os.fstat(fd)
        os.close(fd)
        log = sqlite_log.last_commit(self._path)
        db = sqlite3.connect(self._path, timeout=_WAIT_S, isolation_level=None)
        try:
            sqlite_log.check(db.execute, self._path, "the audit", log)
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            db.executescript(_SCHEMA)
        except BaseException:
            db.close()
            raise
        self._db = db

    def problem(self) -> str:
        said, self._said = self._said, ""
        return said

    def close(self):
        if self._db is not None:
            self._db.close()
            self._db = None
            if self._last:
                self._mark.note((self._last, COUNTED, fingerprint(self._path)), False)
        self._mark.close()


def read(folder: str, newest: int = 0) -> tuple:
    """Return as ``files.read``."""
    path = os.path.join(folder, "audit.db")
    if not os.path.exists(path):
        return iter(()), None, False
    db = sqlite3.connect(sqlite_uri(path, "mode=ro"), uri=True, timeout=_WAIT_S)
    row = db.execute("SELECT text FROM head").fetchone()

    def lines():
        try:
            for (line,) in db.execute(
                "SELECT line FROM (SELECT n, line FROM records ORDER BY n DESC LIMIT ?) ORDER BY n",
                (newest or -1,),
            ):
                yield line if isinstance(line, bytes) else str(line).encode()
        finally:
            db.close()

    return lines(), head_of(row[0]) if row else None, True
