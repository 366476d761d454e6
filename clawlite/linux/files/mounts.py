"""The other names of files that are mounted more than once, from the mount table
(proc_pid_mountinfo(5)).

1. They come from a bind mount of a folder or file, of a folder above it or of a part of it, from a
   subvolume of btrfs, from a mount inside it that is also elsewhere, and from the layers of an
   overlay.
2. The table is read again when the kernel says that it has changed (poll(2)), or when a name leads
   to another file than before: renaming a folder above a mount does not count as a change.
"""

import os
import select

from clawlite.core.policy.policy import is_within

_DEVICE, _ROOT, _POINT, _LAYERS = range(4)  # of a row

TABLE = "/proc/self/mountinfo"
_MOST_READ = 65536
_KEPT = 64


class Table:
    """The mount table of this process, or the one in the file *path*.

    under  the folder that is the root of all names; mounts outside of it are ignored
    """

    def __init__(self, path: str = TABLE, under: str = ""):
        self._path, self._under = path, under
        self._fd = self._poll = None
        self._twice = set()  # devices with more than one mount
        self._again = False  # something may have another name
        # (device, its folder there, where it is mounted, layers of an overlay; None: a proc(5))
        self._rows = []
        self._processes = []  # where a proc(5) is mounted
        self._known = {}  # (paths, but) -> [(other name, what it is or None)]

    def refresh(self) -> bool:
        """Read the table when it was not read yet, or has changed.  Return False when it cannot be
        read.  Cost when it has not changed: one system call.
        """
        try:
            if self._fd is None:
                self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
                self._poll = select.poll()
                self._poll.register(self._fd, select.POLLPRI)
                self._read()
            elif self._poll.poll(0):
                self._read()
        except OSError:  # there is no /proc
            self._rows = []
        return bool(self._rows)

    def _read(self) -> None:
        os.lseek(self._fd, 0, os.SEEK_SET)
        parts = []
        while not parts or parts[-1]:
            parts.append(os.read(self._fd, _MOST_READ))
        self._rows = [
            row for row in map(self._row, os.fsdecode(b"".join(parts)).split("\n")) if row
        ]
        self._processes = [row[_POINT] for row in self._rows if row[_LAYERS] is None]
        devices = [row[_DEVICE] for row in self._rows]
        self._twice = {device for device in devices if devices.count(device) > 1}
        self._again = bool(self._twice) or any(row[_LAYERS] for row in self._rows)
        self._known.clear()

    def _row(self, line: str):
        words = [unescape(word) for word in line.split(" ")]
        point = words[4] if len(words) > 4 else ""
        if not point or not is_within(point, self._under or "/"):
            return None
        end = words.index("-") if "-" in words else len(words)
        kind = words[end + 1 : end + 2]
        return (
            words[2],
            words[3],
            point[len(self._under) :] or "/",
            None if kind == ["proc"] else _layers(words[-1]) if kind == ["overlay"] else (),
        )

    def other_names(self, paths: list, but=None) -> list:
        """Return the present other names, outside of *paths* (real paths), of these paths and the
        mounts in them.  Files in the folder *but* are ignored.

        Cost  one system call, and two for each of those names, as long as the table is unchanged
        """
        self.refresh()
        key = tuple(paths), but
        if not all(self._leads(*one) for one in self._look_up(key)):
            self._read()
            # the other names are covered by another mount
            self._known[key] = [one for one in self._look_up(key) if self._leads(*one)]
        return [name for name, _ in self._known[key]]

    def processes(self) -> list:
        """Return the mounts of a proc(5) besides /proc, which also show the environments of
        processes.
        """
        self.refresh()
        return [point for point in self._processes if not is_within(point, "/proc")]

    def _look_up(self, key: tuple) -> list:
        if key not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            paths, but = key
            names = [one for path in paths for one in self._names(path, but)] if self._again else ()
            found = {
                name: of for name, of in names if not any(is_within(name, path) for path in paths)
            }
            self._known[key] = list(found.items())
        return self._known[key]

    def _names(self, path: str, but):
        """Yield (other name, what it is or None) of *path*, of what is mounted below it, and of
        what of it is mounted.
        """
        for one in [path] + [
            row[_POINT]
            for row in self._rows
            if row[_POINT] != path
            and is_within(row[_POINT], path)
            and not (but and is_within(row[_POINT], but))
        ]:
            own = max(
                [row for row in reversed(self._rows) if is_within(one, row[_POINT])],
                key=lambda row: len(row[_POINT]),
                default=None,
            )
            if own is None or own[_DEVICE] not in self._twice:
                continue
            inside = _rebase(one, own[_POINT], own[_ROOT])  # its name on its file system
            for device, root, point, _ in self._rows:
                if device == own[_DEVICE] and is_within(inside, root):
                    yield _rebase(inside, root, point), one
                elif (
                    device == own[_DEVICE]
                    and is_within(root, inside)
                    and not (but and is_within(_rebase(root, inside, one), but))
                ):
                    yield point, _rebase(root, inside, one)
        for _, _, point, layers in [row for row in self._rows if row[_LAYERS]]:
            for one, other in [(layer, point) for layer in layers] + [
                (point, layer) for layer in layers
            ]:
                if (
                    path != one
                    and is_within(path, one)
                    and os.path.lexists(self._under + _rebase(path, one, other))
                ):
                    yield _rebase(path, one, other), None

    def _leads(self, name: str, of) -> bool:
        """Return whether *name* and *of* are the same file, or neither exists yet, or this user may
        not see them.
        """
        try:
            return of is None or os.path.samefile(self._under + name, self._under + of)
        except FileNotFoundError:
            return not os.path.exists(self._under + of)
        except OSError:
            return True

    def close(self) -> None:
        """Close the descriptor."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


def _rebase(path: str, root: str, point: str) -> str:
    """Return *path*, which lies in *root*, with *point* in place of *root*."""
    return (point.rstrip("/") + path[len(root.rstrip("/")) :]).rstrip("/") or "/"


def _layers(options: str) -> tuple:
    """Return the folders of an overlay, from its mount options, without relative ones, whose base
    is unknown.
    """
    found = []
    for option in options.split(","):
        key, _, value = option.partition("=")
        if key in ("lowerdir", "upperdir", "lowerdir+"):
            found += [part.replace("\0", ":") for part in value.replace("\\:", "\0").split(":")]
    return tuple(part for part in found if part.startswith("/"))


def unescape(word: str) -> str:
    """Return the path of *word*, which is escaped as in the table."""
    for escape, character in (
        (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")) if "\\" in word else ()
    ):
        word = word.replace(escape, character)
    return word


# the table of this process; a child with another root makes its own after the fork
own_table = Table()
