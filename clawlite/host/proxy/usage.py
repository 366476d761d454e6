"""What an answer that passes through says of itself: usage, and the beginning of its text.

Its bytes go on as they came; what is kept of them here has bounds."""

from clawlite.core.base.errors import ParseError
from clawlite.host.proxy.dialect import number

MAX_SAID = 4096  # characters of an answer that the history keeps
_LINE = 262144  # bytes of a line of a stream that are read; of a longer one nothing is
_WHOLE = 4 << 20  # bytes of an answer in one piece that are read


class UsageReader:
    """Reads the usage of one answer.

    dialect  see dialect.py;  loads: function(bytes) -> value of JSON, raises ``ParseError``
    is_stream  it comes as server-sent events
    Public, to be read after ``end``: ``usage`` (the API's object, or None), ``said``, ``size``
    (bytes of text, about).
    """

    def __init__(self, dialect, loads, is_stream: bool):
        self._dialect, self._loads, self._is_stream = dialect, loads, is_stream
        self._rest = b""  # of a line, or of all
        self._is_skipping = False
        self.usage, self.said, self.size = None, "", 0
        self._is_after = False  # text came after the last usage

    def feed(self, data: bytes) -> None:
        if not self._is_stream:
            if len(self._rest) + len(data) <= _WHOLE:
                self._rest += data
            return
        *lines, rest = (self._rest + data).split(b"\n")
        for line in lines:
            if not self._is_skipping and line.startswith(b"data:"):
                self._event(line[5:])
            self._is_skipping = False
        self._is_skipping = self._is_skipping or len(rest) > _LINE
        self._rest = b"" if self._is_skipping else rest

    def end(self) -> None:
        if not self._is_stream:
            try:
                answer = self._loads(self._rest)
                self.usage, said = self._dialect.usage(answer), self._dialect.text(answer)
                self._add(said)
                if not self._dialect.tokens(self.usage)[1]:  # it may have several choices
                    self.size = max(self.size, len(self._rest))
            except Exception:  # it is the runner's to make sense of
                self.size = len(self._rest)
        self._rest = b""

    def tokens(self, asked: int) -> tuple:
        """Return tokens (read, written): as the provider says, else a quarter of the bytes.  What
        it said before the end of the answer is not all.
        """
        read, written = self._dialect.tokens(self.usage)
        if self._is_after or not written:
            written = max(written, self.size // 4)
        return read or asked, written

    def _event(self, data: bytes) -> None:
        if len(self.said) >= MAX_SAID and b'"usage"' not in data:
            self.size += len(data) // 8  # a rough share: most of an event is its frame
            self._is_after = True
            return
        try:
            value = self._loads(data)
            said, usage = self._dialect.event(value)
        except (ParseError, AttributeError, LookupError, TypeError):
            return  # [DONE], or what is the runner's to make sense of
        self._add(said)
        if isinstance(usage, dict):
            told = {key: value for key, value in usage.items() if number(value) or _is_list(value)}
            self.usage = {**(self.usage or {}), **told}
            self._is_after = self._is_after and not told

    def _add(self, said: str) -> None:
        self.size += len(said.encode("utf-8", "replace"))
        self._is_after = self._is_after or bool(said) and self._is_stream
        self.said = (self.said + said)[:MAX_SAID]


def _is_list(value) -> bool:
    return isinstance(value, list) and bool(value)
