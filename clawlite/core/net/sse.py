"""Server-sent events (the event stream of the HTML standard, 9.2.6), read from bytes in pieces of
any size.

1. Lines end in LF, CR or CRLF; an empty line ends an event; one BOM at the start is dropped.
2. ``data`` lines are joined with LF, ``event`` names the event; comments, ``id``, ``retry`` and
   unknown fields are ignored.
3. An event without data is none; one that the stream's end cuts is dropped.
3. An event without data is ignored; an event that the end of the stream cuts off is dropped.
4. Every byte is visited once.  At most one event is held.  An event beyond the limit is an error,
   and so are bytes that are not UTF-8.
"""

from clawlite.core.base.errors import ProviderError
from clawlite.core.base.text import decode_utf8

LIMIT = 262144


class Events:
    """One stream.

    limit   bytes that the lines of one event may have, without their line ends
    """

    def __init__(self, limit: int = LIMIT):
        self._limit = limit
        self._chunk = b""  # the bytes to read, from _pos on
        self._pos = 0
        self._open = bytearray()  # the part of the current line that came in earlier chunks
        self._size = 0  # bytes of the event so far
        self._data = []
        self._name = "message"
        self._cr = False  # the chunk before ended in CR: an LF now belongs to it
        self._first = True

    def feed(self, data: bytes) -> None:
        """Take bytes of the stream.  Call ``next_event`` until it returns None before you feed
        more: bytes that it has not read yet are copied.
        """
        if data:
            if self._cr and data[0] == 10:
                data = data[1:]
            self._cr = data.endswith(b"\r")
            if b"\r" in data:
                data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            self._chunk = self._chunk[self._pos :] + data if self._pos < len(self._chunk) else data
            self._pos = 0

    def next_event(self) -> tuple | None:
        """Return (name, data) of the next event, both str, or None when more bytes are needed.

        Raises ``ProviderError`` for an event over the limit and for bytes that are not UTF-8.
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
            self._size -= len(line)  # not counted: comments keep a quiet stream open
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
