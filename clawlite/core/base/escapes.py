"""Escapes for characters that would control a terminal or are invisible in a text.

A module of its own: most answers have no such characters, and a board has no room to spare.
Unseen are the Unicode categories Cc, Cf, Zl, Zp, Co and Cs, and what has no ink: joiners, fillers,
variation selectors, tags.  Of marks that join the character before them, the fourth and all after
it are escaped, because a high stack covers the lines above (tests/host/manifest/test_unseen.py)."""

from binascii import unhexlify

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
    0xD800,
    0xF8FF,
    0xFE00,
    0xFE0F,
    0xFEFF,
    0xFEFF,
    0xFFA0,
    0xFFA0,
    0xFFF0,
    0xFFFB,
    0xFFFE,
    0xFFFF,
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
    0xF0000,
    0x10FFFF,
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
# Marks that join the character before them (Unicode categories Mn and Me, with what is spacing or
# unassigned between them), in order: for each range the distance of its first character from the
# last of the range before, and then of its last from its first.  A distance has 7 bits a byte, high
# bits first; all bytes but its last one have bit 7.
_MARKS = unhexlify(
    "86006f82140682082c0200020102010200490a31141100660603050301020324"
    "001f1a5c0a3b080a0019030208020202042c023d072b383802050c04060b011e"
    "003b00050c15011b043a151f0104000c013a00050c150117073b0003170c011f"
    "003e0d3304380002180c011e003b00030e15011d013a01050c15011e00490c5b"
    "0003060d07630003080c054b011c000200020038130201062f0a0067111a0105"
    "0211030e0b10008540028733021e011f011f01411f0a002e0476012300771b81"
    "5c043b293153310e29080d01210b390b3b0b811902021405000700040181473f"
    "855120977f02810e00611f842b036c0181eb5503020921015101821100040005"
    "001a0106008118011b110e0027071a0a2f02310a2800440d0d00090030003400"
    "02020301060102002b010900816f030500819e310085620f110f874e00816300"
    "8116048d070e2907812601843e03830401811a0a32037c00370e2a0003010b02"
    "320708003e02250d3f000d0135080b0303006008070081210b16013a01040026"
    "0e81440e18005510816f0e1c01560d6b0c660e82040b820103050081110c2109"
    "2905030309000a0a2f0f83170f53247b1402004907825c0181977c043c068819"
    "004003520081993901a46246842102120703061f038115028f3c36053109000f"
    "0017148a512a8206068278003e038b61066e06b0af36816f"
)
MAX_STACK = 3  # marks on one character that stay: no script needs more of them in a row
_JOINER, _EMOJI = 0x200D, 0xFE0F  # what shapes an emoji
_PICTURES = 0x2190  # the first of the symbols that a joiner may follow
_RUN = 4  # shorter runs of blanks stay as they are


def escape(data: bytes, strict: bool = False) -> bytes:
    """Return the UTF-8 text *data* with its invisible characters replaced by escapes.

    strict  for a text by which a person decides: blanks beyond ASCII and the joiners of emoji are
            escaped too, and a run of 4 or more blanks becomes ``<9 blanks>``
    """
    out = bytearray()
    at = before = marks = 0
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
        marks = marks + 1 if c >= 0x300 and is_mark(c) else 0
        shapes = (c == _JOINER or c == _EMOJI) and before >= _PICTURES and not strict
        if _is_in(_UNSEEN, c) and not shapes or marks > MAX_STACK or strict and _is_in(_BLANKS, c):
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


def is_mark(c: int) -> bool:
    """Return whether the character with the code *c* joins the one before it."""
    if 0x3100 <= c < 0xA66F or 0xAC00 <= c < 0xFB1E:  # CJK and Hangul, in one step
        return False
    first = last = step = 0
    is_first = True
    for b in _MARKS:
        step = step << 7 | b & 0x7F
        if b < 0x80:
            if is_first:
                first = last + step
                if c < first:
                    return False
            else:
                last = first + step
                if c <= last:
                    return True
            is_first, step = not is_first, 0
    return False


def _is_in(ranges: tuple, c: int) -> bool:
    for place in range(0, len(ranges), 2):
        if c <= ranges[place + 1]:
            return c >= ranges[place]
    return False
