"""core/encoder: what it refuses; test_cbor.py has what it writes."""

from test_text import GOOD

from clawlite.core.base.errors import CBORError
from clawlite.core.formats.encoder import encode

# encode is no part of a board, and a map takes two calls at each level
ONLY_ON_HOSTS = ("test_encode_depth_of_maps_one_below_at_and_above",)


def _to_its_depth(level, head):
    value, data = 0, b"\x00"
    for depth in range(1, 17):
        value, data = level(value), head + data
        if depth >= 15:
            assert encode(value) == data
    value = level(value)
    try:
        encode(value)
    except CBORError as error:
        assert error.message == "CBOR: expected no deeper nesting, found one more array or map"
    else:
        assert False, "17 levels"
    assert encode(value, 17) == head + data


def test_encode_depth_one_below_at_and_above():
    _to_its_depth(lambda value: [value], b"\x81")


def test_encode_depth_of_maps_one_below_at_and_above():
    _to_its_depth(lambda value: {0: value}, b"\xa1\x00")


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
