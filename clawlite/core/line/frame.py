"""Lines on a wire that a person and a program share: text for people, records for the operator (RFC
7464).

1. A line ends in LF; one CR before it is dropped.  A record is 0x1E, JSON, LF.
2. Console (``plain_json=False``): only what starts with 0x1E is a record, also when a person types
   ``{``. Serve (``plain_json=True``): every line is a record, with or without 0x1E; blank lines are
   ignored.
3. The limit counts all bytes before the LF.  A longer line is dropped and told once, at its LF; so
   is one for which a board has no memory.
4. Every byte is looked at once.  At most *limit* bytes of an open line are held, and the chunk that
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
        self._chunk = b""  # being read, from _pos
        self._pos = 0
        self._open = bytearray()  # what earlier chunks held of the line that is open
        self._dropped = 0  # bytes of the open line that are gone already

    def feed(self, data) -> None:
        """Take bytes from the wire, in any portion.

        Ask ``next_event`` until it says None before the next: what is unread is copied.
        """
        rest = self._chunk[self._pos :]
        self._chunk = rest + bytes(data) if rest else bytes(data)
        self._pos = 0

    def lose(self, size: int) -> None:
        """Drop the open line: *size* bytes of it were read and are lost."""
        self._dropped += size + len(self._open)
        self._open = bytearray()

    def finish(self) -> None:
        """End the open line, if there is one, as its LF would: the input is over.
        ``next_event`` has its event.
        """
        if self._chunk[self._pos :]:
            is_open = self._chunk[-1] != 10
        else:
            is_open = self._dropped or self._open
        if is_open:
            self.feed(b"\n")

    def next_event(self) -> tuple:
        """Return ``(kind, payload)`` of the next whole line, or None when more bytes are wanted.
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
                # it joins the open line, or is counted when that would be more than the limit
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
            # a blank one is none, with or without spaces
            if line and (line[-1] > 32 or line.strip(b" \t\r")):
                return RECORD, line

    def send(self, json_bytes) -> bytes:
        """Return the bytes that carry one JSON text.  Raises ValueError when it holds an LF."""
        if b"\n" in json_bytes:
            raise ValueError(
                "expected JSON without LF, found one at byte %d" % json_bytes.find(b"\n")
            )
        return json_bytes + b"\n" if self.plain_json else _MARK + json_bytes + b"\n"
