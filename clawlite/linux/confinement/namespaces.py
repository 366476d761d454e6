"""Profile N: own user, mount, pid, network, IPC and UTS namespaces, and a root that holds what was
declared.

The server enters a user and a mount namespace once (``enter``) and makes a base there: /new, a
small tmpfs with what every program needs, and /old, the old root.  Each call gets a copy of that
mount namespace, adds its own mounts, makes /new its root and detaches /old, before any code of the
tool runs.  All of it is read-only except the writable mounts and /tmp.

A mount is made of a descriptor, and put on a descriptor: nobody can exchange what the manifest
names, or what lies above it, for a link meanwhile (linux/files/real_path.py).

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
from clawlite.linux.files.real_path import PathChanged, open_entry, open_real

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
_RECURSIVE, _EMPTY_PATH = 0x8000, 0x1000  # AT_RECURSIVE, AT_EMPTY_PATH
_CLONE = 1  # of open_tree
_FROM_FD, _ONTO_FD = 0x4, 0x40  # of move_mount
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
# beside /new and /old: what covers denied files and folders, and where a veil is made
_EMPTY, _NOTHING, _VEIL = "/empty", "/nothing", "/veil"


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


def _set(at: int, path: bytes, attributes: int, flags: int):
    """Add mount attributes to the mount at *path* below the descriptor *at*, and make it private:
    later mounts outside do not appear in it.

    mount_setattr(2), Linux 5.12.
    """
    words = ctypes.create_string_buffer(struct.pack("=4Q", attributes, 0, _PRIVATE, 0), 32)
    syscalls.call("mount_setattr", at, path, flags, words, 32)


def _put(source: int, target: int, attributes: int, is_whole: bool = True):
    """Mount the file or folder *source* on *target*, both descriptors, with mount attributes.

    is_whole  what is mounted below *source* comes along
    """
    more = _EMPTY_PATH | (_RECURSIVE if is_whole else 0)
    tree = syscalls.call("open_tree", source, b"", more | _CLONE | os.O_CLOEXEC)
    try:
        _set(tree, b"", attributes, more)
        syscalls.call("move_mount", tree, b"", target, b"", _FROM_FD | _ONTO_FD)
    finally:
        os.close(tree)


def seal(path: str):
    """Make the mount at *path* read-only, without devices and programs."""
    _set(-100, os.fsencode(path), CLOSED | _RDONLY, 0)


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
    os.mkdir(_NOTHING, 0o000)
    os.mkdir(_VEIL)
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

    def bind(self, source: str, target: str, writable: bool, is_own: bool = False):
        """Mount *source* (a path in the old root) at *target*.  Raises ``PathChanged`` when one of
        them is not without links, and ``OSError`` when *source* does not exist.

        is_own  bool, *source* is one of clawlite's own paths, whose links are followed
        """
        old = (
            os.open(OLD + source, os.O_PATH | os.O_CLOEXEC)
            if is_own
            else open_real(source, os.O_PATH, OLD)
        )
        try:
            mode = os.fstat(old).st_mode
            new = self._place(target, stat.S_ISDIR(mode))
            if new is None:
                return
            is_device = stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or source == "/dev"
            try:
                _put(
                    old,
                    new,
                    _NOSUID | (0 if is_device else _NODEV) | (0 if writable else _RDONLY),
                )
            finally:
                os.close(new)
        finally:
            os.close(old)

    def _place(self, target: str, is_folder: bool):
        """Return a descriptor of *target* in the new root, which is made when it is missing; None
        when a link of the base leads to it (``like``): then it is there by its real path.
        """
        above, name = os.path.split(target)
        try:
            if is_folder:
                return open_real(target, os.O_PATH | os.O_DIRECTORY, "/new", 0o755)
            folder = open_real(above, os.O_PATH | os.O_DIRECTORY, "/new", 0o755)
            try:
                make = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
                try:
                    os.close(os.open(name, make, 0o644, dir_fd=folder))
                except OSError:  # it is there, or the folder is not to be written
                    pass
                return open_entry(name, os.O_PATH, folder, target)
            finally:
                os.close(folder)
        except PathChanged:
            if self._is_linked(target):
                return None
            raise

    def _is_linked(self, target: str) -> bool:
        """Return whether a link that ``like`` has made leads to *target*."""
        at = ""
        for name in target.split("/")[1:]:
            at += "/" + name
            if os.path.islink("/new" + at):
                is_base = os.lstat(os.path.dirname("/new" + at)).st_dev == os.lstat("/new").st_dev
                return is_base and os.path.islink(OLD + at)
        return False

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
            self.bind(path, path, False, True)

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
            self.bind("/dev/" + name, "/dev/" + name, True, True)
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

    def _find(self, path: str):
        """Return a descriptor of the folder that *path* of the new root lies in; None when there is
        none, or a link leads to it.
        """
        try:
            return open_real(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY, "/new")
        except OSError:
            return None

    def pin(self, path: str):
        """Make the folder *path* of the new root a mount of its own, so that it cannot be renamed.
        Do nothing when it is no folder; ``mask`` then finds what is below it exchanged.
        """
        try:
            fd = open_real(path, os.O_PATH | os.O_DIRECTORY, "/new")
        except OSError:
            return
        try:
            _put(fd, fd, 0)
        finally:
            os.close(fd)

    def mask(self, path: str, is_firm: bool = False) -> bool:
        """Cover the file or folder at *path* of the new root, so that it cannot be read, written or
        entered.  A link is left.

        is_firm  bool, it was there and no link: when it is not there, raise ``PathChanged``
        Return False when the file can still be reached by its name in other case: some file systems
        that ignore case have more than one entry for a file.
        """
        path = path.rstrip("/")
        folder, fd = self._find(path), -1
        try:
            if folder is not None:
                fd = open_entry(os.path.basename(path), os.O_PATH, folder, path)
                return self._cover(fd, folder, os.path.basename(path))
        except OSError:
            if fd >= 0:  # it was found
                raise
        finally:
            for one in (folder, fd):
                if one is not None and one >= 0:
                    os.close(one)
        if is_firm and not self._is_linked(path):
            raise PathChanged(path)
        return True

    def _cover(self, fd: int, folder: int, name: str) -> bool:
        was = os.fstat(fd)
        is_folder = stat.S_ISDIR(was.st_mode)
        nothing = os.open(_NOTHING if is_folder else _EMPTY, os.O_PATH | os.O_CLOEXEC)
        try:
            _put(nothing, fd, CLOSED | _RDONLY, False)
        finally:
            os.close(nothing)
        try:
            other = os.stat(name.swapcase(), dir_fd=folder, follow_symlinks=False)
        except OSError:  # there is none
            return True
        return is_folder or was.st_nlink > 1 or not os.path.samestat(other, was)

    def veil(self, path: str, *shown):
        """Cover the folder *path* of the new root with a folder that has only the mounts *shown*,
        each the arguments of ``bind``.
        """
        fd = open_real(path, os.O_PATH | os.O_DIRECTORY, "/new")
        try:
            options = "mode=0711,size=64k,nr_inodes=64"
            mount("tmpfs", _VEIL, "tmpfs", _NOSUID | _NODEV | _NOEXEC, options)
            veil = os.open(_VEIL, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                syscalls.call("move_mount", veil, b"", fd, b"", _FROM_FD | _ONTO_FD)
                for one in shown:
                    self.bind(*one)
                _set(veil, b"", CLOSED | _RDONLY, _EMPTY_PATH)
            finally:
                os.close(veil)
        finally:
            os.close(fd)

    def close(self):
        """Make this the root, and detach the old one."""
        _set(-100, b"/new", _RDONLY | _NOSUID | _NODEV, 0)
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
            _set(-100, os.fsencode(path), CLOSED | _RDONLY, _RECURSIVE)


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
