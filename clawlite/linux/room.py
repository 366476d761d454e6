"""Room: how much a workspace may hold (``max_size_mb`` of the store that it is), and how much it does."""
import os

from clawlite.core.errors import ClawError


def size(folder) -> int:
    """Return the bytes of all files below *folder*, a path or a descriptor; links are not followed.  Cost: each file is looked at."""
    total = 0
    top, fd = (".", folder) if isinstance(folder, int) else (folder, None)
    for _, folders, names, at in os.fwalk(top, dir_fd=fd):
        for name in names:
            try:
                total += os.stat(name, dir_fd=at, follow_symlinks=False).st_size
            except FileNotFoundError:           # gone meanwhile
                pass
    return total


def check(folder: str, most, more: int) -> None:
    """Raise ``ClawError`` when *more* bytes would bring the workspace *folder* over *most*; None bounds nothing."""
    if most is None or more <= 0:
        return
    used = size(folder) + more
    if used > most:
        raise ClawError("the workspace would have %d bytes, and may have %d; make files in it shorter, or have some removed" % (used, most))
