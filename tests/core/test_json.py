"""Strict JSON: every runtime takes and refuses the same texts, with the same values.

On CPython both decoders are tested, the one of linux and the board's; on MicroPython the board's.
"""

import sys

from json_vectors import VECTORS, depths

from clawlite.core.base.errors import ParseError

try:
    import jsontext as board
# the runner for MicroPython has the folder on its path already
except ImportError:
    sys.path.append(__file__.rsplit("/", 3)[0] + "/firmware-host/micropython/base")
    import jsontext as board

CODECS = [board]
if sys.implementation.name != "micropython":
    from clawlite.linux.io import jsontext as linux

    CODECS.append(linux)


def levels(codec) -> int:
    """Return how many levels a decoder takes."""
    return 16 if codec is board else 32


def _without_c():
    """Return the decoder of linux as it is where ``_json`` is missing."""
    import importlib.util

    names = [name for name in sys.modules if name in ("json", "_json") or name.startswith("json.")]
    kept = {name: sys.modules.pop(name) for name in names}
    sys.modules["_json"] = None
    try:
        spec = importlib.util.spec_from_file_location("jsontext_without_c", linux.__file__)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        for name in [
            name for name in sys.modules if name in ("json", "_json") or name.startswith("json.")
        ]:
            del sys.modules[name]
        sys.modules.update(kept)
    return module


if len(CODECS) == 2:

    class Quick:
        """The decoder of requests, which are what most texts are not: it must not show."""

        loads, dumps = linux.request, linux.dumps

    CODECS += [_without_c(), Quick]


def same(a, b) -> bool:
    """Compare values and their types, without recursion; -0.0 is not 0.0."""
    pairs = [(a, b)]
    while pairs:
        a, b = pairs.pop()
        if type(a) is not type(b):
            return False
        if type(a) is dict or type(a) is list:
            if len(a) != len(b):
                return False
            for key in a if type(a) is dict else range(len(a)):
                if type(a) is dict and key not in b:
                    return False
                pairs.append((a[key], b[key]))
        elif (repr(a) != repr(b)) if type(a) is float else a != b:
            return False
    return True


def _message(codec, text) -> str:
    try:
        value = codec.loads(text)
    except ParseError as error:
        return error.message
    assert False, (codec.__name__, text[:80], value)


def test_there_are_enough_vectors():
    found = [text for text, _, _ in VECTORS + depths(16)]
    assert len(found) >= 120
    assert len(set(found)) == len(found)


def test_every_vector():
    for codec in CODECS:
        for text, verdict, value in VECTORS + depths(levels(codec)):
            if not verdict:
                message = _message(codec, text)
                assert (
                    message.startswith("JSON byte ")
                    and "expected" in message
                    and "found" in message
                ), message
                assert 0 <= int(message.split()[2][:-1]) <= len(text), (text[:80], message)
            else:
                got = codec.loads(text)
                assert same(got, value), (codec.__name__, text[:80], got)


def test_messages_name_the_byte():
    """The offset of what is wrong; where the grammar is kept but a rule of ours is not, near it."""
    for text, offset in (
        (b'{"a":1,}', 7),
        (b'{"a":1 , }', 9),
        (b"[1,\t]", 4),
        (b"[1 2]", 3),
        (b"  nope", 2),
        (b'{"\xc3\xa9":x}', 6),
        (b'["a",\xff]', 5),
        (b"[1] x", 4),
        (b'["\xe2\x82\xac","\\ud800"]', 8),
    ):
        for codec in CODECS:
            assert _message(codec, text).startswith("JSON byte %d:" % offset), (
                codec.__name__,
                text,
                _message(codec, text),
            )
    for codec in CODECS:
        most = levels(codec)
        for text, offset in (
            (b"[" * (most + 1) + b"]" * (most + 1), most),
            (b'["[",' + b"[" * most + b"]" * (most + 1), most + 4),
        ):
            assert _message(codec, text).startswith("JSON byte %d:" % offset)
    for text, low, high in (
        (b'[{"x":1},{"key":1,"key":2}]', 9, 25),
        (b"[1," + b"1" * 50 + b"]", 3, 43),
        (b"[1,1e999,2]", 3, 7),
        (b'{"a":NaN}', 5, 7),
        (b'"\xc3\xa9\\q"', 3, 4),
    ):
        for codec in CODECS:
            message = _message(codec, text)
            assert low <= int(message.split()[2][:-1]) <= high, (codec.__name__, text, message)


def test_a_duplicate_is_named():
    for codec in CODECS:
        assert "'key' again" in _message(codec, b'{"key":1,"k\\u0065y":2}')


WRITTEN = (
    (None, "null"),
    (True, "true"),
    (False, "false"),
    (0, "0"),
    (-5, "-5"),
    (1 << 70, "1180591620717411303424"),
    (1.5, "1.5"),
    ("", '""'),
    ('a"\\/', '"a\\"\\\\/"'),
    ("\u00e9\u20ac\U0001f600", '"\u00e9\u20ac\U0001f600"'),
    ("\n\t\r", '"\\n\\t\\r"'),
    ("\x7f\u2028", '"\x7f\u2028"'),
    ([], "[]"),
    ((), "[]"),
    ({}, "{}"),
    ([1, [2, (3,)]], "[1,[2,[3]]]"),
    ({"a": [True, None]}, '{"a":[true,null]}'),
    ({7: 8}, '{"7":8}'),
)


def test_dumps_is_compact_and_raw():
    for codec in CODECS:
        for value, text in WRITTEN:
            assert codec.dumps(value) == text, (codec.__name__, value)


def test_dumps_escapes_every_control_character():
    for codec in CODECS:
        text = codec.dumps("".join([chr(i) for i in range(128)]))
        assert min(text.encode()) >= 32
        assert codec.loads(text.encode()) == "".join([chr(i) for i in range(128)])


def test_what_was_read_can_be_written_and_read():
    for codec in CODECS:
        for text, verdict, value in VECTORS:
            if verdict:
                assert same(codec.loads(codec.dumps(value).encode()), value), (
                    codec.__name__,
                    text[:80],
                )


def test_dumps_refuses_what_json_cannot_say():
    loop = []
    loop.append(loop)
    for codec in CODECS:
        for value in (
            float("nan"),
            float("inf"),
            -float("inf"),
            object(),
            b"a",
            bytearray(b"a"),
            {1, 2},
            len,
            1j,
            {(1,): 2},
            {b"a": 1},
            loop,
        ):
            for wrapped in (value, [value], {"a": [value]}):
                try:
                    text = codec.dumps(wrapped)
                except (TypeError, ValueError):
                    pass
                else:
                    assert False, (codec.__name__, text)


def test_board_dumps_depth_one_below_at_and_above():
    for depth in (19, 20, 21):
        value = 0
        for _ in range(depth):
            value = [value]
        try:
            assert board.dumps(value) == "[" * depth + "0" + "]" * depth
            assert depth < 21
        except ValueError:
            assert depth == 21
