"""The stop of a swarm in a file of a board, so that it also holds after a restart (swarmstop.py).
Its first line is the reason, the rest is the hint.  Loaded to read or write it, and dropped.

It is not JSON: the texts for errors of JSON cannot be loaded while a board's agent is assembled.
"""

import os
import sys

_NAME = "/stopped"
_ENOENT, _MOST = 2, 1024  # bytes of the file


def read(folder: str) -> tuple:
    """Return (reason, hint) of the stop in *folder*, ("", "") when there is none.  A file
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
        "start clawlite gateway or clawlite swarm board, which tell it",
    )


def keep(folder: str, told: tuple):
    """Make *told* the result of ``read``.  When the flash fails, stderr says so."""
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
        sys.stderr.write("clawlite: a restart will forget the stop of its swarm: %s\n" % e)
