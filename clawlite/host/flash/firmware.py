"""``clawlite flash --firmware FILE``: MicroPython itself onto a board, as a drive's file (UF2) or
through esptool (ESP32).

Before anything is written, the file, the board's profile, and the drive or port must agree on the
chip."""

import os
import re
import string
import subprocess
import sys

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import CommandFailed
from clawlite.host.base.programs import program
from clawlite.host.base.without_links import Below
from clawlite.host.boards import boards
from clawlite.host.flash import firmware_file
from clawlite.host.serial import ports

MOUNTS = "/proc/self/mounts"
INFO = "INFO_UF2.TXT"
_BAUDS = (460800, 115200)  # the second when a cable or bridge does not manage the first
_PIECE = 65536
_PERCENT = re.compile(rb"([0-9]{1,3})(?:\.[0-9]+)? ?%")
_SAID = 4096  # bytes of esptool's talk that are kept


def flash(path: str, port, folder, board, dry_run: bool, show, agree, tell) -> dict:
    """Write the firmware file *path*; return what ``--json`` shows.

    port, folder  where to, or None: the only drive of a board in its bootloader, the only port of a
                  board with this chip
    board         name of a board's profile that it must fit, or None
    show, agree, tell  as in flash.flash
    Keys: file, bytes, sha256, chip, where ("drive", "port"), target, board, dry_run, written.
    Raises ``ClawError``, ``NoPort``, ``PortRefused``.
    """
    firmware = firmware_file.read(path)
    if board:
        _check_board(firmware, board)
    if firmware.kind == "uf2":
        if port:
            raise ClawError(
                "--port: a UF2 file is copied to a drive, not sent through a port",
                f"bring the board into its bootloader: {_bootloader(firmware.chip)}",
            )
        where, target = "drive", folder or only_drive(firmware)
        _check_drive(firmware, target)
    else:
        if folder:
            raise ClawError(
                "--dir: an ESP image is sent through a port, not copied to a drive",
                "name it with --port",
            )
        where, target = "port", _port(firmware, port)
        tool = _esptool()
    found = {
        "file": path,
        "bytes": len(firmware.data),
        "sha256": firmware.sha256,
        "chip": firmware.chip,
        "where": where,
        "target": target,
        "board": board,
        "dry_run": dry_run,
        "written": False,
    }
    show(found)
    if dry_run:
        return found
    agree()
    if where == "drive":
        copy(firmware, target, tell)
    else:
        run_esptool(tool, firmware, target, tell)
    return {**found, "written": True}


def _check_board(firmware, board: str):
    chip = boards.load(board)["chip"]
    if chip != firmware.chip:
        raise ClawError(
            f"{firmware.path} is for {firmware.chip}, the board {board} has "
            f"{chip or 'no chip that takes such a file'}",
            "take the file that is made for your board",
        )


def _bootloader(chip: str) -> str:
    return (
        "hold BOOTSEL while you plug it in"
        if chip.startswith("rp")
        else "hold BOOT while you plug it in"
    )


# -- a drive


def drives(mounts: str = MOUNTS) -> list[str]:
    """Return the mounted drives of boards in a bootloader; *mounts*: the kernel's table, or none
    where it is not there.
    """
    folders = []
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            folders = [
                re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), line.split(" ")[1])
                for line in file
            ]
    except OSError:
        if sys.platform == "win32":
            folders = [letter + ":\\" for letter in string.ascii_uppercase]
        elif os.path.isdir("/Volumes"):  # macOS
            folders = [os.path.join("/Volumes", name) for name in os.listdir("/Volumes")]
    return sorted(folder for folder in set(folders) if os.path.isfile(os.path.join(folder, INFO)))


def only_drive(firmware, mounts: str = MOUNTS) -> str:
    """Return the only drive that takes *firmware*.  Raises ``NoPort``: there is none, or more
    than one.
    """
    found = [
        folder
        for folder in drives(mounts)
        if drive_id(folder) == firmware_file.CHIPS[firmware.chip].drive
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise ports.NoPort(
            f"more than one board waits for firmware: {', '.join(found)}",
            "choose one with --dir",
            {"drives": found},
        )
    raise ports.NoPort(
        f"no drive of a board with {firmware.chip} is mounted",
        f"bring the board into its bootloader ({_bootloader(firmware.chip)}), and "
        f"mount the drive that appears",
        {"drives": []},
    )


def drive_id(folder: str):
    """Return the Board-ID of a bootloader's drive, or None when *folder* is none."""
    try:
        with open(os.path.join(folder, INFO), encoding="ascii", errors="replace") as file:
            lines = file.read(4096).splitlines()
    except OSError:
        return None
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("Board-ID:")), ""
    )


def _check_drive(firmware, folder: str):
    found, expected = drive_id(folder), firmware_file.CHIPS[firmware.chip].drive
    if found is None:
        raise ClawError(
            f"{folder}: no drive of a board in its bootloader: there is no {INFO}",
            _bootloader(firmware.chip),
        )
    if found != expected:
        raise ClawError(
            f"{folder}: the board says that it is {found or 'nothing'}, the file is for {expected}",
            "take the file that is made for your board",
        )


def copy(firmware, folder: str, tell) -> None:
    """Copy *firmware* to a drive; the board restarts with its last byte, and the drive is gone.
    Raises ``ClawError``.
    """
    sent = 0
    try:
        with open(Below(folder).create("firmware.uf2"), "wb", buffering=0) as file:
            while sent < len(firmware.data):
                size = file.write(firmware.data[sent : sent + _PIECE])
                sent += size
                tell(len(firmware.data), size)
            os.fsync(file.fileno())
    except OSError as e:
        if sent < len(firmware.data) or os.path.isdir(folder) and drive_id(folder) is not None:
            raise CommandFailed(
                f"{folder}: {e.strerror}", f"{_bootloader(firmware.chip)}, and copy it again"
            ) from None


# -- esptool


def _port(firmware, port) -> str:
    """Return the port of the only board, or of *port*, if it may have this chip."""
    entry = ports.choose(port)
    chips = {boards.load(name)["chip"] for name in entry["boards"]}
    if chips and firmware.chip not in chips:
        raise ClawError(
            f"{firmware.path} is for {firmware.chip}, {ports.describe(entry)} has "
            f"{' or '.join(sorted(chip or 'no chip that takes such a file' for chip in chips))}",
            "take the file that is made for your board",
        )
    return entry["port"]


def _esptool() -> str:
    try:
        return program("esptool")
    except ClawError:
        return program("esptool.py")  # so it was called before version 5


def run_esptool(tool: str, firmware, port: str, tell) -> None:
    """Write *firmware* with esptool, which resets the chip before and after.  Raises
    ``ClawError`` with what it said.
    """
    for baud in _BAUDS:
        words = [
            tool,
            "--chip",
            firmware.chip,
            "--port",
            port,
            "--baud",
            str(baud),
            "write_flash",
            hex(firmware_file.CHIPS[firmware.chip].address),
            firmware.path,
        ]
        code, said = _watch(words, len(firmware.data), tell)
        if code == 0:
            return
    last = [
        line.strip()
        for line in said.decode("utf-8", "replace").replace("\r", "\n").splitlines()
        if line.strip()
    ][-1:]
    raise CommandFailed(
        f"{port}: esptool ended with {code}: {last[0] if last else 'it said nothing'}",
        f"{_bootloader(firmware.chip)}, then flash again",
    )


def _watch(words: list, total: int, tell) -> tuple:
    """Run esptool; return (exit code, the end of what it said).  Its percentages become
    progress.
    """
    said, gone = b"", 0
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as tool:
        try:
            while data := os.read(tool.stdout.fileno(), 4096):
                said = (said + data)[-_SAID:]
                percents = [int(text) for text in _PERCENT.findall(data)]
                now = total * min(100, max(percents, default=0)) // 100
                if now > gone:
                    tell(total, now - gone)
                    gone = now
        except BaseException:
            tool.kill()
            raise
        return tool.wait(), said
