"""Deterministic CBOR (RFC 8949, 4.2.1), the part of it that images and audit records use, read.

1. One value, one encoding: shortest heads, shortest exact floats, map keys in bytewise order.  All
   others are refused, so ``encode(decode(x)) == x`` for what is accepted (64-bit floats on a board
   with 32-bit ones excepted).
2. Integers of 64 bits and a sign, byte and text strings, arrays, maps keyed by integers or text,
   false, true, null, finite floats.  No tags (image.py knows its own by its bytes), no indefinite
   lengths, no NaN, no infinity.
3. Every length is compared with what is left before it is used, ``n > end - pos``: ``pos + n``
   overflows when compiled.
4. What is returned owns its bytes.
5. Writing is encoder.py: a device only reads.  The words for what is wrong are cborfault.py, loaded
   for them.
"""

from clawlite.core.base.text import decode_utf8

MAX_DEPTH = 16
# What is wrong, by its place in cborfault.py: a short text would be a name that stays in a board's
# memory.
(
    _ARRAY,
    _END,
    _RANGE,
    _ITEM,
    _HEAD,
    _SIMPLE,
    _SHORTEST,
    _LENGTH,
    _TEXT,
    _FLOAT,
    _TAG,
    _DEPTH,
    _KEY,
) = range(13)


def decode(buf, start: int = 0, end: int = None, max_depth: int = MAX_DEPTH):
    """Return the one item that ``buf[start:end]`` holds.

    buf        bytes; a bytearray or memoryview is copied whole first, so cut it to the item before
    max_depth  arrays and maps that may be open at once, 0..64
    Raises CBORError, which names byte offset in *buf*, expected and found.
    """
    if end is None:
        end = len(buf)
    reader = _Reader(buf, start, end)
    value = reader.item(max_depth)
    if reader.pos != end:
        raise _fault(reader.pos, _END, end - reader.pos)
    return value


def each(buf: bytes):
    """Yield (where it begins, item) for each item of the one array that *buf* holds, then (where
    the last ends, None).

    Raises CBORError, for what is no array too.
    """
    reader = _Reader(buf, 0, len(buf))
    major = reader.head()
    if major != 4:
        raise _fault(0, _ARRAY, major)
    for _ in range(reader.n):
        start = reader.pos
        yield start, reader.item(MAX_DEPTH - 1)
    if reader.pos != len(buf):
        raise _fault(reader.pos, _END, len(buf) - reader.pos)
    yield reader.pos, None


def _fault(pos: int, what: int, *found):
    from clawlite.core.formats import cborfault

    return cborfault.fault(pos, what, found)


class _Reader:
    """A position in a buffer.  ``raw`` and ``data`` are the same bytes: compiled, ``data`` is a
    typed view of them.
    """

    def __init__(self, buf, pos: int, end: int):
        if not 0 <= pos <= end <= len(buf):
            raise _fault(pos, _RANGE, len(buf), pos, end)
        self.raw = buf if type(buf) is bytes else bytes(buf)
        self.data = self.raw
        self.pos = pos
        self.end = end
        self.n = self.more = 0
        self.last = b""

    def head(self) -> int:
        """Return the major type at ``pos``, leave its argument in ``n``, move behind it (behind
        all of a float).
        """
        start = self.pos
        if start >= self.end:
            raise _fault(start, _ITEM)
        n = self.data[start]
        major = n >> 5
        n &= 31
        size = 1 << (n - 24) if n > 23 else 0  # bytes that the head has more
        pos = start + 1
        if n > 27 or size > self.end - pos:
            raise _fault(start, _HEAD, n)
        if major == 7:
            if n < 20 or n == 23 or n == 24:
                raise _fault(start, _SIMPLE, n)
        elif size:
            n = 0
            for i in range(pos, pos + size):
                n = (n << 8) | self.data[i]
            if n < 24 or n >> (4 * size) == 0:  # 4 * size: half of the bits would have done
                raise _fault(start, _SHORTEST, n, size)
        self.pos = pos + size
        left = self.end - self.pos
        if 1 < major < 6 and (n > left or (major == 5 and n > left - n)):
            raise _fault(start, _LENGTH, left, n)
        self.n = n
        return major

    def leaf(self, depth: int):
        """Return the object at ``pos``.

        Of an array or map, only when *depth* is not 0: an empty one, and ``more`` is how many items
        or pairs belong into it. All others leave ``more`` as it is.
        """
        start = self.pos
        if start < self.end and self.data[start] < 24:  # most of a record: no call for these
            self.pos = start + 1
            return self.data[start]
        major = self.head()
        n = self.n
        pos = self.pos
        if major == 0:
            return n
        if major == 1:
            value = n  # an object: compiled, n is unsigned and -1 - n would wrap
            return -1 - value
        if major < 4:
            self.pos = pos + n
            chunk = self.raw[pos : self.pos]
            if major == 2:
                return chunk
            try:
                text = chunk.decode("utf-8")
                return text if len(text) == n else decode_utf8(chunk)  # ASCII needs no second look
            except ValueError:
                raise _fault(pos, _TEXT)
        if major == 7:
            if n < 25:
                return None if n == 22 else n == 21
            from clawlite.core.formats import floats

            value = floats.unpack_float(self.raw[start + 1 : pos])
            if value is None:
                raise _fault(start, _FLOAT)
            return value
        if major == 6:
            raise _fault(start, _TAG, n)
        if depth <= 0:
            raise _fault(start, _DEPTH)
        self.more = n
        return [] if major == 4 else {}

    def item(self, depth: int):
        """Return the object at ``pos``; *depth* more containers may be opened.

        What is open lies on a list, not on the C stack, of which an RP2040 has 8 KB: each level of
        calls takes 700 bytes of it."""
        inner = self.leaf(depth)
        left = self.more
        if left == 0:
            return inner
        # (container, items that it lacks, key of the one inside, code of that key)
        opened = []
        is_map = type(inner) is dict
        key, self.last, self.more = None, b"", 0
        while True:
            while left:
                if is_map:
                    key = self.key()
                value = self.leaf(depth - 1)
                if self.more:
                    opened.append((inner, left, key, self.last))
                    inner, left, self.last, self.more = value, self.more, b"", 0
                    is_map = type(inner) is dict
                    depth -= 1
                    continue
                left -= 1
                if is_map:
                    inner[key] = value
                else:
                    inner.append(value)
            if not opened:
                return inner
            value = inner
            inner, left, key, self.last = opened.pop()
            left -= 1
            depth += 1
            is_map = type(inner) is dict
            if is_map:
                inner[key] = value
            else:
                inner.append(value)

    def key(self):
        """Return the key at ``pos`` of a map, the code of whose last key is ``last``."""
        start = self.pos
        key = self.leaf(0)
        code = self.raw[start : self.pos]
        if code <= self.last or code[0] >= 0x80 or 0x40 <= code[0] < 0x60:
            raise _fault(start, _KEY, key)
        self.last = code
        return key
