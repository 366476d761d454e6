"""What one process of an agent does at a time, as long as it lives: its channels, and its tasks.

Two processes can share a state folder: a service, and a person who starts the same agent beside it.
Without a lock both would fire each schedule, a broker would disconnect each of them in turn,
because they have the same client id, and a task would run in a process whose operator did not give
it.  The lock is flock(2) on a file of the state folder, so the kernel releases it however the
process ends.  When the file is removed, a later process can lock a new one.  So an owner that lives
long checks that its file is still the one at that path.
"""

import fcntl
import os

from clawlite.linux.files.files import leads_to


class ProcessLock:
    """One process' end of the lock of *folder*, a folder in the state folder of an agent; with
    None nothing is shared, and ``take`` always succeeds.
    """

    def __init__(self, folder):
        self._folder, self._fd = folder, None
        self._path = os.path.join(folder, "lock") if folder is not None else ""

    def take(self) -> str:
        """Take the lock; return "", or its owner: "process N" or "another process".

        Raises ``OSError`` when the file cannot be opened.
        """
        if self._folder is None or self._fd is not None:
            return ""
        os.makedirs(self._folder, 0o700, exist_ok=True)
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(fd, 20, 0).strip()
            os.close(fd)
            return "process %s" % owner.decode() if owner.isdigit() else "another process"
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        self._fd = fd
        return ""

    def is_lost(self) -> bool:
        """Return whether the locked file was removed or replaced."""
        return self._fd is not None and not leads_to(self._path, self._fd)

    def release(self):
        """Release the lock."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)
