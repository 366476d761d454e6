"""The shortest exact IEEE 754 form of a float: 2, 4 or 8 bytes, big endian (RFC 8949, 4.2.1 and
appendix D).

encoder.py writes floats with it.  Only a record with a float needs this module, so cbor.py imports
it at the first float.  Forms are compared as bits, not as floats, so that a board with 32-bit
floats judges a 64-bit one correctly.  Half precision is decoded by hand, because not every board's
``struct`` has "e".
"""

import struct


def unpack_float(data: bytes):
    """Return the float in *data*, 2, 4 or 8 bytes; None when it is not finite or a shorter form
    would have done.

    A 64-bit float is rounded on a board with 32-bit ones; one beyond their range is None there.
    """
    bits = int.from_bytes(data, "big")
    if len(data) == 2:
        exponent = (bits >> 10) & 31
        value = bits & 1023
        if exponent:
            value = (value + 1024) << (exponent - 1)
        value /= -16777216.0 if bits & 0x8000 else 16777216.0
        return None if exponent == 31 else value
    if len(data) == 4:
        value = struct.unpack(">f", data)[0]
        shorter = narrow(bits, 8, 23, 5, 10)
    else:
        value = struct.unpack(">d", data)[0]
        shorter = narrow(bits, 11, 52, 8, 23)
    return value if shorter < 0 and value - value == 0.0 else None


def narrow(bits: int, exp_bits: int, frac_bits: int, exp_bits2: int, frac_bits2: int) -> int:
    """Return the finite IEEE 754 number *bits* in the narrower format 2, or -1 when it does not
    fit exactly.
    """
    sign = bits >> (exp_bits + frac_bits) << (exp_bits2 + frac_bits2)
    exponent = (bits >> frac_bits) & ((1 << exp_bits) - 1)
    fraction = bits & ((1 << frac_bits) - 1)
    if exponent == 0:  # zero, or a subnormal, which is below all of format 2
        return -1 if fraction else sign
    exponent += (1 << (exp_bits2 - 1)) - (1 << (exp_bits - 1))
    drop = frac_bits - frac_bits2
    if exponent < 1:  # subnormal there: the leading one is written out
        fraction |= 1 << frac_bits
        drop += 1 - exponent
        exponent = 0
    if exponent >= (1 << exp_bits2) - 1 or fraction & ((1 << drop) - 1):
        return -1
    return sign | exponent << frac_bits2 | fraction >> drop
