"""Checks input and output as policies say (CKP 0.2.0, 5.7 and 5.8): for size, secrets and prompt
injection.

1. ``arguments`` is called before a tool runs, ``result`` after it, ``message`` for a message of a
   channel, and ``text`` for all text that leaves the agent.
2. The log's event names the kinds of the findings (``found``), but never shows them.
3. The build merges several policies into one, with the strictest setting of each
   (host/policy/scan_config.py).
4. Checks that an image does not ask for are not loaded.
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.errors import PolicyDenied
from clawlite.core.image.scan_config import (
    ALL,
    AUDIT_OUTPUTS,
    BLOCK,
    DATA,
    DOUBTFUL,
    INPUT,
    MARK,
    ORDERS,
    OUTPUT,
    PATTERN,
    STOP,
    WARN,
    ScanConfig,
)
from clawlite.core.image.image import GUARD

# positions in ``ScanConfig.injection``, in its ``leaks``, and in a finding
_ACTION = const(0)
_ASKS = const(4)
_WHERE = const(0)
_LEAK_ACTION = const(1)
_KIND = const(2)

_MARKED = "[clawlite: the text below may be a prompt injection; nobody vouches for it]\n"


class Guard:
    """The checks of one agent.

    image    has the section GUARD
    roomy    bool: patterns and the forms of secrets stay in memory.  Else, on a board, they are
             made again for each text
    secrets  function(references) -> list of str, the secrets that the agent could resolve.  It is
             called at the first check; or None
    judge    function(text) -> generator of effects that returns ORDERS, DATA or UNCLEAR, of a
             shell that can ask a model, or None
    alive    function() of a shell with a watchdog, called now and then during a check, or None
    outputs  bool, the audit reads the results of tools, also where policies do not want them in it
    """

    def __init__(
        self, image, roomy: bool = True, secrets=None, judge=None, alive=None, outputs=False
    ):
        guards = ScanConfig(image.section(GUARD))
        self._leaks, self._checks, self.audit, self.references = (
            guards.leaks,
            guards.checks,
            guards.audit,
            guards.references,
        )
        self.encrypted = guards.encrypted
        injection = guards.injection
        self._image, self._roomy = image, roomy
        self._kept = None  # the patterns
        self._lookers = injection[_ASKS] if injection else 0
        self.asks = self._lookers & (DOUBTFUL | ALL) != 0  # ``ask_model`` has something to do
        self._injection = injection[_ACTION] if injection else None
        self._secrets, self._judge, self._alive = secrets, judge, alive
        self._known = None
        self._outputs = self.audit is not None and (outputs or self.audit[AUDIT_OUTPUTS])

    def _patterns(self):
        patterns = self._kept
        if patterns is None:
            from clawlite.scan.injection import Patterns

            # ``ScanConfig`` has checked its shape
            _, automaton, words, phrases, _ = self._image.section(GUARD)[0]
            patterns = Patterns(
                self._image.automaton(automaton),
                words,
                phrases,
                self._roomy,
                self._alive,
            )
            if self._roomy:
                self._kept = patterns
        return patterns

    def learn(self, value: str):
        """Look for the secret *value* from now on."""
        if self._known is None:
            from clawlite.scan.known_secrets import Known

            self._known = Known(self._roomy)
        self._known.learn(value)

    def arguments(self, tool: str, arguments: dict, event: dict) -> dict:
        """Return *arguments*, checked and without secrets, as policies say.  Raises
        ``InvalidParams`` (-32602), ``PolicyDenied`` (-32011).
        """
        if self._checks:
            from clawlite.scan.checks import check

            check(self._checks, tool, arguments)
        if self._leaks and self._leaks[_WHERE] & INPUT:
            return self._clean_value(arguments, "%s: its arguments hold" % tool, event)
        return arguments

    def message(self, text: str) -> str:
        """Return a person's message, checked and without secrets, as policies say.  Raises as
        ``arguments``.
        """
        if self._checks:
            from clawlite.scan.checks import check

            check(self._checks, "message", text)
        return (
            self._clean_value(text, "the message holds", {})
            if self._leaks and self._leaks[_WHERE] & INPUT
            else text
        )

    def result(self, tool: str, text: str, value, event: dict) -> tuple:
        """Return (*text*, *value*), the result of a tool, changed as policies say.

        Raises ``PolicyDenied``: the tool has run, and its result is withheld.
        """
        if self._leaks and self._leaks[_WHERE] & OUTPUT:
            clean = self._clean_value(text, "%s: withheld, what it returned holds" % tool, event)
            if clean != text:
                value = clean if isinstance(value, str) else self._clean_value(value, "", event)
                text = clean
        if self._lookers & PATTERN and self._patterns().found(text):
            text = self._mark(tool, text, event)
        if self._outputs:
            event["output"] = text
        return text, value

    def ask_model(self, tool: str, result, event: dict):
        """A generator of effects that asks a model about *result*, an ``effect.Result``, and
        changes its text as policies say.

        Raises ``PolicyDenied``: the tool has run, and its result is withheld.
        """
        if "injection" in event.get("found", ()) or not (
            self._lookers & ALL or self._patterns().doubts(result.text)
        ):
            return
        verdict = yield from self._judge(result.text)
        if verdict == ORDERS:
            result.text = self._mark(tool, result.text, event)
            result.size = 0  # the size of the changed text is not known
            if self._outputs:
                event["output"] = result.text
        elif verdict != DATA:
            _note(event, "injection-unclear")
            if self._injection == STOP:
                event.pop("output", None)
                raise PolicyDenied(
                    "%s: no model could say whether what it returned is a prompt "
                    "injection; it is withheld" % tool,
                    "see in the log why the provider did not answer, and try again",
                    {"tool": tool, "action": "deny", "found": ["injection-unclear"]},
                )

    def _mark(self, tool: str, text: str, event: dict) -> str:
        """Return *text*, which may be a prompt injection, with a mark if policies want one.  Raises
        ``PolicyDenied`` when they block it.
        """
        _note(event, "injection")
        if self._injection == STOP:
            event.pop("output", None)
            raise PolicyDenied(
                "%s: what it returned may be a prompt injection and is withheld" % tool,
                "look at it yourself first",
                {"tool": tool, "action": "deny", "found": ["injection"]},
            )
        return _MARKED + text if self._injection == MARK else text

    def text(self, text: str) -> str:
        """Return *text* without secrets when policies look for leaks, whatever their action is: for
        replies, logs and telemetry.
        """
        return self.clean(text) if self._leaks else text

    def clean(self, text: str) -> str:
        """Return *text* without secrets, whatever policies say: for the audit."""
        from clawlite.scan.leaks import redact

        data = text.encode()
        found = self._secrets_in(data)
        return str(redact(data, found), "utf-8") if found else text

    def _secrets_in(self, data: bytes) -> list:
        from clawlite.scan.leaks import find, merge

        if self._secrets:
            for value in self._secrets(self.references):
                self.learn(value)
            # only now: when ``secrets`` raises, the text is not shown, and it is called again
            self._secrets = None
        found = find(data)
        if self._known is not None:
            self._known.find(data, found)
        return merge(found)

    def _clean_value(self, value, what: str, event: dict):
        """Return *value*, a text or arguments, without secrets unless policies only warn.  Raises
        ``PolicyDenied`` when they block secrets.
        """
        top = [None]
        # each value with its place in the result; a list instead of recursion, because a board's
        # stack is short
        waiting = [(value, top, 0)]
        for value, into, at in waiting:
            clean = value
            if isinstance(value, str):
                clean = self._without(value, what, event)
            elif isinstance(value, dict):
                clean = {}
                for key in value:
                    at_key = self._without(key, what, event)
                    clean[at_key] = None
                    waiting.append((value[key], clean, at_key))
            elif isinstance(value, (list, tuple)):
                clean = [None] * len(value)
                for i in range(len(value)):
                    waiting.append((value[i], clean, i))
            into[at] = clean
        return top[0]

    def _without(self, text: str, what: str, event: dict) -> str:
        """Return *text* without secrets.  Raises as ``_clean_value``."""
        data = text.encode()
        found = self._secrets_in(data)
        if not found:
            return text
        for _, _, kind in found:
            _note(event, "secret:" + kind)
        if self._leaks[_LEAK_ACTION] == BLOCK:
            raise PolicyDenied(
                "%s a secret (%s)" % (what, found[0][_KIND]),
                "",
                {"action": "deny", "found": event["found"]},
            )
        if self._leaks[_LEAK_ACTION] == WARN:
            return text
        from clawlite.scan.leaks import redact

        return str(redact(data, found), "utf-8")


def _note(event: dict, what: str):
    found = event.get("found")
    if found is None:
        found = event["found"] = []
    if what not in found:
        found.append(what)
