"""Memory that no process has mapped, without a control group: each way to hold it is refused, or
ends the call (memory_accounting.py, seccomp.py).
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from agents import eventually
from sandbox_places import host

from clawlite.linux.sandbox import memory_accounting, watch
from clawlite.linux.sandbox.memory_accounting import MemoryAccount

# Each holds much more than 64 MB beside what it has mapped, by what it is counted as, and waits to
# be ended.
COUNTED = {
    "pipes": """
for _ in range(4):
    if not os.fork():
        keep = [os.pipe() for _ in range(400)]
        wait()
""",
    "pipes with a name": """
for number in range(2):
    if not os.fork():
        for _ in range(800):
            os.mkfifo(tmp + "/%d" % number)
            os.open(tmp + "/%d" % number, os.O_RDWR)
            os.unlink(tmp + "/%d" % number)
        wait()
""",
    "processes whose first thread has ended": """
import threading
def hold():
    keep = bytearray(25 << 20)
    wait()
for _ in range(4):
    if not os.fork():
        threading.Thread(target=hold).start()
        c.syscall({"x86_64": 60, "aarch64": 93}.get(os.uname().machine, 1), 0)
""",
    "threads": """
import _thread, threading
threading.stack_size(32768)
for _ in range(600):
    _thread.start_new_thread(wait, ())
""",
    "mappings": """
import mmap
c.mmap.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p] + [ctypes.c_long] * 5
c.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
at = c.mmap(None, 4000 * 2 * mmap.PAGESIZE, 0, 34, -1, 0)
for number in range(4000):
    assert c.mprotect(at + number * 2 * mmap.PAGESIZE, mmap.PAGESIZE, 3) == 0
for _ in range(25):
    if not os.fork():
        wait()
""",
    "descriptors of an epoll": """
import select
polls = [select.epoll() for _ in range(450)]
ends = [os.pipe()[0]]
for _ in range(555):
    ends.append(os.dup(ends[0]))
for poll in polls:
    for end in ends:
        poll.register(end, 1)
""",
    "locks of files": """
import fcntl
files = [os.open(tmp + "/%d" % number, os.O_CREAT | os.O_RDWR) for number in range(800)]
for file in files:
    for number in range(400, 0, -1):
        fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * number)
""",
    "a program that nobody may look into": """
import shutil
shutil.copy("/bin/sleep", tmp + "/program")
os.chmod(tmp + "/program", 0o111)
os.execv(tmp + "/program", ["sleep", "3600"])
""",
}
PROGRAM = """
import ctypes, os, time
c = ctypes.CDLL(None, use_errno=True)
tmp = os.environ["TMPDIR"]
def wait():
    time.sleep(3600)
    os._exit(3)
%s
wait()
"""


@pytest.mark.parametrize("kind", sorted(COUNTED))
def test_what_is_counted_ends_the_call(place, kind):
    if "nobody" in kind and place.profile == "L" and place.root:
        return  # there the supervisor is root, and may
    good, said = place.run(
        ["command", ["/usr/bin/python3", "-c", PROGRAM % COUNTED[kind]]], memory_mb=64
    )
    assert good and said["ended"] == "memory_mb", said


FILES = "cd $TMPDIR; i=0; while [ $i -lt 15000 ]; do : > $i; i=$((i + 1)); done; sleep 3600"


def test_entries_of_a_tmp_in_memory(place):
    if place.profile == "N":
        assert place.shell(FILES, memory_mb=16)["ended"] == "memory_mb"


NETWORK = {
    "descriptors under way": """
import array
one, other = socket.socketpair()
ends = os.pipe()
one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", ends))])
""",
    "TCP": """
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(200)
keep = []
for _ in range(60):
    one = socket.create_connection(listener.getsockname())
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    keep.append((one, listener.accept()))
""",
}


@pytest.mark.parametrize("user", ["user", "root"])
def test_what_is_counted_with_a_network(user):
    with host("N", user == "root") as place:
        for kind in sorted(NETWORK):
            good, said = place.run(
                [
                    "command",
                    ["/usr/bin/python3", "-c", PROGRAM % ("import socket\n" + NETWORK[kind])],
                ],
                memory_mb=64,
                network=1,
            )
            assert good and said["ended"] == "memory_mb", (kind, said)
        most = (
            "    return [open('/proc/sys/net/ipv4/tcp_%smem' % one).read().split()[2] for one "
            "in 'rw']\n"
        )
        assert [int(one) <= 1 << 20 for one in place.python(most, memory_mb=256, network=1)] == [
            True,
            True,
        ]


CLOSED = """
    import fcntl, socket, struct, tempfile
    one, other = socket.socketpair()
    reading, writing = os.pipe()
    room = ctypes.create_string_buffer(128)
    path = os.environ["TMPDIR"] + "/file"
    file = os.open(path, os.O_CREAT | os.O_RDWR)
    os.write(file, b"x")
    offset = ctypes.create_string_buffer(8)
    said = [
        tried(os.memfd_create, "x"), system_call("semget", 0, 1, 0o600), system_call("splice", file, offset, writing, None, 1, 0),
        tried(os.sendfile, writing, file, 0, 1), system_call("inotify_init1", 0), system_call("landlock_create_ruleset", None, 0, 1),
        tried(fcntl.fcntl, writing, 1031, 1 << 20), system_call("unshare", 0x400), system_call("close_range", 1000, 1001, 2),
        tried(one.sendmsg, [b"x"]), tried(os.setxattr, path, "user.x", b"x"),
        tried(one.setsockopt, 1, 26, struct.pack("HxxxxxxP", 0, 0)), system_call("prctl", 78, 1, 16, 0, 0), system_call("prctl", 22, 2, None, 0, 0)]
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    return said + [ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)]
"""  # noqa: E501


def test_what_is_not_counted_cannot_be_had(place):
    if (
        place.profile == "L"
        and place.root
        and not place.run(
            ["function", "tools.py", "import fcntl, socket\ndef f():\n    pass\n", "f", {}]
        )[0]
    ):
        # this Python lies where the tools' user cannot go: nothing to load it from
        return
    watched, free = place.python(CLOSED, memory_mb=256), place.python(CLOSED)
    assert watched == [
        "EPERM",
        "EPERM",
        "EINVAL",
        "EINVAL",
        "EMFILE",
        "ENOTSUP",
        "EPERM",
        "EPERM",
        "EINVAL",
        "EACCES",
        "ENOTSUP",
        "ENOTSUP",
        "EINVAL",
        "EINVAL",
        1,
    ]
    assert [free[at] for at in (0, 2, 3, 4, 6, 7, 8, 9)] == ["open"] * 8 and free[-1] == 0


def test_descriptors_are_not_without_end_where_memory_is_watched(place):
    body = "    import resource\n    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
    if place.profile == "L" and place.root:
        body = (
            "    count = 0\n    try:\n        while count < 5000:\n            os.dup(0)\n     "
            "       count += 1\n    except OSError:\n        pass\n    return count\n"
        )
    assert place.python(body, memory_mb=256) <= 1024


# Starts a program whose first open waits for this test: until then it has its parent's memory.
SPAWN = """
import os, sys
keep = bytearray(os.urandom(1 << 20) * 80)
gate = (os.POSIX_SPAWN_OPEN, 9, sys.argv[1], os.O_RDONLY, 0)
os.waitpid(os.posix_spawn("/bin/true", ["true"], {}, file_actions=[gate]), 0)
"""


def test_a_child_that_has_not_started_its_program_is_not_counted_twice(tmp_path):
    """vfork(2): until then it has its parent's memory, not a copy of it."""
    gate = str(tmp_path / "gate")
    os.mkfifo(gate)
    parent = subprocess.Popen([sys.executable, "-c", SPAWN, gate])
    try:
        children = "/proc/%d/task/%d/children" % (parent.pid, parent.pid)
        eventually(lambda: Path(children).read_text())
        pids = [parent.pid, int(Path(children).read_text())]
        memory = _held(128)
        assert not memory.is_over(pids) and memory_accounting._is_one(*reversed(pids))
        assert _held(64).is_over(pids), "its parent is counted"
    finally:
        os.close(os.open(gate, os.O_WRONLY))
        assert parent.wait() == 0


def _held(memory_mb: int = 256) -> MemoryAccount:
    return MemoryAccount(
        {
            "memory_mb": memory_mb,
            "profile": "L",
            "network": 0,
            "allowed": [],
            "max_open_files": 100,
            "relaxed": [],
            "kept": [],
        }
    )


def test_a_child_that_ended_since_its_status_was_read_holds_nothing():
    """Its status showed the memory of its parent: it had not started its program (vfork(2))."""
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    status = "Name:\tx\nPPid:\t%d\nVmRSS:\t  900000 kB\nThreads:\t1\n" % os.getpid()
    assert _held()._count_mapped([(pid, status)], 1 << 20) == 32768 + 136 * 100
    os.waitpid(pid, 0)


def test_what_lies_in_swap_is_counted():
    """This machine may have none, so what /proc/PID/status says of one that has is taken from
    proc_pid_status(5).
    """
    watch = _held()
    text = (
        "Name:\tx\nPPid:\t1\nVmRSS:\t    1000 kB\nHugetlbPages:\t  20 kB\nVmPTE:\t    3 kB\n"
        "VmSwap:\t  5000 kB\nThreads:\t2\n"
    )
    assert watch._count_mapped([(os.getpid(), text)], 1 << 30) == (
        1000 + 20 + 3 + 5000 << 10
    ) + 2 * (32768 + 136 * 100)


def test_a_call_that_ends_at_once_waits_for_no_look(monkeypatch):
    """Reading /proc/locks makes the kernel wait 5 to 15 ms for all processors: three times what
    a short command takes.
    """
    read = []
    monkeypatch.setattr(
        memory_accounting, "_lines", lambda path, mark, most: read.append(path) or 0
    )
    plan = {
        "memory_mb": 256,
        "profile": "L",
        "network": 0,
        "allowed": [],
        "max_open_files": 100,
        "relaxed": [],
        "kept": ["max_processes"],
        "max_processes": None,
        "cpu_shares": None,
        "cpu_s": None,
        "room": None,
        "timeout_ms": None,
        "max_output_bytes": 0,
    }
    memory = MemoryAccount(plan)
    assert read == []
    looks = []
    monkeypatch.setattr(memory, "is_over", looks.append)
    agent, ours = socket.socketpair()
    life, end = os.pipe()
    pid = os.posix_spawn("/bin/true", ["true"], {})
    one = watch.Watch(plan, agent, pid, -1, life, memory)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    # as if the machine were so busy that the time of the first look is here already
    one._memory_at = 0.0
    one._watch()
    assert one._status == 0 and looks == []
    for fd in (life, end, one._door):
        os.close(fd)
    agent.close()
    ours.close()
