"""The console's wire on a board: stdin and stdout, the poll over all that may wake the loop, lines
and records.

1. stdin is read byte by byte: ``read(n)`` on a board blocks until n bytes have come.
2. The wire is plain (clawlite/core/line/frame.py) until a frame comes.  Then reliable.py has it
   until its session ends.
"""

import os
import select
import sys

from clawlite.core.line.frame import TEXT, TOO_LONG, Framer
from jsontext import dumps
from unload import drop

MAX_LINE = 8192
_PIECE = 128  # bytes that are read at once
# how a hello begins; in a frame of a session, 0x1E is followed by the frame's kind
_HELLO = b"\x1e~"


class Stdio:
    """stdin and stdout.

    operator  True: every line is a record; False: a person's console, where a carriage return ends
              a line, as the Enter key of most terminals sends it
    now_ms    function -> monotonic ms
    Public: ``input``, ``poll`` (others may register with it), ``at_end``, ``prompt`` (what stands
    on the last line), ``is_uart`` (noise may change or invent bytes), ``operator``, ``line``
    (``reliable.Reliable``, or None), ``over`` (function(), called when its session has ended, or
    None).
    ``_return``: the last byte was a carriage return; ``_begun``: what ``read`` has so far, which
    outlives a Ctrl-C, or None; ``_fed``: how many bytes ``feed`` is handing in; ``_lost``: how many
    bytes of output the port dropped since the last report."""

    at_end = _return = False
    line = over = _begun = None
    _fed = _lost = 0
    prompt = b""

    def __init__(self, operator: bool, now_ms):
        self.input = getattr(sys.stdin, "buffer", sys.stdin)
        self.output = getattr(sys.stdout, "buffer", sys.stdout)
        self._flush = hasattr(self.output, "flush")
        self._typed = select.poll()  # the console alone: is there more to read at once?
        self._typed.register(self.input, select.POLLIN)
        self.poll = select.poll()
        self.poll.register(self.input, select.POLLIN)
        self.is_uart = sys.platform == "esp32"
        self.operator, self._now_ms = operator, now_ms
        self._framer = Framer(MAX_LINE, operator)

    def has_more(self) -> bool:
        """Return whether something can be read without waiting."""
        return not self.at_end and len(self._typed.poll(0)) > 0

    def read(self) -> bytes:
        """Return what has come, at most to the end of a line; b"" at the end of input.

        The bytes go to the framer in one piece: one by one, a line of 340 bytes made 99 KB of
        garbage.
        """
        # go on where Ctrl-C interrupted: the rest of a record alone would be taken for text
        data = self._begun = self._begun or bytearray()
        byte = self.input.read(1)
        while byte:
            if byte == b"\r" and not self.operator:  # a line feed after it adds nothing
                data.extend(b"\n")
            elif byte != b"\n" or not self._return:
                data.extend(byte)
            self._return = byte == b"\r" and not self.operator
            if byte in b"\r\n" or len(data) == _PIECE or not self._typed.poll(0):
                data = bytes(data)
                self._begun = None
                return data
            byte = self.input.read(1)
        self.at_end = True
        self.poll.unregister(self.input)
        return bytes(data)

    def feed(self, data: bytes):
        """Hand *data* to the framer or the reliable line; at the end of input, end an open line."""
        wire = self.line or self._framer
        self._fed = len(data)
        wire.feed(data)
        self._fed = 0
        if self.at_end:
            wire.finish()

    def spoil(self):
        """Memory ran out: give up the line that was being read, for part of it is lost.  Leave a
        reliable line then, too, because its state is in doubt.
        """
        if self._begun is not None or self._fed:
            self._framer.lose(self._fed + len(self._begun or b""))
            self._begun, self._fed = None, 0
            if self.line:
                self.line.leave()
                self.line = None

    def next_event(self) -> tuple:
        """Return (RECORD, JSON), (TEXT, a person's line), (TOO_LONG, digits), or None."""
        return (
            (self.line or self._framer).next_event()
            if self.line or self.operator
            else self._line_event()
        )

    def _line_event(self) -> tuple:
        event = self._framer.next_event()
        if event is None or event[0] == TOO_LONG:
            return event
        kind, data = event
        at = (
            data.find(_HELLO) if kind == TEXT else 0 if len(data) > 8 and data[0] in b"~dma" else -1
        )
        if at < 0:
            return event
        self._put_back((data[at:] if kind == TEXT else b"\x1e" + data) + b"\n")
        return (TEXT, data[:at]) if at else self.next_event()

    def _put_back(self, frame: bytes):
        """Give the wire to a reliable line that begins with *frame*; ``pump`` takes it back when
        that opens no session.
        """
        from reliable import Reliable

        line = Reliable(self, self._now_ms, MAX_LINE)
        line.feed(frame)
        self.line = line  # else the host takes it for a plain one

    def pump(self):
        """Write what the reliable line has to write; forget it when its session is over."""
        if self.line and not self.line.pump():
            self.line.leave()
            self.line = None
            drop("line lineframe linereceive linesend linestop reliable")

    def deadline(self):
        """Return the time in ms at which the line wants a ``tick``, or None."""
        return self.line.deadline() if self.line else None

    def record(self, message):
        """Write a JSON-RPC message: a dict, or a list of them."""
        if self.line and self.line.is_up:
            self.line.send(message)
            return
        prompt = self.prompt
        self.write((b"\n" if prompt else b"") + self._framer.send(dumps(message).encode()), prompt)

    def write(self, data: bytes, prompt: bytes):
        """Write *data*, then the prompt, which stands there until something else is written."""
        self.prompt = prompt
        self.send(data + prompt if prompt else data)

    def send(self, data: bytes):
        """Write *data* and leave ``prompt`` as it is.

        A port may take less: rp2's USB drops bytes that nobody reads for 500 ms.  The next call
        reports the loss before it writes anything else.  A reliable line sends lost bytes again.
        """
        if self._lost:
            told = (
                b"\nclawlite: %d bytes of output are lost: nobody read them in time\n" % self._lost
            )
            if self.output.write(told) == len(told):
                self._lost = 0
        taken = 0 if self._lost else self.output.write(data) or 0
        if not (self.line and self.line.is_up):
            self._lost += len(data) - taken
        if self._flush:
            self.output.flush()


def is_terminal() -> bool:
    """Return whether a person may type: always on a board; on the unix port unless stdin is a
    pipe or a file.
    """
    try:
        return os.stat("/proc/self/fd/0")[0] & 0xF000 == 0x2000  # S_IFCHR
    except OSError:
        return True
