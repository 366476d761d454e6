"""Profile N: own user, mount, pid, network, IPC and UTS namespaces, and a root that holds what was declared.

The root is a small tmpfs.  The old one is moved to /old first, so that every source can still be reached whatever the new
one covers, and is gone before anything of the tool's runs.  All of it is read-only but the writable mounts and /tmp.
"""
import ctypes
import os
import stat
import struct

from clawlite.linux.sandbox import syscalls

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
FLAGS = NEWNS | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET
_SIGCHLD = 17
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
_DETACH = 2
_RECURSIVE = 0x8000                                     # AT_RECURSIVE
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = ("alternatives", "ca-certificates", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "pki", "protocols",
       "services", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone")
DEVICES = ("null", "zero", "full", "random", "urandom")
OLD = "/old"
TMP_MB = 64                                             # of the private /tmp, where no memory limit is lower


def clone(flags: int) -> int:
    """Fork this single-threaded process into new namespaces; return the child's pid, 0 in the child.  Raises ``OSError``.

    The interpreter's own fork hooks are not run: there is no other thread whose locks they would mend.
    """
    return syscalls.call("clone", flags | _SIGCHLD, 0, 0, 0, 0)


def map_own(uid: int, gid: int):
    """In the child: be the same user inside as outside, and nobody else."""
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", "%d %d 1" % (uid, uid))
    _write("/proc/self/gid_map", "%d %d 1" % (gid, gid))


def map_all(pid: int):
    """In the parent, which is real root: every user is the same inside as outside; the child then drops to one of them."""
    for name in ("uid_map", "gid_map"):
        _write("/proc/%d/%s" % (pid, name), "0 0 4294967295")


def _write(path: str, text: str):
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def mount(source, target: str, kind, flags: int, options: str = None):
    """mount(2); raises ``OSError``."""
    syscalls.call("mount", *[None if a is None else os.fsencode(a) for a in (source, target, kind)], flags,
                  options.encode() if options else None)


def _set(path: str, attributes: int, recursive: bool = True):
    """Add mount attributes: flags of this and of all that is mounted below (mount_setattr(2), Linux 5.12)."""
    words = ctypes.create_string_buffer(struct.pack("=4Q", attributes, 0, 0, 0), 32)
    syscalls.call("mount_setattr", -100, os.fsencode(path), _RECURSIVE if recursive else 0, words, 32)


class Root:
    """A root in the making.  Every path that is taken is one of the old root's; ``self.at`` says where it will be.

    tmp_mb  int, size of /tmp
    """

    def __init__(self, tmp_mb: int = TMP_MB):
        mount(None, "/", None, _REC | _PRIVATE)
        mount("tmpfs", "/tmp", "tmpfs", _NOSUID | _NODEV, "mode=0755,size=4m")
        os.chdir("/tmp")
        os.mkdir("new")
        os.mkdir("old")
        mount("new", "new", None, _BIND)
        syscalls.call("pivot_root", b".", b"old")
        os.chdir("/new")
        self._tmp_mb = tmp_mb
        self._empty_file()

    def _empty_file(self):
        self._nothing = "/nothing"
        os.close(os.open(self._nothing, os.O_CREAT | os.O_WRONLY, 0o000))

    @staticmethod
    def at(path: str) -> str:
        return "/new" + path

    def bind(self, source: str, target: str, writable: bool):
        """Show *source* (a path of the old root, no links in it) at *target*.  Raises ``OSError`` when it is not there."""
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
        """Show *path* read-only as it is, where it is: a link as a link; what does not exist is left out."""
        old, new = OLD + path, self.at(path)
        if os.path.islink(old):
            if not os.path.lexists(new):
                os.makedirs(os.path.dirname(new), 0o755, exist_ok=True)
                os.symlink(os.readlink(old), new)
        elif os.path.exists(old):
            self.bind(path, path, False)

    def system(self):
        """What any program needs to start: libraries, a little of /etc, five devices, /proc of the own pid namespace, /tmp."""
        for path in SYSTEM:
            self.like(path)
        self.etc()
        self.devices()

    def etc(self):
        os.makedirs("/new/etc/ssl", exist_ok=True)
        for name in ETC:
            self.like("/etc/" + name)
        name = _name(os.getuid())
        for path, text in (("passwd", "%s:x:%d:%d::/tmp:/bin/sh\n" % (name, os.getuid(), os.getgid())),
                           ("group", "%s:x:%d:\n" % (name, os.getgid())),
                           ("hosts", "127.0.0.1 localhost\n::1 localhost\n"),
                           ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")):
            with open("/new/etc/" + path, "w") as file:
                file.write(text)

    def devices(self):
        os.makedirs("/new/dev", exist_ok=True)
        for name in DEVICES:
            self.bind("/dev/" + name, "/dev/" + name, True)
        for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2"), ("shm", "/tmp")):
            os.symlink(target, "/new/dev/" + name)

    def proc(self):
        """Mount /proc of the own pid namespace; it hides what was there."""
        os.makedirs("/new/proc", exist_ok=True)
        mount("proc", "/new/proc", "proc", _NOSUID | _NODEV | _NOEXEC)

    def tmp(self):
        os.makedirs("/new/tmp", exist_ok=True)
        mount("tmpfs", "/new/tmp", "tmpfs", _NOSUID | _NODEV, "mode=1777,size=%dm" % self._tmp_mb)

    def mask(self, path: str):
        """Cover what is at *path* of the new root with nothing that can be read, written or entered."""
        new = self.at(path)
        try:
            mode = os.lstat(new).st_mode
        except OSError:
            return
        if stat.S_ISDIR(mode):
            mount("tmpfs", new, "tmpfs", _NOSUID | _NODEV | _NOEXEC | _RDONLY, "mode=000,size=4k,nr_inodes=2")
        elif not stat.S_ISLNK(mode):
            mount(self._nothing, new, None, _BIND)
            _set(new, _NOSUID | _NODEV | _NOEXEC | _RDONLY, False)

    def enter(self):
        """Make it the root and let the old one go."""
        _set("/new", _RDONLY | _NOSUID | _NODEV, False)
        syscalls.call("umount2", os.fsencode(OLD), _DETACH)
        os.chdir("/new")
        syscalls.call("pivot_root", b".", b".")
        syscalls.call("umount2", b".", _DETACH)
        os.chdir("/")


def _name(uid: int) -> str:
    return "nobody" if uid == 65534 else "root" if uid == 0 else "tool"


def loopback_up():
    """Switch ``lo`` on: an empty network namespace has it, and it is down."""
    import _socket
    from fcntl import ioctl
    with _Closing(_socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)) as line:
        ioctl(line.fileno(), 0x8914, struct.pack("16sh14x", b"lo", 0x49))       # SIOCSIFFLAGS: up, loopback, running


class _Closing:
    def __init__(self, thing):
        self._thing = thing

    def __enter__(self):
        return self._thing

    def __exit__(self, *failure):
        self._thing.close()
