"""The provider builtin:local (CKP 5.2, ``protocol: custom``): a sentence becomes a tool call, a
question back, or it is passed on to the next provider.

1. It sees a person's message alone, never what a tool, a page or another agent says: nothing of a
   result is given to the model.
2. A question goes to the person of that conversation, once, for 60 s, and never while another one
   waits there.  Who cannot answer (a schedule, a webhook, a queue, an agent) is asked nothing.
3. A suggestion that was confirmed is that person's own request: policy and approval follow.
"""

from clawlite.core.base.effect import CLOSE, OPEN, RECEIVE
from clawlite.core.base.errors import ClawError, ProviderError
from clawlite.core.providers.provider_order import LOCAL, PASSES
from clawlite.core.turns.turn import Reply

ASKED_MS = 60000
SILENCE_MS = 120000  # model_client.py is sooner
_UNITS = (
    ("percent", " %"),
    ("humidity", " %"),
    ("celsius", " °C"),
    ("temperature", " °C"),
    ("degrees", "°"),
    ("pressure", " hPa"),
    ("seconds", " s"),
    ("minutes", " min"),
    ("hours", " h"),
    ("grams", " g"),
    ("millivolts", " mV"),
    ("volts", " V"),
    ("lux", " lx"),
)

_OWN_WORDS = ("percent", "celsius", "seconds", "minutes", "hours", "grams", "lux")


class LocalProvider:
    """One row of the image's PROVIDERS whose API is ``LOCAL``.

    name  of the provider;  say: {tool: template of what is said after it}
    now_ms  function() -> monotonic milliseconds
    offer  ``offer.Offer``: the model may be fetched; or None
    """

    def __init__(self, name: str, say: dict, now_ms, offer=None):
        self.name, self._say, self._now_ms, self._offer = name, say, now_ms, offer

    def ask(self, history, meter, most=None):
        """A generator of effects that returns a ``Reply``.

        Its effect OPEN has the scheme LOCAL, this provider's name, and one part: a dict for
        model_process.py.  Raises ``ProviderError``.
        """
        if history.is_nested or most is not None:
            raise ProviderError(
                "%s calls tools, and writes no text" % self.name,
                "declare a second provider for what writes texts",
            )
        last = history.turn[-1]
        if last.role == "tool":
            return Reply(self._tell(history.turn), [])
        waits, history.question = history.question, None
        if waits is not None and not waits.fits(history, self._now_ms()):
            waits = None
        if self._offer is not None:
            text = self._offer_model(history, last.text, waits)
            if text:
                return Reply(text, [])
        if waits is not None and waits.calls:
            asked = {"do": "answer", "text": last.text, "calls": waits.calls}
            found = yield from self.reach(dict(asked, missing=waits.missing))
            if found["kind"] != "nothing":
                return self._reply(found, history)
        found = yield from self.propose(last.text)
        return self._reply(found, history)

    def _offer_model(self, history, text: str, waits):
        """Return what is said about a model that is not here, or ""."""
        if waits is not None and not waits.calls:
            return self._offer.answer(text)
        asked = self._offer.question(history.speaker)
        if asked:
            due_ms = self._now_ms() + ASKED_MS
            history.question = Question({"calls": [], "missing": ""}, history.speaker, due_ms)
        return asked

    def propose(self, text: str, is_clause: bool = False):
        """A generator of effects that returns what *text* asks for, as a dict: "kind": "act"
        ("calls", [[tool, arguments], ...], may run), "ask" ("text" is the question; "missing" names
        the argument that it asks for, or is ""), "nothing", "rule" (it speaks of a time or a
        condition) or "refuse" ("text" says why); "confidence" 0 .. 1.

        is_clause  *text* is the part of a rule that says what to do, without its trigger
        Nothing has run.  Raises ``ProviderError``.
        """
        return (yield from self.reach({"do": "propose", "text": text, "clause": is_clause}))

    def reach(self, asked: dict):
        """A generator of effects that returns model_process.py's answer to *asked*.  Raises
        ``ProviderError``.
        """
        yield (OPEN, LOCAL, self.name, 0, [asked], 0)
        try:
            done, value = yield (RECEIVE, SILENCE_MS)
        except Exception:  # not when the turn is dropped: nobody carries out effects then
            yield (CLOSE,)
            raise
        yield (CLOSE,)
        if not done:
            value.message = "provider %s: %s" % (self.name, value.message)
            raise value
        return value

    def _reply(self, found: dict, history) -> Reply:
        kind, text = found["kind"], found["text"]
        if kind == "act":
            return Reply("", [("", name, given, "") for name, given in found["calls"]])
        if kind == "ask" and history.speaker is not None:
            history.question = Question(found, history.speaker, self._now_ms() + ASKED_MS)
            return Reply(text, [])
        if kind == "refuse":
            return Reply(text, [])
        if kind == "ask":
            text = "That is not clear enough to do it without asking a person: %s" % text
        return Reply(text or "I did not understand that.", [], False, PASSES)

    def _tell(self, turn: list) -> str:
        """Return what is said after the calls of *turn*."""
        said = []
        for message in turn:
            if message.role == "tool":
                result = message.result
                if isinstance(result, ClawError) or result.is_error:
                    said.append(message.text)
                else:
                    said.append(put_in_words(self._say.get(message.tool), message))
        return "\n".join(said)


class Question:
    """A question back that waits for its answer.

    found   the proposal that asks it; without calls it is that of offer.py
    asker   who was asked (``History.speaker``);  due_ms: until when
    """

    def __init__(self, found: dict, asker: str, due_ms: int):
        self.calls, self.missing = found["calls"], found["missing"]
        self._asker, self._due_ms = asker, due_ms

    def fits(self, history, now_ms: int) -> bool:
        """Return whether the present message of *history* may answer it."""
        return self._asker == history.speaker and now_ms < self._due_ms


def put_in_words(template, message) -> str:
    """Return what a person reads of the result *message* (``turn.Message``) of a call.

    template  text with {field} for fields of the result and {result} for all of it, or None
    """
    value = message.result.value
    if template:
        text = template.replace("{result}", message.text)
        for name in sorted(value) if isinstance(value, dict) else ():
            text = text.replace("{%s}" % name, show(value[name]))
        return text
    if isinstance(value, dict) and value and all(_is_plain(one) for one in value.values()):
        return ", ".join([_show_field(name, value[name]) for name in value]) + "."
    return message.text or "%s: done." % message.tool


def show(value) -> str:
    """Return *value* for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "%g" % value
    return "nothing" if value is None else str(value)


def _is_plain(value) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def _show_field(name: str, value) -> str:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    unit = next((sign for word, sign in _UNITS if number and name.lower().endswith(word)), "")
    words = name.replace("_", " ")
    if unit and words in _OWN_WORDS:
        return show(value) + unit
    return "%s: %s%s" % (words, show(value), unit)
