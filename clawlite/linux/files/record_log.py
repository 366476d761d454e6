"""The record log: a file of an agent to which records are appended.

All logs of records on Linux use it: the journal of calls, the inbox of a queue, the signatures that
a webhook has seen, conversations in files, the journal of the memory and the segments of an audit
(docs/adr/0107).

1. A record is written completely or not at all.  When a full disk takes only a part, that part is
   cut off again.  If that fails, too, it is cut off before the next record is written.
2. A record survives ``kill -9`` once ``append`` has returned.  With *lasting*, it survives a power
   cut.
3. ``rewrite`` replaces the file by a new one.  At any time one of the two is complete.
4. A torn end or a damaged record is kept with ``set_aside`` before it is overwritten.
5. With a mark (marks.py), the next start finds that the file was emptied, or is an older copy.

Each format decides what a record is, who may write at the same time, and what a damaged record
means for the others.  There are two ways to frame a record: ``seal`` for a line of text, and
``frame`` for bytes.
"""

import os
import struct
from binascii import crc32

from clawlite.linux.files.files import aside, leads_to_inode, sync_data, tell_replaced, write_whole
from clawlite.linux.files.regular_file import open_regular

_PIECE = 1 << 20  # bytes that are read at once
_HEAD = struct.Struct("<II")  # length of the payload, its CRC-32


class RecordLog:
    """A log, as one process has it.

    path  of the file
    what  its name in messages, "the inbox"
    mark  ``marks.Mark`` of the file, or None
    fd    of the open file, or None
    size  bytes of its whole records.  Where several processes write, the caller sets it to the
          file's size once it has the lock
    """

    fd: int
    inode: tuple  # (device, inode) of the open file

    def __init__(self, path: str, what: str, mark=None):
        self.path, self._what, self._mark = path, what, mark
        self.fd = None  # type: ignore[assignment]
        self.inode = ()
        self.size = 0
        self._is_cut = True  # nothing stands behind ``size`` that a failed ``append`` left there

    def open(self, lasting: bool = False):
        """Open the file that has the name now, and make it and its folder where they are missing.
        *lasting*: their names survive a power cut.  Raises ``OSError``.
        """
        self.close()
        self._make_folder(lasting)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self.adopt(open_regular(self.path, flags))
        if lasting:
            sync_folder(os.path.dirname(self.path))

    def _make_folder(self, lasting: bool):
        folder = os.path.dirname(self.path)
        if lasting:
            lasting_folder(folder)
        else:
            os.makedirs(folder, 0o700, exist_ok=True)

    def adopt(self, fd: int):
        """Use the open file *fd*, which ``close`` closes."""
        before, self.fd = self.fd, fd
        status = os.fstat(fd)
        self.inode, self.size = (status.st_dev, status.st_ino), status.st_size
        self._is_cut = True
        if before is not None:
            os.close(before)

    def was_replaced(self) -> bool:
        """Return whether somebody has removed or replaced the open file.  Then it is closed, and a
        message says so on stderr.
        """
        if self.fd is None or leads_to_inode(self.path, self.inode):
            return False
        self.close()
        tell_replaced(self._what, self.path)
        return True

    def append(self, data: bytes, lasting: bool):
        """Append *data*, one record or several: all of it is there, or nothing.  Raises
        ``OSError``.
        """
        if not self._is_cut:
            os.ftruncate(self.fd, self.size)
        self._is_cut = False
        try:
            write_whole(self.fd, data)
            if lasting:
                sync_data(self.fd)
        except OSError:
            os.ftruncate(self.fd, self.size)
            self._is_cut = True
            raise
        self._is_cut = True
        self.size += len(data)
        if self._mark:
            self._mark.note(self._mark.of(self.size, data), lasting)

    def cut(self, size: int):
        """Let the file end after *size* bytes.  Raises ``OSError``."""
        os.ftruncate(self.fd, size)
        self.size = size
        if self._mark:
            self._mark.note(self._mark.of_end(self.fd, size), False)

    def contents(self, start: int = 0) -> bytes:
        """Return the bytes of the open file from *start* on.  Raises ``OSError``."""
        parts = []
        part = os.pread(self.fd, _PIECE, start)
        while part:
            parts.append(part)
            start += len(part)
            part = os.pread(self.fd, _PIECE, start)
        return b"".join(parts)

    def rewrite(self, parts, lasting: bool):
        """Put a file with *parts*, an iterable of bytes, in the place of this one, and open it.
        Raises ``OSError``: the one that has the name is open then.
        """
        self._make_folder(lasting)
        draft = self.path + ".new"
        with fresh(draft) as file:
            file.writelines(parts)
            file.flush()
            if lasting:
                sync_data(file.fileno())
            if self._mark:
                mark = self._mark.of_end(file.fileno(), file.tell())
                self._mark.expect(mark)
            os.replace(draft, self.path)
            self.adopt(os.dup(file.fileno()))
        if lasting:
            sync_folder(os.path.dirname(self.path))
        if self._mark:
            self._mark.note(mark, lasting)

    def begin_anew(self, path: str):
        """Move the file to *path*, and begin an empty one.  Raises ``OSError``."""
        if self._mark:
            self._mark.expect(self._mark.of(0, b""))
        os.rename(self.path, path)
        self.open()

    def set_aside(self, data: bytes) -> str:
        """Keep *data*, which was read from this file, beside it; return the name.  Raises
        ``OSError``.
        """
        kept = aside(self.path)
        with fresh(kept) as file:
            file.write(data)
        return kept

    def close(self):
        """Close the file."""
        if self._mark:
            self._mark.close()
        fd = self.fd
        self.fd = None  # type: ignore[assignment]  # its number may be another file's next
        if fd is not None:
            os.close(fd)


def seal(text: bytes) -> bytes:
    """Return *text* as a line with its CRC-32: a blank, 8 hexadecimal digits and a line feed."""
    return b"%s %08x\n" % (text, crc32(text))


def is_sealed(line: bytes) -> bool:
    """Return whether *line*, without its line feed, is as ``seal`` made it; its text is
    ``line[:-9]``.
    """
    return seal(line[:-9]) == line + b"\n"


def frame(payload: bytes) -> bytes:
    """Return *payload* behind its length (4 bytes, little-endian) and its CRC-32 (4)."""
    return _HEAD.pack(len(payload), crc32(payload)) + payload


def payloads(data: bytes):
    """Yield (payload, where its record ends) of the records in *data*, which ``frame`` made, up
    to the first one that is torn or damaged.
    """
    end = 0
    while len(data) - end >= _HEAD.size:
        length, crc = _HEAD.unpack_from(data, end)
        end += _HEAD.size + length
        payload = data[end - length : end]
        if not length or len(payload) < length or crc32(payload) != crc:
            return
        yield payload, end


def fresh(path: str):
    """Return a new file at *path*, open for writing.  A file or link that had this name is
    removed.
    """
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return open(os.open(path, flags, 0o600), "wb", _PIECE)


def lasting_folder(folder: str):
    """Make *folder* and those above it where they are not there, and bring their names to the
    disk.  Raises ``OSError``.
    """
    if not os.path.isdir(folder):
        above = os.path.dirname(folder) or "."
        lasting_folder(above)
        os.makedirs(folder, 0o700, exist_ok=True)
        sync_folder(above)


def sync_folder(folder: str):
    """Bring the names in *folder* to the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
