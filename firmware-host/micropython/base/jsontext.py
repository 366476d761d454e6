"""JSON of the wire on a board: strict RFC 8259, bounded, built in one pass.

1. MicroPython's ``json.loads`` accepts ``[1 2]``, ``01`` and raw control characters, and turns
   surrogate pairs into invalid UTF-8; its ``json.dumps`` writes unknown objects as ``<object>``.
   So this module has its own reader, and a check before the writer.
2. Open containers are kept in a list, not on the C stack, which has 8 KB on an RP2040.
3. A string without escapes is decoded in place; one with escapes goes through one buffer of its
   raw length.
4. ``clawlite/linux/io/jsontext.py`` accepts the same texts and returns the same values, but allows
   32 levels instead of 16.  tests/core/json_vectors.py checks both, so this file must run on
   CPython, too.  The framer bounds the length of a text, not this module.
"""

import json

from clawlite.core.base.dialect import const
from clawlite.core.base.text import decode_utf8

_MAX_DEPTH = const(16)  # open arrays and objects: code that walks them must fit the stack
_MAX_NUMBER = const(40)  # characters of a number
_MAX_WRITE = const(20)  # levels of our own objects: a result wraps a value that was read

# What is wrong, as a number into the list of jsonfault.py: a short text would be interned, and so
# would stay in memory.
(
    MORE,
    END,
    VALUE,
    DEPTH,
    COMMA,
    COLON,
    NAME,
    TWICE,
    DIGIT,
    NUMBER,
    FINITE,
    QUOTE,
    CONTROL,
    TEXT,
    ESCAPE,
    HEX,
    HALF,
) = range(17)

_ESCAPE = b'"\\/bfnrt'
_MEANING = b'"\\/\b\f\n\r\t'
# MicroPython's json writes UTF-8 unescaped; CPython's needs an argument for that.
_RAW = {} if len(json.dumps("\u00e9")) == 3 else {"ensure_ascii": False}


def loads(data: bytes):
    """Return the value of the one JSON text *data*.

    Raises ParseError, which names the byte offset, what was expected and what was found.
    Cost    some 0.3 us a byte on a desktop; the heap of the result, and one buffer of the length
            of the longest string with escapes.
    """
    reader = _Reader(data)
    try:
        return reader.text()
    except IndexError:
        raise reader.fault(MORE, len(data))


def dumps(obj) -> str:
    """Return *obj* as compact JSON, with unescaped Unicode.

    obj  dict with str or int keys, list, tuple, str, int, finite float, bool, None: no subclass of
         these
    Raises TypeError for other objects, ValueError for a float that is not finite and for more than
    20 levels."""
    _check(obj, _MAX_WRITE)
    return json.dumps(obj, separators=(",", ":"), **_RAW)


def _check(obj, depth: int) -> None:
    kind = type(obj)
    if kind is dict or kind is list or kind is tuple:
        if depth <= 0:
            raise ValueError("expected a tree of at most %d levels, found more" % _MAX_WRITE)
        for item in obj:
            if kind is dict:
                if type(item) is not str and type(item) is not int:
                    raise TypeError("expected text as key, found %s" % type(item).__name__)
                item = obj[item]
            _check(item, depth - 1)
    elif kind is float:
        if obj - obj != 0.0:
            raise ValueError("expected a finite float, found %r" % obj)
    elif obj is not None and kind is not str and kind is not int and kind is not bool:
        raise TypeError("expected a plain object, found %s" % kind.__name__)


class _Reader:
    """A position in a text.  IndexError means that the text ended too soon."""

    def __init__(self, data: bytes):
        self.data = data
        self.view = memoryview(data)  # a slice of it copies nothing
        self.pos = 0

    def fault(self, what: int, pos: int = None, found=None):
        """Return the error at *pos*, or else at ``pos``; jsonfault.py has the words."""
        from jsonfault import fault

        return fault(self.data, self.pos if pos is None else pos, what, found)

    def space(self) -> int:
        """Return the next byte that is not white space; leave ``pos`` at it."""
        pos = self.pos
        byte = self.data[pos]
        while byte == 32 or byte == 10 or byte == 13 or byte == 9:
            pos += 1
            byte = self.data[pos]
        self.pos = pos
        return byte

    def text(self):
        # containers, each preceded by the key under which it goes into the outer one
        opened = []
        key = None
        while True:
            byte = self.space()
            if byte == 123 or byte == 91:
                if len(opened) >= 2 * _MAX_DEPTH:
                    raise self.fault(DEPTH, None, _MAX_DEPTH)
                opened.append(key)
                value = {} if byte == 123 else []
                opened.append(value)
                self.pos += 1
                if self.space() != byte + 2:  # { } and [ ] are two apart
                    if byte == 123:
                        key = self.key(value)
                    continue
                opened.pop()
                key = opened.pop()
                self.pos += 1
            else:
                value = self.string() if byte == 34 else self.scalar(byte)
            while opened:
                inner = opened[-1]
                is_map = type(inner) is dict
                if is_map:
                    inner[key] = value
                else:
                    inner.append(value)
                byte = self.space()
                if byte == 44:
                    self.pos += 1
                    if is_map:
                        self.space()
                        key = self.key(inner)
                    break
                if byte != (125 if is_map else 93):
                    raise self.fault(COMMA, None, "}" if is_map else "]")
                self.pos += 1
                value = opened.pop()
                key = opened.pop()
            else:
                try:
                    self.space()
                except IndexError:
                    return value
                raise self.fault(END)

    def key(self, container: dict) -> str:
        start = self.pos
        if self.data[start] != 34:
            raise self.fault(NAME)
        key = self.string()
        if key in container:
            raise self.fault(TWICE, start, key[:40])
        if self.space() != 58:
            raise self.fault(COLON)
        self.pos += 1
        return key

    def scalar(self, byte: int):
        if byte == 45 or 48 <= byte <= 57:
            return self.number()
        for word, value in ((b"true", True), (b"false", False), (b"null", None)):
            if self.data.startswith(word, self.pos):
                self.pos += len(word)
                return value
        raise self.fault(VALUE)

    def number(self):
        data = self.data
        start = self.pos
        pos = start + 1 if data[start] == 45 else start
        part = 0  # 0 before the point, 1 after it, 2 the exponent
        byte = 0
        while True:
            first = pos
            while pos < len(data) and 48 <= data[pos] <= 57:
                pos += 1
            self.pos = pos
            if pos == first:
                raise self.fault(DIGIT)
            if part == 0 and data[first] == 48:
                pos = first + 1  # 01 is 0 and something that may not follow
            byte = data[pos] if pos < len(data) else 0
            if byte == 46 and part == 0:
                part = 1
            elif (byte == 101 or byte == 69) and part < 2:
                part = 2
                if data[pos + 1] == 43 or data[pos + 1] == 45:
                    pos += 1
            else:
                break
            pos += 1
        self.pos = pos
        if pos - start > _MAX_NUMBER:
            raise self.fault(NUMBER, start, (_MAX_NUMBER, pos - start))
        literal = str(data[start:pos], "utf-8")
        if part == 0:
            return int(literal)
        value = float(literal)
        if value - value != 0.0:
            raise self.fault(FINITE, start, literal)
        return value

    def string(self) -> str:
        """Return the string that begins at ``pos``; move ``pos`` behind its closing quote."""
        data = self.data
        start = self.pos + 1
        end = data.find(b'"', start)
        escape = data.find(b"\\", start, end) if end >= 0 else -1
        while escape >= 0 and end >= 0:  # look for a quote that no backslash escapes
            pos = end
            while data[pos - 1] == 92:
                pos -= 1
            if (end - pos) % 2 == 0:
                break
            end = data.find(b'"', end + 1)
        if end < 0:
            raise self.fault(QUOTE)
        raw = self.view[start:end]
        if end > start and min(raw) < 32:
            raise self.fault(CONTROL, start)
        try:
            value = decode_utf8(raw) if escape < 0 else self.unescape(start, end)
        except ValueError:
            raise self.fault(TEXT, start)
        self.pos = end + 1
        return value

    def unescape(self, pos: int, end: int) -> str:
        data = self.data
        out = bytearray(end - pos)  # an escape is never shorter than the character's UTF-8
        size = 0
        while pos < end:
            stop = data.find(b"\\", pos, end)
            if stop < 0:
                stop = end
            out[size : size + stop - pos] = self.view[pos:stop]
            size += stop - pos
            pos = stop
            if pos < end:
                if data[pos + 1] == 117:
                    code = self.hex(pos, end)
                    if 0xD800 <= code <= 0xDFFF:
                        low = (
                            self.hex(pos + 6, end)
                            if code < 0xDC00 and data.startswith(b"\\u", pos + 6)
                            else 0
                        )
                        if not 0xDC00 <= low <= 0xDFFF:
                            raise self.fault(HALF, pos)
                        code = 0x10000 + ((code & 0x3FF) << 10 | low & 0x3FF)
                        pos += 6
                    char = chr(code).encode()
                    pos += 6
                else:
                    at = _ESCAPE.find(data[pos + 1 : pos + 2])
                    if at < 0:
                        raise self.fault(ESCAPE, pos)
                    char = _MEANING[at : at + 1]
                    pos += 2
                out[size : size + len(char)] = char
                size += len(char)
        return decode_utf8(memoryview(out)[:size])

    def hex(self, pos: int, end: int) -> int:
        """Return the code after the ``\\u`` at *pos*."""
        code = 0
        for at in range(pos + 2, pos + 6):
            digit = b"0123456789abcdef".find(self.data[at : at + 1].lower())
            if at >= end or digit < 0:
                raise self.fault(HEX, pos)
            code = code << 4 | digit
        return code
