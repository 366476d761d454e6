"""Deterministic CBOR (RFC 8949, 4.2.1), the part of it that images and audit records use.

1. One value, one encoding: shortest heads, shortest exact floats, map keys in bytewise order.  The decoder refuses all
   others, so ``encode(decode(x)) == x`` for what it accepts (64-bit floats on a board with 32-bit ones excepted).
2. Integers of 64 bits and a sign, byte and text strings, arrays, maps keyed by integers or text, false, true, null,
   finite floats.  No tags (image.py strips its own by means of ``head``), no indefinite lengths, no NaN, no infinity.
3. Every length is compared with what is left before it is used, ``n > end - pos``: ``pos + n`` overflows when compiled.
4. What is returned owns its bytes.
"""
from clawlite.core.errors import CBORError
from clawlite.core.floats import pack_float, unpack_float
from clawlite.core.text import decode_utf8, encode_utf8

MAX_DEPTH = 16
_SIMPLE = (False, True, None)           # simple values 20, 21, 22


def decode(buf, start: int = 0, end: int = None, max_depth: int = MAX_DEPTH):
    """Return the one item that ``buf[start:end]`` holds.

    buf        bytes; a bytearray or memoryview is copied whole first, so cut it to the item before
    max_depth  arrays and maps that may be open at once, 0..64: each costs a call
    Raises CBORError, which names byte offset in *buf*, expected and found.
    """
    if end is None:
        end = len(buf)
    value, pos = decode_at(buf, start, end, max_depth)
    if pos != end:
        raise _fault(pos, "the end", "%d more bytes" % (end - pos))
    return value


def decode_at(buf, pos: int, end: int, max_depth: int = MAX_DEPTH) -> tuple:
    """Return ``(item, new_pos)`` for the item at *pos*, which must end at or before *end*; else as ``decode``."""
    reader = _Reader(buf, pos, end)
    value = reader.item(max_depth)
    return value, reader.pos


def head(buf, pos: int, end: int) -> tuple:
    """Return ``(major, value, new_pos)`` of the head at *pos*.  Raises CBORError.

    major  0 uint, 1 nint (the integer is -1 - value), 2 bytes, 3 text, 4 array, 5 map, 6 tag, 7 simple or float
    value  strings end before *end*, arrays and maps have a byte there for each item, as far as this head can tell;
           of major 7: 20 false, 21 true, 22 null, 25..27 a float, and *new_pos* is behind its bytes
    """
    reader = _Reader(buf, pos, end)
    major = reader.head()
    return major, reader.n, reader.pos


def skip(buf, pos: int, end: int) -> int:
    """Return the position behind the item at *pos*, and build nothing.

    Raises CBORError.  Checks heads, lengths and tags, not UTF-8, key order, float form or depth (no recursion).
    """
    reader = _Reader(buf, pos, end)
    todo = 1
    while todo:
        todo -= 1
        start = reader.pos
        major = reader.head()
        if major == 4 or major == 5:
            todo += reader.n if major == 4 else 2 * reader.n
            if todo > end - reader.pos:
                raise _fault(start, "%d bytes or more" % todo, "%d" % (end - reader.pos))
        elif major == 2 or major == 3:
            reader.pos += reader.n
        elif major == 6:
            raise _fault(start, "no tag", "one")
    return reader.pos


def _fault(pos: int, expected: str, found: str) -> CBORError:
    return CBORError("CBOR byte %d: expected %s, found %s" % (pos, expected, found))


class _Reader:
    """A position in a buffer.  ``raw`` and ``data`` are the same bytes: compiled, ``data`` is a typed view of them."""

    def __init__(self, buf, pos: int, end: int):
        if not 0 <= pos <= end <= len(buf):
            raise _fault(pos, "a range within %d bytes" % len(buf), "%d..%d" % (pos, end))
        self.raw = buf if type(buf) is bytes else bytes(buf)
        self.data = self.raw
        self.pos = pos
        self.end = end
        self.n = 0

    def head(self) -> int:
        """Return the major type at ``pos``, leave its argument in ``n``, move behind it (behind all of a float)."""
        start = self.pos
        if start >= self.end:
            raise _fault(start, "an item", "the end")
        n = self.data[start]
        major = n >> 5
        n &= 31
        size = 1 << (n - 24) if n > 23 else 0       # bytes that the head has more
        pos = start + 1
        if n > 27 or size > self.end - pos:
            raise _fault(start, "a whole head of definite length", "additional information %d" % n)
        if major == 7:
            if n < 20 or n == 23 or n == 24:
                raise _fault(start, "false, true, null or a float", "simple value %d" % n)
        elif size:
            n = 0
            for i in range(pos, pos + size):
                n = (n << 8) | self.data[i]
            if n < 24 or n >> (4 * size) == 0:      # 4 * size: half of the bits would have done
                raise _fault(start, "the shortest form", "%d in %d bytes" % (n, size))
        self.pos = pos + size
        left = self.end - self.pos
        if 1 < major < 6 and (n > left or (major == 5 and n > left - n)):
            raise _fault(start, "a length that %d bytes can hold" % left, "%d" % n)
        self.n = n
        return major

    def item(self, depth: int):
        """Return the object at ``pos``; *depth* more containers may be opened."""
        start = self.pos
        if start < self.end and self.data[start] < 24:      # most of a record: no call for these
            self.pos = start + 1
            return self.data[start]
        major = self.head()
        n = self.n
        if major == 0:
            return n
        if major == 1:
            value = n                   # an object: compiled, n is unsigned and -1 - n would wrap
            return -1 - value
        if major == 7:
            if n < 25:
                return _SIMPLE[n - 20]
            value = unpack_float(self.raw[start + 1:self.pos])
            if value is None:
                raise _fault(start, "a finite float in its shortest form", "another")
            return value
        pos = self.pos
        if major < 4:
            self.pos = pos + n
            chunk = self.raw[pos:self.pos]
            if major == 2:
                return chunk
            try:
                text = chunk.decode("utf-8")
                return text if len(text) == n else decode_utf8(chunk)   # ASCII needs no second look
            except ValueError:
                raise _fault(pos, "UTF-8", "other bytes")
        if major == 6:
            raise _fault(start, "no tag", "tag %d" % n)
        if depth <= 0:
            raise _fault(start, "no deeper nesting", "one more array or map")
        if major == 5:
            return self.table(n, depth - 1)
        result = []
        for _ in range(n):
            result.append(self.item(depth - 1))
        return result

    def table(self, n: int, depth: int) -> dict:
        result = {}
        last = b""
        for _ in range(n):
            start = self.pos
            key = self.item(0)
            code = self.raw[start:self.pos]
            if code <= last or code[0] >= 0x80 or 0x40 <= code[0] < 0x60:
                raise _fault(start, "integers and text as map keys, ascending", "%r" % (key,))
            last = code
            result[key] = self.item(depth)
        return result


def encode(obj, max_depth: int = MAX_DEPTH) -> bytes:
    """Return *obj* in its one deterministic form.

    obj  int of 64 bits and a sign, str, bytes-like, list, tuple, dict keyed by int or str, bool, None, finite float
    Raises CBORError for anything else, for a surrogate in a str, and for nesting beyond *max_depth*.
    """
    out = bytearray()
    _put(out, obj, max_depth)
    return bytes(out)


def _put_head(out, major: int, n: int) -> None:
    if n < 24:
        out.append(major | n)
        return
    size = 0
    while n >> (8 << size):
        size += 1
    if size > 3:
        raise CBORError("CBOR: expected an integer of 64 bits and a sign, found a longer one")
    out.append(major | 24 | size)
    out.extend(n.to_bytes(1 << size, "big"))


def _put(out, obj, depth: int) -> None:
    if obj is None:
        out.append(0xF6)
    elif obj is True or obj is False:   # before int: a bool is one on CPython
        out.append(0xF5 if obj else 0xF4)
    elif isinstance(obj, int):
        if obj < 0:
            _put_head(out, 0x20, -1 - obj)
        else:
            _put_head(out, 0x00, obj)
    elif isinstance(obj, str):
        try:
            data = encode_utf8(obj)
        except ValueError:
            raise CBORError("CBOR: expected text, found a surrogate in it")
        _put_head(out, 0x60, len(data))
        out.extend(data)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        _put_head(out, 0x40, len(obj))
        out.extend(obj)
    elif isinstance(obj, float):
        data = pack_float(obj)
        if not data:
            raise CBORError("CBOR: expected a finite float, found %r" % obj)
        out.append(0xF9 + len(data) // 4)   # 2, 4, 8 bytes: F9, FA, FB
        out.extend(data)
    elif not isinstance(obj, (list, tuple, dict)):
        raise CBORError("CBOR: expected a plain object, found %s" % type(obj).__name__)
    elif depth <= 0:
        raise CBORError("CBOR: expected no deeper nesting, found one more array or map")
    elif isinstance(obj, dict):
        _put_map(out, obj, depth - 1)
    else:
        _put_head(out, 0x80, len(obj))
        for item in obj:
            _put(out, item, depth - 1)


def _put_map(out, obj, depth: int) -> None:
    keys = {}
    for key in obj:
        if key is True or key is False or not isinstance(key, (int, str)):
            raise CBORError("CBOR: expected an integer or text as key, found %r" % (key,))
        code = bytearray()
        _put(code, key, 0)
        keys[bytes(code)] = key
    _put_head(out, 0xA0, len(keys))
    for code in sorted(keys):
        out.extend(code)
        _put(out, obj[keys[code]], depth)
