"""A text for a person's terminal that comes in pieces, as a model's answer does.  What a character
may do there can depend on those before it, which came in an earlier piece: how many marks are
stacked already, and whether a joiner shapes an emoji (escapes.py).
"""

from clawlite.core.base.printable import printable

_SEEN = 8  # characters that are looked back at: more than marks may be stacked


class Pieces:
    """Writes the pieces of one text as ``printable`` writes the whole."""

    def __init__(self) -> None:
        self._last = ""

    def show(self, text: str) -> bytes:
        """Return the next piece, *text*, for the terminal."""
        before = self._last.encode("utf-8", "replace")
        self._last = (self._last + text)[-_SEEN:]
        data = before + text.encode("utf-8", "replace")
        return printable(data)[len(printable(before)) :]
