"""The code that the codecs of remote providers share: an answer, a stream that becomes one, and the
checks of both.

1. Whatever a provider sends becomes an ``Answer``, or a ``ProviderError`` with one sentence; no
   other exception is raised.
2. A codec (core/providers/openai.py, core/providers/anthropic.py) adds one JSON object to an
   answer; ``Stream`` collects the answer.
3. Unknown fields are ignored.  What only the provider itself understands (signatures, reasoning)
   is never shown; it is kept beside the tool calls of its answer (opaque.py).
4. Bounds: 262,144 bytes of text in an answer, 16 calls, 65,536 bytes of arguments in each.
5. What vendors demand and return differently is data: the tables of the codecs, of
   stop_reasons.py, opaque.py and refusal.py.
"""

from clawlite.core.base.printable import escape_line
from clawlite.core.base.dialect import const
from clawlite.core.base.errors import ParseError, TransientError, ProviderError
from clawlite.core.net.sse import Events
from clawlite.core.base.text import decode_utf8

MAX_TEXT = 262144
MAX_CALLS = 16
MAX_ARGUMENTS = 65536
MAX_ERROR = 200  # characters of an error that a person reads
MAX_REPORT = 65536  # bytes of a body that reports one
_NAME_OF_EVENT = const(0)  # of an event of ``sse.Events``
_DATA = const(1)
_INDEX = const(0)  # of a call that arrives in pieces
_ID = const(1)
_NAME = const(2)
_RAW = const(3)
# bytes of an answer that is one JSON object, of which a text may be written in escapes
MAX_BODY = 16 * MAX_TEXT
_OF_EVENTS = b"deir:"  # the first letters of data, event, id, retry and of a comment
_BLANK = b"\xef\xbb\xbf \t\r\n"  # what may stand before it: a byte order mark, too


class Answer:
    """A provider's answer of one round.

    text           str; "" when the text was returned as events of a stream: then it is never held
                   here
    shown          bool, the text was shown piece by piece as it came
    calls          list of (id, name, arguments, raw): arguments a dict, or None when raw (str) is
                   no JSON object
    stop           "stop", "length", "tools", "refused" or "cut"
    opaque         list of (place, JSON text) as in ``turn.Message``
    input_tokens, output_tokens   int, or None when the provider does not report them
    model          str, the model that answered, or None
    is_call_text   bool, the text begins as a call of a tool, which nobody has read out of it
    may_be_call    bool, it may be one, and such calls may run: none of it was shown
    """

    def __init__(self):
        self.text = ""
        self.shown = False
        self.calls = []
        self.stop = None
        self.opaque = []
        self.input_tokens = None
        self.output_tokens = None
        self.model = None
        self.is_call_text = self.may_be_call = False


def _may_be_mended(data: bytes) -> bool:
    """Return whether *data* is no UTF-8, or may have an escape of half a character."""
    try:
        decode_utf8(data)
    except ValueError:
        return True
    return b"\\ud" in data or b"\\uD" in data


class Codec:
    """The part of a codec that both APIs have.

    loads, dumps   a runtime's jsontext
    A subclass has ``messages(list of turn.Message) -> list of str``, and ``add(stream, obj, whole)
    -> str``, which adds one JSON object to an answer and returns its text.

    FIRST       bytes before the first message of a request: the prefix has a message already
    HEADERS     (name, value) of each header that all its requests have
    KEY_HEADER  the header of auth "api-key-header"
    FIELDS      (name, JSON text, only of streams, only of conversations) of each field that
                requests have beside model, tools, messages, stream and max_tokens
    changes     list of [field, what replaces it]: what requests to this server have otherwise
                (refusal.py); "" leaves the field out
    """

    FIRST = b","
    HEADERS = FIELDS = ()
    KEY_HEADER = "api-key"

    def __init__(self, loads, dumps, changes=()):
        self._loads = loads
        self.dumps = dumps
        self.changes = changes
        self.is_mended = False  # an answer had text that is no Unicode

    def change(self, name: str):
        """Return what replaces the field *name* in requests, or None when nothing does."""
        for field, instead in self.changes:
            if field == name:
                return instead
        return None

    def begin(self, prefix: list) -> list:
        """Return the parts of a request before its first message: (offset, length) in the image's
        WIRE, or bytes.

        prefix  [offset, length, bytes at its end that ``changes`` may concern]
        """
        if self.changes:
            from clawlite.core.providers.refusal import begin

            return begin(self, prefix)
        return [(prefix[0], prefix[1]), self.FIRST]

    def end(self, fields: list) -> bytes:
        """Return the part of a request behind its messages.

        fields  list of (name, JSON text)
        """
        text = "]"
        for name, value in fields:
            instead = self.change(name)
            if instead != "":
                text += ',"%s":%s' % (instead or name, value)
        return (text + "}").encode()

    def stream(self, most: int = MAX_BODY):
        """Return a ``Stream``; *most*: bytes of an answer that is one JSON object."""
        self.is_mended = False
        return Stream(self, most)

    def parse(self, data: bytes) -> dict:
        """Return the JSON object in *data*.  Raises ``ProviderError``, also when the object reports
        an error.
        """
        try:
            obj = self._loads(data)
        except ParseError as e:
            obj = self._mend(data)
            if obj is None:
                raise ProviderError("the provider sent " + _describe_broken(data, e))
        if not isinstance(obj, dict):
            raise ProviderError("the provider sent %s, expected a JSON object" % type(obj).__name__)
        if obj.get("error") or obj.get("object") == "error":
            raise self.failure(obj)
        return obj

    def _mend(self, data: bytes):
        """Return the value of *data*, which is no JSON text, with U+FFFD for what is no Unicode:
        half of a character, for one, when a server divides its text anywhere.  Return None when
        that is not all that is wrong.
        """
        if not _may_be_mended(data):  # a board's stack is too short to load what mends
            return None
        from clawlite.core.base.text_repair import mend_json

        mended = mend_json(data)
        if mended == data:
            return None
        try:
            value = self._loads(mended)
        except ParseError:
            return None
        self.is_mended = True
        return value

    def failure(self, obj: dict, reason: str = ""):
        """Return the error that *obj*, a part of an answer, reports.

        reason  why the answer ended: then another attempt may succeed, unless a code says no
        """
        from clawlite.core.providers.failure import inside

        line = _line(_error_text(obj)) or reason and "its answer ended with " + _line(reason[:60])
        return inside(obj, line or "an error without words", reason != "")

    def arguments(self, raw: str):
        """Return the arguments *raw* of a call as a dict; None when they are no JSON object.  Some
        servers encode them twice.
        """
        value = self.value(raw.encode())
        if isinstance(value, str):
            value = self.value(value.encode())
        return value if isinstance(value, dict) else None

    def value(self, data: bytes):
        """Return the value of the JSON text *data*, None when it is none."""
        try:
            return self._loads(data)
        except ParseError:
            return self._mend(data)

    def parse_report(self, body: bytes):
        """Return the JSON value in the body of an answer that reports a failure, None for another
        body.
        """
        try:
            return self._loads(body[:MAX_REPORT])
        except ParseError:
            return None

    def error(self, status: int, body: bytes) -> str:
        """Return one line of at most 200 characters about *status*, for a person.  *body* may have
        any content; 65,536 bytes of it are read.
        """
        body = body[:MAX_REPORT]
        text = _error_text(self.parse_report(body))
        if not text:
            try:
                text = decode_utf8(body)
            except ValueError:
                text = str(bytes([c if c < 127 else 32 for c in body]), "utf-8")
            if text.strip()[:1] == "<":
                start = text.lower().find("<title>")
                text = "a page of HTML " + (text[start + 7 :].split("<")[0] if start >= 0 else "")
        return _line("HTTP %d: %s" % (status, text if text.strip() else "no reason given"))


class Stream:
    """An answer that arrives in pieces: feed it the body, take text from it, and at the end the
    answer.

    Its first bytes say whether the body is a stream of events or one JSON object: servers and
    proxies name either as the other.
    """

    def __init__(self, codec, most: int):
        self.answer = Answer()
        self.has_begun = False  # something of an answer was seen
        self.is_done = False  # the API's own last event was seen
        self._codec = codec
        self._events = Events()
        self._told = False  # the event "end" was returned
        self._fed = False
        self._body = None  # the bytes of an answer that is one JSON object
        self._most = most
        self._prefix = None  # ``answer_prefix.AnswerPrefix``, once a text begins with a mark
        self._is_plain = False  # or with none
        # bytes of a text that may be a call, where such calls may run (core/turns/text_call.py)
        self._most_call = 0 if codec.change("text_calls") is None else min(most, MAX_ARGUMENTS)
        self._left = MAX_TEXT
        self._calls = []  # [index, id, name, raw], raw a bytearray that grows
        self._kept = None  # ``opaque.Kept``, once there is something

    def feed(self, data: bytes) -> None:
        """Take bytes of the body.  Raises ``ProviderError`` as soon as the body is clearly no
        answer, or too long.
        """
        if not self._fed:
            start = data.lstrip(_BLANK)
            self._fed = start != b""
            if start and start[0] not in _OF_EVENTS:
                self._body = bytearray()
                data = start
        if self._body is None:
            self._events.feed(data)
        elif len(data) > self._most - len(self._body):
            raise ProviderError("the answer is longer than %d bytes" % self._most)
        else:
            self._body.extend(data)

    def next_event(self) -> tuple | None:
        """Return ("text", str) or, once, ("end", Answer); None when more bytes are needed, or after
        the end.
        """
        while not self.is_done:
            event = self._events.next_event() if self._body is None else None
            if event is None:
                return None
            data = event[_DATA]
            if data.strip() == "[DONE]":
                self.is_done = True
                break
            obj = self._codec.parse(data.encode())
            if event[_NAME_OF_EVENT] == "error":  # some servers send the report bare
                raise self._codec.failure(obj)
            text = self._codec.add(self, obj, False)
            if text:
                return ("text", text)
        if self._told:
            return None
        self._told = True
        return ("end", self.at_end())

    def at_end(self) -> Answer:
        """Return the answer when no more bytes will come.  Raises ``ProviderError`` when it broke
        off before its end.
        """
        answer = self.answer
        if not self._fed:
            raise TransientError("the provider sent nothing")
        if self._body is not None:
            body = bytes(self._body)
            self._body = None
            answer.text = self._codec.add(self, self._codec.parse(body), True)
            self.is_done = True
        if not self.is_done and answer.stop is None:
            raise TransientError("the provider's answer broke off before its end")
        if self._prefix is not None:
            answer.text += self._prefix.rest()
            answer.is_call_text = not self._calls and self._prefix.is_call()
            answer.may_be_call = not self._calls and self._prefix.is_holding()
        if not self.has_begun:
            raise ProviderError(
                "the provider sent no message of the expected API", "check protocol and endpoint"
            )
        calls = self._calls
        self._calls = []
        is_told = answer.stop is not None
        if not is_told or answer.stop == "stop":
            answer.stop = "tools" if calls else "stop"
        for slot in calls:
            raw = slot.pop()  # so that its memory is free when its text is made
            _, key, name = slot
            if not name:
                raise ProviderError("the provider called a tool without a name")
            # Nothing is an empty object, unless more may have been meant to come.
            raw = "{}" if not raw and is_told and answer.stop == "tools" else decode_utf8(raw)
            arguments = self._codec.arguments(raw)
            # another request has them as one object, whatever this answer wrote
            if arguments is not None and (raw.lstrip()[:1] == '"' or self._codec.is_mended):
                raw = self._codec.dumps(arguments)
            answer.calls.append((key or "", name, arguments, raw))
        if self._kept is not None:
            answer.opaque = self._kept.seal()
            self._kept = None
        return answer

    def take_reason(self, reason) -> None:
        """Take the *reason* (str or None) for which the answer ended."""
        if reason:
            if reason in ("stop", "end_turn"):  # a board need not load the table for those
                self.answer.stop = "stop"
            elif reason in ("tool_calls", "tool_use"):
                self.answer.stop = "tools"
            else:
                from clawlite.core.providers.stop_reasons import meaning

                self.answer.stop = meaning(reason)

    def open_kept(self):
        """Return what is kept of the answer for its server (``opaque.Kept``)."""
        if self._kept is None:
            from clawlite.core.providers.opaque import Kept

            self._kept = Kept(self._codec.dumps)
        return self._kept

    def text(self, text) -> str:
        """Count *text* (str or None) and return what of it is for a person: a thought before the
        answer is not (core/providers/answer_prefix.py).
        """
        if not text:
            return ""
        self._left -= len(text.encode())
        if self._left < 0:
            raise ProviderError("the provider's answer has more than %d bytes of text" % MAX_TEXT)
        if self._prefix is None and not self._is_plain:
            start = text.lstrip()[:1]
            if start in ("<", "[") or self._most_call and start in ("{", "`", "f"):
                from clawlite.core.providers.answer_prefix import AnswerPrefix

                self._prefix = AnswerPrefix(self._most_call)
            self._is_plain = start != ""
        return text if self._prefix is None else self._prefix.add(text)

    @property
    def calls(self) -> int:
        """The number of calls so far."""
        return len(self._calls)

    def call(self, index, key, name, raw) -> int:
        """Take a call, or a piece of one; return the number of the call, from 0 on.

        index   any value that distinguishes calls, or None; key, name: str or None
        raw     str, None, or an object: some servers do not write the arguments as a text
        A piece belongs to an earlier call with the same index and key.  A piece without a key
        belongs to the call with the same index.  Without an index, too, it does when it has no
        name.  Some servers repeat the id, some give all calls one index, some give no index or no
        id."""
        if not isinstance(raw, str):
            raw = "" if raw is None or raw == {} else self._codec.dumps(raw)
        found, number = None, -1
        for at in range(len(self._calls)):
            slot = self._calls[at]
            if slot[_INDEX] == index and (
                slot[_ID] == key if key else index is not None or not name
            ):
                found, number = slot, at
        if found is None:
            if len(self._calls) >= MAX_CALLS:
                raise ProviderError(
                    "the provider asked for more than %d tool calls at once" % MAX_CALLS
                )
            found = [index, key, "", bytearray()]
            number = len(self._calls)
            self._calls.append(found)
        found[_NAME] = found[_NAME] or name
        found[_RAW].extend(raw.encode())
        if max(len(found[_RAW]), len(key or ""), len(name or "")) > MAX_ARGUMENTS:
            raise ProviderError(
                "the provider called a tool with more than %d bytes of arguments" % MAX_ARGUMENTS
            )
        return number


def field(obj, name: str, kind):
    """Return member *name* of the object *obj*: a value of type *kind*, or None when it is null or
    missing.

    Raises ``ProviderError`` for another type.
    """
    if not isinstance(obj, dict):
        raise ProviderError(
            "the provider's answer: expected an object that has %s, found %s"
            % (name, type(obj).__name__)
        )
    value = obj.get(name)
    if value is not None and (not isinstance(value, kind) or value is True or value is False):
        raise ProviderError(
            "the provider's answer: %s: expected %s, found %s"
            % (name, kind.__name__, type(value).__name__)
        )
    return value


def tokens(usage: dict, name: str):
    """Return a number of tokens, or None when it is missing or none that can be used: an answer is
    worth more than its count.  Some servers send it as float or text.
    """
    value = usage.get(name)
    if isinstance(value, str):
        value = int(value) if value and len(value) < 11 and not value.strip("0123456789") else None
    elif isinstance(value, float):
        value = int(value) if 0 <= value < 1 << 30 else None
    elif value is True or value is False or not isinstance(value, int):
        value = None
    return value if value is not None and 0 <= value < 1 << 30 else None


def text_of(content) -> str:
    """Return the text of an answer's *content*: a str or None, or a list of typed parts, of which
    thoughts, references and the like are no text.  Raises ``ProviderError`` for another value.
    """
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for part in content if isinstance(content, list) else (content,):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            if part.get("type", "text") in ("text", "output_text"):
                texts.append(field(part, "text", str) or "")
        else:
            raise ProviderError(
                "the provider's answer: content: expected a text or its parts, found %s"
                % type(part).__name__
            )
    return "".join(texts)


def _describe_broken(data: bytes, fault) -> str:
    """Return what *data* is, which is no JSON text for the reason *fault*."""
    start = data.strip()[:1]
    if not start:
        return "nothing"
    return "a page of HTML, expected JSON" if start == b"<" else "broken JSON: " + fault.message


def _error_text(obj) -> str:
    """Return the text in an error object, ``{"error": {"message": ...}}`` or the variants of other
    servers; "" when there is none.

    ``error_description`` comes from token servers (RFC 6749, 5.2).
    """
    for _ in range(4):
        if isinstance(obj, list):
            obj = obj[0] if obj else None
        elif isinstance(obj, dict):
            obj = (
                obj.get("error_description")
                or obj.get("error")
                or obj.get("message")
                or obj.get("detail")
                or obj.get("msg")
            )
    return obj if isinstance(obj, str) else ""


def _line(text: str) -> str:
    """Return *text* as one line of at most 200 characters."""
    if len(text) > 8 * MAX_ERROR:  # no second copy of a long page on a board
        return escape_line(text, MAX_ERROR)
    for end in "\r\n\t":
        text = text.replace(end, " ")
    return escape_line(" ".join([word for word in text.split(" ") if word]), MAX_ERROR)
