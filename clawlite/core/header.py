"""The header of an image: what is read once, when it is loaded (the layout is in image.py).

A module of its own, so that a board can drop it from memory afterwards.
"""
import struct
from binascii import crc32

from clawlite.core.cbor import decode
from clawlite.core.errors import ImageError

MAGIC = b"\xd9\xd9\xf7"
FORMAT = 1
MAX_HEAD = 8192
MAX_IMAGE = 16777216
_CHUNK = 1024
_UNSIGNED, _SIGNED = 40, 73     # bytes behind the body: crc, digest, and null or a signature


def parse(read, size: int) -> tuple:
    """Return (head, {section: (offset, length)}, where the seal begins).

    read  ``read(offset, length) -> bytes``, shorter at the end of the file
    Raises ``ImageError`` when the file is no image, of another format, cut, or damaged.  Cost: the file read once.
    """
    if size > MAX_IMAGE:
        raise ImageError("image: %d bytes, expected at most %d" % (size, MAX_IMAGE))
    start = read(0, 5)
    if start[:3] != MAGIC:
        raise ImageError("image: expected the bytes d9 d9 f7 at its start, got %s" % _hex(start[:3]),
                         "this is not an image; make one with: clawlite build")
    if start[3:] != b"\x86\x01":
        raise ImageError("image: this runtime wants format %d, got %s" % (FORMAT, _hex(start[3:])),
                         "build it again with this version of clawlite")
    pos, length = _bytes_at(read, size, 5)
    if length > MAX_HEAD:
        raise ImageError("image: expected a head of at most %d bytes, got %d" % (MAX_HEAD, length))
    head = decode(read(pos, length))
    body, length = _bytes_at(read, size, pos + length)
    where = {}
    for section, part in head[4]:
        where[section] = (body, part)
        if not 0 <= part <= length:
            raise ImageError("image: section %d has %d bytes, the body has %d left" % (section, part, length))
        body += part
        length -= part
    if length:
        raise ImageError("image: the directory and the body differ by %d bytes" % length)
    _check(read, size, body)
    return head, where, body


def _bytes_at(read, size: int, pos: int) -> tuple:
    """Return (offset of the first byte, length) of the byte string whose head is at *pos*; it lies in the file."""
    head = read(pos, 9)
    first = head[0] if head else 0
    extra = 1 << (first - 0x58) if first >= 0x58 else 0
    if not 0x40 <= first <= 0x5b or extra >= len(head):
        raise ImageError("image: expected a byte string at byte %d of %d" % (pos, size))
    length = int.from_bytes(head[1:1 + extra], "big") if extra else first - 0x40
    pos += 1 + extra
    if length > size - pos:
        raise ImageError("image: truncated: a part of %d bytes begins at byte %d of %d" % (length, pos, size))
    return pos, length


def _check(read, size: int, end: int):
    """Check the shape of the seal at *end*, and the CRC over all before it."""
    seal = read(end, 41)
    left = size - end
    if left not in (_UNSIGNED, _SIGNED) or seal[0] != 0x44 or seal[5:7] != b"\x58\x20" \
            or seal[39:] != (b"\xf6" if left == _UNSIGNED else b"\x58\x20"):
        raise ImageError("image: expected %d or %d bytes of seal after the body, got %d" % (_UNSIGNED, _SIGNED, left),
                         "the file is cut or damaged; build or flash it again")
    crc = pos = 0
    while pos < end:
        data = read(pos, _CHUNK if end - pos > _CHUNK else end - pos)
        crc = crc32(data, crc)
        pos += len(data)
    if struct.unpack(">I", seal[1:5])[0] != crc & 0xffffffff:
        raise ImageError("image: bad CRC: the file is damaged", "build or flash it again")


def _hex(data: bytes) -> str:
    return " ".join(["%02x" % b for b in data]) or "nothing"
