"""The sentence of a violation that ``clawlite.core.formats.schema`` has found: ``at PATH: expected
..., got ...``.

A violation is a list: what was checked, the check's argument, what was found, then the path from
the leaf upwards. What was checked is an operation of schema.py, "kind" for a mask of kinds, or a
word of _ENDINGS; anything else is the runtime's own, when no stack was left.  It is imported for a
violation alone, so it may say all that helps."""

from clawlite.core.base.jsonvalue import path, several, show

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
    return "at %s: %s" % (path(root, violation[3:]), _sentence(violation))


def _sentence(violation):
    op = violation[0]
    if type(op) is str and op != "kind":
        return _ending(op, violation)
    arg = violation[1]
    found = violation[2]
    if op == 1:
        return "expected a value, got nothing"
    if op == 2:
        return "in the name: " + _sentence(arg)
    if op == 0:
        known = [word for word in arg[3:] if type(word) is str]
        return "expected %s, got the name %s" % (
            several(known) if known else "no such name",
            show(found),
        )
    if op == 6:
        return _count(found >= arg[0], arg[found >= arg[0]], "matching item", found)
    if op == 7:
        return "expected an item unlike those before it, got " + show(found)
    if op == 21:
        return "expected exactly one of %d alternatives to match, got %d" % (len(arg), found)
    if op == 22:
        return "expected no match of the schema under `not`, got " + show(found)
    if op in (3, 4, 8, 9, 11, 12):
        return _count(
            op in (4, 9, 12),
            arg,
            "character" if op > 10 else "item" if op > 5 else "member",
            len(found),
        )
    return "expected %s, got %s" % (_wanted(op, arg), show(found))


def _ending(word, violation):
    sentence = _ENDINGS.get(
        word, "expected a value that nests no deeper than this device can follow"
    )
    return sentence % violation[1] if "%" in sentence else sentence


def _count(at_most, limit, noun, found):
    return "expected %s %d %s, got %d" % (
        _BOUNDS[at_most],
        limit,
        noun if limit == 1 else noun + "s",
        found,
    )


def _wanted(op, arg):
    if op == "kind":
        words = [word for bit, word in _WORDS if arg & bit and not (bit == 4 and arg & 8)]
        return " or ".join(words) or "no value here"
    if op == 10:
        return arg[1]
    if op == 17:
        return "a multiple of " + show(arg if type(arg) is int else arg[0] / 10 ** arg[1])
    if op == 18:
        return several(arg)
    if op == 20:
        return "a match of one of %d alternatives" % len(arg)
    return _BOUNDS[op - 13] + " " + show(arg)
