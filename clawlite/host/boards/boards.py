"""The boards that are known: a project's own profiles in ``boards/`` beside its manifest, then
those of this package.
"""

import os
import re

from clawlite.core.base.errors import ClawError
from clawlite.host.base.data import boards_dir
from clawlite.host.base.problems import ManifestErrors, did_you_mean, make_write_error
from clawlite.host.base.without_links import Below
from clawlite.host.boards import profile as board_profile

FOLDER = "boards"


def files(folder: str = ".") -> dict[str, str]:
    """Return {name: path of its profile}, sorted by name; *folder* is where the manifest lies,
    and its own come first.
    """
    found = {path.stem: str(path) for path in boards_dir().glob("*.toml")}
    own = os.path.join(folder, FOLDER) if folder not in ("", ".") else FOLDER
    if os.path.isdir(own):
        found.update(
            (name.removesuffix(".toml"), os.path.join(own, name))
            for name in os.listdir(own)
            if name.endswith(".toml") and os.path.isfile(os.path.join(own, name))
        )
    return dict(sorted(found.items()))


def names(folder: str = ".") -> list[str]:
    """Return the names of the boards that are known, sorted."""
    return list(files(folder))


def load(name: str, folder: str = ".") -> dict:
    """Return the profile of the board *name* as plain data: every field, None where it is absent.

    Raises as ``profile`` does.
    """
    return plain(profile(name, folder))


def profile(name: str, folder: str = ".") -> board_profile.Profile:
    """Return the profile of the board *name*.

    Raises ``ClawError`` for one that is not known, ``ManifestErrors`` for a profile with mistakes.
    """
    known = files(folder)
    if name not in known:
        raise ClawError(
            f"unknown board {name}; known: {', '.join(known)}",
            did_you_mean(name, known) or "for another one: clawlite boards new NAME --from BOARD",
        )
    return board_profile.read(known[name])


def load_all(folder: str = ".") -> list[board_profile.Profile]:
    """Return the profiles of all boards, sorted by name, without those that have mistakes:
    ``load`` of such a board tells them.
    """
    found = []
    for path in files(folder).values():
        try:
            found.append(board_profile.read(path))
        except ManifestErrors:
            pass
    return found


def plain(value: object) -> object:
    """Return a profile, or a part of one, as plain data."""
    if isinstance(value, board_profile.Strict):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    return value


def rows(folder: str = ".") -> list[dict]:
    """Return all profiles as plain data, by name, each with ``file``: where it stands.  Raises
    ``ManifestErrors``.
    """
    return [row(name, folder) for name in files(folder)]


def row(name: str, folder: str = ".") -> dict:
    """Return the profile of the board *name* as ``rows`` has it.  Raises as ``profile`` does."""
    return {**load(name, folder), "file": files(folder)[name]}


def new(name: str, source: str, folder: str = ".") -> str:
    """Write the profile of the board *source* to ``boards/NAME.toml`` in *folder* as one of the
    board *name*; return its path.

    Nothing of it is checked on that board: all its facts are in ``unchecked``.
    Raises ``ClawError`` for a name that no board can have or a file that is there; as ``profile``
    does for *source*."""
    import tomli_w

    if not re.fullmatch("[a-zA-Z0-9][a-zA-Z0-9-]{0,62}", name) or name == "new":
        raise ClawError(
            f"expected a name of 1 to 63 letters, digits and hyphens, got {name}",
            "such as my-board",
        )
    made = _without_none(load(source, folder))
    made.update(
        name=name,
        title=f"{name}, after {made['title']}",
        unchecked=[
            field for field in made if field not in ("name", "title", "sources", "unchecked")
        ],
        sources=[f"the profile of {source}"] + made["sources"],
    )
    path = (
        os.path.join(folder, FOLDER, f"{name}.toml")
        if folder != "."
        else os.path.join(FOLDER, f"{name}.toml")
    )
    try:
        below = Below(folder)
        below.make_folders(FOLDER)
        if os.path.lexists(path):
            raise FileExistsError
        below.write(f"{FOLDER}/{name}.toml", tomli_w.dumps(made).encode())
    except FileExistsError:
        raise ClawError(f"{path} is there already", "choose another name, or edit it") from None
    except OSError as e:
        if os.path.isfile(path):  # ours, and not whole
            os.remove(path)
        raise make_write_error(path, e, "go to a folder that you may write to") from None
    return path


def _without_none(value: dict) -> dict:
    return {
        key: _without_none(item) if isinstance(item, dict) else item
        for key, item in value.items()
        if item is not None
    }
