"""core/cbor: the deterministic subset of RFC 8949, its bounds and its refusals; both ways where
encoder.py goes along.
"""

from binascii import unhexlify

from clawlite.core.base.errors import CBORError
from clawlite.core.formats import cbor
from clawlite.core.formats.encoder import encode

# encode is no part of a board, and a map takes two calls at each level
ONLY_ON_HOSTS = ("test_depth_one_below_at_and_above_there_and_back",)

# (hex, value): mostly RFC 8949, appendix A
GOOD = (
    ("00", 0),
    ("01", 1),
    ("0a", 10),
    ("17", 23),
    ("1818", 24),
    ("1819", 25),
    ("1864", 100),
    ("18ff", 255),
    ("190100", 256),
    ("1903e8", 1000),
    ("19ffff", 65535),
    ("1a00010000", 65536),
    ("1a000f4240", 1000000),
    ("1affffffff", 4294967295),
    ("1b0000000100000000", 4294967296),
    ("1b000000e8d4a51000", 1000000000000),
    ("1bffffffffffffffff", 18446744073709551615),
    ("20", -1),
    ("29", -10),
    ("37", -24),
    ("3818", -25),
    ("3863", -100),
    ("38ff", -256),
    ("390100", -257),
    ("3903e7", -1000),
    ("3a00010000", -65537),
    ("3b7fffffffffffffff", -9223372036854775808),
    ("3b8000000000000000", -9223372036854775809),
    ("3bffffffffffffffff", -18446744073709551616),
    ("f90000", 0.0),
    ("f93c00", 1.0),
    ("f93e00", 1.5),
    ("f97bff", 65504.0),
    ("f90001", 5.960464477539063e-8),
    ("f90400", 0.00006103515625),
    ("f9c400", -4.0),
    ("f903ff", 1023 / 16777216),
    ("fa47800000", 65536.0),
    ("fa47c35000", 100000.0),
    ("fa33000000", 2.9802322387695312e-08),
    ("fa3f801000", 1.00048828125),
    ("fa7f7fffff", 3.4028234663852886e38),
    ("fa00000001", 1.401298464324817e-45),
    ("fb3690000000000000", 7.006492321624085e-46),
    ("fb3ff199999999999a", 1.1),
    ("fbc010666666666666", -4.1),
    ("fb7e37e43c8800759c", 1.0e300),
    ("fb0000000000000001", 5e-324),
    ("fb47efffffe0000001", 3.402823466385289e38),
    ("f4", False),
    ("f5", True),
    ("f6", None),
    ("40", b""),
    ("4401020304", b"\x01\x02\x03\x04"),
    ("5818" + "ab" * 24, b"\xab" * 24),
    ("60", ""),
    ("6161", "a"),
    ("6449455446", "IETF"),
    ("62225c", '"\\'),
    ("62c3bc", "\u00fc"),
    ("63e6b0b4", "\u6c34"),
    ("64f0908591", "\U00010151"),
    ("7818" + "61" * 24, "a" * 24),
    ("80", []),
    ("83010203", [1, 2, 3]),
    ("8301820203820405", [1, [2, 3], [4, 5]]),
    ("98190102030405060708090a0b0c0d0e0f101112131415161718181819", list(range(1, 26))),
    ("a0", {}),
    ("a201020304", {1: 2, 3: 4}),
    ("a26161016162820203", {"a": 1, "b": [2, 3]}),
    ("826161a161626163", ["a", {"b": "c"}]),
    ("a4010220036161046262620a", {1: 2, -1: 3, "a": 4, "bb": 10}),
    ("a261620162616101", {"b": 1, "aa": 1}),
)
BAD = (
    # cut
    "",
    "18",
    "19ff",
    "1a000000",
    "1b00000000000000",
    # reserved
    "1c",
    "1d",
    "1e",
    "1f",
    "3c",
    "5c",
    "7e",
    "9d",
    "be",
    "dc",
    "1800",
    "1817",
    "190017",
    "1900ff",
    "1a0000ffff",
    "1b00000000ffffffff",
    "3817",
    "5800",
    "780161",
    # not the shortest
    "9800",
    "b800",
    # indefinite
    "5f41014102ff",
    "7f61616162ff",
    "9f01ff",
    "bf0102ff",
    "ff",
    "5fff",
    "7fff",
    # simple values
    "e0",
    "f0",
    "f3",
    "f7",
    "f8",
    "f820",
    "f818",
    "f8ff",
    "fc",
    "fd",
    "fe",
    "f97c00",
    "f9fc00",
    "f97e00",
    "f97c01",
    "fa7f800000",
    "faff800000",
    "fa7fc00000",
    "fb7ff0000000000000",
    "fb7ff8000000000000",
    "f9",
    "f93c",
    "fa3f8000",
    "fb3ff00000000000",
    "fa3f800000",
    "fa00000000",
    "fa33800000",
    "fb3ff0000000000000",
    "fb0000000000000000",
    "fb8000000000000000",
    # floats likewise
    "fb40f86a0000000000",
    "fb36a0000000000000",
    "fa477fe000",
    # tags, trailing bytes
    "c000",
    "d9d9f700",
    "c11a514b67b0",
    "810000",
    "0000",
    "6000",
    # strings
    "41",
    "61",
    "4401020",
    "62c3",
    "62c328",
    "61ff",
    "63eda080",
    "62c080",
    "64f4908080",
    "5bffffffffffffffff",
    "7bffffffffffffffff",
    "9bffffffffffffffff",
    "bbffffffffffffffff",
    "bb8000000000000000",
    "5b7fffffffffffffff",
    "9b7fffffffffffffff",
    "bb7fffffffffffffff",
    "5bfffffffffffffff7" + "00",
    "9a00ffffff" + "00" * 9,
    # arrays and maps cut
    "81",
    "8201",
    "a1",
    "a100",
    "a20001",
    "a2000001",
    "a201000100",
    "a202000100",
    "a220000100",
    "a2616200616100",
    "a26261610061" + "6200",
    "a26161002000",
    "a26161006161" + "00",
    # keys
    "a1400",
    "a14000",
    "a18000",
    "a1f400",
    "a1f600",
    "a1f93c0000",
    "a1a000",
    "a1c00000",
)


def _refused(data, **more) -> str:
    try:
        value = cbor.decode(data, **more)
    except CBORError as error:
        return error.message
    assert False, (data, value)


def _hex(text: str) -> bytes:
    return unhexlify(text + "0" * (len(text) % 2))


def _same(a, b) -> bool:
    return type(a) is type(b) and (repr(a) == repr(b) if isinstance(a, float) else a == b)


def test_known_encodings_both_ways():
    for text, value in GOOD:
        data = _hex(text)
        assert encode(value) == data, text
        for buf in (data, bytearray(data), memoryview(data)):
            assert _same(cbor.decode(buf), value), text
        assert cbor.decode(b"\xff" + data + b"\xff", 1, 1 + len(data)) == value


def test_minus_zero_keeps_its_sign():
    assert encode(-0.0) == b"\xf9\x80\x00"
    assert repr(cbor.decode(b"\xf9\x80\x00")) == "-0.0"


def test_everything_else_is_refused():
    for text in BAD:
        message = _refused(_hex(text))
        assert "expected" in message and "found" in message and "byte" in message, message


def test_only_bools_are_bools():
    assert cbor.decode(encode([True, 1, False, 0])) == [True, 1, False, 0]
    assert encode([True, 1, False, 0]) == b"\x84\xf5\x01\xf4\x00"
    assert cbor.decode(b"\xf5") is True and cbor.decode(b"\xf4") is False


def test_results_own_their_bytes():
    buf = bytearray(b"\x82\x42ab\x62cd")
    result = cbor.decode(memoryview(buf))
    for i in range(len(buf)):
        buf[i] = 0
    assert result == [b"ab", "cd"] and type(result[0]) is bytes


def test_map_keys_are_sorted_by_their_bytes():
    value = {"b": 1, "aa": 2, -1: 3, 24: 4, 3: 5, -25: 6, "": 7, "\u00e9": 8, 256: 9}
    data = encode(value)
    assert data == _hex("a9030518180419010009200338180660076162016261610262c3a908")
    assert cbor.decode(data) == value


NESTED = (  # what opens a level, the core of them all, and its value
    (b"\x81", b"\x00", 0),
    (b"\xa1\x00", b"\x00", 0),
    (b"\x81", b"\x80", []),
    (b"\xa1\x00", b"\xa0", {}),
)


def test_depth_one_below_at_and_above():
    for opening, core, value in NESTED:
        inner = 0 if value == 0 else 1
        for depth, more in ((15, {}), (16, {}), (17, {"max_depth": 17})):
            found = cbor.decode(opening * (depth - inner) + core, **more)
            for _ in range(depth - inner):
                assert type(found) is (list if opening == b"\x81" else dict) and len(found) == 1
                found = found[0]
            assert found == value
        assert "nesting" in _refused(opening * (17 - inner) + core)
    assert cbor.decode(b"\x05", max_depth=0) == 5
    assert "nesting" in _refused(b"\x80", max_depth=0)
    assert "nesting" in _refused(b"\x81" * 50000 + b"\x00")


def test_depth_one_below_at_and_above_there_and_back():
    for opening, core, value in NESTED:
        inner = 0 if value == 0 else 1
        for depth in (15, 16, 17):
            data = opening * (depth - inner) + core
            assert encode(cbor.decode(data, max_depth=depth), max_depth=depth) == data


def test_a_range_must_lie_in_the_buffer():
    for pos, end in ((0, 3), (-1, 2), (2, 1), (3, 3), (1 << 40, 1 << 41)):
        assert _refused(b"\x00\x00", start=pos, end=end)
    assert _refused(b"\x00\x00", start=2)
