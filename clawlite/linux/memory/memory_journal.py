"""``memory.journal``: entries of wear-saving stores on their way into the database, as a series of
records.

    record    length of the payload (4 bytes, little-endian), CRC-32 of it (4), payload: CBOR
    payload   [sequence, store, part, [row of entries, ...], [row of vectors, ...]]

1. A record is one write(2), little longer than its entry.  It survives ``kill -9`` once write has
   returned.  A commit for each entry would write whole pages to SQLite's log, and then again to the
   database.
2. ``fold`` moves many records into the database in one synced commit, which also stores the last
   sequence number.  Then the file is emptied.  After an interruption, that number says which
   records are in the database already.
3. All processes of one agent share the file, under a lock.  A process that finds records of another
   one folds them before anything else.
4. A power cut can leave a torn end.  It is set aside as ``memory.journal.damaged``, and the records
   before it count.
"""

import fcntl
import os

from clawlite.core.base.errors import CBORError
from clawlite.core.formats.cbor import decode
from clawlite.core.formats.encoder import encode
from clawlite.linux.files.files import print_to_stderr
from clawlite.linux.files.record_log import RecordLog, frame
from clawlite.linux.files.rollback_marks import Mark
from clawlite.linux.memory.entry import BITS, insert

FILE = "memory.journal"
MAX_ENTRIES = 512  # entries that wait in it: as many as are indexed together
MAX_BYTES = 1048576


class Journal:
    """The journal of one folder, as one process has it.

    entries  number of entries that wait, as far as this process knows
    fault    None, or the ``OSError`` because of which the file cannot be written
    """

    def __init__(self, folder: str):
        self.path = os.path.join(folder, FILE)
        self.entries = 0
        self.fault = None
        # its size: while it is locked
        self._log = RecordLog(self.path, "the memory's journal", Mark(self.path))
        # bytes, as this process left the file; None: this process does not know its content
        self._size = None
        self._sequence = 0  # of the last record

    def lock(self, new: bool) -> bool:
        """Lock the file that is at the path now; return whether there is one that can be locked.

        new  bool, make the file when there is none
        """
        if self.fault:
            self.close()  # the fault may be repaired by now
        while True:
            if self._log.fd is None and not (new or os.path.exists(self.path)):
                return False
            if self._log.fd is None:
                self._open()
            if self._log.fd is None:
                return False
            fcntl.flock(self._log.fd, fcntl.LOCK_EX)
            try:
                status = os.stat(self.path)
                if (status.st_dev, status.st_ino) == self._log.inode:
                    self._log.size = status.st_size
                    return True
            except FileNotFoundError:
                pass
            self.close()  # somebody has moved it away

    def unlock(self):
        if self._log.fd is not None:
            fcntl.flock(self._log.fd, fcntl.LOCK_UN)

    def is_strange(self) -> bool:
        """Return whether the file has records that this process did not write, or does not know any
        more.
        """
        return self._log.fd is not None and self._size != self._log.size

    def is_empty(self) -> bool:
        return self._log.fd is None or not self._log.size

    def is_full(self) -> bool:
        return self.entries >= MAX_ENTRIES or (self._size or 0) >= MAX_BYTES

    def forget(self):
        """Forget the content: the records are strange until they have been folded."""
        self._size = None

    def append(self, records: list, lasting: bool):
        """Write *records* [(store, part, rows, vectors)], whole or not at all; *lasting*: they
        survive a power cut.  Raises ``OSError``.
        """
        parts, sequence = [], self._sequence
        for record in records:
            sequence += 1
            parts.append(frame(encode([sequence, *record])))
        self._check()
        self._log.append(b"".join(parts), lasting)
        self._sequence = sequence
        self._size = self._log.size
        self.entries += sum([len(record[2]) for record in records])

    def read(self) -> list:
        """Return the payloads of all complete records; the bytes after them are set aside."""
        found: list = []

        def apply(payload: bytes) -> bool:
            try:
                record = decode(payload)
            except CBORError:
                return False
            # an older record that was not overwritten
            if found and record[0] != found[-1][0] + 1:
                return False
            found.append(record)
            return True

        read = self._log.fold_framed(apply)
        if read.end < read.size:
            kept = self._log.set_aside(read.end)
            print_to_stderr(
                "%s: its last %d bytes are no whole record; they are in %s"
                % (self.path, read.size - read.end, kept)
            )
        return found

    def follow(self, sequence: int):
        """Continue after the number *sequence*, with an empty file."""
        self._size = self._log.size = self.entries = 0
        self._sequence = sequence

    def clear(self, sequence: int):
        """Empty the file: all records up to *sequence* are in the database, on the disk."""
        self._check()
        self._log.cut(0)
        self.follow(sequence)

    def close(self):
        self._size, self.entries = None, 0
        self._log.close()

    def _check(self):
        if self.fault:
            raise self.fault

    def _open(self):
        self.fault = None
        try:
            self._log.open(lasting=True)
        except OSError as e:
            self.fault = e
            if self._log.fd is None and os.path.exists(self.path):
                # it can still be locked and read
                self._log.adopt(os.open(self.path, os.O_RDONLY | os.O_CLOEXEC))


def fold(db, journal) -> list:
    """Move the records of *journal* into *db*, in one commit; return [(store, part, keys), ...] of
    the new ones.

    The journal is locked.  The caller ends the commit, and then empties the journal up to the
    sequence number in the table ``folded``."""
    upto = db.row("SELECT upto FROM folded")[0]
    found = []
    for sequence, store, part, rows, vectors in journal.read():
        if sequence <= upto:
            continue
        _check_ids(db, store, part, rows, vectors)
        insert(db, rows)
        if vectors:
            db.many("INSERT INTO vectors VALUES(?, ?)", vectors)
        found.append((store, part, [row[2] for row in rows]))
        upto = sequence
    db.run("UPDATE folded SET upto=?", (upto,))
    return found


def _check_ids(db, store: str, part: str, rows: list, vectors: list):
    """Give *rows* and *vectors* new ids when theirs are used already, or belong to another place.
    That happens when the database was replaced since.
    """
    row = db.row("SELECT number FROM places WHERE store=? AND part=?", (store, part))
    number = (
        row[0]
        if row
        else db.run(
            "INSERT INTO places(store, part, indexed) VALUES(?, ?, 0)", (store, part)
        ).lastrowid
    )
    base = number << BITS
    last = (
        db.row("SELECT max(id) FROM entries WHERE id>? AND id<?", (base, base + (1 << BITS)))[0]
        or base
    )
    first = rows[0][0]
    if last < first < base + (1 << BITS):
        return
    for each in rows + vectors:
        each[0] += last + 1 - first
