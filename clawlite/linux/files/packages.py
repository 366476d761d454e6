"""Where this package lies, and the command that installs another one on this machine, for the hint
where that is missing.
"""

import os
import sys

# the folder clawlite
PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# {extra of clawlite: what pip installs for it}; a test holds it to pyproject.toml
PACKAGES = {
    "crypto": "cryptography>=50",
    "mqtt": "paho-mqtt>=2.0",
    "nats": "nats-py>=2.9",
    "redis": "redis>=5",
    "vectors": "sqlite-vec>=0.1.6",
}


def install(extra: str) -> str:
    """Return the command that installs the package of the extra *extra* for the Python that runs
    here.

    The package is named, and not ``clawlite[extra]``: pip finds clawlite in no index, and on a
    flashed Raspberry Pi it is not installed.  The Python of Debian and of Raspberry Pi OS refuses
    pip unless it is told to go on (PEP 668).
    """
    managed = "" if _is_venv() or not _is_managed() else " --break-system-packages"
    sudo = "sudo " if managed else ""
    return "%s%s -m pip install%s '%s'" % (sudo, sys.executable, managed, PACKAGES[extra])


def _is_venv() -> bool:
    folder = os.path.dirname(os.path.dirname(os.path.abspath(sys.executable)))
    return os.path.exists(os.path.join(folder, "pyvenv.cfg"))


def _is_managed() -> bool:
    # not sysconfig, which costs more than the hint: os.py lies in the same folder
    return os.path.exists(os.path.join(os.path.dirname(os.__file__), "EXTERNALLY-MANAGED"))
