"""Workspaces: stores whose entries are files, each under its key.

    <path of the store, or memory/files/NAME in the state folder>/[identity/NAME/ or
    channel/NAME/]KEY

1. A key is a relative path: no "..", no empty or hidden step.  Folders are opened one by one
   without following links, so that no link, whoever made it, leads out of the workspace.
2. A file is written beside its place and renamed: it is the old one or the new one, never half of
   it.
3. ``max_size_mb`` counts all files that lie there, whoever wrote them.
4. One that is the tools' own workspace (linux/files/workspace.py) is in the hands of tools: what
   root makes in it belongs to them.
"""

import os
from errno import EINVAL
from stat import S_ISREG

from clawlite.core.base.errors import InvalidParams, StoreError
from clawlite.linux.files import quota
from clawlite.linux.files.files import expand_home, sync_data, write_whole
from clawlite.linux.files.real_path import open_real, resolve
from clawlite.linux.files.record_log import lasting_folder
from clawlite.linux.files.rollback_marks import agent_folder

MAX_DEPTH = 16  # steps of a key
MAX_STEP = 200  # bytes of one
MAX_FILE = 262144  # bytes that are read of a file
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Files:
    """The workspaces of one agent.

    folder  of those without a path
    own     (name of the store that is the tools' workspace, that folder), or None

    state   the state folder of the agent that *folder* lies in, or ""
    """

    def __init__(self, folder: str, own=None):
        self._folder = os.path.join(folder, "files")
        self.state = agent_folder(self._folder)
        self._own = own
        self._real = {}  # path of a workspace -> where it led when it was first used

    def write(self, store, part: str, files: list):
        """Write *files* [(key, text)], or raise ``InvalidParams`` or ``StoreError``; a file that
        stands before the one that fails stays.
        """
        steps = [_steps(key, "entries[%d].key" % number) for number, (key, _) in enumerate(files)]
        root = self._root(store, part, True)
        try:
            if store.max_bytes is not None:
                self._check_room(
                    store,
                    part,
                    root,
                    [(path, len(text.encode())) for path, (_, text) in zip(steps, files)],
                )
            for path, (_, text) in zip(steps, files):
                _put(root, path, text.encode())
        except OSError as e:
            raise StoreError(
                "store %s: %s" % (store.name, e.strerror),
                "look at its folder: %s" % self.path(store, part),
            ) from None
        finally:
            os.close(root)

    def read(self, store, part: str, key: str):
        """Return (text, ms since 1970 when it was written, whether it is longer) of a file; None
        when it is not there any more, or is none.
        """
        try:
            root = self._root(store, part, False)
        except StoreError:
            return None
        try:
            data, status = read_below(root, _steps(key, "query.key"), MAX_FILE)
            return (
                data.decode("utf-8", "replace"),
                status.st_mtime_ns // 1000000,
                status.st_size > MAX_FILE,
            )
        except (OSError, InvalidParams):
            return None
        finally:
            os.close(root)

    def path(self, store, part: str) -> str:
        """Return the folder of *part* of *store*."""
        if self._own and self._own[0] == store.name:
            return self._own[1]
        base = (
            expand_home(store.path)
            if store.path
            else os.path.join(self._folder, _folder_name(store.name))
        )
        kind, _, name = part.partition("/")
        return os.path.join(base, kind, _folder_name(name)) if part else base

    def _root(self, store, part: str, new: bool) -> int:
        """Return a descriptor of that folder.  Its owner may have made it a link; a link that takes
        its place later may be a tool's, and is not followed.
        """
        path = self.path(store, part)
        real = self._real.get(path) or resolve(path)
        try:
            if new:
                lasting_folder(real)
            fd = open_real(real, os.O_RDONLY | os.O_DIRECTORY)
            self._real[path] = real
            return fd
        except OSError as e:
            raise StoreError(
                "store %s: %s: %s" % (store.name, path, e.strerror), "make it, and make it writable"
            ) from None

    def _check_room(self, store, part: str, root: int, files: list):
        sizes = {tuple(steps): size for steps, size in files}
        used = quota.size(root) + sum(sizes.values()) - sum(_size(root, steps) for steps in sizes)
        if used > store.max_bytes:
            raise StoreError(
                "store %s: its workspace %s"
                % (store.name, quota.excess_text(used, store.max_bytes)),
                "remove files from %s" % self.path(store, part),
                {"store": store.name, "max_bytes": store.max_bytes},
            )


def read_below(root: int, steps: list, most: int) -> tuple:
    """Return (at most *most* bytes, status) of the file at *steps* below the folder *root*, no link
    followed.

    Raises ``OSError``, also for what is no file.
    """
    folder = _enter(root, steps[:-1], False)
    try:
        fd = os.open(
            steps[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder
        )
    finally:
        os.close(folder)
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not S_ISREG(status.st_mode):
            raise OSError(EINVAL, os.strerror(EINVAL))
        return file.read(most), status


def _folder_name(name: str) -> str:
    """Return *name* as the name of a folder; what could be another's, or lead elsewhere, is
    written as its bytes.
    """
    plain = "".join(
        [
            c
            if c.isascii() and (c.isalnum() or c in "-_")
            else "".join(["%%%02x" % byte for byte in c.encode()])
            for c in name
        ]
    )
    if len(plain) > MAX_STEP:
        from binascii import crc32

        plain = "%s~%08x" % (plain[: MAX_STEP - 9], crc32(name.encode()))
    return plain or "%"


def _steps(key: str, where: str) -> list:
    """Return the steps of a key.  Raises ``InvalidParams``."""
    steps = key.split("/")
    if len(steps) > MAX_DEPTH or any(
        not step or step[0] == "." or "\0" in step or len(step.encode()) > MAX_STEP
        for step in steps
    ):
        raise InvalidParams(
            "%s: expected a relative path of at most %d steps, none of them empty "
            "or with a dot before it" % (where, MAX_DEPTH)
        )
    return steps


def _enter(root: int, folders: list, new: bool) -> int:
    """Return a descriptor of the folder below *root*, made when it is *new*."""
    fd = os.dup(root)
    for name in folders:
        try:
            if new:
                try:
                    os.mkdir(name, 0o700, dir_fd=fd)
                    os.fsync(fd)
                    made = True
                except FileExistsError:
                    made = False
            below = os.open(name, _FOLDER, dir_fd=fd)
            if new and made:
                _give_to_owner(below, fd)
        finally:
            os.close(fd)
        fd = below
    return fd


def _put(root: int, steps: list, data: bytes):
    folder = _enter(root, steps[:-1], True)
    try:
        beside = ".%s.new" % steps[-1]
        try:
            os.unlink(beside, dir_fd=folder)  # of a write that was killed, or a tool's
        except FileNotFoundError:
            pass
        fd = os.open(
            beside,
            os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
            0o600,
            dir_fd=folder,
        )
        try:
            _give_to_owner(fd, folder)
            write_whole(fd, data)
            sync_data(fd)
            os.replace(beside, steps[-1], src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(beside, dir_fd=folder)
            raise
        finally:
            os.close(fd)
        os.fsync(folder)
    finally:
        os.close(folder)


def _give_to_owner(fd: int, folder: int):
    """Give what root made to whom *folder* belongs."""
    if os.geteuid() == 0:
        owner = os.fstat(folder)
        os.fchown(fd, owner.st_uid, owner.st_gid)


def _size(root: int, steps: tuple) -> int:
    """Return the bytes of the file at *steps* below *root*, 0 when there is none."""
    try:
        folder = _enter(root, steps[:-1], False)
    except OSError:
        return 0
    try:
        return os.stat(steps[-1], dir_fd=folder, follow_symlinks=False).st_size
    except OSError:
        return 0
    finally:
        os.close(folder)
