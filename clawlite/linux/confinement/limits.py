"""Limits of a call.  The child sets some for itself before any code of the tool runs; the
supervisor watches the others.

When control groups are delegated (cgroups.py), they enforce the first three instead.

| limit          | set by the child                         | watched by the supervisor        |
|----------------|------------------------------------------|----------------------------------|
| memory_mb      | RLIMIT_DATA of each process (RESERVED    | the sum over the tree, with the  |
|                | above it for MCP servers); memory that   |                                  |
|                | cannot be seen is refused (seccomp.py)   | kernel's part, memory_accounting |
| cpu_shares     | nice of each process                     | nice of each session (autogroup) |
| max_processes  | RLIMIT_NPROC, threads count              | the number in the tree           |
| max_open_files | RLIMIT_NOFILE of each process; without   |                                  |
|                | it OPEN_FILES where memory_mb is watched |                                  |
"""

import math
import os
import resource
import stat

from clawlite.linux.files.quota import walk

# limit -> the controller of control groups that enforces it
KEEPERS = {"memory_mb": "memory", "cpu_shares": "cpu", "max_processes": "pids"}
# one step of nice is a quarter of the weight (kernel/sched/core.c)
SHARES_PER_NICE = 1.25
DEFAULT_SHARES = 1024
LEAST_SHARES = 15  # the weight of nice 19
MAX_FILES = 16384  # entries of a private /tmp
INODE = 1024  # bytes of kernel memory for one entry
# descriptors of a process whose memory is watched, unless the profile has max_open_files
OPEN_FILES = 1024
PENDING = 1024  # pending signals and timers
STACK = 8388608  # of a first thread, where the system sets no limit
# bytes that RLIMIT_DATA lets an MCP server have beyond memory_mb.  V8 makes 512 MB of addresses
# writable for the code of each thread (128 on ARM), which are counted, and uses little of them
RESERVED = 2 << 30
TICK_MS = 50  # how often the supervisor measures


def nice_of(cpu_shares: int) -> int:
    """Return the nice level with the weight of *cpu_shares* (1024: 0).  More than 1024 is also 0,
    because nice cannot give more than an ordinary share.
    """
    return max(0, min(19, round(math.log(DEFAULT_SHARES / cpu_shares, SHARES_PER_NICE))))


def share(cpu_shares):
    """Set the nice level for *cpu_shares* of this process and the processes it starts."""
    if cpu_shares is not None and nice_of(cpu_shares):
        os.setpriority(
            os.PRIO_PROCESS, 0, max(nice_of(cpu_shares), os.getpriority(os.PRIO_PROCESS, 0))
        )


def weigh(pids: list, level: int):
    """Give each session of *pids* the nice *level*, when the kernel schedules by session
    (autogroup).  Then the level of a process counts only within its session.

    The kernel accepts one such change per user in 100 ms; the others are made at the next
    measurement."""
    known = set()
    for pid in pids:
        path = "/proc/%d/autogroup" % pid
        name, _, nice = read(path).partition(" nice ")
        if not nice or name in known or int(nice) >= level:
            continue
        known.add(name)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        except OSError:  # it has ended, or belongs to another user
            continue
        try:
            os.write(fd, b"%d" % level)
        except OSError:
            pass
        finally:
            os.close(fd)


def restrict(plan: dict, others: int):
    """Set the resource limits of this process and its children.

    others  int, tasks of the same user, besides the call's own, that the kernel counts
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    files = open_files(plan)
    if files is not None:
        _lower(resource.RLIMIT_NOFILE, files)
    if is_watched(plan):
        # not RLIMIT_AS: engines of JavaScript, Java and Go reserve far more addresses than they use
        room = RESERVED if plan["kind"] == "server" else 0
        _lower(resource.RLIMIT_DATA, (plan["memory_mb"] << 20) + room)
        _lower_stack(plan["memory_mb"] << 20)
        _lower(resource.RLIMIT_SIGPENDING, PENDING)
    if plan["max_processes"] is not None and "max_processes" not in plan["kept"]:
        _lower(resource.RLIMIT_NPROC, plan["max_processes"] + others)


def is_watched(plan: dict) -> bool:
    """Return whether the memory of a call is limited, but not by a control group."""
    return plan["memory_mb"] is not None and "memory_mb" not in plan["kept"]


def is_weighed(plan: dict) -> bool:
    """Return whether a call has less than the ordinary share of the processor, but not by a control
    group.
    """
    return (
        plan["cpu_shares"] is not None
        and "cpu_shares" not in plan["kept"]
        and nice_of(plan["cpu_shares"]) > 0
    )


def open_files(plan: dict):
    """Return how many descriptors a process may have, or None for no limit.  There is always a
    limit when memory is watched, because each descriptor takes kernel memory.
    """
    return (
        plan["max_open_files"]
        if plan["max_open_files"] is not None or not is_watched(plan)
        else OPEN_FILES
    )


def _lower(what: int, value: int):
    hard = resource.getrlimit(what)[1]
    if hard != resource.RLIM_INFINITY and hard < value:
        value = hard
    resource.setrlimit(what, (value, value))


def _lower_stack(most: int):
    """Let no stack of a first thread, which RLIMIT_DATA does not count, grow beyond *most*.  The
    soft limit is the size of each other thread's stack, which it does count.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    soft = STACK if soft == resource.RLIM_INFINITY else soft
    hard = most if hard == resource.RLIM_INFINITY else min(hard, most)
    resource.setrlimit(resource.RLIMIT_STACK, (min(soft, hard), hard))


def kernel() -> tuple:
    """Return (major, minor) of the kernel."""
    words = os.uname().release.split(".")
    return int(words[0]), int(words[1])


def is_there(pid: str) -> bool:
    """Return whether process *pid* exists.  /proc is not used: it may hide a process of the same
    user that is not dumpable (hidepid).
    """
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def tasks_of(uid: int, other_users_pids=frozenset()) -> int:
    """Return how many tasks (threads included) *uid* has now, as /proc shows them.

    other_users_pids  names of pids that are skipped because they belong to other users
    """
    return sum(
        _tasks("/proc/" + name, uid)
        for name in os.listdir("/proc")
        if name.isdigit() and name not in other_users_pids
    )


def tasks_below(top: int, uid: int, proc: str) -> int:
    """Return how many tasks *uid* has in process *top* and below it.  These are the tasks of one
    user namespace; since Linux 5.14 only they count.
    """
    count, todo = 0, [top]
    while todo:
        pid = todo.pop()
        count += _tasks("%s/%d" % (proc, pid), uid)
        todo += _children_of(pid, proc)
    return count


def other_users_pids(uid: int) -> frozenset:
    """Return the pids of other users, as names in /proc.  They are looked up before a call comes.
    If such a pid goes to this user later, it is not counted, which makes the limit stricter.
    """
    return frozenset(
        [
            name
            for name in os.listdir("/proc")
            if name.isdigit() and not _tasks("/proc/" + name, uid)
        ]
    )


def _tasks(path: str, uid: int) -> int:
    text = read(path + "/status")
    return _count_threads(text, 1) if "\nUid:\t%d\t" % uid in text else 0


def _count_threads(status: str, otherwise: int) -> int:
    """Return what the *status* of a process says of its threads; *otherwise* where it does not."""
    at = status.find("\nThreads:\t")
    return int(status[at + 10 : status.find("\n", at + 10)]) if at >= 0 else otherwise


def read(path: str, most: int = 8192) -> str:
    """Return the first *most* bytes of *path* as text (-1: all); "" when it cannot be read."""
    try:
        with open(path, "rb", 0) as file:
            return file.read(most).decode("utf-8", "replace")
    except OSError:  # it has ended
        return ""


def everybody() -> list:
    """Return all pids of this pid namespace but this process' own.  In profile N these are the tree
    of the call.
    """
    own = str(os.getpid())
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != own]


def cpu_s(pids: list) -> float:
    """Return the seconds of processor time of *pids* and of the children that they have waited for
    (proc(5), stat, fields 14 to 17).
    """
    ticks = 0
    for pid in pids:
        fields = read("/proc/%d/stat" % pid).rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def descendants(but=(), most: float = math.inf) -> list:
    """Return the pids of all descendants of this process, without *but* and their descendants.
    When there are more than *most*, return more than *most* of them, not all.
    """
    children = _children_of if os.path.exists("/proc/thread-self/children") else _children_by_scan()
    found, todo = [], [os.getpid()]
    while todo and len(found) <= most:
        below = [pid for pid in children(todo.pop(), most=most) if pid not in but]
        found += below
        todo += below
    return found


def _children_of(pid: int, proc: str = "/proc", most: float = math.inf) -> list:
    try:
        tasks = os.listdir("%s/%d/task" % (proc, pid))
    except OSError:  # it has ended
        return []
    return [
        int(child)
        for task in tasks
        for child in _beginning(
            "%s/%d/task/%s/children" % (proc, pid, task), 8 * (most + 1)
        ).split()
    ]


def _beginning(path: str, size: float) -> bytes:
    """Return at least *size* bytes of *path*, or all of it.  It is not read further, because the
    kernel walks a list of thousands for each part.
    """
    data = b""
    try:
        with open(path, "rb", 0) as file:
            while len(data) < size:
                part = file.read(4096)
                if not part:
                    break
                data += part
    except OSError:  # it has ended
        pass
    return data


def _children_by_scan():
    """Return a replacement for ``_children_of`` for a kernel without CONFIG_PROC_CHILDREN."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = read("/proc/" + name + "/stat").rpartition(")")[2].split()
            if fields:
                parents.setdefault(int(fields[1]), []).append(int(name))
    return lambda pid, most: parents.get(pid, [])


def is_more(folder: str, pids: list, limit: int) -> bool:
    """Return whether the files below *folder*, a real path, take more than *limit* bytes on the
    disk, or are too many, or nested too deep, to be counted.  No link is followed.

    A file that has no name any more counts as long as one of *pids* has it open.
    """
    total, seen = 0, 0
    device = os.stat(folder).st_dev
    for fd, entries, _ in walk(folder):
        if fd is None:  # a folder that cannot be read
            return True
        for entry in entries:
            seen += 1
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # removed meanwhile
                continue
            if stat.S_ISREG(status.st_mode):
                total += status.st_blocks * 512 // max(status.st_nlink, 1)
            if total > limit or seen > MAX_FILES:
                return True
    return total + _count_unnamed(pids, device) > limit


def _count_unnamed(pids: list, device: int) -> int:
    found = {}
    for pid in pids:
        try:
            for name in os.listdir("/proc/%d/fd" % pid):
                status = os.stat("/proc/%d/fd/%s" % (pid, name))
                if (
                    status.st_nlink == 0
                    and status.st_dev == device
                    and stat.S_ISREG(status.st_mode)
                ):
                    found[status.st_ino] = status.st_blocks * 512
        except OSError:  # it has ended, or is not ours to look into
            pass
    return sum(found.values())


def tasks(pids: list) -> int:
    """Return how many threads *pids* have together."""
    return sum(_count_threads(read("/proc/%d/status" % pid), 0) for pid in pids)
