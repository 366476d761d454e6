"""The conversation that a remote provider sees: whole turns, the newest last.

A turn is never split: a tool call stays with its result.  When the turns no longer fit, the oldest
turns are forgotten.

Providers cache the part that a request shares with an earlier one, from the first byte on.  So
turns are left out of requests in larger steps, and between the steps requests only grow."""

from clawlite.core.base.dialect import const
from clawlite.core.base.effect import SAY

_MESSAGES = const(0)  # of a turn that is kept
_BYTES = const(1)
_OVERHEAD = 48  # bytes of JSON around a message
_READER = const(0)  # of ``left_out``
_FIRST = const(1)


class History:
    """One conversation.

    max_bytes  int, how many bytes of earlier turns are kept
    """

    def __init__(self, max_bytes: int):
        self._max = max_bytes
        self._turns = []  # [[message, ...], bytes]
        self.turn = []  # messages of the current turn
        # place of the provider that answers it (core/providers/provider_order.py): its later rounds
        # stay there, or rules and a model would alternate
        self.answering = 0
        self.question = None  # what a provider asked that person back (linux/local/provider.py)
        self.progress = None  # how far that provider has come in it, if it keeps that
        self.is_void = False  # a provider refused the current turn: no later request has it
        # the turn belongs to a tool: only a model can answer it, and no text is shown
        self.is_nested = False
        self._forgotten = 0  # turns before the first of _turns
        # (provider, number of the first turn that it gets), for the last one that had no room
        self.left_out = None
        self._ids = 0
        # messages that stand for turns of earlier sessions, and are always sent
        self.summary = []
        self.is_kept = False  # each turn is stored, and only then its last text is shown
        self.end = None  # the effect that shows it
        # what was said before is not seen again; a store of the conversation is still to know it
        self.is_new = False
        self.is_cut = False  # the store says that the conversation began afresh
        # messages before all others: the current content of the agent's files
        self.preface = []
        self.is_restored = False  # the turns of earlier sessions have been looked for
        self.is_told = False  # the person knows that this conversation is not stored
        # (name, is an admin) of the person who writes; None where it may be somebody else's text
        self.speaker = None

    def restore(self, turns: list) -> None:
        """Begin with *turns* of earlier sessions, each a list of messages, the newest last."""
        if self._max:
            self._turns = [[turn, _size(turn)] for turn in turns] + self._turns
            self._forgotten -= len(turns)
            self._ids += 16 * len(turns)  # those turns may have used ids of this kind, too

    def renew(self):
        """Begin a conversation afresh (the command /new); a generator of effects in the place of a
        turn.
        """
        self._turns, self.turn, self.summary = [], [], []
        self.left_out = None
        self.is_void = False
        self.is_new = True
        yield (SAY, "A new conversation begins.")
        return True

    def new_id(self) -> str:
        """Return an id for a call without one: a call that rules made, before a remote provider
        sees it.
        """
        self._ids += 1
        return "local-%d" % self._ids

    def begin(self, message) -> None:
        """Begin a turn with a person's *message* (``turn.Message``).  A turn that ended without an
        answer is kept too, unless it is void.
        """
        if self.turn and not self.is_void:
            self._turns.append([self.turn, _size(self.turn)])
        self.turn = [message]
        self.is_void = False
        self.answering = 0
        self.progress = None
        total = sum([size for _, size in self._turns])
        while self._turns and total > self._max:
            total -= self._turns.pop(0)[_BYTES]
            self._forgotten += 1

    def context(self, reader: str = "", most: int = 0) -> list:
        """Return the messages for a request: earlier turns, the oldest first, and this one.

        reader  name of the provider that gets them; turns that ``leave_out`` left out are missing
        most    bytes of each text of an earlier turn, 0: all of it
        """
        messages = self.preface + self.summary
        for turn, _ in self._turns[self._first(reader) :]:
            messages += [_shorten(message, most) for message in turn] if most else turn
        return messages + self.turn

    def leave_out(self, reader: str, bytes: int, most: int = 0) -> bool:
        """From now on leave out the oldest turns, about *bytes* of them, from requests to *reader*.
        Return False when it gets no earlier turns anyway.
        """
        first = self._first(reader)
        if first == len(self._turns):
            return False
        while first < len(self._turns) and bytes > 0:
            bytes -= _size(self._turns[first][_MESSAGES], most)
            first += 1
        self.left_out = (reader, self._forgotten + first)
        return True

    def has_earlier(self, reader: str) -> bool:
        """Return whether *reader* gets earlier turns."""
        return self._first(reader) < len(self._turns)

    def _first(self, reader: str) -> int:
        """Return the index of the first turn that *reader* gets."""
        left_out = self.left_out
        if not left_out or left_out[_READER] != reader or left_out[_FIRST] < self._forgotten:
            return 0
        return left_out[_FIRST] - self._forgotten


def _shorten(message, most: int):
    """Return *message*, or a copy with the first *most* bytes of its text when that is longer."""
    data = message.text.encode()
    if len(data) <= most:
        return message
    end = most
    while data[end] & 0xC0 == 0x80:  # not within a character
        end -= 1
    text = "%s\n[truncated: true, original_bytes: %d]" % (str(data[:end], "utf-8"), len(data))
    return message.copy(text, message.calls)


def _size(messages: list, most: int = 0) -> int:
    """Return about how many bytes *messages* take in a request; *most*: of each text, 0: all."""
    total = 0
    for message in messages:
        size = len(message.text.encode())
        total += (most if 0 < most < size else size) + _OVERHEAD
        for _, name, raw in message.calls:
            total += len(name) + len(raw.encode()) + _OVERHEAD
        for _, member in message.opaque:
            total += len(member.encode())
    return total
