"""Text for a person's terminal, without characters that control the terminal or hide in it.

A model's text must not move the cursor, forge a record for the operator (U+001E, RFC 7464) or
disguise a question."""

# DEL, and the first UTF-8 byte of every character that escapes.py replaces, as by ``\u200b``.
_LEADS = b"\x7f\xc2\xcd\xd8\xdb\xdc\xe0\xe1\xe2\xe3\xef\xf0\xf3"


def printable(data: bytes) -> bytes:
    """Return the UTF-8 text *data*, each character that cannot be seen replaced by its escape:
    ``\\x1b``, ``\\u202e``, ``\\U000e0041``.

    Replaced are control characters (except line feed and tab), direction marks, and invisible
    characters.

    Two invisible characters stay where they shape the emoji before them: U+200D and U+FE0F.
    Cost    one step per byte.  It works on bytes, because MicroPython interns every character that
            a loop over text visits
    """
    for b in data:
        if b < 32 and b != 10 and b != 9 or b in _LEADS:
            from clawlite.core.base.escapes import escaped

            return escaped(data)
    return data
