"""Modes, times and owners of files in profile L: Landlock does not cover them, and a filter sees
their system calls only as numbers.

The kernel hands such a call to the supervisor and holds its caller (seccomp_unotify(2)).  The
supervisor looks at the file, makes the change itself, to the very file that it looked at, and
answers.  The call of the tool never continues by itself, so nobody can exchange its target.

A change is made under these conditions:

1. For a call with a descriptor: the descriptor is open for writing, which Landlock has allowed, or
   the file lies in a writable folder.
2. For a call with a path: the file that the path leads to lies in a writable folder.  The
   supervisor finds this file itself and keeps it open.
3. Always: the file belongs to the tools' user, the mode has neither set-user-ID nor set-group-ID,
   and the owner does not change.  When something cannot be checked, the call is refused.
"""

import ctypes
import fcntl
import os
import struct

from clawlite.linux.confinement import syscalls
from clawlite.linux.files.real_path import covers

_NOTIFICATION = 80  # struct seccomp_notif: id, pid, flags, then struct seccomp_data
_RECV, _SEND, _VALID = 0xC0502100, 0xC0182101, 0x40082102
_CWD, _NOFOLLOW = -100, 0x100
_NO_MAGICLINKS = 2  # of openat2(2): /proc/self would mean the supervisor
_MAX_PATH = 4096
# positions in the arguments; a call with a path begins with the folder's descriptor
_FD, _PATH, _TIMES, _FLAGS = range(4)
_USER, _GROUP = 1, 2  # of fchown
_OWN = b"/proc/self/fd/"
_EPERM, _ENOENT, _EBADF, _EFAULT = 1, 2, 9, 14


class Modes:
    """Answers the system calls of one tool call that the filter hands over.

    listener  descriptor of the filter
    uid       user of the tools when the agent is root, or None
    """

    def __init__(self, listener: int, uid):
        self._fd = listener
        self._as_root = uid is not None
        self._uid = os.getuid() if uid is None else uid
        self._gid = os.getgid() if uid is None else uid
        self._writable, self._denied = [], []
        self._names = {number: name for name, number in syscalls.NUMBERS.items()}

    def allow(self, plan: dict):
        """Take the writable folders, and the denied paths in them, from *plan*."""
        self._writable = [path for path, writable in plan["allowed"] if writable]
        self._denied = plan["denied"]

    def fileno(self) -> int:
        return self._fd

    def answer(self):
        """Carry out the next system call that waits, or refuse it."""
        data = bytearray(_NOTIFICATION)
        try:
            fcntl.ioctl(self._fd, _RECV, data)
        except OSError:  # the caller has ended
            return
        number, pid, _, call, _, _, *arguments = struct.unpack("=QIIiIQ6Q", data)
        try:
            self._do(number, pid, self._names.get(call, ""), arguments)
            code = 0
        except OSError as e:
            code = -(e.errno or _EPERM)
        except OverflowError:  # the address cannot be valid
            code = -_EFAULT
        try:
            fcntl.ioctl(self._fd, _SEND, struct.pack("=QqiI", number, 0, code, 0))
        except OSError:
            pass

    def _do(self, number: int, pid: int, name: str, arguments: list):
        if name == "chmod":
            arguments = [_CWD] + arguments
        by_path = name in ("chmod", "fchmodat") or name.startswith("utimensat") and arguments[_PATH]
        text = _memory(pid, arguments[_PATH], _MAX_PATH, True) if by_path else b""
        # the C library uses this name for a descriptor that was opened with O_PATH
        own = text[len(_OWN) :] if text.startswith(_OWN) else b""
        if own.isdigit() and len(own) < 10:
            fd = self._copy_descriptor(number, pid, int(own), True)
        elif by_path:
            fd = self._found(number, pid, arguments, name, text)
        else:
            fd = self._copy_descriptor(number, pid, _int(arguments[_FD]), False)
        try:
            status = os.fstat(fd)
            if self._as_root and status.st_uid != self._uid:
                raise OSError(_EPERM, "not the tools' own")
            if name.startswith("utimensat"):
                self._times(fd, pid, name, arguments[_TIMES])
            elif name.startswith("fchown"):
                self._owner(status, name, arguments)
            elif name in ("chmod", "fchmod", "fchmodat"):
                mode = arguments[2 if by_path else 1] & 0o7777
                if mode & 0o6000:
                    raise OSError(_EPERM, "set-user-ID")
                os.chmod("/proc/self/fd/%d" % fd, mode)
            else:
                raise OSError(_EPERM, name)
        finally:
            os.close(fd)

    def _copy_descriptor(self, number: int, pid: int, fd: int, is_named: bool) -> int:
        """Return a copy of descriptor *fd* of thread *pid*.  Raise when its file may not be
        written.

        is_named  bool, the call names it by its path in /proc, so that it may be an O_PATH one
        """
        door = os.pidfd_open(_process_of(pid))
        try:
            ours = syscalls.call("pidfd_getfd", door, fd, 0)
        finally:
            os.close(door)
        try:
            self._check(number)
            flags = fcntl.fcntl(ours, fcntl.F_GETFL)
            if flags & os.O_PATH and not is_named:
                raise OSError(_EBADF, "open for nothing")
            if flags & (os.O_ACCMODE | os.O_PATH) in (os.O_RDONLY, os.O_PATH):
                self._check_writable(ours)
        except OSError:
            os.close(ours)
            raise
        return ours

    def _found(self, number: int, pid: int, arguments: list, name: str, text: bytes) -> int:
        """Return a descriptor (O_PATH) of the file that the path *text* of thread *pid* leads to.
        Raise when it may not be written.
        """
        at = _int(arguments[_FD])
        follow = not (name.startswith("utimensat") and arguments[_FLAGS] & _NOFOLLOW)
        base = os.open(
            "/proc/%d/%s" % (pid, "cwd" if at == _CWD else "fd/%d" % at), os.O_PATH | os.O_CLOEXEC
        )
        try:
            self._check(number)
            how = ctypes.create_string_buffer(
                struct.pack(
                    "=3Q",
                    os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW),
                    0,
                    _NO_MAGICLINKS,
                ),
                24,
            )
            fd = syscalls.call("openat2", base, text, how, 24)
        finally:
            os.close(base)
        try:
            self._check_writable(fd)
        except OSError:
            os.close(fd)
            raise
        return fd

    def _check_writable(self, fd: int):
        """Raise unless the file of *fd* lies in a writable folder."""
        path = os.readlink("/proc/self/fd/%d" % fd)
        if not covers(self._writable, path) or covers(self._denied, path):
            raise OSError(_EPERM, "not to be written")

    def _times(self, fd: int, pid: int, name: str, address: int):
        size = 16 if name == "utimensat" and syscalls.MACHINE == syscalls.ARM else 32
        times = (
            ctypes.create_string_buffer(_memory(pid, address, size, False), size)
            if address
            else None
        )
        syscalls.call(name, _CWD, b"/proc/self/fd/%d" % fd, times, 0)

    def _owner(self, status, name: str, arguments: list):
        short = name == "fchown" and syscalls.MACHINE == syscalls.ARM
        for asked, has, own in (
            (arguments[_USER], status.st_uid, self._uid),
            (arguments[_GROUP], status.st_gid, self._gid),
        ):
            asked = asked & 0xFFFF if short else asked & 0xFFFFFFFF
            if asked not in (0xFFFF if short else 0xFFFFFFFF, has) or asked == has != own:
                raise OSError(_EPERM, "another owner")

    def _check(self, number: int):
        """Raise when the caller has ended: another process may have its pid by now."""
        fcntl.ioctl(self._fd, _VALID, struct.pack("=Q", number))


def _int(word: int) -> int:
    return struct.unpack("=i", struct.pack("=I", word & 0xFFFFFFFF))[0]


def _process_of(thread: int) -> int:
    with open("/proc/%d/status" % thread, "rb") as file:  # its name is any bytes
        for line in file:
            if line.startswith(b"Tgid:"):
                return int(line[5:])
    raise OSError(_ENOENT, "it has ended")


def _memory(pid: int, address: int, size: int, is_text: bool) -> bytes:
    """Return *size* bytes at *address* of thread *pid*.  With *is_text*, return a text of at most
    *size* bytes that ends before a NUL.
    """
    fd = os.open("/proc/%d/mem" % pid, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = b""
        while len(data) < size and not (is_text and b"\0" in data):
            at = address + len(data)
            try:
                # a page at a time: the next page may not be mapped
                part = os.pread(fd, min(size - len(data), 4096 - at % 4096), at)
            # this page is not mapped: /proc gives EIO, the call itself would give EFAULT
            except OSError:
                part = b""
            if not part:
                raise OSError(_EFAULT, "no such address")
            data += part
    finally:
        os.close(fd)
    if not is_text:
        return data
    text, end, _ = data.partition(b"\0")
    if not end or not text:
        raise OSError(_ENOENT, "no path")
    return text
