"""core/cbor against cbor2: each reads what the other writes, to the same bytes.

One difference is cbor2's: ``canonical=True`` sorts map keys by length first (RFC 7049, 3.9; RFC
8949, 4.2.3), we sort them by their bytes alone (RFC 8949, 4.2.1).  Keys of one major type come out
alike; -1 and 24, or "" and 24, do not."""

import math
import struct

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clawlite.core.base.errors import CBORError
from clawlite.core.formats import cbor
from clawlite.core.formats.encoder import encode

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
NARROW = st.one_of(
    FLOATS,
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.floats(width=16, allow_nan=False, allow_infinity=False),
)
INTS = st.integers(-(2**64), 2**64 - 1) | st.integers(-300, 300)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
KEYS = INTS | TEXT
VALUES = st.recursive(
    st.none() | st.booleans() | INTS | NARROW | TEXT | st.binary(max_size=300),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(KEYS, inner, max_size=30),
    max_leaves=40,
)


def _alike(a, b) -> bool:
    """Equal values and types, all the way down; the sign of zero counts."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_alike(a[key], b[key]) for key in a)
    return a == b and (not isinstance(a, float) or math.copysign(1, a) == math.copysign(1, b))


def _reference(value) -> bytes:
    """Return *value* as cbor2 writes it, with the order of RFC 8949, 4.2.1 in maps."""
    if not isinstance(value, (list, dict)):
        return cbor2.dumps(value, canonical=True)
    zeros = cbor2.dumps([0] * len(value))
    start = bytearray(zeros[: len(zeros) - len(value)])
    if isinstance(value, list):
        return bytes(start) + b"".join(map(_reference, value))
    start[0] += 0x20  # array to map
    return bytes(start) + b"".join(
        code + _reference(value[key])
        for code, key in sorted((cbor2.dumps(key), key) for key in value)
    )


def test_map_order_differs_from_cbor2_where_rfc_8949_does_from_rfc_7049():
    for value, ours, theirs in (
        ({24: 0, -1: 0}, "a21818002000", "a22000181800"),
        ({24: 0, "": 0}, "a21818006000", "a26000181800"),
    ):
        assert encode(value).hex() == ours
        assert cbor2.dumps(value, canonical=True).hex() == theirs
        with pytest.raises(CBORError):
            cbor.decode(bytes.fromhex(theirs))
    for value in ({1: 0, 24: 0, 256: 0}, {-1: 0, -25: 0, -257: 0}, {"b": 0, "aa": 0, "": 0}):
        assert encode(value) == cbor2.dumps(value, canonical=True)


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_both_write_the_same_bytes_and_read_each_other(value):
    data = encode(value, 64)
    assert data == _reference(value)
    assert _alike(cbor.decode(data, max_depth=64), value)
    assert _alike(cbor2.loads(data), value)


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_other_forms_of_the_same_value_are_refused(value):
    """cbor2 without canonical=True writes 64-bit floats and unsorted maps."""
    data = cbor2.dumps(value)
    if data == _reference(value):
        assert _alike(cbor.decode(data, max_depth=64), value)
    else:
        with pytest.raises(CBORError):
            cbor.decode(data, max_depth=64)


@settings(max_examples=600, deadline=None)
@given(NARROW)
def test_floats_take_their_shortest_form(value):
    data = encode(value)
    assert data == cbor2.dumps(value, canonical=True)
    assert _alike(cbor.decode(data), value)


def test_every_half_float():
    """All 65,536, against struct, which CPython has the "e" of."""
    for bits in range(0x10000):
        raw = struct.pack(">H", bits)
        expected = struct.unpack(">e", raw)[0]
        if math.isfinite(expected):
            assert _alike(cbor.decode(b"\xf9" + raw), expected)
            assert encode(expected) == b"\xf9" + raw
        else:
            with pytest.raises(CBORError):
                cbor.decode(b"\xf9" + raw)


@settings(max_examples=600, deadline=None)
@given(st.binary(max_size=40))
def test_what_is_accepted_is_what_cbor2_reads(data):
    try:
        value = cbor.decode(data)
    except CBORError:
        return
    assert _alike(cbor2.loads(data), value)
    assert _reference(value) == data
