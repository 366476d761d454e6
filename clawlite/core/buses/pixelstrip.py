"""``board.neopixel("strip")``: WS2812 pixels, with the names of MicroPython's ``neopixel``.

    strip[0] = (255, 120, 0)    red, green, blue, 0 to 255
    strip.fill((0, 0, 0))
    strip.write()               now it shows

A port has ``show(colours)``, three bytes for each pixel.
"""

from clawlite.core.base.errors import SandboxDenied
from clawlite.core.buses.busfaults import failure
from clawlite.core.buses.bustable import BUS_MOST, BUS_NAME, PIXELS


class PixelStrip:
    kind = PIXELS

    def __init__(self, row: list, port):
        self._row, self.port = row, port
        self.n = row[BUS_MOST]
        self._colours = bytearray(3 * self.n)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, pixel: int) -> tuple:
        at = 3 * self._check(pixel)
        return tuple(self._colours[at : at + 3])

    def __setitem__(self, pixel: int, colour: tuple):
        at = 3 * self._check(pixel)
        for value in colour:
            if not 0 <= value <= 255:
                raise SandboxDenied(
                    "bus %s: a colour of %s, expected 0 to 255" % (self._row[BUS_NAME], value),
                    "give red, green and blue between them",
                )
        self._colours[at : at + 3] = bytes(colour[:3])

    def fill(self, colour: tuple):
        for pixel in range(self.n):
            self[pixel] = colour

    def write(self):
        """Show the colours."""
        try:
            self.port.show(self._colours)
        except OSError as e:
            raise failure(self._row, e)

    def darken(self):
        """Switch all pixels off: the safe state."""
        for at in range(len(self._colours)):
            self._colours[at] = 0
        self.write()

    def _check(self, pixel: int) -> int:
        if not 0 <= pixel < self.n:
            raise SandboxDenied(
                "bus %s: it has no pixel %d, expected 0 to %d"
                % (self._row[BUS_NAME], pixel, self.n - 1),
                "name another pixel, or say how many there are: pixels in clawlite.toml",
            )
        return pixel
