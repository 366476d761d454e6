"""The samples that a board keeps, as they come from it: the folder ``readings`` of its flash
(firmware-host/micropython/rules/samplefiles.py).  Hours that days have become are not read: a
rehearsal plays samples.
"""

import os

from clawlite.core.base.errors import ClawError
from clawlite.linux.files.regular_file import open_regular
from clawlite.linux.io.jsontext import loads

EDGE = "="  # before the name of a pin, whose levels stand among the samples


def read_samples(folder: str) -> tuple:
    """Return (samples, edges) of the files in *folder*: [(at_s, reading, value), ...] and [(at_s,
    pin, level), ...], the earliest first.  A damaged line is left out.
    """
    samples, edges = [], []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        if not name.isdigit():
            continue
        with open(os.path.join(folder, name), "rb", opener=open_regular) as file:
            for line in file:
                for row in _rows(line):
                    (edges if row[1].startswith(EDGE) else samples).append(row)
    edges = [(at_s, name[len(EDGE) :], level) for at_s, name, level in edges if level in (0, 1)]
    return sorted(samples, key=lambda row: row[:2]), sorted(edges, key=lambda row: row[0])


def _rows(line: bytes) -> list:
    """Return [(at_s, name, value), ...] of a line, none of a damaged one."""
    try:
        name, at_s, pairs = loads(line)
        rows = [(at_s + pairs[n], name, pairs[n + 1]) for n in range(0, len(pairs), 2)]
    except (ClawError, IndexError, TypeError, ValueError):
        return []
    fits = isinstance(name, str) and all(
        type(at_s) is int and isinstance(value, (int, float, str)) for at_s, _, value in rows
    )
    return rows if fits else []
