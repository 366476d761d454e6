"""Files in a folder that somebody else may have prepared: no link in it is followed.

1. *root*, the folder itself, is a person's word: links on the way to it are followed.
2. Below it each part of a path is opened in the folder before it, without following (``openat``).
   Where a system has no such calls (Windows), each part is looked at first; a junction is a link.
3. ``create`` makes a new file: an old one is removed, so another name of it (a hard link) keeps
   what it has.
4. A link is ``OSError`` ELOOP, whose text says so; what is no regular file is EINVAL.
"""

import contextlib
import errno
import os
import stat

IS_LINK = "is a link, and nothing is read or written through one"
_NO_FILE = "is no file"
_HAS_AT = hasattr(os, "O_NOFOLLOW") and {os.open, os.mkdir, os.rename, os.unlink, os.stat} <= (
    os.supports_dir_fd
)
_ONCE = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _ONCE
_FILE = _ONCE | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


class Below:
    """The files below the folder *root*; a path has slashes, with one before it or not."""

    def __init__(self, root: str):
        self.root = root

    def open(self, path: str) -> int:
        """Return a descriptor of a regular file, to be read."""
        with self._at(path) as (folder, name):
            return self._open(path, folder, name, os.O_RDONLY)

    def read(self, path: str, limit: int = -1) -> bytes:
        with open(self.open(path), "rb") as file:
            return file.read(limit)

    def create(self, path: str, mode: int = 0o666) -> int:
        """Return a descriptor of a new file, to be written; one of that name is removed."""
        with self._at(path) as (folder, name):
            with contextlib.suppress(FileNotFoundError):
                self._check(path, _status(folder, name))
                os.unlink(name, dir_fd=folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            return self._open(path, folder, name, flags, mode)

    def write(self, path: str, data: bytes) -> None:
        """Write a file; it is on the disk at the end."""
        with open(self.create(path), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def replace(self, path: str, data: bytes) -> None:
        """Write a file that is there as a whole, or as it was before."""
        draft = path + ".new"
        try:
            with open(self.create(draft), "wb") as file:
                file.write(data)
            self.rename(draft, path)
        except OSError as e:
            if e.errno != errno.ELOOP:
                with contextlib.suppress(OSError):
                    self.remove(draft)
            raise

    def make_folders(self, path: str) -> None:
        """Make the folder *path* and those before it, as far as they are not there."""
        parts = _parts(path)
        for number in range(1, len(parts) + 1):
            here = "/".join(parts[:number])
            with contextlib.suppress(FileExistsError):
                self.mkdir(here)
            if not self.is_folder(here):
                raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self._show(here))

    def mkdir(self, path: str) -> None:
        with self._at(path) as (folder, name):
            os.mkdir(name, dir_fd=folder)

    def rename(self, path: str, new: str) -> None:
        """Rename a file; one that is called *new* is replaced, and so is a link."""
        with self._at(path) as (folder, name), self._at(new) as (new_folder, new_name):
            os.replace(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder)

    def remove(self, path: str) -> None:
        """Remove a file; of a link the link itself."""
        with self._at(path) as (folder, name):
            os.unlink(name, dir_fd=folder)

    def is_file(self, path: str) -> bool:
        status = self._find(path)
        return status is not None and stat.S_ISREG(status.st_mode)

    def is_folder(self, path: str) -> bool:
        """Return whether *path* is a folder.  Raises ``OSError`` for a link."""
        if not _parts(path):
            return os.path.isdir(self.root)
        status = self._find(path)
        if status is not None and _is_link(status):
            raise OSError(errno.ELOOP, IS_LINK, self._show(path))
        return status is not None and stat.S_ISDIR(status.st_mode)

    def names(self, path: str) -> list:
        """Return the sorted names in the folder *path*."""
        with self._at(path + "/x") as (folder, name):
            return sorted(os.listdir(os.path.dirname(name) if folder is None else folder))

    def sync(self, path: str) -> None:
        """Bring the entries of the folder *path* to the disk, where a system can do that."""
        if os.name == "posix":
            with self._at(path + "/x") as (folder, name):
                fd = os.open(os.path.dirname(name), os.O_RDONLY) if folder is None else folder
                try:
                    os.fsync(fd)
                finally:
                    if folder is None:
                        os.close(fd)

    def check_tree(self, path: str = "") -> None:
        """Raise ``OSError`` for the first link below the folder *path*."""
        for name in self.names(path):
            here = f"{path}/{name}"
            if self.is_folder(here):
                self.check_tree(here)

    # -- one path

    @contextlib.contextmanager
    def _at(self, path: str):
        """Give (descriptor of the folder that *path* lies in, its name there), or (None, where it
        lies).
        """
        *folders, name = _parts(path)
        if not _HAS_AT:
            where = self.root
            for folder in folders:
                where = os.path.join(where, folder)
                self._check(where, os.lstat(where), True)
            yield None, os.path.join(where, name)
            return
        fd = os.open(self.root, _FOLDER & ~getattr(os, "O_NOFOLLOW", 0))
        try:
            for number, folder in enumerate(folders, 1):
                here = "/".join(folders[:number])
                try:
                    below = os.open(folder, _FOLDER, dir_fd=fd)
                except OSError as e:
                    raise self._add_path(e, here, fd, folder) from None
                os.close(fd)
                fd = below
            yield fd, name
        except OSError as e:
            if e.filename is None or os.fspath(e.filename) == name:
                e.filename = self._show(path)
            raise
        finally:
            os.close(fd)

    def _open(self, path: str, folder, name: str, flags: int, mode: int = 0o666) -> int:
        try:
            if folder is None and not flags & os.O_CREAT:
                self._check(path, os.lstat(name))
            fd = os.open(name, flags | _FILE, mode, dir_fd=folder)
        except OSError as e:
            raise self._add_path(e, path, folder, name) from None
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, _NO_FILE, self._show(path))
        return fd

    def _find(self, path: str):
        """Return the status of what is at *path*, None of nothing; of a link its own."""
        try:
            with self._at(path) as (folder, name):
                return _status(folder, name)
        except FileNotFoundError:
            return None

    def _check(self, path: str, status, is_folder: bool = False) -> None:
        if _is_link(status):
            raise OSError(errno.ELOOP, IS_LINK, self._show(path))
        if not is_folder and not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, _NO_FILE, self._show(path))

    def _add_path(self, e: OSError, path: str, folder, name: str) -> OSError:
        """Return *e* with the whole path; systems have several errors for a link."""
        code, said = e.errno, e.strerror
        with contextlib.suppress(OSError):
            if _is_link(_status(folder, name)):
                code, said = errno.ELOOP, IS_LINK
        return OSError(code, said, self._show(path))

    def _show(self, path: str) -> str:
        if path.startswith(self.root):
            return path
        return os.path.join(self.root, *_parts(path))


def open_named(path: str, flags: int) -> int:
    """As ``os.open``, for ``open(..., opener=...)``: the file *path*, unless it is a link."""
    folder, name = os.path.split(path)
    try:
        is_link = _is_link(os.lstat(path))
    except OSError:
        is_link = False
    try:
        if is_link:
            raise OSError(errno.ELOOP, IS_LINK, path)
        return os.open(path, flags | _ONCE, 0o666)
    except OSError as e:
        if e.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, IS_LINK, path) from None
        raise


def replace_named(path: str, data: bytes) -> None:
    """Write the file *path* as ``Below.replace`` does; its folder is a person's word."""
    folder, name = os.path.split(path)
    Below(folder or ".").replace(name, data)


def _parts(path: str) -> list:
    parts = [part for part in path.split("/") if part]
    if os.pardir in parts or any(os.sep in part for part in parts):
        raise OSError(errno.EINVAL, "leads out of its folder", path)
    return parts


def _status(folder, name: str):
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _is_link(status) -> bool:
    reparse = getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 1024)
    return stat.S_ISLNK(status.st_mode) or bool(getattr(status, "st_file_attributes", 0) & reparse)
