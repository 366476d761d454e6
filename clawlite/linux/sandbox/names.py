"""The other names of denied files: when a call can reach a denied file by another name, that name
is denied, too.  Other names are:

1. Another spelling, as the folder lists it, on a file system that ignores case.
2. Another mount of the same files (linux/files/mounts.py), as of the call's start, and other mounts
   of /proc unless they were declared.  In profile N, later mounts do not appear in the sandbox.
3. Hard links of denied files, and of files in denied folders of at most MAX_BELOW entries.  They
   are searched for in the mounted folders.  When they cannot all be found, the call is refused:
   the kernel denies a name here, and would open the file by any other name.  The built-in file
   tools check hard links themselves (linux/files/file_scope.py).
"""

import os
import stat

from clawlite.linux.files.mounts import TABLE
from clawlite.linux.files.real_path import covers
from clawlite.linux.sandbox.plan import SYSTEM, Refused, masks, pins

# entries of mounted folders that are searched for other names of denied files
MAX_NAMES = 20000
MAX_BELOW = 256  # entries of a denied folder whose files' hard links are searched for


def deny(plan: dict, table, root: str) -> None:
    """Add the other names of its denied and hidden paths to *plan*.

    table  ``mounts.Table``
    root   where the root of all those paths is now
    Raises ``Refused``.
    """
    if not table.refresh():
        raise Refused(
            "it is unknown what is mounted twice, because %s cannot be read" % TABLE,
            "mount a /proc",
        )
    also = [
        path
        for path in (_match_case(path, root) for path in plan["denied"])
        if path not in plan["denied"]
    ]
    also += table.other_names(plan["denied"] + also) + table.other_names(
        plan["hidden"], plan["folder"]
    )
    also += [
        point
        for point in table.processes()
        if all(source != point for source, _, _ in plan["mounts"])
    ]
    for path in (
        [source for source, _, _ in plan["mounts"]]
        + [path for path in SYSTEM if os.path.isdir(root + path)]
        if also
        else ()
    ):
        if covers(also, path) and not covers(plan["denied"], path):
            raise Refused(
                "%s shows a denied path under another name: both are mounts of the same "
                "files" % path,
                "deny a smaller folder, or mount another one; findmnt shows what is mounted where",
            )
    if plan["kind"] != "builtin" and plan["denied"] + also:
        also += _hard_links(plan, plan["denied"] + also, root)
    if also:
        plan["denied"] = plan["denied"] + also
        plan["masks"] = plan["masks"] + masks(
            plan["mounts"], also, [], plan["folder"], plan["whole"]
        )
        plan["pins"] = pins(plan["mounts"], plan["masks"], plan["whole"])


def _match_case(path: str, root: str) -> str:
    """Return *path* as its folders list it.  On a file system that ignores case, the spelling may
    differ.
    """
    at = ""
    for name in path.split("/")[1:]:
        try:
            status, other = (
                os.lstat("%s%s/%s" % (root, at, name.swapcase())),
                os.lstat("%s%s/%s" % (root, at, name)),
            )
            if name != name.swapcase() and os.path.samestat(status, other):
                listed = (
                    os.path.basename(one)
                    for one, _, found in _entries(root + at)
                    if os.path.samestat(found, status)
                )
                name = next(listed, name)
        except OSError:  # one of the two does not exist: the usual case
            pass
        at += "/" + name
    return at


def _hard_links(plan: dict, denied: list, root: str) -> list:
    """Return the names of denied files in the mounted folders that no denied path covers."""
    several = _several(denied, root)
    if not several:
        return []
    found, looked = [], 0
    tops = {source for source, _, _ in plan["mounts"]} - set(plan["python"])
    todo = (
        [] if plan["whole"] else [root + top for top in tops if not covers(list(tops - {top}), top)]
    )
    while todo and looked <= MAX_NAMES:
        for path, is_folder, status in _entries(todo.pop()):
            looked += 1
            if looked > MAX_NAMES:
                break
            if is_folder and not covers(denied, path[len(root) :]):
                todo.append(path)
            elif (status.st_dev, status.st_ino) in several and not covers(
                denied, path[len(root) :]
            ):
                found.append(path[len(root) :])
    name = next(
        (name for name in several.values() if covers(SYSTEM, name)), next(iter(several.values()))
    )
    if plan["whole"] or looked > MAX_NAMES or covers(SYSTEM, name):
        raise Refused(
            "the denied file %s has other names (hard links), which cannot all be found "
            "in what this sandbox shows" % name,
            "give it one name (cp FILE NEW; mv NEW FILE), deny the others (find / -xdev "
            "-samefile FILE), or mount a smaller folder",
        )
    return found


def _several(denied: list, root: str) -> dict:
    """Return {(device, inode): name} of the denied files that have a name outside the denied paths,
    as far as they can be inspected.
    """
    seen = {}
    for path in denied:
        inner, todo, count = {}, [root + path], 0
        while todo and count <= MAX_BELOW:
            for name, is_folder, status in _entries(todo.pop()):
                count += 1
                if is_folder:
                    todo.append(name)
                elif stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                    inner[name] = status
                if count > MAX_BELOW:
                    inner.clear()
                    break
        for name, status in inner.items():
            seen.setdefault((status.st_dev, status.st_ino), {})[name[len(root) :]] = status.st_nlink
    return {
        one: next(iter(names)) for one, names in seen.items() if max(names.values()) > len(names)
    }


def _entries(path: str):
    """Yield (path, whether it is a folder, its ``os.stat_result``) of each entry of a folder, or of
    *path* itself when it is a file.  Skip whatever cannot be inspected.
    """
    try:
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode):
            yield path, False, status
            return
        with os.scandir(path) as found:
            for entry in found:
                try:
                    yield (
                        entry.path,
                        entry.is_dir(follow_symlinks=False),
                        entry.stat(follow_symlinks=False),
                    )
                except OSError:  # gone meanwhile
                    pass
    except OSError:
        pass
