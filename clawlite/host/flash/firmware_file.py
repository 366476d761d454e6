"""MicroPython itself as a file: what it is for, told by the file alone, before anything is written.

UF2 (https://github.com/microsoft/uf2): blocks of 512 bytes, each with two magic words, its number,
and the family of chips that it is for.  An ESP image (esptool's documentation, "Firmware image
format"): byte 0 is 0xE9, byte 1 counts segments, bytes 12 and 13 are the chip's number.
"""

import hashlib
import os
import struct
from dataclasses import dataclass

from clawlite.core.base.errors import ClawError
from clawlite.host.base.regular_file import open_regular

MAX_BYTES = 64 << 20
_BLOCK = 512
_MAGIC, _END = (0x0A324655, 0x9E5D5157), 0x0AB16F30
_NOT_MAIN_FLASH, _HAS_FAMILY = 0x1, 0x2000
_MOST_PAYLOAD = 476
# a block for any address, which tools put first as a way around erratum RP2350-E10
_RP2350_ANY = 0xE48BFF57
_ESP_MAGIC, _MOST_SEGMENTS = 0xE9, 16


@dataclass(frozen=True)
class Chip:
    """How a chip takes firmware: as UF2 of these families onto a drive with this Board-ID, or
    through esptool at an address.
    """

    families: tuple = ()
    drive: str = ""
    number: int = None
    address: int = None


CHIPS = {
    "rp2040": Chip((0xE48BFF56,), "RPI-RP2"),
    # Arm secure, RISC-V, Arm non-secure
    "rp2350": Chip((0xE48BFF59, 0xE48BFF5A, 0xE48BFF5B), "RP2350"),
    "esp32": Chip(number=0, address=0x1000),
    "esp32s3": Chip(number=9, address=0),
    "esp32c3": Chip(number=5, address=0),
    "esp32c6": Chip(number=13, address=0),
}


@dataclass(frozen=True)
class Firmware:
    """A file that was looked into.  kind: "uf2" or "esp"; chip: one of ``CHIPS``."""

    path: str
    kind: str
    chip: str
    data: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def read(path: str) -> Firmware:
    """Return the firmware in the file *path*.  Raises ``ClawError``: it is none, or damaged, or
    for a chip that no board has.
    """
    try:
        with open(path, "rb", opener=open_regular) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as e:
        raise ClawError(
            f"{path}: {e.strerror}", "name a .uf2 or .bin file of MicroPython for your board"
        ) from None
    if len(data) > MAX_BYTES:
        raise ClawError(
            f"{path}: expected at most {MAX_BYTES} bytes",
            "name the file of MicroPython for this board",
        )
    name = os.fspath(path)
    if data[:4] == _MAGIC[0].to_bytes(4, "little"):
        return Firmware(name, "uf2", _uf2_chip(name, data), data)
    if data[:1] == bytes([_ESP_MAGIC]):
        return Firmware(name, "esp", _esp_chip(name, data), data)
    raise ClawError(
        f"{path}: neither UF2 nor an ESP image",
        "name a .uf2 or .bin file of MicroPython for your board",
    )


def _uf2_chip(path: str, data: bytes) -> str:
    """Return the chip of a whole UF2 file: all its blocks are there, and are for one chip."""
    if len(data) % _BLOCK:
        raise ClawError(
            f"{path}: {len(data)} bytes are no whole number of UF2 blocks", "download it again"
        )
    blocks = {}  # {family: (numbers that came, how many there should be)}
    for at in range(0, len(data), _BLOCK):
        first, second, flags, _, size, number, count, family = struct.unpack_from("<8I", data, at)
        if (
            (first, second) != _MAGIC
            or struct.unpack_from("<I", data, at + _BLOCK - 4)[0] != _END
            or size > _MOST_PAYLOAD
        ):
            raise ClawError(f"{path}: block {at // _BLOCK} is damaged", "download it again")
        if flags & _NOT_MAIN_FLASH:
            continue
        if not flags & _HAS_FAMILY:
            raise ClawError(
                f"{path}: it does not say which chip it is for",
                "take the file that is made for your board",
            )
        if family != _RP2350_ANY:
            blocks.setdefault(family, (set(), count))[0].add(number)
    for family, (numbers, count) in blocks.items():
        if len(numbers) != count or max(numbers) >= count:
            raise ClawError(f"{path}: {len(numbers)} blocks, expected {count}", "download it again")
    found = {name for name, chip in CHIPS.items() if set(blocks) & set(chip.families)}
    strange = [
        family for family in blocks if not any(family in chip.families for chip in CHIPS.values())
    ]
    if strange or len(found) != 1:
        what = (
            f"UF2 family {strange[0]:08X}"
            if strange
            else "chips " + " and ".join(sorted(found))
            if found
            else "no chip"
        )
        raise ClawError(
            f"{path}: it is for {what}, expected one of "
            f"{', '.join(name for name, chip in CHIPS.items() if chip.families)}",
            "take the file that is made for your board",
        )
    return found.pop()


def _esp_chip(path: str, data: bytes) -> str:
    if len(data) < 24 or not 1 <= data[1] <= _MOST_SEGMENTS:
        raise ClawError(f"{path}: begins as an ESP image and is none", "download it again")
    number = int.from_bytes(data[12:14], "little")
    for name, chip in CHIPS.items():
        if chip.number == number:
            return name
    raise ClawError(
        f"{path}: it is for ESP chip number {number}, expected one of "
        f"{', '.join(name for name, chip in CHIPS.items() if chip.number is not None)}",
        "take the file that is made for your board",
    )
