"""Whether the package under a running agent was replaced (``pip install -U``, an image of a disk).

1. An agent imports what its turns need when they need it.  Once the package is another one, such an
   import would take code of another version, or find none, and a turn would fail for that.
2. So the loop asks ``Watch.is_replaced``, begins nothing more and ends.  What still needs a module
   ends the process at once, as a power cut does: ``PackageReplaced`` is no ``Exception``, so nobody
   takes it for the failure of a turn, and no message counts as done.
3. The package is another one when its first file is: pip removes that, and writes it anew.  That
   file stays open, so that no other one gets its number.
"""

import errno
import os
import sys

_PARTS = ("clawlite.core.", "clawlite.linux.", "clawlite.scan.")
_FIRST = __file__.removesuffix("linux/io/package_check.py") + "__init__.py"
_AGAIN_MS = 200  # from one look of the loop to the next
TEXT = (
    "clawlite was replaced while this agent ran (an update?): it ends, and nothing that it has not "
    "answered is lost - start it again; a service is started by systemd"
)


class PackageReplaced(BaseException):
    """A module is needed that this version of the package does not have any more."""


class Watch:
    """Looks at the package, and stands at both ends of ``sys.meta_path``.

    first  path of the file that is looked at
    """

    def __init__(self, first: str = _FIRST):
        self._path, self._mark, self._fd = first, _mark(first), -1
        self._due_ms = 0
        self._found = False

    def start(self):
        try:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # then its number may come again
            pass
        self._last = _Last()
        sys.meta_path.insert(0, self)
        sys.meta_path.append(self._last)

    def stop(self):
        sys.meta_path.remove(self)
        sys.meta_path.remove(self._last)
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def is_replaced(self, now_ms=None) -> bool:
        """Return whether the package is another one; with *now_ms* the file is looked at a few
        times a second at most.
        """
        if not self._found and (now_ms is None or now_ms >= self._due_ms):
            self._due_ms = (now_ms or 0) + _AGAIN_MS
            self._found = self._mark is not None and _mark(self._path) != self._mark
        return self._found

    def find_spec(self, name: str, path=None, target=None):
        """Let the import go on, unless the package is another one."""
        if name.startswith(_PARTS) and self.is_replaced():
            raise PackageReplaced(name)


class _Last:
    """Asked for what nobody has found: the package is being replaced just now."""

    def find_spec(self, name: str, path=None, target=None):
        if name.startswith(_PARTS):
            raise PackageReplaced(name)


def _mark(path: str):
    """Return what tells the file at *path* from another one; () when it is not there, None when
    that cannot be known.
    """
    try:
        found = os.stat(path)
    except OSError as e:
        return () if e.errno in (errno.ENOENT, errno.ENOTDIR) else None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
