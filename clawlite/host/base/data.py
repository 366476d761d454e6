"""Where the files are that are not Python: board profiles and what boards boot.

In a checkout they stand at its top; a wheel carries them in ``clawlite/_data`` (setup.py copies
them there). Nothing else in the package may compute such a path.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[2]


def _folder(name: str) -> Path:
    # The wheel's own folder first: beside an installed package stands whatever else is installed.
    for base in (_PACKAGE / "_data", _PACKAGE.parent):
        if (base / name).is_dir():
            return base / name
    raise FileNotFoundError(
        "%s: neither in %s nor in %s; this installation is incomplete, "
        "install clawlite again" % (name, _PACKAGE / "_data", _PACKAGE.parent)
    )


def boards_dir() -> Path:
    """Return the folder of the board profiles, ``NAME.toml`` each.  Raises FileNotFoundError."""
    return _folder("boards")


def firmware_dir() -> Path:
    """Return the folder ``firmware-host``, which holds ``micropython/`` and ``raspberrypi/``.
    Raises FileNotFoundError.
    """
    return _folder("firmware-host")


def benchmarks_dir() -> Path:
    """Return the folder with what ``clawlite bench`` runs on devices: scripts, and images of its
    agent.  Raises FileNotFoundError.
    """
    return _folder("benchmarks")
