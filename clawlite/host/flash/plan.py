"""Plan the steps of a flash before anything is written.  The plan is the same for a board's port
and for a folder.

1. The slot that was READY last is never touched: the other one is written
   (firmware-host/micropython/boot/slots.py has the layout).
2. While a slot is written it has no image: its old image waits under another name, and the new one
   gets its name when the whole slot was read back by hash.  The files that start a slot, and the
   boot record, are also read back before they get their names.
3. The boot record is written last, except for a device key, because an old image that is not signed
   with that key would not boot.  After every step, either the old image or the new one boots.
4. A file that the board has already is copied on the board and not sent.
"""

import hashlib
import posixpath
import struct
import zlib
from dataclasses import dataclass, field, replace

RECORD = "/claw.boot"
SLOTS = ("a", "b")
FILES = "files"  # the list of a slot's files, in its folder
FOLDERS = ("/lib", "/claw-a", "/claw-b")
# in the top folder, beside what begins with "claw"
TOP = ("main.py", "boot.json", "device.key")
MAX_TRIALS = 3  # as in bootwindow.py
# positions in a step: of verify, of all others, of rename, of write and copy, of copy
PATHS, PATH, NEW_NAME, DATA, SOURCE = 1, 1, 2, 2, 3
OTHER = {"a": "b", "b": "a", None: "a"}
_NEW = ".new"
_HEAD = ">4sI1sBB"
_BLOCK = 4096  # bytes that a file takes at least, for the room that is wanted


@dataclass(frozen=True)
class Contents:
    """The files that the board is to have.

    shared  {path: bytes} of the files that choose a slot, /main.py last
    slot    {name: bytes} of the files in the slot's folder, without their list, which ``plan`` adds
    image   bytes
    last    {path: bytes} of the files that are written after all others: until then the old slot
            needs the board unchanged.  Their hashes are not shown
    """

    shared: dict
    slot: dict
    image: bytes
    last: dict = field(default_factory=dict)


@dataclass(frozen=True)
class BoardState:
    """What is on the board.

    files    {path: SHA-256, hex} of files that a flash may write, in the top folder and in
             ``FOLDERS``
    whole    slots whose image has the right CRC
    records  contents of the files of the boot record
    free     bytes, or None when the board does not report it
    folders  those of ``FOLDERS`` that are there
    """

    files: dict
    whole: tuple = ()
    records: tuple = ()
    free: int = None
    folders: tuple = ()


@dataclass
class Plan:
    """What a flash does.

    boots    the slot that boots now, or None
    slot     the slot that boots afterwards
    changes  [{path, change, bytes, sha256}]: new, changed, same or gone, compared with what boots
             now
    steps    [(what, ...)]: ("mkdir", path), ("write", path, bytes), ("copy", path, bytes, from),
             ("rename", from, to), ("remove", path), ("verify", {path: SHA-256})
    damaged  paths of files there that a power cut or a worn flash has left
    """

    boots: str
    slot: str
    changes: list
    steps: list = field(default_factory=list)
    damaged: list = field(default_factory=list)

    @property
    def travels(self) -> int:
        """Bytes that go to the board."""
        return sum(len(step[DATA]) for step in self.steps if step[0] == "write")

    @property
    def bytes_needed(self) -> int:
        """Bytes of room that the steps take at most; a file that they remove had a block."""
        return sum(
            -(-len(step[DATA]) // _BLOCK) * _BLOCK
            if step[0] in ("write", "copy")
            else -_BLOCK * (step[0] == "remove")
            for step in self.steps
        )


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def compare(have: dict, want: dict, above: str = "") -> list:
    """Return the changes (``Plan``) from *have*, {path: SHA-256}, to *want*, {path: bytes}; *above*
    stands before their paths.
    """
    changes = []
    for path, data in sorted(want.items()):
        wanted = digest(data)
        change = "new" if path not in have else "same" if have[path] == wanted else "changed"
        changes.append(
            {"path": above + path, "change": change, "bytes": len(data), "sha256": wanted}
        )
    return changes + [
        {"path": above + path, "change": "gone", "bytes": 0, "sha256": None}
        for path in sorted(set(have) - set(want))
    ]


def newest(records: tuple):
    """Return (counter, slot, trials, checked) of the boot record that counts, or None."""
    found = [
        struct.unpack(_HEAD, data[:11])[1:]
        for data in records
        if len(data) == 15
        and data[:4] == b"CLB1"
        and data[8:9] in (b"a", b"b")
        and int.from_bytes(data[11:], "big") == zlib.crc32(data[:11])
    ]
    return (
        max((counter, slot.decode(), trials, checked) for counter, slot, trials, checked in found)
        if found
        else None
    )


def record(counter: int, slot: str) -> bytes:
    """Return the boot record that makes *slot* the one to boot: no trials yet, its digest to be
    checked.
    """
    data = struct.pack(_HEAD, b"CLB1", counter & 0xFFFFFFFF, slot.encode(), 0, 0)
    return data + zlib.crc32(data).to_bytes(4, "big")


def file_list(slot: dict) -> bytes:
    """Return the list by which a board checks the files *slot*, {name: bytes}
    (firmware-host/micropython/boot/slots.py).
    """
    lines = "".join(
        f"{name} {len(data)} {zlib.crc32(data):08x}\n" for name, data in sorted(slot.items())
    ).encode()
    return lines + f"files {len(lines)} {zlib.crc32(lines):08x}\n".encode()


def plan(look: BoardState, want: Contents) -> Plan:
    """Return what turns *look* into *want* with the list of its slot; no steps when it is so
    already.
    """
    want = replace(want, slot={**want.slot, FILES: file_list(want.slot)})
    known = newest(look.records) or (0, "a", 0, 0)
    boots, kept = _slots(look, known)
    made = Plan(boots, boots, _changes(look, want, boots))
    made.steps = _Part(look, {path: (path, data) for path, data in want.shared.items()}).steps(
        verify_first=True
    )
    if not boots or any(
        change["change"] != "same"
        for change in made.changes
        if change["path"] not in {**want.shared, **want.last}
    ):
        made.slot = OTHER[kept]
        made.steps += _slot_steps(look, want, kept, made.slot)
        data = record(known[0] + 1, made.slot)
        made.steps += [
            ("write", RECORD + _NEW, data),
            ("verify", {RECORD + _NEW: digest(data)}),
            ("rename", RECORD + _NEW, RECORD),
        ]
    made.steps += _Part(look, {path: (path, data) for path, data in want.last.items()}).steps(
        verify_first=True
    )
    return made


def _slots(look: BoardState, known: tuple) -> tuple:
    """Return (the slot that boots next, the one to keep: it was READY last, or is the only one);
    None for none.
    """
    _, slot, trials, checked = known
    whole = [name for name in (slot, OTHER[slot]) if name in look.whole]
    if len(whole) < 2:
        return (whole or [None]) * 2
    other = whole[-1]
    if trials >= MAX_TRIALS:
        return other, other
    return slot, slot if checked and not trials else other


def _slot_steps(look: BoardState, want: Contents, kept, slot: str) -> list:
    """Return the steps that make *slot* what is wanted, its image last; *kept*: another slot, to
    copy from, or None.
    """
    image, folder = f"/claw-{slot}.cbor", f"/claw-{slot}"
    part = _Part(
        look,
        {f"{folder}/{name}": (f"/claw-{kept}/{name}", data) for name, data in want.slot.items()},
    )
    steps = part.steps(verify_first=False)
    renamed = {step[PATH] for step in steps if step[0] == "rename"}
    # first, because what comes may need their room
    steps[:0] = [
        ("remove", path)
        for path in sorted(look.files)
        if posixpath.dirname(path) == folder and path not in part.files and path not in renamed
    ]
    have, waiting, wanted = look.files.get(image), look.files.get(image + _NEW), digest(want.image)
    if steps or have != wanted:
        if have:
            steps.insert(0, ("rename", image, image + _NEW))
            waiting = have
        if waiting != wanted:
            same = kept and look.files.get(f"/claw-{kept}.cbor") == wanted
            steps.append(
                ("copy", image + _NEW, want.image, f"/claw-{kept}.cbor")
                if same
                else ("write", image + _NEW, want.image)
            )
        have = None
    now = image if have else image + _NEW
    steps.append(
        ("verify", {path: digest(data) for path, (_, data) in part.files.items()} | {now: wanted})
    )
    return steps if have else steps + [("rename", now, image)]


class _Part:
    """Files that belong together.  files: {path: (where the same may lie already, bytes)}"""

    def __init__(self, look: BoardState, files: dict):
        self._look = look
        self.files = files

    def steps(self, verify_first: bool) -> list:
        """Return the steps that bring what is missing; verify_first: nothing gets its name
        before all was read back.
        """
        have = self._look.files
        missing = {
            path: (source, data)
            for path, (source, data) in self.files.items()
            if have.get(path) != digest(data)
        }
        folders = {posixpath.dirname(path) for path in missing} - {"/", *self._look.folders}
        steps, renames = [("mkdir", folder) for folder in sorted(folders)], []
        for path, (source, data) in missing.items():
            steps += _bring(self._look, source, path + _NEW, data)
            (renames if verify_first else steps).append(("rename", path + _NEW, path))
        if renames:
            steps.append(
                ("verify", {path + _NEW: digest(data) for path, (_, data) in missing.items()})
            )
        return steps + renames


def _bring(look: BoardState, source: str, path: str, data: bytes) -> list:
    """Return the step that brings *data* to *path*: from *source* on the board, when that is the
    same.
    """
    if look.files.get(path) == digest(data):
        return []
    same = look.files.get(source) == digest(data)
    return [("copy", path, data, source)] if same else [("write", path, data)]


def _changes(look: BoardState, want: Contents, boots) -> list:
    slot = boots or "a"
    files = {
        **want.shared,
        **{f"/claw-{slot}/{name}": data for name, data in want.slot.items()},
        f"/claw-{slot}.cbor": want.image,
        **want.last,
    }
    have = {
        path: known
        for path, known in look.files.items()
        if path in files or boots and posixpath.dirname(path) == f"/claw-{slot}"
    }
    changes = compare(have, files)
    for change in changes:
        if change["path"] in want.last:
            change["sha256"] = None
    return changes
