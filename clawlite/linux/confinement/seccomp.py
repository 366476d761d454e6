"""The system call filter of a sandboxed child: classic BPF, assembled here (seccomp(2), Linux
3.17).

1. The filter lists the system calls that are refused; all others stay allowed, because a tool may
   be any program.  System calls that are newer than this table are refused too (ENOSYS), so that a
   kernel update allows nothing new.
2. A calling convention other than the machine's own (int 0x80 or x32 on x86_64, 64-bit calls under
   a 32-bit Python) has other numbers.  The first ends the process; the second is above the highest
   number that is allowed.
3. A filter compares registers, never what a pointer leads to.  clone3 and io_uring hide their work
   behind pointers, so they are refused whole; libraries fall back to clone and to plain reads.
4. A register has 64 bits, and the kernel uses half of it where the type is int: so does
   ``_Argument``.
"""

import ctypes
import struct

from clawlite.linux.confinement import syscalls
from clawlite.linux.confinement.syscalls import ARM, ARM_PRIVATE, AUDIT_ARCH, CEILING, TABLES

EPERM, EACCES, EINVAL, EMFILE, ENOSYS, ENOTSUP, EAFNOSUPPORT = 1, 13, 22, 24, 38, 95, 97
NOTIFY, ALLOW, KILL_PROCESS, ERRNO = 0x7FC00000, 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _JEQ, _JGE, _JSET, _RET, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_NR, _ARCH, _ARGS = 0, 4, 16  # offsets in struct seccomp_data

# every CLONE_NEW* but NEWTIME, whose bit is a signal number in clone
NEW_NAMESPACES = 0x7E020000
NEW_TIME = 0x80
AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
STREAM, SEQPACKET, TYPE_MASK = 1, 5, 0xF
TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP = 0x5412, 0x541C, 0x8901, 0x8902
F_SETOWN, F_SETSIG, F_SETOWN_EX = 8, 10, 15

# Refused whole, in every profile.
_NEVER = """
acct add_key adjtimex bpf chroot clock_adjtime clock_adjtime64 clock_settime clock_settime64 delete_module fanotify_init finit_module
fsconfig fsmount fsopen fspick init_module io_uring_enter io_uring_register io_uring_setup ioperm iopl kcmp kexec_file_load kexec_load
keyctl lookup_dcookie memfd_secret migrate_pages modify_ldt mount mount_setattr move_mount move_pages name_to_handle_at nfsservctl
open_by_handle_at open_tree open_tree_attr perf_event_open pidfd_getfd pivot_root process_madvise process_mrelease process_vm_readv
process_vm_writev ptrace quotactl quotactl_fd reboot request_key setdomainname sethostname setns settimeofday swapoff swapon sysfs syslog
umount2 uselib userfaultfd ustat vhangup
""".split()  # noqa: E501
# Memory that no process has mapped is not part of the size of any process.  Without a control group
# that counts it, these system calls are refused, because memory_accounting.py does not find their
# memory.  The error is that of a kernel or file system which lacks them: most programs then go on.
_UNCOUNTED = {
    EPERM: ["memfd_create", "shmget", "msgget", "mq_open", "semget", "vmsplice"],
    # a pipe with one byte of a file keeps the whole page of the file, which may be a huge one
    EINVAL: ["splice", "tee", "sendfile", "sendfile64"],
    # each holds up to 16,384 names of files
    EMFILE: ["inotify_init", "inotify_init1"],
    ENOSYS: ["io_setup", "seccomp"],
    ENOTSUP: ["landlock_create_ruleset"],
}
# these can send descriptors, which belong to no process while they are in the socket
_SENT = ["sendmsg", "sendmmsg"]
# MAP_SHARED_VALIDATE has the first bit, too
MAP_SHARED, MAP_ANONYMOUS, MAP_GROWSDOWN = 1, 32, 256
# SO_SNDBUF, SO_RCVBUF, and the same by force
SOL_SOCKET, BUFFERS = 1, [7, 8, 32, 33]
OPTIONS = [26, 50, 51, 52, 60]  # SO_ATTACH_FILTER and the like, SO_ZEROCOPY
F_SETPIPE_SZ, CLONE_FILES, CLONE_THREAD, CLOSE_RANGE_UNSHARE = 1031, 0x400, 0x10000, 2
# of prctl(2); option 78 makes a table of any size
SET_DUMPABLE, SET_SECCOMP, FIRST_UNKNOWN, SET_VMA, SET_PTRACER = 4, 22, 78, 0x53564D41, 0x59616D61
# System calls that Landlock does not cover (landlock(7), "Current limitations"): metadata by path,
# notifications about folders, and the user's IPC objects.
_BY_PATH = [
    "chown",
    "chown32",
    "lchown",
    "lchown32",
    "fchmodat2",
    "fchownat",
    "utime",
    "utimes",
    "futimesat",
    "file_setattr",
    "inotify_add_watch",
    "shmget",
    "shmat",
    "shmctl",
    "msgget",
    "msgsnd",
    "msgrcv",
    "msgctl",
    "semget",
    "semop",
    "semtimedop",
    "semtimedop_time64",
    "semctl",
    # for IPC, also the calls that use an id: ids are easy to guess
    "mq_open",
    "mq_unlink",
]
_ATTRIBUTES = [
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "setxattrat",
    "removexattr",
    "lremovexattr",
    "fremovexattr",
    "removexattrat",
]
# System calls that the supervisor carries out for a child, or refuses (modes.py).
_ASKED = ["chmod", "fchmodat", "fchmod", "fchown", "fchown32", "utimensat", "utimensat_time64"]
# If a tool left a file with set-user-ID in its workspace, anybody on the machine could run it as
# the agent's user.
SET_IDS, O_CREAT, O_TMPFILE = 0o6000, 0o100, 0o20000000
# the position of the mode in the arguments
_MODES = {
    "chmod": 1,
    "fchmod": 1,
    "fchmodat": 2,
    "fchmodat2": 2,
    "creat": 1,
    "mknod": 1,
    "mknodat": 2,
}
# the position of the flags in the arguments; the mode comes next
_OPENS = {"open": 1, "openat": 2}
# FS_IOC_SETFLAGS on 64 and on 32 bits, FS_IOC_FSSETXATTR
FLAGS = [0x40086602, 0x40046602, 0x401C5820]
# These reach any process of the same user that is visible here; pid 0 means the caller itself.
_OF_SELF = [
    "prlimit64",
    "sched_setaffinity",
    "sched_setattr",
    "sched_setparam",
    "sched_setscheduler",
]
_SIGNALS = ["kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal"]


class Rules:
    """The parts of a filter that depend on the call.

    network   bool, TCP sockets may be made (in an empty network namespace, to the agent's proxy)
    landlock  bool, for profile L: there are no namespaces, so system calls that reach other
              processes, or files by name, are refused
    signals   bool, in profile L: the kernel keeps signals inside (Landlock ABI 6)
    counted   bool, memory_accounting.py does not measure the call: its memory has no limit, or a
              control group counts it
    """

    def __init__(self, network: bool, landlock: bool, signals: bool, counted: bool):
        self.network, self.landlock = network, landlock
        self.signals, self.counted = signals, counted


def common(machine: str) -> bytes:
    """Return the filter that every call has, as an array of struct sock_filter, 8 bytes each.

    machine  a key of ``syscalls.TABLES``
    A child installs it before its call comes, because that takes the kernel 0.3 ms.
    """
    program = _Program(machine)
    for name in _NEVER:
        program.refuse(name)
    program.refuse("clone3", ENOSYS)
    program.refuse_bits("clone", 0, NEW_NAMESPACES)
    program.refuse_bits("unshare", 0, NEW_NAMESPACES | NEW_TIME)
    program.refuse_values("ioctl", 1, [TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP])
    program.allow_values("personality", 0, [0, 0xFFFFFFFF], EPERM)
    _set_ids(program)
    return program.code()


def _set_ids(program):
    """Refuse to set set-user-ID or set-group-ID, whether the mode of a file changes or the file is
    created.
    """
    # its mode is behind a pointer; programs fall back to openat
    program.refuse("openat2", ENOSYS)
    for name, index in _MODES.items():
        program.refuse_bits(name, index, SET_IDS)
    for name, index in _OPENS.items():
        program.begin(name)
        program.argument(index)
        # without these flags the mode argument is unused and may have any value
        program.add(_JSET, O_CREAT | O_TMPFILE, 0, 3)
        program.argument(index + 1)
        program.add(_JSET, SET_IDS, 0, 1)
        program.add(_RET, ERRNO | EPERM)
        program.end()


def own(rules: Rules, machine: str) -> bytes:
    """Return the filter that a call gets in addition to ``common``."""
    program = _Program(machine)
    _sockets(program, rules)
    if not rules.counted:
        _refuse_uncounted(program, rules)
    (_neighbours if rules.landlock else _supervisor)(program, rules)
    return program.code()


def files(machine: str, asks: bool) -> bytes:
    """Return the filter of profile L for modes, times, owners and attributes of files.

    asks  bool, the filter has a listener, which answers these calls
    """
    program = _Program(machine)
    for name in _ASKED:
        program.begin(name)
        program.add(_RET, NOTIFY if asks else ERRNO | EPERM)
        program.end()
    # programs conclude that the file system has no extended attributes, and go on
    for name in _ATTRIBUTES:
        program.refuse(name, ENOTSUP)
    program.refuse_values("ioctl", 1, FLAGS)
    return program.code()


def _sockets(program, rules: Rules):
    """Without a network, allow only socket pairs.  A datagram pair is refused, because it could
    still send to another address.
    """
    program.begin("socketpair")
    program.argument(0)
    program.add(_JEQ, AF_UNIX, 0, 4)
    program.argument(1)
    program.add(_AND, TYPE_MASK)
    program.add(_JEQ, STREAM, 2, 0)
    program.add(_JEQ, SEQPACKET, 1, 0)
    program.add(_RET, ERRNO | EACCES)
    program.add(_RET, ALLOW)
    program.end()
    if not rules.network:
        for name in ("socket", "connect", "bind", "listen"):
            program.refuse(name, EACCES)
        return
    # TCP and nothing else: no UDP, MPTCP, raw, netlink, vsock, alg, unix
    program.begin("socket")
    program.argument(0)
    program.add(_JEQ, AF_INET, 2, 0)
    program.add(_JEQ, AF_INET6, 1, 0)
    program.add(_RET, ERRNO | EAFNOSUPPORT)
    program.argument(1)
    program.add(_AND, TYPE_MASK)
    program.add(_JEQ, STREAM, 1, 0)
    program.add(_RET, ERRNO | EACCES)
    program.argument(2)
    program.add(_JEQ, 0, 2, 0)
    program.add(_JEQ, 6, 1, 0)
    program.add(_RET, ERRNO | EACCES)
    program.add(_RET, ALLOW)
    program.end()


def _refuse_uncounted(program, rules: Rules):
    """Refuse system calls that take memory which memory_accounting.py does not find: in tables of a
    single thread, or more memory than is counted.
    """
    for errno, names in _UNCOUNTED.items():
        for name in names:
            program.refuse(name, errno)
    for name in [] if rules.network else _SENT:
        program.refuse(name, EACCES)
    for name in [] if rules.landlock else _ATTRIBUTES:
        program.refuse(name, ENOTSUP)
    for name in ("fcntl", "fcntl64"):
        program.refuse_values(name, 1, [F_SETPIPE_SZ])
    program.refuse_bits("unshare", 0, CLONE_FILES)
    program.refuse_bits("close_range", 2, CLOSE_RANGE_UNSHARE, EINVAL)
    program.begin("clone")
    program.argument(0)
    program.add(_AND, CLONE_THREAD | CLONE_FILES)
    program.add(_JEQ, CLONE_THREAD, 0, 1)
    program.add(_RET, ERRNO | EPERM)
    program.end()
    _options(program)
    _buffers(program)
    _refuse_shared(program)


def _options(program):
    """Refuse the options of prctl(2) that take memory.  PR_SET_DUMPABLE 0 succeeds without an
    effect: a process must not hide from the supervisor, which measures it.
    """
    program.begin("prctl")
    program.argument(0)
    program.add(_JEQ, SET_SECCOMP, 3, 0)
    program.add(_JEQ, SET_VMA, 3, 0)
    program.add(_JEQ, SET_PTRACER, 2, 0)
    program.add(_JGE, FIRST_UNKNOWN, 0, 1)
    program.add(_RET, ERRNO | EINVAL)
    program.add(_JEQ, SET_DUMPABLE, 0, 3)
    program.argument(1)
    program.add(_JEQ, 0, 0, 1)
    program.add(_RET, ERRNO)
    program.end()


def _buffers(program):
    """Keep the size of socket buffers: setting it succeeds without an effect, as it does at the
    system's own limit (socket(7)).  Refuse ``OPTIONS``.
    """
    program.begin("setsockopt")
    program.argument(1)
    program.add(_JEQ, SOL_SOCKET, 0, 2 * len(BUFFERS + OPTIONS) + 1)
    program.argument(2)
    for errno, options in ((0, BUFFERS), (ENOTSUP, OPTIONS)):
        for option in options:
            program.add(_JEQ, option, 0, 1)
            program.add(_RET, ERRNO | errno)
    program.end()


def _refuse_shared(program):
    """Refuse shared memory without a file: all of it exists as long as one page is mapped, but only
    that page is part of a process' size.  Refuse mappings that are stacks: RLIMIT_DATA does not
    count them.
    """
    for name in ("mmap", "mmap2"):
        program.refuse_bits(name, 3, MAP_GROWSDOWN)
        program.begin(name)
        program.argument(3)
        program.add(_AND, MAP_SHARED | MAP_ANONYMOUS)
        program.add(_JEQ, MAP_SHARED | MAP_ANONYMOUS, 0, 1)
        program.add(_RET, ERRNO | EPERM)
        program.end()


def _supervisor(program, rules: Rules):
    """Protect the limits and the priority of the supervisor.  It is pid 1 of the pid namespace and
    has the same user; the other processes there are the tool's own.
    """
    for name in _OF_SELF:
        program.refuse_values(name, 0, [1])
    program.refuse_values("setpriority", 0, [2])  # for all processes of the user
    program.refuse_values("setpriority", 1, [1])
    program.refuse_values("ioprio_set", 0, [3])
    program.refuse_values("ioprio_set", 1, [1])


def _neighbours(program, rules: Rules):
    for name in _BY_PATH:
        program.refuse(name)
    for name in _OF_SELF:
        program.allow_values(name, 0, [0], EPERM)
    program.allow_values("setpriority", 0, [0], EPERM)
    program.allow_values("setpriority", 1, [0], EPERM)
    program.allow_values("ioprio_set", 0, [1], EPERM)  # 1: a process, not a group or a user
    program.allow_values("ioprio_set", 1, [0], EPERM)
    # with these, a file could send a signal to any process of the user
    for name in ("fcntl", "fcntl64"):
        program.refuse_values(name, 1, [F_SETOWN, F_SETSIG, F_SETOWN_EX])
    if not rules.signals:
        # 0 is the own process group, which is in the call's own session
        program.allow_values("kill", 0, [0], EPERM)
        for name in _SIGNALS[1:]:
            program.refuse(name)


class _Program:
    """A filter that is being assembled.  System calls that *machine* lacks are left out."""

    def __init__(self, machine: str):
        self._numbers = TABLES[machine]
        self._code = []
        self._open = None
        self.add(_LOAD, _ARCH)
        self.add(_JEQ, AUDIT_ARCH[machine], 1, 0)
        self.add(_RET, KILL_PROCESS)
        self.add(_LOAD, _NR)
        # breakpoint, cacheflush, set_tls: no program starts without them
        if machine == ARM:
            self.add(_JGE, ARM_PRIVATE[0], 0, 2)
            self.add(_JGE, ARM_PRIVATE[1] + 1, 1, 0)
            self.add(_RET, ALLOW)
        self.add(_JGE, CEILING, 0, 1)
        self.add(_RET, ERRNO | ENOSYS)

    def add(self, code: int, k: int, true: int = 0, false: int = 0):
        if self._open != -1:
            self._code.append((code, true, false, k))

    def begin(self, name: str):
        """Begin the instructions for one system call.  ``end`` closes them, and loads the number
        again for the next ones.
        """
        number = self._numbers.get(name)
        self._open = -1 if number is None else len(self._code)
        self.add(_JEQ, number or 0, 0, 0)

    def end(self):
        if self._open != -1:
            self._code.append((_LOAD, 0, 0, _NR))
            length = len(self._code) - self._open - 1
            if length > 255:
                raise ValueError("a jump of %d instructions" % length)
            self._code[self._open] = (_JEQ, 0, length, self._code[self._open][3])
        self._open = None

    def argument(self, index: int, high: bool = False):
        """Load one half of an argument.  For an int the kernel reads the low one; all machines here
        are little-endian.
        """
        self.add(_LOAD, _ARGS + 8 * index + (4 if high else 0))

    def refuse(self, name: str, errno: int = EPERM):
        self.begin(name)
        self.add(_RET, ERRNO | errno)
        self.end()

    def refuse_bits(self, name: str, index: int, mask: int, errno: int = EPERM):
        self.begin(name)
        self.argument(index)
        self.add(_JSET, mask, 0, 1)
        self.add(_RET, ERRNO | errno)
        self.end()

    def refuse_values(self, name: str, index: int, values: list):
        self.begin(name)
        self.argument(index)
        for value in values:
            self.add(_JEQ, value, 0, 1)
            self.add(_RET, ERRNO | EPERM)
        self.end()

    def allow_values(self, name: str, index: int, values: list, errno: int):
        self.begin(name)
        self.argument(index)
        for position, value in enumerate(values):
            self.add(_JEQ, value, len(values) - position, 0)
        self.add(_RET, ERRNO | errno)
        self.end()

    def code(self) -> bytes:
        """Return the program, which allows every system call that it has not refused."""
        self.add(_RET, ALLOW)
        return b"".join(struct.pack("<HBBI", *instruction) for instruction in self._code)


class Filters:
    """The filters of this machine, each assembled once.  *landlock*: for profile L."""

    def __init__(self, machine: str, landlock: bool):
        self.common = common(machine)
        self.files = (files(machine, True), files(machine, False)) if landlock else None
        self._own = {}
        for network in (False, True):
            for signals in (False, True):
                for counted in (False, True):
                    self._own[network, signals, counted] = own(
                        Rules(network, landlock, signals, counted), machine
                    )

    def own(self, network: bool, signals: bool, counted: bool) -> bytes:
        """Return the filter for a call; the arguments are those of ``Rules``."""
        return self._own[network, signals, counted]


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def install(code: bytes):
    """Filter this process and all processes that it starts, for good.  no_new_privs must be set.
    Raises ``OSError``.
    """
    data = ctypes.create_string_buffer(code, len(code))
    program = _Filter(len(code) // 8, ctypes.cast(data, ctypes.c_void_p))
    syscalls.prctl(syscalls.PR_SET_SECCOMP, 2, ctypes.byref(program))


def listen(code: bytes) -> int:
    """Filter as ``install`` does; return the listener, a descriptor at which system calls are
    answered (seccomp(2), SECCOMP_FILTER_FLAG_NEW_LISTENER).
    """
    data = ctypes.create_string_buffer(code, len(code))
    return syscalls.call(
        "seccomp", 1, 8, ctypes.byref(_Filter(len(code) // 8, ctypes.cast(data, ctypes.c_void_p)))
    )
