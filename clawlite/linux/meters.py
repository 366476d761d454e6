"""What the providers of one agent have used: ``meters.json`` in its state folder, shared by all of its processes.

An entry is added under a lock to what the file holds then, so that two processes never forget what the other has spent.
"""
import fcntl
import os

from clawlite.core.errors import ClawError
from clawlite.core.meter import add
from clawlite.linux.files import state_folder
from clawlite.linux.jsontext import dumps, loads

MAX_FILE = 65536


class Meters:
    """The meters of one agent.  What cannot be written is said once on stderr, and counts until the process ends."""

    def __init__(self, agent: str):
        self._folder = state_folder(agent)
        self._path = os.path.join(self._folder, "meters.json")
        self._spent = {}
        self._seen = None               # which version of the file that was
        self._broken = False

    def stored(self) -> dict:
        """Return {key: [period, amount]} as it stands now.  Cost: one stat, and the file read when it has changed."""
        if not self._broken:
            try:
                status = os.stat(self._path)
                seen = (status.st_ino, status.st_mtime_ns, status.st_size)
                if seen != self._seen:
                    self._spent, self._seen = self._read(), seen
            except OSError:
                self._spent, self._seen = {}, None
        return self._spent

    def add(self, entries: list):
        """Add what an answer used (``core.meter.add``); on the disk when this returns."""
        lock = None
        try:
            if not self._broken:
                os.makedirs(self._folder, 0o700, exist_ok=True)
                lock = os.open(os.path.join(self._folder, "meters.lock"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
                fcntl.flock(lock, fcntl.LOCK_EX)
            spent = self.stored()
            add(spent, entries)
            if not self._broken:
                self._write(spent)
        except OSError as e:
            self._broken = True
            os.write(2, ("clawlite: the meters %s cannot be written: %s\n" % (self._path, e.strerror)).encode())
        finally:
            if lock is not None:
                os.close(lock)

    def _read(self) -> dict:
        """Return what the file says.  A damaged one is set aside: it must not reset a limit unseen."""
        with open(self._path, "rb") as file:
            data = file.read(MAX_FILE)
        try:
            stored = loads(data)
            if not isinstance(stored, dict):
                raise ClawError("no object")
        except ClawError:
            os.replace(self._path, self._path + ".damaged")
            os.write(2, b"clawlite: the meters of this agent were damaged and start anew (meters.json.damaged)\n")
            return {}
        return {key: entry for key, entry in stored.items()
                if isinstance(entry, list) and len(entry) == 2 and all(type(n) is int and n >= 0 for n in entry)}

    def _write(self, spent: dict):
        fd = os.open(self._path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, dumps(spent).encode())
            os.fdatasync(fd)
            status = os.fstat(fd)
        finally:
            os.close(fd)
        os.replace(self._path + ".new", self._path)
        self._seen = (status.st_ino, status.st_mtime_ns, status.st_size)
