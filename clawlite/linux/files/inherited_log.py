"""A record log of each process, which the next process of the same owner takes over: what one has
not done when it is killed, the next one finds.  The reports of a swarm lie in such files until its
engine has acknowledged them (docs/adr/0208).

    FOLDER/OWNER.PROCESS.END     locked as long as its process lives
    [key, ...]                   one line each, JSON with its CRC-32 (record_log.py)

1. A row that is kept survives a kill.  ``sync`` brings the rows to the disk: then they survive a
   power cut, too.
2. A row stays in the file until all in it are done: one may be found again that was done.
3. A file that nobody has locked is of a process that has ended.
"""

import fcntl
import os

from clawlite.linux.files.files import leads_to_inode
from clawlite.linux.files.record_log import RecordLog, is_sealed, sealed


class InheritedLog:
    """The log of one process.

    folder        where it lies, with those of others
    owner         whose the process is: those that have the same take over
    process       id of it
    end           of the file's name
    dumps, loads  JSON, as text and of bytes

    Its methods raise ``OSError``.
    """

    def __init__(self, folder: str, owner: str, process: str, end: str, dumps, loads):
        self._folder, self._owner, self._end = folder, owner, "." + end
        self._dumps, self._loads = dumps, loads
        self._what = "the %s of %s" % (end, owner)
        path = os.path.join(folder, "%s.%s.%s" % (owner, process, end))
        self._log = RecordLog(path, self._what)
        self._keys: set = set()  # of what is not done

    def keep(self, row: list, lasting: bool):
        """Put [key, ...] on record, once.

        lasting  it is to survive a power cut, too
        """
        if row[0] in self._keys:
            return
        self._open()
        self._log.append(sealed(self._dumps(row).encode()), lasting)
        self._keys.add(row[0])

    def sync(self):
        """What is on record survives a power cut from now on."""
        if self._keys:
            os.fdatasync(self._log.fd)

    def done(self, key: str):
        """The row with this key is done."""
        self._keys.discard(key)
        if not self._keys and self._log.fd is not None:
            self._log.cut(0)

    def close(self):
        """This process ends; what is not done stays."""
        try:
            if not self._keys and self._log.fd is not None:
                os.unlink(self._log.path)
        finally:
            self._log.close()

    def left_behind(self, told) -> list:
        """Return the rows of processes of this owner that have ended: they are of this process from
        now on.

        told  function(OSError), called for a file that cannot be read or moved here: what was read
              of it is returned, too, and the next process finds the file again
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
                found += self._taken_over(path, told)
        return found

    def _taken_over(self, path: str, told) -> list:
        """Move the rows of a file here, unless its process lives; return them."""
        log, rows = RecordLog(path, self._what), []
        try:
            log.open()
            fcntl.flock(log.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not leads_to_inode(path, log.inode):
                return []  # another process was faster
            rows = [self._loads(line) for line in _whole(log.contents())]
            for row in rows:
                self.keep(row, True)
            os.unlink(path)
        except BlockingIOError:  # its process lives
            pass
        except OSError as e:
            told(e)
        finally:
            log.close()
        return rows

    def _open(self):
        """Open the file and lock it.  Who takes files over may have taken it before the lock."""
        while self._log.fd is None or not leads_to_inode(self._log.path, self._log.inode):
            self._log.open()
            fcntl.flock(self._log.fd, fcntl.LOCK_EX)


def _whole(data: bytes) -> list:
    """Return the lines of a file without their CRC; one that is torn was never kept."""
    return [line[:-9] for line in data.split(b"\n") if line and is_sealed(line)]
