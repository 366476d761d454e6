"""Landlock: which files a process and all that it starts may open (landlock(7)).

A rule allows a path and everything below it; no rule can take that away again.  So when a denied
path lies below an allowed one, its neighbours are allowed instead, one by one (``around``).
"""

import ctypes
import os
import stat
import struct

from clawlite.linux.confinement import syscalls
from clawlite.linux.files.real_path import PathChanged, covers, open_entry, open_real

LEAST_ABI = 3  # the first that covers truncate(2): Linux 6.2
SCOPES_ABI = 6  # abstract UNIX sockets and signals stay inside: Linux 6.12
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_ALL = {3: (1 << 15) - 1, 4: (1 << 15) - 1}  # since ABI 5 IOCTL_DEV too
READ = EXECUTE | READ_FILE | READ_DIR
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
MAX_NEIGHBOURS = 4096  # rules that one denied path may cost


def abi() -> int:
    """Return the version that the kernel offers; raises ``OSError`` when it has none."""
    return syscalls.call("landlock_create_ruleset", None, 0, 1)


class Ruleset:
    """A set of rules; ``restrict`` applies them to this process."""

    def __init__(self, version: int, network: bool = False):
        """*network*: True: the rules do not restrict connections."""
        self._handled = _ALL.get(version, (1 << 16) - 1)
        words = [self._handled]
        words += [0 if network else 3] if version >= 4 else []  # bind and connect
        # abstract sockets and signals
        words += [3] if version >= SCOPES_ABI else []
        attributes = ctypes.create_string_buffer(
            struct.pack("=%dQ" % len(words), *words), 8 * len(words)
        )
        self._fd = syscalls.call("landlock_create_ruleset", attributes, 8 * len(words), 0)

    def allow(self, path: str, writable, more: int = 0):
        """Allow *path*, one of clawlite's own whose links are followed, and everything below it.  A
        path that does not exist, or that this user cannot reach, is ignored.

        writable  bool; None: only its folders may be listed
        more      further rights, for a path that is not writable
        """
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return
        self._add(fd, writable, more)

    def allow_real(self, paths: list):
        """Allow each of *paths*, [(real path, writable), ...], as ``allow`` does, and follow no
        link.  Raises ``PathChanged``.
        """
        above, folder = "", -1  # of the path before: neighbours come one after another
        try:
            for path, writable in paths:
                try:
                    if folder < 0 or os.path.dirname(path) != above:
                        _close(folder)
                        above, folder = os.path.dirname(path), -1
                        folder = open_real(above, os.O_PATH | os.O_DIRECTORY)
                    fd = open_entry(os.path.basename(path) or ".", os.O_PATH, folder, path)
                except PathChanged:
                    raise
                except OSError:  # it does not exist, or this user cannot reach it
                    continue
                self._add(fd, writable, 0)
        finally:
            _close(folder)

    def _add(self, fd: int, writable, more: int):
        """Add a rule for the file or folder *fd*, which is closed."""
        try:
            rights = READ_DIR if writable is None else self._handled if writable else READ | more
            if not stat.S_ISDIR(os.fstat(fd).st_mode):
                rights &= OF_FILES
            rule = ctypes.create_string_buffer(struct.pack("=Qi", rights & self._handled, fd), 12)
            syscalls.call("landlock_add_rule", self._fd, 1, rule, 0)
        finally:
            os.close(fd)

    def restrict(self):
        """Apply the rules to this process for good; no_new_privs must be set."""
        syscalls.call("landlock_restrict_self", self._fd, 0)
        self.drop()

    def drop(self):
        """Close the rules; processes that they restrict stay restricted."""
        fd, self._fd = self._fd, -1
        _close(fd)


def inside(version: int, writable: list) -> Ruleset:
    """Return the rules of a call in profile N, whose root is made already: only *writable* may be
    written.

    A read-only mount still lets a tool write to the named pipes and devices in it.  These rules
    forbid that.  They also cover a mount that is writable by mistake and, when the kernel can, they
    forbid abstract sockets and signals to processes outside."""
    rules = Ruleset(version, True)
    rules.allow("/", False, IOCTL_DEV)  # a mounted device is useful only with ioctl
    for path in writable:
        try:
            rules.allow_real([(path, True)])
        except PathChanged:  # its real path is among them, too
            pass
    return rules


def around(path: str, denied: list) -> list:
    """Return the paths that together cover *path* without the *denied* ones; [path] when none of
    them is below it.  All are real paths.

    Raises ``ValueError`` when more than MAX_NEIGHBOURS are needed, and ``PathChanged``.
    """
    if covers(denied, path):
        return []
    below = [other for other in denied if other.startswith(path.rstrip("/") + "/")]
    if not below:
        return [path]
    result = []
    try:
        fd = open_real(path, os.O_RDONLY | os.O_DIRECTORY)
    except PathChanged:
        raise
    except OSError:
        return []
    try:
        names = sorted(os.listdir(fd))
    finally:
        os.close(fd)
    for name in names:
        child = os.path.join(path, name)
        if not os.path.islink(child):
            result += around(child, below)
        if len(result) > MAX_NEIGHBOURS:
            raise ValueError("%s has more than %d neighbours" % (below[0], MAX_NEIGHBOURS))
    return result


def listable(path: str, denied: list) -> bool:
    """Return whether the folder *path* may be listed although some of *denied* lie below it.  It
    may when these exist and none is a folder.

    The right to list a folder includes every folder below it.
    """
    below = [other for other in denied if other.startswith(path.rstrip("/") + "/")]
    return all(os.path.lexists(other) and not os.path.isdir(other) for other in below)


def _close(fd: int):
    if fd >= 0:
        os.close(fd)
