"""Power cuts that are played: the writes of a real program are recorded, and what a disk may hold
of them is made again.

    ops = recorded(strace's file, root)        what reached the kernel, and what the program said
                                               when
    for point in points(...): image(disk, random, folder)

1. ``strace`` records the system calls of a process and its threads: data, truncation, names, fsync
   and fdatasync, in their order.
2. ``Disk`` plays them.  What was synced is there.  Of what was not, each sector of 512 bytes is one
   of those that it has been, by itself: writes are dropped, torn and reordered.  A size is one that
   the file has had since; where it was cut, what grows again may be zeros.
3. Names last once their folder is synced; of later ones the first so many are there: file systems
   write those in order.
"""

import os
import re

CALLS = (
    "openat,open,creat,write,pwrite64,writev,pwritev,ftruncate,truncate,fallocate,rename,renameat,renameat2,unlink,unlinkat,fsync,fdatasync,"
    "sync_file_range,mkdir,mkdirat,link,linkat"
)
SECTOR = 512
_LINE = re.compile(r"(\d+) +(\w+)\((.*)\) += (-?\d+)")
_BYTE = re.compile(r"\\x([0-9a-f]{2})")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_FD = re.compile(r"(?:AT_FDCWD|\d+)<((?:[^>\\]|\\x[0-9a-f]{2})*)>")


def words(command: list, file) -> list:
    """Return the command line that runs *command* and records it into *file*."""
    return [
        "strace",
        "-f",
        "-qq",
        "-y",
        "-xx",
        "-s",
        "4194304",
        "--seccomp-bpf",
        "-e",
        "trace=" + CALLS,
        "-e",
        "signal=none",
        "-o",
        str(file),
        *command,
    ]


def recorded(file, root: str) -> list:
    """Return what happened below the folder *root*, and what was written to pipes: tuples that
    ``Disk.play`` takes, or ("said", bytes).
    """
    found, begun = [], {}
    for line in open(file, encoding="ascii", errors="surrogateescape"):
        thread, _, rest = line.rstrip("\n").partition(" ")
        rest = rest.strip()
        if rest.endswith("<unfinished ...>"):
            begun[thread] = rest[: -len("<unfinished ...>")]
            continue
        if rest.startswith("<... "):
            rest = begun.pop(thread) + rest.partition("resumed>")[2]
        match = _LINE.match("%s %s" % (thread, rest))
        if match and int(match[4]) >= 0:
            found += _ops(match[2], match[3], int(match[4]), root)
    return found


def _plain(text: str) -> bytes:
    return bytes.fromhex("".join(_BYTE.findall(text)))


def _ops(call: str, arguments: str, value: int, root: str):
    """Yield what one call did, when it is of interest."""
    fds = [_plain(name).decode() if "\\x" in name else name for name in _FD.findall(arguments)]
    texts = [_plain(text) for text in _TEXT.findall(arguments)]
    numbers = arguments.rpartition(", ")[2]
    if call in ("write", "pwrite64"):
        # not the bytes by which threads wake one another
        if fds[0].startswith("pipe:") and texts[0].strip(b"\0"):
            yield "said", texts[0][:value]
        elif _is_below(fds[0], root):
            yield "write", fds[0], int(numbers) if call == "pwrite64" else None, texts[0][:value]
    elif (
        call in ("openat", "open") and "O_CREAT" in arguments and _is_below(_path(fds, texts), root)
    ):
        yield "create", _path(fds, texts), "O_TRUNC" in arguments
    elif call == "ftruncate" and _is_below(fds[0], root):
        yield "size", fds[0], int(numbers)
    elif call in ("fsync", "fdatasync") and _is_below(fds[0], root):
        yield "sync", fds[0]
    elif call in ("rename", "renameat", "renameat2"):
        old, new = [
            os.path.join(fds[n] if n < len(fds) else "", text.decode())
            for n, text in enumerate(texts[:2])
        ]
        if _is_below(new, root):
            yield "rename", old, new
    elif call in ("unlink", "unlinkat") and _is_below(_path(fds, texts), root):
        yield "unlink", _path(fds, texts)
    elif call in ("mkdir", "mkdirat") and _is_below(_path(fds, texts), root):
        yield "mkdir", _path(fds, texts)
    elif call in (
        "writev",
        "pwritev",
        "truncate",
        "fallocate",
        "sync_file_range",
        "creat",
        "link",
        "linkat",
    ):
        assert not any(
            _is_below(path, root) for path in fds + [text.decode("latin-1") for text in texts]
        ), "this call is not played: %s" % call


def _path(fds: list, texts: list) -> str:
    return os.path.join(fds[0] if fds else "", texts[0].decode())


def _is_below(path: str, root: str) -> bool:
    return path.startswith(root) and not path.endswith("-shm")  # shared memory is made anew


class File:
    """One file: what the disk surely has, and what was done to it since."""

    def __init__(self):
        self.now = bytearray()
        self.sure = b""
        self.sectors = {}  # number -> what else it may hold
        self.sizes = []  # that it has had since

    def write(self, at, data: bytes):
        at = len(self.now) if at is None else at
        if at > len(self.now):
            self.now += bytes(at - len(self.now))
        self.now[at : at + len(data)] = data
        for number in range(at // SECTOR, (at + len(data) - 1) // SECTOR + 1):
            self.sectors.setdefault(number, []).append(self._sector(self.now, number))
        self.sizes.append(len(self.now))

    def cut(self, size: int):
        for number in range(size // SECTOR, len(self.now) // SECTOR + 1):
            self.sectors.setdefault(number, []).append(bytes(SECTOR))
        self.now[size:] = bytes(max(0, size - len(self.now)))
        self.sizes.append(size)

    def sync(self):
        self.sure, self.sectors, self.sizes = bytes(self.now), {}, []

    def maybe(self, random, way: str) -> bytes:
        """Return what the disk may hold."""
        if way == "nothing":
            return self.sure
        if way == "all":
            return bytes(self.now)
        size = random.choice([len(self.sure), *self.sizes])
        found = bytearray(self.sure[:size] + bytes(max(0, size - len(self.sure))))
        for number, versions in self.sectors.items():
            chosen = random.choice([self._sector(self.sure, number), *versions])
            found[number * SECTOR : (number + 1) * SECTOR] = chosen
        return bytes(found[:size])

    @staticmethod
    def _sector(data, number: int) -> bytes:
        return bytes(data[number * SECTOR : (number + 1) * SECTOR]).ljust(SECTOR, b"\0")


class Disk:
    """All files and folders below *root*."""

    def __init__(self, root: str):
        self._root = root
        # path -> File, or None for a folder; what became of names since
        self._now, self._sure, self._names = {}, {}, []

    def play(self, op: tuple):
        kind, path = op[0], op[1]
        if kind == "create":
            if path not in self._now:
                self._name("add", path, File())
            elif op[2]:
                self._now[path].cut(0)
        elif kind == "write":
            self._now[path].write(op[2], op[3])
        elif kind == "size":
            self._now[path].cut(op[2])
        elif kind == "mkdir":
            self._name("add", path, None)
        elif kind == "unlink":
            self._name("remove", path, None)
        elif kind == "rename":
            self._name("add", op[2], self._now[path])
            self._name("remove", path, None)
        elif kind == "sync" and self._now.get(path) is not None:
            self._now[path].sync()
        elif kind == "sync":
            last = [each for each in self._names if os.path.dirname(each[1]) == path]
            self._names = [each for each in self._names if os.path.dirname(each[1]) != path]
            for each in last:
                self._apply(self._sure, each)

    def image(self, random, folder: str, way: str):
        """Make in *folder* what may be found after a power cut now.  *way*: "nothing" or "all"
        of what was not synced, or "some".
        """
        names, count = dict(self._sure), len(self._names)
        for each in self._names[
            : 0 if way == "nothing" else count if way == "all" else random.randrange(count + 1)
        ]:
            self._apply(names, each)
        for path, file in sorted(names.items()):
            there = folder + path[len(self._root) :]
            if file is None:
                os.makedirs(there, exist_ok=True)
            # else its folder's name is not there
            elif os.path.isdir(os.path.dirname(there)):
                with open(there, "wb") as out:
                    out.write(file.maybe(random, way))

    def _name(self, *each):
        self._apply(self._now, each)
        self._names.append(each)

    @staticmethod
    def _apply(names: dict, each: tuple):
        kind, path, file = each
        if kind == "add":
            names[path] = file
        else:
            names.pop(path, None)
