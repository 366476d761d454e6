"""The use of one agent's limits, on the disk: in its state folder, shared by all of its processes.

``meters.json`` has the use of providers, and survives a power cut.  ``minute.json`` has the tool
calls of the last minute.  It survives only the process, so that no call waits for the disk.  An
entry is added under a lock to the present content of the file, so that no process loses the counts
of another."""

import fcntl
import os
import time

from clawlite.core.base.errors import ClawError
from clawlite.core.image.image import PROVIDERS
from clawlite.core.policy.ledger import CALLS, ENTRY_AMOUNT, ENTRY_KEY, Ledger, count_use
from clawlite.linux.files.files import aside, state_folder, sync_data, write_whole
from clawlite.linux.files.regular_file import open_regular
from clawlite.linux.files.rollback_marks import replace_marked
from clawlite.linux.io.jsontext import dumps, loads

_MOST_UNWRITTEN = 1000  # entries that are kept while the file cannot be written, the newest
MAX_FILE = 65536


def meter_of(image, now_ms, on_spend=None):
    """Return the meter of the agent of *image* (core/policy/ledger.py).

    now_ms    function -> monotonic ms
    on_spend  as of ``meter.Meter``
    """
    return _Meters(image, now_ms, on_spend).meter


class _Meters:
    """Both files of one agent.  ``meter``: the object that uses them."""

    def __init__(self, image, now_ms, on_spend):
        info = image.agent
        self._spent = CounterFile(info.name, "meters", True)
        self._calls = CounterFile(info.name, "minute", False)

        def clock():
            return now_ms(), int(time.time())

        if image.size_of(PROVIDERS):
            from clawlite.core.policy.meter import Meter

            self.meter = Meter(
                clock,
                self._spent.load,
                info.tokens_per_hour,
                info.cost_per_day,
                info.rates,
                self._calls.load,
                self.add,
                on_spend,
            )
        else:
            self.meter = Ledger(clock, self._spent.load, self._calls.load, self.add)

    def add(self, entries: list):
        """Store *entries* and return the result of the effect STORE for them.  They are in the file
        when this returns.
        """
        if not entries:
            return self.meter.read_use_of_day()
        if entries[0][ENTRY_KEY] == CALLS:
            return self._calls.count_use(self.meter.make_call_entries(entries[0][ENTRY_AMOUNT]))
        return self._spent.count_use(entries)


class CounterFile:
    """One file of {key: [when, amount, ...]}.

    While it cannot be written, which is reported once on stderr, this process counts in memory.
    Later these counts are added to the file, so that the counts of other processes stay.

    lasting  True: it survives a power cut
    """

    def __init__(self, agent: str, name: str, lasting: bool):
        self._folder = state_folder(agent)
        self._path = os.path.join(self._folder, name + ".json")
        self._lock = os.path.join(self._folder, name + ".lock")
        self._lasting = lasting
        self._spent = {}
        self._seen = None  # (inode, time, size) of the file when it was read
        self._broken = False
        self._unwritten = []  # [key, period, amount] that could not be written yet

    def load(self) -> dict:
        """Return the present counts.  Cost: one stat, and reading the file when it has changed."""
        try:
            status = os.stat(self._path)
            seen = (status.st_ino, status.st_mtime_ns, status.st_size)
            if seen != self._seen:
                self._spent, self._seen = self._read(), seen
                for entry in self._unwritten:
                    count_use(self._spent, [entry])
        except OSError:
            if not self._unwritten:
                self._spent, self._seen = {}, None
        return self._spent

    def count_use(self, entries: list) -> bool:
        """Add *entries* (core/policy/ledger.py); return False when a limit does not admit them."""
        lock = counted = None
        try:
            os.makedirs(self._folder, 0o700, exist_ok=True)
            lock = os.open(self._lock, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            counted = count_use(self.load(), entries)
            if counted:
                self._write(self._spent)
                self._broken, self._unwritten = False, []
        except OSError as e:
            if not self._broken:
                self._broken = True
                os.write(
                    2,
                    (
                        "clawlite: the meters %s cannot be written: %s\n" % (self._path, e.strerror)
                    ).encode(),
                )
            if counted is None:
                counted = count_use(self._spent, entries)
            if counted:
                self._remember(entries)
        finally:
            if lock is not None:
                os.close(lock)
        return counted

    def _remember(self, entries: list):
        """Keep *entries* until the file takes them, one for each key and period."""
        for key, period, amount in entries:
            same = [e for e in self._unwritten if e[:2] == [key, period] and key != CALLS]
            if same:
                same[0][ENTRY_AMOUNT] += amount
            else:
                self._unwritten.append([key, period, amount])
        del self._unwritten[:-_MOST_UNWRITTEN]

    def _read(self) -> dict:
        """Return the content of the file.  A damaged file is set aside and reported, because it
        resets the limits.
        """
        with open(self._path, "rb", opener=open_regular) as file:
            data = file.read(MAX_FILE)
        try:
            stored = loads(data)
            if not isinstance(stored, dict):
                raise ClawError("no object")
        except ClawError:
            name = aside(self._path)
            os.replace(self._path, name)
            os.write(
                2,
                (
                    "clawlite: the meters of this agent were damaged and start anew "
                    "(%s)\n" % os.path.basename(name)
                ).encode(),
            )
            return {}
        return {
            key: entry
            for key, entry in stored.items()
            if isinstance(entry, list)
            and len(entry) % 2 == 0
            and (len(entry) == 2 or key == CALLS)
            and all(type(n) is int and n >= 0 for n in entry)
        }

    def _write(self, spent: dict):
        fd = os.open(
            self._path + ".new",
            os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC,
            0o600,
        )
        try:
            data = dumps(spent).encode()
            write_whole(fd, data)
            if self._lasting:
                sync_data(fd)
            status = os.fstat(fd)
        finally:
            os.close(fd)
        replace_marked(self._path + ".new", self._path, data, self._lasting)
        self._seen = (status.st_ino, status.st_mtime_ns, status.st_size)
