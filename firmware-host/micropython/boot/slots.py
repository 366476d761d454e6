"""Image slots A and B, and the boot record, which names the slot to boot.  bootwindow.py decides
between them (``_choose_slot``): when that slot cannot be opened, or failed too often, the other one
boots.

    /claw-a.cbor, /claw-a/   an image, and its files: the firmware that it was flashed with, and
                             tools.py
    /claw-b.cbor, /claw-b/   another
    /claw-a/files            the list of the files in /claw-a/: lines "NAME SIZE CRC-32", and at its
                             end "files SIZE CRC-32" of the lines before; sizes in decimal bytes,
                             CRCs in 8 hex digits.  A flash writes it, and bootwindow.py checks it
    /claw.boot               the boot record, 15 bytes

    bytes   boot record
    4       "CLB1"
    4       counter, big-endian; the record with the higher counter is valid
    1       slot, "a" or "b"
    1       trials: boots in a row that did not reach READY
    1       1 when the slot's digest has been checked since the record first named the slot
    4       CRC-32 of the bytes before

1. A record is written to ``claw.boot.new``, which is then renamed.  A torn record has a wrong CRC
   and is ignored, whichever file it is in.
2. Without a record, slot A is tried before slot B, the digest is checked, and trials count from 0.
3. This module may be older or newer than the files in a slot, so the format and these functions
   must not change.
"""

import os
import struct
from binascii import crc32

_LAYOUT = ">4sI1sBB"
_MAGIC = b"CLB1"
_NAME = "/claw.boot"
_MAX_TRIALS = 255


def read(root: str = "") -> list:
    """Return [slot, trials, checked]; ["a", 0, 0] without a record.

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
    """Record that the agent was READY: its slot goes on booting.  Raises ``OSError``."""
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
