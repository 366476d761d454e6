"""The reliable line as the console's wire (clawlite/core/line/line.py): loaded when a host sends a
hello, dropped when the session is over.

1. Only records are sent in frames; text for people is written as it is.  A line that a person types
   comes in a record: ``claw.console.line``, params {"text": ...}.
2. Plain text in a session is ignored.  But three lines of it within 20 s, with no frame between
   them, end the session: the host is gone, and a person types on the bare line.  Pieces of damaged
   frames come between other frames.
3. On a UART noise can forge a Ctrl-C.  In a session one Ctrl-C ends a turn, and three in a row
   leave the program (clawlite/core/line/linestop.py).
"""

import struct
import sys

from clawlite.core.base.errors import ClawError
from clawlite.core.line.frame import RECORD, TEXT, TOO_LONG
from clawlite.core.line.line import DOWN, UNSURE, UP, Line
from jsontext import dumps, loads
from random_bytes import random_bytes

_MAX_RECORD = 40960  # bytes, to the host: a result in JSON
_LOOSE, _LOOSE_MS = 3, 20000
# The size of each port's receive ring.  rp2 is on USB and the unix port on a terminal, which have
# flow control; esp32 has 260 bytes behind a UART (docs/line.md).
_WINDOWS = {"rp2": (2048, 208), "linux": (2048, 208), "esp32": (260, 205)}
_METHOD = b'"claw.console.line"'


class Reliable:
    """One end of a line, with the methods of a framer.

    stdio   ``stdio.Stdio``
    now_ms  function -> monotonic ms
    limit   bytes of a record from the host
    Attributes to read: ``is_up``; ``is_new``, a session has begun; ``pressed``, a Ctrl-C came;
    ``left``, three came in a row."""

    def __init__(self, stdio, now_ms, limit: int):
        self._stdio, self._now_ms, self._limit = stdio, now_ms, limit
        window, fragment = _WINDOWS.get(sys.platform, (512, 208))
        nonce = struct.unpack(">I", random_bytes())[0] or 1
        self._line = Line(nonce, window, fragment, _MAX_RECORD, _MAX_RECORD)
        self.is_up = self.is_new = self.pressed = self.left = False
        self._loose, self._heard = [], 0  # times (ms) of stray text; number of frames by then
        self._stop = None

    @property
    def waiting(self) -> int:
        """Bytes of records that the host does not have yet."""
        return self._line.waiting

    def feed(self, data: bytes):
        now = self._now_ms()
        if self._stop:
            count = self._stop.pressed
            data, self.left = self._stop.feed(data, now)
            self.pressed = self._stop.pressed > count
        self._line.feed(data, now)

    def finish(self):
        """The input is over: an unfinished item is no frame, so there is nothing to do."""

    def next_event(self) -> tuple:
        """Return (RECORD, JSON), (TEXT, a person's line), (TOO_LONG, digits), or None."""
        event = self._line.next_event()
        while event:
            kind, data = event
            if kind == RECORD:
                if len(data) > self._limit:
                    return TOO_LONG, b"%d" % len(data)
                return self._line_of(data) if _METHOD in data else event
            if kind == TOO_LONG or kind == TEXT:
                return event
            if kind == UP:
                self.is_up = self.is_new = True
                if self._stdio.is_uart:
                    self._interrupt(-1)
            elif kind == DOWN:
                self._down()
            elif kind == UNSURE and data:
                self._text_came()
            event = self._line.next_event()

    def _line_of(self, data: bytes) -> tuple:
        """Return the line that a person typed, or the record when it is something else."""
        try:
            message = loads(data)
            if message["method"] == "claw.console.line":
                return TEXT, message["params"]["text"].encode()
        except (ClawError, KeyError, TypeError, AttributeError):
            pass  # the session reports what is wrong with it
        return RECORD, data

    def _text_came(self):
        now, heard = self._now_ms(), self._line.heard
        self._loose = (self._loose[1 - _LOOSE :] if heard == self._heard else []) + [now]
        self._heard = heard
        if len(self._loose) == _LOOSE and now - self._loose[0] <= _LOOSE_MS:
            self.close()

    def _interrupt(self, key: int):
        """Set the byte that the port itself takes as Ctrl-C; -1: none."""
        from micropython import kbd_intr
        from clawlite.core.line.linestop import Stop

        kbd_intr(key)
        self._stop = Stop() if key < 0 else None

    def send(self, message):
        """Send one JSON-RPC message: a dict, or a list of them.

        A message that is too long for a record is replaced by an error.  When the line is full,
        because the host acknowledges nothing, the session is closed."""
        now = self._now_ms()
        try:
            data = dumps(message).encode()
            if len(data) > _MAX_RECORD:
                data = dumps(
                    {
                        "jsonrpc": "2.0",
                        "id": message.get("id") if isinstance(message, dict) else None,
                        "error": {
                            "code": -32603,
                            "message": "%d bytes, the line takes %d" % (len(data), _MAX_RECORD),
                        },
                    }
                ).encode()
            self._line.send(data, now)
        except ClawError:
            self.close()

    def deadline(self):
        """Return the time in ms at which ``tick`` must be called, or None."""
        return self._line.deadline()

    def tick(self):
        self._line.tick(self._now_ms())

    def pump(self) -> bool:
        """Write what can be written; return whether there is a session."""
        data = self._line.output()
        while data:
            self._stdio.send(data)
            data = self._line.output()
        return self.is_up

    def close(self):
        """End the session and notify the host."""
        self._line.close(self._now_ms())
        self._down()

    def _down(self):
        if self.is_up and self._stdio.over:
            self._stdio.over()
        self.is_up = False

    def leave(self):
        """Restore the plain line."""
        self.close()
        self.pump()
        if self._stop:
            self._interrupt(3)
