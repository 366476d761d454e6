"""A checkout in a home folder that is closed to others (mode 0700, the usual), as other users see
it while the tests run: open.

Tests of root start agents as other users, which need the interpreter, its packages and the checkout
at the paths that root has.  So root's run gets a mount table of its own, in which each closed
folder above them is covered by an empty one that others may enter, with the same entries bound into
it.  The folder itself is not changed, nobody else sees the cover, and it goes with the run.
"""

import ctypes
import importlib.util
import os
import stat
import sys
from pathlib import Path

_NEWNS = 0x20000
_BIND, _REC, _PRIVATE = 4096, 16384, 1 << 18


def closed(places: list) -> list:
    """Return the folders above *places*, and these themselves, that others may not enter: the
    uppermost first.
    """
    found = {}
    for place in places:
        for folder in [*reversed(place.parents), place]:
            if folder not in found:
                found[folder] = not folder.stat().st_mode & stat.S_IXOTH
    return [folder for folder in sorted(found, key=lambda one: len(one.parts)) if found[folder]]


def places() -> list:
    """Return the folders that a test's program of another user needs."""
    checkout = Path(importlib.util.find_spec("clawlite").origin).resolve().parents[1]
    found = [checkout, Path(sys.prefix), Path(sys.base_prefix)]
    return [*found, Path(os.path.realpath(sys.executable)).parent]


def open_for_others(wanted: list) -> str:
    """Let others enter what is *closed* above the folders *wanted*, for this process and what it
    starts.

    Return "" when they can, or when this process is not root and starts nothing as another user;
    else the sentence that says what is missing.
    """
    folders = closed(wanted) if os.geteuid() == 0 else []
    if not folders:
        return ""
    try:
        _call("unshare", _NEWNS)
        _mount(b"/", b"/", _REC | _PRIVATE)
        here = os.getcwd()
        for folder in folders:
            _cover(folder)
        os.chdir(here)
    except OSError as e:
        return (
            "%s: expected a folder that other users may enter (tests of root run programs as other "
            "users), got mode %o, and no mount table of its own for this run: %s - clone into "
            "another folder, or run the tests as an ordinary user"
            % (folders[0], stat.S_IMODE(folders[0].stat().st_mode), e.strerror)
        )
    return ""


def _cover(folder: Path) -> None:
    """Mount an open folder over *folder*, with the same entries."""
    below = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        names = os.listdir("/proc/self/fd/%d" % below)
        _mount(b"tmpfs", os.fsencode(folder), 0, b"tmpfs", b"mode=755")
        for name in names:
            old, new = "/proc/self/fd/%d/%s" % (below, name), folder / name
            mode = os.lstat(old).st_mode
            if stat.S_ISLNK(mode):
                new.symlink_to(os.readlink(old))
                continue
            if stat.S_ISDIR(mode):
                new.mkdir()
            else:
                new.touch()
            _mount(os.fsencode(old), os.fsencode(new), _BIND | _REC)
    finally:
        os.close(below)


def _mount(source: bytes, target: bytes, flags: int, kind=None, options=None) -> None:
    _call("mount", source, target, kind, ctypes.c_ulong(flags), options)


def _call(name: str, *arguments) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, "%s: %s" % (name, os.strerror(number)))
