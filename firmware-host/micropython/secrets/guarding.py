"""What a guard (clawlite/scan/guard.py) needs from a board: its secrets, and a scan of the text
that a person sees while it arrives.

Loaded for images that require ``guard``.  The secrets are read once, when the first text is
scanned."""

from clawlite.core.base.effect import WRITE
from clawlite.scan.guard import Guard
from clawlite.scan.redact_stream import RedactStream

_HELD = 4096  # characters of text that are held back because they may be the start of a key


class Guarding:
    """The guard of one board's agent.

    device  ``device.Device``, whose watchdog is fed
    image   has the section GUARD
    folder  where ``secrets/NAME`` lies
    """

    def __init__(self, device, image, folder: str):
        self.guard = Guard(image, False, self._secrets, None, self._alive)
        self._device = device
        self._folder = folder
        self._held = RedactStream(self.guard.text, _HELD)

    def show_part(self, kind: int, text: str) -> str:
        """Return the part of *text* that may be shown now; *kind* of effect: for a WRITE, whole
        lines only.
        """
        if kind == WRITE:
            return self._held.write(text)
        rest = self._held.rest()
        return (rest + "\n" if rest else "") + self.guard.text(text)

    def _alive(self):
        """Feed the watchdog: a scan of 16 KB may take longer than its time."""
        if self._device.watchdog:
            self._device.watchdog.feed()

    def _secrets(self, references: list) -> list:
        """Return the values of all secrets of this board and, on the unix port, of the secrets in
        the environment that the image names.
        """
        from secretvalues import values

        return values(self._folder, references)
