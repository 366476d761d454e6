"""Damage in the log of a SQLite database, the file ``NAME-wal``, which SQLite does not tell.

A process that was killed leaves a log.  Who opens it next compares the checksum of each frame, and
takes the first one that differs for the end: half a transaction may stand there.  A bit that a card
has changed so takes away all that was stored after it, without a word.  But half a transaction has
no commit behind it, so a commit behind SQLite's end is damage.

Source  https://www.sqlite.org/walformat.html
"""

import os
import struct

from clawlite.linux.files.files import aside, print_to_stderr
from clawlite.linux.files.regular_file import open_regular

_HEADER, _FRAME = 32, 24  # bytes before the frames, and before the page of each
_PAGE = 1024  # bytes of a page, where a header's word for it is damaged
_MAGIC = b"\x37\x7f\x06"  # the first bytes of a log; the next one is the order of its checksums
_ORDERS = {0x82: "<", 0x83: ">"}


def last_commit(path: str):
    """Return (salts, number of the last frame that commits) of the log of the database *path*;
    None where there is none, or nothing is in it.
    """
    log = _read(path)
    if len(log) < _HEADER:
        return None
    size = _page_size(log)
    first, second = log[16:20], log[20:24]
    last = number = 0
    for at in range(_HEADER, len(log) - _FRAME - size + 1, _FRAME + size):
        number += 1
        # Frames of an earlier log may lie behind those of this one, and both of their salts are
        # others.  One that is damaged leaves the other.
        is_ours = log[at + 8 : at + 12] == first or log[at + 12 : at + 16] == second
        if is_ours and log[at + 4 : at + 8] != b"\0\0\0\0":
            last = number
    return (first + second, last) if last else None


def unread_frames(path: str):
    """Return (number of the last frame that SQLite reads, of the last one that commits) of a log
    of *path* that holds more than SQLite reads; None of any other.  Nothing is opened or changed,
    and a process that writes meanwhile is no damage.  Cost: one step for 4 bytes of the log.
    """
    for _ in range(2):  # a frame may have been half written when the first look came to it
        found = last_commit(path)
        if found is None:
            return None
        end = _last_valid_frame(_read(path))
        salts, last = last_commit(path) or (b"", 0)
        if salts != found[0] or end >= found[1]:
            return None
    return end, last


def _last_valid_frame(log: bytes) -> int:
    """Return the number of the last frame that commits, before the first one that is not as its
    checksum says: SQLite reads so far.
    """
    if len(log) < _HEADER or log[:3] != _MAGIC or log[3] not in _ORDERS:
        return 0
    order, size = _ORDERS[log[3]], _page_size(log)
    sums = _sums(order, log[: _HEADER - 8], (0, 0))
    if struct.pack(">II", *sums) != log[_HEADER - 8 : _HEADER]:
        return 0
    last = number = 0
    for at in range(_HEADER, len(log) - _FRAME - size + 1, _FRAME + size):
        number += 1
        page = at + _FRAME
        sums = _sums(order, log[at : at + 8] + log[page : page + size], sums)
        if log[at + 8 : page] != log[16:24] + struct.pack(">II", *sums):
            break
        if log[at + 4 : at + 8] != b"\0\0\0\0":
            last = number
    return last


def _sums(order: str, data: bytes, sums: tuple) -> tuple:
    """Return SQLite's two sums over *data*, a multiple of 8 bytes, going on from *sums*."""
    first, second = sums
    words = iter(struct.unpack("%s%dI" % (order, len(data) // 4), data))
    for one, other in zip(words, words):
        first = first + one + second & 0xFFFFFFFF
        second = second + other + first & 0xFFFFFFFF
    return first, second


def _read(path: str) -> bytes:
    """Return the log of the database *path*, b"" where there is none."""
    try:
        with open(path + "-wal", "rb", opener=open_regular) as file:
            return file.read()
    except OSError:
        return b""


def _page_size(log: bytes) -> int:
    (size,) = struct.unpack_from(">I", log, 8)
    return _PAGE if size < 512 or size & size - 1 else size


def check(run, path: str, what: str, found):
    """Set a copy of the log aside, and say so, where SQLite has left out commits that are in it.

    run     function(sql) -> cursor, of a connection to *path* that has not written yet
    what    the words for it: "the memory"
    found   what ``last_commit`` returned before the connection was made
    """
    if found is None:
        return
    from _sqlite3 import OperationalError

    try:
        run("BEGIN IMMEDIATE")  # who was writing has ended then
        run("ROLLBACK")
        is_busy, end, _ = run("PRAGMA wal_checkpoint").fetchone()
    except OperationalError:  # another process writes on, or the disk is full: requests say so
        return
    salts, last = found
    if is_busy or not 0 <= end < last or (last_commit(path) or found)[0] != salts:
        return
    kept = aside(path + "-wal")
    try:
        with (
            open(path + "-wal", "rb") as log,
            open(kept, "wb", opener=_for_us_alone) as copy,
        ):
            copy.write(log.read())
        where = "the log as it was is kept as %s" % kept
    except OSError as e:
        where = "the log could not be kept as %s: %s" % (kept, e.strerror)
    print_to_stderr(
        "%s %s: its log is damaged, and what was stored last is lost (after frame %d of %d); %s"
        % (what, path, end, last, where)
    )


def _for_us_alone(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
