"""What is closed, asked from inside: in N and in L, as an ordinary user and as root."""

import ctypes
import os
import platform
import struct
import subprocess
import time

import pytest
from sandboxes import NOBODY, WAIT_S

CALLS = [
    ("io_uring_setup", "1, ctypes.create_string_buffer(128)"),
    ("unshare", "0x10000000"),
    ("unshare", "0x20000"),
    ("unshare", "0x80"),
    ("clone", "0x10000000 | 17, 0, 0, 0, 0"),
    ("clone", "0x20000 | 17, 0, 0, 0, 0"),
    ("setns", "0, 0"),
    ("mount", "b'x', b'/tmp', b'tmpfs', 0, None"),
    ("umount2", "b'/usr', 0"),
    ("pivot_root", "b'/', b'/'"),
    ("chroot", "b'/tmp'"),
    ("fsopen", "b'tmpfs', 0"),
    ("open_tree", "-100, b'/', 1"),
    ("mount_setattr", "-100, b'/', 0, None, 0"),
    ("move_mount", "-100, b'', -100, b'', 0"),
    ("bpf", "0, None, 0"),
    ("perf_event_open", "None, 0, -1, -1, 0"),
    ("keyctl", "0, 0"),
    ("add_key", "b'user', b'x', b'x', 1, -2"),
    ("request_key", "b'user', b'x', None, -2"),
    ("kexec_load", "0, 0, None, 0"),
    ("userfaultfd", "0"),
    ("personality", "0x40000"),
    ("ptrace", "0, 0, 0, 0"),
    ("process_vm_readv", "os.getppid(), None, 0, None, 0, 0"),
    ("process_vm_writev", "os.getppid(), None, 0, None, 0, 0"),
    ("pidfd_getfd", "0, 0, 0"),
    ("kcmp", "1, 1, 0, 0, 0"),
    ("process_madvise", "0, None, 0, 0, 0"),
    ("name_to_handle_at", "-100, b'/', None, None, 0"),
    ("open_by_handle_at", "-100, None, 0"),
    ("init_module", "None, 0, b''"),
    ("finit_module", "0, b'', 0"),
    ("delete_module", "b'x', 0"),
    ("reboot", "0, 0, 0, 0"),
    ("swapon", "b'/x', 0"),
    ("acct", "None"),
    ("quotactl", "0, None, 0, None"),
    ("syslog", "3, None, 0"),
    ("settimeofday", "None, None"),
    ("sethostname", "b'x', 1"),
    ("fanotify_init", "0, 0"),
    ("memfd_secret", "0"),
    ("ioctl", "0, 0x5412, b'x'"),
    ("ioctl", "0, 0x5412 | 1 << 40, b'x'"),
    ("ioctl", "0, 0x541C, b'x'"),
]


def test_system_calls_that_nobody_needs(place):
    body = "    return [%s]\n" % ", ".join("system_call(%r, %s)" % call for call in CALLS)
    found = place.python(body)
    assert [(call, said) for call, said in zip(CALLS, found) if said != "EPERM"] == []


def test_clone3_and_unknown_numbers_do_not_exist(place):
    assert place.python("    return system_call('clone3', None, 0)\n") == "ENOSYS"
    body = (
        "    libc = ctypes.CDLL(None, use_errno=True)\n    return [(libc.syscall(n), "
        "ctypes.get_errno()) for n in (470, 500, 1000, 0x40000027)]\n"
    )
    assert place.python(body) == [[-1, 38]] * 4


@pytest.mark.skipif(platform.machine() != "x86_64", reason="int 0x80 is of x86")
def test_the_32_bit_calling_convention_ends_the_process(place):
    body = """    import mmap
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3")          # mov eax, 20 (getpid); int 0x80; ret
    pid = os.fork()
    if pid == 0:
        ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
        os._exit(0)
    return os.waitpid(pid, 0)[1] & 127
"""  # noqa: E501
    if place.profile == "L" and place.root:
        good, value = place.run(
            ["function", "tools.py", "import mmap\ndef f():\n    pass\n", "f", {}]
        )
        if not good:
            # this Python lies where the tools' user cannot go: nothing to load mmap from
            return
    assert place.python(body) == 31  # SIGSYS


SOCKETS = [
    (family, kind, proto)
    for family in (1, 2, 10, 16, 17, 38, 40, 44)
    for kind in (1, 2, 3, 5)
    for proto in (0, 6, 17, 262)
]


def test_no_socket_without_a_network(place):
    body = "    return [system_call('socket', *one) for one in %r]\n" % (SOCKETS,)
    assert set(place.python(body)) == {"EACCES"}


def test_a_pair_is_the_only_socket(place):
    body = (
        "    two = ctypes.create_string_buffer(8)\n"
        "    return [system_call('socketpair', f, k, 0, two) for f, k in ((1, 1), (1, 5), (1, "
        "1 | 0o2000000), (1, 2), (1, 3), (2, 1), (16, 3))]\n"
    )
    assert place.python(body) == ["open", "open", "open", "EACCES", "EACCES", "EACCES", "EACCES"]


def test_a_pair_cannot_be_sent_elsewhere(place):
    body = (
        "    return [system_call(name, 0, None, 0) for name in ('connect', 'bind')] + "
        "[system_call('listen', 0, 1)]\n"
    )
    assert place.python(body) == ["EACCES"] * 3


def test_no_rights_are_left(place):
    said = place.shell(
        "grep -E '^(Cap|NoNewPrivs|Seccomp:|Uid|Gid|Groups)' /proc/$$/status || "
        "cat /proc/self/status"
    )["output"]
    if "Permission denied" in said:  # profile L: /proc of a grandchild
        said = place.python("    return open('/proc/self/status').read()\n")
    fields = dict(line.split(":", 1) for line in said.splitlines() if ":" in line)
    assert {
        fields[name].strip()
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
        if name != "CapBnd"
    } == {"0" * 16}
    assert fields["NoNewPrivs"].strip() == "1" and fields["Seccomp"].strip() == "2"
    assert (
        set(fields["Uid"].split()) == set(fields["Gid"].split())
        and "0" not in fields["Uid"].split()
    )


def test_a_program_inherits_three_descriptors(place):
    body = """    pid = os.fork()
    if pid == 0:
        os.execv("/bin/sh", ["sh", "-c", "for i in 3 4 5 6 7 8 9; do (: <&$i) 2>/dev/null && exit $i; done; exit 0"])
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""  # noqa: E501
    assert place.python(body) == 0
    assert (
        place.shell("for i in 3 4 5 6 7 8 9; do (: <&$i) 2>/dev/null && echo $i; done; exit 0")[
            "output"
        ]
        == ""
    )


def test_the_agent_cannot_be_reached(place):
    agent = place.ask(agent=True)
    assert agent["dumpable"] == 0
    for pid in (agent["pid"], agent["server"]):
        body = (
            "    pid = %d\n" % pid
            + """
    return [tried(open, '/proc/%d/%s' % (pid, name)) for name in ('environ', 'mem', 'maps', 'fd/0', 'cwd/x', 'root/etc/passwd')] + [
        tried(os.kill, pid, 0), tried(os.kill, pid, 9), tried(os.kill, -pid, 9), system_call('tgkill', pid, pid, 9),
        tried(lambda: os.pidfd_open(pid) and __import__('signal').pidfd_send_signal(os.pidfd_open(pid), 9)),
        system_call('prlimit64', pid, 7, None, None) if sys.platform else '', tried(os.setpriority, 0, pid, 19),
        tried(os.sched_setaffinity, pid, [0]), system_call('ioprio_set', 1, pid, 0)]
"""  # noqa: E501
        )
        assert "open" not in place.python(body)
    assert place.ask(agent=True)["pid"] == agent["pid"]


def test_the_supervisor_keeps_its_limits_and_its_time(place):
    body = """    pid, two = os.getppid(), ctypes.create_string_buffer(64)
    return [system_call('prlimit64', pid, number, two, None) for number in range(16)] + [
        system_call('sched_setaffinity', pid, 8, two), system_call('sched_setparam', pid, two), system_call('sched_setscheduler', pid, 0, two),
        system_call('sched_setattr', pid, two, 0)] + [system_call('setpriority', *one) for one in ((0, pid, 19), (2, 0, 19), (2, os.getuid(), 19))] + [
        system_call('ioprio_set', *one) for one in ((1, pid, 0), (3, 0, 0), (3, os.getuid(), 0))]
"""  # noqa: E501
    assert set(place.python(body)) == {"EPERM"}
    own = (
        "    return [tried(os.setpriority, 0, 0, 19), tried(os.sched_setaffinity, 0, "
        "os.sched_getaffinity(0)), tried(resource.setrlimit, 7, (32, 32))]\n"
    )
    assert place.python("    import resource\n" + own) == ["open"] * 3


def test_what_comes_and_goes_elsewhere_is_not_told(place):
    outside = str(place.folder / "out")
    body = """    libc = ctypes.CDLL(None)
    line = libc.inotify_init()
    return [line >= 0] + [libc.inotify_add_watch(line, path, 0x300) for path in (%r, b'/media', b'/var/log')]
""" % outside.encode()  # noqa: E501
    assert place.python(body) == [True, -1, -1, -1]


def test_no_secret_of_the_agent_is_inside(place):
    body = """    found = []
    for name in os.listdir('/proc') if not tried(os.listdir, '/proc') != 'open' else ['self']:
        if name.isdigit() or name == 'self':
            for what in ('environ', 'cmdline'):
                try:
                    with open('/proc/%s/%s' % (name, what), 'rb') as file:
                        found.append(b'canary-environment' in file.read())
                except OSError:
                    pass
    return any(found) or 'SECRET_KEY' in os.environ
"""
    assert place.python(body) is False


def test_other_processes_of_the_user_cannot_be_signalled(place):
    drop = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    with subprocess.Popen(["sleep", "60"], **drop) as other:
        place.python("    return [tried(os.kill, %d, 9), tried(os.kill, -1, 19)]\n" % other.pid)
        assert other.poll() is None
        with open("/proc/%d/stat" % other.pid) as file:
            assert file.read().split()[2] in "SR"  # not stopped either
        other.kill()


def test_what_other_processes_share_by_a_number_is_out_of_reach(place):
    """System V IPC: a queue that anybody may use, whose number is guessed; it is not looked up."""
    libc = ctypes.CDLL(None, use_errno=True)
    queue, counter, memory = (
        libc.msgget(0, 0o666),
        libc.semget(0, 1, 0o666),
        libc.shmget(0, 4096, 0o666),
    )
    assert min(queue, counter, memory) >= 0, os.strerror(ctypes.get_errno())
    try:
        message = ctypes.create_string_buffer(struct.pack("l", 1) + b"x")
        assert libc.msgsnd(queue, message, 1, 0) == 0
        found = place.python(
            """    room = ctypes.create_string_buffer(64)
    return [system_call(*one) for one in (
        ("msgrcv", %(queue)d, room, 8, 0, 0o4000), ("msgsnd", %(queue)d, room, 1, 0o4000), ("msgctl", %(queue)d, 0, None),
        ("semop", %(counter)d, room, 1), ("semtimedop", %(counter)d, room, 1, None), ("semctl", %(counter)d, 0, 0), ("shmat", %(memory)d, None, 0),
        ("shmctl", %(memory)d, 0, None), ("mq_unlink", b"x"))]
"""  # noqa: E501
            % {"queue": queue, "counter": counter, "memory": memory}
        )
        assert "open" not in found and (place.profile == "N" or set(found) == {"EPERM"}), found
        assert libc.msgrcv(queue, message, 1, 0, 0o4000) == 1
    finally:
        gone = [
            libc.msgctl(queue, 0, None),
            libc.semctl(counter, 0, 0),
            libc.shmctl(memory, 0, None),
        ]
    assert gone == [0, 0, 0]


def test_a_call_cannot_reach_another_one(place):
    seconds = "61.%d" % os.getpid()  # other processes of this run have sleepers, too
    sleeper = b"sleep\0%s\0" % seconds.encode()
    job = ["command", ["sh", "-c", "sleep " + seconds]]
    number = place.ask(start=True, profile={}, job=job)["number"]
    end = time.monotonic() + WAIT_S
    sleepers = []
    while not sleepers and time.monotonic() < end:
        sleepers = [int(p) for p in os.listdir("/proc") if p.isdigit() and _line(p) == sleeper]
    assert len(sleepers) == 1
    found = place.python(
        "    return [tried(os.kill, %d, 9), tried(open, '/proc/%d/environ')]\n"
        % (sleepers[0], sleepers[0])
    )
    assert "open" not in found and _line(str(sleepers[0])) == sleeper
    place.ask(cancel=number)


def _line(pid: str) -> bytes:
    try:
        with open("/proc/%s/cmdline" % pid, "rb") as file:
            return file.read()
    except OSError:
        return b""


def test_proc_tells_nothing_of_the_machine_and_changes_nothing_in_it(place):
    """Also for root's tools: what only the mode of a file keeps is kept by a mount, as container
    runtimes do.
    """
    if place.profile == "L":
        assert place.shell("ls /proc/sys /proc/interrupts /proc/kallsyms")["exit_code"] != 0
        return
    found = place.python("""    here = [n for n in ("interrupts", "kallsyms", "kcore", "keys", "timer_list", "vmallocinfo") if os.path.exists("/proc/" + n)]
    read = [n for n in here if tried(lambda: open("/proc/" + n, "rb").read(1)) == "open"]
    flags = {n: os.statvfs("/proc/" + n).f_flag & os.ST_RDONLY for n in ("bus", "fs", "irq", "sys", "sysrq-trigger") if os.path.exists("/proc/" + n)}
    return [len(here), read, flags, tried(open, "/proc/sys/kernel/hostname", "w"), open("/proc/sys/kernel/ostype").read(), open("/proc/self/comm").read() != ""]
""")  # noqa: E501
    assert found[0] > 2 and found[1] == [] and set(found[2].values()) == {1}, found
    assert found[3] in ("EROFS", "EACCES") and found[4] == "Linux\n" and found[5], found
