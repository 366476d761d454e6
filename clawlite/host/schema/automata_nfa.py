"""The tree of a regular expression to states over UTF-8 bytes (Thompson's construction, backwards).

A state is an index; ``edges[s]`` are (low, high, target) byte ranges, ``jumps[s]`` are (condition,
target) without a byte.  Conditions are those below; ``automata_dfa`` decides them.
"""

import re
from re import _constants as sre

ALWAYS, AT_START, AT_END, AT_LAST_NEWLINE, AT_BOUNDARY, NOT_AT_BOUNDARY = range(6)
MAX_REPEAT = 1000
_MAX_STATES = 20000  # before they are made deterministic
_LAST = 0x10FFFF
_WORD = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]
_CLASSES = {
    sre.CATEGORY_DIGIT: [(0x30, 0x39)],
    sre.CATEGORY_WORD: _WORD,
    sre.CATEGORY_SPACE: [(9, 13), (32, 32)],
}
_NEGATED = {
    sre.CATEGORY_NOT_DIGIT: sre.CATEGORY_DIGIT,
    sre.CATEGORY_NOT_WORD: sre.CATEGORY_WORD,
    sre.CATEGORY_NOT_SPACE: sre.CATEGORY_SPACE,
}
_REFUSED = {
    sre.GROUPREF: "a back-reference",
    sre.ASSERT: "look-ahead or look-behind",
    sre.ASSERT_NOT: "look-ahead or look-behind",
    sre.FAILURE: "look-ahead or look-behind",
    sre.GROUPREF_EXISTS: "a conditional group",
    sre.POSSESSIVE_REPEAT: "a possessive repeat",
    sre.ATOMIC_GROUP: "an atomic group",
}


class Refusal(Exception):
    """What states cannot be built for: the construct (a key of automata._PLACES or not) and the
    rest of the sentence.
    """


class States:
    """States, their edges and jumps; ``start`` and ``accept`` are two of them."""

    def __init__(self):
        self.edges = []
        self.jumps = []

    def new(self, edges=(), jumps=()) -> int:
        """Return a new state."""
        if len(self.edges) == _MAX_STATES:
            raise Refusal(
                "the pattern", "needs more than %d states; use smaller repeat counts" % _MAX_STATES
            )
        self.edges.append(list(edges))
        self.jumps.append(list(jumps))
        return len(self.edges) - 1


def build(tree, python_dollar: bool) -> States:
    """Return the states of a parsed pattern; raises Refusal."""
    states = States()
    states.accept = states.new()
    ends = (AT_END, AT_LAST_NEWLINE) if python_dollar else (AT_END,)
    builder = _Builder(states, ends)
    states.start = builder.sequence(tree, states.accept, builder.flags(tree.state.flags, 0, 0))
    return states


class _Builder:
    """Each method takes part of the tree and the state that follows it, and returns the state
    before it.
    """

    def __init__(self, states, ends):
        self.states = states
        self.at = {
            sre.AT_BEGINNING: (AT_START,),
            sre.AT_BEGINNING_STRING: (AT_START,),
            sre.AT_END: ends,
            sre.AT_END_STRING: (AT_END,),
            sre.AT_BOUNDARY: (AT_BOUNDARY,),
            sre.AT_NON_BOUNDARY: (NOT_AT_BOUNDARY,),
        }

    def flags(self, old, added, removed):
        flags = (old | added) & ~removed
        if flags & re.MULTILINE:
            raise Refusal("the flag m", 'is not supported; write "(^|\\n)" or "(\\n|$)"')
        if flags & re.UNICODE:
            raise Refusal("the flag u", "is not supported: classes are ASCII")
        return flags

    def sequence(self, tree, out, flags):
        for op, arg in reversed(list(tree)):
            out = self.item(op, arg, out, flags)
        return out

    def item(self, op, arg, out, flags):
        ranges = _ranges(op, arg, flags)
        if ranges is not None:
            return self.characters(ranges, out)
        if op is sre.BRANCH:
            return self.states.new(
                jumps=[(ALWAYS, self.sequence(way, out, flags)) for way in arg[1]]
            )
        if op is sre.SUBPATTERN:
            return self.sequence(arg[3], out, self.flags(flags, arg[1], arg[2]))
        if op is sre.MAX_REPEAT or op is sre.MIN_REPEAT:
            return self.repeat(arg, out, flags)
        if op is sre.AT and arg in self.at:
            return self.states.new(jumps=[(condition, out) for condition in self.at[arg]])
        raise Refusal(_REFUSED.get(op, str(op)), "has no automaton")

    def repeat(self, arg, out, flags):
        least, most, tree = arg
        if least > MAX_REPEAT or most > MAX_REPEAT and most is not sre.MAXREPEAT:
            raise Refusal("a repeat count", "is above %d" % MAX_REPEAT)
        before = out
        if most is sre.MAXREPEAT:
            before = self.states.new(jumps=[(ALWAYS, out)])
            ranges = _ranges(*tree[0], flags) if len(tree) == 1 else None
            if ranges and ranges[-1][0] <= 0x80 and ranges[-1][1] == _LAST:
                # All that is not ASCII, any number of times: byte by byte, with no states within a
                # character
                for low, high in ranges:
                    self.states.edges[before].append((low, min(high, 255), before))
            else:
                self.states.jumps[before].append((ALWAYS, self.sequence(tree, before, flags)))
        else:
            for _ in range(most - least):
                before = self.states.new(
                    jumps=[(ALWAYS, out), (ALWAYS, self.sequence(tree, before, flags))]
                )
        for _ in range(least):
            before = self.sequence(tree, before, flags)
        return before

    def characters(self, ranges, out):
        """One character: states for its bytes, shared where the rest of two characters is alike."""
        known = {(): out}
        first = self.states.new()
        for low, high in ranges:
            for run in _utf8(low, high):
                state = out
                for at in range(len(run) - 1, 0, -1):
                    if run[at:] not in known:
                        known[run[at:]] = self.states.new([run[at] + (state,)])
                    state = known[run[at:]]
                self.states.edges[first].append(run[0] + (state,))
        return first


def _ranges(op, arg, flags):
    """Return the code points of an item that is one character, sorted and apart; None for other
    items.
    """
    if op is sre.LITERAL or op is sre.NOT_LITERAL:
        return _set([(sre.LITERAL, arg)], flags, op is sre.NOT_LITERAL)
    if op is sre.ANY:
        return [(0, _LAST)] if flags & re.DOTALL else [(0, 9), (11, _LAST)]
    if op is sre.IN:
        negated = arg[0][0] is sre.NEGATE
        return _set(arg[1:] if negated else arg, flags, negated)
    return None


def _set(items, flags, negated):
    ranges = []
    for op, arg in items:
        if op is sre.LITERAL:
            ranges.append((arg, arg))
        elif op is sre.RANGE:
            ranges.append(arg)
        elif arg in _CLASSES:
            ranges += _CLASSES[arg]
        else:
            ranges += _complement(_CLASSES[_NEGATED[arg]])
    if flags & re.IGNORECASE:
        for low, high in list(ranges):
            for first, last, shift in ((0x41, 0x5A, 32), (0x61, 0x7A, -32)):
                if max(low, first) <= min(high, last):
                    ranges.append((max(low, first) + shift, min(high, last) + shift))
    return _complement(ranges) if negated else _complement(_complement(ranges))


def _complement(ranges):
    """Return the code points not in *ranges*, sorted and apart."""
    result = []
    at = 0
    for low, high in sorted(ranges):
        if low > at:
            result.append((at, low - 1))
        at = max(at, high + 1)
    if at <= _LAST:
        result.append((at, _LAST))
    return result


def _utf8(low, high):
    """Return the code points low .. high as runs of byte ranges (RFC 3629; no surrogates)."""
    runs = []
    for first, last in (
        (0, 0x7F),
        (0x80, 0x7FF),
        (0x800, 0xD7FF),
        (0xE000, 0xFFFF),
        (0x10000, _LAST),
    ):
        if max(low, first) <= min(high, last):
            runs += _runs(chr(max(low, first)).encode(), chr(min(high, last)).encode())
    return runs


def _runs(low, high):
    if len(low) == 1:
        return [((low[0], high[0]),)]
    rest = len(low) - 1
    if low[0] == high[0]:
        return [((low[0], low[0]),) + run for run in _runs(low[1:], high[1:])]
    runs = []
    first, last = low[0], high[0]
    if low[1:] != b"\x80" * rest:
        runs += [((first, first),) + run for run in _runs(low[1:], b"\xbf" * rest)]
        first += 1
    end = []
    if high[1:] != b"\xbf" * rest:
        end = [((last, last),) + run for run in _runs(b"\x80" * rest, high[1:])]
        last -= 1
    if first <= last:
        runs.append(((first, last),) + ((0x80, 0xBF),) * rest)
    return runs + end
