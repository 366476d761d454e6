"""The sentence for JSON that jsontext.py refuses; loaded for it, so that it costs no memory before."""
from clawlite.core.errors import ParseError

_WORDS = {              # what jsontext.py calls it -> expected, and found where that is not the byte itself
    "more": "more, found the end",
    "end": "the end",
    "value": "a value",
    "depth": "at most %d levels",
    "comma": "',' or '%s'",
    "colon": "':'",
    "name": "a property name in double quotes",
    "twice": "each key once, found %r again",
    "digit": "a digit",
    "number": "a number of at most %d characters, found %d",
    "finite": "a finite number, found %s",
    "quote": "a closing quote for the string that starts here, found none",
    "control": "no raw control character in the string, found one",
    "text": "UTF-8, found other bytes",
    "escape": "one of the escapes of RFC 8259, found another",
    "hex": "four hexadecimal digits, found others",
    "half": "a surrogate pair, found half of one",
}


def fault(data: bytes, pos: int, what: str, found=None) -> ParseError:
    """Return the error at byte *pos* of *data*; *found* fills the words."""
    words = _WORDS[what]
    message = "JSON byte %d: expected %s" % (pos, words if found is None else words % found)
    if "found" not in words:
        message += ", found %r" % data[pos:pos + 1]         # b"" at the end
    return ParseError(message)
