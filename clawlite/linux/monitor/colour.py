"""Colour for a terminal: none where stdout is no terminal, ``NO_COLOR`` is set or ``TERM`` is
"dumb".
"""

import os

BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "36"


def has_colour(fd: int = 1) -> bool:
    """Return whether what is written to *fd* may have colour."""
    return (
        os.isatty(fd)
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "") not in ("", "dumb")
    )


def paint(text: str, colour: str, is_on: bool) -> str:
    """Return *text*, which has no escape sequence, in *colour*."""
    return "\x1b[%sm%s\x1b[0m" % (colour, text) if is_on and colour and text else text
