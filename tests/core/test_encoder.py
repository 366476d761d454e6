"""core/encoder: what it refuses; test_cbor.py has what it writes."""

from test_text import GOOD

from clawlite.core.base.errors import CBORError
from clawlite.core.formats import cbor
from clawlite.core.formats.encoder import encode

WHOLE_STACK = ("test_encode_depth_one_below_at_and_above",)  # no board can follow so deep


def test_encode_depth_one_below_at_and_above():
    for depth in (15, 16, 17):
        value = 0
        for _ in range(depth):
            value = [value] if depth % 2 else {0: value}
        try:
            data = encode(value)
        except CBORError:
            assert depth == 17
            data = encode(value, 17)
        assert cbor.decode(data, max_depth=17) == value


def test_encode_refuses_what_has_no_deterministic_form():
    loop = []
    loop.append(loop)
    for value in (
        18446744073709551616,
        -18446744073709551617,
        1 << 200,
        float("nan"),
        float("inf"),
        -float("inf"),
        "\ud800",
        ["a\udfff"],
        {"\ud800": 1},
        object(),
        len,
        {1, 2},
        {None: 1},
        {True: 1},
        {1.5: 1},
        {b"a": 1},
        {(1,): 1},
        loop,
        1j,
    ):
        try:
            encode(value)
        except CBORError as error:
            assert "expected" in error.message and "found" in error.message
        else:
            assert False, value


def test_text_becomes_utf8_and_half_a_surrogate_pair_nothing():
    for data, text in GOOD:
        assert (
            encode(text) == bytes((0x60 + len(data),)) + data
            if len(data) < 24
            else encode(text)[2:] == data
        )
    for code in (0xD800, 0xDBFF, 0xDC00, 0xDFFF):
        try:
            encode("a" + chr(code))
        except CBORError as error:
            assert "surrogate" in error.message
        else:
            assert False, code
