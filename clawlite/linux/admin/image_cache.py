"""Tells whether the image beside a manifest is still what the manifest would be compiled to.

The compiler takes a second before ``run``, ``ask`` and ``serve``.  What it depended on is noted
after a build; while nothing of that has changed, the image is run at once.

1. An entry has facts, not an image: digests of all files that were read, of all folders that were
   listed, and which names were there.  It lies in ``$CLAWLITE_CACHE``, by default the user's cache
   folder, mode 0700, and may be removed at any time.
2. The key is the manifest, how it is compiled, and the files of this package.
3. An entry that is damaged, or that another user could have written, is ignored.
4. With a device key there is no cache: a signature is always made anew.
5. Standard library alone.  A hit loads nothing of the compiler (docs/adr/0008).
"""

import os
import stat
import sys

from clawlite.core.base.dialect import sha256
from clawlite.core.base.errors import ClawError
from clawlite.core.image.header import MAX_IMAGE
from clawlite.linux.files.files import base_folder
from clawlite.linux.files.packages import PACKAGE
from clawlite.linux.files.regular_file import open_regular
from clawlite.linux.io.jsontext import dumps, loads

FILE, FOLDER, PRESENT, PLAIN = "file", "folder", "present", "plain"  # kinds of facts
MOST = 64  # entries that are kept
MAX_ENTRY = 4 << 20  # bytes of one
_ALLOW = "CLAWLITE_ALLOW_FOLDERS"
_KEY_FILE = "CLAWLITE_DEVICE_KEY_FILE"
_HEX = 64  # digits of a SHA-256


def find(manifest: str, at_use: bool):
    """Return the path of the current image of *manifest* (a file or a folder), or None.

    at_use  as in ``host.compiler.compiler.build``
    Cost    one digest for each file that the build read
    """
    if os.environ.get(_KEY_FILE):
        return None
    try:
        image, digest, facts = _read(_path(manifest, at_use))
        if _file(image, MAX_IMAGE) != digest:
            return None
        for kind, path, value in facts:
            if _CHECKS[kind](path) != value:
                return None
    except (ClawError, OSError, ValueError, TypeError, KeyError):
        return None  # no entry, or not one of ours
    return image


def store(manifest: str, at_use: bool, image: str, facts: list) -> None:
    """Note that *image*, a path, is what *manifest* was compiled to; where that fails, do nothing.

    facts  [(kind, path, what was found there)] of ``host.documents.sources``: bytes of a file,
           entries of a folder, a bool
    """
    if os.environ.get(_KEY_FILE):
        return
    try:
        found = []
        for kind, path, value in facts:
            path = os.path.abspath(path)
            if kind == FILE:
                value = [os.path.realpath(path), sha256(value).hexdigest()]
            elif kind == FOLDER:
                value = _listing(value)
            found.append([kind, path, value])
        image = os.path.abspath(image)
        text = dumps([image, _file(image, MAX_IMAGE), found]).encode()
        if len(text) + _HEX + 1 <= MAX_ENTRY:
            digest = sha256(text).hexdigest().encode()
            _write(_path(manifest, at_use), digest + b"\n" + text)
    except (ClawError, OSError, ValueError):  # a ClawError: there is no home folder
        pass


def _path(manifest: str, at_use: bool) -> str:
    """Return the file of the entry."""
    digest = sha256()
    flags = "at use" if at_use else ""
    for part in (_version(), sys.version, flags, os.environ.get(_ALLOW, ""), os.getcwd(), manifest):
        digest.update(os.fsencode(part) + b"\0")
    for name, size, changed_ns in _code():
        digest.update(b"%s %d %d\0" % (os.fsencode(name), size, changed_ns))
    base = os.environ.get("CLAWLITE_CACHE")
    if not base:
        base = os.path.join(base_folder("XDG_CACHE_HOME", ".cache"), "clawlite")
    return os.path.join(base, "images", digest.hexdigest())


def _version() -> str:
    """Return what holds the version of this package, which rooms may not import."""
    with open(os.path.join(PACKAGE, "__init__.py"), encoding="utf-8") as file:
        return file.read()


def _code() -> list:
    """Return (path, bytes, time of the last change) of each file of this package, sorted."""
    found, folders = [], [PACKAGE]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        folders.append(entry.path)
                else:
                    status = entry.stat()
                    found.append((entry.path, status.st_size, status.st_mtime_ns))
    return sorted(found)


def _read(path: str) -> list:
    """Return [image, its digest, facts] of the entry at *path*.

    Raises OSError, ValueError, ClawError: there is none, or it is not one of ours.
    """
    folder = os.stat(os.path.dirname(path))
    if folder.st_uid != os.geteuid() or folder.st_mode & 0o077:
        raise ValueError("others may write here")
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        is_ours = status.st_uid == os.geteuid() and not status.st_mode & 0o022
        if not is_ours or not stat.S_ISREG(status.st_mode):
            raise ValueError("another user's")
        data = file.read(MAX_ENTRY + 1)
    digest, _, text = data.partition(b"\n")
    if sha256(text).hexdigest().encode() != digest:
        raise ValueError("damaged")
    image, digest, facts = loads(text)
    return [image, digest, facts]


def _write(path: str, data: bytes) -> None:
    """Write an entry whole or not at all, and remove the oldest where there are too many."""
    folder = os.path.dirname(path)
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    if not os.path.isdir(folder):
        os.mkdir(folder, 0o700)
    new = "%s.%d" % (path, os.getpid())
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(data)
    os.replace(new, path)
    with os.scandir(folder) as entries:
        ages = sorted(
            (entry.stat(follow_symlinks=False).st_mtime_ns, entry.path) for entry in entries
        )
    for _, old in ages[:-MOST]:
        os.unlink(old)


def _file(path: str, limit: int) -> str:
    """Return the digest of the file at *path*, "" for one of more than *limit* bytes."""
    if not os.path.isfile(path):
        return ""
    with open(path, "rb", opener=open_regular) as file:
        data = file.read(limit + 1)
    return sha256(data).hexdigest() if len(data) <= limit else ""


def _listing(entries: list) -> str:
    return sha256(repr(sorted(entries)).encode("utf-8", "surrogatepass")).hexdigest()


def _folder(path: str) -> str:
    """Return what ``_listing`` returns of the entries that ``host.documents.sources`` sees in
    *path*.
    """
    try:
        with os.scandir(path) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        return _listing(found)
    except OSError:
        return _listing([])


_CHECKS = {
    FILE: lambda path: [os.path.realpath(path), _file(path, MAX_ENTRY)],
    FOLDER: _folder,
    PRESENT: os.path.lexists,
    PLAIN: os.path.isfile,
}
