"""Checks of one string, number, name or size: those of ``clawlite.core.schema`` that lead to no further node.

Each returns None, or the violation as a list of one sentence.
"""
from clawlite.core.automaton import search
from clawlite.core.jsonvalue import Undecided, is_whole, key, several, show

_WORDS = ((1, "a string"), (2, "a boolean"), (8, "a number"), (4, "an integer"), (16, "an object"), (32, "an array"),
          (64, "null"))
_BOUNDS = ("at least", "at most", "more than", "less than")
# What two roundings may add, relative: 2 units in the last place of a double, or of the 32-bit floats of boards.
# Computed here and not folded: the compiler of a board's code runs on a machine with doubles.
_ROUNDING = 4.5e-16 if float("1e-9") + 1.0 > 1.0 else 2.4e-7


def wrong_kind(mask: int, value) -> list:
    """Return the violation of a mask of kinds."""
    words = []
    for bit, word in _WORDS:
        if mask & bit and not (bit == 4 and mask & 8):
            words.append(word)
    return ["expected %s, got %s" % (" or ".join(words) or "no value here", show(value))]


def size(op: int, arg: int, value):
    """Compare the length of a string (in code points), array or object with *arg* (op 3, 4, 8, 9, 11, 12)."""
    found = len(value)
    at_most = op == 4 or op == 9 or op == 12
    if found <= arg if at_most else found >= arg:
        return None
    return counted(at_most, arg, "character" if op > 10 else "item" if op > 5 else "member", found)


def counted(at_most: bool, limit: int, noun: str, found: int) -> list:
    """Return the violation of a count."""
    return ["expected %s %d %s, got %d" % (_BOUNDS[at_most], limit, noun if limit == 1 else noun + "s", found)]


def string(op: int, arg, value: str, automata):
    """Check a string's length, or the automaton ``[index, what]`` (op 10)."""
    if op != 10:
        return size(op, arg, value)
    if not matches(automata, arg[0], value):
        return ["expected %s, got %s" % (arg[1], show(value))]


def matches(automata, index: int, text: str) -> bool:
    """Return whether the automaton at *index* matches somewhere in *text*.

    Raises Undecided for half a surrogate pair: neither a match nor its absence may let such text pass.
    """
    try:
        data = text.encode()
    except UnicodeError:
        raise Undecided("expected text, got half of a surrogate pair")
    return search(automata(index), data)


def one_of(values: list, value, depth: int):
    """Check that *value*, which lies *depth* deep, equals one of *values* as JSON does."""
    if type(value) is str:
        if value in values:
            return None
    else:
        same = key(value, depth)
        for item in values:
            if key(item, 0) == same:
                return None
    return ["expected %s, got %s" % (several(values), show(value))]


def no_such_member(arg: list, name: str) -> list:
    """Return the violation of a name that an object must not have; arg as in ``clawlite.core.schema._object``."""
    known = [word for word in arg[3:] if type(word) is str]
    return ["expected %s, got the name %s" % (several(known) if known else "no such name", show(name))]


def number(op: int, arg, value):
    """Compare *value* with a bound (op 13 .. 16) or a step (op 17).  nan fits nothing."""
    if op == 17:
        if _is_multiple(value, arg):
            return None
        return ["expected a multiple of %s, got %s" % (show(arg if type(arg) is int else arg[0] / 10 ** arg[1]),
                                                       show(value))]
    if value >= arg if op == 13 else value <= arg if op == 14 else value > arg if op == 15 else value < arg:
        return None
    return ["expected %s %s, got %s" % (_BOUNDS[op - 13], show(arg), show(value))]


def _is_multiple(value, step):
    """Integers exactly; a float when a decimal within two roundings of it is one, so 0.3 is a multiple of 0.1."""
    scale = 1
    if type(step) is list:
        scale = 10 ** step[1]
        step = step[0]
    if type(value) is int or is_whole(value):
        return int(value) * scale % step == 0
    scaled = abs(value) * scale
    if not scaled < 1e30:
        return False            # infinity and nan: every float of this size but them is an integer
    near = int(scaled + 0.5)
    return near % step == 0 and abs(scaled - near) <= scaled * _ROUNDING
