"""Numbers in a sentence, with their units: digits, number words of four languages, fractions.

A value is taken as it was said: 500 stays 500 where 60 are the most, and is then refused.
"""

import re
from collections import namedtuple
from fractions import Fraction

from clawlite.linux.local.sentence import fold

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_OTHER = {
    "null": 0, "eins": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7,
    "acht": 8, "neun": 9, "zehn": 10, "elf": 11, "zwölf": 12, "fünfzehn": 15, "zwanzig": 20,
    "dreissig": 30, "vierzig": 40, "fünfzig": 50, "sechzig": 60, "siebzig": 70, "achtzig": 80,
    "neunzig": 90, "hundert": 100, "deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "sept": 7,
    "huit": 8, "neuf": 9, "dix": 10, "onze": 11, "douze": 12, "quinze": 15, "vingt": 20,
    "trente": 30, "quarante": 40, "cinquante": 50, "soixante": 60, "cent": 100, "dos": 2,
    "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8, "nueve": 9, "diez": 10,
    "once": 11, "doce": 12, "quince": 15, "veinte": 20, "treinta": 30, "cuarenta": 40,
    "cincuenta": 50, "sesenta": 60, "cien": 100, "dozen": 12,
}  # fmt: skip
_SMALL = {word: value for value, word in enumerate(_ONES.split())}
_SMALL.update({word: 20 + 10 * at for at, word in enumerate(_TENS.split())}, **_OTHER)
_ARTICLES = {"a", "an", "one", "ein", "eine", "einen", "einer", "un", "une", "una"}
_HALF = {"half", "halbe", "halben", "halb", "demi", "demie", "media", "medio", "halfway", "mitad"}
_QUARTER = {"quarter", "viertel", "quart", "cuarto"}
_TIMES = {"once": 1, "twice": 2, "thrice": 3, "einmal": 1, "zweimal": 2, "dreimal": 3}
_HUNDREDS = {"hundred": 100, "thousand": 1000}
_WHOLE = {"fully", "completely", "ganz", "vollständig", "complètement", "completamente", "full",
          "all the way", "entirely", "totally"}  # fmt: skip
_Unit = namedtuple("_Unit", "dimension factor")  # factor times the first one of its dimension
_UNITS = {}
for _dimension, _factor, _names in (
    ("time", Fraction(1, 1000), "ms millisecond milliseconds millis millisekunden"),
    ("time", 1, "s sec secs second seconds sekunde sekunden seconde secondes segundo segundos"),
    ("time", 60, "min mins minute minutes minuten minuto minutos"),
    ("time", 3600, "h hr hrs hour hours stunde stunden heure heures hora horas"),
    ("time", 86400, "day days tag tage tagen jour jours día días"),
    ("part", 1, "% percent percents pct prozent pourcent porciento"),
    ("heat", 1, "° °c c celsius degree degrees deg grad degré degrés grado grados"),
    ("mass", 1, "g gram grams gramme grammes gramm gramos gramo"),
    ("mass", 1000, "kg kilo kilos kilogram kilograms kilogramm"),
    ("volume", 1, "ml milliliter milliliters millilitre millilitres"),
    ("volume", 10, "cl centiliter centilitre"),
    ("volume", 1000, "l liter liters litre litres litro litros"),
    ("length", 1, "mm millimeter millimeters millimetre millimetres"),
    ("length", 10, "cm centimeter centimeters centimetre centimetres zentimeter"),
    ("length", 1000, "m meter meters metre metres"),
    ("count", 1, "times time x mal fois veces beeps beep pieces steps rounds"),
    ("turn", 1, "rpm"),
    ("bright", 1, "lux lumen lumens"),
    ("power", 1, "w watt watts"),
    ("power", 1000, "kw kilowatt"),
    ("other", 1, "fahrenheit °f kelvin"),
):
    for _name in _names.split():
        _UNITS[_name] = _Unit(_dimension, Fraction(_factor))
_WORD = re.compile(
    r"(?P<number>(?:(?<![\w.,-])|(?<=[^\W\d_]))[-+−]?\d+(?:[.,]\d+)?(?![\d]))|(?P<word>°[cf]?|%|[^\W\d_]+(?:'[^\W\d_]+)?)"
    r"|(?P<other>\S)"
)
_MINUS = {"minus", "moins", "menos", "negative", "below"}
_AND = {"and", "und", "et", "y"}


class _Token:
    """What stands between two blanks.

    kind  "number", "word" or "other"
    """

    __slots__ = ("kind", "word", "start", "end")

    def __init__(self, match):
        self.kind, self.word = match.lastgroup, match.group()
        self.start, self.end = match.span()


class Quantity:
    """A number that was said.

    value      Fraction
    unit       of ``_UNITS``, or ""
    start, end where it stands in the sentence
    """

    def __init__(self, value, unit: str, start: int, end: int):
        self.value, self.unit, self.start, self.end = value, unit, start, end

    def as_unit(self, unit: str):
        """Return the value in *unit*; None when it is of another kind."""
        if not self.unit or not unit:
            return self.value
        mine, other = _UNITS[self.unit], _UNITS[unit]
        return (
            self.value * mine.factor / other.factor if mine.dimension == other.dimension else None
        )


def find_quantities(text: str) -> list:
    """Return the ``Quantity`` of each number in *text*, in their order."""
    tokens = [_Token(match) for match in _WORD.finditer(fold(text))]
    found, at = [], 0
    while at < len(tokens):
        value, after = _read(tokens, at)
        if value is None:
            at += 1
            continue
        unit, end = _read_unit(tokens, after)
        start = tokens[at].start
        if found and unit and found[-1].unit and _joins(found[-1], unit, text, start):
            last = found[-1]  # an hour and 20 minutes
            last.value += value * _UNITS[unit].factor / _UNITS[last.unit].factor
            last.end = tokens[end - 1].end
        else:
            found.append(Quantity(value, unit, start, tokens[end - 1].end))
        at = end
    return found


def _joins(last, unit: str, text: str, start: int) -> bool:
    between = fold(text)[last.end : start].strip(" ,")
    same = _UNITS[last.unit].dimension == _UNITS[unit].dimension == "time"
    return same and between in {"", *_AND} and _UNITS[unit].factor < _UNITS[last.unit].factor


def _read(tokens: list, at: int) -> tuple:
    """Return (value, place after it) of the number at *at*, or (None, at)."""
    word = tokens[at].word
    follows = tokens[at + 1].word if at + 1 < len(tokens) else ""
    if tokens[at].kind == "number":
        return Fraction(word.replace("−", "-").replace(",", ".")), at + 1
    if word in _MINUS and at + 1 < len(tokens):
        value, after = _read(tokens, at + 1)
        return (None if value is None else -value), (at if value is None else after)
    if word in _ARTICLES and (follows in _HALF or follows in _QUARTER or follows == "dozen"):
        return _read(tokens, at + 1)
    if word in _HALF or word in _QUARTER:
        return _read_part(tokens, at, Fraction(1, 2 if word in _HALF else 4))
    if word in _TIMES and not (word == "once" and follows in ("it", "the", "there")):
        return Fraction(_TIMES[word]), at + 1
    if word in _ARTICLES and follows in _HUNDREDS:
        value, after = _read_rest(tokens, at + 1, _HUNDREDS[follows])
        return Fraction(value), after
    if word in _ARTICLES:
        if follows in _UNITS and follows not in ("c", "time", "l", "m", "s", "x", "beep", "w", "h"):
            return Fraction(1), at + 1
        return (Fraction(1), at + 1) if word == "one" else (None, at)
    return _read_words(tokens, at)


def _read_part(tokens: list, at: int, part) -> tuple:
    """Return what *part* at *at* means: half an hour, or half of something, 50 percent."""
    after = at + 1
    if after < len(tokens) and tokens[after].word == "of":
        after += 1
    if after < len(tokens) and tokens[after].word in _ARTICLES:
        after += 1
    if after < len(tokens) and tokens[after].word in _UNITS:
        return part, after
    return part * 100, at + 1


def _read_words(tokens: list, at: int) -> tuple:
    word = tokens[at].word
    if word not in _SMALL:
        return None, at
    value, after = _SMALL[word], at + 1
    if 20 <= value < 100 and after < len(tokens):
        joined = after + (tokens[after].word == "-")
        if joined < len(tokens) and 0 < _SMALL.get(tokens[joined].word, 0) < 10:
            value, after = value + _SMALL[tokens[joined].word], joined + 1
    if after < len(tokens) and tokens[after].word in _HUNDREDS:
        value, after = _read_rest(tokens, after, value * _HUNDREDS[tokens[after].word])
    return Fraction(value), after


def _read_rest(tokens: list, at: int, value: int) -> tuple:
    """Return (value, place after it) of hundreds at *at* and what follows: and fifty."""
    after = at + 1
    rest = after + (after < len(tokens) and tokens[after].word in _AND)
    if rest < len(tokens) and tokens[rest].word in _SMALL:
        more, end = _read_words(tokens, rest)
        if more is not None and more < 100:
            return value + int(more), end
    return value, after


def _read_unit(tokens: list, at: int) -> tuple:
    """Return (unit, place after it) of what stands at *at*, or ("", at)."""
    if at < len(tokens):
        word = tokens[at].word
        if (
            word == "degrees"
            and at + 1 < len(tokens)
            and tokens[at + 1].word in ("fahrenheit", "f")
        ):
            return "fahrenheit", at + 2
        if word in ("percent", "°", "degrees", "grad") and at + 1 < len(tokens):
            more = tokens[at + 1].word in ("c", "celsius")
            return word, at + 1 + more
        if word in ("per", "pour", "por") and tokens[at + 1 : at + 2]:
            if tokens[at + 1].word in ("cent", "ciento"):
                return "percent", at + 2
        if word in _UNITS:
            return word, at + 1
    return "", at


def unit_of(name: str, description: str) -> str:
    """Return the unit in which the argument *name* is meant, or ""."""
    for part in re.split(r"[^a-z%°]+", fold(name)):
        if len(part) > 1 and part in _UNITS:
            return part
    if fold(name).endswith("_ms"):
        return "ms"
    found = [w for w in re.findall(r"[^\W\d_]+|%", fold(description)) if w in _UNITS and len(w) > 1]
    found += ["percent"] if "%" in description else []
    kinds = {_UNITS[unit].dimension for unit in found}
    return found[0] if len(kinds) == 1 else ""


def is_whole(text: str) -> bool:
    """Return whether the sentence says that something is to be done as far as it goes."""
    said = fold(text)
    return any(re.search(r"\b%s\b" % word, said) for word in _WHOLE)
