"""Text that is no Unicode, with U+FFFD (a replacement character) for what is none: loaded when such
text comes.

Bytes that are no UTF-8 come from file names and old pages; half of a surrogate pair comes from
JSON that was cut within a character.  The result is the same on every runtime.
"""

from clawlite.core.base.text import decode_utf8

_HEX = b"0123456789abcdefABCDEF"


def mend_text(data: bytes) -> str:
    """Return the text of *data* (bytes), with a replacement character for each byte that belongs to
    no character.
    """
    try:
        return decode_utf8(data)
    except ValueError:
        pass
    out, at = bytearray(), 0
    while at < len(data):
        byte = data[at]
        size = 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        piece = data[at : at + size]
        try:
            decode_utf8(piece)
        except ValueError:
            piece = b"\xef\xbf\xbd"
            size = 1
        out.extend(piece)
        at += size
    return str(bytes(out), "utf-8")


def mend_value(value):
    """Return *value*, a tree of plain objects, with the texts in it mended; other objects stay."""
    if isinstance(value, str):
        try:
            value.encode()
            return value
        except UnicodeError:
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return dict([(mend_value(key), mend_value(value[key])) for key in value])
    if isinstance(value, (list, tuple)):
        return [mend_value(one) for one in value]
    return value


def mend_json(data: bytes) -> bytes:
    """Return the JSON text *data* as valid UTF-8, with a replacement character for each escape that
    is half of a pair.  The same object comes back when there is nothing to mend.
    """
    try:
        decode_utf8(data)
    except ValueError:
        data = mend_text(data).encode()
    out, at = None, data.find(b"\\")
    while at >= 0:
        step = 2
        code = _code(data, at)
        if code is not None:
            step = 6
            if 0xD800 <= code <= 0xDFFF:
                low = _code(data, at + 6)
                if code < 0xDC00 and low is not None and 0xDC00 <= low <= 0xDFFF:
                    step = 12
                else:
                    out = bytearray(data) if out is None else out
                    out[at : at + 6] = b"\\ufffd"  # of the same length
        at = data.find(b"\\", at + step)
    return data if out is None else bytes(out)


def _code(data: bytes, at: int):
    """Return the number of an escape such as ``\\ud83c`` at *at*, or None when none is there."""
    if data[at : at + 2] != b"\\u" or len(data) < at + 6:
        return None
    digits = data[at + 2 : at + 6]
    for digit in digits:
        if digit not in _HEX:
            return None
    return int(str(digits, "utf-8"), 16)
