"""A cache of the code that was linked and compiled for boards: some ten seconds of work, with the
same result for the same sources.

There is one file for each key in ``$CLAWLITE_CACHE``, by default the user's cache folder (XDG); the
newest are kept.  Nothing depends on the cache: an entry that cannot be read or written is rebuilt.
"""

import hashlib
import os
import pathlib
import sys
import zipfile
from collections.abc import Callable
from errno import ENOENT

from clawlite import __version__
from clawlite.core.base.errors import ClawError
from clawlite.host.base.home import base_folder

MOST = 32  # files that are kept: two for each set of modules that is linked, 0.7 MB
# function(), called once before such work is done: a person is told what takes so long
on_miss: Callable[[], None] | None = None


def key(sources: dict, *more: str) -> str:
    """Return the key of the files that are made from *sources*, {module: path}.  It covers these
    modules of the host, their knowledge of ports, and *more*.
    """
    here = pathlib.Path(__file__).parent
    digest = hashlib.sha256(repr((__version__, sys.version_info[:3], more)).encode())
    for name, path in sorted(sources.items()) + [
        ("", path) for path in sorted([*here.glob("*.py"), *here.glob("*.json")])
    ]:
        digest.update(
            b"\0%s\0%s" % (name.encode(), hashlib.sha256(pathlib.Path(path).read_bytes()).digest())
        )
    return digest.hexdigest()


def fetch(key: str):
    """Return {name: bytes} of what was kept under *key*, or None."""
    try:
        with zipfile.ZipFile(_path(key)) as kept:
            found = {name: kept.read(name) for name in kept.namelist()}
        os.utime(_path(key))
        return found
    except (OSError, zipfile.BadZipFile):
        global on_miss
        tell, on_miss = on_miss, None
        if tell is not None:
            tell()
        return None


def keep(key: str, files: dict) -> None:
    """Keep *files*, {name: bytes}, under *key*, whole or not at all."""
    try:
        path = _path(key)
        new = "%s.%d" % (path, os.getpid())
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with zipfile.ZipFile(new, "w") as kept:
            for name, data in files.items():
                kept.writestr(name, data)
        os.replace(new, path)
        others = sorted(
            pathlib.Path(path).parent.glob("*.zip"),
            key=lambda other: other.stat().st_mtime,
            reverse=True,
        )
        for old in others[MOST:]:
            old.unlink()
    except OSError:
        pass


def folder() -> str:
    """Return the folder of all that is kept for boards, there or not."""
    base = os.environ.get("CLAWLITE_CACHE")
    if not base:
        try:
            base = os.path.join(base_folder("XDG_CACHE_HOME", ".cache"), "clawlite")
        except ClawError as e:  # without a home nothing is kept, and builds take longer
            raise FileNotFoundError(ENOENT, e.message) from None
    return os.path.join(base, "firmware")


def _path(key: str) -> str:
    return os.path.join(folder(), key + ".zip")
