"""The texts of errors for JSON that jsontext.py refuses; loaded for an error, so that they cost no
memory before.
"""

from clawlite.core.base.errors import ParseError

# filled in with the values of the refusing code; without "found", the byte itself is added
_WORDS = (
    "more, found the end",
    "the end",
    "a value",
    "at most %d levels",
    "',' or '%s'",
    "':'",
    "a property name in double quotes",
    "each key once, found %r again",
    "a digit",
    "a number of at most %d characters, found %d",
    "a finite number, found %s",
    "a closing quote for the string that starts here, found none",
    "no raw control character in the string, found one",
    "UTF-8, found other bytes",
    "one of the escapes of RFC 8259, found another",
    "four hexadecimal digits, found others",
    "a surrogate pair, found half of one",
)


def fault(data: bytes, pos: int, what: int, found=None) -> ParseError:
    """Return the error at byte *pos* of *data*; *found* fills the words."""
    words = _WORDS[what]
    message = "JSON byte %d: expected %s" % (pos, words if found is None else words % found)
    if "found" not in words:
        message += ", found %r" % data[pos : pos + 1]  # b"" at the end
    return ParseError(message)
