"""The one way to open a file that a person or another program may have put there: it never waits,
and whatever is no file, or is far too large, is an ``OSError`` that says so in a sentence.

linux/files/regular_file.py is the same for devices, from which the host imports nothing."""

import errno
import os
import stat

MOST = 256 << 20  # bytes: more than any such file has


def open_regular(path: str, flags: int, mode: int = 0o600) -> int:
    """Return an open file; an ``opener`` for ``open``.  A FIFO without a writer is not waited
    for.  Raises ``OSError``.
    """
    for name in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY"):  # Windows has none of them
        flags |= getattr(os, name, 0)
    fd = os.open(path, flags, mode)
    try:
        _check(os.fstat(fd), path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _check(status: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "a device, a pipe or a socket is there, and no file", path)
    if status.st_size > MOST:
        raise OSError(errno.EFBIG, "it is too large: more than %d MiB" % (MOST >> 20), path)


def make_private(path: str) -> None:
    """Make the folder *path* for this user alone, and the ``.gateway`` that it lies in, because
    ``makedirs`` gives its mode to the last one only.  One that is open to others is closed.
    Raises ``OSError``.
    """
    above = os.path.dirname(path)
    if os.path.basename(above) == ".gateway":
        make_private(above)
    os.makedirs(path, mode=0o700, exist_ok=True)
    if stat.S_IMODE(os.stat(path).st_mode) & 0o077:
        os.chmod(path, 0o700)
