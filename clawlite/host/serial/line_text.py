"""Text for people between the frames and records on a board's wire, passed on as it comes
(docs/line.md).

The line itself passes text on in complete lines, but a prompt has no line end.
"""

_MARK, _LF = b"\x1e", b"\n"


class TextBeside:
    """Takes out of what comes all that 0x1E begins and LF, or the next 0x1E, ends."""

    def __init__(self):
        self._is_marked = False  # inside such an item

    def take(self, data: bytes) -> bytes:
        """Return the text in *data*, in any portion."""
        found = []
        while data:
            if not self._is_marked:
                text, mark, data = data.partition(_MARK)
                found.append(text)
                self._is_marked = bool(mark)
                continue
            # another 0x1E in it begins another item, which the same LF ends
            _, end, data = data.partition(_LF)
            self._is_marked = not end
        return b"".join(found)
