"""What a guard (clawlite/scan/guard.py) needs of a board: its secrets, and what a person sees as it
comes.

Loaded for images that require ``guard``.  Secrets are read when a text is looked at first, and
again for no other."""

from clawlite.core.base.effect import WRITE
from clawlite.scan.guard import Guard
from clawlite.scan.redact_stream import RedactStream

_HELD = 4096  # characters of a key that are waited for


class Guarding:
    """The guard of one board's agent.

    device  ``device.Device``, whose watchdog is fed
    image   has the section GUARD; its ``guard`` is set
    folder  where ``secrets/NAME`` lies
    """

    def __init__(self, device, image, folder: str):
        self.guard = image.guard = Guard(image, False)
        self._device = device
        self._folder = folder
        self.guard.alive = self._alive
        self._held = RedactStream(self.guard.text, _HELD)
        self.guard.secrets = self._secrets

    def shown(self, kind: int, text: str) -> str:
        """Return what of *text* may be shown now; *kind* of effect: of a WRITE, whole lines."""
        if kind == WRITE:
            return self._held.write(text)
        rest = self._held.rest()
        return (rest + "\n" if rest else "") + self.guard.text(text)

    def _alive(self):
        """A text of 16 KB may take longer than the watchdog has patience."""
        if self._device.watchdog:
            self._device.watchdog.feed()

    def _secrets(self) -> list:
        """Return the values of all secrets of this board and, on the unix port, of those that
        the image names in the environment.
        """
        from secretvalues import values

        return values(self._folder, self.guard.references)
