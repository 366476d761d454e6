"""Board profiles: ``boards/NAME.toml``, what a board has and can do.

A profile holds ``name``, ``title``, ``runtime`` (cpython or micropython), ``abilities`` (what an image may require) and
``sources`` (where these facts come from).
"""
import tomllib

from clawlite.core.errors import ClawError
from clawlite.host import compiler
from clawlite.host.data import boards_dir
from clawlite.host.problems import did_you_mean

KEYS = {"name": str, "title": str, "runtime": str, "abilities": list, "sources": list}


def names() -> list[str]:
    """Return the names of the boards that are known, sorted."""
    return sorted(path.stem for path in boards_dir().glob("*.toml"))


def load(name: str) -> dict:
    """Return the profile of the board *name*.  Raises ``ClawError`` for one that is not known, or a broken file."""
    if name not in names():
        raise ClawError(f"unknown board {name}; known: {', '.join(names())}", did_you_mean(name, names()))
    path = boards_dir() / f"{name}.toml"
    profile = tomllib.loads(path.read_text())
    for key, kind in KEYS.items():
        if not isinstance(profile.get(key), kind):
            raise ClawError(f"{path}: {key}: expected {'text' if kind is str else 'a list'}")
    return profile


def demand(manifest, name: str) -> None:
    """Raise ``ClawError`` when *manifest* requires what the board *name* lacks."""
    lacks = [ability for ability in compiler.requires(manifest) if ability not in load(name)["abilities"]]
    if lacks:
        raise ClawError(f"{manifest.file}: needs {', '.join(lacks)}, which the board {name} does not have",
                        "choose another board, or leave out what needs it")
