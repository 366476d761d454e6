"""Ctrl-C on a UART: noise can forge one 0x03, so it takes three in a row to leave the program.

In a row: with no other byte between them, the first and the third at most ``WITHIN_MS`` apart.
Whoever holds the line then has the REPL.  The board's own Ctrl-C must be off
(``micropython.kbd_intr(-1)``), or one 0x03 would do."""

from clawlite.core.base.dialect import const

WITHIN_MS = const(2000)


class Stop:
    """Takes 0x03 out of what comes from the wire, and counts.

    pressed  int, how many 0x03 were taken out: one that a person typed may end a turn
    """

    def __init__(self):
        self.pressed = 0
        self._times = []  # of the row that is under way, the last three

    def feed(self, data: bytes, now_ms: int) -> tuple:
        """Return ``(what is not 0x03, bytes; whether to leave the program)``.  The rest after the
        third is dropped.

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
