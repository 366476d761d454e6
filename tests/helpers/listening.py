"""What this process listens on."""

import os
from pathlib import Path


def listening() -> list:
    """Return the listening sockets that this process holds, as "tcp 0100007F:1F90" or "unix
    /path".
    """
    inodes = set()
    for fd in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        try:
            target = os.readlink("/proc/self/fd/" + fd)
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = []
    for kind in ("tcp", "tcp6", "unix") if inodes else ():
        for row in Path("/proc/net", kind).read_text().splitlines()[1:]:
            cell = row.split()
            if kind == "unix":  # Flags 00010000 is __SO_ACCEPTCON
                if cell[6] in inodes and cell[3] == "00010000":
                    found.append("unix " + " ".join(cell[7:]))
            elif cell[9] in inodes and cell[3] == "0A":  # TCP_LISTEN
                found.append(kind + " " + cell[1])
    return found
