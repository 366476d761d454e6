"""Strict UTF-8 (RFC 3629), the same on every runtime.

CPython's own codec is strict.  MicroPython's checks only that each lead byte has the right number
of continuation bytes.  It accepts surrogates (ED A0 80), overlong forms (C0 80) and code points
above U+10FFFF, so the same bytes would be text on a board and an error on a Pi.
A test at import finds out which codec this runtime has."""

try:
    str(b"\xc0\x80", "utf-8")
    _LENIENT = True
except ValueError:
    _LENIENT = False


def decode_utf8(buf) -> str:
    """Return the text that *buf* (bytes, bytearray or memoryview) holds.

    Raises ValueError when it is not UTF-8.
    Cost    ASCII: one pass in C; else, on MicroPython, nine searches in C and one step per E0, ED,
            F0 or F4.
    """
    text = str(buf, "utf-8")
    if _LENIENT and len(text) != len(buf):
        _be_strict(bytes(buf))
    return text


def _be_strict(data: bytes):
    """Raise ValueError for bytes that MicroPython accepts and RFC 3629 does not."""
    for lead in b"\xc0\xc1\xf5\xf6\xf7":
        if bytes((lead,)) in data:
            raise ValueError("not UTF-8: byte 0x%02x" % lead)
    # lead byte, lowest and highest second byte (RFC 3629, 4); other leads take 80..BF, which
    # MicroPython checks
    second = b"\xe0\xa0\xbf\xed\x80\x9f\xf0\x90\xbf\xf4\x80\x8f"
    for at in range(0, len(second), 3):
        pos = data.find(second[at : at + 1])
        while pos >= 0:
            if not second[at + 1] <= data[pos + 1] <= second[at + 2]:
                raise ValueError(
                    "not UTF-8: 0x%02x 0x%02x at byte %d" % (data[pos], data[pos + 1], pos)
                )
            pos = data.find(second[at : at + 1], pos + 2)
