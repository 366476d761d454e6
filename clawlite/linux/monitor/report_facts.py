"""What a report says of an agent: from its log, its readings, its meters and its audit."""

import time

from clawlite.core.base.errors import ClawError
from clawlite.core.base.instant import from_iso8601
from clawlite.linux.audit.chain import verify
from clawlite.linux.files import files
from clawlite.linux.io.stdio import now_ms
from clawlite.linux.monitor.events import read_events
from clawlite.linux.records.audit_record import open_audit
from clawlite.linux.rules.samples import Samples
from clawlite.linux.runtime.meters import meter_of
from clawlite.linux.tasks.usage import limits_of

MOST_READINGS = 40
_MINUTE_S = 60


class Facts:
    """All of one report.

    image   of the agent, open
    from_s  seconds since 1970 at which it begins: where the first thing is on record, or as asked;
            to_s: at which it ends
    events  [(seconds since 1970, event)] in that time, the earliest first
    turns, calls, approvals, runs  those of them that are such
    samples {reading: [(seconds since 1970, number)]}
    limits  as ``claw.usage.get`` has them
    audit   what ``clawlite audit verify`` found, or a sentence why there is none
    """

    def __init__(self, image, from_s: int, to_s: int):
        self.image, self.to_s = image, to_s
        name = image.agent.name
        timed = [(_second(event), event) for event in read_events(name)]
        self.events = [
            (at_s, event) for at_s, event in timed if at_s is not None and from_s <= at_s <= to_s
        ]
        self.turns, self.calls = self._of("turn.ended"), self._of("tool.call", "status")
        self.approvals, self.runs = self._of("tool.approval"), self._of("rule.run")
        self.samples = _read_samples(name, from_s, to_s)
        firsts = [at_s for at_s, _ in self.events[:1]]
        firsts += [points[0][0] for points in self.samples.values()]
        # nothing is known of the time before: a chart begins where something is
        self.from_s = max(from_s, min(firsts) - _MINUTE_S) if firsts else from_s
        last_minute = [at_s for at_s, _ in self.calls if at_s > time.time() - _MINUTE_S]
        self.limits = limits_of(image, lambda: meter_of(image, now_ms), len(last_minute))
        self.audit = _look_at_audit(image)

    def _of(self, name: str, field: str = "event") -> list:
        return [(at_s, one) for at_s, one in self.events if one["event"] == name and field in one]

    def tokens(self) -> tuple:
        """Return (tokens read, tokens written, dollars) of all turns."""
        pairs = [one["tokens"] for _, one in self.turns if is_pair(one.get("tokens"))]
        nano = sum(number(one.get("cost_nano_usd")) for _, one in self.turns)
        return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs), nano / 1e9

    def times(self) -> list:
        """Return (tool, calls, not ok, times in ms that are known, sorted) of each tool, the most
        called first.
        """
        found: dict = {}
        for _, one in self.calls:
            row = found.setdefault(str(one.get("tool")), [0, 0, []])
            row[0] += 1
            row[1] += one.get("status") != "ok"
            if "duration_ms" in one:
                row[2].append(number(one["duration_ms"]))
        rows = [(tool, count, wrong, sorted(ms)) for tool, (count, wrong, ms) in found.items()]
        return sorted(rows, key=lambda row: (-row[1], row[0]))


def number(value) -> float:
    """Return *value* of a log where it is a number that can be drawn, else 0."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and abs(value) < 1e15 else 0


def is_pair(value) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(type(one) is int for one in value)


def _second(event: dict):
    stamp = event.get("timestamp")
    ms = from_iso8601(stamp) if isinstance(stamp, str) else None
    return None if ms is None else ms // 1000


def _read_samples(agent: str, from_s: int, to_s: int) -> dict:
    """Return the numbers of each reading in that time; readings of words are left out."""
    kept, found = Samples(files.state_folder(agent), {}), {}
    if not kept.exists():
        return {}
    try:
        for at_s, name, value in kept.since(from_s):
            is_number = isinstance(value, (int, float)) and abs(value) < 1e15
            if at_s <= to_s and is_number and (name in found or len(found) < MOST_READINGS):
                found.setdefault(name, []).append((at_s, value))
    finally:
        kept.close()
    return found


def _look_at_audit(image):
    try:
        lines, head, _ = open_audit(image)
        return verify(lines, head, image.agent.name)
    except ClawError as e:
        return e.message
    except OSError as e:
        return "it cannot be read: %s" % e.strerror
