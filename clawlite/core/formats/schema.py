"""Check whether a JSON value fits a JSON Schema.  The host compiled the schema to a check program;
this module runs it.

A *node* says what one value may be:

    n >= 0                 mask of the kinds allowed: 1 string, 2 boolean, 4 integer (1.0 is one), 8
                           number that is no integer, 16 object, 32 array, 64 null; 127 admits
                           anything, 0 nothing
    -n                     the node at index n of the table below
    [mask, op, arg, ...]   a mask, then checks in the compiler's order; each check applies to its
                           kinds of values only

    0 OBJECT       as below                12 MAX_LENGTH  code points
    1 REQUIRED     [name, ...]              13 MINIMUM     number
    2 NAMES        node of every name       14 MAXIMUM     number
    3 MIN_MEMBERS  count                    15 ABOVE       number
    4 MAX_MEMBERS  count                    16 BELOW       number
    5 ITEMS        [rest, node 0, ...]      17 MULTIPLE    integer, or [integer, decimal places]
    6 CONTAINS     [min, max or -1, node]   18 ENUM        [value, ...]
    7 UNIQUE       1                        19 ALL         [node, ...]
    8 MIN_ITEMS    count                    20 ANY         [node, ...]
    9 MAX_ITEMS    count                    21 ONE         [node, ...]
    10 MATCH       [automaton, what]        22 NOT         node
    11 MIN_LENGTH  code points              23 IF_THEN     [node, then, else]

The argument of OBJECT is [r, others, patterns, name, node, name, node, ...]: the first r names are
required; *others* is the node of members that neither a name nor a pattern covers; patterns are 0
or [automaton, node, automaton, node, ...].

A *program* is a node, or a table [None, node, node, ...] whose index 1 is where the check begins.

Rules: 1. Programs come from the image and are trusted; values come from a model or a peer and are
not.  2. The first violation is the same on every runtime: it does not depend on the order of a
dict.  3. A check that would go too deep or take too long is a violation.  4. Internally a violation
is a list: an operation (or a word), its argument, what was found, then the path from the leaf
upwards; ``violation.py`` makes a sentence of it.  5. Few schemas need ``schemarare.py``, and few
values ``violation.py``.  Both are imported when they are needed, and no module keeps a reference to
them, so that a device can drop them again.
Source  JSON Schema 2020-12; CKP 0.2.0, 5.4: arguments are checked before a tool runs.
"""

from clawlite.core.base.dialect import const
from clawlite.core.formats.operations import (
    ABOVE,
    ENUM,
    ITEMS,
    MATCH,
    MAXIMUM,
    MAX_ITEMS,
    MAX_LENGTH,
    MAX_MEMBERS,
    MINIMUM,
    MIN_ITEMS,
    MIN_MEMBERS,
    MULTIPLE,
    OBJECT,
    REQUIRED,
)

MAX_DEPTH = 32  # nesting of a value, as in the JSON decoders
# nodes with checks that one value may visit: `anyOf` within recursion takes exponential time
MAX_STEPS = 50000

# positions in the argument of OBJECT, of ITEMS, and of MATCH
_COUNT = const(0)
_OTHERS = const(1)
_PATTERNS = const(2)
_FIRST_NAME = const(3)
_REST = const(0)
_AUTOMATON = const(0)
_BEGIN = const(1)  # of a table


_STRING = const(1)
_INTEGER = const(4)
_FRACTION = const(8)
_OBJECT = const(16)
_ARRAY = const(32)
_ANYTHING = const(127)
_KINDS = {str: 1, bool: 2, int: 4, float: 8, dict: 16, list: 32, type(None): 64}
# op -> kinds
_ABOUT = b"\x10\x10\x10\x10\x10\x20\x20\x20\x20\x20\x01\x01\x01\x0c\x0c\x0c\x0c\x0c\x7f\x7f\x7f\x7f\x7f\x7f"  # noqa: E501


def check(program, value, automata, root: str = "arguments"):
    """Return None when *value* fits, else the first violation as ``at PATH: expected ..., got
    ...``.

    program   as above
    value     what a JSON decoder gives: None, bool, int, float, str, list, dict
    automata  function(index) -> table bytes, see ``clawlite.core.formats.automaton``
    root      the word that paths begin with
    Raises ImageError for a damaged automaton; no value makes it raise.
    Cost      O(size of value) for schemas without alternatives; MAX_STEPS bounds the others.
    """
    table = None
    if type(program) is list and program[0] is None:
        table = program
        program = program[_BEGIN]
    try:
        problem = _Run(table, automata).node(program, value, 0)
        if problem is None:
            return None
    # ours has a word and a number as its arguments; the runtime's own: the stack is used up
    except RuntimeError as stop:
        problem = list(stop.args)
    from clawlite.core.formats import violation

    return violation.describe(root, problem)


class _Run:
    """One check in progress: its inputs, the steps it has used, and the functions it imported.

    Raises RuntimeError(word, limit) to end the whole check when a bound is exceeded or a text is
    not valid.
    """

    def __init__(self, table, automata):
        self.table = table
        self.automata = automata
        self.steps = 0
        self.nested = 0
        self.rare = None  # functions, as soon as a node has asked for them
        self.search = None

    def node(self, node, value, depth: int):
        """Return the violation of *node* by *value*, which lies *depth* levels deep, or None.

        Members and items are checked here and not in functions of their own, so that each level
        costs only one call on a board's short stack.
        """
        kind = _KINDS.get(type(value), 0)
        # infinity and nan are no integers
        if kind == _FRACTION and value - value == 0 and int(value) == value:
            kind = _INTEGER
        while type(node) is int:
            if node >= 0:
                return None if node & kind else ["kind", node, value]
            node = self.table[-node]
        if not node[0] & kind:
            return ["kind", node[0], value]
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise RuntimeError("steps", MAX_STEPS)
        if depth >= MAX_DEPTH and kind & (_OBJECT | _ARRAY):
            raise RuntimeError("depth", MAX_DEPTH)
        for at in range(1, len(node), 2):
            op = node[at]
            arg = node[at + 1]
            if not _ABOUT[op] & kind:
                continue
            if (
                MATCH < op < MULTIPLE
                or op == ENUM
                and kind == _STRING
                or op == MIN_MEMBERS
                or op == MAX_MEMBERS
                or op == MIN_ITEMS
                or op == MAX_ITEMS
            ):
                if _holds(op, arg, value):
                    continue
                return [op, arg, value]
            if op == OBJECT:
                found = 0
                for nth in range(_FIRST_NAME, len(arg), 2):
                    if arg[nth] in value:
                        found += 1
                        problem = self.node(arg[nth + 1], value[arg[nth]], depth + 1)
                        if problem is not None:
                            problem.append(arg[nth])
                            return problem
                    elif nth < _FIRST_NAME + 2 * arg[_COUNT]:
                        return [REQUIRED, arg, value, arg[nth]]
                if arg[_PATTERNS] == 0 and (found == len(value) or arg[_OTHERS] == _ANYTHING):
                    continue
                problem = self.rest(OBJECT, arg, value, _OBJECT, depth)
            elif op == ITEMS:
                found = len(arg) - 1  # nodes of the first items; the one before them is the others'
                if found == 0 and arg[_REST] == _ANYTHING:
                    continue
                for nth in range(len(value)):
                    problem = self.node(
                        arg[nth + 1 if nth < found else _REST], value[nth], depth + 1
                    )
                    if problem is not None:
                        problem.append(nth)
                        return problem
                continue
            elif op == MATCH:
                problem = None if self.matches(arg[_AUTOMATON], value) else [op, arg, value]
            else:
                problem = self.rest(op, arg, value, kind, depth)
            if problem is not None:
                return problem
        return None

    def rest(self, op: int, arg, value, kind: int, depth: int):
        """Check what schemarare.py checks."""
        if self.rare is None:
            from clawlite.core.formats import schemarare

            self.rare = schemarare.rare
        return self.rare(self, op, arg, value, kind, depth)

    def matches(self, index: int, text: str) -> bool:
        """Return whether the automaton at *index* matches somewhere in *text*."""
        if self.search is None:
            from clawlite.core.formats import automaton

            self.search = automaton.search
        try:
            data = text.encode()
        except UnicodeError:  # such text must not pass, whether or not it would match
            raise RuntimeError("half", 0)
        return self.search(self.automata(index), data)


def _holds(op: int, arg, value) -> bool:
    """Return whether the size of *value*, the number or the string meets the check *op*.  nan never
    does.
    """
    if op == ENUM:
        return value in arg
    if op > MAX_LENGTH:
        return (
            value >= arg
            if op == MINIMUM
            else value <= arg
            if op == MAXIMUM
            else value > arg
            if op == ABOVE
            else value < arg
        )
    size = len(value)
    return size <= arg if op == MAX_MEMBERS or op == MAX_ITEMS or op == MAX_LENGTH else size >= arg
