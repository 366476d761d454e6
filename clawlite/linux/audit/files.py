"""An audit in files: ``audit.jsonl`` and the segments before it, ``audit.head`` beside them.

1. Records are appended with one write(2), and are acknowledged once the head was written after
   them.  Then they survive ``kill -9``.  Nothing is synced, so a power cut may lose the last
   seconds.
2. A write that was cut short (a full disk) is undone.  A line that a killed process left unfinished
   was never acknowledged, and is removed.
3. Processes of one agent share the files under a lock on the head.
4. A segment of a day, or of 4 MiB, becomes ``audit-N.jsonl``, where N is its first record.  It is
   removed as a whole when all of its records are too old, or when the segments exceed the size of
   the audit.
"""

import os
from errno import EFBIG, ENOSPC

try:
    import fcntl
except ImportError:  # Windows: there a board's records are read alone
    fcntl = None

from clawlite.linux.audit.chain import Head, beginning, digest, link
from clawlite.linux.files.files import inode, leads_to_inode, tell_replaced
from clawlite.linux.files.record_log import RecordLog
from clawlite.linux.files.regular_file import MOST, open_end, open_regular
from clawlite.linux.files.rollback_marks import Mark
from clawlite.scan.auditline import LOST_HEAD, head_of

SEGMENT = 4 << 20  # bytes
DAY = 86400
SET_S = 1700000000  # a clock that shows less has not been set
HEAD = 256  # bytes of the head's file, always written whole
_PIECE = 65536  # bytes that are read from a file's end at first


class FileStore:
    """The files of one agent's audit.

    folder  the agent's state folder
    kept_s  seconds that records are kept, or None
    taken   function() -> number of the last record that may go, or None: all
    most    bytes that all segments may have, at least 2 * ``SEGMENT``; 0: no bound

    removed  what the last ``append`` removed for ``most``, "" for nothing; its first record says so
    """

    def __init__(self, folder: str, agent: str, kept_s=None, taken=None, most: int = 0):
        self._taken, self._most = taken, most
        self.removed = ""
        self._folder, self._agent, self._kept_s = folder, agent, kept_s
        self._path = os.path.join(folder, "audit.jsonl")
        self._head_path = os.path.join(folder, "audit.head")
        self._log = RecordLog(self._path, "the audit", Mark(self._path))  # its last segment
        self._head_fd = self._head_inode = None
        self._head = None  # ``Head``, as it was last written
        self._known = b""  # the same as bytes
        self._begun_s = 0  # when the segment began
        self._said = ""

    def append(self, make, now_s: int):
        """Append the lines that ``make(head)`` returns, as bytes; it also updates the head.

        When it raises ``OSError``, nothing was appended.
        """
        path = self._head_path
        if self._head_fd is not None and not leads_to_inode(path, self._head_inode):
            self.close()  # others lock the file that has the name now
            tell_replaced("the audit's head", path)
        if self._head_fd is None:
            os.makedirs(self._folder, 0o700, exist_ok=True)
            self._head_fd = open_regular(path, os.O_RDWR | os.O_CREAT)
            self._head_inode = inode(self._head_fd)
        fcntl.flock(self._head_fd, fcntl.LOCK_EX)
        try:
            self._meet()
            size = self._log.size
            if size and (size >= SEGMENT or now_s // DAY > self._begun_s // DAY):
                self._turn(now_s)
            head = Head(self._head.first, self._head.prev, self._head.last, self._head.hash)
            data = make(head)
            if data:
                self._write(data, head)
            elif not self._known:
                self._put(head)
            if data:
                self.removed = ""  # a record of it is written
        finally:
            fcntl.flock(self._head_fd, fcntl.LOCK_UN)

    def problem(self) -> str:
        """Return a description of damage to the files, once; "" when there is none."""
        said, self._said = self._said, ""
        return said

    def _meet(self):
        """Read the records of other processes, and clean up after one that was killed."""
        data = os.pread(self._head_fd, HEAD, 0)
        if self._log.fd is not None and data == self._known:
            try:  # no other file can have the inode of an open file
                status = os.stat(self._path)
                found = status.st_dev, status.st_ino, status.st_size
                if found == (*self._log.inode, self._log.size):
                    return
            except FileNotFoundError:
                pass
        self._log.open()
        self._begun_s = int(os.fstat(self._log.fd).st_mtime)
        head, lines = head_of(data), []
        read = self._log.fold(lines.append)
        if read.end < read.size:
            self._log.cut(read.end)
        self._head = _catch_up(head or self._end_of_records(lines), lines, self)
        if head is None and (data.strip(b"\0") or read.size or len(segments(self._folder)) > 1):
            self._said = LOST_HEAD
        self._known = data.strip(b"\0")

    def _end_of_records(self, lines: list) -> Head:
        """Return the head that the records themselves say, where theirs was lost, so that the next
        one follows the last; *lines*: of the last segment.
        """
        *earlier, _ = segments(self._folder)
        first = lines[:1]
        for path in earlier[:1]:
            with open(path, "rb", opener=open_regular) as file:
                first = [file.readline(SEGMENT).rstrip(b"\n")]
        last = lines[-1:]
        for path in earlier[-1:] if not last else ():
            with open(path, "rb", opener=open_regular) as file:
                last = file.read().splitlines()[-1:]
        if not first or not last:
            return beginning(self._agent)
        n, prev = link(first[0])
        end, _ = link(last[0])
        if n is None or end is None:
            return beginning(self._agent)
        return Head(n, prev, end, digest(last[0]))

    def _write(self, data: bytes, head):
        """Write records and the head after them; when one of both fails, write neither."""
        end = self._log.size
        try:
            self._log.append(data, False)
            self._put(head)
        except BaseException:
            try:
                self._log.cut(end)
            finally:  # what stands there all the same is read by the next one
                self._log.close()
            raise

    def _put(self, head):
        data = head.text().encode().ljust(HEAD - 1) + b"\n"
        if os.pwrite(self._head_fd, data, 0) < len(data):
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        self._head, self._known = head, data

    def _turn(self, now_s: int):
        """Begin a new segment, and remove old ones."""
        data = os.pread(self._log.fd, 4096, 0)
        n, _ = link(data.splitlines()[0])
        name = "audit-%012d.jsonl" % (n or self._head.last)
        self._log.begin_anew(os.path.join(self._folder, name))
        self._begun_s = now_s
        self._forget(now_s)

    def _forget(self, now_s: int):
        """Remove the oldest segments: those that are too old, and those beyond the size limit."""
        old = segments(self._folder)[:-1]
        found = [os.stat(path) for path in old]
        aged = count = 0
        if self._kept_s is not None:
            for number, one in enumerate(found, 1):
                if one.st_mtime > now_s:  # the clock was ahead: what comes later says how old it is
                    continue
                if one.st_mtime >= now_s - self._kept_s:
                    break
                # else: written while the clock was unset
                if one.st_mtime >= SET_S or now_s < SET_S:
                    aged = number
        if self._most:  # the segment that begins has room, too
            size = SEGMENT + sum([one.st_size for one in found])
            while count < len(old) and size > self._most:
                size -= found[count].st_size
                count += 1
        count, last = self._removable(old, max(aged, count))
        if not count:
            return
        n, _ = link(last)
        if count > aged:
            self.removed = describe_removal(self._head.first, n, self._most)
        # The head is first: a segment that is left over is only older than the head says.
        self._put(Head(n + 1, digest(last), self._head.last, self._head.hash))
        for path in old[:count]:
            os.unlink(path)

    def _removable(self, paths: list, count: int) -> tuple:
        """Return (how many of the first *count* segments may go, the last line of the last one).

        A segment whose last record is damaged is removed together with the next one.  Records that
        were not copied yet stay."""
        taken = self._taken() if count and self._taken else None
        while count:
            with open(paths[count - 1], "rb", opener=open_regular) as file:
                lines = file.read().splitlines()
            n = link(lines[-1])[0] if lines else None
            if n is not None and (taken is None or n <= taken):
                return count, lines[-1]
            count -= 1
        return 0, b""

    def close(self):
        """Close the files."""
        self._log.close()
        fd, self._head_fd = self._head_fd, None
        if fd is not None:
            os.close(fd)


def describe_removal(first: int, last: int, most: int) -> str:
    """Return the sentence of records that were removed because an audit had *most* bytes."""
    return "records %d to %d were removed: the audit may have %d MiB ([audit] max_size_mb)" % (
        first,
        last,
        most >> 20,
    )


def _catch_up(head: Head, lines: list, store: FileStore) -> Head:
    """Return *head* updated by the *lines* after it, whose writer was killed before it could write
    the head.
    """
    at = len(lines)
    while at and digest(lines[at - 1]) != head.hash:
        at -= 1
    if not at and lines and (link(lines[0]) != (head.last + 1, head.hash)):
        store._said = "the records do not end where the head says"
        return head
    for data in lines[at:]:
        if link(data) != (head.last + 1, head.hash):
            store._said = "lines were added that do not follow from the last record"
            break
        head.last, head.hash = head.last + 1, digest(data)
    return head


def segments(folder: str) -> list:
    """Return the paths of an audit's files, the oldest first."""
    try:
        names = sorted(
            name
            for name in os.listdir(folder)
            if name.startswith("audit-") and name.endswith(".jsonl")
        )
    except FileNotFoundError:
        return []
    return [
        os.path.join(folder, name)
        for name in names + ["audit.jsonl"]
        if os.path.exists(os.path.join(folder, name))
    ]


def read(folder: str, newest: int = 0) -> tuple:
    """Return (iterator over the lines without their ends, ``Head`` or None, whether there is an
    audit).

    newest  how many of the newest lines, 0 for all.  Cost: so much of the files' ends is read
    """
    paths = segments(folder)
    try:
        with open(os.path.join(folder, "audit.head"), "rb", opener=open_regular) as file:
            data = file.read(HEAD + 1)
    except FileNotFoundError:
        data = None

    def lines():
        head = head_of(data or b"")
        for text in _last_lines(paths, newest) if newest else _lines(paths):
            # older ones were to go
            if head is None or (link(text)[0] or head.first) >= head.first:
                yield text

    return lines(), head_of(data or b""), bool(paths or data)


def _lines(paths: list):
    for path in paths:
        with open(path, "rb", opener=open_regular) as file:
            for text in file:
                yield text.rstrip(b"\n")


def _last_lines(paths: list, count: int) -> list:
    """Return the last *count* lines of the files, which follow each other."""
    found = []
    for path in reversed(paths):
        if len(found) >= count:
            break
        found = _end(path, count - len(found)) + found
    return found


def _end(path: str, count: int) -> list:
    """Return the last *count* lines of a file."""
    with open(path, "rb", opener=open_end) as file:
        start, data, step = file.seek(0, os.SEEK_END), b"", _PIECE
        while start and data.count(b"\n") <= count:
            if len(data) > MOST:
                raise OSError(EFBIG, "its lines are too long", path)
            start, end = max(start - step, 0), start
            file.seek(start)
            data = file.read(end - start) + data
            step *= 2  # few pieces, however many lines are asked for
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return lines[-count:]
