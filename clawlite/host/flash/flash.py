"""``clawlite flash``: build when needed, compare with what the board holds, show it, write it,
see it boot.
"""

import json
import os
import tempfile

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import CommandFailed
from clawlite.host.base.regular_file import open_regular
from clawlite.host.boards import boards
from clawlite.host.builder import build
from clawlite.host.firmware.board_files import SLOT, board_files
from clawlite.host.flash.plan import PATHS, Contents, Plan, plan
from clawlite.host.image.image_reader import begins_as_image, read_checked
from clawlite.host.manifest import manifest

OURS = b'# clawlite\'s own, written by "clawlite flash"'
_LOOKED_AT = 256  # bytes of a main.py


def target(port: str | None = None, folder: str | None = None, ssh: str | None = None):
    """Return what is flashed, to be used with ``with``: the board on a port, a folder, or a machine
    behind ssh.

    Raises ``ClawError`` for two targets at once, ``NoPort``, ``PortRefused``.
    """
    named = [
        option
        for option, value in (("--port", port), ("--dir", folder), ("--ssh", ssh))
        if value is not None
    ]
    if len(named) > 1:
        raise ClawError(f"{' and '.join(named)}: expected one of them", "leave the others out")
    if folder is not None:
        from clawlite.host.flash.folder import Folder

        return Folder(folder.rstrip("/") or "/")
    if ssh is not None:
        from clawlite.host.flash.ssh import Remote

        return Remote(ssh)
    from clawlite.host.flash.board import Board
    from clawlite.host.serial import ports

    entry = ports.choose(port)
    if entry["id"].startswith(ports.SHARED):
        raise ports.PortRefused(
            f"{port}: a gateway has this board's port and shares its console alone",
            "end the gateway, flash the port that it serves, and start the gateway again",
        )
    return Board(entry)


def contents(
    name: str, board: str = None, key_file: str = None, is_virtual: bool = False
) -> Contents:
    """Return the files for a board that is to run *name*: a manifest, which is built, or an image
    with its tools.py beside it.

    board     refuse a manifest that this board cannot honour, and bring only what this board can
              load; or None
    key_file  the device key that the board gets, which the image is signed with; None: the board
              keeps what it has
    is_virtual  it stands in for that board: it has no pins but simulated ones
    Raises ``ManifestErrors``, ``ClawError``: an image that is not signed with that key, too.
    """
    key = build.read_key(key_file) if key_file else None
    image = build.image_for(name, board, key_file)
    profile = boards.profile(board, os.path.dirname(image)) if board else None
    if profile and is_virtual:
        from msgspec import structs

        profile = structs.replace(profile, pins=structs.replace(profile.pins, simulated=True))
    shared, slot = boot_settings(name), {}
    with tempfile.TemporaryDirectory(prefix="clawlite-flash-") as folder:
        for path, place in board_files(image, folder, profile):
            if place.startswith(SLOT + "/"):
                slot[os.path.basename(place)] = _read(path)
            elif place != SLOT + ".cbor":
                shared[place] = _read(path)
    data = _read(image)
    if key:
        read_checked(data, key)
    return Contents(shared, slot, data, {"/device.key": key} if key else {})


def boot_settings(name: str) -> dict:
    """Return {"/boot.json": bytes} of the section [boot] beside the manifest *name*; {} without
    one, and for an image.
    """
    boot = None if begins_as_image(name) else manifest.load(name).settings.boot
    if boot is None:
        return {}
    found = {
        key: getattr(boot, key)
        for key in ("safe_pin", "watchdog_ms", "window_ms")
        if getattr(boot, key) is not None
    }
    return {"/boot.json": json.dumps(found, separators=(",", ":")).encode()}


def _read(path: str) -> bytes:
    with open(path, "rb", opener=open_regular) as file:
        return file.read()


def _is_damaged(start: bytes) -> bool:
    """Return whether a main.py that begins with *start* is what a power cut or a worn flash leaves:
    nobody's text.
    """
    if len(start) < len(OURS) and OURS.startswith(start):  # cut off, or empty
        return True
    try:
        return "\0" in start.decode()
    except UnicodeDecodeError as e:  # its last letter may be cut off here
        return len(start) < _LOOKED_AT or e.start < len(start) - 3


def prepare(board, want: Contents) -> Plan:
    """Return the plan for *board*, a target.

    Raises ``ClawError`` when /main.py there is somebody's own, or there is no room.
    """
    look = board.read_state()
    start = board.read("/main.py", _LOOKED_AT) if "/main.py" in look.files else OURS
    is_damaged = _is_damaged(start)
    if not is_damaged and not start.startswith(OURS):
        raise ClawError(
            f"{board.name}: its main.py was not made by clawlite and is not overwritten",
            "give it another name, then flash again",
        )
    made = plan(look, want)
    made.damaged = ["/main.py"] if is_damaged else []
    if look.free is not None and made.bytes_needed > look.free:
        raise ClawError(
            f"{board.name}: {made.bytes_needed} bytes of room are wanted, {look.free} are free",
            "remove files that are not needed",
        )
    return made


def carry_out(board, made: Plan, tell) -> None:
    """Do all steps.

    tell  function(bytes sent since the last call)
    Raises ``ClawError``.  After an error or an interruption, the old slot still boots.
    """
    for step in made.steps:
        if step[0] == "verify":
            found = board.digests(list(step[PATHS]))
            wrong = sorted(
                path for path, digest in step[PATHS].items() if found.get(path) != digest
            )
            if wrong:
                raise CommandFailed(
                    f"{board.name}: {wrong[0]} is not what was written; the previous "
                    f"agent still boots",
                    "flash again",
                )
        else:
            board.do(step, tell)


def replace_file(board, path: str, data: bytes) -> None:
    """Replace a file of *board* as a whole or not at all."""
    board.do(("write", path + "~", data))
    board.do(("rename", path + "~", path))


def flash(
    name: str, board, dry_run: bool, profile, show, agree, tell, key_file: str = None
) -> dict:
    """Flash *name* to *board*, a target in use; return what ``--json`` shows.

    profile  name of the board's profile, or None: the port's USB ids may tell
    show     function(document), called before anything is written
    agree    function(), called when something changes; what it raises ends the flash
    tell     function(bytes in all, bytes that went since the last time)
    key_file as in ``contents``
    Keys: target, where ("port", "folder", "ssh"), board, boots, slot, files ([{path, change, bytes,
    sha256}]), damaged (paths of files there that are), travels (bytes), dry_run, written, said
    (what the board said until its agent was ready, or None), next (the command that talks to it, or
    None).
    """
    profile = profile or (board.boards[0] if len(board.boards) == 1 else None)
    if board.where == "ssh" and key_file:
        raise ClawError(
            "--device-key: a Linux machine finds its key in $CLAWLITE_DEVICE_KEY_FILE",
            "set that there, and build with --key-file",
        )
    made = (
        board.prepare(name, profile)
        if board.where == "ssh"
        else prepare(board, contents(name, profile, key_file, board.is_virtual))
    )
    found = {
        "target": board.name,
        "where": board.where,
        "board": profile,
        "boots": made.boots,
        "slot": made.slot,
        "files": made.changes,
        "damaged": made.damaged,
        "travels": made.travels,
        "dry_run": dry_run,
        "written": False,
        "said": None,
        "next": board.next,
    }
    show(found)
    if made.steps and not dry_run:
        agree()
        carry_out(board, made, lambda size: tell(made.travels, size))
        found.update(written=True, said=board.boot())
    return found
