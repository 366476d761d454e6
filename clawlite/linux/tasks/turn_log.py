"""An event of the log for each turn that has ended: how long it took, what it has used, and how
much memory the process has then.

1. An event says nothing of what was said.
2. Tokens and money are those that were used since the event before it, so that their sums are
   right; of turns that overlap, either may have those of the other.
"""

from clawlite.core.base.effect import LOG
from clawlite.core.base.errors import ClawError
from clawlite.linux.io.process_memory import resident_bytes
from clawlite.linux.io.stdio import now_ms


class TurnLog:
    """The turns of one agent.

    parts  ``agent_parts.AgentParts``, whose work without this is ``lasting``
    """

    def __init__(self, parts):
        self._parts, self._inner = parts, parts.lasting
        self._used = (0, 0, 0)  # tokens read, tokens written and nano-dollars, when last told

    def lasting(self, work, history, once: bool, channel: str = ""):
        """Return *work* of a turn, which is told of in the log; see ``Setup.lasting``."""
        if self._inner:
            work = self._inner(work, history, once, channel)
        return self._time_turn(work, channel, lambda: bool(history.turn))

    def watch(self, work, caller: str):
        """Return *work* of a turn that *caller* has begun, which is told of in the log."""
        return self._time_turn(work, caller, lambda: True)

    def _time_turn(self, work, by: str, is_turn):
        event: dict = {"event": "turn.ended"}
        began_ms = now_ms()
        if by:
            event["by"] = by
        try:
            clean = yield from work
        except ClawError as e:
            event.update(status="error", code=e.code)
            yield (LOG, self._complete(event, began_ms))
            raise
        event["status"] = "refused" if clean is False else "ok"
        if is_turn():  # else it has only begun a new conversation
            yield (LOG, self._complete(event, began_ms))
        return clean

    def _complete(self, event: dict, began_ms: int) -> dict:
        event["duration_ms"] = now_ms() - began_ms
        tokens = self._parts.meter.tokens if self._parts.meter else ()
        if tokens:
            used = (*tokens, self._parts.spent_nano_usd)
            read, written, nano = [
                now - before for now, before in zip(used, self._used, strict=True)
            ]
            self._used = used
            event["tokens"] = [read, written]
            if nano:
                event["cost_nano_usd"] = nano
        event["memory_kib"] = resident_bytes() // 1024
        return event
