"""What a server refuses in a request, and how the next one is written for it: loaded when a server
refuses one, and where such changes are known.

1. Tables say which words of a server mean what; they were collected from OpenAI, Azure, Anthropic,
   Gemini, Mistral, Groq, vLLM, llama.cpp, TGI, LiteLLM, SGLang, Ollama and others.
2. A change is [field, what replaces it]: a request's field gets another name, or "" leaves it out.
   Fields in ``_VALUES`` have meanings of their own.
3. A question is asked again at most ``MOST`` times, each time with another change.
4. When a conversation is too long for the model, its oldest turns are left out, as wholes.
"""

from clawlite.core.base.dialect import const

MOST = 8
LASTS_S = 2592000  # 30 days: servers change
MAX_SAID = 4096  # bytes of a refusal that are read
_LEAST_WINDOW = const(256)  # tokens
_OF_SYSTEM = const(17)  # bytes of {"role":"system",
# behind the system prompt in a request to Anthropic
CACHED = b',"cache_control":{"type":"ephemeral"}}],"messages":['
# statuses of a request that is wrong; some servers say 500 or 501 for it
REFUSES = (400, 413, 422)

# (words that all stand in a refusal, the field, what replaces it, whether it is remembered)
_KNOWN = (
    ((b"thought_signature",), "extra_content", "all", True),
    ((b"reasoning_content", b"passed back"), "reasoning_content", "all", True),
    ((b"reasoning_content", b"missing"), "reasoning_content", "all", True),
    ((b"tool call id", b"length of 9"), "tool_call_id", "plain", True),
    ((b"match pattern", b"id"), "tool_call_id", "plain", True),
    ((b"system role not supported",), "system", "user", True),
    ((b"system role is not supported",), "system", "user", True),
    ((b"system message is not supported",), "system", "user", True),
    ((b"does not support 'system'",), "system", "user", True),
    ((b"developer instruction is not enabled",), "system", "user", True),
    ((b"'stream' does not support",), "streaming", "false", True),
    ((b"verified to stream",), "streaming", "false", True),
    ((b"streaming is not supported",), "streaming", "false", True),
    ((b"does not support streaming",), "streaming", "false", True),
    ((b"signature", b"thinking"), "thinking", "", False),
    ((b"thinking", b"cannot be modified"), "thinking", "", False),
)
# {what is no field that has another name or none: the values that it takes in clawlite.toml}; only
# a person lets calls in texts run
TEXT_CALLS = "text_calls"
_VALUES = {
    TEXT_CALLS: ("run",),
    "extra_content": ("all", ""),
    "reasoning_content": ("all", ""),
    "tool_call_id": ("plain",),
    "system": ("user",),
    "streaming": ("false",),
}
# words that call a field unknown
UNKNOWN = (
    b"unsupported",
    b"not support",
    b"unrecognized",
    b"not recognized",
    b"unknown",
    b"not permitted",
    b"extra_forbidden",
    b"extra fields",
    b"unexpected",
    b"not allowed",
    b"only allowed",
    b"cannot find field",
    b"extraneous",
    b"deprecated",
    b"not a valid",
    b"invalid field",
    b"additional properties",
    b"no such",
    b" instead",
)
# words that call a number of tokens too large
_TOO_MANY = (b"less than or equal", b"too large", b"at most", b"maximum", b"exceed", b"must be")
# words that call a conversation too long
FULL = (
    b"context_length_exceeded",
    b"exceed_context_size",
    b"context length",
    b"context size",
    b"context window",
    b"context limit",
    b"prompt is too long",
    b"prompt too long",
    b"input is too long",
    b"token count",
    b"too many tokens",
    b"prompt length",
    b"model length",
    b"token limit",
    b"tokens allowed",
    b"exceeds max length",
    b"reduce the length",
    b"request_too_large",
    b"request too large",
    b"too large for model",
    b"range of input length",
    b"must have less than",
    b"`max_new_tokens` must be",
)
# words after which the tokens of the window stand
_WINDOW = (
    b'"n_ctx":',
    b"context size (",
    b"context size of",
    b"context length is",
    b"context length of",
    b"context length (",
    b"context window of",
    b"model length of",
    b"prompt length is",
    b"tokens allowed (",
    b"token limit:",
    b"less than",
    b"must be <=",
    b" > ",
    b"cannot exceed",
    b"for model with ",
)


def apply(provider) -> None:
    """Let *provider* obey those of its changes that are not about names."""
    for field, instead in provider.changes:
        if field == "max_context_window":
            provider.told_window = int(instead)
        elif field == "streaming":
            provider.stream = False


def limit(provider, allowed: int, asked: int) -> int:
    """Return how many of the *allowed* tokens an answer may have after *asked* tokens of a
    request, by what the server has said.
    """
    if provider.told_window is not None:
        allowed = min(allowed, max(provider.told_window - asked, _LEAST_WINDOW))
    most = provider.codec.change("most_tokens")
    return allowed if most is None else min(allowed, int(most))


def begin(codec, prefix: list) -> list:
    """Return the parts of a request before its first message (``Codec.begin``)."""
    offset, length, end = prefix
    whole = [(offset, length), codec.FIRST]
    if not end:
        return whole
    if codec.FIRST:  # OpenAI's API: the prefix ends with the system message
        if codec.change("system") is None:
            return whole
        # It begins the first message instead, as in the templates of models without such a role.
        at = offset + length - end + _OF_SYSTEM
        return [(offset, length - end), b'{"role":"user",', (at, end - _OF_SYSTEM - 2)]
    if codec.change("cache_control") != "":
        return whole
    return [(offset, length - len(CACHED)), b'}],"messages":[']


class Asking:
    """One question to a provider, which may be asked again in another form."""

    def __init__(self, provider):
        self._provider = provider
        self.line = None  # what a person is told of the last change
        self._tried = []
        # all earlier turns were left out, for a reason that nobody knows; those left out before
        self._is_bare, self._before = False, None
        self.is_full = self._refuses = False

    def adapt(
        self, status: int, said: bytes, history, is_limited: bool, allowed: int, asked_bytes: int
    ):
        """Return a line for a person, or "", when the question is to be asked again, else None.

        status       of the refusal, 0 for one inside an answer;  said: its body
        history      ``history.History`` of the request
        is_limited   bool, the tokens of the answer may not be left open
        allowed      tokens that the answer could have
        asked_bytes  of the conversation in the request
        """
        self.line = self._find_change(status, said, history, is_limited, allowed, asked_bytes)
        return self.line

    def _find_change(self, status, said, history, is_limited, allowed, asked_bytes):
        self._history, self._is_limited = history, is_limited
        self._allowed, self._asked_bytes = allowed, asked_bytes
        self._refuses = status in REFUSES
        said = said[:MAX_SAID].lower()
        if len(self._tried) >= MOST:
            return None
        if has_any(said, FULL):
            return self._shorten(said)
        for words, field, instead, lasts in _KNOWN:
            if has_all(said, words) and self._change(field, instead, lasts):
                return "it refused the request; asked again with another %s" % field
        line = self._rename(said) if status else None
        return line or self._drop_turns() if status in REFUSES else line

    def end(self, e):
        """Complete the error *e*, with which the question fails for good."""
        if self._is_bare:  # what was said earlier was not the reason
            self._history.left_out = self._before
        if self.is_full and not e.hint:
            e.hint = "shorten the message, or raise the context of the server. " + advice(
                self._provider
            )
        e.refuses = e.refuses or self.is_full or self._refuses

    def _change(self, field: str, instead: str, lasts: bool = True) -> bool:
        """Change *field* in the next request; return False when that was tried, or is fixed."""
        if (field, instead) in self._tried or field in self._provider.fixed:
            return False
        self._tried.append((field, instead))
        self._provider.learn(field, instead, lasts)
        return True

    def _shorten(self, said: bytes):
        """Make room: the window that the server tells holds from now on, and the next request has
        at most three quarters of this one's conversation.
        """
        provider = self._provider
        self.is_full = True
        self._tried.append(("", ""))
        window = _window(said)
        known = provider.told_window or provider.window
        is_new = window and (known is None or window < known)
        if is_new:
            provider.learn("max_context_window", "%d" % window, True)
        has_earlier = self._history.has_earlier(provider.name)
        provider.room = max(self._asked_bytes * 3 // 4, 1)
        if not has_earlier and not is_new:
            return None
        if provider.is_full_told:
            return ""
        provider.is_full_told = True
        return "the conversation is too long for the model; its oldest turns are left out. %s" % (
            advice(provider)
        )

    def _limit(self) -> str:
        return self._provider.codec.change("max_tokens") or "max_tokens"

    def _lower_limit(self, said: bytes, limit: str):
        """Ask for fewer tokens of an answer, when the refusal says how many are allowed."""
        if limit in ("max_tokens", "max_completion_tokens") or "token" in limit:
            at = find_word(said, limit)
            if at >= 0 and not has_any(said, UNKNOWN) and has_any(said, _TOO_MANY):
                most = max([n for n in _numbers(said) if n < self._allowed] + [0])
                if most and self._change("most_tokens", "%d" % most):
                    return "it allows %d tokens of an answer; asked again" % most
        return None

    def _rename(self, said: bytes):
        """Rename or leave out the field that the refusal names first."""
        limit = self._limit()
        line = self._lower_limit(said, limit)
        if line or not has_any(said, UNKNOWN):
            return line
        first, found = len(said), None
        for field in self._fields() + [limit]:
            at = find_word(said, field)
            if 0 <= at < first:
                first, found = at, field
        if found == limit:
            return self._rename_limit(said, limit)
        if found is not None and self._change(found, ""):
            return "it refuses %s; asked again without" % found
        return None

    def _rename_limit(self, said: bytes, limit: str):
        """Give the field for the tokens of an answer another name."""
        if ("max_tokens", limit) not in self._tried:
            self._tried.append(("max_tokens", limit))
        other = _find_other(said, limit) or "max_completion_tokens"
        for instead in (other, "max_completion_tokens", "max_tokens", ""):
            if instead and instead != limit or instead == "" and not self._is_limited:
                if self._change("max_tokens", instead):
                    return "it refuses %s; asked again with%s" % (
                        limit,
                        " " + instead if instead else "out",
                    )
        return None

    def _fields(self) -> list:
        """Return the fields of the last request that it can do without."""
        fields = [field[0] for field in self._provider.codec.FIELDS]
        for message in self._history.context():
            if message.owner == self._provider.key:
                for _, member in message.opaque:
                    name = "thinking" if member[0] == "{" else member[1 : member.find('"', 1)]
                    if name not in fields:
                        fields.append(name)
        return [name for name in fields if self._provider.codec.change(name) != ""]

    def _drop_turns(self):
        """Leave out all earlier turns, once: one of them may be what the server cannot take."""
        name = self._provider.name
        if self._is_bare or not self._history.has_earlier(name):
            return None
        self._is_bare, self._before = True, self._history.left_out
        self._history.leave_out(name, 1 << 30)
        return "it refused the request; asked again without earlier turns"


def advice(provider) -> str:
    """Return how a person lets requests be short enough from the beginning."""
    window = provider.told_window or max(_LEAST_WINDOW, provider.room // 4)
    return "Set limits.max_context_window of the provider %s in the manifest, to %d here" % (
        provider.name,
        window,
    )


def has_any(said: bytes, words: tuple) -> bool:
    for word in words:
        if word in said:
            return True
    return False


def has_all(said: bytes, words: tuple) -> bool:
    for word in words:
        if word not in said:
            return False
    return True


def find_word(said: bytes, name: str) -> int:
    """Return where *name* stands in *said* as a word of its own, -1 where it does not."""
    word = name.encode()
    at = said.find(word)
    while at >= 0:
        around = said[at - 1 : at] + said[at + len(word) : at + len(word) + 1]
        if not [byte for byte in around if 97 <= byte <= 122 or 48 <= byte <= 57 or byte == 95]:
            return at
        at = said.find(word, at + 1)
    return -1


def _find_other(said: bytes, refused: str) -> str:
    """Return the field for the tokens of an answer that *said* names beside *refused*, or ""."""
    for name in ("max_completion_tokens", "max_output_tokens", "max_new_tokens", "max_tokens"):
        if name != refused and find_word(said, name) >= 0:
            return name
    return ""


def _window(said: bytes) -> int:
    """Return the tokens of the window that a refusal tells, 0 when it tells none."""
    for words in _WINDOW:
        at = said.find(words)
        if at >= 0:
            near = _numbers(said[at + len(words) : at + len(words) + 24])
            if near and near[0] >= _LEAST_WINDOW:
                return near[0]
    return 0


def _numbers(said: bytes) -> list:
    """Return the numbers in a text, in their order."""
    numbers, number = [], b""
    for at in range(len(said) + 1):
        byte = said[at : at + 1]
        if byte and 48 <= byte[0] <= 57:
            number += byte
        elif not (number and byte == b","):  # of thousands
            if number and len(number) < 10:
                numbers.append(int(number))
            number = b""
    return numbers


def fresh(known: dict, now_s: int) -> dict:
    """Return those of *known*, {place: [time in s, changes]}, that are younger than 30 days: a
    shell keeps it in a file.  What is no such thing is left out.
    """
    found = {}
    for place in known if isinstance(known, dict) else ():
        entry = known[place]
        if (
            isinstance(entry, list)
            and len(entry) == 2
            and isinstance(entry[0], int)
            and abs(now_s - entry[0]) < LASTS_S
            and isinstance(entry[1], list)
            and all([_is_change(one) for one in entry[1]])
        ):
            found[place] = entry
    return found


def _is_change(one) -> bool:
    if not isinstance(one, list) or len(one) != 2:
        return False
    field, instead = one
    if not isinstance(field, str) or not isinstance(instead, str) or field == TEXT_CALLS:
        return False
    return field not in ("max_context_window", "most_tokens") or instead.isdigit()


def setting_problem(field: str, instead: str) -> str:
    """Return what is wrong with a change that a person wrote into clawlite.toml, or ""."""
    if field in _VALUES:
        if instead not in _VALUES[field]:
            return "expected %s, found %s" % (" or ".join(_VALUES[field]), instead[:40] or '""')
        return ""
    if field != "max_tokens" and instead:
        return 'expected "" for a field that is left out, found %s' % instead[:40]
    if instead.strip("abcdefghijklmnopqrstuvwxyz_"):
        return "expected the name of a field, found %s" % instead[:40]
    return ""
