"""One HTTP/1.1 request as a small server reads it (RFC 9112): strict, bounded, without I/O.

1. Bounds: 8,192 bytes of head, 64 fields, a body of at most *most* bytes.  The body needs a
   Content-Length; chunks are refused (411).
2. Whatever two readers could understand differently is refused (400): a bare CR, a folded line,
   white space before a colon, two lengths.
"""

MAX_HEAD = 8192
MAX_FIELDS = 64
REASONS = {
    200: "OK",
    202: "Accepted",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    411: "Length Required",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
    503: "Service Unavailable",
}
_TOKEN = frozenset(b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class Refused(Exception):
    """A request that is answered with a status at once, and *headers*, [(name, value), ...]."""

    def __init__(self, status: int, said: str, headers=()):
        super().__init__(said)
        self.status, self.headers = status, headers


class Request:
    """One request, read from bytes in any portion.

    most    int, bytes of a body
    admit   function(Request), called once the head is there, before the body is read; raises
            ``Refused``
    method, path, headers (names in lower case), body    once ``feed`` has returned True
    """

    def __init__(self, most: int, admit=None):
        self._most, self._admit, self._data, self._length = most, admit, b"", None
        self.method = self.path = ""
        self.headers, self.body = {}, b""

    def feed(self, data: bytes) -> bool:
        """Take bytes; return whether the request is complete.  Raises ``Refused``."""
        self._data += data
        if self._length is None:
            end = self._data.find(b"\r\n\r\n")
            if end > MAX_HEAD or end < 0 and len(self._data) > MAX_HEAD:
                raise Refused(431, "a head has at most %d bytes" % MAX_HEAD)
            if end < 0:
                return False
            length = self._head(self._data[:end].split(b"\r\n"))
            if self._admit:
                self._admit(self)
            self._length, self._data = length, self._data[end + 4 :]
        if len(self._data) < self._length:
            return False
        self.body = self._data[: self._length]
        return True

    def _head(self, lines: list) -> int:
        """Read the head; return the length of the body."""
        method, path, version = (lines[0].split(b" ") + [b"", b""])[:3]
        if (
            lines[0].count(b" ") != 2
            or version not in (b"HTTP/1.1", b"HTTP/1.0")
            or not method.isalpha()
            or not path.startswith(b"/")
            or not path.isascii()
        ):
            raise Refused(400, "this is no request of HTTP/1.1")
        self.method, self.path = method.decode(), path.decode()
        if len(lines) - 1 > MAX_FIELDS:
            raise Refused(431, "a head has at most %d fields" % MAX_FIELDS)
        for line in lines[1:]:
            name, colon, value = line.partition(b":")
            if (
                not colon
                or not name
                or not _TOKEN.issuperset(name)
                or b"\r" in value
                or b"\n" in value
                or b"\0" in value
            ):
                raise Refused(400, "a field of the head is malformed")
            key = name.lower().decode()
            if key in self.headers:
                raise Refused(400, "a field of the head is there twice")
            self.headers[key] = value.strip(b" \t").decode("latin-1")
        if "transfer-encoding" in self.headers:
            raise Refused(411, "a body needs a Content-Length")
        length = self.headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise Refused(400, "Content-Length is no number")
        if len(length) > 10 or int(length) > self._most:
            raise Refused(413, "a body has at most %d bytes" % self._most)
        return int(length)


def answer(status: int, body: bytes, headers=()) -> bytes:
    """Return a complete answer with a JSON *body*; *headers*: more headers, [(name, value),
    ...].
    """
    kind = b"Content-Type: application/json\r\n" if body else b""
    return b"%s%sContent-Length: %d\r\n\r\n%s" % (_head(status, headers), kind, len(body), body)


def stream_head(headers=()) -> bytes:
    """Return the head of an answer that is a stream of events, which ends with the connection."""
    return (
        _head(200, headers) + b"Content-Type: text/event-stream\r\nCache-Control: no-store\r\n\r\n"
    )


def _head(status: int, headers) -> bytes:
    more = "".join("%s: %s\r\n" % header for header in headers)
    return ("HTTP/1.1 %d %s\r\nConnection: close\r\n%s" % (status, REASONS[status], more)).encode()
