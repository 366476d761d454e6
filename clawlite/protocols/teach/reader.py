"""What a sentence of a person teaches: the grammar (grammar.py) reads when, and the agent's
patterns, the names of its tools or a local model read what to do.  It holds nothing of a
conversation.

It runs beside the agent on Linux, and at the gateway of a board.
"""

from clawlite.core.base.errors import ProviderError
from clawlite.core.image.pins import INPUT, PULL_DOWN, PULL_UP
from clawlite.core.rules import table

ALL, WHOLE, NONE = range(3)
ADD, LIST, FORGET, REMIND = OWN = ("add-rule", "list-rules", "forget-rule", "remind")
# a sentence without one of these words teaches nothing, and is not looked at any further
_HINTS = (
    "every each when whenever if at in on tomorrow today tonight daily hourly weekdays once as "
    "remind unless below above under over jeden jede täglich wenn sobald um morgen heute erinnere "
    "alle montags dienstags mittwochs donnerstags freitags samstags sonntags werktags falls nachts "
    "tous toutes chaque quand si lorsque demain dès à rappelle rappelle-moi aujourd'hui todos "
    "todas cada cuando mañana hoy a recuérdame recuerdame sunrise sunset before after between "
    "< > half mondays tuesdays wednesdays thursdays fridays saturdays sundays never don't not nicht"
).split()
# in a pattern of the agent's own, these say that it means such a sentence itself
_BEGINNINGS = (
    "every each when whenever if at tomorrow today tonight daily once remind unless below above "
    "jeden wenn um morgen erinnere chaque quand demain tous cada cuando mañana todos"
).split()
# words of a place or a number as often as of a time: alone they are no sign of a rule
_WEAK = "at in on as um à a hoy heute".split()
_ANSWER_WORDS = 8  # of a message that completes a sentence
_NO = ("n", "no", "cancel", "never mind", "nothing", "nein", "non")
_READS = ("read", "get", "show", "measure", "sensor", "check")
_LONGER = {"temp": "temperature", "hum": "humidity", "lux": "light", "moist": "moisture"}


class Reader:
    """What reads sentences for one agent.

    image         ``image.Image``
    propose       function(clause) -> ``clause.Proposal`` or None
    reads         what people say the grammar reads: ALL, WHOLE (sentences that it understands
                  whole; a model answers the others) or NONE
    get_readings  function() -> rows of readings (core/rules/table.py)
    now           function() -> (day since 1970, minute of the day), there, or None
    get_local     function() -> the agent's model builtin:local, whose ``propose(text, is_clause)``
                  is a generator of effects that returns a dict; or None
    """

    def __init__(self, image, propose, reads: int, get_readings, now, get_local=None) -> None:
        self._image, self._propose, self._reads = image, propose, reads
        self._get_readings, self._now, self._get_local = get_readings, now, get_local

    def hear(self, text: str, before, is_form: bool):
        """Return (row, what is said in its place, the sentence that the next message may complete)
        of a person's message; for one that teaches nothing (None, "", None).  A generator of
        effects.

        before   the sentence that *text* may complete, or None
        is_form  it was written behind ``/teach``
        """
        if before is not None and text.lower().strip(" .!") in _NO:
            return None, "Then nothing is taught.", None
        row, said = yield from self.read(text, before, is_form)
        if row is not None or not said or not is_form and self._reads != ALL:
            return row, "", None
        is_part = before is not None and len(text.split()) <= _ANSWER_WORDS
        whole = "%s, %s" % (before, text) if is_part else text
        return None, said, whole if said.endswith("?") else None

    def read(self, text: str, before, is_asked: bool):
        """Return (the row that a sentence teaches, "") or (None, what has to be asked first); for
        another text (None, "").  A generator of effects.
        """
        words = text.lower().replace(",", " ").replace("?", " ?").split()
        if before is not None and len(words) <= _ANSWER_WORDS and not self._is_order(text):
            found = self._parse("%s, %s" % (before, text))
            if found is None or found.question:
                found = self._parse("%s, %s" % (before, _as_time(words)))
            if found is not None and not found.question:
                return (yield from self._complete(found))
        if self._reads == NONE and not is_asked or len(text) > 500 or not self._is_hinted(words):
            return None, ""
        found = self._parse(text)
        if found is None or not is_asked and (self._is_pattern(text) or self._is_own(text, words)):
            return None, ""
        return (yield from self._complete(found))

    @staticmethod
    def _is_hinted(words: list) -> bool:
        return not set(words).isdisjoint(_HINTS)

    def _is_own(self, text: str, words: list) -> bool:
        """Return whether a pattern of the agent's own takes all of *text*, and nothing but a weak
        word speaks for a rule: "look at 4" names no time, "look at 4:00" does.
        """
        from clawlite.core.providers.reflex import ANY

        hints = set(words).intersection(_HINTS).difference(_WEAK)
        has_time = any(":" in word or word in ("am", "pm", "o'clock", "uhr") for word in words)
        pattern = None if hints or has_time else self._find_pattern(text)
        return pattern is not None and ANY not in pattern

    def _is_order(self, text: str) -> bool:
        """Return whether a pattern of the agent's own takes *text*, which then answers nothing."""
        from clawlite.core.image.image import REFLEX
        from clawlite.core.providers.reflex import Reflex

        return Reflex(self._image.section(REFLEX) or []).fits(text)

    def _is_pattern(self, text: str) -> bool:
        """Return whether a pattern of the agent's own means *text*: the first that fits has one of
        the words that begin a rule, and does not just take it for any word.
        """
        from clawlite.core.providers.reflex import ANY, SLOT

        pattern = self._find_pattern(text) or ()
        fixed = [token for token in pattern if token != ANY and token[0] != SLOT]
        return any(not set(_BEGINNINGS).isdisjoint(token) for token in fixed)

    def _find_pattern(self, text: str) -> list | None:
        """Return the first pattern of the agent's own that *text* fits, or None."""
        from clawlite.core.image.image import REFLEX
        from clawlite.core.providers.reflex import Sentence, match

        message = Sentence(text)
        for patterns, _ in self._image.section(REFLEX) or ():
            for pattern in patterns:
                if match(pattern, 0, message, 0) is not None:
                    return pattern
        return None

    def _parse(self, text: str):
        from clawlite.protocols.teach.grammar import parse

        return parse(text, self._scene())

    def _scene(self):
        from clawlite.core.teach.draft import rows_of_pins
        from clawlite.protocols.teach.grammar import Scene

        names = []
        for record in self._get_readings():
            name = record[table.NAME]
            calls = [name.split("_"), [name]]
            tool = [one for one in (record[table.TOOL] or "").split("-") if one not in _READS]
            calls += [tool] if tool else []
            calls += [[record[table.FIELD]]] if record[table.FIELD] else []
            names.append((name, [one for call in calls for one in (call, _long(call)) if one]))
        kinds = (INPUT, PULL_UP, PULL_DOWN)
        pins = {name: kind for name, kind, _ in rows_of_pins(self._image) if kind in kinds}
        return Scene(names, pins, self._now)

    def _complete(self, found):
        """Return (row, "") of what the grammar has *found*, or (None, what has to be asked); a
        generator of effects.
        """
        from clawlite.protocols.teach.say_clause import describe_beginning, read_saying

        if found.question:
            return None, found.question
        row = dict(found.row)
        if found.text is not None:
            row["say"] = "Reminder: " + (found.text or describe_beginning(row))
            return row, ""

        proposal = self._propose(found.clause)
        if self._get_local and (proposal is None or proposal.question):
            proposal = yield from self._ask_local(found.clause, proposal)
        if proposal is None or proposal.tool is None:
            said = read_saying(found.clause, row, self._get_readings())
            if said:
                row["say"] = said
                return row, ""
        if proposal is None:
            names = [name for name in self._image.names if name not in OWN]
            return None, 'I know no tool for "%s". Tools here: %s.' % (
                found.clause[:80],
                ", ".join(names) or "none",
            )
        if proposal.question or proposal.tool is None:
            return None, proposal.question
        row["call"] = proposal.tool
        if proposal.arguments:
            row["arguments"] = proposal.arguments
        return row, ""

    def _ask_local(self, clause: str, instead):
        """Return what the agent's local model makes of *clause*, *instead* where it makes nothing
        of it; a generator of effects.
        """
        from clawlite.protocols.teach.clause import Proposal

        model = self._get_local()
        try:
            found: dict = (yield from model.propose(clause, True)) if model else {"kind": "nothing"}
        except ProviderError:
            return instead
        calls = found.get("calls") or []
        if found["kind"] in ("act", "ask") and len(calls) == 1:
            [(tool, arguments)] = calls
            question = found["text"] if found.get("missing") else ""
            return Proposal(tool, arguments, found["confidence"], question)
        if found["kind"] == "refuse" or len(calls) > 1:
            text = found["text"] if len(calls) < 2 else "One rule calls one tool: make two of it."
            return Proposal(None, {}, 0.0, text)
        return instead


def _long(call: list) -> list:
    """Return the words of a reading's name without abbreviations."""
    longer = [_LONGER.get(one, one) for one in call]
    return longer if longer != call else []


def _as_time(words: list) -> str:
    """Return an answer to "at what time?" as the sentence would have it."""
    text = " ".join(words).strip(" .!")
    if text in ("every day", "daily", "each day", "jeden tag"):
        return text
    return "once" if text in ("once", "just once") else "at " + text
