"""The sentence for a piece of CBOR that cbor.py refuses.  Images are whole nearly always: it is loaded when one is not."""
from clawlite.core.errors import CBORError

_WORDS = {              # what cbor.py calls it -> expected and found
    "array": "an array, found major type %d",
    "end": "the end, found %d more bytes",
    "range": "a range within %d bytes, found %d..%d",
    "item": "an item, found the end",
    "head": "a whole head of definite length, found additional information %d",
    "simple": "false, true, null or a float, found simple value %d",
    "shortest": "the shortest form, found %d in %d bytes",
    "length": "a length that %d bytes can hold, found %d",
    "text": "UTF-8, found other bytes",
    "float": "a finite float in its shortest form, found another",
    "tag": "no tag, found tag %d",
    "depth": "no deeper nesting, found one more array or map",
    "key": "integers and text as map keys, ascending, found %r",
}


def fault(pos: int, what: str, found: tuple) -> CBORError:
    """Return the error at byte *pos*; *found* fills the words."""
    return CBORError("CBOR byte %d: expected %s" % (pos, _WORDS[what] % found))
