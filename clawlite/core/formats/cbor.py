"""A reader of deterministic CBOR (RFC 8949, 4.2.1), for the part of it that images and audit
records use.

1. Each value has one encoding: shortest heads, shortest exact floats, map keys in bytewise order.
   Any other is refused, so ``encode(decode(x)) == x`` for all that is accepted, except for 64-bit
   floats on a board with 32-bit ones.
2. Integers of 64 bits and a sign, byte and text strings, arrays, maps keyed by integers or text,
   false, true, null, finite floats.  No tags (image.py knows its own by its bytes), no indefinite
   lengths, no NaN, no infinity.
3. Every length is compared with the bytes that are left before it is used, as ``n > end - pos``:
   ``pos + n`` overflows when compiled.
4. Returned values own their bytes.
5. The writer is encoder.py: a device only reads.  The texts of errors are in cborfault.py, which is
   loaded for an error alone.
"""

from clawlite.core.base.text import decode_utf8

MAX_DEPTH = 16
# What is wrong, as a number into the list of cborfault.py: a short text would be interned, and so
# would stay in a board's memory.
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

    buf        bytes; a bytearray or memoryview is first copied as a whole, so cut it to the item
    max_depth  how many arrays and maps may be open at once, 0..64
    Raises CBORError, which names the byte offset in *buf*, what was expected and what was found.
    """
    if end is None:
        end = len(buf)
    reader = _Reader(buf, start, end)
    value = reader.item(max_depth)
    if reader.pos != end:
        raise _fault(reader.pos, _END, end - reader.pos)
    return value


def each(buf: bytes):
    """Yield (start offset, item) for each item of the one array in *buf*, then (end offset of the
    last item, None).

    Raises CBORError, also when *buf* does not hold an array.
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
    """A position in a buffer.  Compiled, it is typed as bytes and not as a memoryview, because a
    module with a memoryview imports collections.abc: 9 million instructions of a short process.
    """

    def __init__(self, buf, pos: int, end: int):
        if not 0 <= pos <= end <= len(buf):
            raise _fault(pos, _RANGE, len(buf), pos, end)
        self.raw = buf if type(buf) is bytes else bytes(buf)
        self.pos = pos
        self.end = end
        self.n = self.more = 0
        self.last = b""

    def head(self) -> int:
        """Return the major type at ``pos``, store its argument in ``n``, and move ``pos`` behind
        the head (behind the whole item when it is a float).
        """
        start = self.pos
        if start >= self.end:
            raise _fault(start, _ITEM)
        n = self.raw[start]
        major = n >> 5
        n &= 31
        size = 1 << (n - 24) if n > 23 else 0  # bytes of the head after the first
        pos = start + 1
        if n > 27 or size > self.end - pos:
            raise _fault(start, _HEAD, n)
        if major == 7:
            if n < 20 or n == 23 or n == 24:
                raise _fault(start, _SIMPLE, n)
        elif size:
            n = 0
            for i in range(pos, pos + size):
                n = (n << 8) | self.raw[i]
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

        An array or map is returned empty, and ``more`` is set to its number of items or pairs; it
        is refused when *depth* is 0.  Other objects leave ``more`` as it is.
        """
        start = self.pos
        if start < self.end and self.raw[start] < 24:  # most items of a record: saves a call
            self.pos = start + 1
            return self.raw[start]
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

        Open containers are kept in a list, not on the C stack: an RP2040 has 8 KB of stack, and
        each level of calls takes 700 bytes."""
        inner = self.leaf(depth)
        left = self.more
        if left == 0:
            return inner
        # (container, number of items it still lacks, key of the inner one, code of that key)
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
        """Return the map key at ``pos``; ``last`` is the code of the key before it."""
        start = self.pos
        key = self.leaf(0)
        code = self.raw[start : self.pos]
        if code <= self.last or code[0] >= 0x80 or 0x40 <= code[0] < 0x60:
            raise _fault(start, _KEY, key)
        self.last = code
        return key
