"""One SQLite file: opening it, migrations, and its errors in words.

    entries   one row per entry.  The upper bits of its id are the number of its place, so that the
              entries of a place are stored together, the newest last.  So no index is needed for
              time, order and age, and a row costs one page of the log
    places    one row per part of a store (global, of an identity, of a channel), with the last
              entry whose words are indexed
    words     FTS5 over the words of entries.content (search.py), written in batches; it has the
              entries that a word is in, but not the positions
    vectors   normalised, float32
    sealed    stores whose entries are encrypted (encryption.py)
    damaged   entries that differ from their checksums, unchanged (entry.py)
    written   a number that grows with the commits, as ``state.marks`` has it (rollback_marks.py)
    folded    the last record of the journal that is in this file (memory_journal.py)

1. WAL.  A commit is a write(2) into the log, and survives kill -9 once that has returned.  A
   power-safe commit also syncs the log.  On a full disk that has no room for SQLite's index of the
   log, the file is opened for this process alone, to be read, as long as a request takes.
2. Pages have 1024 bytes, because entries are short and a commit writes whole pages.
3. Migrations are scripts; ``user_version`` is the number of scripts that have run.  A file of a
   newer version is not opened.
4. ``_sqlite3`` is the C half of ``sqlite3``: it is loaded with the first request, in the worker's
   thread, without datetime.
"""

import os
from errno import EDQUOT, EFBIG, EIO, ENOSPC, errorcode

from clawlite.core.base.errors import QueryFailed, StoreError
from clawlite.linux.files.files import (
    FAULTY,
    mend,
    own_file,
    sqlite_uri,
    state_folder,
    tell_replaced,
)
from clawlite.linux.files.record_log import lasting_folder, sync_folder
from clawlite.linux.files.rollback_marks import COUNTED, Mark, count_up, fingerprint, number_of

FILE = "memory.db"
_COUNTS = 64  # commits of one process between two that are counted
BUSY_MS = 2000  # another process of this agent may be writing
APPLICATION = 0x434C4157  # "CLAW"
MIGRATIONS = (
    """CREATE TABLE places(number INTEGER PRIMARY KEY, store TEXT NOT NULL, part TEXT NOT NULL, indexed INTEGER NOT NULL, UNIQUE(store, part));
    CREATE TABLE entries(id INTEGER PRIMARY KEY, at INTEGER NOT NULL, key TEXT, content TEXT, is_json INTEGER NOT NULL, metadata TEXT, request BLOB);
    CREATE INDEX keyed ON entries(key, id) WHERE key IS NOT NULL;
    CREATE TABLE vectors(id INTEGER PRIMARY KEY, vector BLOB NOT NULL);
    CREATE VIRTUAL TABLE words USING fts5(content, content='entries', content_rowid='id', tokenize='unicode61 remove_diacritics 2', detail=none);
    INSERT INTO words(words, rank) VALUES('automerge', 8);""",  # noqa: E501
    """CREATE TABLE folded(upto INTEGER NOT NULL);
    INSERT INTO folded VALUES(0);""",
    """CREATE TABLE sealed(store TEXT PRIMARY KEY, mark BLOB NOT NULL);""",
    """ALTER TABLE entries ADD COLUMN crc INTEGER;
    CREATE TABLE damaged(id INTEGER, at, key, content, is_json, metadata, request, crc);""",
    "",
)
CHECKED = 4  # from this version on, each entry has a checksum
DIVIDED = 5  # from this version on, the index has the words of search.py
_IMMUTABLE = "ro&immutable=1"
# beginning of SQLite's name of an error -> (meaning, hint)
_WORDS = {
    "SQLITE_FULL": ("the disk is full", "make room where this agent keeps its state"),
    "SQLITE_READONLY": ("it cannot be written", "make its folder and its file writable"),
    "SQLITE_CANTOPEN": (
        "it cannot be opened",
        "make its folder and its file readable and writable",
    ),
    "SQLITE_CORRUPT": ("it is damaged", "move the file away to start empty, or restore a copy"),
    "SQLITE_NOTADB": (
        "it is damaged: this is no database",
        "move the file away to start empty, or restore a copy",
    ),
    "SQLITE_BUSY": ("another process is writing to it", "send this again"),
    # A limit of the file or of the user's bytes (EFBIG, EDQUOT) is this error too: SQLite tells
    # only ENOSPC apart.
    "SQLITE_IOERR_WRITE": (
        "the disk failed, or is full",
        "make room where this agent keeps its state, or look at the disk",
    ),
    "SQLITE_IOERR_SHM": (
        "the disk is full",
        "make room where this agent keeps its state",
    ),
    "SQLITE_IOERR": ("the disk failed", FAULTY),
}


class Database:
    """The file of one agent.  It is opened at its first use, and again after a failure.

    folder  where it lies
    """

    def __init__(self, folder: str):
        self.folder = folder
        self.path = os.path.join(folder, FILE)
        self._connection = None
        self._status = None  # of the file that the connection has
        self._syncs = False
        self.opened = 0  # how often the file was opened
        self._compares = None  # whether this connection has sqlite-vec
        self.read_only = False
        # for want of room: read without the file that processes share, so for this one alone
        self._alone = self._is_copy = False
        self._mark = Mark(self.path)
        self._commits = 0  # of this connection
        self._counted = True  # its last commit is counted

    def run(self, sql: str, values=()):
        """Return a cursor.  Raises ``_sqlite3.Error``, which ``failure`` puts into words."""
        if self._connection is None:
            self._open()
        return self._connection.execute(sql, values)

    def row(self, sql: str, values=()):
        """Return the first row, or None."""
        return self.run(sql, values).fetchone()

    def with_any_text(self, sql: str, use):
        """Return ``use(rows)`` for the rows of *sql*, whose texts may be invalid UTF-8."""
        from clawlite.linux.memory.entry import any_text  # an agent that is not asked needs none

        rows = self.run(sql)
        before = self._connection.text_factory
        self._connection.text_factory = any_text
        try:
            return use(rows)
        finally:
            self._connection.text_factory = before

    def many(self, sql: str, rows):
        self._connection.executemany(sql, rows)

    def begin(self, lasting: bool):
        """Begin to write; *lasting*: what is committed survives a power cut."""
        self.check_writable()
        if lasting != self._syncs:
            self.run("PRAGMA synchronous=%s" % ("FULL" if lasting else "NORMAL"))
            self._syncs = lasting
        self.run("BEGIN IMMEDIATE")

    def check_writable(self):
        """Raise ``StoreError`` where nothing can be written."""
        if self.read_only:
            self.close()  # the cause may be repaired by now
        if self._connection is None:
            self._open()
        if self._alone:
            raise StoreError(
                "the memory %s: the disk is full, and nothing is stored" % self.path,
                _WORDS["SQLITE_FULL"][1],
                {"cause": "SQLITE_FULL"},
            )
        if self.read_only:
            raise StoreError(
                "the memory %s cannot be written" % self.path,
                "make its folder and its file writable",
                {"cause": "SQLITE_READONLY"},
            )

    def begin_to_undo(self):
        """Begin what will be rolled back: nothing of it reaches the disk.  Where nothing can be
        written at all, it is done to a copy of the file in memory.
        """
        if self._connection is None:
            self._open()
        if self._alone:
            self.run("PRAGMA cache_spill=OFF")
        elif self.read_only and not self._is_copy:
            from _sqlite3 import connect

            copy = connect(":memory:", isolation_level=None, check_same_thread=False)
            self._connection.backup(copy)
            self._connection.close()
            self._connection, self._is_copy = copy, True
        self.run("BEGIN IMMEDIATE")

    def release(self):
        """Close a file that this process has for itself alone, because others wait for it, and a
        copy in memory.
        """
        if self._alone or self._is_copy:
            self.close()

    def commit(self):
        """End a commit.  The first one, and one of ``_COUNTS``, is counted: that writes a page."""
        counts = self._commits % _COUNTS == 0
        number = count_up(self.run) if counts else 0
        self.run("COMMIT")
        self._commits += 1
        self._counted = counts
        if counts:
            self._mark.note((number, COUNTED, 0), self._syncs)

    def rollback(self):
        """Undo the transaction; when that fails, close the connection."""
        try:
            if self.in_transaction():
                self.run("ROLLBACK")
        except Exception:  # after any error, the next request opens the file again
            self.close()

    def compares_vectors(self) -> bool:
        """Return whether SQLite has the functions of sqlite-vec here."""
        if self._connection is None:
            self._open()
        if self._compares is None:
            self._compares = _load_vectors(self._connection)
        return self._compares

    def in_transaction(self) -> bool:
        return self._connection is not None and self._connection.in_transaction

    def generation(self):
        """Return a value that changes when another process has written, or the file was opened
        again.
        """
        return self.row("PRAGMA data_version")[0], self.opened

    def check_place(self):
        """Close a file that was removed or replaced, and report it: data written to it would be
        lost.  Cost: one system call.
        """
        if self._connection is None:
            return
        try:
            if os.path.samestat(os.stat(self.path), self._status):
                return
        except FileNotFoundError:
            pass
        self.close()
        tell_replaced("the memory", self.path)

    def close(self):
        """Close the file; SQLite moves its log into it."""
        number = None if self.read_only else self._count_last()
        connection, self._connection, self._compares = self._connection, None, None
        if connection is not None:
            try:
                connection.close()
            # committed data is in the log, and is read from there the next time
            except Exception:
                pass
        if number is not None:
            self._mark.note((number, COUNTED, fingerprint(self.path)), self._syncs)
        self._mark.close()

    def _count_last(self):
        """Count the last commit; return the number that the file has then, None when that fails."""
        if self._connection is None:
            return None
        try:
            if not self._counted:
                self.run("BEGIN IMMEDIATE")
                self._commits = 0
                self.commit()
            return number_of(self.run)
        except Exception:  # the file is damaged, or the disk is full: requests have said so
            return None

    def _open(self):
        try:
            from _sqlite3 import Error, connect
        except ImportError:
            raise StoreError(
                "this Python has no SQLite, and so no memory",
                "install a Python with the module sqlite3",
            ) from None
        make_folder(self.folder)
        self.opened += 1
        self._commits, self._counted = 0, True
        self._syncs = self.read_only = self._alone = self._is_copy = False
        own_file(self.path)
        try:
            self._try(connect, "rwc")
        except OSError:  # the file is gone again
            self.close()
            raise
        except Error as e:
            self.close()
            for how in _ways(e):
                if how == _IMMUTABLE and _size(self.path + "-wal"):
                    break  # data that is only in the log would be missing
                try:
                    self._try(connect, how)
                    return
                except Error:
                    self.close()
            raise e

    def _try(self, connect, how: str):
        # SQLite opens a file to read that it may not write, and says nothing
        self.read_only = how != "rwc" or not os.access(self.path, os.W_OK)
        self._alone = how == "rw"
        log = None
        if how == "rwc" and _size(self.path + "-wal"):
            from clawlite.linux.files.sqlite_log import check, last_commit

            log = last_commit(self.path)
        self._connection = connect(
            sqlite_uri(self.path, "mode=" + how),
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_MS / 1000,
        )
        if self._alone:  # then the index of the log is in memory, and needs no file
            self.run("PRAGMA locking_mode=EXCLUSIVE")
        version = self.row("PRAGMA user_version")[0]
        self._status = os.stat(self.path)
        if log:  # before the first write, which may restart the log
            check(self.run, self.path, "the memory", log)
        if version > len(MIGRATIONS):
            self.close()
            raise StoreError(
                "the memory %s was written by a newer version (%d, this one knows %d)"
                % (self.path, version, len(MIGRATIONS)),
                "update clawlite, or move the file away to start empty",
            )
        if self.read_only:
            if version < len(MIGRATIONS):
                self.close()
                raise StoreError(
                    "the memory %s was written by an older version (%d, this one reads %d), and "
                    "cannot be written" % (self.path, version, len(MIGRATIONS)),
                    "make its folder and its file writable, so that it can be upgraded",
                )
            self.row("SELECT count(*) FROM places")
            return
        if not version:
            self.run("PRAGMA page_size=1024")
            self.run("PRAGMA auto_vacuum=NONE")
            self.run("PRAGMA application_id=%d" % APPLICATION)
        self.run("PRAGMA journal_mode=WAL")
        self.run("PRAGMA synchronous=NORMAL")
        self.run("PRAGMA cache_size=-2000")
        if version < len(MIGRATIONS):
            self._migrate()
        self.row("SELECT count(*) FROM places")

    def _migrate(self):
        """Run the new migrations in one transaction.  Another process may have run them first."""
        self.run("BEGIN IMMEDIATE")
        version = self.row("PRAGMA user_version")[0]
        for script in filter(None, MIGRATIONS[version:]):
            for statement in script.split(";\n"):
                self.run(statement)
        if 0 < version < CHECKED:
            from clawlite.linux.memory.entry import fill

            fill(self)
        if 0 < version < DIVIDED:
            from clawlite.linux.memory.search import reindex

            reindex(self)
        self.run("PRAGMA user_version=%d" % len(MIGRATIONS))
        self.run("COMMIT")
        sync_folder(self.folder)


def _load_vectors(connection) -> bool:
    """Load sqlite-vec into *connection*.  Return False when it is not installed, or this Python's
    SQLite cannot load extensions.
    """
    try:
        import sqlite_vec

        connection.enable_load_extension(True)
        try:
            connection.load_extension(sqlite_vec.loadable_path())
        finally:
            connection.enable_load_extension(False)
    # it is not installed, this SQLite loads nothing, or the extension is for another machine
    except Exception:
        return False
    return True


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _ways(e) -> tuple:
    """Return the modes in which a file can still be read that *e* has kept from being opened."""
    if _name(e).startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
        return "ro", _IMMUTABLE
    return ("rw",) if is_full(e) else ()


def _name(e) -> str:
    """Return SQLite's name of the error *e*, or of what led to it."""
    if isinstance(e, StoreError):
        return (e.data or {}).get("cause", "")
    return getattr(e, "sqlite_errorname", None) or ""


def is_full(e) -> bool:
    """Return whether *e* means that the disk or this agent's quota is full, or may be full."""
    return (
        isinstance(e, OSError)
        and e.errno in (ENOSPC, EDQUOT, EFBIG)
        or _name(e).startswith(("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHM"))
    )


def is_unwritable(e) -> bool:
    """Return whether *e* means that the file can only be read."""
    return _name(e).startswith("SQLITE_READONLY")


def failure(e, path: str, query: bool = False) -> StoreError:
    """Return the ``StoreError`` for *e*, an ``_sqlite3.Error`` or an ``OSError`` of the file
    *path*.
    """
    if isinstance(e, OSError) and is_full(e):
        return StoreError(
            "the memory %s: the disk is full" % path,
            _WORDS["SQLITE_FULL"][1],
            {"cause": errorcode[e.errno]},
        )
    if isinstance(e, OSError):
        return StoreError("the memory %s: %s" % (path, e.strerror), mend(e))
    name = _name(e)
    for beginning, (what, hint) in _WORDS.items():
        if name.startswith(beginning):
            return StoreError("the memory %s: %s" % (path, what), hint, {"cause": name})
    kind = QueryFailed if query else StoreError
    return kind("the memory %s: %s" % (path, e), "", {"cause": name or type(e).__name__})


def folder_of(agent: str) -> str:
    """Return where the memory of *agent* lies."""
    return os.path.join(state_folder(agent), "memory")


def make_folder(folder: str):
    """Make *folder* when it does not exist, so that it survives a power cut.  Raises
    ``StoreError``.
    """
    try:
        lasting_folder(folder)
    except OSError as e:
        hint = FAULTY if e.errno == EIO else "make it, and make it writable"
        raise StoreError("the memory's folder %s: %s" % (folder, e.strerror), hint) from None


def check_folder(folder: str):
    """Raise ``StoreError`` when *folder* cannot be made, or has no memory yet and cannot be
    written.
    """
    make_folder(folder)
    if not os.path.exists(os.path.join(folder, FILE)) and not os.access(folder, os.W_OK | os.X_OK):
        raise StoreError("the memory's folder %s cannot be written" % folder, "make it writable")
