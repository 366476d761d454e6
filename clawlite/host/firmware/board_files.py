"""Which files a MicroPython board needs to run an agent, and where they go
(firmware-host/micropython/boot has the layout).

    /lib/slots.mpy, /lib/bootwindow.mpy     what chooses the slot that boots
    /claw-a/*.mpy, /claw-a/sentences        of the core and its shell (firmware.py) what the image
                                            needs (slot.py), in the first of two slots
    /claw-a/modules                         on a board with little flash: those .mpy files in one,
                                            which the main.mpy beside it mounts
    /claw-a/parts                           what that is, by name: an image that needs more does not
                                            boot with it
    /claw-a/tools.py                        what travels with the image; modules beside it and
                                            drivers, compiled
    /claw-a.cbor                            the image
    /main.py                                starts all that when the board boots
"""

import ast
import hashlib
import os
import platform

from clawlite.core.base.errors import ImageMismatch
from clawlite.host.base.data import firmware_dir
from clawlite.host.base.programs import program
from clawlite.host.firmware import firmware, foreign_names, slot
from clawlite.host.image.image_reader import open_image, read

SLOT = "/claw-a"
PACK, PACKED = "modules", "packed"
# the processors of chips, as mpy-cross calls them: of the stock firmware
_PROCESSORS = {
    "rp2040": "armv6m",
    "rp2350": "armv7emsp",
    "esp32": "xtensawin",
    "esp32s3": "xtensawin",
    "esp32c3": "rv32imc",
    "esp32c6": "rv32imc",
}
# where MicroPython looks for the modules of a package (py/builtinimport.c)
_IS_PACKAGE = '__path__ = __file__.rsplit("/", 1)[0]'
_CHOOSERS = ("slots", "bootwindow")


def board_files(image: str, folder: str, profile=None) -> list[tuple[str, str]]:
    """Return [(file here, its path on the board)] for an empty board: written in this order,
    nothing boots by half.

    image    path of the image, with tools.py beside it
    folder   what is compiled goes there; it is empty
    profile  of the board (host/boards/profile.py), or None: any board
    Raises ``ClawError`` when mpy-cross is missing or the code asks MicroPython for what this board
    lacks, ``ImageError``, ``ImageMismatch`` for a tools.py of another build.
    """
    having = parts_of(image)
    *found, start = runtime_files(folder, having + slot.of_board(profile))
    _check_api([os.path.basename(path) for path, _ in found], having, profile)
    if slot.is_packed(profile):
        found = pack_slot(found, folder)
    with open(os.path.join(folder, slot.PARTS_FILE), "w", encoding="ascii") as file:
        file.write(" ".join(having))
    found.append((file.name, f"{SLOT}/{slot.PARTS_FILE}"))
    beside = companions(image)
    arch = _processor(profile) if profile else ""
    packages = _packages([name for _, name in beside])
    for path, name in beside:
        if name != "tools.py":
            stem = foreign_names.slot_name(name)
            if packages.pop(stem, None):
                path = _as_package(path, folder, stem)
            path, name = _compile(path, folder, stem, arch), f"{stem}.mpy"
        found.append((path, f"{SLOT}/{name}"))
    for stem in packages:  # without an __init__.py
        made = _compile(_as_package(os.devnull, folder, stem), folder, stem)
        found.append((made, f"{SLOT}/{stem}.mpy"))
    return found + [(image, f"{SLOT}.cbor"), start]


def _check_api(names: list, having: list, profile):
    """Raise ``ClawError`` when a file of these asks MicroPython for something that the board does
    not have (foreign_names.py).

    Parts that the board has no ability for count for nothing: it refuses such an image, and says
    why."""
    able = [part for part in having if profile is None or slot.ability(part) in profile.abilities]
    names = slot.choose(names, able + slot.of_board(profile)) + [
        f"{name}.boot" for name in (*_CHOOSERS, PACKED)
    ]
    started = _CHOOSERS + (PACKED,) * slot.is_packed(profile)
    boot = {name: ast.parse(_boot(name).read_text(encoding="utf-8")) for name in started}
    asked = (
        foreign_names.uses(boot | {"main": ast.parse(firmware.link()[0]["main"])}) | firmware.uses()
    )
    what = f"the board {profile.name}" if profile else "any board"
    foreign_names.check(
        asked, [name.rpartition(".")[0] for name in names], profile and profile.api, what
    )


def parts_of(image: str) -> list[str]:
    """Return the parts of a board's code (slot.py) that the image in the file *image* has.
    Raises ``ImageError``.
    """
    with open(image, "rb") as file:
        data = file.read()
    return slot.parts(read(data))


def runtime_files(folder: str, having: list = None) -> list[tuple[str, str]]:
    """Return what ``board_files`` does without an agent, /main.py last; *having*: the parts that
    are wanted, or None: all.
    """
    found = [(_compile(str(_boot(name)), folder, name), f"/lib/{name}.mpy") for name in _CHOOSERS]
    names = sorted(firmware.build(folder, program("mpy-cross")))
    found += [
        (os.path.join(folder, name), f"{SLOT}/{name}")
        for name in (names if having is None else slot.choose(names, having))
    ]
    return found + [(str(_boot("main")), "/main.py")]


def pack_slot(files: list, folder: str) -> list[tuple[str, str]]:
    """Return *files*, [(file here, its path on the board)], with the modules of the slot in one
    file (firmware-host/micropython/boot/packed.py), which is made in *folder*.
    """
    modules = {
        os.path.basename(place).removesuffix(".mpy"): path
        for path, place in files
        if place.startswith(SLOT) and place.endswith(".mpy")
    }
    data = {}
    for name, path in sorted(modules.items()):
        with open(path, "rb") as file:
            data[name] = file.read()
    made = os.path.join(folder, PACK)
    with open(made, "wb") as target:
        target.write(pack(data))
    return [(path, place) for path, place in files if path not in modules.values()] + [
        (made, f"{SLOT}/{PACK}"),
        (_compile(str(_boot(PACKED)), folder, PACKED), f"{SLOT}/main.mpy"),
    ]


def pack(modules: dict) -> bytes:
    """Return the file of *modules*, {name: what its ``.mpy`` file holds}."""
    index, body = "", b""
    for name, data in modules.items():
        index += f"/{name}.{len(body)}"
        body += data
    return f"{index}/\n".encode() + body


def _boot(name: str):
    """Return the path of a source that is neither linked nor renamed."""
    return firmware_dir() / "micropython" / "boot" / f"{name}.py"


def companions(image: str) -> list[tuple[str, str]]:
    """Return [(file here, its name)] of what travels with the image in the file *image*.  Raises
    ``ImageError``, ``ImageMismatch``.
    """
    beside, found = os.path.dirname(os.path.abspath(image)), []
    for name, digest in open_image(image).companions:
        path = os.path.join(beside, name)
        _check(path, digest.hex())
        found.append((path, name))
    return found


def _packages(names: list) -> dict:
    """Return {package: True} of the drivers *names*, files in ``drivers``: each folder is one."""
    folders = [name.split("/")[1:-1] for name in names]
    return {folder: True for path in folders for folder in path}


def _as_package(path: str, folder: str, name: str) -> str:
    """Return the path of a copy of the module *path* that is the package *name* of a slot: its
    modules lie beside it, because a slot has no folders.
    """
    made = os.path.join(folder, f"{name}.package")
    os.makedirs(folder, exist_ok=True)
    with open(path, encoding="utf-8") as source, open(made, "w", encoding="utf-8") as target:
        target.write(f"{_IS_PACKAGE}\n{source.read()}")
    return made


def _processor(profile) -> str:
    """Return the processor of a board, "" when it is not known."""
    if profile.api == "unix":  # this computer
        return {"x86_64": "x64", "AMD64": "x64"}.get(platform.machine(), "")
    return _PROCESSORS.get(profile.chip or "", "")


def _compile(source: str, folder: str, name: str, arch: str = "") -> str:
    made = os.path.join(folder, f"{name}.boot")
    os.makedirs(folder, exist_ok=True)
    firmware.compile_module(source, made, name, program("mpy-cross"), arch)
    return made


def _check(path: str, digest: str):
    try:
        with open(path, "rb") as file:
            same = hashlib.file_digest(file, "sha256").hexdigest() == digest
    except OSError as e:
        raise ImageMismatch(f"{path}: {e.strerror}", "the image needs it beside it") from None
    if not same:
        raise ImageMismatch(
            f"{path} is not the file that the image was built with", "build again: clawlite build"
        )
