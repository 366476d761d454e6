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
5. With a mark (rollback_marks.py), the next start finds that the file was emptied, or is older.
6. ``fold`` reads a log of lines, and ``fold_framed`` one of frames: they call a function with each
   record, skip a torn end, and say what was damaged.

Each format decides what a record is, who may write at the same time, and what a damaged record
means for the others.  There are two ways to frame a record: ``seal`` for a line of text, and
``frame`` for bytes.
"""

import os
import struct
from binascii import crc32
from typing import NamedTuple

from clawlite.linux.files.files import (
    aside,
    leads_to_inode,
    print_to_stderr,
    sync_data,
    tell_replaced,
    write_whole,
)
from clawlite.linux.files.regular_file import open_regular

_PIECE = 1 << 20  # bytes that are read at once
_HEAD = struct.Struct("<II")  # length of the payload, its CRC-32


class Fold(NamedTuple):
    """What was read.

    total    of the records that are whole, damaged ones among them
    damaged  numbers, from 1, of the damaged ones
    end      position behind the last record that was applied
    size     position behind all that was read: more than *end* when the last record is damaged, or
             torn
    is_open  the last record was applied, though its line feed is missing or damaged
    """

    total: int
    damaged: list[int]
    end: int
    size: int
    is_open: bool = False


class RecordLog:
    """A log, as one process has it.

    path  of the file
    what  its name in messages, "the inbox"
    mark  ``rollback_marks.Mark`` of the file, or None
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

    def fold(self, apply, is_whole=None, start: int = 0) -> Fold:
        """Read the lines from the position *start* on.  A file that is not there has none.  Raises
        ``OSError``.

        apply     function(line without its line feed) -> False: it is damaged
        is_whole  function(bytes) -> whether the last line is a record, though its line feed is
                  missing or damaged; None: it is torn
        Cost      memory for a piece of the file and its longest line
        """
        count, damaged, at, end, rest = 0, [], start, start, b""
        for part in self._pieces(start):
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                count, at = count + 1, at + len(line) + 1
                if apply(line) is False:
                    damaged.append(count)
                else:
                    end = at
        size = at + len(rest)
        for line in (rest, rest[:-1]) if is_whole else ():
            if is_whole(line) and apply(line) is not False:
                return Fold(count + 1, damaged, at + len(line), size, True)
        return Fold(count, damaged, end, size)

    def fold_framed(self, apply) -> Fold:
        """Read the records that ``frame`` made, as ``fold`` does lines, up to the first one that
        is torn or damaged, or for which ``apply(payload)`` returns False: where others would begin
        is not known.
        """
        data, count, end = self.contents(), 0, 0
        while len(data) - end >= _HEAD.size:
            length, crc = _HEAD.unpack_from(data, end)
            payload = data[end + _HEAD.size : end + _HEAD.size + length]
            if not length or len(payload) < length or crc32(payload) != crc:
                break
            if apply(payload) is False:
                break
            count, end = count + 1, end + _HEAD.size + length
        return Fold(count, [], end, len(data))

    def contents(self, start: int = 0) -> bytes:
        """Return the bytes from *start* on.  Raises ``OSError``."""
        return b"".join(self._pieces(start))

    def _pieces(self, start: int):
        """Yield the bytes from *start* on, of the open file, else of the one that has the name."""
        fd = self.fd
        if fd is None:
            try:
                fd = open_regular(self.path, os.O_RDONLY)
            except FileNotFoundError:
                return
        try:
            part = os.pread(fd, _PIECE, start)
            while part:
                yield part
                start += len(part)
                part = os.pread(fd, _PIECE, start)
        finally:
            if fd != self.fd:
                os.close(fd)

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

    def set_aside(self, start: int = 0) -> str:
        """Keep a copy of what the file has from *start* on beside it; return its name.  Raises
        ``OSError``.
        """
        kept = aside(self.path)
        with fresh(kept) as file:
            file.writelines(self._pieces(start))
        return kept

    def keep_damaged(self, read: Fold, means: str = ""):
        """Keep a copy of the damaged file beside it, and say so on stderr; *means*: what the loss
        means.  Raises ``OSError``, which stderr has, too.
        """
        lost = "%d of %d lines are lost" % (len(read.damaged), read.total)
        text = "%s %s was damaged: %s%s; " % (self._what, self.path, lost, means)
        try:
            text += "the damaged file is kept as %s" % self.set_aside()
        except OSError as e:
            text += "it cannot be set aside: %s" % e.strerror
            raise
        finally:
            print_to_stderr(text)

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
