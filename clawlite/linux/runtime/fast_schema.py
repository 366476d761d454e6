"""Whether an object of plain members fits its schema: a proof in one loop, for the tools that are
called most.

1. ``fits`` returns True only when it has proved it.  Else ``clawlite.core.formats.schema.check``
   decides, and says what is wrong.
2. A member is plain when it has one type, and at most bounds or a list of strings.  1.0 as an
   integer is left to ``check``.
3. A pattern can be proved when the start state of its automaton is a match, as for "^[^\\x00]*$".
   A text fits when all of its bytes leave the automaton in that state: one pass in C.
"""

from clawlite.core.base.errors import ImageError
from clawlite.core.formats.operations import (
    ABOVE,
    BELOW,
    ENUM,
    MATCH,
    MAX_LENGTH,
    MAXIMUM,
    MIN_LENGTH,
    MINIMUM,
    OBJECT,
)
from clawlite.core.policy import policy

_MASK, _OPERATION, _ARGUMENT = range(3)  # of a node with one check
_OBJECT = 16  # kinds of values, as in core/formats/schema.py


class _All:
    """A set that contains everything."""

    def __contains__(self, item) -> bool:
        return True


_TYPES = {1: (str,), 2: (bool,), 4: (int,), 12: (int, float), 64: (type(None),), 127: _All()}
_LENGTH, _NUMBER, _CHOICE = 1, 2, 3
# operation of core/formats/schema.py -> (what it bounds, 0 for the lower bound or 1 for the upper)
_BOUNDS = {
    MIN_LENGTH: (_LENGTH, 0),
    MAX_LENGTH: (_LENGTH, 1),
    MINIMUM: (_NUMBER, 0),
    MAXIMUM: (_NUMBER, 1),
    ABOVE: (_NUMBER, 0),
    BELOW: (_NUMBER, 1),
}
_ENDS = float("-inf"), float("inf")
_EXACT = 1 << 53  # all integers up to here have an exact float


def prepare(image, tool):
    """Set the fields of *tool* that make its calls quick: ``fits``, and ``decision`` when it is
    always the same.
    """
    tool.fits = proof(tool.schema, image.automaton)
    if tool.constant:
        tool.decision = policy.decide(image, tool.entry, [])


def proof(program, automata):
    """Return function(dict) -> bool, which is True only when the value fits *program*
    (core/formats/schema.py); None when there is no such function for *program*.

    automata  function(index) -> table, ``Image.automaton``
    """
    if (
        type(program) is not list
        or len(program) != 3
        or program[_MASK] != _OBJECT
        or program[_OPERATION] != OBJECT
    ):
        return None
    required, others, patterns = program[_ARGUMENT][:3]
    if others not in (0, 127) or patterns != 0:
        return None
    rows = []
    for at in range(3, len(program[_ARGUMENT]), 2):
        row = _row(program[_ARGUMENT][at + 1], automata)
        if row is None:
            return None
        rows.append((program[_ARGUMENT][at], at < 3 + 2 * required) + row)
    return _function(tuple(rows), others == 127)


def _row(node, automata):
    """Return (types, kind of bound or 0, low, high, bytes that its text may consist of or None) for
    a member, or None when it is not plain.
    """
    if type(node) is int:
        return (_TYPES[node], 0, None, None, None) if node in _TYPES else None
    if node[0] is None or node[0] not in _TYPES:
        return None
    what, bounds, clean = 0, list(_ENDS), None
    for at in range(1, len(node), 2):
        if node[at] == ENUM and node[0] in (1, 127) and not what:
            what, bounds[0] = _CHOICE, [choice for choice in node[at + 1] if type(choice) is str]
        elif node[at] in _BOUNDS and what in (0, _BOUNDS[node[at]][0]):
            what, end = _BOUNDS[node[at]]
            bound = node[at + 1]
            # strictly above or below a number: at least or at most the next float
            if node[at] > MAXIMUM:
                if abs(bound) > _EXACT:
                    return None
                from math import nextafter  # an extension that few agents need

                bound = nextafter(bound, _ENDS[1 - end])
            bounds[end] = min(bound, bounds[1]) if end else max(bound, bounds[0])
        elif node[at] == MATCH and node[0] == 1 and clean is None:
            clean = _harmless(automata, node[at + 1][0])
            if clean is None:
                return None
        else:
            return None
    if what == _LENGTH and node[0] != 1 or what == _NUMBER and node[0] not in (4, 12):
        return None
    return (str,) if what == _CHOICE else _TYPES[node[0]], what, bounds[0], bounds[1], clean


def _harmless(automata, index: int):
    """Return the bytes that leave automaton *index* (core/formats/automaton.py) in its start state,
    or None when that state is no match.
    """
    try:
        table = automata(index)
    except ImageError:  # ``check`` will report it
        return None
    rows = len(table) - 264
    width, wide, start = (
        table[rows + 256] + 1,
        table[rows + 257] - 0xA1,
        table[rows + 260] | table[rows + 261] << 8,
    )
    if wide or start < table[rows + 262] | table[rows + 263] << 8:
        return None
    return bytes(
        [byte for byte in range(256) if table[start * width + table[rows + byte]] == start]
    )


def _consists_of(text: str, clean: bytes) -> bool:
    try:
        return not text.encode().translate(None, clean)
    except UnicodeError:  # half a surrogate pair
        return False


def _function(rows: tuple, others: bool):
    def fits(value: dict) -> bool:
        found = 0
        for name, required, types, what, low, high, clean in rows:
            item = value.get(name, rows)
            if item is not rows:
                found += 1
                if type(item) not in types:
                    return False
                if what == 3:
                    if item not in low:
                        return False
                elif what and not low <= (len(item) if what == 1 else item) <= high:
                    return False
                if clean is not None and not _consists_of(item, clean):
                    return False
            elif required:
                return False
        return others or found == len(value)

    return fits
