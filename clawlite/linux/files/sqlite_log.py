"""Damage in the log of a SQLite database, the file ``NAME-wal``, which SQLite does not tell.

A process that was killed leaves a log.  Who opens it next compares the checksum of each frame, and
takes the first one that differs for the end: half a transaction may stand there.  A bit that a card
has changed so takes away all that was stored after it, without a word.  But half a transaction has
no commit behind it, so a commit behind SQLite's end is damage.

Source  https://www.sqlite.org/walformat.html
"""

import os
import struct

from clawlite.linux.files.files import aside, tell

_HEADER, _FRAME = 32, 24  # bytes before the frames, and before the page of each
_PAGE = 1024  # bytes of a page, where a header's word for it is damaged


def look(path: str):
    """Return (salts, number of the last frame that commits) of the log of the database *path*;
    None where there is none, or nothing is in it.
    """
    try:
        with open(path + "-wal", "rb") as file:
            log = file.read()
    except OSError:
        return None
    if len(log) < _HEADER:
        return None
    (size,) = struct.unpack_from(">I", log, 8)
    if size < 512 or size & size - 1:
        size = _PAGE
    first, second = log[16:20], log[20:24]
    last = number = 0
    for at in range(_HEADER, len(log) - _FRAME + 1, _FRAME + size):
        number += 1
        # Frames of an earlier log may lie behind those of this one, and both of their salts are
        # others.  One that is damaged leaves the other.
        is_ours = log[at + 8 : at + 12] == first or log[at + 12 : at + 16] == second
        if is_ours and log[at + 4 : at + 8] != b"\0\0\0\0":
            last = number
    return (first + second, last) if last else None


def check(run, path: str, what: str, found):
    """Set a copy of the log aside, and say so, where SQLite has left out commits that are in it.

    run     function(sql) -> cursor, of a connection to *path* that has not written yet
    what    the words for it: "the memory"
    found   what ``look`` returned before the connection was made
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
    if is_busy or not 0 <= end < last or (look(path) or found)[0] != salts:
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
    tell(
        "%s %s: its log is damaged, and what was stored last is lost (after frame %d of %d); %s"
        % (what, path, end, last, where)
    )


def _for_us_alone(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
