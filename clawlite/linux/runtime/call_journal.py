"""The records of calls and approvals (core/idempotency/idempotency_record.py): ``calls.journal`` in
the agent's state folder, append-only.

1. Kill-safe: a record is one write(2), and it survives ``kill -9`` once write has returned.  Not
   power-safe: nothing is synced.
2. All processes of one agent share the file, under a lock.  Each has a slot, a locked byte of
   ``calls.lock``; a process whose slot is free has ended.  Before a process records that a handler
   begins, it reads the records of the others, so that no id runs in two processes.
3. Times continue from the last process of the same boot, even when the clock was set since.  After
   a boot the last record counts as one of now: the clock may have been wrong when it was written.
4. At the start, and when it has grown, the file is written again with the records that still count.
   A torn last line is dropped.  Damaged lines are dropped, too, but the damaged file is kept aside
   and a message on stderr says so.
5. Every ``CHECKPOINT`` bytes a line (a checkpoint) names the positions of the records that have no
   end yet.  When a checkpoint is older than the time for which calls are remembered, a start reads
   only these records and what follows the checkpoint.  An earlier version takes the line for a call
   that is over.
"""

import fcntl
import os
import time

from clawlite.core.base.errors import ClawError
from clawlite.core.idempotency.idempotency import (
    BEGIN,
    END,
    GONE,
    KEPT_S,
    WAIT,
    age_s,
    line,
    parse,
    still,
)
from clawlite.linux.files.files import aside, leads_to, state_folder, tell_replaced
from clawlite.linux.files.record_log import RecordLog
from clawlite.linux.files.rollback_marks import UP, Mark, boot_id
from clawlite.linux.io.jsontext import dumps, loads

_KIND, _WHEN, _OWNER, _KEY, _TEXT = range(5)  # of a record

MAX_GROWTH = 1048576  # bytes that the file may reach, or twice its size, before a rewrite
CHECKPOINT = 65536  # bytes from one checkpoint to the next
MAX_OPEN = 1000  # records that a checkpoint names; when more have no end, none is written
MAX_ARGUMENTS = 4096  # bytes of JSON of a waiting call; longer arguments are dropped
_BOOT = "boot"  # key of the first line, which says to which boot the times belong
_OPEN = "open"  # key of a checkpoint; its text: [its position, those of records without an end]
_LINE = 16384  # bytes; a record without an end is shorter


class Journal:
    """The journal of one agent, as one of its processes has it."""

    def __init__(self, agent: str):
        self._folder = state_folder(agent)
        self._path = os.path.join(self._folder, "calls.journal")
        self._lock = None
        self._log = RecordLog(self._path, "the journal of calls", Mark(self._path))
        self._slot = 0
        self._boot_s = 0  # seconds that are added to the time since boot
        self._earlier_s = None  # when an earlier boot wrote the last record
        self._forget()
        self._rewrite_bytes = 0
        self._has_reported = False
        self._key_prefix = "%x" % time.time_ns()

    def waiting(self) -> list:
        """Return [(key, payload), ...] of the approvals that waited in processes that have ended.
        The file is compacted.
        """
        try:
            self._open()
            with _Locked(self._lock):
                records = self._compact(
                    lambda owner: owner != self._slot and self._is_running(owner)
                )
            return [
                (key, loads(text.encode()))
                for kind, _, owner, key, text in records
                if kind == WAIT and (owner == self._slot or not self._is_running(owner))
            ]
        except (OSError, ClawError) as e:
            self._report("cannot be opened: %s" % (getattr(e, "strerror", None) or e))
            return []

    def calls(self) -> list:
        """Return [(key, age in seconds, bytes), ...] of the calls that have begun or ended."""
        try:
            self._open()
            with _Locked(self._lock):
                return self._calls_of(self._compact(self._is_running))
        except OSError as e:
            self._report("cannot be opened: %s" % (getattr(e, "strerror", None) or e))
            return []

    def last_record(self, key: str):
        """Return (kind, payload) of the last BEGIN or END of *key*, or None.  Cost: the file is
        read.
        """
        try:
            self._open()
            with _Locked(self._lock):
                self._reopen_if_replaced()
                data = self._log.contents()
            found, mark = None, b" %s " % key.encode()
            at = data.find(mark)
            while at >= 0:
                end = data.find(b"\n", at)
                record = parse(data[data.rfind(b"\n", 0, at) + 1 : end])
                if record and record[_KEY] == key and record[_KIND] in (BEGIN, END):
                    found = record[_KIND], loads(record[_TEXT].encode())
                at = data.find(mark, end) if end >= 0 else end
            return found
        except (OSError, ClawError) as e:
            self._report("cannot be opened: %s" % (getattr(e, "strerror", None) or e))
            return None

    def keep(self, kind: int, key: str, payload) -> tuple:
        """Append one record; return (True, records of others) or (False, why).

        For a BEGIN, the records of others are those that they have written since, in the form of
        ``calls``; else there are none.  When *key* is among them, nothing is written.  Cost: four
        system calls, and one more when another process wrote the end of the file."""
        if "-" not in key and "." not in key:
            key = "%s.%s" % (self._key_prefix, key)
        try:
            text = dumps(payload)
            size = len(text.encode())
        except ValueError as e:  # a handler's error may contain a value that JSON does not have
            text = dumps([payload[0], {"code": -32603, "message": "no JSON: %s" % e}])
            size = len(text)
        if kind == WAIT and size > MAX_ARGUMENTS:
            text = dumps([payload[0], None, payload[2]])
        try:
            self._open()
            with _Locked(self._lock):
                others = (
                    self._calls_of_others() if self._reopen_if_replaced() and kind == BEGIN else []
                )
                if not any(other[0] == key for other in others):
                    self._append((kind, self._now(), self._slot, key, text))
            return True, others
        except OSError as e:
            self._report("cannot be written: %s" % e.strerror)
            return False, e.strerror

    def close(self):
        self._log.close()
        fd, self._lock = self._lock, None
        if fd is not None:
            os.close(fd)

    # -- the file, which other processes share

    def _open(self):
        lock = os.path.join(self._folder, "calls.lock")
        if self._lock is not None and not leads_to(lock, self._lock):
            self.close()  # other processes lock the file that has this name now
            tell_replaced("the journal of calls", self._path)
        if self._lock is None:
            os.makedirs(self._folder, 0o700, exist_ok=True)
            self._lock = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._slot = 1
            while not self._lock_slot(self._slot):
                self._slot += 1
        if self._log.fd is None:
            with _Locked(self._lock):
                self._open_file()

    def _open_file(self):
        self._log.open()
        self._forget()
        self._rewrite_bytes = max(MAX_GROWTH, 2 * self._log.size)
        up = _up_s()
        first = parse(os.pread(self._log.fd, 256, 0).partition(b"\n")[0])
        if first and first[_KEY] == _BOOT and first[_TEXT] == _boot():
            self._boot_s = first[_OWNER]
        # first process of this boot: times are seconds since 1970 by the present clock
        else:
            self._boot_s = int(time.time()) - up
            self._earlier_s = self._last_s()
        if not self._log.size:
            self._append(self._boot_record())

    def _last_s(self):
        """Return the time of the last whole record, None where there is none."""
        at = max(0, self._log.size - 4 * _LINE)
        lines = os.pread(self._log.fd, 4 * _LINE, at).split(b"\n")[:-1]
        found = (parse(data) for data in reversed(lines))
        return next((record[_WHEN] for record in found if record and record[_WHEN]), None)

    def _forget(self):
        self._read_bytes = 0  # bytes of the file that this process has read
        self._open_at: dict = {}  # {key: position} of records without an end, in those bytes
        self._checkpoint = 0  # position of the last checkpoint, in those bytes
        # no checkpoint is written after damage: a start that trusted it would not report that
        self._is_damaged = False

    def _note_position(self, record: tuple, at: int):
        """Note that the *record* stands at the position *at*."""
        if record[_KIND] in (WAIT, BEGIN):
            self._open_at[record[_KEY]] = at
        elif record[_KEY] == _OPEN:
            self._checkpoint = at
        else:
            self._open_at.pop(record[_KEY], None)

    def _boot_record(self) -> tuple:
        return 0, 0, self._boot_s, _BOOT, _boot()

    def _now(self) -> int:
        return self._boot_s + _up_s()

    def _lock_slot(self, slot: int) -> bool:
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot)
        except BlockingIOError:
            return False
        return True

    def _is_running(self, owner: int) -> bool:
        if owner == self._slot:
            return True
        if not self._lock_slot(owner):
            return True
        fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, owner)
        return False

    def _reopen_if_replaced(self) -> bool:
        """Open the file again when it was replaced.  Return whether it has records that this
        process has not read.
        """
        try:
            status = os.stat(self._path)
        except FileNotFoundError:  # somebody has removed it
            status = None
        if status is None or (status.st_dev, status.st_ino) != self._log.inode:
            self._open_file()
        else:
            self._log.size = status.st_size
        return self._log.size != self._read_bytes

    def _calls_of_others(self) -> list:
        """Read what was appended since the last time; return the calls of others in it."""
        found = []

        def apply(text: bytes):
            record = parse(text)
            if record is None:
                self._is_damaged = True
            else:
                self._note_position(record, self._read_bytes)
                if record[_OWNER] != self._slot:
                    found.append(record)
            self._read_bytes += len(text) + 1

        self._log.fold(apply, start=self._read_bytes)
        return self._calls_of(found)

    def _calls_of(self, records) -> list:
        now, last = self._now(), {record[_KEY]: record for record in records}
        calls = [
            (key, age_s(when, now) if kind == END else 0, len(text))
            for kind, when, _, key, text in last.values()
            if kind in (BEGIN, END)
        ]
        return [about for about in calls if about[1] < KEPT_S]

    def _append(self, record: tuple):
        data, end, has_read = line(*record), self._log.size, self._read_bytes == self._log.size
        if not has_read and os.pread(self._log.fd, 1, end - 1) != b"\n":
            data = b"\n" + data  # the file ends with a part of a record that could not be removed
        self._log.append(data, False)
        if has_read:
            self._note_position(record, end)
            self._read_bytes = self._log.size
        if self._log.size > self._rewrite_bytes:
            self._compact(self._is_running)
            if not has_read:
                self._forget()  # the next BEGIN must find the records of others
        elif has_read and self._log.size - self._checkpoint > CHECKPOINT:
            self._append_checkpoint()

    def _append_checkpoint(self):
        if len(self._open_at) <= MAX_OPEN and not self._is_damaged:
            places = dumps([self._log.size, *self._open_at.values()])
            try:
                self._append((GONE, self._now(), self._slot, _OPEN, places))
            except OSError:
                pass  # the next record tries again; until then a start reads more

    def _compact(self, is_running) -> list:
        """Write the file again with the records that still count; return them."""
        self._reopen_if_replaced()
        now = then = self._now()
        if self._earlier_s is not None:
            then, self._earlier_s = min(now, self._earlier_s), None
        start, known = _checkpoint(self._log.fd, self._log.size, then)
        last, read = self._last_records(start, known, then)
        is_first = next(iter(last), None) == _BOOT
        beginning = last.pop(_BOOT, None)
        kept = [still(record, then, is_running) for record in last.values()]
        if then != now:
            kept = [one and (one[_KIND], one[_WHEN] + now - then, *one[_OWNER:]) for one in kept]
        live = [record for record in kept if record]
        changed = (
            read.end < read.size
            or len(last) + 1 != read.total
            or kept != list(last.values())
            or not is_first
            or beginning != self._boot_record()
        )
        if read.damaged:
            self._keep_damaged(len(read.damaged), read.total)
        self._forget()
        lines = self._encode(live)
        if changed:
            self._log.rewrite(lines, False)
        else:
            for _ in lines:
                pass
        self._read_bytes = self._log.size
        self._rewrite_bytes = max(MAX_GROWTH, 2 * self._log.size)
        return live

    def _last_records(self, start: int, known: list, now: int) -> tuple:
        """Return ({key: its last record}, ``Fold``) of what stands from the position *start* on.
        The keys are in the order of these records.

        known  records from before *start*
        Records that do not count any more are left out.  Cost: the memory of those that do.
        """
        last: dict = {record[_KEY]: record for record in known}

        def apply(data: bytes) -> bool:
            record = parse(data)
            if record is None:
                return False
            last.pop(record[_KEY], None)
            kind = record[_KIND]
            if kind != GONE and (kind != END or age_s(record[_WHEN], now) < KEPT_S):
                last[record[_KEY]] = record
            return True

        return last, self._log.fold(apply, start=start)

    def _keep_damaged(self, damaged: int, count: int):
        kept = aside(self._path)
        if os.path.lexists(kept):  # eight are kept already: this is the ninth
            os.unlink(kept)
        os.link(self._path, kept)
        self._report(
            "was damaged: %d lines of %d are lost (%s)" % (damaged, count, os.path.basename(kept)),
            True,
        )

    def _encode(self, records: list):
        """Yield the lines of a file with these *records*, and note where they stand."""
        at = 0
        for record in [self._boot_record()] + records:
            data = line(*record)
            self._note_position(record, at)
            at += len(data)
            yield data

    def _report(self, problem: str, always: bool = False):
        if not self._has_reported or always:
            self._has_reported = self._has_reported or not always
            os.write(2, ("clawlite: the journal of calls %s %s\n" % (self._path, problem)).encode())


class _Locked:
    def __init__(self, fd: int):
        self._fd = fd

    def __enter__(self):
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def __exit__(self, *_):
        fcntl.flock(self._fd, fcntl.LOCK_UN)


def _checkpoint(fd: int, size: int, now: int) -> tuple:
    """Return (position of a checkpoint, [records before it without an end]).  No other record
    before the checkpoint counts.  Return (0, []) when the end of the file has no such checkpoint.
    """
    first = max(0, size - 3 * CHECKPOINT)
    data = os.pread(fd, size - first, first)
    mark = b" %s [" % _OPEN.encode()
    at = data.rfind(mark)
    while at >= 0:
        begin = data.rfind(b"\n", 0, at) + 1
        record = parse(data[begin : data.find(b"\n", at)])
        if record and record[_KEY] == _OPEN and age_s(record[_WHEN], now) >= KEPT_S:
            place, *places = loads(record[_TEXT].encode())
            found = [parse(os.pread(fd, _LINE, one).partition(b"\n")[0]) for one in places]
            if place == first + begin and None not in found:
                return place, found
        at = data.rfind(mark, 0, begin)  # a text in a record may hold the mark many times
    return 0, []


def _up_s() -> int:
    return int(time.clock_gettime(UP))


def _boot() -> str:
    """Return an id of the present boot of this machine."""
    return '"%s"' % boot_id()
