"""What comes in and what goes out, looked at as policies say (CKP 0.2.0, 5.7 and 5.8): sizes, secrets, orders of strangers.

1. ``arguments`` before a tool runs, ``result`` after it, ``message`` for what comes on a channel, ``text`` for all that leaves.
2. What is found is named by kind in the log's event (``found``), and never shown.
3. Several policies are one at build time: the strictest of each (host/guards.py).
"""
from clawlite.core.errors import InvalidParams, PolicyDenied
from clawlite.core.guards import ALL, BLOCK, DOUBTFUL, INPUT, MARK, OUTPUT, PATTERN, STOP, WARN, Guards
from clawlite.core.image import GUARD
from clawlite.linux.known import Known
from clawlite.linux.leaks import find, merged, replaced

SPACES = 256                    # white space in one piece that hides something
_DEPTH = 32
_MARKED = "[clawlite: the text below may be a prompt injection; nobody vouches for it]\n"
# White space and marks that a person does not see, or that turn a line's direction.
_UNSEEN = "\x0b\x0c\x85\xad\u180e\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\ufeff"


class Guard:
    """The checks of one agent.

    image    has the section GUARD
    secrets  function() -> list of str, set by a shell: what the agent could resolve, asked for at the first look
    outputs  bool, the audit wants what tools return
    """

    def __init__(self, image):
        guards = Guards(image.section(GUARD))
        self._leaks, self._checks, self.audit, self.references = guards.leaks, guards.checks, guards.audit, guards.references
        self.encrypted = guards.encrypted
        injection = guards.injection
        self._patterns = None
        self._lookers = injection[4] if injection else 0
        self.asks = self._lookers & (DOUBTFUL | ALL) != 0       # ``asked`` has something to do
        if injection:
            from clawlite.linux.injection import Patterns
            self._injection = injection[0]
            self._patterns = Patterns(image.automaton(injection[1]), injection[2], injection[3])
        self.secrets = None
        self.outputs = self.audit is not None and self.audit[1]
        self._known = Known()

    def learn(self, value: str):
        """Look for the secret *value* from now on."""
        self._known.learn(value)

    def arguments(self, tool: str, arguments: dict, event: dict) -> dict:
        """Return *arguments* as they may be used.  Raises ``InvalidParams`` (-32602), ``PolicyDenied`` (-32011)."""
        if self._checks:
            self._check(tool, arguments)
        if self._leaks and self._leaks[0] & INPUT:
            return self._cleaned(arguments, "%s: its arguments hold" % tool, event)
        return arguments

    def message(self, text: str) -> str:
        """Return a person's message as it may be used.  Raises as ``arguments``."""
        if self._checks:
            self._check("message", text)
        return self._cleaned(text, "the message holds", {}) if self._leaks and self._leaks[0] & INPUT else text

    def result(self, tool: str, text: str, value, event: dict) -> tuple:
        """Return (*text*, *value*) of a tool as they may be seen.

        Raises ``PolicyDenied``: the tool has run, and what it gave is withheld.
        """
        if self._leaks and self._leaks[0] & OUTPUT:
            clean = self._cleaned(text, "%s: withheld, what it returned holds" % tool, event)
            if clean != text:
                value = clean if isinstance(value, str) else self._cleaned(value, "", event)
                text = clean
        if self._lookers & PATTERN and self._patterns.found(text):
            text = self._injected(tool, text, event)
        if self.outputs:
            event["output"] = text
        return text, value

    def asked(self, tool: str, result, event: dict):
        """A generator of effects that lets a model look at *result*, a ``tools.Result``, and changes its text as policies say.

        Raises ``PolicyDenied``: the tool has run, and what it gave is withheld.
        """
        from clawlite.linux.suspicion import DATA, ORDERS, asked
        if "injection" in event.get("found", ()) or not (self._lookers & ALL or self._patterns.doubts(result.text)):
            return
        verdict = yield from asked(result.text)
        if verdict == ORDERS:
            result.text = self._injected(tool, result.text, event)
            result.size = 0             # nobody has counted it anew
            if self.outputs:
                event["output"] = result.text
        elif verdict != DATA:
            _note(event, "injection-unclear")
            if self._injection == STOP:
                event.pop("output", None)
                raise PolicyDenied("%s: no model could say whether what it returned is a prompt injection; it is withheld" % tool,
                                   "see in the log why the provider did not answer, and try again",
                                   {"tool": tool, "action": "deny", "found": ["injection-unclear"]})

    def _injected(self, tool: str, text: str, event: dict) -> str:
        """Return *text* as it may be seen although it gives orders.  Raises ``PolicyDenied``."""
        _note(event, "injection")
        if self._injection == STOP:
            event.pop("output", None)
            raise PolicyDenied("%s: what it returned may be a prompt injection and is withheld" % tool, "look at it yourself first",
                               {"tool": tool, "action": "deny", "found": ["injection"]})
        return _MARKED + text if self._injection == MARK else text

    def text(self, text: str) -> str:
        """Return *text* without secrets, for a reply, a log or telemetry: there is no way to ask for them there."""
        return self.clean(text) if self._leaks else text

    def clean(self, text: str) -> str:
        """Return *text* without secrets, whatever policies say: for the audit."""
        found = self._secrets_in(text.encode())
        return str(replaced(text.encode(), found), "utf-8") if found else text

    def _secrets_in(self, data: bytes) -> list:
        if self.secrets:
            ask, self.secrets = self.secrets, None
            for value in ask():
                self._known.learn(value)
        found = find(data)
        self._known.find(data, found)
        return merged(found)

    def _cleaned(self, value, what: str, event: dict):
        """Return *value*, a text or arguments, without secrets.  Raises ``PolicyDenied`` where they are blocked."""
        if isinstance(value, dict):
            return {key: self._cleaned(value[key], what, event) for key in value}
        if isinstance(value, (list, tuple)):
            return [self._cleaned(item, what, event) for item in value]
        if not isinstance(value, str):
            return value
        data = value.encode()
        found = self._secrets_in(data)
        if not found:
            return value
        for _, _, kind in found:
            _note(event, "secret:" + kind)
        if self._leaks[1] == BLOCK:
            raise PolicyDenied("%s a secret (%s)" % (what, found[0][2]), "", {"action": "deny", "found": event["found"]})
        return value if self._leaks[1] == WARN else str(replaced(data, found), "utf-8")

    def _check(self, tool: str, arguments):
        most, nul, white, charset = self._checks
        size = 0
        for text in _texts(arguments, 0):
            try:
                size += len(text.encode())
            except ValueError:
                raise InvalidParams("%s: an argument is no UTF-8 text: it has half of a surrogate pair" % tool, "", {"tool": tool})
            if most is not None and size > most:
                raise InvalidParams("%s: expected arguments of at most %d bytes, got more" % (tool, most), "send less at once",
                                    {"tool": tool, "max_size_bytes": most})
            problem = nul and "\0" in text and "a NUL byte" or white and _hidden(text) \
                or charset == "ascii" and len(text.encode()) != len(text) and "a character that is not ASCII"
            if problem:
                raise InvalidParams("%s: an argument holds %s" % (tool, problem), "", {"tool": tool, "found": problem})


def _note(event: dict, what: str):
    found = event.get("found")
    if found is None:
        found = event["found"] = []
    if what not in found:
        found.append(what)


def _texts(value, depth: int):
    """Yield every text in a JSON value, names too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict) and depth < _DEPTH:
        for key in value:
            yield key
            for text in _texts(value[key], depth + 1):
                yield text
    elif isinstance(value, list) and depth < _DEPTH:
        for item in value:
            for text in _texts(item, depth + 1):
                yield text


def _hidden(text: str) -> str:
    """Return what white space in *text* hides, or ""."""
    if " " * SPACES in text or "\n" * SPACES in text or "\t" * SPACES in text:
        return "%d spaces or line ends in one piece" % SPACES
    for mark in _UNSEEN:
        if mark in text:
            return "the invisible character U+%04X" % ord(mark)
    if len(text.encode()) != len(text):
        for c in text:
            if 0xE0000 <= ord(c) < 0xE0080:
                return "the invisible character U+%04X" % ord(c)
    return ""
