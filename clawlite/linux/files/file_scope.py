"""What the file tools of a sandbox may reach: its mounts, its denied paths, and the names of hard
links.

1. The text of a path is normalised as policy does it (core/policy/policy.py), so that both mean the
   same file.
2. The real target of a path decides (path_walk.py): the mount there, and the denied paths, by each
   name that mounts give them (mounts.py) and by identity (another case on a file system that
   ignores it).
3. Nothing but the mount table is remembered: a Scope is made for each call.
"""

import os
import stat

from clawlite.core.base.errors import SandboxDenied
from clawlite.core.policy.policy import is_within, normalise
from clawlite.linux.files import mounts, quota
from clawlite.linux.files.path_walk import OpenEntry, PathWalk, printable_path
from clawlite.linux.files.real_path import resolve
from clawlite.protocols.sandbox import profile as P

MAX_NAMES = 20000  # entries that are looked at for the other names of a hard link


class Scope:
    """What a ``Profile`` lets file tools reach.

    workspace  absolute path of the folder that /workspace and relative paths mean
    hidden     paths that are denied beside the profile's (the agent's own state), but for the
               workspace in them
    decided    where policy saw the path of this call lead (/workspace for the workspace): it has to
               lead there still; None: anywhere
    most       bytes that the files of the workspace may have together, or None
    table      ``mounts.Table``, or None: all names of what is denied are among the profile's

    denied     real paths of what is denied, by each of its names
    processes  where a proc(5) is mounted beside /proc, and nobody wished to see it
    """

    def __init__(
        self,
        profile,
        workspace: str,
        hidden: list = (),
        decided=None,
        most=None,
        table=mounts.own_table,
    ):
        self.workspace = resolve(workspace)
        self.mode = profile.files
        self._whole = profile.files == P.FULL or profile.files == P.READ_ONLY and not profile.mounts
        writes = profile.files in (P.SCOPED, P.FULL)
        declared = (
            [("/", True)] if self._whole else profile.mounts if profile.files != P.DENY else []
        )
        self._named = []  # (path as it was declared, its root)
        # (root, writable); the longest first: the first that holds a path is the innermost
        self._mounts = []
        for path, writable in sorted(
            [(self._virtual(path), writable) for path, writable in declared],
            key=lambda mount: len(mount[0]),
        ):
            root = self._root_of(path)
            self._named.insert(0, (path, root))
            self._mounts.insert(0, (root, bool(writable) and writes))
        self._hidden = [resolve(path) for path in hidden]
        self.denied, self.processes = [], []
        self._identities = set()
        for text in profile.denied:
            named = self.real(text)
            self.denied += [named, resolve(named)]
            try:
                self._identities.add(_identity(os.stat(named)))
            except OSError:  # it is not there: its name still counts
                pass
        if table is not None:
            self.denied += table.other_names(self.denied) + table.other_names(
                self._hidden, self.workspace
            )
            self.processes = [
                point
                for point in table.processes()
                if point not in [root for root, _ in self._mounts]
            ]
        self._decided = None if decided is None else self.real(decided)
        self._most = most

    def _root_of(self, path: str) -> str:
        """Return where a declared mount really lies.  Below a mount where tools may write, no
        link counts: it may be theirs.
        """
        for root, writable in self._mounts:
            if writable and is_within(path, root):
                return path
        return resolve(path)

    def _virtual(self, path: str) -> str:
        path = normalise(path, self.workspace) or "/"
        return (
            normalise(self.workspace + path[len("/workspace") :])
            if is_within(path, "/workspace")
            else path
        )

    def real(self, path: str) -> str:
        """Return the absolute path that a normalised or absolute *path* means: /workspace and
        links above mounts replaced.
        """
        path = self._virtual(path)
        for named, root in self._named:
            if is_within(path, named):
                return normalise(root + "/" + path[len(named) :])
        return path

    def resolve_alias(self, target: str) -> str:
        """Return *target*, the text of a link, with a name of a mount at its start replaced by
        where that lies.
        """
        for named, root in [("/workspace", self.workspace)] + self._named:
            if is_within(target, named):
                return root + "/" + target[len(named) :]
        return target

    def find(self, path: str, make: bool = False) -> OpenEntry:
        """Return where *path* leads; the caller closes it.

        make  make the folders on the way that are missing, where the mount is writable
        Raises ``SandboxDenied`` for what is outside or denied, ``ClawError`` for what is not there
        or no folder."""
        if self.mode == P.DENY:
            raise SandboxDenied(
                "%s: this sandbox has no files" % printable_path(path),
                "give it capabilities.filesystem: {mode: scoped, mount_paths: [...]}",
                {"reason": "no files"},
            )
        if normalise(path) is None:
            raise SandboxDenied(
                "%s: this path names no file" % printable_path(path),
                "name a file, relative to the workspace",
                {"reason": "no path"},
            )
        found = PathWalk(self, path, make).run()
        try:
            self.check_decided(found.path)
        except SandboxDenied:
            os.close(found.folder)
            raise
        return found

    def check_decided(self, path: str) -> None:
        """Raise ``SandboxDenied`` when *path*, without links, is not where policy saw the call's
        path lead.
        """
        if self._decided is not None and path != self._decided:
            raise SandboxDenied(
                "%s: a link leads there now, and led to %s when policy decided"
                % (printable_path(path), printable_path(self._decided)),
                "try again: policy decides again",
                {"reason": "link changed"},
            )

    def check_room(self, found: OpenEntry, size: int) -> None:
        """Raise ``ClawError`` when the workspace has no room for *size* bytes in place of what
        was *found*.
        """
        if self._most is not None and is_within(found.path, self.workspace):
            quota.check(
                self.workspace,
                self._most,
                size - (found.status.st_size if found.status is not None else 0),
            )

    def mount_of(self, path: str):
        """Return (root, writable) of the innermost mount that holds *path*, or None."""
        for mount in self._mounts:
            if is_within(path, mount[0]):
                return mount
        return None

    def leads_to_mount(self, path: str) -> bool:
        """Return whether *path* is above a mount: a folder that is passed and never looked into."""
        for root, _ in self._mounts:
            if is_within(root, path):
                return True
        return False

    def is_denied(self, path: str, status=None, passing: bool = False) -> bool:
        """Return whether *path* (absolute, without links), or what has *status* there, is denied.

        passing  the path goes on below: what is above the workspace may be passed
        """
        for denied in self.denied + self.processes:
            if is_within(path, denied):
                return True
        for hidden in self._hidden:
            if is_within(path, hidden) and not (
                is_within(self.workspace, hidden)
                and (is_within(path, self.workspace) or passing and is_within(self.workspace, path))
            ):
                return True
        if path.startswith("/proc/") and (
            path[6:].partition("/")[0].isdigit() or path[6:].startswith(("self", "thread-self"))
        ):
            return True  # environments, memory, descriptors of processes
        return status is not None and _identity(status) in self._identities

    def check_names(self, found: OpenEntry) -> None:
        """Raise ``SandboxDenied`` when the file has a name (a hard link) that this scope does not
        reach.

        Cost  none for a file with one name; else at most MAX_NAMES entries are looked at.
        """
        status = found.status
        if status is None or status.st_nlink < 2 or not stat.S_ISREG(status.st_mode):
            return
        if self._whole and not self.denied and not self._hidden:
            return
        if self._whole or self._names_of(status) != status.st_nlink:
            raise SandboxDenied(
                "%s: it has another name (a hard link) outside what this sandbox "
                "reaches" % printable_path(found.path),
                "copy it, and work on the copy",
                {"reason": "hard link"},
            )

    def _names_of(self, status) -> int:
        """Return how many names the file of *status* has in the mounts, denied folders left out;
        -1 where there are too many to be looked at.
        """
        count = seen = 0
        roots = [root for root, _ in self._mounts]
        for root in roots:
            count += self._is_same(root, status)  # a mount may be a file
            for _, entries, names in quota.walk(root):
                at = root.rstrip("/") + names + "/"
                # a mount below this one is looked into by itself
                entries[:] = [
                    one
                    for one in entries
                    if at + one.name not in roots and not self.is_denied(at + one.name)
                ]
                seen += sum(not one.is_dir(follow_symlinks=False) for one in entries)
                if seen > MAX_NAMES:
                    return -1
                count += sum(_is_named(entry, status) for entry in entries)
        return count

    def _is_same(self, path: str, status) -> bool:
        try:
            return not self.is_denied(path) and _identity(os.lstat(path)) == _identity(status)
        except OSError:
            return False


def _is_named(entry, status) -> bool:
    try:
        return _identity(entry.stat(follow_symlinks=False)) == _identity(status)
    except OSError:
        return False


def _identity(status) -> tuple:
    return status.st_dev, status.st_ino
