"""Remove the private folder of a call in profile L after the call, whatever modes, links and depth
a tool gave its contents.

No path is looked up twice and no link is followed: entries are removed by the open descriptor of
their folder.  A folder inside is emptied by moving its own folders up to the top, so that two
descriptors are enough for any depth.
"""

import os

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove(path: str) -> None:
    """Remove the folder *path* and its contents as far as possible.  No process uses it any
    more.
    """
    try:
        os.rmdir(path)
        return
    except OSError:  # something is in it
        pass
    top = _open(path, None)
    if top is None:
        return
    try:
        left = [name for name in os.listdir(top) if not _unlink(name, top)]
        while left:
            left = [name for one in left for name in _empty(one, top)]
    finally:
        os.close(top)
    try:
        os.rmdir(path)
    except OSError:
        pass


def _empty(name: str, top: int):
    """Empty and remove the folder *name* of *top*.  Its own folders are moved up to *top*; return
    their new names there.
    """
    moved = []
    fd = _open(name, top)
    if fd is None:
        return moved
    try:
        for inner in os.listdir(fd):
            if not _unlink(inner, fd):
                own = _open(inner, fd)  # makes it writable: a folder that is not cannot be moved
                if own is not None:
                    os.close(own)
                new = os.urandom(12).hex()
                os.rename(inner, new, src_dir_fd=fd, dst_dir_fd=top)
                moved.append(new)
        os.rmdir(name, dir_fd=top)
    except OSError:  # it stays
        pass
    finally:
        os.close(fd)
    return moved


def _unlink(name: str, folder: int) -> bool:
    """Remove the file *name*.  Return False when it is a folder, else True, even when removing it
    failed.
    """
    try:
        os.unlink(name, dir_fd=folder)
    except IsADirectoryError:
        return False
    except OSError:
        pass
    return True


def _open(name: str, folder):
    """Give the owner all rights to the folder *name* and return its descriptor; None when it is no
    folder.
    """
    try:
        path = os.open(name, os.O_PATH | _FOLDER, dir_fd=folder)
    except OSError:
        return None
    try:
        os.chmod("/proc/self/fd/%d" % path, 0o700)
        return os.open("/proc/self/fd/%d" % path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    finally:
        os.close(path)
