"""The receiving half of a reliable line (docs/line.md): it takes frames in order, and returns a
record once its last frame has come.
"""

from clawlite.core.base.dialect import const
from clawlite.core.line.frame import RECORD, TOO_LONG
from clawlite.core.line.lineframe import COST, MORE

# bytes of a window that stay free for frames that get no acknowledgement: four acknowledgements, or
# a hello
RESERVE = const(44)
# this many frames after noise are acknowledged at once, because few are in flight then
_CALM = const(16)
# an acknowledgement waits this long for a frame that can carry it, or for more to acknowledge
ACK_MS = const(60)


class Receiver:
    """Records on their way in.

    window    bytes that this end can hold unread
    fragment  bytes of a record in one frame to this end
    limit     bytes of one record; a longer one is acknowledged and dropped, and ``take`` says so
    Public, to be read: ``expected`` (number of the next frame), ``ack_at`` (when an acknowledgement
    is due, ms or None), ``nak`` (True: ask for the expected frame again; the line sets it, too,
    when a frame is damaged).
    """

    def __init__(self, window: int, fragment: int, limit: int):
        self._allowed, self._fragment, self._limit = window - RESERVE, fragment, limit
        self.begin()

    def begin(self) -> None:
        """Count frames from 0 again, and forget a record that is not complete."""
        self.expected = 0
        self._gap = False  # a missing frame was asked for, and has not come
        # the part of the open record that has come; bytes of it that were dropped
        self._record, self._lost = bytearray(), 0
        self._calm = _CALM  # frames since something was damaged or missing
        self.note_ack()

    def note_ack(self) -> None:
        """Note that a frame left, and with it an acknowledgement."""
        self.ack_at, self.nak = None, False
        self._heard = 0  # bytes since then

    def take(self, seq: int, kind: int, payload: bytes, now_ms: int) -> tuple | None:
        """Return (RECORD, bytes), (TOO_LONG, digits), or None while a record is not whole.

        seq      0..255
        kind     DATA or MORE
        payload  bytes whose checksum is right
        """
        ahead = (seq - self.expected) & 255
        if ahead:
            if ahead > 127:  # it came before: its acknowledgement was lost
                self.ack_at = now_ms
            elif not self._gap:
                self._gap = self.nak = True
            return None
        self.expected += 1
        self._heard += COST + len(payload)
        self._calm = 0 if self._gap or self.nak else self._calm + 1
        if (
            self._calm < _CALM
            or self._heard * 2 > self._allowed
            or self._allowed - self._heard < COST + self._fragment
        ):
            self.ack_at = now_ms  # the peer may be waiting for it
        elif self.ack_at is None or self.ack_at > now_ms:
            self.ack_at = now_ms + ACK_MS  # so long after the peer's last frame
        self._gap = self.nak = False
        return self._join_parts(kind, payload)

    def _join_parts(self, kind: int, payload: bytes) -> tuple | None:
        try:
            if self._lost or len(payload) > self._limit - len(self._record):
                raise MemoryError
            if self._record or kind == MORE:
                self._record.extend(payload)
            if kind != MORE:
                payload = bytes(self._record) or payload
        except MemoryError:  # a board's own, or the one above
            self._lost += len(self._record) + len(payload)
            self._record = bytearray()
        if kind == MORE:
            return None
        lost, self._lost, self._record = self._lost, 0, bytearray()
        return (TOO_LONG, b"%d" % lost) if lost else (RECORD, payload)
