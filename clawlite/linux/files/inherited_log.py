"""A record log of one process that the next process of the same owner takes over: what a killed
process had not finished, the next one finds.  The reports of a swarm are in such files until the
engine has acknowledged them (docs/adr/0137).

    FOLDER/OWNER.PROCESS.END     locked as long as its process lives
    [key, ...]                   one line each, JSON with its CRC-32 (record_log.py)
    ["", key]                    the row with that key is done

1. A row that is written survives a kill.  After ``sync`` it survives a power cut, too.
2. A row that is done stays done after a kill.  Such rows are removed when all of the file are, when
   three of four are in a file of at least ``_MANY``, and when the process ends in order.
3. A file that nobody has locked belongs to a process that has ended.
4. A damaged row is lost.  A message says so on stderr, and the file is kept as ``NAME.damaged``.
"""

import fcntl
import os

from clawlite.linux.files.files import leads_to_inode, sync_data
from clawlite.linux.files.record_log import RecordLog, is_sealed, seal

_MANY = 1000  # rows
_DONE = ""  # in place of a key


class InheritedLog:
    """The log of one process.

    folder        where the file lies, with those of other processes
    owner         whom the process works for; processes of the same owner take over from each other
    process       id of the process
    end           how the file's name ends
    dumps, loads  JSON: value -> text, bytes -> value

    Its methods raise ``OSError``.
    """

    def __init__(self, folder: str, owner: str, process: str, end: str, dumps, loads):
        self._folder, self._owner, self._end = folder, owner, "." + end
        self._dumps, self._loads = dumps, loads
        self._what = "the %s of %s" % (end, owner)
        self._process, self._moves = process, 0
        self._log = self._new_log()
        self._keys: set = set()  # keys of the rows that are not done
        self._rows = 0  # in the file

    def _new_log(self) -> RecordLog:
        number = "-%d" % self._moves if self._moves else ""
        name = "%s.%s%s%s" % (self._owner, self._process, number, self._end)
        return RecordLog(os.path.join(self._folder, name), self._what)

    def keep(self, row: list, lasting: bool):
        """Put [key, ...] on record, once.

        lasting  it is to survive a power cut, too
        """
        if row[0] in self._keys:
            return
        self._open()
        self._log.append(seal(self._dumps(row).encode()), lasting)
        self._keys.add(row[0])
        self._rows += 1

    def sync(self):
        """Bring the rows to the disk, so that they survive a power cut."""
        if self._keys:
            sync_data(self._log.fd)

    def remove(self, key: str):
        """Note that the row with this key is done; when all are, empty the file."""
        if self._log.fd is None or key not in self._keys:
            return
        self._keys.discard(key)
        if not self._keys:
            self._log.cut(0)
            self._rows = 0
        elif self._rows >= max(_MANY, 4 * len(self._keys)):
            self._move()
        else:
            self._log.append(seal(self._dumps([_DONE, key]).encode()), False)
            self._rows += 1

    def _move(self):
        """Move the rows that are not done to a file of their own."""
        old, found = self._log, {}

        def apply(line: bytes):
            if is_sealed(line):
                found[self._loads(line[:-9])[0]] = line + b"\n"  # the last one of its key

        old.fold(apply)
        kept = [line for key, line in found.items() if key in self._keys]
        self._moves += 1
        self._log = self._new_log()
        try:
            self._open()
            self._log.append(b"".join(kept), True)
        except OSError:
            self._log.close()
            self._log = old
            raise
        self._rows = len(kept)
        os.unlink(old.path)
        old.close()

    def close(self):
        """Close the log at the end of this process.  A file with rows that are not done stays."""
        try:
            if self._log.fd is None:
                return
            if not self._keys:
                os.unlink(self._log.path)
            elif self._rows > len(self._keys):
                self._move()
        finally:
            self._log.close()

    def take_over(self, told) -> list:
        """Move the rows of ended processes of this owner to this log; return them.

        told  function(OSError), called for a file that cannot be read or moved.  The rows that were
              read from it are returned, too, and the next process finds the file again
        """
        try:
            names = sorted(os.listdir(self._folder))
        except FileNotFoundError:
            return []
        found = []
        for name in names:
            path = os.path.join(self._folder, name)
            stem = name[: -len(self._end)]
            is_of_owner = name.endswith(self._end) and stem.rpartition(".")[0] == self._owner
            if is_of_owner and path != self._log.path:
                found += self._take_over_file(path, told)
        return found

    def _take_over_file(self, path: str, told) -> list:
        """Move the rows of a file here, unless its process lives; return them."""
        log, rows = RecordLog(path, self._what), {}
        try:
            log.open()
            fcntl.flock(log.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not leads_to_inode(path, log.inode):
                return []  # another process was faster
            read = log.fold(lambda line: self._apply(line, rows), is_sealed)
            if read.damaged:
                log.keep_damaged(read)
            for row in rows.values():
                self.keep(row, False)
            self.sync()
            os.unlink(path)
        except BlockingIOError:  # its process lives
            pass
        except OSError as e:
            told(e)
        finally:
            log.close()
        return list(rows.values())

    def _apply(self, line: bytes, rows: dict) -> bool:
        """Keep in *rows* {key: row} those that are not done; return False for a damaged line."""
        if not is_sealed(line):
            return False
        row = self._loads(line[:-9])
        if row[0] == _DONE:
            rows.pop(row[1], None)
        else:
            rows[row[0]] = row
        return True

    def _open(self):
        """Open the file and lock it; again when another process took it over before the lock."""
        while self._log.fd is None or not leads_to_inode(self._log.path, self._log.inode):
            self._log.open()
            fcntl.flock(self._log.fd, fcntl.LOCK_EX)
