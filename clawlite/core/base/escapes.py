"""Escapes for characters that would control a terminal or are invisible in a text.

A module of its own: most answers have no such characters, and a board has no room to spare.
Unseen are the Unicode categories Cc, Cf, Zl and Zp, and what has no ink: joiners, fillers,
variation selectors, tags (tests/host/manifest/test_unseen.py)."""

# First and last of each range, in order.
_UNSEEN = (
    0,
    8,
    0xB,
    0x1F,
    0x7F,
    0x9F,
    0xAD,
    0xAD,
    0x34F,
    0x34F,
    0x600,
    0x605,
    0x61C,
    0x61C,
    0x6DD,
    0x6DD,
    0x70F,
    0x70F,
    0x890,
    0x891,
    0x8E2,
    0x8E2,
    0x115F,
    0x1160,
    0x17B4,
    0x17B5,
    0x180B,
    0x180F,
    0x200B,
    0x200F,
    0x2028,
    0x202E,
    0x2060,
    0x206F,
    0x2800,
    0x2800,
    0x3164,
    0x3164,
    0xFE00,
    0xFE0F,
    0xFEFF,
    0xFEFF,
    0xFFA0,
    0xFFA0,
    0xFFF0,
    0xFFFB,
    0x110BD,
    0x110BD,
    0x110CD,
    0x110CD,
    0x13430,
    0x1345F,
    0x1BCA0,
    0x1BCA3,
    0x1D173,
    0x1D17A,
    0xE0000,
    0xE0FFF,
)
_BLANKS = (
    0xA0,
    0xA0,
    0x1680,
    0x1680,
    0x2000,
    0x200A,
    0x202F,
    0x202F,
    0x205F,
    0x205F,
    0x3000,
    0x3000,
)
_JOINER, _EMOJI = 0x200D, 0xFE0F  # what shapes an emoji
_PICTURES = 0x2190  # the first of the symbols that a joiner may follow
_RUN = 4  # shorter runs of blanks stay as they are


def escaped(data: bytes, strict: bool = False) -> bytes:
    """Return the UTF-8 text *data* with its invisible characters replaced by escapes.

    strict  for a text by which a person decides: blanks beyond ASCII and the joiners of emoji are
            escaped too, and a run of 4 or more blanks becomes ``<9 blanks>``
    """
    out = bytearray()
    at = before = 0
    while at < len(data):
        b = data[at]
        size = 1 if b < 0xC0 else 2 if b < 0xE0 else 3 if b < 0xF0 else 4
        c = b if size == 1 else b & 0x3F >> size - 1
        for more in range(1, size):
            c = c << 6 | data[at + more] & 0x3F
        if strict and b == 32:
            end = at
            while end < len(data) and data[end] == 32:
                end += 1
            if end - at >= _RUN:
                out.extend(b"<%d blanks>" % (end - at))
                at = end
                continue
        shapes = (c == _JOINER or c == _EMOJI) and before >= _PICTURES and not strict
        if _is_in(_UNSEEN, c) and not shapes or strict and _is_in(_BLANKS, c):
            out.extend((b"\\x%02x" if c < 256 else b"\\u%04x" if c < 65536 else b"\\U%08x") % c)
            c = 0
        else:
            out.extend(data[at : at + size])
        if c != _EMOJI:  # a joiner after this selector belongs to the symbol before it
            before = c
        at += size
    return bytes(out)


def is_unseen(c: int) -> bool:
    """Return whether the character with the code *c* is invisible."""
    return _is_in(_UNSEEN, c)


def _is_in(ranges: tuple, c: int) -> bool:
    for place in range(0, len(ranges), 2):
        if c <= ranges[place + 1]:
            return c >= ranges[place]
    return False
