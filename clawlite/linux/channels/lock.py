"""Which process of an agent has its channels: one at a time, as long as it lives.

Two processes that share a state folder (a service, and a person who starts the same agent beside
it) would both fire each schedule, and a broker would throw each of them out in turn, because they
have the same client id.  The lock is flock(2) on a file of the state folder: the kernel gives it
back however the process ends.  A lock whose file was removed holds nobody off who starts later, so
its owner looks whether it still has the file that others find.
"""

import fcntl
import os

from clawlite.linux.files.files import leads_to


class ChannelLock:
    """The lock of one agent's channels.

    folder  where channels keep their state, or None: nothing is shared, and the lock is always had
    """

    def __init__(self, folder):
        self._folder, self._fd = folder, None
        self._path = os.path.join(folder, "lock") if folder is not None else ""

    def take(self) -> str:
        """Take the lock; return "", or who has it: a process id, or "another process".

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
        """Return whether the file of a lock that was taken is gone, or is another one's."""
        return self._fd is not None and not leads_to(self._path, self._fd)

    def release(self):
        """Give the lock back."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)
