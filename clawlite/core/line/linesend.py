"""The sending half of a reliable line: go-back-n within the peer's window (docs/line.md).

1. Frames in flight are never copied.  There are two positions in the waiting records: that of the
   oldest unacknowledged frame, and that of the next frame to send.  Going back moves the second to
   the first.
2. Numbers grow without end here; the wire has their low 8 bits.  At most MAX_FLIGHT frames, half of
   that range, are in flight, so that a late acknowledgement is not mistaken for a new one.
3. After a time-out one frame is sent: the peer may be busy, and its ring may still hold what was
   sent before.  After going back, half as many frames are sent at once as before, because the
   frames after a damaged one are wasted.  Each acknowledged frame raises that number by one.
"""

from clawlite.core.base.dialect import const
from clawlite.core.line.lineframe import COST, DATA, MORE

MAX_FLIGHT = const(127)  # frames
RESEND_MS, MAX_RESEND_MS = const(300), const(4000)  # without an answer; doubled each time


class Sender:
    """The records on their way to the peer.

    baud    of the wire
    window  of this end: bytes that may arrive before an acknowledgement that the peer has sent
    Attributes to read: ``records`` that wait or are not acknowledged, ``since`` (ms, of the last
    progress), ``resend_at`` (ms or None), ``resent`` (frames that were sent again).
    """

    def __init__(self, baud: int, window: int):
        self._baud, self._answer_ms = baud, window * 10000 // baud
        self.resent = self._wire_at = 0  # ms: when all written bytes have left
        self.records = []  # the first one may be partly acknowledged
        self.begin(1, 0, 0)

    def begin(self, fragment: int, allowed: int, now_ms: int) -> None:
        """Start with new numbers; the waiting ``records`` are sent from the start.

        fragment  bytes of a record in one frame, >= 1
        allowed   bytes that may be in flight
        """
        self._fragment, self._allowed = fragment, allowed
        # the oldest unacknowledged frame; its position in the first record
        self._base = self._base_at = 0
        # the next frame to send; its record, and its position there
        self._next = self._index = self._at = 0
        self._top = 0  # one more than the last that was ever sent
        self._flight = 0  # bytes from _base to _next
        # time-outs in a row; frames that may be in flight
        self._tries, self._burst = 0, MAX_FLIGHT
        # until then, do not go back again for the same frame
        self.since = self._back_at = now_ms
        self.resend_at = None

    def next_frame(self, now_ms: int) -> tuple | None:
        """Return ``(number, kind, payload)`` of the frame to send now, or None."""
        if self._index == len(self.records) or self._next - self._base >= self._burst:
            return None
        record = self.records[self._index]
        payload = record[self._at : self._at + self._fragment]
        size = len(payload)
        if size + COST > self._allowed - self._flight:
            return None
        if self._top == self._base:
            self.since = now_ms
        self.resent += self._next < self._top
        self._next += 1
        self._top = max(self._top, self._next)
        self._flight += size + COST
        self._at += size
        is_last = self._at == len(record)
        if is_last:
            self._index, self._at = self._index + 1, 0
        self._wire_at = max(self._wire_at, now_ms) + (size + COST) * 10000 // self._baud + 1
        self.wait(now_ms)
        return self._next - 1, DATA if is_last else MORE, payload

    def wait(self, now_ms: int) -> None:
        """Start the timer: what is written now must be answered."""
        self.resend_at = (
            max(self._wire_at, now_ms)
            + self._answer_ms
            + min(RESEND_MS << min(self._tries, 4), MAX_RESEND_MS)
        )

    def acknowledge(self, ack: int, now_ms: int) -> int:
        """Drop what the peer has received, and return its bytes of records.

        ack  the low 8 bits of the number of the frame that the peer expects next; ignored when no
             such frame was sent
        """
        gain = (ack - self._base) & 255
        if not gain or gain > self._top - self._base:
            return 0
        freed = 0
        for _ in range(gain):
            size = min(self._fragment, len(self.records[0]) - self._base_at)
            if self._next > self._base:
                self._flight -= size + COST
            else:  # going back was unnecessary
                self._next += 1
                self._at += size
            self._base += 1
            self._base_at += size
            if self._base_at == len(self.records[0]):
                freed += len(self.records.pop(0))
                self._base_at = 0
                self._index, self._at = (self._index - 1, self._at) if self._index else (0, 0)
        self._tries, self._burst = 0, min(self._burst + gain, MAX_FLIGHT)
        self.since = self._back_at = now_ms
        self.resend_at = None
        if self._flight:
            self.wait(now_ms)
        return freed

    def go_back(self, now_ms: int) -> None:
        """The peer requests the oldest frame again.  Do so once, and not for repeated requests
        while the frames that were sent before still arrive.
        """
        if self._flight and now_ms >= self._back_at:
            self._back_at = max(self._wire_at, now_ms)
            self._rewind((self._next - self._base + 1) // 2)

    def time_out(self) -> None:
        """No answer came."""
        self._tries += 1
        self._rewind(1)

    def _rewind(self, burst: int) -> None:
        self._burst = burst
        self._next, self._index, self._at = self._base, 0, self._base_at
        self._flight, self.resend_at = 0, None
