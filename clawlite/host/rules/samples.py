"""How long the flash of a board keeps the samples of its readings: they lie in files of whole days,
of which the oldest go first (firmware-host/micropython/rules/samplefiles.py).
"""

from clawlite.core.rules import table

_FREE = 65536  # bytes that samplefiles.py keeps free
_SAMPLE = 10  # bytes of a sample in its line, such as "600,21.5,"
_LINE = 24  # of a line beside its name and its samples
_LINES = 144  # a day: samples are written every ten minutes, and when a run begins and ends
_SEEN = 23  # bytes of the line that says when the agent was seen, with each write of the rules'
_SEEN_LINES = 24  # state: a day, beside those of runs
_HOUR = 32  # bytes of an hour of which least, mean, most and count are left
_DAY_S = 86400


def notes(manifest, board, free_bytes: int, readings: list, rules: list) -> list:
    """Return [((file, line), message)] when *board* cannot keep the samples for as long as
    ``keep`` and ``keep_hourly`` say.

    free_bytes       of flash beside the agent
    readings, rules  rows of core/rules/table.py
    """
    if not readings:
        return []
    keep_s = max(one[table.KEEP_S] for one in readings)
    hourly_s = max(one[table.HOURLY_S] for one in readings)
    day = measure_day(readings, rules)
    hours = 24 * _HOUR * sum(1 for one in readings if one[table.HOURLY_S])
    wanted = day * keep_s // _DAY_S + hours * hourly_s // _DAY_S
    free = max(0, free_bytes - _FREE)
    if wanted <= free:
        return []
    said = (
        f"keep and keep_hourly of the readings take about {wanted:,} bytes of flash, and "
        f"{board.name} has {free:,} for them: it keeps some {free / day:.1f} days, and the oldest "
        "go first; read less often, or keep less"
    )
    return [(manifest.settings.where("reflex"), said)]


def measure_day(readings: list, of_rules: list) -> int:
    """Return the bytes of a day's samples (core/rules/table.py has the rows)."""
    writes = 2 * sum(_count_runs(rule) for rule in of_rules)
    total = (_SEEN_LINES + writes) * _SEEN
    for one in readings:
        count = _DAY_S * 1000 // one[table.EVERY_MS]
        total += count * _SAMPLE
        total += min(_LINES + writes, count) * (len(one[table.NAME]) + _LINE)
    return total


def _count_runs(rule: list) -> int:
    """Return how often a rule runs in a day at most; 0 for what the world begins."""
    kind, what = rule[table.TRIGGER][: table.WHAT + 1]
    count = 0
    if kind == table.EVERY:
        count = _DAY_S * 1000 // what
    elif kind == table.AT:
        count = sum(minutes.bit_count() * hours.bit_count() for minutes, hours, *_ in what)
    most = rule[table.AT_MOST]
    return min(count, most[table.COUNT] * _DAY_S // most[table.PERIOD_S]) if most else count
