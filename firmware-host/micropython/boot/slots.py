"""Image slots A and B, and the boot record, which says the one to boot.  bootwindow.py decides
between them (``_choose_slot``): when that one does not open, or failed too often, the other boots.

    /claw-a.cbor, /claw-a/   an image, and what it runs with: the firmware that it was flashed with,
                             tools.py
    /claw-b.cbor, /claw-b/   another
    /claw-a/files            what lies in /claw-a/: lines "NAME SIZE CRC-32", and at its end "files
                             SIZE CRC-32" of the lines before; sizes in decimal bytes, CRCs in 8 hex
                             digits.  A flash writes it, and bootwindow.py compares
    /claw.boot               the boot record, 15 bytes

    bytes   boot record
    4       "CLB1"
    4       counter, big-endian; of two records the higher one counts
    1       slot, "a" or "b"
    1       trials: boots in a row that began and were not READY
    1       1 when the slot's digest was checked since the record began to name it
    4       CRC-32 of the bytes before

1. A record is written to ``claw.boot.new`` and renamed.  A torn one has a wrong CRC and counts for
   nothing, wherever it lies.
2. With no record, slot A is tried before slot B, its digest is checked, and nothing counts trials
   from before.
3. This module is older or newer than what lies in a slot: the format stays, and so do these
   functions.
"""

import os
import struct
from binascii import crc32

_LAYOUT = ">4sI1sBB"
_MAGIC = b"CLB1"
_NAME = "/claw.boot"
_MAX_TRIALS = 255


def read(root: str = "") -> list:
    """Return [slot, trials, checked]; what is right without a record: ["a", 0, 0].

    root  where the board's file system is mounted, "" or with no slash at its end
    """
    return _newest(root)[1:]


def write(root: str, slot: str, trials: int, checked: int):
    """Write the record.  Raises ``OSError``."""
    data = struct.pack(
        _LAYOUT,
        _MAGIC,
        _newest(root)[0] + 1 & 0xFFFFFFFF,
        slot.encode(),
        min(trials, _MAX_TRIALS),
        checked,
    )
    with open(root + _NAME + ".new", "wb") as file:
        file.write(data + struct.pack(">I", crc32(data)))
    os.rename(root + _NAME + ".new", root + _NAME)


def ready(root: str = ""):
    """The agent was READY: its slot boots.  Raises ``OSError``."""
    write(root, read(root)[0], 0, 1)


def _newest(root: str) -> list:
    found = [0, "a", 0, 0]
    for name in (_NAME, _NAME + ".new"):
        try:
            with open(root + name, "rb") as file:
                data = file.read(16)
        except OSError:
            continue
        if (
            len(data) == 15
            and data[:4] == _MAGIC
            and data[8:9] in b"ab"
            and struct.unpack(">I", data[11:])[0] == crc32(data[:11])
        ):
            counter, slot, trials, checked = struct.unpack(_LAYOUT, data[:11])[1:]
            if counter > found[0]:
                found = [counter, str(slot, "utf-8"), trials, checked]
    return found
