"""Each limit, asserted from inside and on the whole tree."""

import os
import subprocess
import sys
import time

import pytest
from agents import eventually
from sandbox_places import ROOT, host, needs


def _pids(marker: bytes) -> list:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/cmdline" % name, "rb") as file:
                    if marker in file.read():
                        found.append(name)
            except OSError:
                pass
    return found


def test_memory_of_one_process(place):
    body = (
        "    try:\n        return len(bytearray(400 << 20))\n    except MemoryError:\n        "
        "return 'MemoryError'\n"
    )
    assert place.python(body, memory_mb=256) == "MemoryError"
    assert place.python(body.replace("400", "40"), memory_mb=256) == 40 << 20


MAPS = """/usr/bin/python3 -c '
import ctypes, resource, time
c = ctypes.CDLL(None, use_errno=True)
c.mmap.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
c.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

def map(size, protection, flags=34):
    at = c.mmap(None, size, protection, flags, -1, 0)
    if at == ctypes.c_void_p(-1).value:
        raise SystemExit(ctypes.get_errno())
    return at

%s
print("done")'
"""  # noqa: E501


def test_addresses_that_are_reserved_are_no_memory(place):
    """Engines of JavaScript and Java reserve gigabytes, and use some of them."""
    reserve = "at = map(20 << 30, 0)\nfree = c.mprotect(at, %d << 20, 3)\n"
    used = reserve + "assert free == 0\nctypes.memset(at, 1, %d << 20)"
    said = place.shell(MAPS % (used % (100, 100)), memory_mb=256)
    assert said["output"] == "done\n", said
    said = place.shell(
        MAPS % (reserve % 400 + "assert (free, ctypes.get_errno()) == (-1, 12)"), memory_mb=256
    )
    assert said["output"] == "done\n", said


def test_memory_that_counts_as_no_data_of_its_process(place):
    """What is written and then made read-only is no data to the kernel: the sum has it."""
    turned = "for _ in range(600):\n    at = map(16 << 20, 3)\n    ctypes.memset(at, 1, 16 << 20)\n"
    turned += "    c.mprotect(at, 16 << 20, 1)\ntime.sleep(60)"
    said = place.shell(MAPS % turned, memory_mb=128)
    assert said["ended"] == "memory_mb" and said["output"] == "", said


def test_stacks_have_an_end(place):
    """The kernel counts no stack as data: no mapping becomes one, and that of the first thread
    cannot grow beyond the limit.
    """
    said = place.shell(MAPS % "map(4096, 3, 34 | 256)", memory_mb=64)
    assert said["exit_code"] == 1 and "done" not in said["output"], said
    assert place.shell(MAPS % "map(4096, 3, 34 | 256)")["output"] == "done\n"
    limits = "import resource\n    return list(resource.getrlimit(resource.RLIMIT_STACK))\n"
    soft, hard = place.python("    " + limits, memory_mb=64)
    assert 0 < soft <= 8 << 20 and soft <= hard <= 64 << 20
    deep = "resource.setrlimit(resource.RLIMIT_STACK, (-1, -1))"
    assert "done" not in place.shell(MAPS % deep, memory_mb=64)["output"]


TREE = """
    import time
    for _ in range(6):
        if os.fork() == 0:
            data = bytearray(os.urandom(1 << 20) * 60)
            time.sleep(3600)
            os._exit(len(data) & 1)
    os.wait()
"""


def test_memory_of_the_tree(place):
    good, error = place.run(
        ["function", "tools.py", "def f():\n    import os" + TREE, "f", {}], memory_mb=200
    )
    assert not good and "memory_mb" in error[2], error


def test_memory_of_files_in_tmp(place):
    if place.profile == "L":  # there the folder lies on a disk
        return
    said = place.shell(
        'head -c 60000000 /dev/zero > "$TMPDIR/a"; wc -c < "$TMPDIR/a"', memory_mb=32
    )
    assert said["ended"] == "memory_mb" or int(said["output"].split()[-1]) <= 32 << 20


def test_memory_that_nobody_has_mapped(place):
    body = (
        "    return [tried(os.memfd_create, 'x'), system_call('shmget', 0, 4096, 0o600), "
        "system_call('msgget', 0, 0o600)]\n"
    )
    assert place.python(body, memory_mb=256) == ["EPERM"] * 3
    assert place.python("    return tried(os.memfd_create, 'x')\n") == "open"


SOCKETS = """/usr/bin/python3 -c '
import socket, time
keep, waiting = [], 0
for _ in range(%d):
    a, b = socket.socketpair()
    keep.append((a, b))
    for end in (a, b):
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 23)
        try:
            while True:
                waiting += end.send(bytes(65536))
        except BlockingIOError:
            pass
time.sleep(%d)
print(waiting)'
"""


def test_memory_that_waits_in_sockets(place):
    said = place.shell(SOCKETS % (300, 30), memory_mb=100)
    assert said["ended"] == "memory_mb", said
    # none of them is longer than the system makes it
    assert 0 < int(place.shell(SOCKETS % (20, 0), memory_mb=256)["output"]) < 20 << 20


SHARED = """/usr/bin/python3 -c '
import ctypes, mmap, os, time
c = ctypes.CDLL(None, use_errno=True)
c.mmap.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
c.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
size = 16 << 20
for _ in range(%d):
    at = c.mmap(None, size, 3, %s)
    if at == ctypes.c_void_p(-1).value:
        raise SystemExit(ctypes.get_errno())
    ctypes.memset(at, 1, size)
    c.munmap(at + mmap.PAGESIZE, size - mmap.PAGESIZE)
time.sleep(%d)'
"""  # noqa: E501


def test_memory_that_is_shared_and_has_no_file(place):
    """One page that stays mapped keeps all of it, and is all that the process' size has."""
    assert place.shell(SHARED % (1, "33, -1, 0", 0), memory_mb=64)["exit_code"] == 1
    assert (
        place.shell(SHARED % (4, '1, os.open("/dev/zero", 2), 0', 30), memory_mb=64)["ended"]
        == "memory_mb"
    )
    # its own
    assert place.shell(SHARED % (4, "34, -1, 0", 0), memory_mb=64)["exit_code"] == 0
    assert place.shell(SHARED % (1, "33, -1, 0", 0))["exit_code"] == 0


FORKS = """    n = 0
    for _ in range(40):
        try:
            if os.fork() == 0:
                import time
                time.sleep(3600)
                os._exit(0)
        except OSError:
            break
        n += 1
    return n
"""


def test_processes(place):
    # RLIMIT_NPROC counts what others of the user had, and they may have ended since: with more
    # than it may have the call stays until the supervisor has counted it
    body = FORKS.replace("    return n", "    while n > 10:\n        os.wait()\n    return n")
    good, value = place.run(
        ["function", "tools.py", "import os\ndef f():\n" + body, "f", {}], max_processes=10
    )
    assert good and value <= 10 or not good and "its limit max_processes" in value[2], value
    assert place.python(FORKS) == 40


@pytest.mark.parametrize("user", ["user", "root"])
def test_processes_without_a_user_namespace_for_each_call(user):
    needs("N")
    with host("N", user == "root", ["own_users"]) as place:
        report = place.ask(report=True)
        assert report["profile"] == "N" and "above" in report["limits"]["max_processes"]
        assert 1 <= place.python(FORKS, max_processes=10) <= 12
        good, value = place.run(
            ["command", ["sh", "-c", "b() { b | b & }; b; sleep 0.3"]],
            max_processes=20,
            timeout_ms=2000,
        )
        assert place.shell("echo next")["output"] == "next\n"


def test_a_fork_bomb_ends_with_its_call(place):
    place.run(
        ["command", ["sh", "-c", "b() { b | b & }; b; sleep 0.3; echo alive"]],
        max_processes=20,
        timeout_ms=2000,
    )
    assert place.shell("echo next")["output"] == "next\n"


def test_open_files(place):
    body = (
        "    n = 0\n    try:\n        while n < 500:\n            os.dup(0)\n            n += "
        "1\n    except OSError:\n        pass\n    return n\n"
    )
    assert place.python(body, max_open_files=32) < 32
    assert place.python(
        "    import resource\n    return resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        if place.profile == "N" or not place.root
        else "    return [32, 32]\n",
        max_open_files=32,
    ) == [32, 32]


def test_shares_of_the_processor(place):
    own = os.getpriority(os.PRIO_PROCESS, 0)  # of a run that is nice itself
    assert place.python("    return os.getpriority(os.PRIO_PROCESS, 0)\n", cpu_shares=256) == max(
        6, own
    )
    assert place.python("    return os.getpriority(os.PRIO_PROCESS, 0)\n", cpu_shares=2048) == max(
        0, own
    )
    assert place.python(
        "    return tried(os.setpriority, os.PRIO_PROCESS, 0, 0)\n", cpu_shares=256
    ) in ("EACCES", "EPERM")


def _session(pid: str) -> str:
    with open("/proc/%s/autogroup" % pid) as file:
        return file.read()


def test_a_session_of_a_tool_has_no_larger_share(place):
    """Where the kernel schedules by session, a process' own nice counts within its session
    alone.
    """
    if not os.path.exists("/proc/self/autogroup") or not _session("self"):
        return  # it does not
    mark = "6%d" % (time.time_ns() % 100000)
    number = place.ask(
        start=True,
        profile={"cpu_shares": 102},
        job=["command", ["sh", "-c", "setsid sleep %s & sleep %s" % (mark, mark)]],
    )["number"]
    eventually(lambda: len(_pids(b"sleep\0%s\0" % mark.encode())) == 2)
    pids = _pids(b"sleep\0%s\0" % mark.encode())
    found = {}

    def is_weighed():
        found.update((pid, _session(pid)) for pid in pids)
        return all(text.endswith(" nice 10\n") for text in found.values())

    try:
        eventually(is_weighed, 60)  # the kernel takes one change in 100 ms
    except AssertionError:
        pytest.fail("not weighed: %s" % found)
    assert len(set(found.values())) == 2
    place.ask(cancel=number)


def test_who_is_stopped_hears_that_the_time_is_over(place):
    text = "trap 'echo heard > heard; exit' TERM; kill -STOP $$; sleep 60 & wait"
    for limit_ms in (300, 3000, 30000):  # a busy machine needs more time to come to its trap
        good, error = place.run(["command", ["sh", "-c", text]], timeout_ms=limit_ms)
        assert not good and error[1] == -32014
        said = place.shell("cat heard; rm -f heard")["output"]
        if said == "heard\n":
            break
    assert said == "heard\n"


GRACE = """
import os, socket, subprocess, sys
from clawlite.linux.sandbox import memory_accounting, watch
watch.GRACE_MS = 3600000
plan = {"profile": "L", "memory_mb": 64, "max_processes": None, "cpu_shares": None, "cpu_s": None, "max_open_files": None, "kept": [], "relaxed": [], "network": 0,
        "allowed": [], "room": None, "timeout_ms": 1, "max_output_bytes": 1}
more = "import os, signal, time\\ndef more(*_):\\n    keep = os.urandom(100 << 20)\\n    time.sleep(3600)\\nsignal.signal(15, more)\\nprint(flush=True)\\ntime.sleep(3600)"
child = subprocess.Popen([sys.executable, "-c", more], stdout=subprocess.PIPE)
child.stdout.readline()
here, there = socket.socketpair()
print(watch.Watch(plan, here, child.pid, -1, os.pipe()[0], memory_accounting.MemoryAccount(plan)).run()["ended"])
"""  # noqa: E501


def test_limits_are_kept_until_the_tree_is_dead():
    """A tool that hears that its time is over has no more memory than before; here it has an
    hour for it, which is longer than a test may take.
    """
    done = subprocess.run([sys.executable, "-c", GRACE], capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("timeout_ms\n", "")


ENDED = """
import os, socket, sys
from clawlite.linux.confinement import syscalls
from clawlite.linux.sandbox import memory_accounting, watch
syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
plan = {"profile": "L", "memory_mb": 64, "max_processes": None, "cpu_shares": None, "cpu_s": None, "max_open_files": None, "kept": [], "relaxed": [], "network": 0,
        "allowed": [], "room": None, "timeout_ms": int(sys.argv[3]), "max_output_bytes": 1}
here, there = socket.socketpair()
reading, writing = os.pipe()
pid = os.fork()
if pid == 0:
    for _ in range(int(sys.argv[1])):
        middle = os.fork()
        if middle == 0:
            os.fork()
            os._exit(0)
        os.waitpid(middle, 0)
    os.close(writing)
    os.read(int(sys.argv[2]) or reading, 1)
    os._exit(0)
os.close(writing)
os.read(reading, 1)
print(watch.Watch(plan, here, pid, -1, os.pipe()[0], memory_accounting.MemoryAccount(plan)).run()["ended"])
"""  # noqa: E501


@pytest.mark.parametrize(
    ("number", "limit_ms", "ended"), [(1000, 60000, "memory_mb"), (200, 1000, "timeout_ms")]
)
def test_processes_that_end_faster_than_they_are_collected_are_counted(number, limit_ms, ended):
    """Each is memory of the kernel's until then; nobody but the supervisor collects them, and to
    collect all may have no end.
    """
    reading, writing = os.pipe()
    done = subprocess.run(
        [sys.executable, "-c", ENDED, str(number), str(reading), str(limit_ms)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        pass_fds=[reading],
    )
    os.close(reading)
    os.close(writing)
    assert (done.stdout, done.stderr) == (ended + "\n", "")


def test_a_script_with_many_short_children_is_not_ended(place):
    said = place.shell(
        "for i in $(seq 300); do /bin/true; (true &); done; echo done", memory_mb=128
    )
    assert (said["ended"], said["output"]) == ("", "done\n"), said


def test_time_ends_the_whole_tree(place):
    mark = "6%d" % (time.time_ns() % 100000)
    command = (
        "trap '' TERM; (setsid sleep %s &); (setsid sh -c 'sleep %s & sleep %s' &) ; sleep %s"
        % ((mark,) * 4)
    )
    good, error = place.run(["command", ["sh", "-c", command]], timeout_ms=300)
    assert not good and error[1] == -32014
    assert _pids(b"sleep\0%s\0" % mark.encode()) == []


def test_an_end_ends_what_was_detached(place):
    mark = "6%d" % (time.time_ns() % 100000)
    command = (
        "(setsid sh -c '(setsid sleep %s &)' &) ; (trap '' HUP TERM; sleep %s) & echo done"
        % (mark, mark)
    )
    assert place.shell(command)["output"] == "done\n"
    assert _pids(b"sleep\0%s\0" % mark.encode()) == []


def test_output_beyond_the_limit_does_not_stop_its_writer(place):
    said = place.shell(
        "head -c 3000000 /dev/zero; head -c 5 /dev/zero >&2; echo done > finished",
        max_output_bytes=1000,
    )
    assert said["original_bytes"] == 3000005 and said["truncated"] and len(said["output"]) == 1000
    assert place.shell("cat finished")["output"] == "done\n"


def test_no_core_is_left(place):
    place.shell("kill -SEGV $$")
    assert "core" not in place.shell("ls")["output"]


def test_a_limit_that_is_kept_in_part_is_refused_by_name(place):
    good, error = place.run(["command", ["true"]], cpu_shares=14)
    assert not good and error[1] == -32010 and "cpu_shares" in error[2] and "relaxed" in error[3]
    assert place.run(["command", ["true"]], cpu_shares=15)[0]


def test_a_limit_that_is_relaxed_by_name():
    with host("N", False, relaxed=["cpu_shares"]) as place:
        assert place.run(["command", ["true"]], cpu_shares=14)[0]


def test_a_workspace_takes_no_more_than_it_may_have(place):
    """Its files are counted, whoever wrote them; one that has more already may become smaller
    (max_size_mb of a Memory).
    """
    shown = {"mounts": [["/workspace", True]]}

    def shell(text: str, most: int) -> dict:
        good, value = place.ask(profile=shown, job=["command", ["sh", "-c", text]], most=most)[
            "outcome"
        ]
        assert good, value
        return value

    said = shell("mkdir -p d; head -c 300000 /dev/zero > d/big; sleep 30; echo late", 200000)
    assert said["ended"] == "max_size_mb" and "late" not in said["output"], said
    said = shell("ls d; echo x > small; sleep 30", 200000)
    assert said["ended"] == "max_size_mb", said
    said = shell("rm small d/big; rmdir d; sleep 0.2; echo y > small; rm small; echo done", 200000)
    assert (said["ended"], said["output"]) == ("", "done\n"), said
    said = shell('head -c 300000 /dev/zero > "$TMPDIR/big"; sleep 0.2; echo done', 200000)
    assert (said["ended"], said["output"]) == ("", "done\n"), said
