"""Copies of an audit for somebody else: a webhook or a syslog.  The files (files.py) stay the
record of truth.

1. The files are the only queue.  A thread sends the records after the number in ``audit.sent``, and
   updates that once a copy was accepted.  So a record stays on disk until then, also over restarts
   and retention.  A record may be sent twice; ``n`` shows that.
2. Only records that the head covers are sent, so a record that the store undid on a full disk never
   leaves.
3. A failed batch is tried again after 1, 2, 4 ... 60 s, in order, and is half as long each time: a
   receiver may take so many bytes alone.  Only one process of an agent sends, under a lock on
   ``audit.sent``.
4. Each copy comes with the hash of its line, which is an anchor for ``clawlite audit verify``.
"""

import contextlib
import fcntl
import os
import time

from clawlite.linux.audit.chain import digest, link
from clawlite.linux.audit.files import HEAD, segments
from clawlite.linux.files.files import leads_to
from clawlite.linux.files.regular_file import open_regular
from clawlite.linux.io.worker import Worker
from clawlite.scan.auditline import head_of

MOST, MOST_BYTES = 100, 524288  # of one batch
FIRST_S, LONGEST_S = 1, 60  # pauses after a failure
LEAVE_S = 2  # at the end of the agent
_MARK = 128  # bytes of audit.sent, always written whole


class Sender:
    """The sender of one agent's audit.

    folder   the agent's state folder
    deliver  function(list of (n, hash, line)); returns when they were accepted, else raises
    """

    def __init__(self, folder: str, deliver):
        self._folder, self._deliver = folder, deliver
        self._worker = Worker(self._work)
        self._stopping = False
        self._most = MOST  # records of the next batch
        self._fd = self._file = None
        self._passed = set()  # paths of files that hold nothing more to be sent
        self.sent = self._hash = None

    def ring(self):
        """Wake the thread, because there are more records; never waits."""
        self._worker.ring()
        self._worker.begin()

    def close(self):
        """Send what waits, for LEAVE_S at most; the rest stays for the next start."""
        self._stopping = True
        self._worker.ring()
        self._worker.join(LEAVE_S)

    def _work(self):
        pause, since = 0, 0.0
        try:
            while True:
                self._worker.wait(max(since + pause - time.monotonic(), 0) if pause else -1)
                if pause and not self._stopping and time.monotonic() < since + pause:
                    # a ring is no reason to ask a server earlier that did not answer
                    continue
                try:
                    self._all()
                    pause = 0
                except Exception:  # whatever it is, it is the receiver's, not the agent's
                    self._let_go()  # what was read is read again
                    self._most = max(1, self._most // 2)
                    pause, since = min(pause * 2 or FIRST_S, LONGEST_S), time.monotonic()
                if self._stopping:
                    return
        finally:
            fd, self._fd = self._fd, None
            if fd is not None:
                os.close(fd)
            self._let_go()

    def _all(self):
        """Send all that waits.  Raises whatever the receiver does."""
        if not self._is_ours():
            return
        while True:
            batch = self._batch()
            if not batch:
                return
            self._deliver(batch)
            self._most = min(2 * self._most, MOST)
            self._mark(*batch[-1][:2])

    def _is_ours(self) -> bool:
        """Return whether this process sends; then ``sent`` says how far it is."""
        if self._fd is not None and leads_to(mark_path(self._folder), self._fd):
            return True
        fd, self._fd = self._fd, None
        if fd is not None:  # it was removed or replaced: what the new one says counts
            os.close(fd)
            self._let_go()
            self._passed.clear()
        fd = os.open(mark_path(self._folder), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return False
        self._fd = fd
        self.sent, self._hash = read_mark(self._folder)
        return True

    def _mark(self, n: int, hash: str):
        os.pwrite(self._fd, ("%d %s" % (n, hash)).encode().ljust(_MARK - 1) + b"\n", 0)
        self.sent, self._hash = n, hash
        self._passed.clear()

    def _batch(self) -> list:
        """Return the next records to be sent: [(n, hash, line without its end), ...]."""
        head = _head(self._folder)
        if head is None or head.last == self.sent and head.hash == self._hash:
            return []
        if head.last <= self.sent:  # somebody removed the audit, and another one has begun
            self._mark(0, "-")
            self._let_go()
        found, size = [], 0
        while len(found) < self._most and size < MOST_BYTES:
            if self._file is None and not self._open():
                break
            text = self._file.readline()
            if not text.endswith(b"\n"):
                self._file.seek(-len(text), 1)
                if found or not self._pass():
                    break
                continue
            n = link(text[:-1])[0]
            if n is None or n <= max(self.sent, found[-1][0] if found else 0):
                continue  # what is damaged is for verify to tell
            if n > head.last:
                self._file.seek(-len(text), 1)
                break
            found.append((n, digest(text[:-1]), text[:-1]))
            size += len(text)
        return found

    def _open(self) -> bool:
        """Open the oldest file that has something to be sent."""
        with _at_rest(self._folder):
            paths = segments(self._folder)
            for at, path in enumerate(paths):
                if path not in self._passed and (
                    at + 1 == len(paths) or (_first(paths[at + 1]) or self.sent + 2) > self.sent + 1
                ):
                    self._file = open(path, "rb", opener=open_regular)
                    return True
        return False

    def _pass(self) -> bool:
        """Let go of the file that was read to its end, unless it is the last one; return whether
        there may be more to read.

        What was added to it before it was replaced has come after that end.
        """
        with _at_rest(self._folder):
            inode = os.fstat(self._file.fileno()).st_ino
            paths = segments(self._folder)
            if not paths or os.stat(paths[-1]).st_ino == inode:
                return False
            text = self._file.readline()
            self._file.seek(-len(text), 1)
            if not text.endswith(b"\n"):
                self._passed.update([path for path in paths if os.stat(path).st_ino == inode])
                self._let_go()
        return True

    def _let_go(self):
        if self._file is not None:
            self._file.close()
            self._file = None


@contextlib.contextmanager
def _at_rest(folder: str):
    """Hold the lock of the audit (files.py) for a moment, so that no process replaces its last
    file meanwhile.
    """
    fd = os.open(os.path.join(folder, "audit.head"), os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
        yield
    finally:
        os.close(fd)


def mark_path(folder: str) -> str:
    """Return the path of the file that says how far the copies are."""
    return os.path.join(folder, "audit.sent")


def read_mark(folder: str) -> tuple:
    """Return (number, hash) of the last record that was taken; (0, "-") when none was."""
    try:
        with open(mark_path(folder), "rb", opener=open_regular) as file:
            words = file.read(_MARK).split()
        return int(words[0]), words[1].decode()
    except (OSError, ValueError, IndexError):
        return 0, "-"


def _head(folder: str):
    try:
        with open(os.path.join(folder, "audit.head"), "rb", opener=open_regular) as file:
            return head_of(file.read(HEAD))
    except OSError:
        return None


def _first(path: str):
    with open(path, "rb", opener=open_regular) as file:
        return link(file.readline().rstrip(b"\n"))[0]
