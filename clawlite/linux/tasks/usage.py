"""What an agent has used and is doing now, for who looks after it: ``claw.usage.get``.

Calls and turns are counted from the log's events, since this process began.
"""

import collections

from clawlite.core.image.image import PROVIDERS
from clawlite.core.policy.ledger import DAY, DAY_COST, HOUR
from clawlite.core.policy.meter import HOUR_TOKENS
from clawlite.linux.io.process_memory import resident_bytes
from clawlite.linux.io.stdio import now_ms

_MINUTE_MS = 60000
_MOST_TIMES = 10000  # of calls in the last minute
_NANO = 1000000000
_NAME, _PER_DAY = 0, 14  # of a provider's row (core/providers/provider.py)
_FIRST_REMOTE = 2  # of the numbers of providers (core/providers/provider_order.py)
_SHOWN = ("by", "status", "code", "duration_ms", "timestamp")


class Usage:
    """What one agent uses.

    parts  ``agent_parts.AgentParts``
    """

    def __init__(self, parts):
        self._parts, self._began_ms = parts, now_ms()
        self._calls: collections.deque = collections.deque(maxlen=_MOST_TIMES)
        self._turns, self._last = 0, None

    def count(self, event: dict):
        """Count an *event* of the log."""
        if event["event"] == "tool.call" and "status" in event:
            self._calls.append(now_ms())
        elif event["event"] == "turn.ended":
            self._turns += 1
            self._last = {key: event[key] for key in _SHOWN if key in event}

    def describe(self) -> dict:
        """Return the result of ``claw.usage.get``."""
        parts, now = self._parts, now_ms()
        agent, info, meter = parts.agent, parts.image.agent, parts.meter
        while self._calls and now - self._calls[0] >= _MINUTE_MS:
            self._calls.popleft()
        read, written = meter.tokens if meter and meter.tokens else (0, 0)
        return {
            "agent": info.name,
            "version": info.version,
            "image": parts.image.id,
            "state": agent.lifecycle.state,
            "uptime_ms": now - self._began_ms,
            "memory_bytes": resident_bytes(),
            "calls_last_minute": len(self._calls),
            "under_way": len(agent.tasks),
            "waiting": len(agent.waiting),
            "turns": self._turns,
            "last_turn": self._last,
            "tokens": {"read": read, "written": written},
            "cost_usd": round(parts.spent_nano_usd / _NANO, 9),
            "limits": limits_of(parts.image, parts.get_meter, len(self._calls)),
        }


def limits_of(image, count, calls: int) -> list:
    """Return {limit, max, used} of each limit that *image* declares; ``provider`` of one of a
    provider.

    count  function() -> the meter of the agent, which is asked for where there are providers
    calls  how many of tools there were in the last minute
    """
    info, found = image.agent, []
    if info.calls_per_minute is not None:
        found.append(_limit("tool_calls_per_minute", info.calls_per_minute, calls))
    if not image.size_of(PROVIDERS):
        return found
    meter = count()
    if info.tokens_per_hour is not None:
        used = meter.read_use(HOUR_TOKENS, HOUR)
        found.append(_limit("tokens_per_hour", info.tokens_per_hour, used))
    if info.cost_per_day is not None:
        used = meter.read_use(DAY_COST, DAY) / _NANO
        found.append(_limit("cost_per_day_usd", info.cost_per_day / _NANO, used))
    for number in info.providers:
        row = image.provider(number - _FIRST_REMOTE) if number >= _FIRST_REMOTE else None
        if row and row[_PER_DAY] is not None:
            used = meter.read_use(row[_NAME], DAY)
            found.append(dict(_limit("tokens_per_day", row[_PER_DAY], used), provider=row[_NAME]))
    return found


def _limit(name: str, most, used) -> dict:
    return {"limit": name, "max": most, "used": used}
