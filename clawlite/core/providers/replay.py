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
    """One transcript, and which of its turns was begun last.  How far a turn has come belongs to
    that turn (``history.History.progress``), because many go on at the same time.
    """

    def __init__(self, turns: list):
        self._turns = turns
        self._turn = -1

    def reply(self, history) -> Reply:
        """Return the next recorded reply for the current turn of *history*.  Raises
        ``ProviderError`` when the person's message is not the recorded one.
        """
        last = history.turn[-1]
        if last.role == "user":
            self._turn = (self._turn + 1) % len(self._turns)
            wanted = self._turns[self._turn][_MESSAGE]
            if wanted is not None and wanted != last.text:
                raise ProviderError(
                    "replay: recorded turn %d begins with %s, got %s"
                    % (self._turn + 1, canonical(wanted, 60), canonical(last.text, 60)),
                    "say what was recorded, or record the turns again",
                )
            history.progress = self._turn, 0
        if not history.progress:
            raise ProviderError(
                "replay: another provider began this turn", "declare the replay provider first"
            )
        turn, place = history.progress
        rounds = self._turns[turn][_ROUNDS]
        if place >= len(rounds):
            raise ProviderError(
                "replay: recorded turn %d has %d rounds and the tools were called "
                "in all of them" % (turn + 1, len(rounds)),
                "end it with a reply that calls no tool",
            )
        history.progress = turn, place + 1
        text, calls = rounds[place]
        return Reply(text, [("", name, arguments, "") for name, arguments in calls])
