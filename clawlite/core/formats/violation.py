"""The sentence for a violation that ``clawlite.core.formats.schema`` has found: ``at PATH: expected
..., got ...``.

A violation is a list: what was checked, the check's argument, what was found, then the path from
the leaf upwards.  What was checked is an operation of schema.py, "kind" for a mask of kinds, or a
word of _ENDINGS.  Any other word is the runtime's own, when the stack is used up.  This module is
imported for a violation alone, so it can afford long texts."""

from clawlite.core.base.dialect import const
from clawlite.core.base.jsonvalue import path, several, show
from clawlite.core.formats.operations import (
    ANY,
    CONTAINS,
    ENUM,
    ITEMS,
    MATCH,
    MAX_ITEMS,
    MAX_LENGTH,
    MAX_MEMBERS,
    MIN_ITEMS,
    MIN_LENGTH,
    MIN_MEMBERS,
    MINIMUM,
    MULTIPLE,
    NAMES,
    NOT,
    OBJECT,
    ONE,
    REQUIRED,
    UNIQUE,
)

# positions in a violation
_CHECK = const(0)
_ARGUMENT = const(1)
_FOUND = const(2)
_PATH = const(3)
_WHAT = const(1)  # of the argument of MATCH

_WORDS = (
    (1, "a string"),
    (2, "a boolean"),
    (8, "a number"),
    (4, "an integer"),
    (16, "an object"),
    (32, "an array"),
    (64, "null"),
)
_BOUNDS = ("at least", "at most", "more than", "less than")
_ENDINGS = {
    "steps": "expected a value that is checked in %d steps, got more",
    "depth": "expected at most %d levels of nesting, got more",
    "nested": "expected a value that is checked by %d schemas at once, got more",
    "half": "expected text, got half of a surrogate pair",
}


def describe(root: str, violation: list) -> str:
    """Return the whole sentence; *root* is the word that its path begins with."""
    return "at %s: %s" % (path(root, violation[_PATH:]), _sentence(violation))


def _sentence(violation):
    op = violation[_CHECK]
    if type(op) is str and op != "kind":
        return _ending(op, violation)
    arg = violation[_ARGUMENT]
    found = violation[_FOUND]
    if op == REQUIRED:
        return "expected a value, got nothing"
    if op == NAMES:
        return "in the name: " + _sentence(arg)
    if op == OBJECT:
        known = [word for word in arg[3:] if type(word) is str]
        return "expected %s, got the name %s" % (
            several(known) if known else "no such name",
            show(found),
        )
    if op == CONTAINS:
        least, most, _ = arg
        return _count(found >= least, most if found >= least else least, "matching item", found)
    if op == UNIQUE:
        return "expected an item unlike those before it, got " + show(found)
    if op == ONE:
        return "expected exactly one of %d alternatives to match, got %d" % (len(arg), found)
    if op == NOT:
        return "expected no match of the schema under `not`, got " + show(found)
    if op in (MIN_MEMBERS, MAX_MEMBERS, MIN_ITEMS, MAX_ITEMS, MIN_LENGTH, MAX_LENGTH):
        return _count(
            op in (MAX_MEMBERS, MAX_ITEMS, MAX_LENGTH),
            arg,
            "character" if op > MATCH else "item" if op > ITEMS else "member",
            len(found),
        )
    return "expected %s, got %s" % (_describe_expected(op, arg), show(found))


def _ending(word, violation):
    sentence = _ENDINGS.get(
        word, "expected a value that nests no deeper than this device can follow"
    )
    return sentence % violation[_ARGUMENT] if "%" in sentence else sentence


def _count(at_most, limit, noun, found):
    return "expected %s %d %s, got %d" % (
        _BOUNDS[at_most],
        limit,
        noun if limit == 1 else noun + "s",
        found,
    )


def _describe_expected(op, arg):
    if op == "kind":
        words = [word for bit, word in _WORDS if arg & bit and not (bit == 4 and arg & 8)]
        return " or ".join(words) or "no value here"
    if op == MATCH:
        return arg[_WHAT]
    if op == MULTIPLE:
        if type(arg) is int:
            return "a multiple of " + show(arg)
        step, places = arg
        return "a multiple of " + show(step / 10**places)
    if op == ENUM:
        return several(arg)
    if op == ANY:
        return "a match of one of %d alternatives" % len(arg)
    return _BOUNDS[op - MINIMUM] + " " + show(arg)
