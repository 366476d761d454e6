"""Ctrl-C on a UART: noise can forge one 0x03, so it takes three in a row to leave the program.

In a row means: no other byte between them, and the first and the third at most ``WITHIN_MS`` apart.
Then whoever uses the line has the REPL.  The board's own Ctrl-C must be off
(``micropython.kbd_intr(-1)``), or a single 0x03 would be enough."""

from clawlite.core.base.dialect import const

WITHIN_MS = const(2000)


class Stop:
    """Takes 0x03 out of the received bytes, and counts them.

    pressed  int, how many 0x03 were taken out: a person's single one may end a turn
    """

    def __init__(self):
        self.pressed = 0
        self._times = []  # of the current row, the last three

    def feed(self, data: bytes, now_ms: int) -> tuple:
        """Return ``(bytes without 0x03, whether to leave the program)``.  Bytes after the third
        0x03 are dropped.

        Cost    without a 0x03 in *data*: one search; *data* itself is returned
        """
        if data and data.find(b"\x03") < 0:
            self._times = []
            return data, False
        rest = bytearray()
        for byte in data:
            if byte != 3:
                rest.append(byte)
                self._times = []
                continue
            self.pressed += 1
            self._times = self._times[-2:] + [now_ms]
            if len(self._times) == 3 and now_ms - self._times[0] <= WITHIN_MS:
                self._times = []
                return bytes(rest), True
        return bytes(rest), False
