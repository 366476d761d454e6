"""Conversations in files (``backend: filesystem``): a line for each request that stored something, for people and their tools to read.

    <path of the store, or memory/files/NAME in the state folder>/[identity/NAME/ or channel/NAME/]conversation.jsonl
    {"n": number of the first entry, "at": ms since 1970, "request": [id, mark, entries] or null, "entries": [[content, key, metadata], ...]}

1. A line is one write(2) at the end: a request is there whole or not at all, and what write has returned for survives ``kill -9``; of a power-safe
   store it is synced first.  A torn last line is cut off by the next writer, and kept beside the file.
2. Compaction and retention write the file anew beside its place and rename it.  Numbers are never given twice: the newest entry stays.
3. All of a file is in memory while it is used, at most ``MAX_BYTES`` of it.  All processes of an agent share it, under a lock.
4. A line that is no such object is an error that names it: somebody has edited the file, and nothing is thrown away.  Lines with NUL are passed
   over: a power cut makes them, of a store that is not power-safe.
"""
import fcntl
import os
import time
from errno import ENOSPC
from stat import S_ISREG

from clawlite.core.errors import ClawError, InvalidParams, StoreError
from clawlite.linux.memory_places import KEPT_MS
from clawlite.linux.memory_sql import lasting_folder, sync_folder

FILE = "conversation.jsonl"
MAX_BYTES = 16777216
_LOCK_TRIES, _LOCK_S = 500, 0.01


class Record:
    """One line of a file.

    n        number of its first entry;  at  ms;  request  [id, mark, how many entries it had] or None
    entries  list of [content, key, metadata]
    """

    def __init__(self, n: int, at: int, request, entries: list):
        self.n, self.at, self.request, self.entries = n, at, request, entries


class Lines:
    """One file, as this process knows it.

    path   of the file
    dumps, loads  JSON
    """

    def __init__(self, path: str, dumps, loads):
        self.path, self._dumps, self._loads = path, dumps, loads
        self.records = []
        self._status = None             # (inode, bytes) of what is in memory
        self._torn = 0                  # bytes behind the last whole line
        self._fd = None

    def open(self, new: bool) -> bool:
        """Lock the file, and read what others have changed; return whether there is one.  *new*: make it.  ``close`` ends it."""
        while True:
            try:
                if new:
                    lasting_folder(os.path.dirname(self.path))
                self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | (os.O_CREAT if new else 0) | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:
                return False
            except PermissionError:
                if new:
                    raise
                self._fd = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            status = os.fstat(self._fd)
            if not S_ISREG(status.st_mode):     # a pipe takes what is written, and keeps nothing
                raise StoreError("%s is no file" % self.path, "move it away to begin anew")
            self._lock()
            status = os.fstat(self._fd)
            try:
                if os.path.samestat(os.stat(self.path), status):
                    break
            except FileNotFoundError:
                pass
            self.close()
        if (status.st_ino, status.st_size) != self._status:
            self._read(status)
        return True

    def _lock(self):
        """Raises ``StoreError``: whoever may read the file can lock it, a tool too, and no agent waits for that without an end."""
        for _ in range(_LOCK_TRIES):
            try:
                return fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_LOCK_S)
        raise StoreError("%s: another program has it locked for %d s" % (self.path, _LOCK_TRIES * _LOCK_S), "end that program: fuser names it")

    def close(self):
        if self._fd is not None:
            os.close(self._fd)
        self._fd = None

    def last(self) -> int:
        """Return the number of the newest entry, 0 when there is none."""
        return self.records[-1].n + len(self.records[-1].entries) - 1 if self.records else 0

    def append(self, record: Record, lasting: bool, most: int):
        """Write *record* behind the others, whole or not at all; *most*: bytes that the file may have.  Raises ``OSError``, ``StoreError``."""
        inode, size = self._status
        if self._torn:
            self._cut(size)
        is_first, data = not size, self._line(record)
        if size + len(data) > most:
            raise StoreError("%s would have %d bytes, and may have %d" % (self.path, size + len(data), most), "let it be compacted, or remove it")
        try:
            written = os.write(self._fd, data)
            if written < len(data):     # a full disk takes what fits
                raise OSError(ENOSPC, os.strerror(ENOSPC))
            if lasting:
                os.fdatasync(self._fd)
                if is_first:
                    sync_folder(os.path.dirname(self.path))
        except OSError:
            os.ftruncate(self._fd, size)
            raise
        self.records.append(record)
        self._status = inode, size + len(data)

    def keep(self, records: list, now: int):
        """Write the file anew with *records*; of the others, what tells a request that is sent again."""
        young = [Record(record.n, record.at, record.request, []) for record in self.records
                 if record.request and record.at >= now - KEPT_MS and not any(other.n + len(other.entries) > record.n >= other.n for other in records)]
        records = sorted(young + records, key=lambda record: record.n)
        beside = self.path + ".new"
        with _fresh(beside) as file:
            file.write(b"".join(map(self._line, records)))
            file.flush()
            os.fdatasync(file.fileno())
            status = os.fstat(file.fileno())
        os.replace(beside, self.path)
        sync_folder(os.path.dirname(self.path))
        self.records, self._status, self._torn = records, (status.st_ino, status.st_size), 0

    def _line(self, record: Record) -> bytes:
        return self._dumps({"n": record.n, "at": record.at, "request": record.request, "entries": record.entries}).encode() + b"\n"

    def _cut(self, size: int):
        with _fresh(self.path + ".damaged") as file:
            file.write(os.pread(self._fd, self._torn, size))
        os.ftruncate(self._fd, size)
        self._torn = 0

    def _read(self, status):
        if status.st_size > MAX_BYTES:
            raise StoreError("%s has more than %d bytes" % (self.path, MAX_BYTES), "move it away to begin anew")
        data, self.records, self._status = b"", [], None
        while len(data) < status.st_size:
            part = os.pread(self._fd, status.st_size - len(data), len(data))
            if not part:                # somebody without the lock has made it shorter
                raise StoreError("%s: it becomes shorter while it is read" % self.path, "send this again, when whoever changes it is done")
            data += part
        *lines, torn = data.split(b"\n")
        last = 0
        for number, line in enumerate(lines):
            record = self._record(line, last)
            if record is None and b"\0" in line and line != lines[-1]:
                continue                # a power cut has taken it from between others
            if record is None and not any([self._record(other, 0) for other in lines[number + 1:]]):
                torn = b"\n".join(lines[number:] + [torn])         # what a power cut left
                break
            if record is None:
                raise StoreError("%s: line %d is no line of a conversation" % (self.path, number + 1), "mend it, or move the file away to begin anew")
            self.records.append(record)
            last = record.n + len(record.entries) - 1
        self._torn = len(torn)
        self._status = status.st_ino, status.st_size - self._torn

    def _record(self, line: bytes, last: int):
        """Return the ``Record`` that *line* is, behind the entry with the number *last*; None when it is none."""
        try:
            value = self._loads(line)
        except ClawError:
            return None
        if not isinstance(value, dict) or type(value.get("n")) is not int or type(value.get("at")) is not int or value["n"] <= last:
            return None
        request, entries = value.get("request"), value.get("entries")
        if request is not None and not (isinstance(request, list) and [type(part) for part in request] == [str, int, int]):
            return None
        if not isinstance(entries, list) or not all([_is_entry(entry) for entry in entries]):
            return None
        return Record(value["n"], value["at"], request, entries)


def _fresh(path: str):
    """Return a new file of the name *path*, open for writing: what had the name loses it, and no link is followed."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "wb")


def _is_entry(entry) -> bool:
    return isinstance(entry, list) and len(entry) == 3 and isinstance(entry[0], (str, dict)) and isinstance(entry[1], (str, type(None))) \
        and isinstance(entry[2], (dict, type(None)))


def known(records: list, request_id: str, mark: int, now: int):
    """Return the ``Record`` of a request that was sent before, or None.  Raises ``InvalidParams`` when it had other entries."""
    for record in reversed(records):
        if record.at < now - KEPT_MS:
            return None
        if record.request and record.request[0] == request_id:
            if record.request[1] != mark:
                raise InvalidParams("context.request_id: another request had this id within %d s" % (KEPT_MS // 1000), "send a new id with new entries")
            return record
    return None
