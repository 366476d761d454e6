"""A file system that ignores case, as USB sticks have it: read-only, served by a thread of the
test over /dev/fuse.
"""

import errno
import os
import struct
import subprocess
import sys
import threading

_INIT, _LOOKUP, _GETATTR, _OPEN, _READ, _OPENDIR, _READDIR = 26, 1, 3, 14, 15, 27, 28
_NO_ANSWER, _EMPTY = (2, 42), (18, 29, 25, 34)  # forget; release, releasedir, flush, access
_MOUNT = (
    "import ctypes, sys; libc = ctypes.CDLL(None, use_errno=True); "
    "sys.exit(libc.mount(b'caseless', sys.argv[1].encode(), b'fuse', 0, "
    "b'fd=%s,rootmode=40000,user_id=0,group_id=0,allow_other' % sys.argv[2].encode())"
    " and ctypes.get_errno())"
)


class Caseless:
    """*tree*: {name: {...} or bytes}; mounted at *target* in the mount table of process *pid*,
    and gone with it.
    """

    def __init__(self, tree: dict, target, pid: int):
        self._nodes = [None, tree]
        self._fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()  # it is asked before mount(2) comes back
        subprocess.run(
            [
                "nsenter",
                "--mount",
                "--target",
                str(pid),
                sys.executable,
                "-c",
                _MOUNT,
                str(target),
                str(self._fd),
            ],
            check=True,
            pass_fds=[self._fd],
        )

    def _serve(self):
        while True:
            try:
                data = os.read(self._fd, 1 << 20)
            except OSError as e:
                if e.errno == errno.EPERM:  # not mounted yet
                    continue
                if e.errno in (errno.ENOENT, errno.EINTR):
                    continue
                break
            _, code, unique, node = struct.unpack_from("=IIQQ", data)
            if code in _NO_ANSWER:
                continue
            try:
                answer, number = self._answer(code, node, data[40:]), 0
            except OSError as e:
                answer, number = b"", -e.errno
            try:
                os.write(self._fd, struct.pack("=IiQ", 16 + len(answer), number, unique) + answer)
            except OSError:  # whoever asked has gone
                pass
        fd, self._fd = self._fd, -1
        os.close(fd)

    def _answer(self, code: int, node: int, data: bytes) -> bytes:
        if code == _INIT:
            return struct.pack("=IIIIHHIIHHI28x", 7, 31, 65536, 0, 12, 9, 65536, 1, 0, 0, 0)
        if code in _EMPTY:
            return b""
        if code in (_OPEN, _OPENDIR):
            return struct.pack("=QII", 0, 0, 0)
        thing = self._nodes[node]
        if code == _LOOKUP:
            name = data.rstrip(b"\0").decode()
            found = next((thing[one] for one in thing if one.lower() == name.lower()), None)
            if found is None:
                raise OSError(errno.ENOENT, name)
            return struct.pack("=QQQQII", self._number(found), 0, 60, 60, 0, 0) + self._attributes(
                found
            )
        if code == _GETATTR:
            return struct.pack("=QII", 60, 0, 0) + self._attributes(thing)
        offset, size = struct.unpack_from("=8xQI", data) if code in (_READ, _READDIR) else (0, 0)
        if code == _READ:
            return thing[offset : offset + size]
        if code == _READDIR:
            entries = b""
            for index, name in enumerate(list(thing)[offset:], offset + 1):
                raw = name.encode()
                entries += (
                    struct.pack("=QQII", self._number(thing[name]), index, len(raw), 0)
                    + raw
                    + bytes(-len(raw) % 8)
                )
            return entries
        raise OSError(errno.ENOSYS, "not here")

    def _number(self, thing) -> int:
        for number, one in enumerate(self._nodes):
            if one is thing:
                return number
        self._nodes.append(thing)
        return len(self._nodes) - 1

    def _attributes(self, thing) -> bytes:
        is_folder = isinstance(thing, dict)
        return struct.pack(
            "=QQQQQQIIIIIIIIII",
            self._number(thing),
            0 if is_folder else len(thing),
            1,
            0,
            0,
            0,
            0,
            0,
            0,
            0o40755 if is_folder else 0o100644,
            2 if is_folder else 1,
            0,
            0,
            0,
            512,
            0,
        )
