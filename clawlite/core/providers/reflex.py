"""The reflex provider: condition-action rules that need no network and no model.

Compiled (host/providers/reflexes.py) to nested lists:

    rule     [[pattern, ...], step]          the first rule with a pattern that fits the message
             begins the turn
    pattern  [token, ...]                    token: ["word", ...] alternatives, [0, name, type] a
             slot, 1 any words,
                                             ["word", ..., 2] alternatives that may be left out
    step     [say, tool, arguments, [branch, ...]]
    branch   [condition, step]               tried in order when the step's tool has answered; the
                                             first whose condition holds continues
    condition  None (always) or [field, operator, value] or [3] (the call was refused or failed)
    say      None or [text | [name], ...]    a name stands for a slot or a field of the last result
    arguments  [[name, value], ...]          value: a constant, or [name] for a slot or a field

When no rule fits, the answer says so.  Between rounds the place in the tree and the values of the
slots are the whole state.  It belongs to the turn (``history.History.progress``): many turns go on
at the same time, of several conversations.
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.render import canonical
from clawlite.core.turns.turn import Reply
from clawlite.core.base.errors import ClawError, ProviderError

INT, NUMBER, WORD, TEXT = range(4)  # types of slots
ANY, OPTIONAL, FAILED = 1, 2, 3
SLOT = 0
_FIRST = const(0)  # of a token
_NAME = const(1)  # of a slot
_TYPE = const(2)
_LAST = const(-1)
_BRANCHES = const(3)  # of a step
OPERATORS = ("<", "<=", "==", "!=", ">=", ">")
MAX_WORDS = 64
ABSTAINS = "abstains"  # ``Reply.stop`` of the answer that no rule fits


class Reflex:
    """One agent's reflex rules.

    also  a text that may begin a turn in the place of its message, when no rule fits that: the
          words of a task without its input; or None
    """

    def __init__(self, rules: list, also=None):
        self._rules = rules
        self._also = also

    def fits(self, text: str) -> bool:
        """Return whether a rule begins a turn with *text*."""
        return self._begin(text, {}) is not None

    def reply(self, history) -> Reply:
        """Return the reply to the messages so far of the current turn of *history*.  Raises
        ``ProviderError`` for a turn that another provider began: what its tool returned is no
        answer.
        """
        last, missing = history.turn[-1], []
        if last.role == "user":
            slots = {}
            step = self._begin(last.text, slots)
            if step is None:
                return Reply(self._abstain(), [], False, ABSTAINS)
        else:
            if not history.progress:
                raise ProviderError("reflex: another provider began this turn")
            step, slots = history.progress
            step = _after(step, last, slots, missing)
            # no rule continues from here: the tool's own answer is the reply
            if step is None:
                return _noting(Reply(last.text, []), missing)
        history.progress = step, slots
        say, tool, arguments, _ = step
        text = (
            ""
            if say is None
            else "".join([p if isinstance(p, str) else _show(slots, p[0]) for p in say])
        )
        calls = [] if tool is None else [("", tool, _arguments(arguments, slots), "")]
        return _noting(Reply(text, calls), missing)

    def _begin(self, text: str, slots: dict):
        """Return the first step of the first rule that fits, or None; its values go to *slots*."""
        for said in (text, self._also):
            message = None if said is None else Sentence(said)
            if message is not None and len(message.words) <= MAX_WORDS:
                for patterns, step in self._rules:
                    for pattern in patterns:
                        found = match(pattern, 0, message, 0)
                        if found is not None:
                            for name, value in found:
                                slots[name] = value
                            return step
        return None

    def _abstain(self) -> str:
        known = [example(patterns[0]) for patterns, _ in self._rules[:5]]
        return "I have no rule for that." + (" Try: %s." % "; ".join(known) if known else "")


def _noting(reply, missing: list):
    """Return *reply*, which says in the log that conditions were about values that are missing."""
    if missing:
        reply.note = {"event": "rule.missing", "fields": missing}
    return reply


def _after(step: list, message, slots: dict, missing: list):
    """Return the step that follows the tool's answer to *step*, or None: then the answer itself is
    the reply.  Names that a condition compares and that have no value go to *missing*.
    """
    result = message.result
    failed = isinstance(result, ClawError) or result.is_error
    value = message.text if failed else result.value
    slots["result"] = value
    if isinstance(value, dict):
        for name in value:
            slots[name] = value[name]
    for condition, following in step[_BRANCHES]:
        if condition is None:
            if not failed:
                return following
        elif condition[0] == FAILED:
            if failed:
                return following
        elif not failed and holds(condition, slots, missing):
            return following
    return None


def holds(condition: list, slots: dict, missing: list) -> bool:
    """Return whether *condition* holds.  None does that compares a value which is missing, not even
    with ``!=``: a rule must not act on what nothing has measured.
    """
    name, operator, wanted = condition
    value = slots.get(name)
    if value is None:
        missing.append(name)
        return False
    if operator == "==":
        return value == wanted
    if operator == "!=":
        return value != wanted
    if not is_number(value):
        return False
    return (
        value < wanted
        if operator == "<"
        else value <= wanted
        if operator == "<="
        else value > wanted
        if operator == ">"
        else value >= wanted
    )


def _arguments(pairs: list, slots: dict) -> dict:
    arguments = {}
    for name, value in pairs:
        arguments[name] = slots.get(value[0]) if isinstance(value, list) else value
    return arguments


def _show(slots: dict, name: str) -> str:
    value = slots.get(name)
    return value if isinstance(value, str) else canonical(value)


def is_number(value) -> bool:
    return isinstance(value, (int, float)) and value is not True and value is not False


class Sentence:
    """A message: its words as rules compare them, and the text as it was typed.

    text    str
    words   its words: letters become lower case, and it is split at every character that is no
            letter, no digit and not one of ``._-``.  Of the letters beyond ASCII those of Latin-1
            are folded (Ä, É); MicroPython folds none by itself, and all runtimes must agree
    starts  of each word, where it begins in the text
    """

    def __init__(self, text: str):
        self.text = text
        self.words, self.starts = [], []
        word, at = "", 0
        for c in text + " ":
            if "A" <= c <= "Z" or "\xc0" <= c <= "\xde" and c != "\xd7":
                c = chr(ord(c) + 32)
            if "a" <= c <= "z" or "0" <= c <= "9" or c in "_-." or c >= "\x80":
                word += c
            elif word:
                bare = word.strip(".")
                if bare:
                    self.words.append(bare)
                    self.starts.append(at - len(word) + word.find(bare))
                word = ""
            at += 1

    def end_of(self, place: int) -> int:
        """Return where the word at *place* ends in the text."""
        return self.starts[place] + len(self.words[place])

    def last_joined(self, place: int) -> int:
        """Return the place after the last word that no white space parts from the one at *place*:
        ``notes/today.txt`` has two words.
        """
        end = place + 1
        while end < len(self.words) and not _has_space(
            self.text[self.end_of(end - 1) : self.starts[end]]
        ):
            end += 1
        return end

    def original(self, first: int, end: int, kind: int) -> str:
        """Return the words from *first* to before *end* as they were typed, with what stands
        directly beside them; punctuation at the end is no part, around one word also quotation
        marks and brackets.
        """
        text = self.text
        start, stop = self.starts[first], self.end_of(end - 1)
        least = self.end_of(first - 1) if first else 0
        most = self.starts[end] if end < len(self.words) else len(text)
        while start > least and not text[start - 1].isspace():
            start -= 1
        while stop < most and not text[stop].isspace():
            stop += 1
        if kind == TEXT:
            return text[start:stop].lstrip(_BETWEEN).rstrip(_ENDS)
        return text[start:stop].lstrip(_BETWEEN + _QUOTES).rstrip(_ENDS + _QUOTES)


_BETWEEN = ",;:="  # may stand between a word of the pattern and a slot
_ENDS = ".,;:!?"
_QUOTES = "\"'`()[]{}<>"


def _has_space(text: str) -> bool:
    for c in text:
        if c.isspace():
            return True
    return False


def words(text: str) -> list:
    """Return the words of *text* (``Sentence``)."""
    return Sentence(text).words


def match(pattern: list, at: int, message, pos: int):
    """Return [(slot, value), ...] when *pattern* from token *at* fits *message* (``Sentence``) from
    word *pos*, else None.
    """
    text = message.words
    while at < len(pattern):
        token = pattern[at]
        if token == ANY or token[_FIRST] == SLOT:
            for end in _ends(token, message, pos):
                rest = match(pattern, at + 1, message, end)
                if rest is not None:
                    if token == ANY:
                        return rest
                    value = message.original(pos, end, token[_TYPE])
                    if token[_TYPE] in (INT, NUMBER):
                        value = read(token[_TYPE], text[pos])
                    return [(token[_NAME], value)] + rest
            return None
        if pos < len(text) and text[pos] in token:
            if token[_LAST] == OPTIONAL:
                rest = match(pattern, at + 1, message, pos + 1)
                if rest is not None:
                    return rest
            else:
                pos += 1
        elif token[_LAST] != OPTIONAL:
            return None
        at += 1
    return [] if pos == len(text) else None


def _ends(token, message, pos: int):
    """Return the places where what *token* takes from word *pos* on may end, in the order in which
    they are tried.
    """
    count = len(message.words)
    if token == ANY:
        return range(pos, count + 1)
    if pos >= count:
        return ()
    if token[_TYPE] == TEXT:
        return range(pos + 1, count + 1)
    if token[_TYPE] == WORD:
        return range(message.last_joined(pos), pos, -1)
    return () if read(token[_TYPE], message.words[pos]) is None else (pos + 1,)


def read(kind: int, word: str):
    """Return the number in one word, or None when it is not of that type (INT, NUMBER)."""
    digits = word[1:] if word.startswith("-") else word
    whole, dot, part = digits.partition(".")
    if len(digits) > 15 or not _is_digits(whole) or dot and (kind == INT or not _is_digits(part)):
        return None
    return float(word) if dot else int(word)


def _is_digits(text: str) -> bool:
    # not str.isdigit: CPython's accepts digits of other scripts, too
    for c in text:
        if not "0" <= c <= "9":
            return False
    return text != ""


def example(pattern: list) -> str:
    """Return a message that *pattern* fits, for people: slots as ``<name>``."""
    said = []
    for token in pattern:
        if token == ANY:
            said.append("...")
        elif token[_FIRST] == SLOT:
            said.append("<%s>" % token[_NAME])
        elif token[_LAST] != OPTIONAL:
            said.append(token[_FIRST])
    return " ".join(said)
