"""Arguments traced to the sentence: what was not said is not given to a tool.

1. A number is taken from the sentence with its unit, never from the model; a text and a word of a
   list must have been said.
2. What is required and was not said is missing: a person is asked for it.
3. What was said and fits nothing (a second number) makes a call doubtful.
"""

import re

from clawlite.linux.local import quantities
from clawlite.linux.local.sentence import fold

# Words of opposite meaning, each pair with what people say in four languages.
_PAIRS = (
    ("on start enable enabled activate begin resume run an ein einschalten aktiviere anschalten "
     "allume active démarre enciende activa prende arranca starte",
     "off stop disable disabled deactivate halt pause end quit aus ab ausschalten stopp "
     "stoppe "
     "deaktiviere éteins arrête désactive apaga desactiva para detén"),
    ("open opened unlock uncover auf öffne öffnen aufmachen ouvre ouvert abre abierto out raus",
     "close closed shut lock zu schliesse schliess schliessen zumachen ferme fermé cierra cerrado"),
    ("up raise lift higher increase hoch rauf herauf monte lève sube levanta",
     "down lower reduce decrease drop runter herunter senke baisse descends baja"),
    ("warm warmer heat hot hotter wärmer heize heiss chauffe chaud calienta caliente",
     "cool cooler cold colder chill kühle kälter kühl refroidis froid enfría frío"),
    ("bright brighter light heller hell", "dim dark darker dunkler dunkel"),
    ("high fast full", "low slow empty"),
    ("true yes", "false no"),
)  # fmt: skip
_ON_OFF = 0  # number of its pair
POLES = {}
for _number, _pair in enumerate(_PAIRS):
    for _side, _line in enumerate(_pair):
        for _word in _line.split():
            POLES[_word] = (_number, _side)
_FRAME = set(
    "the a an to on in at for of my our this that it please write show put say text line message "
    "note der die das den dem ein eine auf an aufs bitte schreib schreibe zeig zeige le la les un "
    "une sur écris affiche el los las una en escribe pon muestra".split()
)
_QUOTED = re.compile(r"[\"“”„«»](.+?)[\"“”„«»]|(?<!\w)'(.+?)'(?!\w)")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


class Grounded:
    """What the sentence says of a call.

    arguments  what was said
    missing    names of required arguments that were not
    doubts     list of str: why a person must be asked
    wrong      str: what cannot be, or ""
    """

    def __init__(self):
        self.arguments, self.missing, self.doubts, self.wrong = {}, [], [], ""


def words_of(text: str) -> list:
    """Return the words of *text*, folded."""
    return _WORD.findall(fold(text))


def ground(tool: dict, given: dict, text: str, examples=()) -> Grounded:
    """Return what *text* says of a call of *tool*.

    given     the arguments that the model found
    examples  sentences that mean the tool
    """
    found = Grounded()
    schema = tool["parameters"]
    properties, required = schema.get("properties", {}), schema.get("required", [])
    said = _Said(text, tool, examples)
    for name in sorted(properties, key=lambda name: (_order(properties[name]), name)):
        rule = properties[name]
        value = said.value(name, rule, given.get(name), found)
        if value is not None:
            found.arguments[name] = value
        elif name in required and not found.wrong:
            found.missing.append(name)
    if said.numbers and not found.missing:
        left = ", ".join(text[one.start : one.end] for one in said.numbers)
        found.doubts.append("nothing takes %s" % left)
    return found


def _order(rule: dict) -> int:
    """Numbers with a unit choose first, texts last: a number in a text belongs to it."""
    if "enum" in rule or rule.get("type") == "boolean":
        return 1
    return 0 if rule.get("type") in ("integer", "number") else -1


class _Said:
    """A sentence whose numbers are used up one by one."""

    def __init__(self, text: str, tool: dict, examples):
        self.text, self.words = text, words_of(text)
        self.numbers = quantities.find_quantities(text)
        own = set(words_of(tool["name"].replace("_", " ").replace("-", " ")))
        counts = {}
        for line in examples:
            for word in set(words_of(line)):
                counts[word] = counts.get(word, 0) + 1
        self._frame = own | {word for word, count in counts.items() if count > 1}
        self._frame |= set(words_of(tool["description"]))
        self._bare = [word for word in self.words if word not in own or word in POLES]

    def value(self, name: str, rule: dict, given, found):
        """Return the value of the argument *name*, None when it was not said."""
        if "enum" in rule:
            return self._choice(rule["enum"], given)
        kind = rule.get("type")
        if kind == "boolean":
            return self._switch(given)
        if kind in ("integer", "number"):
            return self._number(name, rule, given, found)
        return self._text(given, rule, found)

    def _number(self, name: str, rule: dict, given, found):
        unit = quantities.unit_of(name, rule.get("description", ""))
        fits = [(one, one.as_unit(unit)) for one in self.numbers]
        fits = [(one, value) for one, value in fits if value is not None]
        exact = [(one, value) for one, value in fits if one.unit and unit] or fits
        if len(exact) > 1:
            meant = [(one, value) for one, value in exact if value == given]
            found.doubts.append("several numbers")
            exact = meant[:1]
        if not exact:
            if given is not None and quantities.is_whole(self.text) and not self.numbers:
                if given in (rule.get("minimum"), rule.get("maximum")):
                    found.doubts.append("%s was not said" % name)
                    return given
            return None
        one, value = exact[0]
        self.numbers.remove(one)
        value = int(value) if value.denominator == 1 else float(value)
        least, most = rule.get("minimum"), rule.get("maximum")
        whole = rule.get("type") == "integer"
        if (
            whole and isinstance(value, float)
            or least is not None and value < least
            or most is not None and value > most
        ):  # fmt: skip
            found.wrong = "%s %s, and %s was said" % (name, _range(rule), show(value))
            return None
        return value

    def _choice(self, choices: list, given):
        """Return the one of *choices* that was said, None for none or several."""
        exact = [one for one in choices if self._has(str(one))]
        if len(exact) > 1:
            longest = max(exact, key=lambda one: len(str(one)))
            exact = [one for one in exact if one not in str(longest) or one == longest]
        if len(exact) == 1:
            return exact[0]
        if exact:
            return None
        poles = [POLES[word] for word in self._bare if word in POLES]
        fits = []
        for one in choices:
            mine = [POLES[word] for word in words_of(str(one)) if word in POLES]
            if any(pole in poles for pole in mine):
                fits.append(one)
        return fits[0] if len(fits) == 1 else None

    def _find_frame(self) -> str:
        quoted = _QUOTED.search(self.text)
        if quoted:
            return (quoted.group(1) or quoted.group(2)).strip()
        tokens = list(re.finditer(r"\S+", self.text))
        while tokens and self._frames(tokens[0].group()):
            tokens.pop(0)
        while tokens and self._frames(tokens[-1].group()):
            tokens.pop()
        return self.text[tokens[0].start() : tokens[-1].end()].strip(" .,:!?") if tokens else ""

    def _frames(self, token: str) -> bool:
        return all(word in self._frame or word in _FRAME for word in words_of(token))

    def _has(self, choice: str) -> bool:
        wanted = [_stem(word) for word in words_of(choice.replace("_", " ").replace("-", " "))]
        stems = [_stem(word) for word in self.words]
        size = len(wanted)
        return bool(size) and any(
            stems[at : at + size] == wanted for at in range(len(stems) - size + 1)
        )

    def _switch(self, given):
        poles = [POLES[word] for word in self.words if word in POLES]
        sides = {side for number, side in poles if number == _ON_OFF}
        return None if len(sides) != 1 else sides == {0}

    def _text(self, given, rule: dict, found):
        """Return the text that was said: between marks of quotation, or what is left of the
        sentence without the words that frame it in the examples; else *given*, as it stands in
        the sentence.  None when there is none.
        """
        framed = self._find_frame()
        if framed and framed != given:
            found.doubts.append("where the text begins and ends")
        given = framed or given
        if not isinstance(given, str) or not words_of(given):
            return None
        parts = [re.escape(word) for word in given.split()]
        match = re.search(r"\s+".join(parts), self.text, re.IGNORECASE)
        if match is None:
            return None
        self.numbers = [
            one for one in self.numbers if one.end <= match.start() or one.start >= match.end()
        ]
        return match.group()


def _stem(word: str) -> str:
    """Return *word* without an English ending."""
    for end in ("ing", "ed", "es", "s", "e"):
        if word.endswith(end) and len(word) - len(end) >= 3:
            return word[: -len(end)]
    return word


def contradicts(tool: dict, text: str, arguments: dict, examples: list) -> bool:
    """Return whether *text* has a word whose opposite, and not itself, is what *tool* does.

    arguments  of the call: on and off as values speak for themselves
    examples   sentences that mean the tool
    """
    own = [tool["name"].replace("-", " ").replace("_", " "), tool["description"], *examples]
    own += [str(value) for value in arguments.values() if not isinstance(value, (int, float))]
    chosen = tool["parameters"].get("properties", {})
    own += [str(one) for rule in chosen.values() for one in rule.get("enum", ())]
    if any(rule.get("type") == "boolean" for rule in chosen.values()):
        own.append("on off")
    mine = {POLES[word] for line in own for word in words_of(line) if word in POLES}
    for word in words_of(text):
        pole = POLES.get(word)
        if pole and pole not in mine:
            number, side = pole
            if (number, 1 - side) in mine:
                return True
    return False


def complete(tool: dict, name: str, text: str):
    """Return (value, what is wrong) of the argument *name*, which *text* is an answer about."""
    rule, found = tool["parameters"]["properties"][name], Grounded()
    said = _Said(text, tool, ())
    if rule.get("type") == "string" and "enum" not in rule:
        return (text or None), ""
    value = said.value(name, rule, None, found)
    return value, found.wrong


def _range(rule: dict) -> str:
    least, most = rule.get("minimum"), rule.get("maximum")
    kind = "a whole number" if rule.get("type") == "integer" else "a number"
    if least is not None and most is not None:
        return "is %s from %s to %s" % (kind, show(least), show(most))
    if least is not None:
        return "is %s, at least %s" % (kind, show(least))
    return "is %s, at most %s" % (kind, show(most)) if most is not None else "is " + kind


def show(value) -> str:
    """Return *value* for people."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return "%g" % value if isinstance(value, float) else str(value)
