"""Text for a person's terminal, without what would drive it.

What a model says must not move a cursor, forge a record of the operator's (U+001E, RFC 7464) or disguise a question.
"""


def printable(data: bytes) -> bytes:
    """Return the UTF-8 text *data*: control characters but line feed and tab, and those that turn a line's direction, as
    ``\\x1b`` or ``\\u202e``.

    Cost    one step per byte; bytes, because MicroPython interns every character that a loop over text sees
    """
    for b in data:
        if b < 32 and b != 10 and b != 9 or b == 127 or b == 0xC2 or b == 0xE2:
            from clawlite.core.escapes import escaped
            return escaped(data)
    return data
