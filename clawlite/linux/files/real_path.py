"""Real paths: paths without links.  They are found once, and opened later without following a link
that somebody has put in their place meanwhile.

1. ``resolve`` follows links, and says in which folders they lie.  It reads each component once, so
   a path that changes meanwhile leads to one of its targets, and is never an error.
2. ``open_real`` opens each component relative to the folder before it.  Where ``resolve`` saw a
   folder and a link is now, it raises ``PathChanged``: a look by name would have followed the link.
3. This is not openat2 (Linux 5.6): the sandbox's filter and those of containers refuse it.
"""

import errno
import os
import stat

MAX_LINKS = 40  # of one path, as the kernel's own limit
# macOS has no O_PATH: there a folder that is passed must be readable, too
PATH_ONLY = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
_FOLDER = PATH_ONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PathChanged(OSError):
    """A component of the path *filename* is a link, or no folder."""

    def __init__(self, path: str):
        super().__init__(errno.ELOOP, "a link, or what is no folder, has taken its place", path)


def resolve(path: str) -> str:
    """Return where *path* leads, as ``os.path.realpath`` does; it need not exist."""
    return follow(path)[0]


def follow(path: str) -> tuple:
    """Return (where *path* leads, the folders in which links on its way lie).

    Components behind MAX_LINKS links are taken as they are.
    """
    at, folders = "" if path.startswith("/") else os.getcwd().rstrip("/"), []
    todo = path.split("/")[::-1]
    while todo:
        name = todo.pop()
        if name == "..":
            at = at.rpartition("/")[0]
        if name in ("", ".", ".."):
            continue
        try:
            target = os.readlink(at + "/" + name) if len(folders) < MAX_LINKS else ""
        except (OSError, ValueError):  # no link, or not there
            target = ""
        if not target:
            at += "/" + name
            continue
        folders.append(at or "/")
        at = "" if target.startswith("/") else at
        todo += target.split("/")[::-1]
    return at or "/", folders


def open_real(path: str, flags: int = PATH_ONLY, top: str = "/", make=None) -> int:
    """Return a descriptor of *path*, of which no component is a link.

    flags  to open its last component
    top    the folder that is the root of *path*; links in its own name are followed
    make   mode of the folders that are made where they are missing, or None
    Raises ``PathChanged``, and ``OSError`` for what is missing or closed to this user.
    """
    names = [name for name in path.split("/") if name]
    if not names:
        return os.open(top, flags | os.O_CLOEXEC)
    fd = os.open(top, PATH_ONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for index, name in enumerate(names):
        above, is_last = fd, index == len(names) - 1
        try:
            fd = _enter(name, flags if is_last else _FOLDER, above, path, make)
        finally:
            os.close(above)
    return fd


def _enter(name: str, flags: int, folder: int, path: str, make) -> int:
    if make is not None:
        try:
            return open_entry(name, flags, folder, path)
        except FileNotFoundError:
            pass
        try:
            os.mkdir(name, make, dir_fd=folder)
        except FileExistsError:
            pass
    return open_entry(name, flags, folder, path)


def open_entry(name: str, flags: int, folder: int, path: str) -> int:
    """Return a descriptor of the entry *name*, no link, of the open *folder*.  Raises as
    ``open_real`` does; *path* names the entry in errors.
    """
    try:
        fd = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError as e:
        if e.errno in (errno.ELOOP, errno.ENOTDIR):
            raise PathChanged(path) from None
        e.filename = path
        raise
    # O_PATH opens a link itself
    if flags & PATH_ONLY and not flags & os.O_DIRECTORY and stat.S_ISLNK(os.fstat(fd).st_mode):
        os.close(fd)
        raise PathChanged(path)
    return fd


def covers(paths: list, path: str) -> bool:
    """Return whether *path* is one of *paths*, or below one."""
    return any(path == other or path.startswith(other.rstrip("/") + "/") for other in paths)
