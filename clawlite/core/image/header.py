"""The header of an image, which is read once, when the image is loaded (the layout is in image.py),
and the shapes of its parts.

A correct CRC says that a file is as it was written, not that it is one of our images.  So the
decoded parts are compared with their shapes before they are used (image.cddl has all shapes in
full).  A module of its own, so that a board can drop it from memory afterwards.
"""

import struct
from binascii import crc32

from clawlite.core.formats.cbor import decode, each
from clawlite.core.base.errors import ImageError

MAGIC = b"\xd9\xd9\xf7"
FORMAT = 1
MAX_HEAD = 8192
MAX_IMAGE = 16777216
_CHUNK = 1024
_DIRECTORY = 4  # of the head
_SCHEMAS = 26  # the section of protocols/mcp/tool_definitions.py
_UNSIGNED, _SIGNED = 40, 73  # bytes behind the body: crc, digest, and null or a signature
_CUT = "the file is cut or damaged; build or flash it again"

# A shape is a type, None, a tuple (a list of exactly these), [shape] (a list of any number of it),
# [shape, shape, ...] (one of them), ``object`` (anything), or a number n: an integer below it, from
# 0 on, or from 1 on when n is negative.
_MANY, _MONEY = 1 << 32, 1 << 62
_SPAN = (_MANY, _MANY)
_ENTRY = [None, _MANY, [_MANY]]
_ROW = (str, _MANY, _MANY, _ENTRY)
_HEAD = (str, [str], bytes, [(str, bytes)], [_SPAN])
TOOL = (
    str,
    256,
    [None, str],
    object,
    object,
    _MANY,
    _MANY,
    (6, str),
    [str],
    [(str, _ENTRY)],
    [None, (_ENTRY,)],
    _SPAN,
    [None, (-_MANY, 3)],
)
RULE = (str, 4, str, _MANY, 2, [None, str], str, [None, ([None, _MANY], [None, _MONEY])])
_SECTIONS = {  # AGENT and PINS of image.py, which imports this
    1: (
        str,
        str,
        str,
        3,
        -4,
        -_MANY,
        [int],
        -_MANY,
        -_MANY,
        str,
        2,
        _SPAN,
        str,
        -_MANY,
        [None, _MANY],
        [None, _MONEY],
        [None, _MANY],
        4,
    ),
    9: [(str, _MANY, 7, 65536, [None, str], int, 65536, 65536, _MANY)],
}


def section_of(number: int, value) -> object:
    """Return *value*, the content of section *number*.  Raises ``ImageError`` when it has another
    shape.
    """
    return check_shape(value, _SECTIONS[number], "section %d" % number)


def index(data: bytes) -> tuple:
    """Return (names, row offsets) of the section TOOLS.  The names have an LF before, between and
    after them.  The offsets say where each row begins, and where the last one ends.

    The numbers are big-endian u32.  Raises ``ImageError``.
    """
    if not data or data[0] >> 5 != 4:
        check_shape(None, _ROW, "section 2")
    names, rows = ["\n"], bytearray()
    for start, row in each(data):
        if row is not None:
            name = check_shape(row, _ROW, "section 2")[0]
            if "\n" in name:  # it would be two names
                check_shape(None, _ROW, "section 2")
            names.append(name + "\n")
        rows.extend(struct.pack(">I", start))
    if 4 * len(names) != len(rows):  # a row that is null
        check_shape(None, _ROW, "section 2")
    return "".join(names), bytes(rows)


def check_shape(value, shape, what: str):
    """Return *value* when it has *shape*.  Raises ``ImageError``, which calls it *what*."""
    if not _fits(value, shape):
        raise ImageError(
            "image: %s has another shape than this runtime knows" % what,
            "build it again with this version of clawlite",
        )
    return value


def _fits(value, shape) -> bool:
    if shape is None or shape is object:
        return shape is object or value is None
    if isinstance(shape, int):
        return type(value) is int and (shape < 0) <= value < abs(shape)
    if isinstance(shape, list) and len(shape) > 1:
        for one in shape:
            if _fits(value, one):
                return True
        return False
    if isinstance(shape, (list, tuple)):
        if not isinstance(value, list) or isinstance(shape, tuple) and len(value) != len(shape):
            return False
        for number, item in enumerate(value):
            if not _fits(item, shape[number if isinstance(shape, tuple) else 0]):
                return False
        return True
    return type(value) is shape


def parse(read, size: int, keep: int) -> tuple:
    """Return (head, {section: (offset, length)}, where the seal begins).

    read  ``read(offset, length) -> bytes``, shorter at the end of the file
    keep  as ``Image`` has it; 0, a board: it holds no place of what only MCP clients are told
    Raises ``ImageError`` when the file is no image, of another format, cut, or damaged.  Cost: the
    file read once."""
    if size > MAX_IMAGE:
        raise ImageError("image: %d bytes, expected at most %d" % (size, MAX_IMAGE))
    start = read(0, 5)
    if start[:3] != MAGIC:
        raise ImageError(
            "image: expected the bytes d9 d9 f7 at its start, got %s" % _hex(start[:3]),
            "this is not an image; make one with: clawlite build",
        )
    if start[3:] != b"\x86\x01":
        raise ImageError(
            "image: this runtime wants format %d, got %s" % (FORMAT, _hex(start[3:])),
            "build it again with this version of clawlite",
        )
    pos, length = _bytes_at(read, size, 5)
    if length > MAX_HEAD:
        raise ImageError("image: expected a head of at most %d bytes, got %d" % (MAX_HEAD, length))
    body, left = _bytes_at(read, size, pos + length)
    _check(read, size, body + left)
    head = check_shape(decode(read(pos, length)), _HEAD, "the head")
    where = {}
    for section, part in head[_DIRECTORY]:
        if keep or section != _SCHEMAS:
            where[section] = (body, part)
        if part > left:
            raise ImageError(
                "image: section %d has %d bytes, the body has %d left" % (section, part, left)
            )
        body += part
        left -= part
    if left:
        raise ImageError("image: the directory and the body differ by %d bytes" % left)
    return head, where, body


def _bytes_at(read, size: int, pos: int) -> tuple:
    """Return (offset of the first byte, length) of the byte string whose head is at *pos*; it is
    checked to lie within the file.
    """
    head = read(pos, 9)
    first = head[0] if head else 0
    extra = 1 << (first - 0x58) if first >= 0x58 else 0
    if not 0x40 <= first <= 0x5B or extra >= len(head):
        raise ImageError("image: expected a byte string at byte %d of %d" % (pos, size), _CUT)
    length = int.from_bytes(head[1 : 1 + extra], "big") if extra else first - 0x40
    pos += 1 + extra
    if length > size - pos:
        raise ImageError(
            "image: truncated: a part of %d bytes begins at byte %d of %d" % (length, pos, size),
            _CUT,
        )
    return pos, length


def _check(read, size: int, end: int):
    """Check the shape of the seal at *end*, and the CRC over all bytes before it."""
    seal = read(end, 41)
    left = size - end
    if (
        left not in (_UNSIGNED, _SIGNED)
        or seal[0] != 0x44
        or seal[5:7] != b"\x58\x20"
        or seal[39:] != (b"\xf6" if left == _UNSIGNED else b"\x58\x20")
    ):
        raise ImageError(
            "image: expected %d or %d bytes of seal after the body, got %d"
            % (_UNSIGNED, _SIGNED, left),
            _CUT,
        )
    crc = pos = 0
    while pos < end:
        data = read(pos, _CHUNK if end - pos > _CHUNK else end - pos)
        crc = crc32(data, crc)
        pos += len(data)
    if struct.unpack(">I", seal[1:5])[0] != crc & 0xFFFFFFFF:
        raise ImageError("image: bad CRC: the file is damaged", _CUT)


def _hex(data: bytes) -> str:
    return " ".join(["%02x" % b for b in data]) or "nothing"
