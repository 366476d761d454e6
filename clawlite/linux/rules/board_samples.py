"""The samples that a board keeps, as they come from it: the folder ``readings`` of its flash
(firmware-host/micropython/rules/samplefiles.py).  Hours that days have become are not read: a
rehearsal plays samples.
"""

import os

from clawlite.core.base.errors import ClawError
from clawlite.core.rules.rehearsal import LIFE
from clawlite.linux.files.regular_file import open_regular
from clawlite.linux.io.jsontext import loads
from clawlite.linux.rules.samples import EDGE


def read_samples(folder: str) -> tuple:
    """Return (samples, edges, lives) of the files in *folder*: [(at_s, reading, value), ...],
    [(at_s, pin, level), ...], the earliest first, and lives as core/rules/rehearsal.py has them.  A
    damaged line is left out.
    """
    samples, edges, lives, seen_s = [], [], [], 0
    for name in _days(folder):
        with open(os.path.join(folder, name), "rb", opener=open_regular) as file:
            for line in file:
                rows = _rows(line)
                for at_s, of, value in rows:
                    if of == LIFE and value:
                        lives.append([at_s, seen_s, at_s + value[0], value[1]])
                    elif of != LIFE:
                        (edges if of.startswith(EDGE) else samples).append((at_s, of, value))
                    seen_s = max(seen_s, at_s)
    edges = [(at_s, name[len(EDGE) :], level) for at_s, name, level in edges if level in (0, 1)]
    samples.sort(key=lambda row: row[:2])
    return samples, sorted(edges, key=lambda row: row[0]), lives


def _days(folder: str) -> list:
    names = os.listdir(folder) if os.path.isdir(folder) else ()
    return sorted((name for name in names if name.isdigit()), key=int)


def _rows(line: bytes) -> list:
    """Return [(at_s, name, value), ...] of a line, none of a damaged one."""
    try:
        name, at_s, pairs = loads(line)
        rows = [(at_s + pairs[n], name, pairs[n + 1]) for n in range(0, len(pairs), 2)]
    except (ClawError, IndexError, TypeError, ValueError):
        return []
    fits = isinstance(name, str) and all(
        type(at_s) is int
        and (isinstance(value, (int, float, str)) or name == LIFE and _is_start(value))
        for at_s, _, value in rows
    )
    return rows if fits else []


def _is_start(value) -> bool:
    return (
        isinstance(value, list)
        and list(map(type, value)) == [int, list]
        and all(isinstance(cut, list) and list(map(type, cut)) == [str, int] for cut in value[1])
    )
