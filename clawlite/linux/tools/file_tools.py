"""Handlers of the file tools: read-file, write-file, edit-file, list-directory (docs/tools.md).

1. ``file_scope.Scope`` decides what they reach.  They work on the open folder that it found, and
   never use the path again.
2. Regular files only: a pipe, a device or a socket is refused before it is opened, and again after.
3. A file is replaced as a whole (written beside, renamed), so nobody reads half of it.
4. The same code runs in a sandbox's child and in the agent (level none).
"""

import os
import stat

from clawlite.core.base.errors import ClawError, SandboxDenied
from clawlite.core.base.printable import escape_line
from clawlite.core.base.text import decode_utf8
from clawlite.linux.files.file_scope import Scope
from clawlite.linux.files.path_walk import printable_path, read_only

MAX_READ = 262144  # bytes that read-file looks at: more than any result holds
# bytes of a file that edit-file changes, and of what write-file writes
MAX_FILE = 1048576
MAX_ENTRIES = 10000  # entries of a folder that are shown


def run(name: str, arguments: dict, scope: Scope) -> dict:
    """Run the file tool *name* within *scope*; return {"text"} or, of what was not read to its end,
    {"text", "original_bytes"}.

    Raises ``SandboxDenied`` for what the sandbox refuses, ``ClawError`` for what cannot be done.
    """
    try:
        return _HANDLERS[name](scope, **arguments)
    except OSError as e:
        raise ClawError("%s: %s" % (printable_path(arguments["path"]), e.strerror)) from None


def run_inside(
    name: str, arguments: dict, files: list, hidden: list, decided=None, most=None
) -> dict:
    """Run the file tool *name* in a child of the sandbox, which says in $WORKSPACE where the
    workspace is there.

    files  [mode, mounts, denied] of the profile;  hidden, decided, most  see ``file_scope.Scope``
    """
    workspace = os.environ.get("WORKSPACE", "/workspace")
    return run(name, arguments, Scope(_Files(*files), workspace, hidden, decided, most, None))


class _Files:
    """What ``file_scope.Scope`` asks of a profile."""

    def __init__(self, files: int, mounts: list, denied: list):
        self.files, self.mounts, self.denied = files, mounts, denied


def read_file(scope: Scope, path: str) -> dict:
    with scope.find(path) as found:
        fd = _open(scope, found, path)
    with open(fd, "rb") as file:
        data = _read(file, MAX_READ + 1, path)
        size = max(os.fstat(file.fileno()).st_size, len(data))
    if len(data) <= MAX_READ:
        return {"text": _text(data, path)}
    end = MAX_READ
    while data[end] & 0xC0 == 0x80 and end > MAX_READ - 4:  # not inside a character
        end -= 1
    return {"text": _text(data[:end], path), "original_bytes": size}


def write_file(scope: Scope, path: str, content: str) -> dict:
    data = _bytes(content, "content")
    with scope.find(path, True) as found:
        if found.status is not None:
            _check_kind(found.status, path)
            scope.check_names(found)
        _replace(scope, found, data, path)
    return {"text": "wrote %d bytes to %s" % (len(data), printable_path(path))}


def keep_file(scope: Scope, path: str, data: bytes, check, owner=None):
    """Write the new file *path*, whole or not at all; nothing is overwritten.

    check  function(path descriptor of its folder), which raises what speaks against it
    owner  number of the user and group that it is for, and its folder if that is new; None: they
           stay the agent's
    Raises as ``run`` does.
    """
    with scope.find(path, True) as found:
        if found.status is not None:
            raise ClawError("%s is there already" % printable_path(path))
        if not found.writable:
            raise read_only(path)
        check(found.folder)
        _replace(scope, found, data, path)
        if owner is not None:
            os.chown(found.name, owner, owner, dir_fd=found.folder, follow_symlinks=False)
            if os.stat(".", dir_fd=found.folder).st_uid == 0:
                os.chown(".", owner, owner, dir_fd=found.folder)


def edit_file(scope: Scope, path: str, old_text: str, new_text: str) -> dict:
    old, new = _bytes(old_text, "old_text"), _bytes(new_text, "new_text")
    with scope.find(path) as found:
        if not found.writable:
            raise read_only(path)
        fd = _open(scope, found, path)
        with open(fd, "rb") as file:
            data = _read(file, MAX_FILE + 1, path)
        if len(data) > MAX_FILE:
            raise ClawError(
                "%s has more than %d bytes, the most that edit-file can change; use "
                "exec-shell" % (printable_path(path), MAX_FILE)
            )
        at = data.find(old)
        if at < 0:
            raise ClawError(
                "%s does not contain old_text; read-file shows what it contains"
                % printable_path(path)
            )
        if data.find(old, at + 1) >= 0:
            raise ClawError(
                "%s contains old_text more than once; give more of the text around it"
                % printable_path(path)
            )
        data = data[:at] + new + data[at + len(old) :]
        if len(data) > MAX_FILE:
            raise ClawError(
                "%s would have %d bytes, at most %d are written"
                % (printable_path(path), len(data), MAX_FILE)
            )
        if _has_changed(found):
            raise ClawError(
                "%s was changed while it was edited, nothing is written; read it again"
                % printable_path(path)
            )
        _replace(scope, found, data, path)
    return {"text": "replaced %d bytes with %d in %s" % (len(old), len(new), printable_path(path))}


def list_directory(scope: Scope, path: str) -> dict:
    with scope.find(path) as found:
        if found.status is None:
            raise _missing(path)
        if not stat.S_ISDIR(found.status.st_mode):
            raise ClawError("%s is no folder; read-file reads it" % printable_path(path))
        fd = os.open(
            found.name,
            os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC,
            dir_fd=found.folder,
        )
        base = found.path.rstrip("/")
    try:
        _check_same(os.fstat(fd), found, path)
        names = sorted(
            name for name in os.listdir(fd) if not scope.is_denied(base + "/" + name, None, True)
        )
        lines = [_entry(name, fd) for name in names[:MAX_ENTRIES]]
    finally:
        os.close(fd)
    if len(names) > MAX_ENTRIES:
        lines.append("... %d entries in all" % len(names))
    return {"text": "\n".join(lines)}


_HANDLERS = {
    "read-file": read_file,
    "write-file": write_file,
    "edit-file": edit_file,
    "list-directory": list_directory,
}


def _open(scope: Scope, found, path: str) -> int:
    """Return a descriptor of the regular file at *found*, for reading."""
    if found.status is None:
        raise _missing(path)
    _check_kind(found.status, path)
    scope.check_names(found)
    fd = os.open(
        found.name,
        os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC,
        dir_fd=found.folder,
    )
    try:
        _check_same(os.fstat(fd), found, path)
    except ClawError:
        os.close(fd)
        raise
    return fd


def _read(file, most: int, path: str) -> bytes:
    """Return at most *most* bytes; nobody waits for more, as some files of the kernel would let
    them.
    """
    data = file.read(most)
    if data is None:
        raise ClawError("%s has nothing to read now" % printable_path(path))
    return data


def _has_changed(found) -> bool:
    """Return whether the file at *found* is another one by now, or was written since."""
    status, was = os.stat(found.name, dir_fd=found.folder, follow_symlinks=False), found.status
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns) != (
        was.st_dev,
        was.st_ino,
        was.st_size,
        was.st_mtime_ns,
    )


def _check_same(status, found, path: str):
    """Raise when what was opened is not what was found: another process put it there meanwhile."""
    if (status.st_dev, status.st_ino, stat.S_IFMT(status.st_mode)) != (
        found.status.st_dev,
        found.status.st_ino,
        stat.S_IFMT(found.status.st_mode),
    ):
        raise ClawError("%s was replaced while it was opened; try again" % printable_path(path))


def _check_kind(status, path: str):
    if stat.S_ISDIR(status.st_mode):
        raise ClawError("%s is a folder; list-directory shows what is in it" % printable_path(path))
    if not stat.S_ISREG(status.st_mode):
        raise SandboxDenied(
            "%s is a pipe, a device or a socket: file tools touch regular files only"
            % printable_path(path),
            "name a regular file",
            {"reason": "no regular file"},
        )


def _replace(scope: Scope, found, data: bytes, path: str):
    """Write *data* beside, then rename: whole or not at all.  The mode of a file that was there
    is kept.
    """
    if not found.writable:
        raise read_only(path)
    scope.check_room(found, len(data))
    name = ".%s.new" % os.urandom(8).hex()
    fd = os.open(
        name,
        os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
        0o666,
        dir_fd=found.folder,
    )
    try:
        with open(fd, "wb") as file:
            file.write(data)
            if found.status is not None:
                os.fchmod(file.fileno(), found.status.st_mode & 0o777)
        os.rename(name, found.name, src_dir_fd=found.folder, dst_dir_fd=found.folder)
    except OSError:
        os.unlink(name, dir_fd=found.folder)
        raise


def _bytes(text: str, what: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError as e:
        raise ClawError(
            "%s holds half of a character (a lone surrogate) at position %d; leave it "
            "out" % (what, e.start)
        ) from None
    if len(data) > MAX_FILE:
        raise ClawError(
            "%s has %d bytes, at most %d are written; write it in parts"
            % (what, len(data), MAX_FILE)
        )
    return data


def _text(data: bytes, path: str) -> str:
    try:
        return decode_utf8(data)
    except UnicodeDecodeError as e:
        raise ClawError(
            "%s is no UTF-8 text (byte %d); only text can be read" % (printable_path(path), e.start)
        ) from None


def _entry(name: str, folder: int) -> str:
    """Return the line of one entry: folders end in "/", links in "@", other than files in "|";
    control characters are written out.
    """
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except OSError:  # gone meanwhile
        mode = stat.S_IFREG
    mark = (
        "/"
        if stat.S_ISDIR(mode)
        else "@"
        if stat.S_ISLNK(mode)
        else ""
        if stat.S_ISREG(mode)
        else "|"
    )
    return escape_line(os.fsencode(name).decode("utf-8", "backslashreplace")) + mark


def _missing(path: str) -> ClawError:
    return ClawError("there is no %s; list-directory shows what is there" % printable_path(path))
