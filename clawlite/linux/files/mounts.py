"""By which other names the same files can be reached: what the mount table shows again
(proc_pid_mountinfo(5)).

1. A folder or file that is mounted elsewhere, with what is around it or in parts, a subvolume of
   btrfs, and what is mounted in it and elsewhere too; what an overlay takes from a folder.
2. The table is read again when the kernel says that it has changed (poll(2)), or when a name leads
   elsewhere than it did: renaming a folder above a mount is no change of the table.
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

    under  the folder that is the root of all names; what is mounted outside of it does not count
    """

    def __init__(self, path: str = TABLE, under: str = ""):
        self._path, self._under = path, under
        self._fd = self._poll = None
        self._twice = set()  # devices of which there are several mounts
        self._again = False  # something may have another name
        # (device, its folder there, where it is mounted, layers of an overlay; None: a proc(5))
        self._rows = []
        self._processes = []  # where a proc(5) is mounted
        self._known = {}  # (paths, but) -> [(other name, what it is or None)]

    def look(self) -> bool:
        """Read the table if that was not done, or if it has changed; False when it cannot be
        read.  Cost when it has not: one system call.
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
        words = [unescaped(word) for word in line.split(" ")]
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

    def others(self, paths: list, but=None) -> list:
        """Return the other names, outside of *paths* (real paths), of what they are or hold, as of
        now; not of what lies in the folder *but*.

        Cost  one system call, and two for each of those names, while the table is as it was
        """
        self.look()
        key = tuple(paths), but
        if not all(self._leads(*one) for one in self._found(key)):
            self._read()
            # the rest has something mounted over it
            self._known[key] = [one for one in self._found(key) if self._leads(*one)]
        return [name for name, _ in self._known[key]]

    def processes(self) -> list:
        """Return where beside /proc a proc(5) is mounted: there, too, are the environments of
        processes.
        """
        self.look()
        return [point for point in self._processes if not is_within(point, "/proc")]

    def _found(self, key: tuple) -> list:
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
            inside = _moved(one, own[_POINT], own[_ROOT])  # its name on its file system
            for device, root, point, _ in self._rows:
                if device == own[_DEVICE] and is_within(inside, root):
                    yield _moved(inside, root, point), one
                elif (
                    device == own[_DEVICE]
                    and is_within(root, inside)
                    and not (but and is_within(_moved(root, inside, one), but))
                ):
                    yield point, _moved(root, inside, one)
        for _, _, point, layers in [row for row in self._rows if row[_LAYERS]]:
            for one, other in [(layer, point) for layer in layers] + [
                (point, layer) for layer in layers
            ]:
                if (
                    path != one
                    and is_within(path, one)
                    and os.path.lexists(self._under + _moved(path, one, other))
                ):
                    yield _moved(path, one, other), None

    def _leads(self, name: str, of) -> bool:
        """Return whether *name* is the same as *of*, or both are not there yet, or what they are
        is nothing that this user may see.
        """
        try:
            return of is None or os.path.samefile(self._under + name, self._under + of)
        except FileNotFoundError:
            return not os.path.exists(self._under + of)
        except OSError:
            return True

    def close(self) -> None:
        """Give the descriptor back."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


def _moved(path: str, root: str, point: str) -> str:
    """Return *path*, which lies in *root*, as what lies in *point*."""
    return (point.rstrip("/") + path[len(root.rstrip("/")) :]) or "/"


def _layers(options: str) -> tuple:
    """Return the folders that an overlay is made of, as it was told; relative ones are nobody's
    names any more.
    """
    found = []
    for option in options.split(","):
        key, _, value = option.partition("=")
        if key in ("lowerdir", "upperdir", "lowerdir+"):
            found += [part.replace("\0", ":") for part in value.replace("\\:", "\0").split(":")]
    return tuple(part for part in found if part.startswith("/"))


def unescaped(word: str) -> str:
    """Return the path that the table writes as *word*."""
    for escape, character in (
        (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")) if "\\" in word else ()
    ):
        word = word.replace(escape, character)
    return word


# the table of this process; a child with another root makes its own after the fork
here = Table()
