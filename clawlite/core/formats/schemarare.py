"""The checks of ``clawlite.core.formats.schema`` that few schemas have: those that combine schemas,
and those that look beyond one value.

``rare(run, op, arg, value, kind, depth)`` returns a violation or None.  *run* is the check in
progress, and *kind* the mask bit of *value*, which lies *depth* levels deep.  Operations, arguments
and violations are those of schema.py."""

from clawlite.core.base.dialect import const
from clawlite.core.formats.operations import (
    ALL,
    ANY,
    CONTAINS,
    ENUM,
    IF_THEN,
    MIN_MEMBERS,
    MULTIPLE,
    NOT,
    OBJECT,
    ONE,
    REQUIRED,
    UNIQUE,
)

# positions in the argument of CONTAINS, of OBJECT, and of IF_THEN
_LEAST = const(0)
_MOST = const(1)
_NODE = const(2)
_OTHERS = const(1)
_PATTERNS = const(2)
_CONDITION = const(0)
_THEN = const(1)
_ELSE = const(2)

# combined schemas (op 19 .. 23) open at once: they can nest without going deeper into the value
MAX_NESTED = 128

_MAX_DEPTH = const(32)  # as in schema.py, which imports this module
# The relative error that two roundings may add: 2 units in the last place of a double, or of the
# 32-bit floats of boards.  It is computed at run time and not folded, because the compiler of a
# board's code runs on a machine with doubles.
_ROUNDING = 4.5e-16 if float("1e-9") + 1.0 > 1.0 else 2.4e-7


def rare(run, op: int, arg, value, kind: int, depth: int):
    """Return the violation by *value* of any check that schema.py leaves to this module."""
    if op == OBJECT:
        return _check_unnamed(run, arg, value, depth)
    if op < MIN_MEMBERS:
        return _names(run, op, arg, value, depth)
    if op == CONTAINS:
        found = 0
        for item in value:
            found += run.node(arg[_NODE], item, depth + 1) is None
        return [op, arg, found] if found < arg[_LEAST] or found > arg[_MOST] >= 0 else None
    if op == UNIQUE:
        seen = set()
        for at in range(len(value)):
            same = _key(value[at], depth + 1)
            if same in seen:
                return [op, arg, value[at], at]
            seen.add(same)
        return None
    if op == MULTIPLE:
        return None if _is_multiple(value, arg) else [op, arg, value]
    if op == ENUM:
        same = _key(value, depth)
        for item in arg:
            if _key(item, 0) == same:
                return None
        return [op, arg, value]
    run.nested += 1
    if run.nested > MAX_NESTED:
        raise RuntimeError("nested", MAX_NESTED)
    problem = _check_combined(run, op, arg, value, kind, depth)
    run.nested -= 1
    return problem


def _check_unnamed(run, arg, value, depth):
    """Check the members that no name covers; *arg* is that of OBJECT in schema.py."""
    patterns = arg[_PATTERNS] or ()
    # dicts have no order on boards: the violation whose name sorts first is reported
    for name in sorted(value):
        matched = name in arg
        problem = None
        for at in range(0, len(patterns), 2):
            if run.matches(patterns[at], name):
                matched = True
                problem = problem or run.node(patterns[at + 1], value[name], depth + 1)
        if not matched:
            if arg[_OTHERS] == 0:
                return [OBJECT, arg, name]
            problem = run.node(arg[_OTHERS], value[name], depth + 1)
        if problem is not None:
            problem.append(name)
            return problem
    return None


def _names(run, op, arg, value, depth):
    if op == REQUIRED:
        for name in arg:
            if name not in value:
                return [op, arg, value, name]
        return None
    for name in sorted(value):
        problem = run.node(arg, name, depth + 1)
        if problem is not None:
            return [op, problem, value, name]
    return None


def _check_combined(run, op, arg, value, kind, depth):
    if op == ALL:
        for node in arg:
            problem = run.node(node, value, depth)
            if problem is not None:
                return problem
        return None
    if op == NOT:
        return [op, arg, value] if run.node(arg, value, depth) is None else None
    if op == IF_THEN:
        fits = run.node(arg[_CONDITION], value, depth) is None
        return run.node(arg[_THEN if fits else _ELSE], value, depth)
    return _alternatives(run, op, arg, value, kind, depth)


def _alternatives(run, op, arg, value, kind, depth):
    fitting = 0
    # the violation of the only alternative that is about this kind of value
    closest = None
    about = 0
    for node in arg:
        problem = run.node(node, value, depth)
        if problem is None:
            if op == ANY:
                return None
            fitting += 1
        else:
            while type(node) is int and node < 0:
                node = run.table[-node]
            if type(node) is list and node[0] & kind:
                closest = problem
                about += 1
    if fitting == 1:
        return None
    if fitting:
        return [ONE, arg, fitting]
    return closest if about == 1 else [ANY, arg, value]


def _is_multiple(value, step):
    """Return whether *value* is a multiple of *step*.  Integers are compared exactly.  A float
    counts when a decimal within two roundings of it is a multiple, so 0.3 is a multiple of 0.1.
    """
    scale = 1
    if type(step) is list:
        step, places = step
        scale = 10**places
    if type(value) is int or _is_whole(value):
        return int(value) * scale % step == 0
    scaled = abs(value) * scale
    if not scaled < 1e30:
        return False  # infinity and nan: every float of this size but them is an integer
    near = int(scaled + 0.5)
    return near % step == 0 and abs(scaled - near) <= scaled * _ROUNDING


def _is_whole(value):
    """Return whether a float is an integer; infinity and nan are not."""
    return value - value == 0 and int(value) == value


def _key(value, depth: int):
    """Return a hashable key that equal JSON values share and different ones do not.

    1 equals 1.0 and never true; objects have no order.
    depth   int >= 0, how deep *value* lies already; ends the check past 32
    """
    kind = type(value)
    if kind is bool:
        return (value,)
    if kind is float and _is_whole(value):
        return int(value)
    if kind is not list and kind is not dict:
        return value
    if depth >= _MAX_DEPTH:
        raise RuntimeError("depth", _MAX_DEPTH)
    if kind is list:
        parts = ["["]
        for item in value:
            parts.append(_key(item, depth + 1))
    else:
        parts = ["{"]
        for name in sorted(value):
            parts.append(name)
            parts.append(_key(value[name], depth + 1))
    return tuple(parts)
