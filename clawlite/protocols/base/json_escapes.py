"""JSON that a person may read at a terminal: the same value, with escapes (RFC 8259, 7) in place
of what drives the terminal, hides in it or covers other lines.
"""

from clawlite.core.base.escapes import MAX_STACK, is_mark, is_unseen


def escape_json(text: str) -> str:
    """Return the JSON text *text*, with escapes for characters that cannot be seen, and for marks
    that are stacked higher than any script needs.
    """
    if not text or max(text) < "\x7f":
        return text
    out = []
    marks = 0
    for c in text:
        code = ord(c)
        marks = marks + 1 if code >= 0x300 and is_mark(code) else 0
        hides = code > 126 and is_unseen(code)
        out.append(_escape(code) if hides or marks > MAX_STACK else c)
    return "".join(out)


def _escape(code: int) -> str:
    """Return the escapes of a character: two for one beyond U+FFFF."""
    if code < 0x10000:
        return "\\u%04x" % code
    code -= 0x10000
    return "\\u%04x\\u%04x" % (0xD800 | code >> 10, 0xDC00 | code & 0x3FF)
