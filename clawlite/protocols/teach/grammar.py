"""The grammar of sentences that teach a rule: "every day at 7 water for 5 seconds, if the soil is
below 30, at most twice a day" becomes a row (draft.py), and the clause that says what to do.

1. What is understood is cut out of the sentence, part by part; what is left over is the clause.
   Nothing is dropped silently: a word of time or condition that is left over becomes a question.
2. A question of the person ("when did you water?") and an order for now ("water for 5 seconds")
   teach nothing.
3. The words are English ones here (sentence_words.py); the clause is as it was typed.
"""

from collections import namedtuple

from clawlite.core.teach.row_text import show_minute
from clawlite.protocols.teach import time_words
from clawlite.protocols.teach.sentence_words import DAYS, MONTHS, read_words
from clawlite.protocols.teach.time_words import (
    PARTS,
    read_duration,
    read_number,
    read_time,
    text_at,
)

_ARTICLES = (
    "the a an my our your of der die das den dem le la les el los las du de del des in from"
).split()
_VERBS = (
    "is are becomes gets goes falls drops sinks rises climbs stays remains reads has been was "
    "'s reaches still already goes fall drop rise go get stay to down up it value"
).split()
_UNITS = (
    "% percent degrees degree celsius c lux pct ppm hpa volts v mv litres liters cm mm points "
    "percents"
).split()
_PERIODS = {"minutes": "minute", "hours": "hour", "day": "day", "weeks": "week", "days": "day"}
_OPPOSITES = {"<": ">=", ">": "<=", "==": "!="}
_COUNTS = {"once": 1, "twice": 2, "thrice": 3}
# in what is left over, these say that something was not understood
_TROUBLE = (
    "every when if unless until till except tomorrow today tonight before after between during "
    "below above otherwise else again only most least least sunrise sunset weekday weekend next "
    "ago since while ausser außer sofern bis sauf hasta jusqu'à yesterday alternately"
).split() + list(DAYS)
_STRONG = (
    "every when if unless until tomorrow sunrise sunset weekday tonight today weekend below above"
).split() + list(DAYS)
_NEGATIONS = (
    "not don't never dont nicht nie kein ne pas jamais no nunca stop cannot can't won't "
    "doesn't isn't"
).split()
_POLITE = (
    "please but then also now so and , . ; : ! s'il - \" just dann bitte auch alors entonces "
    "always immer that so"
).split()
_OPENINGS = (
    "can you, could you, would you, will you, i want you to, i'd like you to, you should, "
    "make sure to, from now on, learn to, learn, new rule, please, rule, kannst du, peux-tu, "
    "puedes, hey, ok, okay"
).split(", ")
_ASKING = (
    "what why who which how where did does do is are was were should has have will warum was "
    "wie wann wer qué"
).split()
_ASKS_WHEN = ("did", "does", "do", "was", "were", "will", "is", "are", "should", "can", "have")
_OPENED = ("opens", "opened", "open", "öffnet", "s'ouvre", "abre", "aufgeht", "released")
_CLOSED = tuple("closes closed close schließt ferme cierra pressed pushed zugeht".split())
_UNTIL = ("and", "to", "until", "till", "-")  # between two times
# between a pin and what it does
_BETWEEN = "is gets goes was pin has been sensor".split()
_CHANGED = ("changes", "moves", "toggles", "ändert", "change")
_HIGH = ("rises", "high", "on")
_LOW = ("falls", "low", "off")


# without a reading, the value is what has to be asked
Comparison = namedtuple("Comparison", ("reading", "operator", "value", "end"))


class Parsed:
    """What a sentence says.

    row       the fields of a rule but its call (draft.py)
    clause    what to do, as it was typed
    text      what a reminder says, None for a rule that calls something
    question  what has to be asked first, or ""
    """

    clause = question = ""
    text: str | None = None

    def __init__(self) -> None:
        self.row = {}


class Scene(namedtuple("Scene", "readings pins now")):
    """What the sentences of one agent may be about.

    readings  [(name, [word, ...] by which people call it, ...), ...]
    pins      {name: kind (core/image/pins.py)} of the inputs that a rule may begin with
    now       function() -> (day counted from 1970, minute of it) of the present local time, None
              while the clock is not set
    """


def parse(text: str, scene: Scene) -> "Parsed | None":
    """Return what *text* teaches as ``Parsed``, None when it teaches nothing."""
    return _Sentence(text, scene).read()


class _Sentence:
    def __init__(self, text: str, scene: Scene) -> None:
        self.typed, self.scene = text, scene
        self.words = read_words(text)
        self.free = [True] * len(self.words)
        self.parsed = Parsed()
        self.row = self.parsed.row
        self.conditions = []
        self.times, self.days = [], []  # of the clock
        self.date: tuple | None = None  # (day, is it said)
        self.part: str | None = None
        self.suns: list[str] | None = None
        self.sun_end = 0
        self.time_end = None  # behind the last time
        self.is_daily = self.has_trigger = False

    # -- the whole

    def read(self):
        self._drop_openings()
        if self._is_question():
            return None
        self._read_reminder()
        for step in (
            self._read_limits,
            self._read_pauses,
            self._read_suns,
            self._read_days,
            self._read_periods,
            self._read_windows,
            self._read_times,
            self._read_later,
            self._read_comparisons,
            self._read_pins,
            self._read_parts,
            self._read_once,
        ):
            for at in range(len(self.words)):
                if self.free[at]:
                    step(at)
        self._set_clock()
        return self._finish()

    def _finish(self):
        row, parsed = self.row, self.parsed
        if self.conditions:
            row["if"] = self.conditions
        left = self._take_rest()
        said = [self.words[at].text for at in left]
        strong = [word for word in said if word in _STRONG]
        if not self.has_trigger and not parsed.question:
            if parsed.text is not None:
                parsed.question = "When shall I remind you?"
            elif strong or self.days or self.part or self.conditions:
                parsed.question = self._miss(strong[0] if strong else "")
            else:
                return None
        if parsed.text is not None:
            parsed.text = self._quote(
                left, ("to", "that", "about", "of", "daran", "de", "que", "zu")
            )
            return parsed
        if not parsed.question:
            trouble = [word for word in said if word in _TROUBLE]
            negated = [word for word in said if word in _NEGATIONS]
            if trouble:
                parsed.question = self._miss(trouble[0])
            elif negated:
                parsed.question = (
                    'I learn what to do, and not what to leave out ("%s"). What shall I do, and '
                    "when?" % negated[0]
                )
            elif "or" in said:
                parsed.question = 'One rule does one thing: say it without "or".'
        parsed.clause = self._quote(left, ())
        if not parsed.clause and not parsed.question:
            parsed.question = "What shall I do then?"
        return parsed

    def _miss(self, word: str) -> str:
        if word:
            for one in self.words:
                if one.text == word:
                    word = self.typed[one.start : one.end]
            return (
                'I do not understand the part with "%s". Say it in other words, or write the rule '
                "as a row: /teach shows how." % word
            )
        return "When shall that be? For example: every day at 7:00, or when a reading is below 30."

    def _take_rest(self) -> list:
        """Return the places of the words of the clause."""
        left = [at for at in range(len(self.words)) if self.free[at]]
        while left and self.words[left[0]].text in _POLITE:
            left.pop(0)
        while left and self.words[left[-1]].text in _POLITE:
            left.pop()
        return left

    def _quote(self, left: list, ahead: tuple) -> str:
        """Return the words at *left* as they were typed, without those of *ahead* at the front."""
        while left and self.words[left[0]].text in ahead:
            left = left[1:]
        parts, end = [], None
        for at in left:
            word = self.words[at]
            if end is None or self.typed[end : word.start].strip() or word.start < end:
                parts.append([word.start, word.end])
            elif word.end > parts[-1][1]:
                parts[-1][1] = word.end
            end = word.end
        joined = [self.typed[first:last] for first, last in parts]
        kept = [one for n, one in enumerate(joined) if one not in (",", ";", ".") or n == 0]
        return " ".join(kept).strip(" ,.;:!")

    def _take(self, first: int, end: int) -> None:
        for at in range(first, min(end, len(self.words))):
            self.free[at] = False

    def _is(self, at: int, *phrases) -> int:
        """Return how many words the first of *phrases* has that stands at *at*, 0 for none."""
        for phrase in phrases:
            words = phrase.split()
            if [text_at(self.words, at + n) for n in range(len(words))] == words and all(
                self.free[at : at + len(words)]
            ):
                return len(words)
        return 0

    def _drop_openings(self) -> None:
        at = 0
        while True:
            while at < len(self.words) and self.words[at].text in (",", ":", '"'):
                at += 1
            count = self._is(at, *_OPENINGS)
            if not count:
                break
            self._take(at, at + count)
            at += count
        self._take(0, at)
        self.first = at

    def _is_question(self) -> bool:
        first, then = [text_at(self.words, self.first + n) for n in (0, 1)]
        if first == "do" and then == "not":
            return False
        if first in _ASKING and not self.first:
            return True
        if first == "when" and then in _ASKS_WHEN:
            return True
        ends = bool(self.words) and self.words[-1].text == "?"
        return ends and not self.first

    def _read_reminder(self) -> None:
        count = self._is(self.first, "remind me", "reminder", "set a reminder")
        if count:
            self.parsed.text = ""
            self._take(self.first, self.first + count)

    # -- limits

    def _read_limits(self, at: int) -> None:
        first, at_most = at, self._is(at, "at most", "only", "limit")
        at += at_most
        count = _COUNTS.get(text_at(self.words, at))
        if count is not None:
            at += 1
        else:
            found = read_number(self.words, at)
            if not found:
                return
            count, at = found.value, found.end
            if text_at(self.words, at) in ("times", "time", "runs"):
                at += 1
            elif not at_most or text_at(self.words, at + 1) not in _PERIODS:
                return
        if text_at(self.words, at) not in ("a", "an", "every", "in", "der", "je", "each"):
            if at_most and text_at(self.words, first) == "at" and count:
                if count == 1:
                    self.row["once"] = True
                    self._take(first, at)
            return
        period = _PERIODS.get(text_at(self.words, at + 1))
        if period is None or count < 1 or count != int(count):
            return
        self.row["at_most"] = "%d/%s" % (count, period)
        self._take(first, at + 2)

    def _read_pauses(self, at: int) -> None:
        for phrase, after in (
            ("not again within", ""),
            ("not again for", ""),
            ("and not again for", ""),
            ("wait at least", "between"),
            ("wait", "between"),
            ("with at least", "between"),
            ("at least", "apart"),
            ("at most every", ""),
            ("at most once every", ""),
        ):
            count = self._is(at, phrase)
            found = count and read_duration(self.words, at + count)
            if found and (not after or text_at(self.words, found.end) == after):
                self.row["least_pause"] = _short(found.value)
                end = found.end + bool(after)
                self._take(at, end + self._is(end, "runs", "two runs", "waterings"))
                return

    # -- the clock

    def _read_suns(self, at: int) -> None:
        word = text_at(self.words, at)
        if word not in ("sunrise", "sunset"):
            return
        first, text = at, word
        if text_at(self.words, at - 1) in ("before", "after"):
            sign = "-" if text_at(self.words, at - 1) == "before" else "+"
            for back in (at - 5, at - 4, at - 3, at - 2):
                found = back >= 0 and read_duration(self.words, back)
                if found and found.end == at - 1:
                    text, first = "%s%s%s" % (word, sign, _short(found.value)), back
                    break
            else:
                self.parsed.question = 'How long "%s %s"?' % (text_at(self.words, at - 1), word)
                return
        while text_at(self.words, first - 1) in ("at", "every", "the", "day", "when", ",", "and"):
            self.is_daily = self.is_daily or text_at(self.words, first - 1) in ("every", "when")
            first -= 1
        if self.suns and any(self.free[self.sun_end : first]):
            self.parsed.question = "One rule does one thing: make two rules of it."
        self.sun_end = at + 1
        self.suns = (self.suns or []) + [text]
        self._take(first, at + 1)

    def _read_days(self, at: int) -> None:
        """Read the days: "every monday and thursday", "on weekdays", "tomorrow", "24 december"."""
        first = at
        every = self._is(at, "every")
        if every and self._is(at + 1, "other", "second", "third"):
            self.parsed.question = (
                "I know every day, and days of the week, but not every other one."
            )
            self._take(at, at + 3)
            return
        at += every or self._is(at, "on the", "on", "am", "le", "el", "next")
        on = at - first and not every
        if self._read_date(first, at):
            return
        found = self._read_weekdays(at)
        if found:
            days, is_plural, end = found
            is_all = every or is_plural or len(days) > 1
            self.days = sorted(set(self.days + days))
            if not is_all:
                self.date = ("weekday", days[0])
            elif not every and not on and not is_plural:
                return
            self.is_daily = self.is_daily or bool(is_all)
            self._take(first, end)
            return
        word = text_at(self.words, at)
        if every and word in ("day", "days") or every and word in PARTS:
            self.is_daily = True
            self.part = word if word in PARTS else self.part
            end = at + 1
            if word == "day" and self._is(end, "in the"):
                return self._take(first, end)
            self._take(first, self._read_time_of(word, end))
        elif word in ("tomorrow", "today", "tonight") and not every:
            self.date = ("in", 1 if word == "tomorrow" else 0)
            end = at + 1
            if text_at(self.words, end) in PARTS:
                self.part, end = text_at(self.words, end), end + 1
            if word == "tonight":
                self.part = "night"
            self._take(first, self._read_time_of(self.part, end))

    def _read_time_of(self, part, at: int) -> int:
        """Read the time behind "every evening": "at 6" is 18:00.  Return the place behind it."""
        step = self._is(at, "at")
        found = step and part in PARTS and read_time(self.words, at + step)
        if not found or text_at(self.words, found.end) in time_words.DURATIONS:
            return at
        self.times.append(time_words.move_to(part, found.value))
        self.part = None
        return found.end

    def _read_weekdays(self, at: int) -> tuple | None:
        """Return (days, whether all of them are meant by the word itself, the place behind)."""
        word = text_at(self.words, at)
        if word == "weekday" or word == "weekend":
            return ([1, 2, 3, 4, 5] if word == "weekday" else [0, 6]), True, at + 1
        days, is_plural = [], False
        while True:
            bare = word[:-1] if word.endswith("s") and word[:-1] in DAYS else word
            if bare not in DAYS:
                break
            is_plural = is_plural or bare != word
            days.append(DAYS.index(bare))
            at += 1
            step = self._is(at, ", and", "and every", "and on", "and", ",", "&")
            word = text_at(self.words, at + step)
            bare = word[:-1] if word.endswith("s") else word
            if step and bare in DAYS:
                at += step
            else:
                break
            word = text_at(self.words, at)
        return (days, is_plural, at) if days else None

    def _read_date(self, first: int, at: int) -> bool:
        """Read "24 december" or "december 24", or the day of each month."""
        day = read_number(self.words, at)
        if day and 1 <= day.value <= 31 and day.value == int(day.value):
            end = day.end + self._is(day.end, "st", "nd", "rd", "th", ".")
            end += self._is(end, "of")
            if self._is(end, "every months", "every months", "the months"):
                self.date, self.is_daily = ("monthly", day.value), True
                self._take(first, end + 2)
                return True
            if text_at(self.words, end) in MONTHS:
                self.date = ("date", (MONTHS.index(text_at(self.words, end)) + 1, day.value))
                self._take(first, end + 1)
                return True
        if text_at(self.words, at) in MONTHS:
            day = read_number(self.words, at + 1)
            if day and 1 <= day.value <= 31 and day.value == int(day.value):
                self.date = ("date", (MONTHS.index(text_at(self.words, at)) + 1, day.value))
                self._take(first, day.end + self._is(day.end, "st", "nd", "rd", "th"))
                return True
        return False

    def _read_periods(self, at: int) -> None:
        """Read "every 2 hours", "every hour"."""
        if not self._is(at, "every"):
            return
        found = read_duration(self.words, at + 1)
        unit = time_words.DURATIONS.get(text_at(self.words, at + 1))
        if not found and unit:
            found = time_words.Found(unit, at + 2)
        if not found:
            return
        self.has_trigger = True
        if "every" in self.row:
            self.parsed.question = "One rule begins in one way: make two rules of it."
        self.row["every"] = _short(found.value)
        self._take(at, found.end)

    def _read_times(self, at: int) -> None:
        """Read "at 7 and at 18:30"; a time with a colon needs no "at"."""
        first = at
        step = self._is(at, "at", "kl", "gegen", "@", "by")
        if step and text_at(self.words, at + 1) in ("most", "least", "night"):
            return
        if not step and ":" not in text_at(self.words, at):
            after = read_time(self.words, at)
            if not after or text_at(self.words, after.end - 1) not in ("am", "pm", "oclock"):
                return
        found = read_time(self.words, at + step)
        unit = found and text_at(self.words, found.end)
        if not found or unit in time_words.DURATIONS or unit in _UNITS or unit == "times":
            return
        if self.time_end is not None and any(self.free[self.time_end : first]):
            self.parsed.question = "One rule does one thing: make two rules of it."
        while found:
            self.times.append(found.value)
            end = found.end
            step = self._is(end, "and at", ", and at", ", and", "and", ", at", ",", "&")
            found = read_time(self.words, end + step) if step else None
            unit = found and text_at(self.words, found.end)
            if unit in time_words.DURATIONS or unit in _UNITS or unit == "times":
                found = None
        self.time_end = end
        self._take(first, end)

    def _read_later(self, at: int) -> None:
        """Read "in 10 minutes", "in 3 days"."""
        if not self._is(at, "in"):
            return
        found = read_duration(self.words, at + 1)
        if found and found.value >= 86400000 and found.value % 86400000 == 0 and self.times:
            self.date = ("in", found.value // 86400000)
        elif found:
            self.has_trigger = True
            self.row["every"], self.row["once"] = _short(found.value), True
        else:
            return
        self._take(at, found.end)

    def _read_parts(self, at: int) -> None:
        """Read "in the morning", "at night": with another trigger, a condition."""
        count = self._is(at, "in the", "at", "during the", "by", "of a")
        part = text_at(self.words, at + count) if count else ""
        if part in PARTS:
            self.part = part
            self._take(at, at + count + 1)
        elif part == "day" and text_at(self.words, at) in ("by", "during"):
            self.conditions.append("between 06:00-22:00")
            self._take(at, at + count + 1)

    def _read_once(self, at: int) -> None:
        count = self._is(at, "only once", "just once", "once only", "one time only", "once")
        if count:
            self.row["once"] = True
            self._take(at, at + count)

    def _read_windows(self, at: int) -> None:
        """Read "between 6 and 10", "after 22:00": a condition."""
        first = at
        step = self._is(at, "only between", "between", "only from", "from")
        if step:
            start = read_time(self.words, at + step)
            if not start or text_at(self.words, start.end) not in _UNTIL:
                return
            end = read_time(self.words, start.end + 1)
            if end and start.value != end.value:
                self._add_window(start.value, end.value)
                self._take(first, end.end)
            return
        step = self._is(at, "only after", "after", "only before", "before")
        found = step and read_time(self.words, at + step)
        if found and text_at(self.words, found.end) not in time_words.DURATIONS:
            is_after = text_at(self.words, at + step - 1) == "after"
            if found.value:
                self._add_window(*((found.value, 0) if is_after else (0, found.value)))
                self._take(first, found.end)

    def _add_window(self, first: int, end: int) -> None:
        self.conditions.append("between %s-%s" % (show_minute(first), show_minute(end % 1440)))

    def _set_clock(self) -> None:
        """Put together what was said about the clock."""
        row = self.row
        if self.suns:
            self.has_trigger = True
            row["at"] = self.suns if len(self.suns) > 1 else self.suns[0]
            if self.times or self.days:
                self.parsed.question = "One rule begins in one way: make two rules of it."
            if not self.is_daily and (self.parsed.text is not None or self.date):
                row["once"] = True
            return
        others = [key for key in ("on", "pin", "every") if key in row]
        if self.part and (others or self.times):
            if others:
                self._add_window(*PARTS[self.part])
            self.times = [time_words.move_to(self.part, one) for one in self.times]
        if others:
            if self.days or self.times or self.date:
                self.parsed.question = "One rule begins in one way: make two rules of it."
            return
        if not (self.times or self.days or self.date or self.is_daily or self.part):
            if "at_most" in row and not self.has_trigger:
                self.has_trigger = True
                self.parsed.question = "At what time of the day?"
            return
        self.has_trigger = True
        if not self.times:
            self.parsed.question = self.parsed.question or "At what time of the day?"
            return
        self._set_times(row)

    def _set_times(self, row: dict) -> None:
        texts = [show_minute(one) for one in sorted(set(self.times))]
        kind, value = self.date or ("", 0)
        if kind in ("in", "date", "weekday") and not self.is_daily:
            self._set_date(row, kind, value)
        elif kind == "monthly":
            self._set_cron(row, "%d * *" % value)
        elif self.days:
            self._set_cron(row, "* * " + _span(self.days))
        elif self.is_daily or row.get("at_most", "").endswith("/day"):
            row["at"] = texts if len(texts) > 1 else texts[0]
        elif self.parsed.text is not None or row.get("once"):
            self._set_date(row, "next", 0)
        else:
            asked = "Every day at %s, or just once?" % " and ".join(texts)
            self.parsed.question = self.parsed.question or asked

    def _set_cron(self, row: dict, days: str) -> None:
        minutes = sorted({one % 60 for one in self.times})
        if len(minutes) > 1:
            self.parsed.question = "Times with different minutes on such days are two rules."
            return
        hours = ",".join([str(one) for one in sorted({one // 60 for one in self.times})])
        row["cron"] = "%d %s %s" % (minutes[0], hours, days)

    def _set_date(self, row: dict, kind: str, value) -> None:
        """Set the one time at which a rule comes: its minute, hour, day and month."""
        now = self.scene.now()
        if now is None:
            self.parsed.question = "The clock is not set, so I know no date. In how many minutes?"
            return
        from clawlite.core.base.clock import date_of

        (day, minute), at = now, self.times[0]
        if len(self.times) > 1:
            self.parsed.question = "Once is at one time: which one?"
            return
        if kind == "in":
            day += value
        elif kind == "weekday":
            ahead = (value - (day + 4)) % 7
            day += ahead if ahead or at > minute else 7
        elif kind == "next" and at <= minute:
            day += 1
        if kind == "in" and not value and at <= minute:
            self.parsed.question = "%s is over today. When else?" % show_minute(at)
            return
        _, month, date = date_of(day)
        if kind == "date":
            month, date = value
        row["cron"] = "%d %d %d %d *" % (at % 60, at // 60, date, month)
        row["once"] = True

    # -- readings and pins

    def _read_comparisons(self, at: int) -> None:
        first = at
        count = self._is(at, "only if", "if", "when", "unless", "once", "but if", "and if")
        if not count:
            return
        start = text_at(self.words, at)
        found = self._read_comparison(at + count)
        if not found:
            return
        wants_condition = "only" in [text_at(self.words, at), text_at(self.words, at + 1)]
        negates = start == "unless"
        while found:
            reading, operator, value, end = found
            if reading is None:
                self.parsed.question = value
                self.has_trigger = True
                self._take(first, end)
                return
            for_ms = self._read_for(end)
            if for_ms:
                end = for_ms.end
            if negates:
                operator = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "==": "!="}[operator]
            self._note_comparison(reading, operator, value, for_ms, wants_condition or negates)
            end = self._read_again(end)
            self._take(first, end)
            step = self._is(end, "and if", "and when", "and only if", ", and", "and")
            found = self._read_comparison(end + step) if step else None
            if found and found.reading is None:
                found = None
            first, wants_condition = end, True
        if self._is(end, "or"):
            self.parsed.question = 'One rule has no "or": make two rules of it.'

    def _note_comparison(self, reading, operator, value, for_ms, is_condition: bool) -> None:
        row = self.row
        has_clock = self.times or self.days or self.is_daily or self.date or self.suns or self.part
        if is_condition or has_clock or "every" in row or "on" in row:
            self.conditions.append("%s %s %s" % (reading, operator, value))
            if for_ms:
                self.parsed.question = "A time that it lasts belongs to the rule's beginning alone."
            return
        if operator in ("==", "!="):
            self.parsed.question = "Below or above which value of %s?" % reading
        row["on"] = reading
        row["below" if operator in ("<", "<=") else "above"] = value
        if for_ms:
            row["for"] = _short(for_ms.value)
        self.has_trigger = True

    def _read_for(self, at: int) -> time_words.Found | None:
        """Read "for 5 minutes" behind a threshold."""
        count = self._is(at, "for more than", "for at least", "for above", "for longer than", "for")
        count = count or self._is(at, "seit")
        found = count and read_duration(self.words, at + count)
        if not found:
            return None
        end = found.end
        end += self._is(end, "long", "or longer", "or more", "straight")
        return time_words.Found(found.value, end)

    def _read_again(self, at: int) -> int:
        """Read "and again only above 35"; return the place behind it."""
        count = self._is(
            at,
            ", and again only",
            ", again only",
            "and again only",
            "again only",
            ", again",
            "again",
        )
        side = text_at(self.words, at + count)
        found = count and side in ("above", "below") and read_number(self.words, at + count + 1)
        if not found:
            return at
        self.row["again_" + side] = found.value
        return found.end + self._is(found.end, *_UNITS)

    def _read_comparison(self, at: int) -> "Comparison | None":
        """Return the ``Comparison`` at a place, None where there is none."""
        subject, end = [], at
        while end < len(self.words) and len(subject) < 8 and self.free[end]:
            found = self._read_operator(end)
            if found:
                break
            word = text_at(self.words, end)
            if word in (",", ".", ";") or word in ("when", "if", "every", "at"):
                return None
            if word not in _ARTICLES:
                subject.append(word)
            end += 1
        else:
            return None
        operator, value, behind = found
        reading = self._find_reading(subject)
        if reading is None:
            pin = [one for one in self.scene.pins if one.replace("_", "-") in subject]
            if pin:
                return None
            known = ", ".join([one[0] for one in self.scene.readings]) or "none"
            said = " ".join([one for one in subject if one not in _VERBS]) or "it"
            asked = 'There is no reading "%s"; readings here: %s. Which one is meant?' % (
                said,
                known,
            )
            return Comparison(None, "", asked, behind)
        return Comparison(reading, operator, value, behind)

    def _read_operator(self, at: int) -> tuple | None:
        """Return (operator, value, the place behind) of "is below 30", "< 30", "30 or more"."""
        while text_at(self.words, at) in _VERBS:
            at += 1
        is_not = text_at(self.words, at) == "not"
        at += is_not
        sign = text_at(self.words, at)
        operator, step = {"below": "<", "above": ">", "<": "<", ">": ">"}.get(sign, ""), 1
        if operator and sign in "<>" and text_at(self.words, at + 1) == "=":
            operator, step = operator + "=", 2
        if not operator and self._is(at, "at most", "at least"):
            operator, step = "<=" if text_at(self.words, at + 1) == "most" else ">=", 2
        if not operator and self._is(at, "equal to", "exactly", "equals", "="):
            operator, step = "==", self._is(at, "equal to", "exactly", "equals", "=")
        verb = text_at(self.words, at - 1)
        if not operator and verb in _VERBS and verb != "it":
            operator, step = "==", 0
            if verb == "to" or verb == "reaches":
                before = " ".join([text_at(self.words, at - n) for n in (1, 2, 3)])
                down = "falls" in before or "drop" in before or "down" in before
                operator = "<=" if down else ">="
        found = operator and read_number(self.words, at + step)
        if not found:
            return None
        value, end = found
        end += self._is(end, *_UNITS)
        end += self._is(end, "celsius", "c")
        more = self._is(end, "or above", "or more", "or higher", "and above")
        less = self._is(end, "or below", "or less", "or lower")
        if operator == "==" and (more or less):
            operator = ">=" if more else "<="
        if not more and not less:
            end += self._is(end, "is", "liegt", "fällt", "falls")
        if is_not:
            operator = _OPPOSITES.get(operator, operator)
        return operator, value, end + (more or less)

    def _find_reading(self, subject: list) -> str | None:
        """Return the name of the reading that *subject* calls, None when none or several fit."""
        best, found = 0, []
        said = [one[:-1] if len(one) > 4 and one.endswith("s") else one for one in subject]
        said += subject
        for name, names in self.scene.readings:
            score = max([_overlap(words, said) for words in names])
            if score > best:
                best, found = score, [name]
            elif score == best and score:
                found.append(name)
        if not found and not [one for one in subject if one not in _VERBS]:
            found = [name for name, _ in self.scene.readings]  # "it": there may be only one
        return found[0] if len(found) == 1 else None

    def _read_pins(self, at: int) -> None:
        """Read "when the door opens"."""
        if not self._is(at, "when", "if"):
            return
        end, pin = at + 1, None
        while end < len(self.words) and end < at + 6:
            word = text_at(self.words, end).replace("-", "_")
            for one in self.scene.pins:
                if one.replace("-", "_") in (word, word.replace("_", "")):
                    pin = one
            if pin is not None:
                break
            end += 1
        if pin is None:
            return
        end += 1
        while text_at(self.words, end) in _BETWEEN:
            end += 1
        end += self._is(end, "turned", "switched", "turns")
        word, kind = text_at(self.words, end), self.scene.pins[pin]
        self.has_trigger = True
        self.row["pin"] = pin
        edge = self._edge_of(word, kind)
        if edge is None:
            self.parsed.question = (
                'Does the pin %s rise (0 to 1) or fall (1 to 0) when "%s"?' % (pin, word)
                if word in _OPENED + _CLOSED
                else "When shall it begin: when the pin %s rises, falls or changes?" % pin
            )
            self._take(at, end)
            return
        self.row["edge"] = edge
        self._take(at, end + 1)

    def _edge_of(self, word: str, kind: int) -> str | None:
        """Return the edge that *word* means for a pin of the kind, None when it is not clear."""
        from clawlite.core.image.pins import PULL_DOWN, PULL_UP

        if word in _CHANGED:
            return "both"
        if word in _HIGH or word in _LOW:
            return "rise" if word in _HIGH else "fall"
        if kind not in (PULL_UP, PULL_DOWN) or word not in _OPENED + _CLOSED:
            return None
        # a contact to ground with a pull-up is 0 while it is closed
        return "rise" if (word in _OPENED) == (kind == PULL_UP) else "fall"


def _overlap(words: list, said: list) -> int:
    """Return how many of *words*, all of a name, are *said*; 0 when one is missing."""
    return len(words) if words and all([one in said for one in words]) else 0


def _span(days: list) -> str:
    if days == [1, 2, 3, 4, 5]:
        return "1-5"
    return ",".join([str(one) for one in days])


def _short(ms: int) -> str:
    from clawlite.core.teach.row_text import show_duration

    return show_duration(int(ms))
