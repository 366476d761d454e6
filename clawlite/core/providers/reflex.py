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
    """One agent's reflex rules."""

    def __init__(self, rules: list):
        self._rules = rules

    def fits(self, text: str) -> bool:
        """Return whether a rule begins a turn with *text*."""
        return self._begin(words(text), {}) is not None

    def reply(self, history) -> Reply:
        """Return the reply to the messages so far of the current turn of *history*.  Raises
        ``ProviderError`` for a turn that another provider began: what its tool returned is no
        answer.
        """
        last = history.turn[-1]
        if last.role == "user":
            slots = {}
            step = self._begin(words(last.text), slots)
            if step is None:
                return Reply(self._abstain(), [], False, ABSTAINS)
        else:
            if not history.progress:
                raise ProviderError("reflex: another provider began this turn")
            step, slots = history.progress
            step = _after(step, last, slots)
            # no rule continues from here: the tool's own answer is the reply
            if step is None:
                return Reply(last.text, [])
        history.progress = step, slots
        say, tool, arguments, _ = step
        text = (
            ""
            if say is None
            else "".join([p if isinstance(p, str) else _show(slots, p[0]) for p in say])
        )
        if tool is None:
            return Reply(text, [])
        return Reply(text, [("", tool, _arguments(arguments, slots), "")])

    def _begin(self, text: list, slots: dict):
        """Return the first step of the first rule that fits, or None; its values go to *slots*."""
        if len(text) <= MAX_WORDS:
            for patterns, step in self._rules:
                for pattern in patterns:
                    found = match(pattern, 0, text, 0)
                    if found is not None:
                        for name, value in found:
                            slots[name] = value
                        return step
        return None

    def _abstain(self) -> str:
        known = [example(patterns[0]) for patterns, _ in self._rules[:5]]
        return "I have no rule for that." + (" Try: %s." % "; ".join(known) if known else "")


def _after(step: list, message, slots: dict):
    """Return the step that follows the tool's answer to *step*, or None: then the answer itself is
    the reply.
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
        elif not failed and _holds(condition, slots):
            return following
    return None


def _holds(condition: list, slots: dict) -> bool:
    name, operator, wanted = condition
    value = slots.get(name)
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
