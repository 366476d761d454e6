"""A log of records on a board's flash that only grows at its end, for data that must survive a
power cut (docs/memory.md, ADR 0040).

    4 bytes   n, length of the payload, big-endian, 1..MAX_PAYLOAD
    4 bytes   CRC-32 of these four bytes and the payload, big-endian
    n bytes   the payload

1. A record is stored when ``append`` has returned.  A power cut before that leaves nothing of it
   (littlefs), or a torn record (other file systems).
2. Bytes after a torn or damaged record cannot be read: ``walk`` ends before it, and ``append`` cuts
   it off first.
3. Nothing of this module stays in memory: its functions take the path, and the caller keeps one
   integer, the end of the last intact record.  It is imported inside functions and dropped again
   (unload.py).  Only ``read`` holds a whole payload.
4. Every function raises ``OSError`` when the flash cannot be read or written; then the records in
   the log are still there.
"""

import os
import struct
from binascii import crc32

MAX_PAYLOAD = 8192
TORN = 1  # position in the result of ``start``
_HEAD = 8
_PIECE = 128
_STAT_SIZE = 6  # as in osfields.py, so that this file needs no import


def start(path: str) -> tuple:
    """Return (end of the last intact record, number of bytes after it) of the log at *path*.  Call
    it once, before all other functions.

    A rewrite that a power cut interrupted is finished, or its new file is removed.
    """
    folder, _, name = path.rpartition("/")
    found = os.listdir(folder or ".")
    if name + ".new" in found:
        if name in found:
            os.remove(path + ".new")
        # FAT removes the old name before it renames: then the file with the new name is complete
        else:
            os.rename(path + ".new", path)
    elif name not in found:
        return 0, 0
    end = 0
    for offset, length in walk(path):
        end = offset + length
    return end, os.stat(path)[_STAT_SIZE] - end


def walk(path: str, at: int = 0):
    """Yield (offset, length) of each payload from *at* on, the oldest first, up to the first record
    that is torn or damaged.  The file at *path* must exist.

    Cost  reads all of it, 128 bytes at a time.
    """
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        piece = bytearray(_PIECE)
        while size - at > _HEAD:
            file.seek(at)
            head = file.read(_HEAD)
            length, crc = struct.unpack(">II", head)
            at += _HEAD
            if (
                not 0 < length <= min(MAX_PAYLOAD, size - at)
                or _crc(file, length, crc32(head[:4]), piece) != crc
            ):
                return
            yield at, length
            at += length


def read(path: str, offset: int, length: int) -> bytes:
    """Return the payload at a place that ``walk`` returned."""
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(length)


def append(path: str, payload: bytes, end: int) -> int:
    """Append one record; return the new end.

    end  as returned by ``start``, ``rewrite`` or the last ``append``; bytes after it are cut off
         first
    Raises ``ValueError`` when the payload is empty or has more than MAX_PAYLOAD bytes.
    """
    if not 0 < len(payload) <= MAX_PAYLOAD:
        raise ValueError(
            "expected a payload of 1 to %d bytes, got %d" % (MAX_PAYLOAD, len(payload))
        )
    with open(path, "ab") as file:
        size = file.seek(0, 2)
        if size == end:
            _write(file, payload)
    if size != end:
        rewrite(path, walk(path))
        with open(path, "ab") as file:
            _write(file, payload)
            end = file.tell() - _HEAD - len(payload)
    return end + _HEAD + len(payload)


def rewrite(path: str, places) -> int:
    """Replace the log by one with the payloads at *places* alone, in their order; return its end.
    A power cut leaves the old log or the new one.

    places  an iterable of (offset, length), as ``walk`` yields them
    """
    piece = bytearray(_PIECE)
    with open(path, "rb") as old:
        with open(path + ".new", "wb") as new:
            for offset, length in places:
                old.seek(offset - _HEAD)
                _copy(old, new, length + _HEAD, piece)
            end = new.tell()
    os.rename(path + ".new", path)
    return end


def _write(file, payload: bytes):
    head = struct.pack(">I", len(payload))
    file.write(head + struct.pack(">I", crc32(payload, crc32(head))) + payload)


def _crc(file, length: int, crc: int, piece: bytearray) -> int:
    while length:
        count = file.readinto(memoryview(piece)[: min(length, len(piece))])
        if not count:
            return -1
        crc = crc32(memoryview(piece)[:count], crc)
        length -= count
    return crc


def _copy(old, new, length: int, piece: bytearray):
    while length:
        count = old.readinto(memoryview(piece)[: min(length, len(piece))])
        if not count:
            raise OSError("the log has changed")
        new.write(memoryview(piece)[:count])
        length -= count
