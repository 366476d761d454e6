"""Walks a path, one component at a time, to an open folder and a name in it, so that nobody can
exchange a file between its check and its use.

1. Each folder is opened relative to the one before it, and never through a link.
2. A link is read, and its text is walked in the same way from the link's folder.  ``..`` in it
   leaves the folder that was really passed.
3. Each component is checked at its real path, not at the path in the text.
4. A component that another process replaces meanwhile is checked again.  docs/adr/0020 says why
   this is not ``openat2``.
"""

import errno
import os
import stat

from clawlite.core.base.errors import ClawError, SandboxDenied
from clawlite.core.base.printable import escape_line
from clawlite.linux.files.real_path import PATH_ONLY, open_real

_WRITABLE = 1  # position in a row of mounts

MAX_STEPS = 1024  # components that one path may take, those of links on its way too
_FOLDER = PATH_ONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# errors that mean: another process has just replaced this folder, look again
_AGAIN = (errno.ELOOP, errno.ENOTDIR, errno.ENOENT)


class OpenEntry:
    """The end of a walk: an entry *name* of an open folder.

    folder    descriptor of the folder, opened with O_PATH; "with" closes it
    name      the entry's name there, "." for the folder itself
    path      where that is, absolute and without links
    writable  bool, the mount there is
    status    ``os.stat_result`` of the entry, no link; None when it does not exist
    """

    def __init__(self, folder: int, name: str, path: str, writable: bool, status):
        self.folder = folder
        self.name = name
        self.path = path
        self.writable = writable
        self.status = status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        folder, self.folder = self.folder, -1
        os.close(folder)


class PathWalk:
    """One walk of a ``file_scope.Scope``: ``at`` are the components passed, ``fd`` is the folder
    that they lead to (None above the mounts).
    """

    def __init__(self, scope, path: str, make: bool):
        self.scope = scope
        self.text = path
        self.make = make
        self.todo = _parts(scope.real(path))
        self.at = []
        self.fd = None
        self.mount = None
        self.steps = 0

    def run(self) -> OpenEntry:
        """Return the end of the walk.  Raises what ``Scope.find`` does, and ``OSError`` for a
        folder that cannot be opened.
        """
        try:
            found = None
            while found is None:
                found = self.step()
            self.fd = None  # the caller owns it now
            return found
        finally:
            self.leave()

    def leave(self):
        if self.fd is not None:
            fd, self.fd = self.fd, None
            os.close(fd)

    def restart(self, parts: list):
        """Continue from the root with *parts* and then the remaining components."""
        self.leave()
        self.at, self.mount = [], None
        self.todo = parts + self.todo

    def step(self):
        """Pass one component; return the ``OpenEntry`` at the end, else None."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise SandboxDenied(
                "%s: its links lead in circles, or too far" % printable_path(self.text),
                "name the file without links",
                {"reason": "too many links"},
            )
        if not self.todo:
            return self.end()
        part = self.todo.pop(0)
        # ".." comes only from the text of a link
        if part == "..":
            self.restart(self.at[:-1])
            return None
        here = "/" + "/".join(self.at + [part])
        mount = self.scope.mount_of(here)
        if mount is None and not self.scope.leads_to_mount(here):
            raise self.outside()
        if mount is not None and self.scope.is_denied(here, None, bool(self.todo)):
            raise self.denial()
        if mount is None or mount[0] == here:
            return self.enter(part, here, mount)
        if self.fd is None:  # the mount "/": nothing was passed yet
            self.fd = os.open("/", _FOLDER)
        self.mount = mount
        return self.below(part, here)

    def end(self) -> OpenEntry:
        """Return the entry of a path that is a mount itself.  Raise when it is above all mounts."""
        if self.mount is None:
            if self.scope.mount_of("/") is None:
                raise self.outside()
            self.mount, self.fd = self.scope.mount_of("/"), os.open("/", _FOLDER)
        return OpenEntry(
            self.fd, ".", "/" + "/".join(self.at), self.mount[_WRITABLE], os.fstat(self.fd)
        )

    def enter(self, part: str, here: str, mount):
        """Pass a folder above the mounts, or the root of one."""
        if mount is not None:
            folder = self.fd
            if folder is None:  # no tool can change the folders above it
                folder = open_real(os.path.dirname(here), _FOLDER)
            self.fd, self.mount = folder, mount
            try:
                status = os.stat(part, dir_fd=folder, follow_symlinks=False)
            except OSError as e:
                raise ClawError("%s: %s" % (printable_path(here), e.strerror)) from None
            self.check(here, status)
            if not stat.S_ISDIR(status.st_mode):  # a mount that is a file
                if self.todo:
                    raise ClawError(
                        "%s: %s is no folder" % (printable_path(self.text), printable_path(here))
                    )
                return OpenEntry(folder, part, here, mount[_WRITABLE], status)
            self.into(part, here)
            return None
        self.at.append(part)
        return None

    def below(self, part: str, here: str):
        try:
            status = os.stat(part, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return self.missing(part, here)
        except OSError as e:
            raise ClawError("%s: %s" % (printable_path(self.text), e.strerror)) from None
        if stat.S_ISLNK(status.st_mode):
            self.follow(part)
            return None
        self.check(here, status)
        if not self.todo:
            return OpenEntry(self.fd, part, here, self.mount[_WRITABLE], status)
        if not stat.S_ISDIR(status.st_mode):
            raise ClawError(
                "%s: %s is no folder" % (printable_path(self.text), printable_path(here))
            )
        self.into(part, here)
        return None

    def into(self, part: str, here: str):
        """Open the folder *part*; when it is no folder any more, check it again."""
        try:
            fd = os.open(part, _FOLDER, dir_fd=self.fd)
        except OSError as e:
            if e.errno in _AGAIN:
                self.todo.insert(0, part)
                return
            raise ClawError("%s: %s" % (printable_path(self.text), e.strerror)) from None
        above, self.fd = self.fd, fd
        os.close(above)
        self.at.append(part)
        self.check(here, os.fstat(fd))

    def follow(self, part: str):
        try:
            target = os.readlink(part, dir_fd=self.fd)
        except OSError:  # no link any more
            self.todo.insert(0, part)
            return
        if target.startswith("/"):
            self.restart(_parts(self.scope.resolve_alias(target)))
        else:
            self.todo = _parts(target) + self.todo

    def missing(self, part: str, here: str):
        if not self.todo:
            return OpenEntry(self.fd, part, here, self.mount[_WRITABLE], None)
        if not self.make or ".." in self.todo:
            raise ClawError(
                "%s: there is no %s; list-directory shows what is there"
                % (printable_path(self.text), printable_path(here))
            )
        if not self.mount[_WRITABLE]:
            raise read_only(self.text)
        self.scope.check_decided("/".join([here] + self.todo))
        try:
            os.mkdir(part, dir_fd=self.fd)
        except FileExistsError:
            pass
        except OSError as e:
            raise ClawError("%s: %s" % (printable_path(here), e.strerror)) from None
        self.todo.insert(0, part)
        return None

    def check(self, here: str, status):
        if self.scope.is_denied(here, status, bool(self.todo)):
            raise self.denial()

    def outside(self):
        return SandboxDenied(
            "%s: outside the paths of this sandbox" % printable_path(self.text),
            "stay in the workspace, or list the folder under filesystem.mount_paths",
            {"reason": "path outside"},
        )

    def denial(self):
        return SandboxDenied(
            "%s: a denied path of this sandbox" % printable_path(self.text),
            "use another file",
            {"reason": "denied path"},
        )


def read_only(path: str):
    """Return the error for writing to *path* on a read-only mount."""
    return SandboxDenied(
        "%s: this sandbox may only read there" % printable_path(path),
        'write to a path that is mounted "rw"',
        {"reason": "read-only"},
    )


def printable_path(path: str) -> str:
    """Return *path* for a message, on one line."""
    return escape_line(path, 200)


def _parts(path: str) -> list:
    """Return the components of *path*; ``..`` stays: what it leaves may be a link."""
    return [part for part in path.split("/") if part and part != "."]
