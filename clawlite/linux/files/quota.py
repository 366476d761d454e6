"""Room: how much a workspace may hold (``max_size_mb`` of the store that it is), and how much it
does.
"""

import os

from clawlite.core.base.errors import ClawError
from clawlite.linux.files.real_path import open_real

# folders in one another that are looked into; each is an open descriptor
MAX_DEPTH = 64
# bytes that one counts which cannot be looked into: no workspace may have it, and one that has may
# not have more
UNSEEN = 1 << 63

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def walk(top, at=None, depth: int = 0, names: str = ""):
    """Yield (descriptor, its ``os.DirEntry`` list, names from *top* to it) of the folder *top*, and
    of those below, as long as each is asked for.  The names are a text such as "/a/b".  What the
    caller removes from the list is not looked into.

    top  a descriptor, or a real path (real_path.py): where a link stands in it now, somebody has
         exchanged a folder
    No link is followed.  (None, [], names) stands for a folder that cannot be looked into: closed
    to this user, below MAX_DEPTH others, or a *top* that is a link or no folder."""
    if depth > MAX_DEPTH:
        yield None, [], names
        return
    try:
        if isinstance(top, int):
            fd = os.open(".", _FOLDER, dir_fd=top)
        elif depth:
            fd = os.open(top, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
        else:
            fd = open_real(top, _FOLDER)
    except (FileNotFoundError, NotADirectoryError):  # gone meanwhile
        return
    except OSError:
        yield None, [], names
        return
    try:
        with os.scandir(fd) as found:
            entries = list(found)
        yield fd, entries, names
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from walk(entry.name, fd, depth + 1, names + "/" + entry.name)
    finally:
        os.close(fd)


def size(folder) -> int:
    """Return the bytes of all files below *folder*, a real path or a descriptor; links are not
    followed.  Cost: each file is looked at.
    """
    total = 0
    for fd, entries, _ in walk(folder):
        total += UNSEEN * (fd is None)
        for entry in entries:
            try:
                total += (
                    0
                    if entry.is_dir(follow_symlinks=False)
                    else entry.stat(follow_symlinks=False).st_size
                )
            except FileNotFoundError:  # gone meanwhile
                pass
            except OSError:  # names may be read here, and nothing else
                total += UNSEEN
                break
    return total


def excess_text(used: int, most: int) -> str:
    """Return what is wrong with a workspace of *used* bytes that may have *most*."""
    if used >= UNSEEN:
        return (
            "has folders that cannot be measured (no permission, or nested deeper than "
            "%d); it may have %d bytes" % (MAX_DEPTH, most)
        )
    return "would have %d bytes, and may have %d" % (used, most)


def check(folder: str, most, more: int) -> None:
    """Raise ``ClawError`` when *more* bytes would bring the workspace *folder* over *most*; None
    bounds nothing.
    """
    if most is None or more <= 0:
        return
    used = size(folder) + more
    if used > most:
        raise ClawError(
            "the workspace %s; make files in it shorter, or have some removed"
            % excess_text(used, most)
        )
