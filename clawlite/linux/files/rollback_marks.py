"""How far the files of one agent had come when the agent last wrote them: ``state.marks`` in its
state folder, one record for all of them.  At a start, a file that is behind its mark is told: it
was emptied or removed, or an older copy was put in its place.

    mark mark2 seconds boot lasting  path  <CRC>    a slot for each file, ``_SLOT`` bytes

1. A mark is SIZE:LENGTH:CRC: the file had at least SIZE bytes, and the LENGTH bytes before that
   have this CRC-32.  Files that only grow need no more: what stands behind is newer.
2. While a file is replaced as a whole, its slot has the mark of the old one and of the new one.
   After a kill, either of them may be there.
3. A slot is written after its file, with one pwrite(2) and without a sync.  So it is never ahead
   of its file after a kill.  After a power cut it may be: then a file that was not synced, and that
   was last changed when its mark was made, is what the power cut has left.
4. A database has no end that grows.  Its mark is NUMBER:-1:CRC: the number that the database itself
   counts up (``count_up``), and the CRC of its size and time when it was closed, or 0.
5. A mark that cannot be written is left out: no store fails for it.
"""

import os
import time
from binascii import crc32

try:
    import fcntl
except ImportError:  # Windows: there no agent runs
    fcntl = None  # type: ignore[assignment]

from clawlite.linux.files.files import SWARMS, state_root
from clawlite.linux.files.record_log import is_sealed, seal
from clawlite.linux.files.regular_file import open_regular

FILE = "state.marks"
TAIL = 256  # bytes before the end of a file, at most, that a mark compares
COUNTED = -1  # in place of the length: the mark of a database
_SLOT = 256
_ROOM = 160  # bytes of the name in it, with blanks
_MOST = 256  # files that have a slot
_CUT_S = 90  # a power cut loses what was written in less time before it
NOTHING = (0, 0, 0)  # the mark of an empty file

BEFORE, NOW, SECONDS, BOOT, LASTING, PATH = range(6)  # of a slot


class Mark:
    """The mark of the file *path*.

    tail    how many bytes before its end are compared; 0 for a file that people may edit
    folder  the state folder of its agent; "": the one that *path* lies in, and a file that lies in
            none has no mark
    """

    def __init__(self, path: str, tail: int = TAIL, folder: str = ""):
        self._path, self._tail = path, tail
        self._folder = folder or agent_folder(path)
        self._fd = self._at = -1  # the file of the marks, and where the slot is in it
        self._now, self._room = NOTHING, b""

    def of(self, size: int, tail: bytes) -> tuple:
        """Return the mark of a file of *size* bytes whose last bytes are *tail*."""
        tail = tail[-self._tail :] if self._tail else b""
        return size, len(tail), crc32(tail)

    def of_end(self, fd: int, size: int) -> tuple:
        """Return the mark of the first *size* bytes of an open file."""
        length = min(size, self._tail)
        return self.of(size, os.pread(fd, length, size - length))

    def note(self, mark: tuple, lasting: bool, before=None):
        """Write that the file has come to *mark*.

        lasting  what the mark says is on the disk, after a power cut, too
        before   another mark that the file may still have, or None
        """
        if not self._folder:
            return
        try:
            if self._fd < 0:
                self._open()
            if self._at >= 0:
                slot = (before or mark, mark, int(time.time()), boot_id()[:8], lasting)
                os.pwrite(self._fd, _text(slot, self._room), self._at)
                self._now = self._now if before else mark
        except OSError:
            self.close()

    def expect(self, mark: tuple):
        """Write that the file, which is replaced next, has its present mark or *mark*."""
        if self._folder and self._fd < 0:
            try:
                self._open()
            except OSError:
                return
        self.note(mark, False, self._now)

    def close(self):
        """Close the file of the marks."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _name(self) -> str:
        within = self._folder + os.sep
        return self._path[len(within) :] if self._path.startswith(within) else self._path

    def _open(self):
        """Open the file of the marks, and find the slot, or make it."""
        self.close()
        fd = open_regular(os.path.join(self._folder, FILE), os.O_RDWR | os.O_CREAT)
        self._fd, self._at, name = fd, -1, self._name()
        room = b" " + name.encode("utf-8", "surrogateescape")
        self._room, slots = room.ljust(_ROOM), _slots(fd)
        if name in slots:
            self._at, slot = slots[name]
            self._now = slot[NOW]
            return
        text = _text((NOTHING, NOTHING, 0, "", True), self._room)
        fcntl.flock(fd, fcntl.LOCK_EX)  # another process may make a slot, too
        try:
            slots, end = _slots(fd), os.fstat(fd).st_size
            at = slots[name][0] if name in slots else end - end % _SLOT
            if len(text) == _SLOT and at < _MOST * _SLOT:
                os.pwrite(fd, text, at)
                self._at = at
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)


def replace_marked(draft: str, path: str, data: bytes, lasting: bool):
    """Put the file *draft*, which has *data*, in the place of *path*.  Raises ``OSError``."""
    one = Mark(path)
    mark = one.of(len(data), data)
    one.expect(mark)
    try:
        os.replace(draft, path)
        one.note(mark, lasting)
    finally:
        one.close()


def agent_folder(path: str) -> str:
    """Return the state folder, of an agent or of a swarm, that *path* lies in; "" for none."""
    root = state_root()
    if not path.startswith(root + os.sep):
        return ""
    parts = path[len(root) + 1 :].split(os.sep)
    depth = 2 if parts[0] == SWARMS else 1
    return os.path.join(root, *parts[:depth]) if len(parts) > depth else ""


def count_up(run) -> int:
    """Count up the number of a database, in the transaction that has begun; return it.

    run  function(sql) -> cursor
    """
    if not run("SELECT 1 FROM sqlite_master WHERE name='written'").fetchone():
        run("CREATE TABLE written(number INTEGER NOT NULL)")
        run("INSERT INTO written VALUES(0)")
    run("UPDATE written SET number = number + 1")
    return number_of(run)


def number_of(run) -> int:
    """Return the number of a database, 0 before the first."""
    if not run("SELECT 1 FROM sqlite_master WHERE name='written'").fetchone():
        return 0
    return (run("SELECT number FROM written").fetchone() or (0,))[0]


# the clock of the time since the boot, also while the machine slept; macOS' own counts that
UP = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_id() -> str:
    """Return an id of the present boot of this machine, "" where the system names none."""
    if not _boot:
        try:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                _boot.append(file.read(40).strip())
        except OSError:
            _boot.append(_boot_of_macos())
    return _boot[0]


def _boot_of_macos() -> str:
    from subprocess import DEVNULL, PIPE, run

    try:
        words = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
        return run(words, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL).stdout.decode().strip()
    except OSError:
        return ""


_boot: list = []


def find_behind(folder: str, counted) -> list:
    """Return [(slot, what)] of the files of *folder* that are behind their marks; what: "missing",
    "empty" or "old".

    counted  function(path, slot) -> whether a database is behind; it is asked where the size and
             the time of the file do not answer this
    """
    try:
        fd = open_regular(os.path.join(folder, FILE), os.O_RDONLY)
    except OSError:
        return []
    try:
        found = []
        for name in _slots(fd):
            for _ in range(3):  # another process may be replacing the file
                slot = _slots(fd)[name][1]
                what = _state(os.path.join(folder, name), slot, counted)
                if not what:
                    break
            if what:
                found.append((slot, what))
        return found
    finally:
        os.close(fd)


def _state(path: str, slot: list, counted) -> str:
    """Return what is wrong with the file at *path*, or ""."""
    if NOTHING in (slot[BEFORE], slot[NOW]):
        return ""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return "missing"
    except OSError:  # its store says why
        return ""
    if not status.st_size:
        return "empty"
    if slot[NOW][1] == COUNTED:
        is_same = 0 != slot[NOW][2] == fingerprint(path)
        return "" if is_same or not counted(path, slot) else "old"
    if any(_has(path, status.st_size, slot[which]) for which in (NOW, BEFORE)):
        return ""
    return "" if is_cut(slot, status.st_mtime) else "old"


def is_cut(slot: list, changed_s: float) -> bool:
    """Return whether a power cut explains that a file last changed at *changed_s* is behind."""
    is_of_cut = -_CUT_S <= changed_s - slot[SECONDS] <= 5
    return not slot[LASTING] and slot[BOOT] != boot_id()[:8] and is_of_cut


def fingerprint(path: str) -> int:
    """Return the CRC of the size and time of the database *path*; 0 while it has a log."""
    try:
        if os.path.exists(path + "-wal"):
            return 0
        status = os.stat(path)
    except OSError:
        return 0
    return crc32(b"%d %d" % (status.st_size, status.st_mtime_ns)) or 1


def _has(path: str, bytes_now: int, mark: tuple) -> bool:
    """Return whether the file is as *mark* says, or goes on from there."""
    size, length, crc = mark
    if bytes_now < size:
        return False
    try:
        fd = open_regular(path, os.O_RDONLY)
    except OSError:
        return True
    try:
        return crc32(os.pread(fd, length, size - length)) == crc
    finally:
        os.close(fd)


def _text(slot: tuple, name: bytes) -> bytes:
    before, now, seconds, boot, lasting = slot
    text = b"%d:%d:%08x %d:%d:%08x %d %s %d" % (
        *before,
        *now,
        seconds,
        boot.encode() or b"-",
        lasting,
    )
    return seal(text.ljust(_SLOT - 10 - len(name)) + name)


def _slots(fd: int) -> dict:
    """Return {path: (position, slot)} of the file of marks; damaged slots are left out."""
    data, found = os.pread(fd, _MOST * _SLOT, 0), {}
    for at in range(0, len(data), _SLOT):
        line = data[at : at + _SLOT - 1]
        if not is_sealed(line):
            continue
        before, now, seconds, boot, lasting = line[: _SLOT - 10 - _ROOM].split()
        name = line[_SLOT - 9 - _ROOM : -9].rstrip(b" ").decode("utf-8", "surrogateescape")
        found[name] = (
            at,
            [_mark(before), _mark(now), int(seconds), boot.decode().strip("-"), lasting == b"1"]
            + [name],
        )
    return found


def _mark(text: bytes) -> tuple:
    size, length, crc = text.split(b":")
    return int(size), int(length), int(crc, 16)
