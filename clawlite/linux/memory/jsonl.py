"""Conversations in files (``backend: filesystem``): a line for each request that stored something,
for people and their tools to read.

A file is PLACE/conversation.jsonl, PLACE/identity/NAME/conversation.jsonl or
PLACE/channel/NAME/conversation.jsonl.  PLACE is the path of the store, or memory/files/STORE in the
state folder.  A line is

    {"n": number of the first entry, "at": ms since 1970, "request": [id, mark, entries] or null,
     "entries": [[content, key, metadata], ...], "crc": 8 hexadecimal digits}

where "crc" is the CRC-32 of the line up to the comma before it.  Lines of earlier versions, and
those that a person wrote, may lack it.

1. A line is one write(2) at the end: a request is there whole or not at all, and survives ``kill
   -9`` once it is answered.  A power-safe store syncs it before the answer.  The next writer cuts a
   torn last line off, keeps it beside the file as ``NAME.damaged``, and says so.
2. Compaction and retention write the file anew beside its place and rename it.  The newest entry is
   always kept, so no number is given twice.
3. All of a file is in memory while it is used, at most ``MAX_BYTES`` of it.  All processes of an
   agent share it, under a lock.
4. A line that is not valid, or does not fit its CRC, is reported; a copy of the file is kept as
   ``NAME.damaged``, and the other lines are used.  Where the file cannot be written anew, the
   request fails with an error that names the line.
"""

import fcntl
import os
import re
import time
from binascii import crc32
from errno import EACCES, EPERM, EROFS
from stat import S_ISREG

from clawlite.core.base.errors import ClawError, InvalidParams, StoreError
from clawlite.linux.files.files import aside, print_to_stderr
from clawlite.linux.files.record_log import RecordLog, lasting_folder, sync_folder
from clawlite.linux.files.rollback_marks import Mark
from clawlite.linux.memory.partitions import KEPT_MS

FILE = "conversation.jsonl"
MAX_BYTES = 16777216
_LOCK_TRIES, _LOCK_S = 500, 0.01
_SEAL = re.compile(rb',"crc":"([0-9a-f]{8})"}\Z')

REQUEST_ID, REQUEST_MARK, REQUEST_COUNT = range(3)  # positions in ``Record.request``
CONTENT, KEY, METADATA = range(3)  # positions in an entry of a record


class Record:
    """One line of a file.

    n        number of its first entry;  at  ms;  request  [id, mark, how many entries it had] or
                                             None
    entries  list of [content, key, metadata]
    """

    def __init__(self, n: int, at: int, request, entries: list):
        self.n, self.at, self.request, self.entries = n, at, request, entries


class JSONLFile:
    """One file, as this process knows it.

    path   of the file
    dumps, loads  JSON
    folder  the state folder of its agent
    """

    def __init__(self, path: str, dumps, loads, folder: str = ""):
        self.path, self._dumps, self._loads = path, dumps, loads
        self.records = []
        self._status = None  # (inode, bytes) of what is in memory
        self._torn = 0  # bytes behind the last whole line
        self._told = None  # (inode, bytes) of the torn file that has been reported
        self._damaged = []  # numbers of lines that are not valid
        self._log = RecordLog(path, "the conversation", Mark(path, 0, folder))

    def open(self, new: bool) -> bool:
        """Lock the file, and read what others have changed; return whether there is one.  *new*:
        make it.  ``close`` ends it.
        """
        while True:
            try:
                if new:
                    lasting_folder(os.path.dirname(self.path))
                flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
                self._log.adopt(os.open(self.path, flags | (os.O_CREAT if new else 0), 0o600))
            except FileNotFoundError:
                return False
            except OSError as e:
                if new or e.errno not in (EACCES, EPERM, EROFS):
                    raise
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                self._log.adopt(os.open(self.path, flags))
            status = os.fstat(self._log.fd)
            if not S_ISREG(status.st_mode):  # a pipe takes what is written, and keeps nothing
                raise StoreError("%s is no file" % self.path, "move it away to start empty")
            self._lock()
            status = os.fstat(self._log.fd)
            try:
                if os.path.samestat(os.stat(self.path), status):
                    break
            except FileNotFoundError:
                pass
            self.close()
        if (status.st_ino, status.st_size) != self._status:
            self._read(status)
            if self._damaged:
                self._set_aside()
                self.close()  # the lock is the old file's
                return self.open(new)
        return True

    def _lock(self):
        """Raises ``StoreError``: whoever may read the file can lock it, a tool too, and no agent
        waits for that without an end.
        """
        for _ in range(_LOCK_TRIES):
            try:
                return fcntl.flock(self._log.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_LOCK_S)
        raise StoreError(
            "%s: another program has it locked for %d s" % (self.path, _LOCK_TRIES * _LOCK_S),
            "stop that program: fuser names it",
        )

    def close(self):
        self._log.close()

    def last(self) -> int:
        """Return the number of the newest entry, 0 when there is none."""
        return self.records[-1].n + len(self.records[-1].entries) - 1 if self.records else 0

    def append(self, record: Record, lasting: bool, most: int):
        """Write *record* behind the others, whole or not at all; *most*: bytes that the file may
        have.  Raises ``OSError``, ``StoreError``.
        """
        inode, size = self._status
        if self._torn:
            self._cut(size)
        is_first, data = not size, self._line(record)
        if size + len(data) > most:
            raise StoreError(
                "%s would have %d bytes, and may have %d" % (self.path, size + len(data), most),
                "compact it, or remove it",
            )
        self._log.size = size
        if lasting and is_first:
            sync_folder(os.path.dirname(self.path))
        self._log.append(data, lasting)
        self.records.append(record)
        self._status = inode, size + len(data)

    def keep(self, records: list, now: int):
        """Write the file anew with *records*; of the others, what tells a request that is sent
        again.
        """
        young = [
            Record(record.n, record.at, record.request, [])
            for record in self.records
            if record.request
            and record.at >= now - KEPT_MS
            and not any(other.n + len(other.entries) > record.n >= other.n for other in records)
        ]
        if self._torn:
            self._cut(self._status[1])
        self._replace(sorted(young + records, key=lambda record: record.n))

    def _replace(self, records: list):
        """Write the file anew with *records* and nothing else."""
        self._log.rewrite(map(self._line, records), True)
        self.records, self._torn = records, 0
        self._status = self._log.inode[1], self._log.size

    def _line(self, record: Record) -> bytes:
        text = self._dumps(
            {"n": record.n, "at": record.at, "request": record.request, "entries": record.entries}
        ).encode()
        return b'%s,"crc":"%08x"}\n' % (text[:-1], crc32(text[:-1]))

    def _set_aside(self):
        """Keep a copy of the damaged file beside the new one, and say so.  Raises ``StoreError``:
        it cannot be written.
        """
        numbers = self._damaged
        try:
            kept = self._log.set_aside()
            self._replace(self.records)
        except OSError as e:
            self._status = None
            raise StoreError(
                "%s: line %d is no line of a conversation, or was changed; it cannot "
                "be set aside: %s" % (self.path, numbers[0], e.strerror),
                "repair it, or move the file away to start empty",
            ) from None
        print_to_stderr(
            "the conversation %s was damaged: %s; %s has it as it was"
            % (
                self.path,
                "line%s %s%s"
                % (
                    "s" * (len(numbers) > 1),
                    ", ".join(map(str, numbers[:10])),
                    " ..." * (len(numbers) > 10),
                ),
                kept,
            )
        )

    def _cut(self, size: int):
        self._log.set_aside(size)
        self._log.cut(size)
        self._torn = 0

    def _read(self, status):
        if status.st_size > MAX_BYTES:
            raise StoreError(
                "%s has more than %d bytes" % (self.path, MAX_BYTES), "move it away to start empty"
            )
        self.records, self._status = [], None
        read = self._log.fold(self._apply, _SEAL.search)
        if read.size < status.st_size:  # somebody without the lock has made it shorter
            raise StoreError(
                "%s: it got shorter while it was read" % self.path,
                "send this again when the other program has finished",
            )
        self._damaged, last = read.damaged, read.total
        while self._damaged and self._damaged[-1] == last:  # what a power cut left
            last = self._damaged.pop() - 1
        if read.is_open:
            self._damaged.append(read.total)
        self._torn = 0 if read.is_open else read.size - read.end
        self._status = status.st_ino, read.end
        if self._torn and self._told != (status.st_ino, status.st_size):
            self._told = status.st_ino, status.st_size
            print_to_stderr(
                "the conversation %s has %d bytes at its end that are not a whole line; "
                "they will be kept in %s" % (self.path, self._torn, aside(self.path))
            )

    def _apply(self, line: bytes) -> bool:
        """Take the ``Record`` that *line* is; return False when it is none, or does not follow."""
        record = self._record(line)
        if record is None or record.n <= self.last():
            return False
        self.records.append(record)
        return True

    def _record(self, line: bytes):
        """Return the ``Record`` that *line* is, or None."""
        seal = _SEAL.search(line)
        if seal and crc32(line[: seal.start()]) != int(seal[1], 16):
            return None
        try:
            value = self._loads(line)
        except ClawError:
            return None
        if (
            not isinstance(value, dict)
            or type(value.get("n")) is not int
            or type(value.get("at")) is not int
        ):
            return None
        request, entries = value.get("request"), value.get("entries")
        if request is not None and not (
            isinstance(request, list) and [type(part) for part in request] == [str, int, int]
        ):
            return None
        if not isinstance(entries, list) or not all([_is_entry(entry) for entry in entries]):
            return None
        return Record(value["n"], value["at"], request, entries)


def _is_entry(entry) -> bool:
    return (
        isinstance(entry, list)
        and len(entry) == 3
        and isinstance(entry[CONTENT], (str, dict))
        and isinstance(entry[KEY], (str, type(None)))
        and isinstance(entry[METADATA], (dict, type(None)))
    )


def earlier_request(records: list, request_id: str, mark: int, now: int):
    """Return the ``Record`` of a request that was sent before, or None.  Raises
    ``InvalidParams`` when it had other entries.
    """
    for record in reversed(records):
        if record.at < now - KEPT_MS:
            return None
        if record.request and record.request[REQUEST_ID] == request_id:
            if record.request[REQUEST_MARK] != mark:
                raise InvalidParams(
                    "context.request_id: another request had this id within %d s"
                    % (KEPT_MS // 1000),
                    "send a new id with new entries",
                )
            return record
    return None
