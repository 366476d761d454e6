"""The ``main`` of a slot whose modules are packed into one file: as single files they leave more
than half of their blocks of flash empty (host/firmware/board_files.py makes both).

    /claw-a/main.mpy   this module
    /claw-a/modules    a line, "/NAME.OFFSET" for each module and "/" at its end; then the modules,
                       as ``.mpy`` files have them.  Offsets are decimal bytes from the line's end

1. This module is itself the file system from which MicroPython imports what is packed: MicroPython
   calls ``mount``, ``stat``, ``open`` and ``umount`` of it.  A loader reads one module and no byte
   behind it counts, so ``open`` returns the file itself at the module's first byte.
2. The runtime's own ``main`` is packed, too, and takes this module's place in ``sys.modules``.
3. bootwindow.py has compared both files with the slot's list, and needs to know nothing of packs.
   So one that is older or newer boots this slot, and the other slot may have single files.
4. When the agent cannot be opened, nothing of the pack is left in the way of the other slot.
"""

import io
import os
import sys

_FOLDER = __file__.rpartition("/")[0]
_POINT = _FOLDER + "/m"
_ENOENT = 2


def attempt(*arguments) -> tuple:
    """Return what ``attempt`` of runtime/main.py does."""
    global run
    device = None
    try:
        import main

        run = main.run
        device, why = main.attempt(*arguments)
        return device, why
    finally:
        if device is None:
            sys.path.remove(_POINT)
            os.umount(_POINT)


def mount(*_):
    """Do nothing: the file is there already."""


umount = mount


def stat(path: str) -> tuple:
    """Return that *path* is a file.  Raises ``OSError`` for what is not packed."""
    if path[-4:] != ".mpy" or path[:-3] not in _INDEX:
        raise OSError(_ENOENT)
    return (0x8000, 0, 0, 0, 0, 0, 0, 0, 0, 0)


def open(path: str, mode: str):
    """Return the file of *path*: a module of the pack, or another file of the slot."""
    if path[-4:] != ".mpy":
        return io.open(_FOLDER + path, mode)
    begin = _INDEX.index(path[:-3]) + len(path) - 3
    file = io.open(_FOLDER + "/modules", mode)
    file.seek(len(_INDEX) + int(_INDEX[begin : _INDEX.index("/", begin)]))
    return file


def _index() -> str:
    with io.open(_FOLDER + "/modules", "rb") as file:
        return str(file.readline(), "utf-8")


_INDEX = _index()
del _index
os.mount(sys.modules.pop(__name__), _POINT)
sys.path.insert(0, _POINT)
