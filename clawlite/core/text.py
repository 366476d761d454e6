"""Strict UTF-8 (RFC 3629), the same on every runtime.

CPython's own codec is strict.  MicroPython's checks only that lead bytes are followed by the right number of
continuation bytes: it takes surrogates (ED A0 80), overlong forms (C0 80) and code points above U+10FFFF, so one
and the same byte string would be text on a board and an error on a Pi.  Which kind we run on is tried out once.
"""


def _is_lenient() -> bool:
    try:
        str(b"\xc0\x80", "utf-8")
    except ValueError:
        return False
    return True


_LENIENT = _is_lenient()

# lead byte -> lowest and highest second byte (RFC 3629, 4); other leads take 80..BF, which MicroPython checks
_SECOND = ((b"\xe0", 0xA0, 0xBF), (b"\xed", 0x80, 0x9F), (b"\xf0", 0x90, 0xBF), (b"\xf4", 0x80, 0x8F))
_NEVER = (b"\xc0", b"\xc1", b"\xf5", b"\xf6", b"\xf7")


def decode_utf8(buf) -> str:
    """Return the text that *buf* (bytes, bytearray or memoryview) holds.

    Raises ValueError when it is not UTF-8.
    Cost    ASCII: one pass in C; else, on MicroPython, nine searches in C and one step per E0, ED, F0 or F4.
    """
    text = str(buf, "utf-8")
    if _LENIENT and len(text) != len(buf):
        _check(bytes(buf))
    return text


def encode_utf8(text: str) -> bytes:
    """Return *text* as UTF-8.  Raises ValueError when it holds a surrogate."""
    data = text.encode()
    if _LENIENT and len(text) != len(data):
        _check(data)
    return data


def _check(data: bytes) -> None:
    """Raise ValueError when *data*, whose lead and continuation bytes fit, breaks RFC 3629."""
    for lead in _NEVER:
        if lead in data:
            raise ValueError("not UTF-8: byte 0x%02x" % lead[0])
    for lead, low, high in _SECOND:
        pos = data.find(lead)
        while pos >= 0:
            if not low <= data[pos + 1] <= high:
                raise ValueError("not UTF-8: 0x%02x 0x%02x at byte %d" % (lead[0], data[pos + 1], pos))
            pos = data.find(lead, pos + 2)
