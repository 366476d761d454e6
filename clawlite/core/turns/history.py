"""The conversation that a remote provider sees: whole turns, the newest last.

A turn is never parted: a tool call stays with its result.  What no longer fits is forgotten turn by
turn, the oldest first.

Providers cache what a request has in common with an earlier one from its first byte on.  So what a
provider is not shown any more is left out in larger steps, and in between requests only grow."""

from clawlite.core.base.dialect import const

_MESSAGES = const(0)  # of a turn that is kept
_BYTES = const(1)
_OVERHEAD = 48  # bytes of JSON around a message
_READER = const(0)  # of what is left out
_FIRST = const(1)


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
        self._forgotten = 0  # turns before the first of _turns
        # (provider, number of the first turn that it is shown): of the last one that had no room
        self._left_out = None
        self._ids = 0
        # messages that stand for turns of earlier sessions, which are shown always
        self.summary = []
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
            self._forgotten -= len(turns)
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
            self._forgotten += 1

    def context(self, reader: str = "", most: int = 0) -> list:
        """Return the messages for a request: earlier turns, the oldest first, and this one.

        reader  name of the provider that gets them: without what ``leave_out`` took from it
        most    bytes of a text of an earlier turn, 0: all of it
        """
        messages = self.preface + self.summary
        for turn, _ in self._turns[self._first(reader) :]:
            messages += [_shortened(message, most) for message in turn] if most else turn
        return messages + self.turn

    def leave_out(self, reader: str, bytes: int, most: int = 0) -> bool:
        """From now on leave out of what *reader* gets its oldest turns, some *bytes* of them;
        return False when it gets none of them anyway.
        """
        first = self._first(reader)
        if first == len(self._turns):
            return False
        while first < len(self._turns) and bytes > 0:
            bytes -= _size(self._turns[first][_MESSAGES], most)
            first += 1
        self._left_out = (reader, self._forgotten + first)
        return True

    def _first(self, reader: str) -> int:
        """Return the index of the first turn that *reader* gets."""
        left_out = self._left_out
        if not left_out or left_out[_READER] != reader or left_out[_FIRST] < self._forgotten:
            return 0
        return left_out[_FIRST] - self._forgotten


def _shortened(message, most: int):
    """Return *message*, or a copy of it with the first *most* bytes of a longer text."""
    data = message.text.encode()
    if len(data) <= most:
        return message
    end = most
    while data[end] & 0xC0 == 0x80:  # not within a character
        end -= 1
    text = "%s\n[truncated: true, original_bytes: %d]" % (str(data[:end], "utf-8"), len(data))
    return type(message)(
        message.role, text, message.calls, message.id, message.tool, message.result
    )


def _size(messages: list, most: int = 0) -> int:
    """Return the bytes of *messages* in a request, about; of each text *most*."""
    total = 0
    for message in messages:
        size = len(message.text.encode())
        total += (most if 0 < most < size else size) + _OVERHEAD
        for _, name, raw in message.calls:
            total += len(name) + len(raw.encode()) + _OVERHEAD
    return total
