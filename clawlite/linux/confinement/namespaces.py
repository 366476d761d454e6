"""Profile N: own user, mount, pid, network, IPC and UTS namespaces, and a root that holds what was
declared.

The server enters a user and a mount namespace once (``enter``) and makes a base there: /new, a
small tmpfs with what every program needs, and /old, the old root.  Each call gets a copy of that
mount namespace, adds its own mounts, makes /new its root and detaches /old, before any code of the
tool runs.  All of it is read-only except the writable mounts and /tmp.

Only mounts are copied: a folder that is made in the base stays there for every later call.  So a
call that needs a folder which the base does not have gets a /new of its own (``lacks``), which
takes 3 ms.
"""

import ctypes
import os
import stat
import struct

from clawlite.linux.confinement import syscalls
from clawlite.linux.confinement.limits import MAX_FILES

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (
    0x20000,
    0x4000000,
    0x8000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
OF_SERVER = NEWUSER | NEWNS
OF_CALL = NEWNS | NEWUTS | NEWIPC | NEWPID | NEWNET
_SIGCHLD = 17
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE, _SLAVE = (
    1,
    2,
    4,
    8,
    4096,
    16384,
    1 << 18,
    1 << 19,
)
_DETACH = 2
CLOSED = _NOSUID | _NODEV | _NOEXEC  # of a mount that holds data alone
_RECURSIVE = 0x8000  # AT_RECURSIVE
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = (
    "alternatives",
    "ca-certificates",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "pki",
    "protocols",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
)
DEVICES = ("null", "zero", "full", "random", "urandom")
# What of /proc tells of the machine or reaches into it, as container runtimes hide it
# (opencontainers/runtime-spec, config-linux.md).
PROC_MASKED = (
    "acpi",
    "asound",
    "interrupts",
    "kallsyms",
    "kcore",
    "keys",
    "key-users",
    "kmsg",
    "latency_stats",
    "sched_debug",
    "scsi",
    "sysvipc",
    "timer_list",
    "timer_stats",
    "vmallocinfo",
)
PROC_READ_ONLY = ("bus", "fs", "irq", "sys", "sysrq-trigger")
OLD = "/old"
_EMPTY = "/empty"  # beside /new and /old: covers denied files


def enter(uid, folders: list = ()):
    """Put this process into a user and a mount namespace of its own, with a base in it.  Raises
    ``OSError``.

    uid      of the tools where this is real root, whose namespace then has all users; None: it has
             this user alone
    folders  where calls will mount the Python of functions: empty ones in every root, so that they
             need none of their own
    """
    own = os.getuid(), os.getgid()
    if uid is None:
        syscalls.call("unshare", OF_SERVER)
        map_own(*own)
    else:
        _enter_with_all()
    base(*(own if uid is None else (uid, uid)), folders)


def map_own(uid: int, gid: int, root: str = ""):
    """Be the same user inside as outside, and nobody else.  *root*: where the root with a /proc
    is.
    """
    _write(root + "/proc/self/setgroups", "deny")
    _write(root + "/proc/self/uid_map", "%d %d 1" % (uid, uid))
    _write(root + "/proc/self/gid_map", "%d %d 1" % (gid, gid))


def _enter_with_all():
    """As real root: every user is the same inside as outside.  Only a process outside may write
    such a map.
    """
    target = os.getpid()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(writing)
            os.read(reading, 1)  # until we are inside
            for name in ("uid_map", "gid_map"):
                _write("/proc/%d/%s" % (target, name), "0 0 4294967295")
            os._exit(0)
        finally:
            os._exit(1)
    os.close(reading)
    try:
        syscalls.call("unshare", OF_SERVER)
    finally:
        os.close(writing)
        status = os.waitpid(pid, 0)[1]
    if status:
        raise OSError(1, os.strerror(1), "uid_map")


def clone() -> int:
    """Fork this single-threaded process into the namespaces of a call; return the child's pid, 0 in
    the child.  Raises ``OSError``.

    The interpreter's own fork hooks are not run: there is no other thread whose locks they would
    mend."""
    return syscalls.call("clone", OF_CALL | _SIGCHLD, 0, 0, 0, 0)


def _write(path: str, text: str):
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def mount(source, target: str, kind, flags: int, options: str = None):
    """mount(2); raises ``OSError``."""
    syscalls.call(
        "mount",
        *[None if a is None else os.fsencode(a) for a in (source, target, kind)],
        flags,
        options.encode() if options else None,
    )


def _set(path: str, attributes: int, recursive: bool = True):
    """Add mount attributes to this and to all that is mounted below, and let nothing be mounted
    there from outside any more.

    mount_setattr(2), Linux 5.12.
    """
    words = ctypes.create_string_buffer(struct.pack("=4Q", attributes, 0, _PRIVATE, 0), 32)
    syscalls.call(
        "mount_setattr", -100, os.fsencode(path), _RECURSIVE if recursive else 0, words, 32
    )


def seal(path: str):
    """Make the mount at *path* one that nobody writes to any more, which holds data alone."""
    _set(path, CLOSED | _RDONLY, False)


def base(uid: int, gid: int, folders: list = ()):
    """Lay out /new, with *folders* in it, and /old in the mount namespace that this process is
    in.  Raises ``OSError``.
    """
    # a disk that is plugged in later is seen too
    mount(None, "/", None, _REC | _SLAVE)
    mount("tmpfs", "/tmp", "tmpfs", _NOSUID | _NODEV, "mode=0755,size=4m")
    os.chdir("/tmp")
    os.mkdir("new")
    os.mkdir("old")
    mount("new", "new", None, _BIND)
    syscalls.call("pivot_root", b".", b"old")
    os.chdir("/")
    os.close(os.open(_EMPTY, os.O_CREAT | os.O_WRONLY, 0o000))
    Root().system(uid, gid)
    for folder in folders:
        os.makedirs(Root.at(folder), 0o755, exist_ok=True)


def freeze():
    """Let no mount of outside come into the old root any more."""
    mount(None, OLD, None, _REC | _PRIVATE)


class Root:
    """The root of one call in the making.  Every source is a path of the old root; ``at`` says
    where it will be.

    own  bool, it begins with nothing, not with the base
    """

    def __init__(self, own: bool = False):
        if own:
            mount("tmpfs", "/new", "tmpfs", _NOSUID | _NODEV, "mode=0755,size=1m")
        os.chdir("/new")

    @staticmethod
    def at(path: str) -> str:
        return "/new" + path

    @staticmethod
    def lacks(targets: list) -> bool:
        """Return whether one of *targets*, paths of mounts in their order, is not in the base
        and not below one before it.
        """
        tops = ["/tmp/"]  # which every call has for itself
        for target in targets:
            if not os.path.lexists("/new" + target) and not (target + "/").startswith(tuple(tops)):
                return True
            tops.append(target.rstrip("/") + "/")
        return False

    def bind(self, source: str, target: str, writable: bool):
        """Show *source* (a path of the old root, no links in it) at *target*.  Raises
        ``OSError`` when it is not there.
        """
        old, new = OLD + source, self.at(target)
        mode = os.lstat(old).st_mode
        if stat.S_ISDIR(mode):
            os.makedirs(new, 0o755, exist_ok=True)
        elif not os.path.lexists(new):
            os.makedirs(os.path.dirname(new), 0o755, exist_ok=True)
            os.close(os.open(new, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
        mount(old, new, None, _BIND | _REC)
        is_device = stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or source == "/dev"
        _set(new, _NOSUID | (0 if is_device else _NODEV) | (0 if writable else _RDONLY))

    def like(self, path: str):
        """Show *path* read-only as it is, where it is: a link as a link; what does not exist is
        left out.
        """
        old, new = OLD + path, self.at(path)
        if os.path.islink(old):
            if not os.path.lexists(new):
                os.makedirs(os.path.dirname(new), 0o755, exist_ok=True)
                os.symlink(os.readlink(old), new)
        elif os.path.exists(old):
            self.bind(path, path, False)

    def system(self, uid: int, gid: int):
        """What any program needs to start: libraries, a little of /etc, five devices."""
        for path in SYSTEM:
            self.like(path)
        self.etc(uid, gid)
        self.devices()
        for name in ("proc", "tmp", "workspace"):
            os.makedirs("/new/" + name, exist_ok=True)

    def etc(self, uid: int, gid: int):
        """What of /etc a program looks at: certificates, the linker's cache; of users there is
        one.
        """
        os.makedirs("/new/etc/ssl", exist_ok=True)
        for name in ETC:
            self.like("/etc/" + name)
        name = "nobody" if uid == 65534 else "tool"
        for path, text in (
            ("passwd", "%s:x:%d:%d::/tmp:/bin/sh\n" % (name, uid, gid)),
            ("group", "%s:x:%d:\n" % (name, gid)),
            ("hosts", "127.0.0.1 localhost\n::1 localhost\n"),
            ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
        ):
            with open("/new/etc/" + path, "w") as file:
                file.write(text)

    def devices(self):
        os.makedirs("/new/dev", exist_ok=True)
        for name in DEVICES:
            self.bind("/dev/" + name, "/dev/" + name, True)
        for name, target in (
            ("fd", "/proc/self/fd"),
            ("stdin", "fd/0"),
            ("stdout", "fd/1"),
            ("stderr", "fd/2"),
            ("shm", "/tmp"),
        ):
            os.symlink(target, "/new/dev/" + name)

    def proc(self):
        """Mount /proc of the own pid namespace; it hides what was there."""
        os.makedirs("/new/proc", exist_ok=True)
        mount("proc", "/new/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
        for name in PROC_MASKED:
            self.mask("/proc/" + name)

    def tmp(self, megabytes: int, path: str):
        """Mount a /tmp of the call's own, at *path*: an entry costs the kernel memory that no
        size counts, so they are bounded too.
        """
        new = self.at(path)
        os.makedirs(new, exist_ok=True)
        mount(
            "tmpfs",
            new,
            "tmpfs",
            _NOSUID | _NODEV,
            "mode=1777,size=%dm,nr_inodes=%d" % (megabytes, MAX_FILES),
        )

    def pin(self, path: str):
        """Make the folder *path* of the new root a mount of its own, so that it cannot be
        renamed; no other kind of thing is one.
        """
        new = self.at(path)
        if os.path.isdir(new) and not os.path.islink(new):
            mount(new, new, None, _BIND | _REC)

    def mask(self, path: str) -> bool:
        """Cover what is at *path* of the new root with nothing that can be read, written or
        entered.

        False  it is a file whose name in other case is there still: some file systems that ignore
               case have no one entry for it
        """
        new = self.at(path)
        try:
            was = os.lstat(new)
        except OSError:
            return True
        if stat.S_ISDIR(was.st_mode):
            mount(
                "tmpfs",
                new,
                "tmpfs",
                _NOSUID | _NODEV | _NOEXEC | _RDONLY,
                "mode=000,size=4k,nr_inodes=2",
            )
        elif not stat.S_ISLNK(was.st_mode):
            mount(_EMPTY, new, None, _BIND)
            _set(new, _NOSUID | _NODEV | _NOEXEC | _RDONLY, False)
            try:
                other = os.lstat(
                    os.path.join(os.path.dirname(new), os.path.basename(new).swapcase())
                )
                return was.st_nlink > 1 or not os.path.samestat(other, was)
            except OSError:  # there is none
                pass
        return True

    def veil(self, path: str, *shown):
        """Cover the folder *path* of the new root with one in which only *shown* is, arguments
        of ``bind``.
        """
        new = self.at(path)
        mount("tmpfs", new, "tmpfs", _NOSUID | _NODEV | _NOEXEC, "mode=0711,size=64k,nr_inodes=64")
        for one in shown:
            self.bind(*one)
        seal(new)

    def close(self):
        """Make it the root and let the old one go."""
        _set("/new", _RDONLY | _NOSUID | _NODEV, False)
        syscalls.call("umount2", os.fsencode(OLD), _DETACH)
        os.chdir("/new")
        syscalls.call("pivot_root", b".", b".")
        syscalls.call("umount2", b".", _DETACH)
        os.chdir("/")


def close_proc():
    """Let nothing be written any more to what in /proc are the kernel's own settings.  Last:
    ``shorten`` writes there.
    """
    for name in PROC_READ_ONLY:
        path = "/proc/" + name
        if os.path.exists(path):
            mount(path, path, None, _BIND | _REC)
            _set(path, CLOSED | _RDONLY)


def loopback_up():
    """Switch ``lo`` on: an empty network namespace has it, and it is down."""
    import _socket
    from fcntl import ioctl

    line = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    # SIOCSIFFLAGS: up, loopback, running
    ioctl(line.fileno(), 0x8914, struct.pack("16sh14x", b"lo", 0x49))
    line.close()


def shorten(most: int):
    """Let no TCP socket of this network namespace hold more than *most* bytes in each direction:
    by itself it grows to megabytes.
    """
    for name, sizes in (("tcp_rmem", (4096, 131072, most)), ("tcp_wmem", (4096, 16384, most))):
        _write("/proc/sys/net/ipv4/" + name, "%d %d %d" % tuple(min(size, most) for size in sizes))
