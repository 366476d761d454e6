"""A remote provider: one request and its attempts, as effects (CKP 0.2.0, 5.2).

    limits -> credential -> exchange (core/net/exchange.py) -> answer     an attempt
    a failure that may pass -> wait -> the next attempt               at most ``max_attempts``

1. A failure is reported in one line: which provider, why, how often it was tried, and what is next.
2. No other attempt follows once an attempt has handed on tool calls.
3. The use of every attempt is counted, also of one that broke off.
"""

from binascii import crc32

from clawlite.core.base.dialect import const
from clawlite.core.base.effect import SECRET, SLEEP, STORE, TELL, VOID, WRITE
from clawlite.core.base.errors import TransientError, ProviderError, QuotaExceeded
from clawlite.core.net.exchange import exchange, head, error_of, wait_of, without
from clawlite.core.policy.meter import MAX_TOKENS
from clawlite.core.providers.dialogue import compose
from clawlite.core.turns.turn import Reply

_OPENAI = const(2)  # numbers of APIs: ``API_NUMBERS`` of protocols/image/features.py
NONE, BEARER, KEY_HEADER, OAUTH2 = range(4)
EXPONENTIAL, LINEAR, CONSTANT = range(3)
MAX_WAIT_MS = 60000  # with a longer Retry-After, the next provider is asked
# Without max_context_window: bytes of a request; the least of them that the conversation gets, even
# after a long prefix; and bytes of each text of an earlier turn
_REQUEST = const(11700)
_CONVERSATION = const(4096)
_EARLIER = const(2048)
_PART = 256  # bytes of an answer that are kept in one piece
# the first pause for a model that its server still loads, doubled each time, and the longest one
_LOADING_MS = const(1000)
_MOST_LOADING_MS = const(15000)
_MOMENT_MS = 100
_FIELDS = const(24)  # of a row
# characters of a token: with more of them, the server may not have read all of a request
_MOST_OF_TOKEN = const(6)
_LEAST_CUT = const(512)  # tokens of a request that was cut
_LOOKS = const(3)
# statuses of a request that may be made otherwise
_REFUSED = (400, 404, 413, 422, 500, 501)
_LENGTH = const(1)  # of a prefix
_END = const(80)  # bytes of a request behind its messages, at most
_KIND = const(0)  # of an event of ``wire.Stream``
_VALUE = const(1)
# an answer's body may have this many times the bytes that are kept of its text
_KEPT_OF_BODY = 16


class Provider:
    """One row of the image's PROVIDERS.

    name      str;  kind: the number of its API
    where     (tls bool, host str, port int, target str of the request line)
    auth      NONE, BEARER, KEY_HEADER or OAUTH2; secret: the reference; oauth2: row of
              core/net/oauth2.py, or None
    per_*     limits, None where there is none;  window: tokens of a request and its answer
    first_ms, whole_ms  time until the first byte of an answer, and for all of it with all attempts
    prices    nano-dollars for a token (in, out)
    prefix    [offset, length, bytes of its end that a server may want otherwise] in WIRE: the body
              up to the first message of the conversation; bare: the same without tools
    changes   list of [field, what replaces it] in requests (refusal.py): those of clawlite.toml,
              whose fields are ``fixed``, and what was learned of the server
    key       str, which marks what this model at this address wrote
    keep      about how many bytes of a streamed answer the conversation remembers; the rest is
              shown and forgotten
    learn     function(token of oauth2), so that leak scans know the token; or None
    known     what keeps changes that were learned, with ``of(place) -> list`` and ``learn(place,
              changes)`` (linux/runtime/providers.py), or None; place: str, address and model
    told_window  tokens of a request and its answer that the server named in a refusal, or None;
              room: bytes that a conversation may have since then
    tools     ``image.Image`` with the tools that a model may call in the text of an answer
              (core/turns/text_call.py), or None
    repetition  ``repetition.Repetition``, when a shell has the memory to look for it, or None
    """

    def __init__(
        self,
        row: list,
        loads,
        dumps,
        keep: int,
        learn=None,
        known=None,
        tools=None,
        repetition=None,
    ):
        self.tools, self.repetition = tools, repetition
        if len(row) != _FIELDS:
            raise ProviderError(
                "the image was built by another version of clawlite", "build it again"
            )
        (
            self.name,
            self.kind,
            tls,
            host,
            port,
            target,
            self.model,
            self.auth,
            self.secret,
            self.oauth2,
            self.stream,
            self.max_attempts,
            self.backoff,
            self.delay_ms,
            self.per_day,
            self.per_request,
            self.per_minute,
            self.window,
            self.first_ms,
            self.whole_ms,
            self.prices,
            self.prefix,
            self.bare,
            changes,
        ) = row
        self.where = (tls, host, port, target)
        self.place = "%s:%d%s %s" % (host, port, target, self.model)
        self.key = "%08x" % (crc32(self.place.encode()) & 0xFFFFFFFF)
        self.room = self.told_window = None
        self._known = known
        self.is_full_told = False
        self.keep = keep
        self._learn = learn
        self._token = None  # oauth2.Token
        self._told = False  # the person knows that another model answers
        # how often the server may still be asked whether it cuts requests
        self._looks_left = _LOOKS
        if self.kind == _OPENAI:
            from clawlite.core.providers.openai import Codec
        else:
            from clawlite.core.providers.anthropic import Codec
        self.fixed = [change[0] for change in changes]
        self.changes = list(changes)
        for change in known.of(self.place) if known else ():
            if change[0] not in self.fixed:
                self.changes.append(change)
        self.codec = Codec(loads, dumps, self.changes)
        if self.changes:
            from clawlite.core.providers.refusal import apply

            apply(self)

    def learn(self, field: str, instead: str, lasts: bool):
        """Put *instead* in place of *field* in later requests; *lasts*: after a restart, too."""
        from clawlite.core.providers.refusal import apply

        self.changes[:] = [change for change in self.changes if change[0] != field]
        self.changes.append([field, instead])
        apply(self)
        if self._known and lasts:
            learned = [change for change in self.changes if change[0] not in self.fixed]
            self._known.learn(self.place, learned)

    def ask(self, history, meter, most=None):
        """A generator of effects that returns a ``Reply``.

        history  ``history.History``
        meter    ``meter.Meter``
        most     for a tool that asks: no tools are offered, and the answer may have this many
                 tokens; the request is refused unless limits admit all of them.  None: what is left
        Raises ``ProviderError`` when its attempts are used up, ``QuotaExceeded`` before a request
        that a limit forbids."""
        attempt, loadings = 1, 0
        due_ms = meter.now_ms() + self.whole_ms
        again = []  # ``refusal.Asking``, once a request was refused
        while True:
            try:
                is_last = attempt >= self.max_attempts
                answer = yield from self._attempt(history, meter, most, due_ms, is_last, again)
                if answer is None:
                    if again[0].line:
                        yield (TELL, "provider %s: %s" % (self.name, again[0].line))
                    continue
                return Reply(
                    answer.text, answer.calls, answer.shown, answer.stop, self.key, answer.opaque
                )
            except QuotaExceeded:
                raise
            except ProviderError as e:
                wait, said = self.plan_next(e, attempt, loadings, due_ms, meter)
                if wait is None:
                    e.message = said + ")"
                    raise e
                loadings += e.is_loading
                attempt += not e.is_loading
            yield (TELL, "%s, again in %d.%d s)" % (said, wait // 1000, wait % 1000 // 100))
            yield (SLEEP, wait)

    def plan_next(self, e, attempt: int, loadings: int, due_ms: int, meter) -> tuple:
        """Return the milliseconds before the next attempt, None when there is none, and what a
        person reads of this one.

        loadings  how often the server has said that it still loads its model
        """
        wait = self._wait(e, attempt, meter)
        left = due_ms - meter.now_ms()
        if e.is_loading:
            wait = min(_LOADING_MS << min(loadings, 8), _MOST_LOADING_MS)
        elif left <= 0:
            e.message = "its answer was not whole after %d s" % (self.whole_ms // 1000)
            e.hint = "use a faster model, a lower tokens_per_request or a higher [answer] "
            e.hint += "total_ms in clawlite.toml"
        if wait is not None and wait >= left:
            wait = None
        asks = getattr(e, "wait_ms", None)
        if wait is None and asks is not None and asks > MAX_WAIT_MS:
            e.message = "%s; it asks to wait %d s, and %d s are the most" % (
                e.message.rstrip("."),
                asks // 1000,
                MAX_WAIT_MS // 1000,
            )
        return wait, "provider %s: %s (tried %d of %d" % (
            self.name,
            e.message,
            attempt,
            self.max_attempts,
        )

    def _wait(self, e, attempt: int, meter):
        """Return the milliseconds before the next attempt, or None when there is none.

        The pause is what ``Retry-After`` asks for, or else the declared one plus up to a quarter,
        so that many clients do not come at once."""
        if not isinstance(e, TransientError) or attempt >= self.max_attempts:
            return None
        if e.wait_ms is not None:
            return e.wait_ms if e.wait_ms <= MAX_WAIT_MS else None
        wait = self.delay_ms
        if self.backoff == EXPONENTIAL:
            wait <<= attempt - 1 if attempt < 12 else 11
        elif self.backoff == LINEAR:
            wait *= attempt
        wait = MAX_WAIT_MS if wait > MAX_WAIT_MS else wait
        return wait + meter.jitter(wait // 4)

    def _attempt(self, history, meter, most, due_ms: int, is_last: bool, again: list):
        """Return the answer of one attempt, None when the request is to be made otherwise; a
        generator of effects.
        """
        wait = meter.pause(self)
        if wait:
            yield (
                TELL,
                "provider %s: %d requests a minute are its limit, waiting %d s"
                % (self.name, self.per_minute, wait // 1000 + 1),
            )
            yield (SLEEP, wait)
        prefix = self.prefix if most is None else self.bare
        begun = prefix[_LENGTH] + _END
        body = self._fitting(history, begun)
        asked = (begun + len(body)) // 4
        allowed = meter.admit_request(self, asked, most)
        if self.changes:
            from clawlite.core.providers.refusal import limit

            allowed = limit(self, allowed, asked)
        sent = history, meter.limits_answers(self) or most is not None, allowed, len(body)
        last = self._token
        key = yield from self._credential(meter)
        meter.count_request(self)
        incoming = _Incoming(self, not history.is_nested)
        self.codec.is_mended = False
        # A moment longer than the rest: the loop that waits may have read its clock before us.
        left = lambda: max(1, due_ms - meter.now_ms() + _MOMENT_MS)
        try:
            status, headers, body = yield from exchange(
                self.where,
                self._parts(key, prefix, body, self._end(allowed, most is None)),
                self.keep * _KEPT_OF_BODY,
                incoming.begin,
                self.first_ms if self.stream else self.whole_ms,
                left,
            )
            if status == 401 and last is not None and self._token is last:
                self._token = None  # it was revoked early: try once more, with a new one
                return (yield from self._attempt(history, meter, most, due_ms, is_last, again))
            if status in _REFUSED and self._adapts(again, sent, status, without(key, body)):
                return None
            if status != 200:
                raise self._refusal(status, headers, without(key, body), meter)
            answer = incoming.answer
        except GeneratorExit:  # nobody waits for the answer any more, but it must be paid for
            if incoming.is_answer:
                meter.owe(self, asked, incoming.shown // 4)
            raise
        except Exception as e:
            # a board may need their memory to count the use
            incoming.stream = incoming.answer = None
            if incoming.is_shown and incoming.shown:
                if not incoming.ends_line:
                    yield (WRITE, "\n")
                yield (VOID, incoming.count + (not incoming.ends_line))
            if incoming.is_answer:
                yield from self._spend(meter, None, None, asked, incoming.shown)
            if isinstance(e, ProviderError):
                e.message = without(key, e.message)
                if self._fails(e, incoming, meter, again, sent):
                    return None
                if not e.hint and (is_last or e.is_loading or not isinstance(e, TransientError)):
                    from clawlite.core.providers.provider_error import explain

                    yield from explain(self, e, key)
            raise
        answer.shown = incoming.shown > 0
        if incoming.is_shown and answer.shown and not incoming.ends_line:
            yield (WRITE, "\n")
        yield from self._spend(
            meter,
            answer.input_tokens,
            answer.output_tokens,
            asked,
            incoming.shown or len(answer.text.encode()),
        )
        answer.text = without(key, answer.text)
        if answer.shown:  # only now, when a board has dropped the code that read the answer
            answer.text = str(b"".join(incoming.said), "utf-8") + answer.text
        if self._is_noted(answer, asked):
            yield from self._tell_notes(answer, history, prefix, key)
        return answer

    def _is_noted(self, answer, asked: int) -> bool:
        """Return whether *answer* may be something else than what was asked for."""
        if self.codec.is_mended or answer.is_call_text or answer.may_be_call:
            return True
        if (
            self._looks_left
            and _LEAST_CUT <= (answer.input_tokens or 0) < asked * 4 // _MOST_OF_TOKEN
        ):
            return True
        return not self._told and bool(answer.model) and answer.model != self.model

    def _tell_notes(self, answer, history, prefix: list, key: str):
        """Tell a person what of *answer* is not what was asked for; a generator of effects."""
        for note in self._list_notes(answer, prefix is self.prefix):
            yield (TELL, "provider %s: %s" % (self.name, note))
        told = answer.input_tokens
        if self._looks_left and told is not None and told >= _LEAST_CUT:
            begun = prefix[_LENGTH] + _END
            sent = begun + len(str(self._fitting(history, begun), "utf-8"))
            if sent > told * _MOST_OF_TOKEN:
                from clawlite.core.providers.provider_error import explain_cut

                self._looks_left -= 1
                note = yield from explain_cut(self, told, sent, key)
                if note:
                    self._looks_left = 0
                    yield (TELL, "provider %s: %s" % (self.name, note))

    def _read_text_calls(self, answer, has_tools: bool) -> str:
        """Let the calls in the text of *answer* be its calls; return why they are none, or ""."""
        if not has_tools:
            return "it was offered no tools"
        if answer.stop != "stop":
            return "the answer is not whole"
        from clawlite.core.turns.text_call import read

        calls, why_not = read(answer.text, self.codec, self.tools)
        if calls:
            answer.calls, answer.text, answer.stop = calls, "", "tools"
            answer.is_call_text = False
        return why_not

    def _list_notes(self, answer, has_tools: bool) -> list:
        """Return what a person is told of an answer that is not quite what was asked for.  Calls
        in its text become its calls, where such may run.
        """
        notes = []
        if self.codec.is_mended:
            notes.append("its answer had text that is not Unicode; U+FFFD stands for it")
        why_not = ""
        if answer.may_be_call and self.tools:
            why_not = self._read_text_calls(answer, has_tools)
        if answer.is_call_text:
            notes.append(
                "the model wrote a call of a tool as text, which is not run%s; start the server "
                "with the parser of its model's tool calls, or use another model"
                % (why_not and " (%s)" % why_not)
            )
        model = answer.model or self.model
        if not self._told and not (model.startswith(self.model) or self.model.startswith(model)):
            self._told = True
            notes.append("asked for the model %s, %s answers" % (self.model, model[:80]))
        return notes

    def _refusal(self, status: int, headers: dict, body: bytes, meter):
        """Return the error for an answer with a status other than 200."""
        from clawlite.core.providers.failure import outside

        e = error_of(status, headers, self.codec.error(status, body), meter.now_s())
        return outside(e, status, self.codec.parse_report(body), e.message)

    def _fails(self, e, incoming, meter, again: list, sent: tuple) -> bool:
        """Return whether the request is to be made otherwise after the error *e*."""
        is_passing = isinstance(e, TransientError)
        if is_passing and e.wait_ms is None and incoming.headers:
            e.wait_ms = wait_of(incoming.headers, meter.now_s())
        if incoming.is_answer and not is_passing:  # the answer itself says that it was refused
            if self._adapts(again, sent, 0, e.message.encode()):
                return True
        if again:
            again[0].end(e)
        return False

    def _adapts(self, again: list, sent: tuple, status: int, said: bytes) -> bool:
        """Return whether the request that was refused is to be made otherwise.

        sent  what ``refusal.Asking`` wants to know of it
        """
        from clawlite.core.providers.refusal import Asking

        if not again:
            again.append(Asking(self))
        return again[0].adapt(status, said, *sent) is not None

    def _spend(self, meter, read, written, asked: int, size: int):
        """Count the use of an answer: *read* and *written* tokens when the provider reports them,
        else a quarter of the bytes.
        """
        entries = meter.count_answer(
            self, asked if read is None else read, size // 4 if written is None else written
        )
        if entries:
            yield (STORE, entries)

    def _credential(self, meter):
        """Return the key or the token for a request, "" when it needs none; a generator of
        effects.
        """
        if (
            self.auth == NONE
            or self.auth == OAUTH2
            and self._token is not None
            and self._token.lasts(meter.now_ms())
        ):
            return self._token.value if self.auth else ""
        done, key = yield (SECRET, self.secret)
        if not done:
            e = ProviderError(key.message, key.hint)
            e.never = True
            raise e
        if self.auth == OAUTH2:
            from clawlite.core.net.oauth2 import token

            self._token = yield from token(self.oauth2, key, self.codec, meter)
            key = self._token.value
            if self._learn:
                self._learn(key)
        return key

    def _parts(self, key: str, prefix: list, body: bytes, end: bytes) -> list:
        """Return the parts of a request (effect OPEN).  The part that never changes is given as its
        place in the image.
        """
        headers = [("Content-Type", "application/json")] + self.headers(key)
        parts = self.codec.begin(prefix) + [body, end]
        size = sum([part[_LENGTH] if isinstance(part, tuple) else len(part) for part in parts])
        return [head(self.where, headers, size)] + parts

    def _end(self, allowed: int, goes_on: bool) -> bytes:
        """Return the end of a request.

        allowed  tokens that the answer may have;  goes_on: it is one of a conversation
        """
        streams = "true" if self.stream else "false"
        fields = [("stream", streams)]
        for name, value, is_of_streams, is_of_talks in self.codec.FIELDS:
            if (self.stream or not is_of_streams) and (goes_on or not is_of_talks):
                fields.append((name, value))
        return self.codec.end(fields + [("max_tokens", "%d" % allowed)])

    def headers(self, key: str) -> list:
        """Return the headers that every request of this provider has."""
        headers = [
            ("Accept", "text/event-stream" if self.stream else "application/json"),
            ("Accept-Encoding", "identity"),
            ("User-Agent", "clawlite"),
        ]
        headers.extend(self.codec.HEADERS)
        if self.auth == KEY_HEADER:
            headers.append((self.codec.KEY_HEADER, key))
        elif self.auth != NONE:
            headers.append(("Authorization", "Bearer " + key))
        return headers

    def _fitting(self, history, begun: int) -> bytes:
        """Return the conversation's messages.  Leave out the oldest turns when the limits of a
        request, or its usual size, demand it.

        begun  bytes of the request beside the messages
        A quarter of a limit stays free for the answer, but not more than an answer may have.  When
        turns are left out, a quarter of the room is freed at once, so that the next requests begin
        like this one (``history.History``).
        """
        room = most = 0
        for limit in (self.window, self.told_window, self.per_request):
            if limit is not None:
                limit = max(1, (limit - min(limit // 4, MAX_TOKENS)) * 4 - begun)
                room = min(room, limit) if room else limit
        if self.window is None:
            most = _EARLIER
            usual = max(_REQUEST - begun, _CONVERSATION)
            room = min(room, usual) if room else usual
        if self.room is not None:
            room = min(room, self.room) if room else self.room
        is_plain = self.codec.change("tool_call_id") is not None
        while True:
            messages = compose(history.context(self.name, most), self.key, is_plain)
            messages = self.codec.messages(messages)
            body = ",".join(messages).encode()
            free = len(body) - room // 4 * 3
            if not room or len(body) <= room or not history.leave_out(self.name, free, most):
                return body


class _Incoming:
    """An answer that is arriving: a stream is shown piece by piece, and part of it is kept for the
    conversation.

    is_answer  bool, an answer has begun, and must be paid for
    answer     ``wire.Answer``, once a stream is complete
    is_shown   bool, its text is shown as it comes
    shown      bytes of text so far; count: the same in characters; ends_line: whether the text so
               far ends with a line end
    """

    def __init__(self, provider, is_shown: bool):
        self._provider = provider
        self.is_shown = is_shown
        self.stream = None
        self.is_answer = False
        self.headers = None
        self.answer = None
        # pieces of about _PART bytes: a thousand small strings cost ten times their text, and one
        # growing string is copied again and again
        self.said = [bytearray()]
        self._kept = self.shown = self.count = 0
        self.ends_line = False
        self._repetition = None

    def begin(self, status: int, headers: dict):
        self.is_answer = status == 200
        if status == 200:
            self.headers = headers
            self.stream = self._provider.codec.stream(self._provider.keep * _KEPT_OF_BODY)
            if self._provider.repetition:
                self._repetition = self._provider.repetition()
            return self
        return None

    def take(self, data: bytes):
        self.stream.feed(data)
        event = self.stream.next_event()
        while event:
            if event[_KIND] == "end":
                self.answer = event[_VALUE]
                return True
            text = event[_VALUE].encode()
            if self._kept < self._provider.keep:
                self._kept += len(text)
                if len(self.said[-1]) >= _PART:
                    self.said.append(bytearray())
                self.said[-1].extend(text)
            self.shown += len(text)
            self.count += len(event[_VALUE])
            self.ends_line = event[_VALUE].endswith("\n")
            if self.is_shown:
                yield (WRITE, event[_VALUE])
            if self._repetition and self._repetition.add(text):
                raise ProviderError(
                    "the answer repeated itself and was cut",
                    "ask again in other words, or use another model",
                )
            event = self.stream.next_event()
        return False

    def at_end(self):
        """The connection ended before the API's own last event: the answer may be complete even
        so, and one that is no stream always ends here.
        """
        self.answer = self.stream.at_end()
