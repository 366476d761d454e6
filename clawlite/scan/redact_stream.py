"""Redacts text that is shown as it comes: line by line, so that no secret is shown in part."""

_HELD = 32768  # characters of a key that are waited for


class RedactStream:
    """What waits to be shown.

    clean  function(text) -> text without secrets
    most   int, characters of a key that are waited for
    """

    def __init__(self, clean, most: int = _HELD):
        self._clean = clean
        self._most = most
        self._waiting = ""

    def write(self, text: str) -> str:
        """Return the text that may be shown now: complete lines, but nothing of a private key
        before its end.
        """
        self._waiting += text
        end = self._waiting.rfind("\n") + 1
        key = self._waiting.find("-----BEGIN ")
        if (
            0 <= key < end
            and "-----END " not in self._waiting[key:end]
            and len(self._waiting) - key < self._most
        ):
            end = key
        return self._take(end)

    def rest(self) -> str:
        """Return the rest of the text, which is complete."""
        return self._take(len(self._waiting))

    def _take(self, end: int) -> str:
        shown, self._waiting = self._waiting[:end], self._waiting[end:]
        return self._clean(shown) if shown else ""
