"""``clawlite check --watch``: look again whenever a file of the project has changed."""

import os
import time

EVERY_S = 0.3
MOST_FILES = 10_000
_MADE = (".cbor", ".pyc", ".mpy")  # by clawlite and Python


def read_state(folder: str) -> dict:
    """Return {file: (time of its change, size)} of *folder*; hidden folders and what programs made
    are left out, and what is beyond ``MOST_FILES``.
    """
    found: dict = {}
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(one for one in folders if one[0] != "." and one != "__pycache__")
        for name in sorted(files):
            if name.endswith(_MADE) or name[0] == "." or len(found) >= MOST_FILES:
                continue
            path = os.path.join(root, name)
            try:
                facts = os.stat(path)
            except OSError:
                continue
            found[path] = (facts.st_mtime_ns, facts.st_size)
    return found


def changes(folder: str, pause=time.sleep):
    """Yield the names of the files that changed, [] at first, for ever."""
    state, names = read_state(folder), []
    while True:
        yield names
        while (now := read_state(folder)) == state:
            pause(EVERY_S)
        names = sorted(path for path in {**state, **now} if state.get(path) != now.get(path))
        state = now
