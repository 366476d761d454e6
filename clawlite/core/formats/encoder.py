"""A writer of deterministic CBOR (RFC 8949, 4.2.1): the counterpart of cbor.py, which describes the
format.

A device only reads.  This module is for code that makes records: tests, and programs that do not
run on a device.
"""

import struct

from clawlite.core.formats.cbor import MAX_DEPTH
from clawlite.core.base.errors import CBORError
from clawlite.core.formats.floats import narrow
from clawlite.core.base.text import decode_utf8


def encode(obj, max_depth: int = MAX_DEPTH) -> bytes:
    """Return *obj* in its one deterministic form.

    obj  int of 64 bits and a sign, str, bytes-like, list, tuple, dict keyed by int or str, bool,
         None, finite float
    Raises CBORError for anything else, for a surrogate in a str, and for nesting beyond
    *max_depth*."""
    out = bytearray()
    _put(out, obj, max_depth)
    return bytes(out)


def _put_head(out, major: int, n: int) -> None:
    if n < 24:
        out.append(major | n)
        return
    size = 0
    while n >> (8 << size):
        size += 1
    if size > 3:
        raise CBORError("CBOR: expected an integer of 64 bits and a sign, found a longer one")
    out.append(major | 24 | size)
    out.extend(n.to_bytes(1 << size, "big"))


def _put(out, obj, depth: int) -> None:
    if obj is None:
        out.append(0xF6)
    elif obj is True or obj is False:  # before int: a bool is one on CPython
        out.append(0xF5 if obj else 0xF4)
    elif isinstance(obj, int):
        if obj < 0:
            _put_head(out, 0x20, -1 - obj)
        else:
            _put_head(out, 0x00, obj)
    elif isinstance(obj, str):
        try:
            data = obj.encode()
            if len(data) != len(obj):
                decode_utf8(data)  # MicroPython writes surrogates
        except ValueError:
            raise CBORError("CBOR: expected text, found a surrogate in it")
        _put_head(out, 0x60, len(data))
        out.extend(data)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        _put_head(out, 0x40, len(obj))
        out.extend(obj)
    elif isinstance(obj, float):
        data = _pack_float(obj)
        if not data:
            raise CBORError("CBOR: expected a finite float, found %r" % obj)
        out.append(0xF9 + len(data) // 4)  # 2, 4, 8 bytes: F9, FA, FB
        out.extend(data)
    elif not isinstance(obj, (list, tuple, dict)):
        raise CBORError("CBOR: expected a plain object, found %s" % type(obj).__name__)
    elif depth <= 0:
        raise CBORError("CBOR: expected no deeper nesting, found one more array or map")
    elif isinstance(obj, dict):
        _put_map(out, obj, depth - 1)
    else:
        _put_head(out, 0x80, len(obj))
        for item in obj:
            _put(out, item, depth - 1)


def _put_map(out, obj, depth: int) -> None:
    keys = {}
    for key in obj:
        if key is True or key is False or not isinstance(key, (int, str)):
            raise CBORError("CBOR: expected an integer or text as key, found %r" % (key,))
        code = bytearray()
        _put(code, key, 0)
        keys[bytes(code)] = key
    _put_head(out, 0xA0, len(keys))
    for code in sorted(keys):
        out.extend(code)
        _put(out, obj[keys[code]], depth)


def _pack_float(value: float) -> bytes:
    """Return the shortest encoding of exactly *value*: 2, 4 or 8 bytes; ``b""`` when it is infinite
    or not a number.
    """
    if value - value != 0.0:
        return b""
    data = struct.pack(">d", value)
    single = narrow(int.from_bytes(data, "big"), 11, 52, 8, 23)
    if single < 0:
        return data
    half = narrow(single, 8, 23, 5, 10)
    return single.to_bytes(4, "big") if half < 0 else half.to_bytes(2, "big")
