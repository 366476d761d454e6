"""Server-sent events (the event stream of the HTML standard, 9.2.6), read from bytes in any
portion.

1. Lines end in LF, CR or CRLF; an empty line ends an event; one BOM at the start is dropped.
2. ``data`` lines are joined with LF, ``event`` names the event; comments, ``id``, ``retry`` and
   unknown fields are ignored.
3. An event without data is none; one that the stream's end cuts is dropped.
4. Every byte is looked at once.  At most one event is held.  A longer one than the limit is an
   error, and so is what is not UTF-8.
"""

from clawlite.core.base.errors import ProviderError
from clawlite.core.base.text import decode_utf8

LIMIT = 262144


class Events:
    """One stream.

    limit   bytes that the lines of one event may have, their ends not counted
    """

    def __init__(self, limit: int = LIMIT):
        self._limit = limit
        self._chunk = b""  # being read, from _pos
        self._pos = 0
        self._open = bytearray()  # what earlier chunks held of the line that is open
        self._size = 0  # bytes of the event so far
        self._data = []
        self._name = "message"
        self._cr = False  # the chunk before ended in CR: an LF now belongs to it
        self._first = True

    def feed(self, data: bytes) -> None:
        """Take bytes of the stream.  Ask ``next_event`` until it says None before the next: what
        is unread is copied.
        """
        if data:
            if self._cr and data[0] == 10:
                data = data[1:]
            self._cr = data.endswith(b"\r")
            if b"\r" in data:
                data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            self._chunk = self._chunk[self._pos :] + data if self._pos < len(self._chunk) else data
            self._pos = 0

    def next_event(self) -> tuple:
        """Return (name, data) of the next event, both str, or None when more bytes are wanted.

        Raises ``ProviderError`` for an event over the limit and for what is not UTF-8.
        """
        while True:
            stop = self._chunk.find(b"\n", self._pos)
            line = self._chunk[self._pos : stop] if stop >= 0 else self._chunk[self._pos :]
            if len(line) > self._limit - self._size:
                raise ProviderError(
                    "the event stream has an event of more than %d bytes" % self._limit
                )
            self._size += len(line)
            if stop < 0:
                self._open.extend(line)
                self._chunk = b""
                self._pos = 0
                return None
            self._pos = stop + 1
            if self._open:
                self._open.extend(line)
                line = bytes(self._open)
                self._open = bytearray()
            if self._first:
                self._first = False
                if line.startswith(b"\xef\xbb\xbf"):
                    line = line[3:]
            if line:
                self._field(line)
                continue
            data = self._data
            name = self._name
            self._data = []
            self._name = "message"
            self._size = 0
            if data:
                return name, data[0] if len(data) == 1 else "\n".join(data)

    def _field(self, line: bytes) -> None:
        start = line.find(b":")
        if start == 0:
            self._size -= len(line)  # comments keep a quiet stream open for as long as it lasts
        end = len(line) if start < 0 else start
        name = line[:end] if end <= 5 else b""
        if name == b"data" or name == b"event":
            end += 2 if line[end + 1 : end + 2] == b" " else 1
            try:
                value = decode_utf8(memoryview(line)[end:])
            except ValueError:
                raise ProviderError("the event stream is not UTF-8")
            if name == b"data":
                self._data.append(value)
            else:
                self._name = value or "message"
