"""Faults of a disk for tests: the n-th call of a module's ``os`` that touches a disk fails, as in
SQLite's tests.

    faults = Faults(monkeypatch, [module, ...])
    with faults.at(n, fault, count): ...        # faults.hit says whether that call was reached

1. A fault is an errno, ``SHORT`` or ``NO_MEMORY``.  ``SHORT`` writes half of the data, as a disk
   does that becomes full; other calls fail with ENOSPC.  ``NO_MEMORY`` raises ``MemoryError``
   before the call.
2. *count* calls fail in a row: with 2, what a module does to undo a failed write fails, too, and
   the disk is well again after that.
3. Everything else is the real ``os`` on a real disk.  The proxy keeps book of descriptors:
   ``twice`` has those that were closed while they were not open.
4. A close that fails has closed: its number may be another file's by then.
5. What SQLite does itself, in C, is out of reach here: limits of the kernel make it fail.
"""

import contextlib
import errno
import os

from clawlite.linux.files import regular_file

CALLS = (
    "open",
    "write",
    "pwrite",
    "fsync",
    "fdatasync",
    "ftruncate",
    "replace",
    "rename",
    "unlink",
    "link",
    "makedirs",
)
SHORT, NO_MEMORY = "short", "no memory"
KINDS = (errno.EIO, errno.ENOSPC, SHORT, NO_MEMORY)


class Faults:
    """In the place of ``os``, and of ``open``, in *modules*."""

    def __init__(self, monkeypatch, modules):
        self._left = self._count = 0
        self._fault = None
        self._open = set()
        self.hit, self.twice, self.calls = False, [], []
        for module in (*modules, regular_file):  # which opens what they read
            if hasattr(module, "os"):
                monkeypatch.setattr(module, "os", self)
            monkeypatch.setattr(module, "open", self._file, raising=False)

    @contextlib.contextmanager
    def at(self, n: int, fault, count: int = 1):
        """Fail the *n*-th call from now, 1 or more, and those behind it, *count* in all."""
        self._left, self._fault, self._count, self.hit, self.calls = n, fault, count, False, []
        try:
            yield
        finally:
            self._fault = None

    def __getattr__(self, name):
        real = getattr(os, name)
        if name not in CALLS:
            return real

        def call(*arguments, **named):
            if self._fails(name, *arguments):
                return os.write(arguments[0], arguments[1][: len(arguments[1]) // 2])
            return real(*arguments, **named)

        return call

    def open(self, path, flags, mode=0o777, **named):
        self._fails("open")
        fd = os.open(path, flags, mode, **named)
        self._open.add(fd)
        return fd

    def dup(self, fd):
        self._fails("dup")
        fd = os.dup(fd)
        self._open.add(fd)
        return fd

    def close(self, fd):
        if fd not in self._open:
            self.twice.append(fd)
        self._open.discard(fd)
        os.close(fd)
        if self._fault is not NO_MEMORY:
            self._fails("close")  # the descriptor is gone all the same

    def _file(self, path, *arguments, **named):
        if isinstance(path, int):  # the file closes it
            self._open.discard(path)
        else:
            self._fails("open")
        return open(path, *arguments, **named)

    def _fails(self, name: str, *arguments) -> bool:
        """Return True for a short write; raise what the call is to fail with."""
        if self._fault is None or name == "write" and arguments[0] == 2:
            return False
        self.calls.append(name)
        self._left -= 1
        if self._left > 0 or self._left <= -self._count:
            return False
        self.hit = True
        if self._fault is NO_MEMORY:
            raise MemoryError
        if self._fault is SHORT and name == "write" and self._left == 0:
            return True
        code = errno.ENOSPC if self._fault is SHORT else self._fault
        raise OSError(code, os.strerror(code))
