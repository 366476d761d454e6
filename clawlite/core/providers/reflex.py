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

When no rule fits, the answer says so.  Between rounds the place in the tree is the whole state.
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.render import canonical
from clawlite.core.turns.turn import Reply
from clawlite.core.base.errors import ClawError

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


class Reflex:
    """One agent's reflex rules, and the current step between two rounds of a turn."""

    def __init__(self, rules: list):
        self._rules = rules
        self._step = None
        self._slots = {}
        self._turn = None  # the messages of the turn that these rules began

    def fits(self, text: str) -> bool:
        """Return whether a rule begins a turn with *text*."""
        return self._begin(words(text)) is not None

    def reply(self, messages: list) -> Reply:
        """Return the reply to a turn's messages so far (list of ``turn.Message``)."""
        last = messages[-1]
        if last.role == "user":
            self._slots = {}
            self._turn = messages
            step = self._begin(words(last.text))
            if step is None:
                return Reply(self._abstain(), [])
        else:
            step = self._after(last) if self._turn is messages else None
            # no rule continues from here: the tool's own answer is the reply
            if step is None:
                return Reply(last.text, [])
        self._step = step
        say, tool, arguments, _ = step
        text = (
            ""
            if say is None
            else "".join([p if isinstance(p, str) else self._show(p[0]) for p in say])
        )
        if tool is None:
            return Reply(text, [])
        return Reply(text, [("", tool, self._arguments(arguments), "")])

    def _begin(self, text: list):
        if len(text) <= MAX_WORDS:
            for patterns, step in self._rules:
                for pattern in patterns:
                    slots = match(pattern, 0, text, 0)
                    if slots is not None:
                        for name, value in slots:
                            self._slots[name] = value
                        return step
        return None

    def _after(self, message):
        """Return the step that follows a tool's answer, or None: then the answer itself is the
        reply.
        """
        result = message.result
        failed = isinstance(result, ClawError) or result.is_error
        value = message.text if failed else result.value
        self._slots["result"] = value
        if isinstance(value, dict):
            for name in value:
                self._slots[name] = value[name]
        for condition, step in self._step[_BRANCHES] if self._step else ():
            if condition is None:
                if not failed:
                    return step
            elif condition[0] == FAILED:
                if failed:
                    return step
            elif not failed and self._holds(condition):
                return step
        return None

    def _holds(self, condition: list) -> bool:
        name, operator, wanted = condition
        value = self._slots.get(name)
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

    def _arguments(self, pairs: list) -> dict:
        arguments = {}
        for name, value in pairs:
            arguments[name] = self._slots.get(value[0]) if isinstance(value, list) else value
        return arguments

    def _show(self, name: str) -> str:
        value = self._slots.get(name)
        return value if isinstance(value, str) else canonical(value)

    def _abstain(self) -> str:
        known = [example(patterns[0]) for patterns, _ in self._rules[:5]]
        return "I have no rule for that." + (" Try: %s." % "; ".join(known) if known else "")


def is_number(value) -> bool:
    return isinstance(value, (int, float)) and value is not True and value is not False


def words(text: str) -> list:
    """Return the words of *text*: its ASCII letters become lower case, and it is split at every
    character that is no letter, no digit and not one of ``._-``.

    Letters beyond ASCII belong to words and keep their case: MicroPython cannot fold them, and all
    runtimes must agree."""
    found, word = [], ""
    for c in text + " ":
        if "A" <= c <= "Z":
            c = chr(ord(c) + 32)
        if "a" <= c <= "z" or "0" <= c <= "9" or c in "_-." or c >= "\x80":
            word += c
        elif word:
            word = word.strip(".")
            if word:
                found.append(word)
            word = ""
    return found


def match(pattern: list, at: int, text: list, pos: int):
    """Return [(slot, value), ...] when *pattern* from token *at* fits *text* from word *pos*,
    else None.
    """
    while at < len(pattern):
        token = pattern[at]
        if token == ANY or token[_FIRST] == SLOT and token[_TYPE] == TEXT:
            for end in range(pos if token == ANY else pos + 1, len(text) + 1):
                rest = match(pattern, at + 1, text, end)
                if rest is not None:
                    return (
                        rest if token == ANY else [(token[_NAME], " ".join(text[pos:end]))] + rest
                    )
            return None
        if token[_FIRST] == SLOT:
            value = read(token[_TYPE], text[pos]) if pos < len(text) else None
            rest = None if value is None else match(pattern, at + 1, text, pos + 1)
            return None if rest is None else [(token[_NAME], value)] + rest
        if pos < len(text) and text[pos] in token:
            if token[_LAST] == OPTIONAL:
                rest = match(pattern, at + 1, text, pos + 1)
                if rest is not None:
                    return rest
            else:
                pos += 1
        elif token[_LAST] != OPTIONAL:
            return None
        at += 1
    return [] if pos == len(text) else None


def read(kind: int, word: str):
    """Return a slot's value from one word, or None when it is not of that type."""
    if kind == WORD:
        return word
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
