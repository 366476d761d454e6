"""The conversation that a remote provider sees: whole turns, the newest last.

A turn is never parted: a tool call stays with its result.  What no longer fits is forgotten turn by
turn, the oldest first."""

from clawlite.core.base.dialect import const

_BYTES = const(1)  # of a turn that is kept
_OVERHEAD = 48  # bytes of JSON around a message


class History:
    """One conversation.

    max_bytes  int, how much of earlier turns is kept
    """

    def __init__(self, max_bytes: int):
        self._max = max_bytes
        self._turns = []  # [[message, ...], bytes]
        self.turn = []  # messages of the turn under way
        # who answers in it (core/providers/provider_order.py): its later rounds stay there, or
        # rules and a model would take turns
        self.answering = 0
        # of a tool: only a model can answer it, and nothing of the answer is shown
        self.is_nested = False
        self._ids = 0
        self.is_kept = False  # each turn is stored, and its end is shown then
        self.end = None  # the effect that shows it
        # messages before all others: what files of the agent's say now
        self.preface = []
        self.is_restored = False  # what was said in earlier sessions has been looked for
        self.is_told = False  # that this conversation is not stored has been said

    def restore(self, turns: list) -> None:
        """Begin with *turns* of earlier sessions, each a list of messages, the newest last."""
        if self._max:
            self._turns = [[turn, _size(turn)] for turn in turns] + self._turns
            self._ids += 16 * len(turns)  # ids of its own calls were made then, too

    def new_id(self) -> str:
        """Return an id for a call that came without one: from rules, before a remote provider
        sees it.
        """
        self._ids += 1
        return "local-%d" % self._ids

    def begin(self, message) -> None:
        """Begin a turn with a person's *message* (``turn.Message``); one that ended without an
        answer is kept too.
        """
        if self.turn:
            self._turns.append([self.turn, _size(self.turn)])
        self.turn = [message]
        self.answering = 0
        total = sum([size for _, size in self._turns])
        while self._turns and total > self._max:
            total -= self._turns.pop(0)[_BYTES]

    def context(self, room: int, fewer: int = 0) -> list:
        """Return the messages for a request: this turn, and as many earlier ones as *room* bytes
        admit (0: all).

        fewer  how many of those are left out, the oldest first: how long a message is on the wire
               is only known there
        """
        fitting = []
        left = room - _size(self.turn) - _size(self.preface)
        for turn, size in reversed(self._turns):
            if room and size > left:
                break
            left -= size
            fitting.append(turn)
        messages = list(self.preface)
        for turn in reversed(fitting[: max(0, len(fitting) - fewer)]):
            messages += turn
        return messages + self.turn


def _size(messages: list) -> int:
    total = 0
    for message in messages:
        total += len(message.text.encode()) + _OVERHEAD
        for _, name, raw in message.calls:
            total += len(name) + len(raw.encode()) + _OVERHEAD
    return total
