"""What a turn says to a person who is not at the console: it is kept for a channel
(linux/channels/channel.py), where the turn begins, and whose name its calls bear.
"""

from clawlite.core.base.effect import (
    APPROVAL,
    APPROVE,
    ASK,
    COUNT,
    KIND,
    LOG,
    OPEN,
    RECEIVE,
    RUN,
    RUN_SKILL,
    SAY,
    TEXT,
    VOID,
    WRITE,
)
from clawlite.core.base.errors import ClawError, PolicyDenied
from clawlite.core.turns.tools import call, fail, find

# effects that may have consequences or end the process: a tool, a connection to a provider, a skill
ACTS = (RUN, OPEN, ASK, RUN_SKILL)
MAX_ANSWER = 262144  # characters of a turn's output that are kept


class TurnOutput:
    """What one turn has said so far; of that, *most* characters are kept."""

    def __init__(self, most: int = MAX_ANSWER):
        self._said, self._size, self._most = [], 0, most
        self._lost = 0  # characters beyond *most*, which were dropped
        self._breaks = False  # the next text begins a line

    def add(self, text: str):
        # A text may have its own line end.  One of ours would be taken back in place of it.
        breaks, self._breaks = self._breaks and not text.startswith("\n"), False
        if breaks and self._said and self._size < self._most and not self._said[-1].endswith("\n"):
            self.keep("\n")
        self.keep(text)

    def keep(self, text: str):
        """Add *text* as it is."""
        kept = text[: self._most - self._size]
        if kept:
            self._said.append(kept)
            self._size += len(kept)
        self._lost += len(text) - len(kept)

    def take_back(self, count: int):
        """Remove the last *count* characters: an answer broke off."""
        self._lost -= count
        while self._lost < 0 and self._said:
            last = self._said.pop()
            kept = last[: self._lost]
            self._lost += len(last)
            self._size -= len(last) - len(kept)
            if kept:
                self._said.append(kept)
                self._lost = 0
        self._lost = max(0, self._lost)

    def end_line(self):
        """Make the next text begin a new line."""
        self._breaks = True

    def text(self) -> str:
        """Return what was said; where something is missing, its last line says so."""
        text = "".join(self._said).strip()
        if self._lost:
            text += "\n[truncated: true, original_characters: %d]" % (self._size + self._lost)
        return text


def keep_output(work, caller: str, into: TurnOutput, begins=None, acts: tuple = ACTS):
    """A generator of the effects of *work*, without its output, which is added to *into*.  The
    approvals that it asks for name *caller*.  On a board, *work* yields generators, too, which are
    carried on here (``Agent.drive``).

    begins  function(effect), or None.  It is called before each effect whose kind is in *acts*,
            until it returns True.  It may return a generator, whose effects come first.  A
            ``ClawError`` of either becomes the effect's error
    """
    value = error = None
    outer = []  # the generators that wait for *work*, the outermost first
    try:
        while True:
            try:
                effect = work.throw(error) if error else work.send(value)
                value = error = None
            except BaseException as e:
                value, error = (e.value, None) if isinstance(e, StopIteration) else (None, e)
                if not outer:
                    if error:
                        raise
                    return value
                work = outer.pop()
                continue
            if type(effect) is not tuple:
                outer.append(work)
                work = effect
                continue
            if effect[KIND] == WRITE:
                into.add(effect[TEXT])
                continue
            if effect[KIND] == VOID:
                into.take_back(effect[COUNT])
                continue
            if effect[KIND] != RECEIVE:  # after a RECEIVE, more text of the same line may come
                into.end_line()
            if effect[KIND] == SAY:
                into.add(effect[TEXT])
                continue
            if begins and effect[KIND] in acts:
                try:
                    first = begins(effect)
                    if first is True:
                        begins = None
                    elif first:
                        yield from first
                except ClawError as e:
                    error = e
                    continue
            if effect[KIND] == APPROVE:
                effect[APPROVAL].asker = caller
            try:
                value = yield effect
            except Exception as e:
                error = e
    finally:
        while work:
            work.close()
            work = outer.pop() if outer else None


def call_for(caller: str):
    """Return the function that runs the tool calls of a turn in the name of *caller*."""
    return lambda setup, name, arguments, _, *more: call(setup, name, arguments, caller, *more)


def refuse_for(caller: str):
    """Return the function that refuses the tool calls of a viewer's turn (CKP 0.2.0, 5.3
    "Roles").
    """

    def run(setup, name, arguments, _, *more):
        event = {
            "event": "tool.call",
            "tool": name,
            "caller": caller,
            "arguments": arguments,
            "image": setup.image.id,
        }
        event["tool"] = find(setup, name).name
        error = PolicyDenied(
            "%s: %s is a viewer, and a viewer triggers no tool" % (event["tool"], caller),
            "",
            {"tool": event["tool"], "role": "viewer"},
        )
        fail(event, error)
        yield (LOG, event)
        raise error

    return run
