"""The one way to open a file that a person or another program may have put there: it never waits,
and whatever is no file, or is far too large, is an ``OSError`` that says so in a sentence.

host/base/regular_file.py is the same for the host, which imports nothing of this layer."""

import errno
import os
import stat

MOST = 256 << 20  # bytes: more than any such file has


def open_regular(path, flags: int, mode: int = 0o600) -> int:
    """Return an open file; an ``opener`` for ``open``.  A FIFO without a writer is not waited
    for.  Raises ``OSError``.
    """
    for name in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"):
        flags |= getattr(os, name, 0)  # Windows has the last alone
    fd = os.open(path, flags, mode)
    return _check_open(fd, path, MOST)


def open_end(path, flags: int, mode: int = 0o600) -> int:
    """As ``open_regular``, for a file of any size of which only the end is read or written."""
    flags |= os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    return _check_open(os.open(path, flags, mode), path, 0)


def _check_open(fd: int, path, most: int) -> int:
    try:
        _check(os.fstat(fd), path, most)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _check(status, path, most: int):
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "a device, a pipe or a socket is there, and no file", path)
    if most and status.st_size > most:
        raise OSError(errno.EFBIG, "it is too large: more than %d MiB" % (MOST >> 20), path)
