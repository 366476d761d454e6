"""Escapes for what would drive a terminal: a module of its own, since most answers have none and a board has no room to spare."""


def escaped(data: bytes) -> bytes:
    """Return the UTF-8 text *data* with its control characters but line feed and tab, and its marks of direction, written out."""
    out = bytearray()
    at = 0
    while at < len(data):
        b = data[at]
        size = 1 if b < 0xC0 else 2 if b < 0xE0 else 3 if b < 0xF0 else 4
        if b < 32 and b != 10 and b != 9 or b == 127:
            out.extend(b"\\x%02x" % b)
        elif b == 0xC2 and data[at + 1] < 0xA0:
            out.extend(b"\\x%02x" % data[at + 1])
        elif b == 0xE2 and (data[at + 1] == 0x80 and 0xAA <= data[at + 2] <= 0xAE or data[at + 1] == 0x81 and 0xA6 <= data[at + 2] <= 0xA9):
            out.extend(b"\\u20%02x" % (data[at + 1] << 6 & 0x40 | data[at + 2] & 0x3F))
        else:
            out.extend(data[at:at + size])
        at += size
    return bytes(out)
