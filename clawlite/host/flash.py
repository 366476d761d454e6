"""``clawlite flash``: build when needed, compare with what the board holds, show it, write it, see it boot."""
import os
import tempfile

from clawlite.core.errors import ClawError
from clawlite.core.header import MAGIC
from clawlite.host import build
from clawlite.host.board_files import SLOT, board_files
from clawlite.host.flash_plan import Contents, Plan, plan

OURS = b"# clawlite's own, written by \"clawlite flash\""
NOT_BUILT = {"ssh": "--ssh: a Pi is not flashed yet", "firmware": "--firmware: MicroPython itself is not written yet"}
_HINTS = {"ssh": "copy the image there, and start it with: clawlite run IMAGE",
          "firmware": "write it with the board's own tool (UF2 drive, esptool), then flash the agent"}


def target(port: str = None, folder: str = None, not_built: dict = {}):
    """Return what is flashed, to be used with ``with``: the board on a port, or a folder.

    not_built  {option: value} of targets that this version does not have
    Raises ``ClawError`` for such a one and for two targets at once, ``NoPort``, ``PortRefused``.
    """
    for option, value in not_built.items():
        if value is not None:
            raise ClawError(NOT_BUILT[option], _HINTS[option])
    if folder is not None:
        if port:
            raise ClawError("--port and --dir: expected one of them")
        from clawlite.host.flash_folder import Folder
        return Folder(folder.rstrip("/") or "/")
    from clawlite.host import ports
    from clawlite.host.flash_board import Board
    return Board(ports.choose(port))


def contents(name: str, board: str = None) -> Contents:
    """Return what a board gets that shall run *name*: a manifest, which is built, or an image with its tools.py beside it.

    board  refuse a manifest that this board cannot honour, or None
    Raises ``ManifestErrors``, ``ClawError``.
    """
    image = name if _is_image(name) else build.build(name, None, os.environ.get("CLAWLITE_DEVICE_KEY_FILE"), board)["file"]
    shared, slot = {}, {}
    with tempfile.TemporaryDirectory(prefix="clawlite-flash-") as folder:
        for path, place in board_files(image, folder):
            if place.startswith(SLOT + "/"):
                slot[os.path.basename(place)] = _read(path)
            elif place != SLOT + ".cbor":
                shared[place] = _read(path)
    return Contents(shared, slot, _read(image))


def _is_image(name: str) -> bool:
    if not os.path.isfile(name):
        return False
    with open(name, "rb") as file:
        return file.read(3) == MAGIC


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def prepare(board, want: Contents) -> Plan:
    """Return the plan for *board*, a target.

    Raises ``ClawError`` when /main.py there is somebody's own, or there is no room.
    """
    look = board.look()
    if "/main.py" in look.files and not board.read("/main.py", len(OURS)).startswith(OURS):
        raise ClawError(f"{board.name}: its main.py is not clawlite's, and is not overwritten", "give it another name, then flash again")
    made = plan(look, want)
    if look.free is not None and made.wants > look.free:
        raise ClawError(f"{board.name}: {made.wants} bytes of room are wanted, {look.free} are free", "remove files that are not needed")
    return made


def carry_out(board, made: Plan, tell) -> None:
    """Do all steps.

    tell  function(bytes that went since the last time)
    Raises ``ClawError``; then, and when it is interrupted, what booted before still boots.
    """
    for step in made.steps:
        if step[0] == "verify":
            found = board.digests(list(step[1]))
            wrong = sorted(path for path, digest in step[1].items() if found.get(path) != digest)
            if wrong:
                error = ClawError(f"{board.name}: {wrong[0]} is not what was written; what booted before still boots", "flash again")
                error.exit_code = 1
                raise error
        else:
            board.do(step, tell)


def flash(name: str, board, dry_run: bool, profile, show, agree, tell) -> dict:
    """Flash *name* to *board*, a target in use; return what ``--json`` shows.

    profile  name of the board's profile, or None: the port's USB ids may tell
    show     function(document), called before anything is written
    agree    function(), called when something changes; what it raises ends the flash
    tell     function(bytes in all, bytes that went since the last time)
    Keys: target, where ("port" or "folder"), board, boots, slot, files ([{path, change, bytes, sha256}]), travels (bytes), dry_run, written,
    said (what the board said until its agent was ready, or None).
    """
    profile = profile or (board.boards[0] if len(board.boards) == 1 else None)
    made = prepare(board, contents(name, profile))
    found = {"target": board.name, "where": board.where, "board": profile, "boots": made.boots, "slot": made.slot, "files": made.changes,
             "travels": made.travels, "dry_run": dry_run, "written": False, "said": None}
    show(found)
    if made.steps and not dry_run:
        agree()
        carry_out(board, made, lambda size: tell(made.travels, size))
        found.update(written=True, said=board.boot())
    return found
