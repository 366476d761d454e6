"""HTTP/1.1 as a client speaks it (RFC 9112): one request, one answer, then the connection closes.

1. A line ends in LF; a CR directly before it is dropped.  A character that no field value may
   contain becomes a space (RFC 9110, 5.5).
2. The heads of 1xx answers are skipped, and trailers are dropped.  A body may be chunked, have a
   Content-Length, or end when the connection closes.
3. Bounds: 16,384 bytes each for the head (1xx included), a chunk's first line and the trailers;
   100 field names, and after the hundredth no further field line.  A body has no bound here: its
   pieces are returned as they come, and the receiver counts them.
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.errors import ProviderError

MAX_HEAD = 16384
MAX_FIELDS = 100
_OURS = ("host", "content-length", "connection", "transfer-encoding")

_STATUS, _FIELD, _SIZE, _BODY, _GAP, _TRAILER, _END = (
    const(0),
    const(1),
    const(2),
    const(3),
    const(4),
    const(5),
    const(6),
)

# positions in an event of ``Response``
EVENT_KIND = 0
EVENT_STATUS, EVENT_HEADERS = 1, 2  # "head"
EVENT_DATA = 1  # "data"


def request(method: str, target: str, host: str, headers: list, length) -> bytes:
    """Return the head of a request.

    target   path and query, already percent-encoded
    host     with ":port" unless the port is the scheme's default
    headers  list of (name, value), without Host, Content-Length, Connection and Transfer-Encoding:
             those are written here
    length   bytes of the body; None: no body and no Content-Length
    Raises ValueError for a header that is written here, for text that is not printable ASCII, and
    for a space in anything but a value.  The message names the header but never quotes its value,
    which may be a secret.
    """
    lines = ["%s %s HTTP/1.1" % (method, target), "Host: " + host]
    for part in (method, target, host):
        _check(part, 33, "request line")
    for name, value in headers:
        _check(name, 33, "header name")
        if ":" in name or name.lower() in _OURS:
            raise ValueError("header %r: not a name that may be set" % name)
        if value:
            _check(value, 32, "header " + name)
        lines.append("%s: %s" % (name, value))
    if length is not None:
        lines.append("Content-Length: %d" % length)
    lines.append("Connection: close\r\n\r\n")
    return "\r\n".join(lines).encode()


def _check(text: str, lowest: int, what: str) -> None:
    # Bytes: MicroPython interns every character that a loop over text sees, for good.
    if not text or min(text.encode()) < lowest or max(text.encode()) > 126:
        raise ValueError("%s: expected printable ASCII" % what)


class Response:
    """One answer, read from bytes in any portion."""

    def __init__(self):
        self._chunk = b""  # being read, from _pos
        self._pos = 0
        self._state = _STATUS
        self._room = MAX_HEAD  # bytes that this head, chunk line or trailer may still have
        self._status = 0
        self._headers = {}
        self._name = ""  # the field that a folded line continues
        self._chunked = False
        # bytes of the body, or of the chunk, that are still to come; None: until close
        self._left = None
        self._closed = False

    def feed(self, data: bytes) -> None:
        """Take bytes of the connection.  Call ``next_event`` until it returns None before you feed
        more: bytes that it has not read yet are copied.
        """
        self._chunk = self._chunk[self._pos :] + data if self._pos < len(self._chunk) else data
        self._pos = 0

    def at_end(self) -> None:
        """The peer has closed: ``next_event`` says whether that was the end."""
        self._closed = True

    def next_event(self) -> tuple | None:
        """Return ("head", status, headers), ("data", bytes) or ("end",), or None when more bytes
        are wanted.

        headers  dict, names in lower case, values of a repeated one joined with ", "
        Raises ``ProviderError`` when the bytes are no HTTP/1.x answer, and when the connection was
        closed before the answer's end.  All bytes after ("end",) are ignored."""
        while self._state != _END:
            if self._state == _BODY:
                end = len(self._chunk)
                if self._left is not None and self._left < end - self._pos:
                    end = self._pos + self._left
                data = self._chunk[self._pos : end]
                if data:
                    self._pos = end
                    if self._left is not None:
                        self._left -= len(data)
                    return ("data", data)
                if self._left == 0 and self._chunked:
                    self._state = _GAP
                elif self._left == 0 or self._left is None and self._closed:
                    self._state = _END
                    return ("end",)
            event = None
            line = self._line() if self._state != _BODY else None
            if line is None:
                if self._closed:
                    raise ProviderError(
                        "the connection was closed in the middle of the answer"
                        if self._status
                        else "the connection was closed before an answer came"
                    )
                return None
            event = self._take(line)
            if event:
                return event
        return None

    def _line(self):
        """Return the next line without its end, or None."""
        if self._state == _STATUS:
            start = self._chunk[self._pos : self._pos + 7]
            if start != b"HTTP/1."[: len(start)]:
                raise ProviderError("expected an answer of HTTP/1.1, found %r" % start)
        stop = self._chunk.find(b"\n", self._pos)
        size = (stop + 1 or len(self._chunk)) - self._pos
        if size > self._room:
            raise ProviderError(
                "the answer's head, or a chunk's, is longer than %d bytes" % MAX_HEAD
            )
        if stop < 0:
            return None
        self._room -= size
        line = self._chunk[self._pos : stop]
        self._pos = stop + 1
        return line[:-1] if line.endswith(b"\r") else line

    def _take(self, line: bytes):
        """Read one line; return the event that it completes, or None."""
        if self._state == _STATUS:
            if (
                len(line) < 12
                or line[8] != 32
                or not (line[7:8] + line[9:12]).isdigit()
                or line[12:13].strip()
            ):
                raise ProviderError("expected a status line of HTTP/1.1, found %r" % line[:40])
            self._status = int(line[9:12])
            self._state = _FIELD
        elif self._state == _FIELD:
            if not line:
                return self._begin()
            self._field(line)
        elif self._state == _SIZE:
            digits = line.split(b";")[0].strip().lower()
            if not 0 < len(digits) <= 8 or digits.strip(b"0123456789abcdef"):
                raise ProviderError("expected the size of a chunk, found %r" % line[:40])
            self._left = int(digits, 16)
            self._room = MAX_HEAD
            self._state = _BODY if self._left else _TRAILER
        elif self._state == _TRAILER:
            if not line:
                self._state = _END
                return ("end",)
        elif line:
            raise ProviderError("expected the end of a chunk, found %r" % line[:40])
        else:
            self._state = _SIZE
        return None

    def _field(self, line: bytes) -> None:
        if min(line) < 32 or max(line) > 126:
            line = bytes([c if 32 <= c <= 126 else 32 for c in line])
        text = str(line, "utf-8")
        if line[0] == 32 and self._name:  # folded: one space and the rest (RFC 9112, 5.2)
            self._headers[self._name] += " " + text.strip()
            return
        name, colon, value = text.partition(":")
        value = value.strip()
        if not colon or not name or " " in name or len(self._headers) >= MAX_FIELDS:
            raise ProviderError(
                "expected a header, at most %d of them, found %r" % (MAX_FIELDS, line[:40])
            )
        self._name = name = name.lower()
        known = self._headers.get(name)
        self._headers[name] = value if known is None else known + ", " + value

    def _begin(self):
        """Act on a complete head: return the event "head", or None for a 1xx answer, and find out
        how long the body is (RFC 9112, 6.3).
        """
        headers = self._headers
        self._name = ""
        if self._status < 200:
            if self._status < 100 or self._status == 101:
                raise ProviderError(
                    "the answer has status %d, which nobody asked for" % self._status
                )
            self._headers = {}
            self._state = _STATUS
            return None
        self._state = _BODY
        coding = headers.get("transfer-encoding")
        length = headers.get("content-length")
        if self._status == 204 or self._status == 304:
            self._left = 0
        elif coding is not None:
            if coding.lower() != "chunked":
                raise ProviderError(
                    "the answer's Transfer-Encoding is %s, expected chunked" % coding[:40]
                )
            self._chunked = True
            self._state = _SIZE
            self._room = MAX_HEAD
        elif length is not None:
            first = length.split(",")[0].strip()
            for other in length.split(","):
                if other.strip() != first or not 0 < len(first) <= 15 or first.strip("0123456789"):
                    raise ProviderError(
                        "the answer's Content-Length is %s, expected one number" % length[:40]
                    )
            self._left = int(first)
        return ("head", self._status, headers)
