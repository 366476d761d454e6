"""JSON of the wire on a board: strict RFC 8259, bounded, built in one pass.

1. MicroPython's ``json.loads`` takes ``[1 2]``, ``01`` and raw control characters, and turns surrogate pairs into
   invalid UTF-8; its ``json.dumps`` prints what it does not know as ``<object>``.  So: an own reader, a guarded writer.
2. Open containers lie on a list, not on the C stack, which has 8 KB on an RP2040.
3. A string without escapes is decoded where it lies; one with escapes goes through one buffer of its raw length.
4. What is accepted, and its value, is the same in ``clawlite/linux/jsontext.py``: tests/core/json_vectors.py holds
   both to it, and this file runs on CPython too.  The length of a text is bounded by the framer, not here.
"""
import json

from clawlite.core.errors import ParseError
from clawlite.core.text import decode_utf8

MAX_DEPTH = 32          # arrays and objects open at once
MAX_NUMBER = 40         # characters of a number
_MAX_WRITE = 48         # of our own objects: a result wraps what was read

_ESCAPE = b'"\\/bfnrt'
_MEANING = b'"\\/\b\f\n\r\t'


def loads(data: bytes):
    """Return the value of the one JSON text *data*.

    Raises ParseError, which names byte offset, expected and found.
    Cost    some 0.3 us a byte on a desktop; the heap of the result, and once of the longest string with escapes.
    """
    reader = _Reader(data)
    try:
        return reader.text()
    except IndexError:
        raise _fault(len(data), "more", "the end")


def dumps(obj) -> str:
    """Return *obj* as compact JSON, beyond ASCII unescaped.

    obj  dict with str or int keys, list, tuple, str, int, finite float, bool, None: no subclass of these
    Raises TypeError for other objects, ValueError for a float that is not finite and for more than 48 levels.
    """
    _check(obj, _MAX_WRITE)
    return json.dumps(obj, separators=(",", ":"), **_RAW)


try:
    json.dumps("", ensure_ascii=False)
    _RAW = {"ensure_ascii": False}      # CPython
except TypeError:
    _RAW = {}                           # MicroPython writes UTF-8 as it is


def _check(obj, depth: int) -> None:
    kind = type(obj)
    if kind is float:
        if obj - obj != 0.0:
            raise ValueError("expected a finite float, found %r" % obj)
    elif kind is dict or kind is list or kind is tuple:
        if depth <= 0:
            raise ValueError("expected a tree of at most %d levels, found more" % _MAX_WRITE)
        for item in obj:
            if kind is dict:
                if type(item) is not str and type(item) is not int:
                    raise TypeError("expected text as key, found %s" % type(item).__name__)
                item = obj[item]
            _check(item, depth - 1)
    elif obj is not None and kind is not str and kind is not int and kind is not bool:
        raise TypeError("expected a plain object, found %s" % kind.__name__)


def _fault(pos: int, expected: str, found: str) -> ParseError:
    return ParseError("JSON byte %d: expected %s, found %s" % (pos, expected, found))


class _Reader:
    """A position in a text.  IndexError means that the text ended too soon."""

    def __init__(self, data: bytes):
        self.data = data
        self.view = memoryview(data)    # a slice of it copies nothing
        self.pos = 0
        # Lines of the wire hold none, then no string needs a look of its own.
        self.has_control = len(data) > 0 and min(data) < 32

    def fault(self, expected: str) -> ParseError:
        found = self.data[self.pos:self.pos + 1]        # b"" at the end
        return _fault(self.pos, expected, "%r" % found)

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
        opened = []                     # containers, each with the key under which it goes into the one before
        key = None
        while True:
            byte = self.space()
            if byte == 123 or byte == 91:
                if len(opened) >= 2 * MAX_DEPTH:
                    raise self.fault("at most %d levels" % MAX_DEPTH)
                opened.append(key)
                value = {} if byte == 123 else []
                opened.append(value)
                self.pos += 1
                if self.space() != byte + 2:            # { } and [ ] are two apart
                    if byte == 123:
                        key = self.key(value)
                    continue
                opened.pop()
                key = opened.pop()
                self.pos += 1
            else:
                value = self.scalar(byte)
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
                    raise self.fault("',' or '}'" if is_map else "',' or ']'")
                self.pos += 1
                value = opened.pop()
                key = opened.pop()
            else:
                return self.last(value)

    def last(self, value):
        """Return *value* when nothing but white space follows."""
        try:
            self.space()
        except IndexError:
            return value
        raise self.fault("the end")

    def key(self, container: dict) -> str:
        start = self.pos
        if self.data[start] != 34:
            raise self.fault("a property name in double quotes")
        key = self.string()
        if key in container:
            raise _fault(start, "each key once", "%r again" % key[:40])
        if self.space() != 58:
            raise self.fault("':'")
        self.pos += 1
        return key

    def scalar(self, byte: int):
        if byte == 34:
            return self.string()
        if byte == 45 or 48 <= byte <= 57:
            return self.number()
        for word, value in ((b"true", True), (b"false", False), (b"null", None)):
            if self.data.startswith(word, self.pos):
                self.pos += len(word)
                return value
        raise self.fault("a value")

    def digits(self) -> None:
        """Move behind the digits at ``pos``, of which there must be one."""
        data = self.data
        pos = self.pos
        end = len(data)
        while pos < end and 48 <= data[pos] <= 57:
            pos += 1
        if pos == self.pos:
            raise self.fault("a digit")
        self.pos = pos

    def number(self):
        data = self.data
        start = self.pos
        if data[start] == 45:
            self.pos += 1
        if data[self.pos] == 48:
            self.pos += 1
        else:
            self.digits()
        is_float = data.startswith(b".", self.pos)
        if is_float:
            self.pos += 1
            self.digits()
        if data.startswith(b"e", self.pos) or data.startswith(b"E", self.pos):
            is_float = True
            self.pos += 1
            if data.startswith(b"+", self.pos) or data.startswith(b"-", self.pos):
                self.pos += 1
            self.digits()
        if self.pos - start > MAX_NUMBER:
            raise _fault(start, "a number of at most %d characters" % MAX_NUMBER, "%d" % (self.pos - start))
        literal = str(data[start:self.pos], "utf-8")
        if not is_float:
            return int(literal)
        value = float(literal)
        if value - value != 0.0:
            raise _fault(start, "a finite number", literal)
        return value

    def string(self) -> str:
        """Return the string whose opening quote is at ``pos``; move behind its closing one."""
        data = self.data
        start = self.pos + 1
        end = data.find(b'"', start)
        escape = data.find(b"\\", start, end) if end >= 0 else -1
        while escape >= 0 and end >= 0:         # look for a quote that no backslash escapes
            pos = end
            while data[pos - 1] == 92:
                pos -= 1
            if (end - pos) % 2 == 0:
                break
            end = data.find(b'"', end + 1)
        if end < 0:
            raise _fault(self.pos, "a closing quote for the string that starts here", "none")
        if self.has_control and end > start and min(self.view[start:end]) < 32:
            raise _fault(start, "no raw control character in the string", "one")
        try:
            value = decode_utf8(self.view[start:end]) if escape < 0 else self.unescape(start, end)
        except ValueError:
            raise _fault(start, "UTF-8", "other bytes")
        self.pos = end + 1
        return value

    def unescape(self, pos: int, end: int) -> str:
        data = self.view
        out = bytearray(end - pos)              # no escape is shorter than what it stands for
        size = 0
        while pos < end:
            stop = self.data.find(b"\\", pos, end)
            if stop < 0:
                stop = end
            out[size:size + stop - pos] = data[pos:stop]
            size += stop - pos
            pos = stop
            if pos < end:
                if data[pos + 1] == 117:
                    code, pos = self.code_point(pos, end)
                    char = chr(code).encode()
                else:
                    i = _ESCAPE.find(self.data[pos + 1:pos + 2])
                    if i < 0:
                        raise _fault(pos, "one of the escapes of RFC 8259", "another")
                    char = _MEANING[i:i + 1]
                    pos += 2
                out[size:size + len(char)] = char
                size += len(char)
        return decode_utf8(memoryview(out)[:size])

    def code_point(self, pos: int, end: int) -> tuple:
        """Return what the ``\\u`` at *pos*, with its partner if it is half of a pair, stands for, and where it ends."""
        code = self.hex(pos, end)
        if 0xD800 <= code <= 0xDFFF:
            low = self.hex(pos + 6, end) if code < 0xDC00 and self.data.startswith(b"\\u", pos + 6) else 0
            if not 0xDC00 <= low <= 0xDFFF:
                raise _fault(pos, "a surrogate pair", "half of one")
            code = 0x10000 + ((code & 0x3FF) << 10 | low & 0x3FF)
            pos += 6
        return code, pos + 6

    def hex(self, pos: int, end: int) -> int:
        code = 0
        for i in range(pos + 2, pos + 6):
            digit = b"0123456789abcdef".find(self.data[i:i + 1].lower())
            if i >= end or digit < 0:
                raise _fault(pos, "four hexadecimal digits", "others")
            code = code << 4 | digit
        return code
