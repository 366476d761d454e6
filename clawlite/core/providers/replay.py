"""The replay provider: recorded turns, played back for demos, tests and benchmarks.

Compiled (host/providers/replays.py) to a list of turns, each ``[user text or None, [[text, [[tool,
arguments], ...]], ...]]``. The n-th turn of a session plays the n-th recorded one; after the last
one it starts over."""

from clawlite.core.base.dialect import const
from clawlite.core.base.errors import ProviderError
from clawlite.core.base.render import canonical
from clawlite.core.turns.turn import Reply

_MESSAGE = const(0)  # of a recorded turn
_ROUNDS = const(1)


class Replay:
    """One transcript, and the current place in it."""

    def __init__(self, turns: list):
        self._turns = turns
        self._turn = -1
        self._round = 0

    def reply(self, messages: list) -> Reply:
        """Return the next recorded reply.  Raises ``ProviderError`` when the person's message is
        not the recorded one.
        """
        last = messages[-1]
        if last.role == "user":
            self._turn = (self._turn + 1) % len(self._turns)
            self._round = 0
            wanted = self._turns[self._turn][_MESSAGE]
            if wanted is not None and wanted != last.text:
                # another provider answers this turn, to its end
                self._round = len(self._turns[self._turn][_ROUNDS])
                raise ProviderError(
                    "replay: recorded turn %d begins with %s, got %s"
                    % (self._turn + 1, canonical(wanted, 60), canonical(last.text, 60)),
                    "say what was recorded, or record the turns again",
                )
        rounds = self._turns[self._turn][_ROUNDS]
        if self._round >= len(rounds):
            raise ProviderError(
                "replay: recorded turn %d has %d rounds and the tools were called "
                "in all of them" % (self._turn + 1, len(rounds)),
                "end it with a reply that calls no tool",
            )
        text, calls = rounds[self._round]
        self._round += 1
        return Reply(text, [("", name, arguments, "") for name, arguments in calls])
