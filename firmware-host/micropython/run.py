"""Run an agent from the sources of a checkout, on the unix port of MicroPython: for people who work
on clawlite.  A board gets linked modules instead (clawlite/host/firmware).

    micropython firmware-host/micropython/run.py greenhouse/claw.cbor [--stdio]
"""

import os
import sys

_HERE = __file__.rpartition("/")[0] or "."


def _rooms() -> list:
    """Return the folders beside this file that hold modules of the shell."""
    names = [name for name in sorted(os.listdir(_HERE)) if "." not in name and name != "boot"]
    return [_HERE + "/" + name for name in names]


# replaces this folder, in which ``import net`` would find the folder net
sys.path[0:1] = [_HERE + "/../.."] + _rooms()

from main import main  # noqa: E402 (the path comes first)

sys.exit(main(sys.argv[1:]))
