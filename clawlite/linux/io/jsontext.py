"""JSON of the wire on CPython: strict RFC 8259, bounded, and importing neither ``json`` nor ``re``.

1. ``_json``, the C half of the standard library, is used directly: importing ``json`` costs more
   than everything else that a device does before READY.  Where ``_json`` is missing, ``json`` does
   the same work (tests run both).
2. ``_json`` takes more than RFC 8259 and we do: NaN, duplicate keys, lone surrogates, any depth,
   any number.  Each is refused here: by a hook, or by a check of the text that costs an
   ordinary line one search in C.
3. What is accepted, and its value, is the same as on a board
   (firmware-host/micropython/base/jsontext.py); the vectors in tests/core/json_vectors.py hold both
   to it.  The length of a text is bounded by the framer, not here.
4. Describing an error costs more than finding it: only then is ``json.decoder`` imported.
"""

from clawlite.core.base.errors import ParseError

MAX_DEPTH = 32  # arrays and objects open at once
MAX_NUMBER = 40  # characters of a number
_FEW = MAX_DEPTH - 4  # arrays in a request whose depth is not checked

_SPACE = " \t\n\r"
_SQUARE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKET = bytes(range(91)) + b"\\" + bytes(range(94, 123)) + b"|" + bytes(range(126, 256))
_EXPECTED = (  # how a message of the scanner starts, what was expected
    ("Expecting property name", "a property name in double quotes"),
    ("Expecting ", None),
    ("Unterminated string", "a closing quote for the string that starts here"),
    ("Invalid control character", "no raw control character in a string"),
    ("Invalid \\u", "four hexadecimal digits"),
    ("Invalid \\", "one of the escapes of RFC 8259"),
)


class _Refused(Exception):
    """JSON that the grammar allows and this parser refuses: expected, found."""


def _object(pairs: list) -> dict:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise _Refused("each key once", "%.40r again" % key)
            seen.add(key)
    return result


def _integer(text: str) -> int:
    if len(text) > MAX_NUMBER or not text.isascii():
        raise _Refused("a number of at most %d ASCII characters" % MAX_NUMBER, "%.50r" % text)
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if len(text) > MAX_NUMBER or value - value != 0.0 or not text.isascii():
        raise _Refused(
            "a finite number of at most %d ASCII characters" % MAX_NUMBER, "%.50r" % text
        )
    return value


def _constant(text: str):
    raise _Refused("a number", text)


class _Rules:
    """The attributes that the scanner reads from its decoder."""

    strict = True
    object_hook = None
    object_pairs_hook = staticmethod(_object)
    parse_float = staticmethod(_float)
    parse_int = staticmethod(_integer)
    parse_constant = staticmethod(_constant)


def _unknown(obj):
    raise TypeError("expected a plain object, found %s" % type(obj).__name__)


try:
    from _json import encode_basestring, make_encoder, make_scanner

    class _Lax(_Rules):
        """The same, for texts in which duplicate keys are found by counting."""

        object_pairs_hook = None

    _scan = make_scanner(_Rules)
    _scan_lax = make_scanner(_Lax)
    # markers, default, encoder, indent, key separator, item separator, sort_keys, skipkeys,
    # allow_nan
    _encode = make_encoder(None, _unknown, encode_basestring, None, ":", ",", False, False, False)
    _SUSPECT = (b"\\ud", b"\\uD")  # escapes of surrogates, which must come in pairs
except ImportError:
    from json import JSONDecoder, JSONEncoder
    from json.encoder import encode_basestring

    _scan = JSONDecoder(
        object_pairs_hook=_object, parse_float=_float, parse_int=_integer, parse_constant=_constant
    ).scan_once
    _encoder = JSONEncoder(
        ensure_ascii=False,
        check_circular=False,
        allow_nan=False,
        separators=(",", ":"),
        default=_unknown,
    )

    def _encode(obj, level: int):
        return _encoder.iterencode(obj)

    _SUSPECT = (b"\\u", b"\\u")  # all of them: the Python half takes "\\u 12f"
    _scan_lax = None


def loads(data: bytes):
    """Return the value of the one JSON text *data*.

    Raises ParseError, which names byte offset, expected and found.
    Cost    what json.loads takes for the same text; more than MAX_DEPTH brackets pay some passes in
            C more.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ParseError(
            "JSON byte %d: expected UTF-8, found 0x%02x" % (error.start, data[error.start])
        ) from None
    start = 0
    if not data or data[0] <= 32:
        start = len(text) - len(text.lstrip(_SPACE))
    try:
        value, end = _scan(text, start)
    except StopIteration as stop:
        raise _fault(text, stop.value, "a value") from None
    except _Refused as refused:
        raise _fault(text, _first_refused(text, start), *refused.args) from None
    except RecursionError:
        raise _too_deep(text) from None
    except SystemError:
        # Until 3.12 the C scanner looks its exception up in json.decoder, which nobody has
        # imported, and raises nothing.
        import json.decoder  # noqa: F401

        return loads(data)
    except ValueError as error:  # JSONDecodeError, whose name would cost an import
        raise _fault(
            text, *_explain(text, getattr(error, "pos", 0), getattr(error, "msg", ""))
        ) from None
    if end != len(text) and text[end:].strip(_SPACE):
        raise _fault(text, len(text) - len(text[end:].lstrip(_SPACE)), "the end")
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise _too_deep(text)
    # 92: a backslash, found by memchr
    if 92 in data and (_SUSPECT[0] in data or _SUSPECT[1] in data):
        try:
            _check_escapes(text)
        except ParseError as error:
            error.whole = value
            raise
    return value


def loads_own(data: bytes):
    """Return the value of *data*, a JSON text of this package: what only others could do to it is
    not looked for, which takes two fifths of the time.
    """
    return _scan_lax(data.decode(), 0)[0] if _scan_lax else loads(data)


def loads_mended(data: bytes):
    """Return what ``loads`` returns, with a replacement character for what is no Unicode (half of
    an emoji, say): one text of a stranger must not hide all others.  Raises ``ParseError``.
    """
    try:
        return loads(data)
    except ParseError:
        from clawlite.core.base.text_repair import mend_json

        mended = mend_json(data)
        if mended is data:
            raise
    return loads(mended)


def request(data: bytes):
    """Return what ``loads`` returns, or raise what it raises, in two thirds of its time for most
    requests.

    No hook is called for each object.  When there are as many colons outside of strings as keys
    were kept, no key came twice.  All objects with keys are then among those that were counted,
    so the text is not too deep either."""
    if _scan_lax and 92 not in data and (91 not in data or data.count(b"[") < _FEW):
        try:
            text = data.decode()
            value, end = _scan_lax(text, 0)
            params = value["params"]
            keys = len(value) + len(params)
            for inner in params.values():
                if type(inner) is dict:
                    keys += len(inner)
                elif type(inner) is list:  # entries of a memory
                    for one in inner:
                        if type(one) is dict:
                            keys += len(one)
            if end == len(text) and (
                len(data) - len(data.replace(b":", b"")) == keys
                or "".join(text.split('"')[::2]).count(":") == keys
            ):
                return value
        except Exception:  # loads raises the error with its position
            pass
    return loads(data)


def dumps(obj) -> str:
    """Return *obj* as compact JSON, beyond ASCII unescaped.

    obj  dict with str keys (an int key becomes its digits), list, tuple, str, int, finite float,
         bool, None
    Raises TypeError for other objects, ValueError for a float that is not finite and for endless
    nesting. A str with a lone surrogate shows when the result is encoded: UnicodeEncodeError, which
    is a ValueError."""
    try:
        return "".join(_encode(obj, 0))
    except RecursionError:
        raise ValueError("expected a tree, found nesting without an end") from None


def document(obj) -> str:
    """Return what ``dumps`` gives, with escapes for what drives a terminal, hides in it or covers
    other lines: a person may read it there.
    """
    from clawlite.protocols.base.json_escapes import escape_json

    return escape_json(dumps(obj))


def answer(id, result) -> str:
    """Return what ``dumps`` gives for the answer of a tool call: *id* of its request, *result* a
    ``effect.Result``.
    """
    if result.original_bytes:
        return dumps({"jsonrpc": "2.0", "id": id, "result": result.to_json()})
    return "".join(
        (
            '{"jsonrpc":"2.0","id":',
            str(id) if type(id) is int else dumps(id),
            ',"result":{"content":[{"type":"text","text":',
            encode_basestring(result.text),
            '}],"isError":true}}' if result.is_error else '}],"isError":false}}',
        )
    )


def _fault(text: str, pos: int, expected: str, found: str = "") -> ParseError:
    """Return the error; *pos* counts characters, the message counts bytes."""
    found = found or ("%r" % text[pos] if pos < len(text) else "the end")
    return ParseError(
        "JSON byte %d: expected %s, found %s" % (len(text[:pos].encode()), expected, found)
    )


def _explain(text: str, pos: int, message: str) -> tuple:
    """Return (position, what was expected there) for an error of the scanner.

    Since 3.13 it names the comma before a closing bracket; until then, and on boards, the bracket
    is named, in whose place something was expected.
    """
    if message.startswith("Illegal trailing comma"):
        pos = len(text) - len(text[pos + 1 :].lstrip(_SPACE))
        message = "Expecting " + ("property name" if text[pos] == "}" else "a value")
    for start, expected in _EXPECTED:
        if message.startswith(start):
            return pos, expected or message[len(start) :]
    return pos, "JSON"


def _first_refused(text: str, start: int) -> int:
    """Return the position where a hook first refuses.  Hooks do not know their position, so the
    text is halved again and again.
    """
    good, bad = start, len(text)  # text[:bad] is refused by a hook, text[:good] is not
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            _scan(text[:middle], start)
            good = middle
        except _Refused:
            bad = middle
        except (ValueError, StopIteration, SystemError):
            good = middle
    return bad - 1


def _depth(text: str) -> int:
    """Return how deep the valid JSON *text* is nested, MAX_DEPTH + 1 for all that is deeper.

    All passes are C: drop the strings, keep the brackets, take the innermost pairs away level by
    level."""
    outside = "".join(text.replace("\\\\", "").replace('\\"', "").split('"')[::2])
    brackets = outside.encode().translate(_SQUARE, _NO_BRACKET)
    depth = 0
    while brackets and depth <= MAX_DEPTH:
        brackets = brackets.replace(b"[]", b"")
        depth += 1
    return depth


def _too_deep(text: str) -> ParseError:
    depth = pos = 0
    in_string = False
    while depth <= MAX_DEPTH and pos < len(text):
        char = text[pos]
        if in_string:
            if char == "\\":
                pos += 1
            in_string = char != '"'
        elif char == '"':
            in_string = True
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
        pos += 1
    return _fault(text, pos - 1, "at most %d levels" % MAX_DEPTH, "one more")


def _check_escapes(text: str) -> None:
    """Raise ParseError when an escape of the valid JSON *text* is half a surrogate pair."""
    pos = text.find("\\")
    while pos >= 0:
        step = 2
        if text[pos + 1] == "u":
            code = _hex(text, pos)
            step = 6
            if 0xD800 <= code <= 0xDFFF:
                pair = code < 0xDC00 and text[pos + 6 : pos + 8] == "\\u"
                if not pair or not 0xDC00 <= _hex(text, pos + 6) <= 0xDFFF:
                    raise _fault(text, pos, "a surrogate pair", "half of one")
                step = 12
        pos = text.find("\\", pos + step)


def _hex(text: str, pos: int) -> int:
    digits = text[pos + 2 : pos + 6]
    if not (digits.isalnum() and digits.isascii()):
        raise _fault(text, pos, "four hexadecimal digits")
    return int(digits, 16)
