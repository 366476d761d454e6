"""Does a JSON value fit a JSON Schema?  The host folded the schema into a check program; this module runs it.

A *node* says what one value may be:

    n >= 0                 mask of the kinds allowed: 1 string, 2 boolean, 4 integer (1.0 is one), 8 number that is no
                           integer, 16 object, 32 array, 64 null; 127 admits anything, 0 nothing
    -n                     the node at index n of the table below
    [mask, op, arg, ...]   a mask, then checks in the compiler's order, each for values of the kind that it is about

    0 OBJECT       see _object              12 MAX_LENGTH  code points
    1 REQUIRED     [name, ...]              13 MINIMUM     number
    2 KEYS         node of every name       14 MAXIMUM     number
    3 MIN_MEMBERS  count                    15 ABOVE       number
    4 MAX_MEMBERS  count                    16 BELOW       number
    5 ITEMS        [rest, node 0, ...]      17 MULTIPLE    integer, or [integer, decimal places]
    6 CONTAINS     [min, max or -1, node]   18 ENUM        [value, ...]
    7 UNIQUE       1                        19 ALL         [node, ...]
    8 MIN_ITEMS    count                    20 ANY         [node, ...]
    9 MAX_ITEMS    count                    21 ONE         [node, ...]
    10 MATCH       [automaton, what]        22 NOT         node
    11 MIN_LENGTH  code points              23 IF          [node, then, else]

A *program* is a node, or a table [None, node, node, ...] whose index 1 is where the check begins.

Rules: 1. Programs come from the image and are trusted; values come from a model or a peer and are not.  2. The first
violation is the same on every runtime: no order of a dict shows.  3. A check that would go too deep or take too long
is a violation.  4. Inside, a violation is a list: the sentence, then the path from the leaf upwards.
Source  JSON Schema 2020-12; CKP 0.2.0, 5.4: arguments are checked before a tool runs.
"""
from clawlite.core.dialect import const
from clawlite.core.jsonvalue import MAX_DEPTH, Undecided, is_whole, key, path, show
from clawlite.core.schemaleaf import counted, matches, no_such_member, number, one_of, size, string, wrong_kind

MAX_STEPS = 50000       # nodes with checks that one value may visit: `anyOf` within recursion is exponential
MAX_NESTED = 128        # combined schemas (op 19 .. 23) under way at once: they nest without going into the value

_STRING = const(1)
_INTEGER = const(4)
_FRACTION = const(8)
_OBJECT = const(16)
_ARRAY = const(32)
_ANYTHING = const(127)
_KINDS = {str: 1, bool: 2, int: 4, float: 8, dict: 16, list: 32, type(None): 64}


class _Run:
    """What one check carries along: the table of shared nodes, the automata, what it has spent."""

    def __init__(self, table, automata):
        self.table = table
        self.automata = automata
        self.steps = 0
        self.nested = 0


def check(program, value, automata, root: str = "arguments"):
    """Return None when *value* fits, else the first violation as ``at PATH: expected ..., got ...``.

    program   as above
    value     what a JSON decoder gives: None, bool, int, float, str, list, dict
    automata  function(index) -> table bytes, see ``clawlite.core.automaton``
    root      the word that paths begin with
    Raises ImageError for a damaged automaton, nothing for a value.
    Cost      O(size of value) for schemas without alternatives; MAX_STEPS bounds the others.
    """
    table = None
    if type(program) is list and program[0] is None:
        table = program
        program = program[1]
    try:
        problem = _node(program, value, _Run(table, automata), 0)
    except Undecided as stop:
        problem = [stop.args[0]]
    except RuntimeError:        # no stack left: a Pico has room for some ten levels
        problem = ["expected a value that nests no deeper than this device can follow"]
    return None if problem is None else "at %s: %s" % (path(root, problem[1:]), problem[0])


def _node(node, value, run, depth):
    kind = _KINDS.get(type(value), 0)
    if kind == _FRACTION and is_whole(value):
        kind = _INTEGER
    while type(node) is int:
        if node >= 0:
            return None if node & kind else wrong_kind(node, value)
        node = run.table[-node]
    if not node[0] & kind:
        return wrong_kind(node[0], value)
    run.steps += 1
    if run.steps > MAX_STEPS:
        raise Undecided("expected a value that is checked in %d steps, got more" % MAX_STEPS)
    if depth >= MAX_DEPTH and kind & (_OBJECT | _ARRAY):
        raise Undecided("expected at most %d levels of nesting, got more" % MAX_DEPTH)
    for at in range(1, len(node), 2):
        op = node[at]
        arg = node[at + 1]
        problem = None
        if op > 17:
            problem = _any_kind(op, arg, value, kind, run, depth)
        elif op < 5:
            if kind == _OBJECT:
                problem = _object(arg, value, run, depth) if op == 0 else _members(op, arg, value, run, depth)
        elif op < 10:
            if kind == _ARRAY:
                problem = _array(op, arg, value, run, depth)
        elif op < 13:
            if kind == _STRING:
                problem = string(op, arg, value, run.automata)
        elif kind & (_INTEGER | _FRACTION):
            problem = number(op, arg, value)
        if problem is not None:
            return problem
    return None


def _object(arg, value, run, depth):
    """Check the members of an object.

    arg  [r, others, patterns, name, node, name, node, ...]: the first r names are required; *others* is the node of
         members that neither a name nor a pattern covers; patterns are 0 or [automaton, node, automaton, node, ...]
    """
    found = 0
    required = 3 + 2 * arg[0]
    at = 3
    while at < len(arg):
        name = arg[at]
        if name in value:
            found += 1
            problem = _node(arg[at + 1], value[name], run, depth + 1)
            if problem is not None:
                problem.append(name)
                return problem
        elif at < required:
            return ["expected a value, got nothing", name]
        at += 2
    if arg[2] == 0 and (found == len(value) or arg[1] == _ANYTHING):
        return None
    return _others(arg, value, run, depth)


def _others(arg, value, run, depth):
    for name in sorted(value):          # dicts have no order on boards: the violation whose name sorts first is told
        matched = name in arg
        problem = None
        patterns = arg[2] or ()
        for at in range(0, len(patterns), 2):
            if matches(run.automata, patterns[at], name):
                matched = True
                problem = problem or _node(patterns[at + 1], value[name], run, depth + 1)
        if not matched:
            if arg[1] == 0:
                return no_such_member(arg, name)
            problem = _node(arg[1], value[name], run, depth + 1)
        if problem is not None:
            problem.append(name)
            return problem
    return None


def _members(op, arg, value, run, depth):
    if op == 1:
        for name in arg:
            if name not in value:
                return ["expected a value, got nothing", name]
    elif op == 2:
        for name in sorted(value):
            problem = _node(arg, name, run, depth + 1)
            if problem is not None:
                return ["in the name: " + problem[0], name]
    else:
        return size(op, arg, value)


def _array(op, arg, value, run, depth):
    if op == 5:
        last = len(arg) - 1
        if last == 0 and arg[0] == _ANYTHING:
            return None
        for at in range(len(value)):
            problem = _node(arg[at + 1 if at < last else 0], value[at], run, depth + 1)
            if problem is not None:
                problem.append(at)
                return problem
    elif op == 6:
        found = 0
        for item in value:
            found += _node(arg[2], item, run, depth + 1) is None
        if found < arg[0] or found > arg[1] >= 0:
            return counted(found >= arg[0], arg[found >= arg[0]], "matching item", found)
    elif op == 7:
        seen = set()
        for at in range(len(value)):
            same = key(value[at], depth + 1)
            if same in seen:
                return ["expected an item unlike those before it, got " + show(value[at]), at]
            seen.add(same)
    else:
        return size(op, arg, value)


def _any_kind(op, arg, value, kind, run, depth):
    if op == 18:
        return one_of(arg, value, depth)
    run.nested += 1
    if run.nested > MAX_NESTED:
        raise Undecided("expected a value that is checked by %d schemas at once, got more" % MAX_NESTED)
    problem = _combined(op, arg, value, kind, run, depth)
    run.nested -= 1
    return problem


def _combined(op, arg, value, kind, run, depth):
    if op == 19:
        for node in arg:
            problem = _node(node, value, run, depth)
            if problem is not None:
                return problem
    elif op == 22:
        if _node(arg, value, run, depth) is None:
            return ["expected no match of the schema under `not`, got " + show(value)]
    elif op == 23:
        return _node(arg[1 if _node(arg[0], value, run, depth) is None else 2], value, run, depth)
    else:
        return _alternatives(op, arg, value, kind, run, depth)


def _alternatives(op, arg, value, kind, run, depth):
    fitting = 0
    closest = None              # the violation of the only alternative that is about this kind of value
    about = 0
    for node in arg:
        problem = _node(node, value, run, depth)
        if problem is None:
            if op == 20:
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
        return ["expected exactly one of %d alternatives to match, got %d" % (len(arg), fitting)]
    if about == 1:
        return closest
    return ["expected a match of one of %d alternatives, got %s" % (len(arg), show(value))]
