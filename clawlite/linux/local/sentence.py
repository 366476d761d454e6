"""What a sentence is, before any model sees it: its text made clean, and whether it denies, asks,
or speaks of a time or a condition.  English, German, French and Spanish.

1. A sentence that denies asks for nothing.
2. One that names a time or a condition is for rules ([teach]), never for the model as a whole.
3. One that asks may read; what has side effects needs a question back.
"""

import re
import unicodedata

MAX_TEXT = 200  # characters
ASKS_STATE, ASKS_WISH = "state", "wish"

_MARKS = re.compile(r"<[^<>]{0,40}>|\[/?[A-Z_]{2,20}\]|\{\{.{0,40}?\}\}")
_SPACE = re.compile(r"\s+")


def clean(text: str) -> str:
    """Return *text* without controls, marks of models (``<tool_call>``), and doubled spaces."""
    text = unicodedata.normalize("NFKC", text)
    text = "".join(c if unicodedata.category(c)[0] not in "CZ" else " " for c in text)
    before = None
    while before != text:  # what is left of one mark may be another one
        before, text = text, _MARKS.sub(" ", text)
    return _SPACE.sub(" ", text.replace("<", " ").replace(">", " ")).strip()


def fold(text: str) -> str:
    """Return *text* in lower case, with plain apostrophes."""
    return text.casefold().replace("’", "'").replace("ß", "ss")


def _words(*lines: str):
    return re.compile(r"(?<![\w'])(?:%s)(?![\w'])" % "|".join(" ".join(lines).split(" | ")))


_NEGATION = _words(
    "do not | don'?t | does not | doesn'?t | never | not | no longer | won'?t | must not",
    "| mustn'?t | shouldn'?t | can'?t | cannot | stop it | without | instead of | rather than",
    "| nicht | nie | niemals | kein | keine | keinen | keinem | ohne | statt",
    "| ne | n'\\w+ | jamais | sans | pas | nunca | sin",
    "| hör auf | arrête de | deja de",
)
_SPANISH_NO = re.compile(r"^[¡\s]*no \w+(?:e|es|a|as|o)\b(?= (?:el|la|los|las|un|una|nada|más)\b)")
_NOT_NEGATED = _words("why not | not only | ne pas oublier | warum nicht | pas mal | no idea")

_DAYS = (
    "monday | tuesday | wednesday | thursday | friday | saturday | sunday | weekends?"
    " | weekdays? | montags? | dienstags? | mittwochs? | donnerstags? | freitags? | samstags?"
    " | sonntags? | lundi | mardi | mercredi | jeudi | vendredi | samedi | dimanche | lunes"
    " | martes | miércoles | jueves | viernes | sábado | domingo"
)
_UNIT = (
    r"(?:s|secs?|seconds?|min|mins?|minutes?|h|hours?|days?|weeks?|sekunden?|minuten?|stunden?"
    r"|tagen?|secondes?|heures?|jours?|segundos?|minutos?|horas?|días?)"
)
_NUMBER = r"(?:\d+|an?|one|two|three|five|ten|half an?|einer|zwei|drei|fünf|zehn|une|dos|una)"
_TIME = _words(
    "when | whenever | as soon as | once it | unless | while | until | till | after | before",
    "| every | each | tomorrow | tonight | later | daily | hourly | weekly | noon | midnight",
    "| sunrise | sunset | dawn | dusk | in the (?:morning|evening|afternoon|night) | at night",
    "| this (?:morning|evening|afternoon) | next (?:week|month|day|hour|time) | yesterday",
    "| last (?:night|week) | in case | as long as | always | from now on | overnight | soon",
    "| wenn | falls | sobald | solange | bis | jeden | jede | jedes | morgen früh | heute abend",
    "| heute nacht | später | täglich | stündlich | nachdem | bevor | mittags? | abends",
    "| morgens",
    "| nachts | übermorgen | gestern | immer | sonnenaufgang | sonnenuntergang",
    "| quand | lorsque?(?:'\\w+)? | dès que? | jusqu'\\w+ | chaque | tous les | toutes les",
    "| demain",
    "| ce soir | plus tard | après | avant | midi | minuit | toujours | le matin",
    "| cuando | si | cada | todos los | todas las | hasta | mañana | después | antes | luego",
    "| esta noche | siempre | ayer | mediodía | medianoche | en cuanto | mientras",
    "|",
    _DAYS,
)
_MORGEN = re.compile(r"(?<!guten )\bmorgen\b")
_CLOCK = re.compile(
    r"\b(?:at|by|from|um|ab|gegen|à|vers|a las|a la|sobre las) (?:\d{1,2}(?::\d\d)?|"
    r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
    r"(?! ?(?:%|°|percent|degrees?|grad|prozent|pour|por|grados|degrés|[cfkg]\b|grams?|gramm))"
    r"(?! ?\d)(?=$|[\s,.!?]|[ap]m|h|uhr)"
)
_HOUR = re.compile(r"\b\d{1,2}(?::\d\d| ?(?:o'clock|uhr|[ap]\.?m\b)|h\d\d)")
_DELAY = re.compile(r"\b(?:in|within|dans|en) " + _NUMBER + " " + _UNIT + r"\b")
_CONDITION = re.compile(r"\b(?:if|si|s'il)\b")
_WHETHER = re.compile(
    r"\b(?:tell|see|check|know|show|say|look|find out|measure|test|ask)(?: me| us)?(?: please)? "
    r"if\b|\b(?:sais|dis|dites|regarde|vérifie|mira|dime|comprueba)(?:-moi)? (?:si|s'il)\b"
)
_ASKS_STATE = re.compile(
    r"^[¿¡\s]*(?:is|are|was|were|am|does|do|did|has|have|had|what|what's|whats|how|how's|why|who|"
    r"where|which|ist|sind|war|waren|hat|haben|habe|was|wie|warum|wieso|wer|wo|welche[rs]?|gibt|"
    r"geht|est-ce|est|sont|quel(?:le)?s?|comment|combien|pourquoi|qui|où|y a-t-il|qué|cómo|"
    r"cuánt[oa]s?|cuál|dónde|por qué|está|están|hay|es|son)\b(?!['’]?t\b)"
)
_ASKS_WISH = re.compile(
    r"^[¿¡\s]*(?:please )?(?:should|shall|can|could|would|will|may|might|must|how about|what about|"
    r"what if|do (?:you|we) (?:want|need|think)|do i (?:have|need) to|is it (?:time|ok|okay|fine)|"
    r"are you able|soll|sollen|sollte|sollten|kann|kannst|könntest|könnten|darf|muss|würdest|"
    r"willst|wie wäre|peux|pouvez|pourrais|pourriez|puis|dois|devrais|faut|veux|puedes|puede|"
    r"podrías|podría|debo|deberías|debería|quieres)\b"
)


def is_negated(text: str) -> bool:
    """Return whether the sentence says what is not to be done."""
    text = _NOT_NEGATED.sub(" ", fold(text))
    return bool(_NEGATION.search(text) or _SPANISH_NO.search(text))


def has_time(text: str) -> bool:
    """Return whether the sentence speaks of a time or a condition, other than now."""
    text = _QUOTED.sub(" ", fold(text))
    if _TIME.search(_WHETHER.sub(" ", text)) or _MORGEN.search(text) or _DELAY.search(text):
        return True
    return bool(
        _CLOCK.search(text) or _HOUR.search(text) or _CONDITION.search(_WHETHER.sub(" ", text))
    )


def question(text: str) -> str:
    """Return ASKS_STATE for a question about what is, ASKS_WISH for one about what to do, or ""."""
    text = fold(text)
    if _ASKS_WISH.search(text):
        return ASKS_WISH
    if _ASKS_STATE.search(text) or _WHETHER.search(text):
        return ASKS_STATE
    return ASKS_WISH if "?" in text else ""


# what is to be written down says nothing of when
_QUOTED = re.compile(r"[\"“„«][^\"”“»]*[\"”“»]")
_CLAUSES = re.compile(
    r"(?:,? (?:and then|and also|and|then|und dann|und|et puis|et|puis|y luego|y)|[;,.]) (?=\w)"
)


def split(text: str) -> list:
    """Return the clauses of *text*, each of which may ask for something."""
    return [part.strip() for part in _CLAUSES.split(text) if part.strip()]


_YES = {
    "y", "yes", "yeah", "yep", "sure", "ok", "okay", "please", "yes please", "do it", "j", "ja",
    "jo", "gerne", "bitte", "ja bitte", "oui", "d'accord", "o", "s", "sí", "si", "claro", "vale",
}  # fmt: skip
_NO = {"n", "no", "nope", "no thanks", "nein", "nö", "non", "never mind", "cancel"}


def read_yes_no(text: str):
    """Return True for a yes, False for a no, None for anything else."""
    said = fold(clean(text)).strip(" .!,")
    return True if said in _YES else False if said in _NO or not said else None
