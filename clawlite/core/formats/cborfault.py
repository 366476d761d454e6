"""The texts of errors for CBOR that cbor.py refuses.  Damaged images are rare, so this module is
loaded only when one is found.
"""

from clawlite.core.base.errors import CBORError

# filled in with the numbers that the refusing code found
_WORDS = (
    "an array, found major type %d",
    "the end, found %d more bytes",
    "a range within %d bytes, found %d..%d",
    "an item, found the end",
    "a whole head of definite length, found additional information %d",
    "false, true, null or a float, found simple value %d",
    "the shortest form, found %d in %d bytes",
    "a length that %d bytes can hold, found %d",
    "UTF-8, found other bytes",
    "a finite float in its shortest form, found another",
    "no tag, found tag %d",
    "no deeper nesting, found one more array or map",
    "integers and text as map keys, ascending, found %r",
)


def fault(pos: int, what: int, found: tuple) -> CBORError:
    """Return the error at byte *pos*; *found* fills the words."""
    return CBORError("CBOR byte %d: expected %s" % (pos, _WORDS[what] % found))
