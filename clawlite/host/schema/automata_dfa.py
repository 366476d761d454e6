"""States over bytes to the smallest deterministic table (subset construction, then Hopcroft's
minimisation).

A *thread* is a state and what it still needs of the text behind it, so that ``$`` and ``\\b`` are
decided by the byte that follows, without looking ahead.  Needs: 0 nothing; 1 a word byte; 2 another
byte or the end; 3 the same, but no continuation byte (``\\B`` may not hold within a character); 4 a
newline and then the end; 5 the end."""

from clawlite.host.schema.automata_nfa import (
    ALWAYS,
    AT_BOUNDARY,
    AT_END,
    AT_LAST_NEWLINE,
    AT_START,
    Refusal,
)

MAX_STATES = 2048
_MAX_RAW = 4096  # states before minimising
_MAX_WORK = 4000000  # steps: about two seconds
_NOTHING, _WORD, _OTHER, _OTHER_WHOLE, _NEWLINE, _END = range(6)
_WORDS = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")
_ACCEPT = 0  # deterministic state 0: matched, whatever follows


def table(states) -> bytes:
    """Return the table of an unanchored search for *states*; layout in
    ``clawlite.core.formats.automaton``.
    """
    rows, final, start, cuts = _Subsets(states).determine()
    block = _minimise(rows, final)
    return _pack(*_order(rows, final, start, block), cuts)


def _meet(need, more):
    """Return the need that says both, or None when nothing meets both."""
    if need == more or need == _NOTHING:
        return more
    if more == _NOTHING:
        return need
    if _WORD in (need, more) or min(need, more) == _NEWLINE:
        return None
    return max(need, more)


class _Subsets:
    def __init__(self, states):
        self.states = states
        self.work = 0
        self.ids = {}  # thread -> its bit
        self.threads = []
        # per thread: [(first interval, after the last, bits)], made when first asked for
        self.moves = []
        self.closures = {}
        used = {condition for jumps in states.jumps for condition, _ in jumps}
        self.boundaries = any(condition >= AT_BOUNDARY for condition in used)
        cuts = {0}
        for edges in states.edges:
            for low, high, _ in edges:
                cuts |= {low, high + 1}
        if self.boundaries:
            cuts |= {byte for byte in range(1, 256) if (byte in _WORDS) != (byte - 1 in _WORDS)} | {
                0x80,
                0xC0,
            }
        if AT_LAST_NEWLINE in used:
            cuts |= {10, 11}
        self.cuts = sorted(cuts - {256})
        self.words = [self.boundaries and cut in _WORDS for cut in self.cuts]
        self.index = {cut: at for at, cut in enumerate(self.cuts + [256])}
        self.thread((states.accept, _NOTHING))

    def spend(self, steps):
        self.work += steps
        if self.work > _MAX_WORK:
            raise Refusal("the pattern", "takes too long to make an automaton of; " + _ADVICE)

    def thread(self, thread):
        if thread not in self.ids:
            self.ids[thread] = len(self.threads)
            self.threads.append(thread)
            self.moves.append(None)
        return self.ids[thread]

    def closure(self, state, need, after_word, at_start=False):
        """Return the bits of the threads that *state* is without a further byte."""
        key = (state, need, after_word, at_start)
        if key not in self.closures:
            seen = {(state, need)}
            todo = [(state, need)]
            bits = 0
            while todo:
                at, has = todo.pop()
                if self.states.edges[at] or at == self.states.accept:
                    bits |= 1 << self.thread((at, has))
                for condition, target in self.states.jumps[at]:
                    more = _need(condition, after_word, at_start)
                    now = None if more is None else _meet(has, more)
                    if now is not None and (target, now) not in seen:
                        seen.add((target, now))
                        todo.append((target, now))
            self.spend(len(seen))
            self.closures[key] = bits
        return self.closures[key]

    def moves_of(self, bit):
        if self.moves[bit] is None:
            state, need = self.threads[bit]
            edges = self.states.edges[state] or [(0, 255, state)]  # accepted, but for its need
            after = _END if need == _NEWLINE else _NOTHING
            moves = []
            for low, high, target in edges:
                for at in range(self.index[low], self.index[high + 1]):
                    if self.meets(need, at):
                        moves.append((at, self.closure(target, after, self.words[at])))
            self.spend(len(moves))
            self.moves[bit] = moves
        return self.moves[bit]

    def meets(self, need, at):
        byte = self.cuts[at]
        if need == _WORD:
            return byte in _WORDS
        if need == _OTHER or need == _OTHER_WHOLE:
            return byte not in _WORDS and not (need == _OTHER_WHOLE and 0x80 <= byte < 0xC0)
        return byte == 10 if need == _NEWLINE else need == _NOTHING

    def determine(self):
        """Return rows (state -> interval -> state), the states that accept at the end, the
        start, the intervals.
        """
        restart = [self.closure(self.states.start, _NOTHING, word) for word in self.words]
        known = {}
        rows = [[_ACCEPT] * len(self.cuts)]
        final = {_ACCEPT}
        todo = []
        start = self.number_of(self.closure(self.states.start, _NOTHING, False, True), known, todo)
        while todo:
            bits = todo.pop(0)
            following = list(restart)
            rest = bits
            while rest:
                bit = rest & -rest
                rest ^= bit
                bit = bit.bit_length() - 1
                state, need = self.threads[bit]
                if state == self.states.accept and need != _WORD and need != _NEWLINE:
                    final.add(known[bits])
                moves = self.moves_of(bit)
                for at, more in moves:
                    following[at] |= more
                self.spend(1 + len(moves))
            rows.append([self.number_of(bits, known, todo) for bits in following])
            self.spend(len(following))
        return rows, final, start, self.cuts

    def number_of(self, bits, known, todo):
        if bits & 1:  # the first thread is: accepted, no need
            return _ACCEPT
        if bits not in known:
            if len(known) == _MAX_RAW:
                raise Refusal("the pattern", "needs more than %d states; %s" % (_MAX_RAW, _ADVICE))
            known[bits] = len(known) + 1
            todo.append(bits)
        return known[bits]


_ADVICE = (
    'use smaller repeat counts, fewer ".*" and classes like [^x], or split it into several patterns'
)


def _need(condition, after_word, at_start):
    if condition == ALWAYS:
        return _NOTHING
    if condition == AT_START:
        return _NOTHING if at_start else None
    if condition == AT_END:
        return _END
    if condition == AT_LAST_NEWLINE:
        return _NEWLINE
    if condition == AT_BOUNDARY:
        return _OTHER if after_word else _WORD
    return _WORD if after_word else _OTHER_WHOLE


def _minimise(rows, final):
    """Return the block of each state; states of one block accept the same texts (Hopcroft)."""
    before = [{} for _ in rows[0]]
    for state, row in enumerate(rows):
        for at, target in enumerate(row):
            before[at].setdefault(target, []).append(state)
    blocks = [set(final), set(range(len(rows))) - final]
    block = [0 if state in final else 1 for state in range(len(rows))]
    pending = {0, 1}
    while pending:
        splitter = list(blocks[pending.pop()])
        for sources in before:
            hit = {}
            for target in splitter:
                for state in sources.get(target, ()):
                    hit.setdefault(block[state], set()).add(state)
            for old, moved in hit.items():
                if len(moved) == len(blocks[old]):
                    continue
                new = len(blocks)
                blocks.append(moved)
                blocks[old] -= moved
                for state in moved:
                    block[state] = new
                pending.add(new if old in pending or len(moved) <= len(blocks[old]) else old)
    return block


def _order(rows, final, start, block):
    """Return rows over blocks, numbered from the start on, those that accept last; the start;
    the first accepting.
    """
    first = {}
    for state, number in enumerate(block):
        first.setdefault(number, state)
    order = [block[start]]
    seen = {block[start]}
    for number in order:  # grows while it is walked
        for target in rows[first[number]]:
            if block[target] not in seen:
                seen.add(block[target])
                order.append(block[target])
    order.sort(key=lambda number: first[number] in final)
    place = {number: at for at, number in enumerate(order)}
    accepting = sum(first[number] not in final for number in order)
    return (
        [[place[block[target]] for target in rows[first[number]]] for number in order],
        place[block[start]],
        accepting,
    )


def _pack(rows, start, accepting, cuts):
    if len(rows) > MAX_STATES:
        raise Refusal(
            "the pattern",
            "needs %d states, at most %d are allowed; %s" % (len(rows), MAX_STATES, _ADVICE),
        )
    columns = {}  # what a byte does in every state -> its class
    classes = bytearray()
    for at, column in enumerate(zip(*rows)):
        number = columns.setdefault(column, len(columns))
        classes += bytes([number]) * ((cuts + [256])[at + 1] - cuts[at])
    size = 1 if len(rows) <= 256 else 2
    cells = b"".join(cell.to_bytes(size, "little") for row in zip(*columns) for cell in row)
    tail = bytes([len(columns) - 1, 0xA0 + size])
    for number in (len(rows), start, accepting):
        tail += number.to_bytes(2, "little")
    return cells + bytes(classes) + tail
