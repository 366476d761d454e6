"""The memory of a tree of processes, measured from outside by the supervisor when no control group
counts it.

Besides mapped memory, the kernel keeps memory for processes and does not say how much.  Each kind
of such memory is either refused (linux/confinement/seccomp.py) or counted with its maximum:

    kind                                        counted as
    pages, in memory and in swap                as they are; PSS where the plain sum is above the
                                                limit
    huge pages, page tables                     as they are
    a task: its stack and wait queues           TASK, and POLLED for each descriptor that it may
                                                pass to poll(2)
    a mapping                                   AREA
    a descriptor                                FILE
    a pipe, with or without a name              16 pages: a call cannot make one larger
    a socket                                    twice its buffer (a message may begin where one byte
                                                is free), OPTIONS
    a descriptor in an epoll, a lock of a file  ITEM
    a file of /proc, a terminal                 DEVICE; a file of fdinfo also counts the most items
                                                that one epoll or locked file has
    a mount that lies in memory, /tmp in N      its growth, and INODE for each file

A call ends when something cannot be measured: shared memory of /dev/zero, a program that its user
may run but not read, or descriptors that are in transit in a socket at two measurements in a row.
"""

import _socket
import os
import resource
import stat
import time

from clawlite.linux.confinement import syscalls
from clawlite.linux.confinement.limits import INODE, open_files, read
from clawlite.linux.files.mounts import TABLE, unescape
from clawlite.linux.sandbox.plan import Refused

_PAGE = os.sysconf("SC_PAGE_SIZE")
TASK, POLLED, AREA, FILE, ITEM, OPTIONS, DEVICE = 32768, 136, 512, 2048, 256, 131072, 524288
PIPE = 16 * _PAGE
# pause between full measurements, in multiples of the processor time that the last one took
PAUSE = 8
_ZERO = b" /dev/zero (deleted)"
LOCKS = 512  # file locks on the machine: with more of them, the locks of the tree are counted
_KCMP_VM = 1
_PART = 65536


def waiting() -> int:
    """Return the bytes of a socket's send buffer on this machine."""
    one, other = _socket.socketpair()
    size = one.getsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF)
    one.close()
    other.close()
    return size


def in_memory(folders: list) -> dict:
    """Return {device: path} of the mounts at and below *folders* whose files are kept only in
    memory.
    """
    found, kept = {}, {}
    for line in _whole(TABLE).splitlines():
        fields, _, rest = line.partition(" - ")
        fields = fields.split(" ")
        if rest.split(" ")[0] in ("tmpfs", "ramfs", "rootfs"):
            major, _, minor = fields[2].partition(":")
            found[os.makedev(int(major), int(minor))] = unescape(fields[4])
    for folder in folders:
        try:
            device = os.stat(folder).st_dev
        except OSError:
            continue
        if device in found:
            kept[device] = folder
        for device, path in found.items():
            if (path + "/").startswith(folder.rstrip("/") + "/"):
                kept.setdefault(device, path)
    return kept


def writable(plan: dict) -> list:
    """Return the folders that the call may write to, as its supervisor sees them."""
    if plan["profile"] == "L":
        return [path for path, is_writable in plan["allowed"] if is_writable]
    return (
        [target for _, target, is_writable in plan["mounts"] if is_writable]
        + [plan["env"]["TMPDIR"]]
        + (["/"] if plan["whole"] == 2 else [])
    )


class MemoryAccount:
    """The memory of one call's tree.  Create it before the tree can grow.  Raises ``Refused``."""

    def __init__(self, plan: dict):
        self._limit = plan["memory_mb"] << 20
        self._task = TASK + POLLED * min(
            open_files(plan), resource.getrlimit(resource.RLIMIT_NOFILE)[1] % (1 << 64)
        )
        # more processes than this exceed the limit, whatever they do
        self.most = self._limit // self._task
        self._socket = 2 * waiting() + OPTIONS
        # all sockets of this network namespace belong to the tree; else they are found by fd
        self._alone = plan["profile"] == "N"
        self._passes = bool(plan["network"])  # descriptors may be sent (confinement/seccomp.py)
        self._mounts = []  # (descriptor, bytes before the call)
        for path in in_memory(writable(plan)).values():
            if not os.statvfs(path).f_blocks and "memory_mb" not in plan["relaxed"]:
                raise Refused(
                    "memory_mb: %s lies in memory, and nothing says how much of it is "
                    "used (ramfs, or a tmpfs without a size)" % path,
                    "mount a folder of a disk, or of a tmpfs with a size, or set "
                    'relaxed = ["memory_mb"]',
                )
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            self._mounts.append((fd, _count_used(fd)))
        self._beside, self._under_way, self._next = 0, False, 0.0

    def is_over(self, pids: list) -> bool:
        """Return whether *pids* together exceed the limit, or have something that cannot be
        measured.
        """
        beside = sum([_count_used(fd) - before for fd, before in self._mounts])
        if self._alone:
            text = read("/proc/self/net/sockstat")
            at = text.find("sockets: used ")
            beside += self._socket * int(text[at + 14 : text.find("\n", at)]) if at >= 0 else 0
        beside = max(beside, 0)
        live = self._live(pids)
        if live is None:
            return True
        if (
            self._count_mapped(live, self._limit - beside - self._beside) + beside + self._beside
            > self._limit
        ):
            return True
        if time.monotonic() < self._next:
            return False
        start = time.process_time()
        self._beside = self._kernel(live, self._limit - beside)
        self._next = time.monotonic() + PAUSE * (time.process_time() - start)
        return (
            self._count_mapped(live, self._limit - beside - self._beside) + beside + self._beside
            > self._limit
        )

    def _live(self, pids: list):
        """Return [(id, text of its status in /proc), ...] of the processes; None when /proc hides
        one of them (hidepid).

        When the first thread of a process has ended, /proc shows no memory under its pid.  Then the
        id is that of another thread."""
        found = []
        for pid in pids:
            # too many: while the rest is read, the tree could make as many more
            if len(found) > self.most:
                break
            text = read("/proc/%d/status" % pid)
            if "\nVmRSS:" not in text and _number(text, "Threads:") > 1:
                try:
                    others = os.listdir("/proc/%d/task" % pid)
                except OSError:  # it has ended
                    continue
                for other in others:
                    status = read("/proc/%s/status" % other)
                    if "\nVmRSS:" in status:
                        pid, text = int(other), status
                        break
            if text:
                found.append((pid, text))
            elif _is_there(pid) and not os.path.exists("/proc/%d" % pid) and _is_there(pid):
                return None
        return found

    def _count_mapped(self, live: list, room: int) -> int:
        """Return the bytes of the processes themselves.  When the plain sum exceeds *room*, each
        process counts only its share of shared pages (PSS).
        """
        plain = sum(
            [
                _pages(text)
                + _kilobytes(text, "VmRSS:")
                + _kilobytes(text, "VmSwap:")
                + self._task * _number(text, "Threads:")
                for _, text in live
            ]
        )
        if plain <= room:
            return plain
        total, ids = 0, {pid for pid, _ in live}
        for pid, text in live:
            total += self._task * _number(text, "Threads:")
            parent = _number(text, "PPid:")
            # a child of vfork(2) shares its parent's memory until it starts its program
            if parent in ids and _is_one(pid, parent):
                continue
            exact, names = read("/proc/%d/smaps_rollup" % pid), ("Pss:", "SwapPss:")
            if "\nPss:" not in exact:
                # it may not be inspected, so all of its memory counts.  Its status is read again:
                # it may have been a child of vfork(2), which has ended since
                exact = text = read("/proc/%d/status" % pid)
                names = ("VmRSS:", "VmSwap:")
            total += _pages(text) + sum([_kilobytes(exact, name) for name in names])
        return total

    def _kernel(self, live: list, room: int) -> int:
        """Return the bytes that the kernel holds for *live*, as far as they are counted; more
        than *room* when something cannot be measured.
        """
        self._sockets, self._pipes, self._infos, self._most, self._sent = set(), set(), 0, 0, False
        # with many locks, reading them all would take the kernel seconds
        self._locked = _lines("/proc/locks", b"\n", LOCKS) > LOCKS
        total = 0
        for pid, text in live:
            if total <= room and "\nVmRSS:" in text:
                total += self._areas(pid, room - total)
            if total <= room:
                total += self._descriptors(pid, room - total)
        total += (
            PIPE * len(self._pipes)
            + (0 if self._alone else self._socket * len(self._sockets))
            + self._infos * self._most * ITEM
        )
        before, self._under_way = self._under_way, self._sent
        return room + 1 if before and self._sent else total

    def _areas(self, pid: int, room: int) -> int:
        count, rest = 0, b""
        try:
            with open("/proc/%d/maps" % pid, "rb", 0) as file:
                while count * AREA <= room:
                    data = file.read(_PART)
                    if not data:
                        break
                    count += data.count(b"\n")
                    lines = (
                        (rest + data).split(b"\n")
                        if _ZERO in rest + data
                        else [data[data.rfind(b"\n") + 1 :]]
                    )
                    if any(
                        [
                            line.endswith(_ZERO) and line.split(b" ", 2)[1][3:] == b"s"
                            for line in lines
                        ]
                    ):
                        return room + 1
                    rest = lines[-1]
        except OSError:
            return room + 1 if _hides(pid) else 0
        return count * AREA

    def _descriptors(self, pid: int, room: int) -> int:
        folder, total = "/proc/%d/fd/" % pid, 0
        try:
            names = os.listdir(folder)
        except OSError:
            return room + 1 if _hides(pid) else 0
        for name in names:
            total += FILE
            try:
                target = os.readlink(folder + name)
                about = "/proc/%d/fdinfo/%s" % (pid, name)
                if target.startswith("socket:"):
                    self._sockets.add(target)
                    self._sent = self._sent or self._passes and _number(read(about), "scm_fds:") > 0
                elif target == "anon_inode:[eventpoll]":
                    total += self._items(about, b"\ntfd:", room)
                elif target.startswith(("/proc/", "/dev/pt", "/dev/tty")):
                    total += DEVICE
                    self._infos += "/fdinfo/" in target
                elif target.startswith(("pipe:", "/")):
                    status = os.stat(folder + name)
                    # by inode: a name can repeat after its pipe is gone
                    if stat.S_ISFIFO(status.st_mode):
                        self._pipes.add((status.st_dev, status.st_ino))
                    elif self._locked:
                        total += self._items(about, b"\nlock:", room)
            except OSError:  # closed since, or it has ended
                continue
            if total > room:
                break
        return total

    def _items(self, about: str, mark: bytes, room: int) -> int:
        count = _lines(about, mark, room // ITEM)
        self._most = max(self._most, count)
        return ITEM * count


def _hides(pid: int) -> bool:
    """Return whether *pid*, which could not be inspected, still has memory.  Without memory it is
    only ending.
    """
    return "\nVmRSS:" in read("/proc/%d/status" % pid)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _is_one(pid: int, other: int) -> bool:
    """Return whether two processes have the same memory."""
    try:
        return syscalls.call("kcmp", pid, other, _KCMP_VM, 0, 0) == 0
    except OSError:  # it has ended, or the kernel does not say
        return False


def _count_used(fd: int) -> int:
    of = os.fstatvfs(fd)
    return (of.f_blocks - of.f_bfree) * of.f_frsize + (of.f_files - of.f_ffree) * INODE


def _pages(text: str) -> int:
    return _kilobytes(text, "HugetlbPages:") + _kilobytes(text, "VmPTE:")


def _kilobytes(text: str, name: str) -> int:
    return _number(text, name) << 10


def _number(text: str, name: str) -> int:
    """Return the number behind *name* at the beginning of a line of *text*, 0 where there is
    none.
    """
    at = text.find("\n" + name)
    return int(text[at + 1 + len(name) : text.find("\n", at + 1)].split()[0]) if at >= 0 else 0


def _lines(path: str, mark: bytes, most: int) -> int:
    """Return how often *mark* is in *path*.  Reading stops once there are more than *most*."""
    count, rest = 0, b""
    try:
        with open(path, "rb", 0) as file:
            while count <= most:
                data = file.read(_PART)
                if not data:
                    break
                data = rest + data
                count += data.count(mark)
                rest = data[1 - len(mark) :] if len(mark) > 1 else b""
    except OSError:  # it has ended, or there is none
        pass
    return count


def _whole(path: str) -> str:
    with open(path, errors="surrogateescape") as file:
        return file.read()
