"""Numbers, times of the day and durations in the words of a sentence (sentence_words.py).

Each function takes words and a place, and returns a ``Found``, or None.
"""

from collections import namedtuple

from clawlite.core.providers.reflex import NUMBER, read
from clawlite.core.teach.row_text import read_count

Found = namedtuple("Found", ("value", "end"))  # end: the place behind it

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_OTHERS = (
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze",
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once_ doce",
)
_SMALL = {"couple": 2, "dozen": 12, "fifteen": 15, "zwanzig": 20, "dreißig": 30, "vingt": 20}
DURATIONS = {
    "milliseconds": 1,
    "millisecond": 1,
    "ms": 1,
    "seconds": 1000,
    "minutes": 60000,
    "hours": 3600000,
    "days": 86400000,
    "day": 86400000,
    "weeks": 604800000,
}
# when a part of the day is said without an hour, nobody knows which hour was meant
PARTS = {
    "morning": (360, 720),
    "afternoon": (720, 1080),
    "evening": (1080, 1440),
    "night": (1320, 360),
}


def text_at(words: list, at: int) -> str:
    return words[at].text if 0 <= at < len(words) else ""


def read_number(words: list, at: int) -> Found | None:
    """Read "30", "0.5", "minus 2", "twenty five" or "an"."""
    sign, first = 1, text_at(words, at)
    if first in ("minus", "-") and at + 1 < len(words):
        sign, at, first = -1, at + 1, text_at(words, at + 1)
    value = read(NUMBER, first)
    if value is None and first in _TENS:
        value, one = 20 + 10 * _TENS.index(first), text_at(words, at + 1)
        if one in _ONES[1:10]:
            return Found(sign * (value + _ONES.index(one)), at + 2)
    if value is None:
        value = _count_of(first)
    return None if value is None else Found(sign * value, at + 1)


def _count_of(word: str) -> int | None:
    if word in _ONES:
        return _ONES.index(word)
    for words in _OTHERS:
        if word in words.split():
            return words.split().index(word)
    return _SMALL.get(word)


def read_duration(words: list, at: int) -> Found | None:
    """Read "5 minutes", "an hour" or "half an hour" as ms."""
    if text_at(words, at) == "half" and text_at(words, at + 1) in ("an", "a"):
        unit = DURATIONS.get(text_at(words, at + 2), 0)
        return Found(unit // 2, at + 3) if unit else None
    is_one = text_at(words, at) in ("a", "an", "one", "eine", "einer", "une", "una")
    found = Found(1, at + 1) if is_one else read_number(words, at)
    unit = DURATIONS.get(text_at(words, found.end), 0) if found else 0
    if not found or not unit or found.value < 0:
        return None
    ms, at = found.value * unit, found.end + 1
    if text_at(words, at) == "and" and unit > 1000:
        more = read_duration(words, at + 1)
        if more and more.value < unit:
            return Found(int(ms) + more.value, more.end)
        if [text_at(words, at + n) for n in (1, 2, 3)] == ["a", "half", ""]:
            return Found(int(ms) + unit // 2, at + 3)
    return Found(int(ms), at)


def read_time(words: list, at: int) -> Found | None:
    """Read a time of the day as its minute: "7", "7:30", "7 pm", "half past seven", "noon"."""
    first = text_at(words, at)
    if first == "the":
        at, first = at + 1, text_at(words, at + 1)
    if first in ("noon", "midnight"):
        return Found(720 if first == "noon" else 0, at + 1)
    if first in ("half", "quarter") and text_at(words, at + 1) in ("past", "to"):
        hour = _read_hour(words, at + 2)
        if hour is None:
            return None
        minute = 30 if first == "half" else 15
        minute = minute if text_at(words, at + 1) == "past" else -minute
        return _shift(words, (hour * 60 + minute) % 1440, at + 3)
    clock = first.replace("h", ":").replace(".", ":")
    before, colon, after = clock.partition(":")
    if colon:
        hour = read_count(before)
        past = read_count(after) if len(after) == 2 else None
        if hour is None or past is None or hour > 23 or past > 59:
            return None
        return _shift(words, hour * 60 + past, at + 1)
    hour = _read_hour(words, at)
    if hour is None:
        return None
    at += 1
    if text_at(words, at) in ("oclock", "hours"):  # 7 heures
        at += 1
        past = read_count(text_at(words, at))
        if past is not None and past < 60 and text_at(words, at + 1) not in DURATIONS:
            return Found(hour * 60 + past, at + 1)
    return _shift(words, hour * 60, at)


def _read_hour(words: list, at: int) -> int | None:
    hour = read_count(text_at(words, at))
    if hour is None:
        hour = _count_of(text_at(words, at))
    return hour if hour is not None and hour < 25 and hour != 24 else None


def _shift(words: list, minute: int, at: int) -> Found | None:
    """Return a ``Found`` with what follows the hour: "pm", "in the evening", "at night"."""
    after = text_at(words, at)
    if after in ("am", "pm"):
        if not 60 <= minute < 780:
            return Found(minute, at + 1) if minute >= 780 and after == "pm" else None
        return Found(minute % 720 + (720 if after == "pm" else 0), at + 1)
    steps = 2 if after == "at" else 3 if [after, text_at(words, at + 1)] == ["in", "the"] else 0
    part = text_at(words, at + steps - 1) if steps else ""
    if part in PARTS:
        return Found(move_to(part, minute), at + steps)
    return Found(minute, at)


def move_to(part: str, minute: int) -> int:
    """Return the minute of the day that *minute* means in a *part* of it: in the evening, 7 o'clock
    is 19:00.
    """
    least = {"afternoon": 60, "evening": 60, "night": 480}.get(part, 720)
    return minute + 720 if least <= minute < 720 else minute
