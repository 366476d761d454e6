"""The swarms of this machine: whether all agents have the same version of one."""

import os

from clawlite.linux.doctor.doctor_checks import NONE, WRONG
from clawlite.linux.files import files

DIFFERS = "differs"  # the same name as in linux/swarm/member.py
MOST_BYTES = 1 << 20  # of a file that are read


def versions(here) -> list:
    """Each swarm of which agents here have met others with another version of its document."""
    mend = "build all of its agents from the same Swarm and start them again (see which: clawlite"
    mend += " swarm status FOLDER)"
    rows = [
        ("swarm", WRONG, "the swarm %s is another one for %s than here" % (name, others), mend)
        for name, others in _read_all(here, DIFFERS)
    ]
    return rows or [("swarm", NONE, "no agent has met another version of its swarm", "")]


def _read_all(here, file: str) -> list:
    """Return [(name of a swarm, what *file* of its folder says), ...] where there is one."""
    place = os.path.join(here.state, files.SWARMS)
    names = sorted(os.listdir(place)) if os.path.isdir(place) and here.may(place, 5) else ()
    said = [(name, _read(os.path.join(place, name, file)).strip()) for name in names]
    return [pair for pair in said if all(pair)]


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


CHECKS = (versions,)
