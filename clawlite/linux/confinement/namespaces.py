"""Profile N: own user, mount, pid, network, IPC and UTS namespaces, and a root that holds what was
declared.

The server enters a user and a mount namespace once (``enter``) and makes a base there: /new, a
small tmpfs with what every program needs, and /old, the old root.  Each call gets a copy of that
mount namespace, adds its own mounts, makes /new its root and detaches /old, before any code of the
tool runs.  All of it is read-only except the writable mounts and /tmp.

Only mounts are copied: a folder that a call made in the base would stay there for every later call.
So a call that needs a folder which the base lacks gets a /new of its own (``lacks``), which takes
3 ms.
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
CLOSED = _NOSUID | _NODEV | _NOEXEC  # flags of a mount that holds only data
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
# Files of /proc that reveal or change the machine; container runtimes hide the same ones
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

    uid      user of the tools when this is real root; then the namespace has all users.  None: it
             has only this user
    folders  where calls mount the Python for functions.  The base has them as empty folders, so
             that these calls need no root of their own
    """
    own = os.getuid(), os.getgid()
    if uid is None:
        syscalls.call("unshare", OF_SERVER)
        map_own(*own)
    else:
        _enter_with_all()
    base(*(own if uid is None else (uid, uid)), folders)


def map_own(uid: int, gid: int, root: str = ""):
    """Map this user, and no other, to the same user inside.  *root*: the path of a root that has a
    /proc.
    """
    _write(root + "/proc/self/setgroups", "deny")
    _write(root + "/proc/self/uid_map", "%d %d 1" % (uid, uid))
    _write(root + "/proc/self/gid_map", "%d %d 1" % (gid, gid))


def _enter_with_all():
    """As real root, enter a namespace in which every user is the same as outside.  A child writes
    the map, because only a process outside may write such a map.
    """
    target = os.getpid()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(writing)
            os.read(reading, 1)  # ends when the parent is inside
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

    The interpreter's fork hooks are not run.  They would repair the locks of other threads, and
    there are none."""
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
    """Add mount attributes to the mount at *path* and all mounts below it, and make them private:
    later mounts outside do not appear in them.

    mount_setattr(2), Linux 5.12.
    """
    words = ctypes.create_string_buffer(struct.pack("=4Q", attributes, 0, _PRIVATE, 0), 32)
    syscalls.call(
        "mount_setattr", -100, os.fsencode(path), _RECURSIVE if recursive else 0, words, 32
    )


def seal(path: str):
    """Make the mount at *path* read-only, without devices and programs."""
    _set(path, CLOSED | _RDONLY, False)


def base(uid: int, gid: int, folders: list = ()):
    """Lay out /new, with *folders* in it, and /old in the mount namespace that this process is
    in.  Raises ``OSError``.
    """
    # a disk that is mounted later appears here, too
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
    """Make the old root private: later mounts outside do not appear in it."""
    mount(None, OLD, None, _REC | _PRIVATE)


class Root:
    """The root of one call while it is built.  Sources are paths in the old root; ``at`` returns
    the present path of a target.

    own  bool, it begins empty, not with the base
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
        """Return whether one of *targets*, paths of mounts in order, is neither in the base nor
        below an earlier one.
        """
        tops = ["/tmp/"]  # each call has its own /tmp
        for target in targets:
            if not os.path.lexists("/new" + target) and not (target + "/").startswith(tuple(tops)):
                return True
            tops.append(target.rstrip("/") + "/")
        return False

    def bind(self, source: str, target: str, writable: bool):
        """Mount *source* (a path in the old root, without links) at *target*.  Raises ``OSError``
        when it does not exist.
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
        """Mount *path* read-only at the same path.  A link becomes a link; a path that does not
        exist is ignored.
        """
        old, new = OLD + path, self.at(path)
        if os.path.islink(old):
            if not os.path.lexists(new):
                os.makedirs(os.path.dirname(new), 0o755, exist_ok=True)
                os.symlink(os.readlink(old), new)
        elif os.path.exists(old):
            self.bind(path, path, False)

    def system(self, uid: int, gid: int):
        """Add what any program needs to start: libraries, a little of /etc, devices."""
        for path in SYSTEM:
            self.like(path)
        self.etc(uid, gid)
        self.devices()
        for name in ("proc", "tmp", "workspace"):
            os.makedirs("/new/" + name, exist_ok=True)

    def etc(self, uid: int, gid: int):
        """Add the files of /etc that programs read, such as certificates and the linker's cache,
        and a list of users with one user.
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
        """Mount the /proc of this pid namespace, with ``PROC_MASKED`` covered."""
        os.makedirs("/new/proc", exist_ok=True)
        mount("proc", "/new/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
        for name in PROC_MASKED:
            self.mask("/proc/" + name)

    def tmp(self, megabytes: int, path: str):
        """Mount the call's own /tmp at *path*.  The number of files is limited, too, because each
        costs kernel memory that the size does not count.
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
        """Make the folder *path* of the new root a mount of its own, so that it cannot be renamed.
        Do nothing when it is no folder.
        """
        new = self.at(path)
        if os.path.isdir(new) and not os.path.islink(new):
            mount(new, new, None, _BIND | _REC)

    def mask(self, path: str) -> bool:
        """Cover the file or folder at *path* of the new root, so that it cannot be read, written or
        entered.

        Return False when the file can still be reached by its name in other case: some file systems
        that ignore case have more than one entry for a file.
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
        """Cover the folder *path* of the new root with a folder that has only the mounts *shown*,
        each the arguments of ``bind``.
        """
        new = self.at(path)
        mount("tmpfs", new, "tmpfs", _NOSUID | _NODEV | _NOEXEC, "mode=0711,size=64k,nr_inodes=64")
        for one in shown:
            self.bind(*one)
        seal(new)

    def close(self):
        """Make this the root, and detach the old one."""
        _set("/new", _RDONLY | _NOSUID | _NODEV, False)
        syscalls.call("umount2", os.fsencode(OLD), _DETACH)
        os.chdir("/new")
        syscalls.call("pivot_root", b".", b".")
        syscalls.call("umount2", b".", _DETACH)
        os.chdir("/")


def close_proc():
    """Make the kernel's settings in /proc read-only.  Call this last: ``shorten`` writes there."""
    for name in PROC_READ_ONLY:
        path = "/proc/" + name
        if os.path.exists(path):
            mount(path, path, None, _BIND | _REC)
            _set(path, CLOSED | _RDONLY)


def loopback_up():
    """Switch on ``lo``, which exists but is down in a new network namespace."""
    import _socket
    from fcntl import ioctl

    line = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    # SIOCSIFFLAGS: up, loopback, running
    ioctl(line.fileno(), 0x8914, struct.pack("16sh14x", b"lo", 0x49))
    line.close()


def shorten(most: int):
    """Limit the buffers of TCP sockets in this network namespace to *most* bytes in each direction.
    Without this they grow to megabytes.
    """
    for name, sizes in (("tcp_rmem", (4096, 131072, most)), ("tcp_wmem", (4096, 16384, most))):
        _write("/proc/sys/net/ipv4/" + name, "%d %d %d" % tuple(min(size, most) for size in sizes))
