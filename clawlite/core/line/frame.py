"""Lines on a wire that people and programs share: text for people, records for the operator (RFC
7464).

1. A line ends in LF; a CR directly before it is dropped.  A record is 0x1E, JSON, LF.
2. Console (``plain_json=False``): a line is a record only when it starts with 0x1E, even when a
   person types ``{``.  Serve (``plain_json=True``): every line is a record, with or without 0x1E;
   blank lines are ignored.
3. The limit counts all bytes before the LF.  A longer line is dropped, which is reported once, at
   its LF; so is a line for which a board has no memory.
4. Every byte is visited once.  At most *limit* bytes of an open line are held, and the chunk that
   is being read.
"""

TEXT = 0  # payload: the line
RECORD = 1  # payload: the JSON, never empty (empty records are ignored, RFC 7464, 2.1)
TOO_LONG = 2  # payload: the length of the dropped line in ASCII digits, so b"8193"

_MARK = b"\x1e"


class Framer:
    """Both directions of one line.

    limit       bytes that a line may have before its LF, >= 1
    plain_json  True: the peer is a program (``serve``); False: it may be a person (console)
    """

    def __init__(self, limit: int = 8192, plain_json: bool = False):
        self.limit = limit
        self.plain_json = plain_json
        self._chunk = b""  # the bytes to read, from _pos on
        self._pos = 0
        self._open = bytearray()  # the part of the open line that came in earlier chunks
        self._dropped = 0  # bytes of the open line that were dropped

    def feed(self, data) -> None:
        """Take bytes from the wire, in pieces of any size.

        Call ``next_event`` until it returns None before you feed more: bytes that it has not read
        yet are copied.
        """
        rest = self._chunk[self._pos :]
        self._chunk = rest + bytes(data) if rest else bytes(data)
        self._pos = 0

    def lose(self, size: int) -> None:
        """Drop the open line, of which *size* bytes were read and are lost."""
        self._dropped += size + len(self._open)
        self._open = bytearray()

    def finish(self) -> None:
        """End the open line, if there is one, as an LF would, because the input is over.

        ``next_event`` returns its event.
        """
        if self._chunk[self._pos :]:
            is_open = self._chunk[-1] != 10
        else:
            is_open = self._dropped or self._open
        if is_open:
            self.feed(b"\n")

    def next_event(self) -> tuple | None:
        """Return ``(kind, payload)`` of the next complete line, or None when more bytes are needed.
        Never raises.
        """
        while True:
            pos = self._pos
            chunk = self._chunk
            if pos == len(chunk):
                self._chunk = b""
                self._pos = 0
                return None
            stop = chunk.find(b"\n", pos)
            line = chunk[pos:stop] if stop >= 0 else chunk[pos:]
            self._pos = stop + 1
            opened = None
            if stop < 0 or self._dropped or self._open or len(line) > self.limit:
                # add it to the open line, or only count it when that exceeds the limit
                fits = not self._dropped and len(line) <= self.limit - len(self._open)
                try:
                    if fits:
                        self._open.extend(line)
                except MemoryError:
                    fits = False
                if not fits:
                    self._dropped += len(self._open) + len(line)
                    self._open = bytearray()
                if stop < 0:
                    self._pos = len(chunk)
                    continue
                dropped = self._dropped
                opened = self._open
                self._open = bytearray()
                self._dropped = 0
                if dropped:
                    return TOO_LONG, b"%d" % dropped
            try:
                if opened is not None:
                    line = bytes(opened)
                if line.endswith(b"\r"):
                    line = line[:-1]
                if line.startswith(_MARK):
                    line = line[1:]
                elif not self.plain_json:
                    return TEXT, line
            except MemoryError:
                return TOO_LONG, b"%d" % len(line if opened is None else opened)
            # a blank line is not a record, with or without spaces
            if line and (line[-1] > 32 or line.strip(b" \t\r")):
                return RECORD, line

    def send(self, json_bytes) -> bytes:
        """Return the bytes that carry one JSON text.  Raises ValueError when it holds an LF."""
        if b"\n" in json_bytes:
            raise ValueError(
                "expected JSON without LF, found one at byte %d" % json_bytes.find(b"\n")
            )
        return json_bytes + b"\n" if self.plain_json else _MARK + json_bytes + b"\n"
