"""The virtual boards and shared consoles of this machine: one file each below the state folder,
locked as long as it lives, so that ``clawlite ports`` shows it and whatever a killed one left
behind counts for nothing.

Both are pseudo-terminals: on Windows there are none."""

import json
import os

from clawlite.host.base.home import base_folder

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]


def registry() -> str:
    """Return the folder with one file a virtual board; a name that no agent's state folder can
    have.
    """
    root = os.environ.get("CLAWLITE_STATE")
    if root:
        root = os.path.expanduser(root)
    else:
        root = os.path.join(base_folder("XDG_STATE_HOME", ".local", "state"), "clawlite")
    return os.path.join(root, ".sims")


def running() -> list[dict]:
    """Return the ``Sim.facts`` of each running virtual board, by its id; stale files are
    removed.
    """
    found = []
    if fcntl is None:
        return found
    for name in sorted(os.listdir(registry())) if os.path.isdir(registry()) else ():
        path = os.path.join(registry(), name)
        if name.endswith(".new"):
            continue
        try:
            with open(path, encoding="utf-8") as file:
                if _lock(file):
                    os.remove(path)
                    continue
                found.append(json.load(file))
        except (OSError, ValueError):  # it went away meanwhile
            continue
    return sorted(found, key=lambda facts: facts["id"])


def register(facts: dict):
    """Let ``running`` find *facts* for as long as the file that is returned is open; ``forget``
    ends that.
    """
    os.makedirs(registry(), mode=0o700, exist_ok=True)
    path = os.path.join(registry(), f"{os.getpid()}-{os.path.basename(facts['port'])}")
    file = open(path + ".new", "w", encoding="utf-8")
    _lock(file)  # before anybody may take it for a stale one
    json.dump(facts, file)
    file.flush()
    os.rename(path + ".new", path)
    return file


def forget(file) -> None:
    os.remove(file.name.removesuffix(".new"))
    file.close()


def _lock(file) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
