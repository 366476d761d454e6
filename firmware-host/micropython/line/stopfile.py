"""The stop of a swarm in a file of a board, so that it holds after a restart too (swarmstop.py).
Its first line says why, the rest is the hint.  Loaded when it is read or written, and dropped.

No JSON: what explains a fault of JSON cannot be loaded while a board's agent is put together.
"""

import os
import sys

_NAME = "/stopped"
_ENOENT, _MOST = 2, 1024  # bytes of the file


def read(folder: str) -> tuple:
    """Return (why, hint) of the stop that is kept in *folder*, ("", "") when there is none.  A file
    that cannot be read counts as a stop.
    """
    try:
        with open(folder + _NAME, "rb") as file:
            why, found, hint = str(file.read(_MOST), "utf-8").partition("\n")
        if found:
            return why, hint
    except OSError as e:
        if e.args[0] == _ENOENT:
            return "", ""
    except ValueError:  # no UTF-8
        pass
    return (
        "whether its swarm is stopped cannot be read on this board",
        "start what tells this board of stops: clawlite gateway, or clawlite swarm board",
    )


def keep(folder: str, told: tuple):
    """Let *told* be what ``read`` returns.  Where the flash fails, stderr has it."""
    path, told = folder + _NAME, (told[0].replace("\n", " "), told[1])
    if told == read(folder):
        return
    try:
        if told[0]:
            with open(path + ".new", "w") as file:
                file.write("%s\n%s" % told)
            os.rename(path + ".new", path)
        else:
            os.remove(path)
    except OSError as e:
        sys.stderr.write("clawlite: a restart will forget what was heard of a stop: %s\n" % e)
