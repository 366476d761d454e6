"""How a rule is drafted, rehearsed and taken up by those that are taught (taught_store.py).

A draft becomes a rule only by ``adopt``; who may call that is for lessons.py to say.
"""

from clawlite.core.base.errors import ClawError, InvalidParams, InvalidRequest
from clawlite.core.base.render import canonical
from clawlite.core.rules import table
from clawlite.core.teach import draft
from clawlite.core.teach.row_text import reading_of
from clawlite.core.teach.row_words import describe
from clawlite.linux.files.files import state_folder
from clawlite.linux.rules.rehearsal import Rehearsal
from clawlite.linux.rules.taught_store import MOST, roles_of
from clawlite.protocols.teach.clause import unit_of

_DAY = 86400
_LATE_S = 600  # so much later may a record begin
_LEAST_STEP_MS = 5000  # between two samples of a rehearsal, which holds up the loop
_MOST_TIMES = 4  # that a rehearsal names


class Draft:
    """A rule that somebody may teach.

    entry   what is kept of it (taught_store.py);  record: for the engine
    lines   what people are shown: the sentence that it obeys, and what it would have done
    """

    def __init__(self, entry: dict, record: list, lines: list):
        self.entry, self.record, self.lines = entry, record, lines
        self.name = entry["name"]


def make_draft(rules, row: dict, by: str, said: str) -> Draft:
    """Return a ``Draft`` of *row*, checked and rehearsed.  Raises ``ClawError``.

    by    who teaches it: "console", "CHANNEL/ACTOR", "operator" or "operator/NAME"
    said  how it was said
    """
    rules.begin_teaching()
    taught, times, engine = rules.taught, rules.times(), rules.engine
    if len(taught.entries) >= MOST:
        raise InvalidRequest(
            "%d rules are taught already, and more have no room" % MOST, "/rules forget NAME"
        )
    taken = [rule.name for rule in engine.rules] + [entry["name"] for entry in taught.entries]
    if isinstance(row, dict) and "name" not in row:
        row = dict(row, name=draft.find_name(row, taken))
    image, values = rules.agent.image, engine.values(times)
    world = draft.World(image, rules.own_section, taught.limits, taken, values)
    record = draft.compile_row(row, world)
    if len(canonical(row)) > draft.MOST_ROW:
        raise InvalidParams(
            "the rule: it has more than %d characters" % draft.MOST_ROW, "say it more shortly"
        )
    entry = {
        "name": row["name"],
        "row": {key: row[key] for key in row if key != "name"},
        "by": by,
        "said": said[: draft.MOST_SAID],
        "at_s": times.wall_s,
        "is_known": by.partition("/")[2] in roles_of(state_folder(image.agent.name)),
    }
    zone = rules.own_section[table.CLOCK][table.ZONE_NAME]
    sentence = describe(entry["row"], zone)
    lines = ["%s: %s" % (row["name"], sentence), foresee(rules, record, entry["row"])]
    return Draft(entry, record, lines)


def adopt(rules, made: Draft):
    """Let the rule of a draft begin from now on.  Raises ``ClawError``."""
    taught = rules.taught
    if len(taught.entries) >= MOST or rules.engine.find(made.name) or taught.find(made.name):
        raise InvalidRequest(
            "rule %s: another one was taught meanwhile" % made.name, "teach it again"
        )
    wrong = taught.keep(made.entry)
    if wrong:
        raise ClawError("rule %s: %s" % (made.name, wrong), "make room, and teach it again")
    rules.section[table.RULES].append(made.record)
    rules.engine.add(made.record, rules.times())
    rules.look_at_more_pins()
    rules.log({"event": "rule.taught", "rule": made.name, "by": made.entry["by"]})
    rules.look_soon()


# -- the rehearsal of a draft


def foresee(rules, record: list, row: dict) -> str:
    """Return what a rule would have done with the readings on record, as a sentence.  Raises
    ``ClawError`` for one that would have run too often.
    """
    engine = rules.engine
    if row.get("once"):
        return "It was not rehearsed, because it runs once."
    if not engine.is_set:
        return "It was not rehearsed, because the clock of this machine is not set."
    names = _names_of(record)
    now_s = rules.times().wall_s
    offset_s = engine.zone.offset(now_s)
    to_s = now_s - (now_s + offset_s) % _DAY
    from_s, day = to_s - _DAY, "Yesterday"
    rules.samples.write(now_s, True)
    pin = (
        record[table.TRIGGER][table.WHAT]
        if record[table.TRIGGER][table.KIND] == table.ON_PIN
        else ""
    )
    samples, edges = rules.samples.since(from_s), rules.samples.spread_edges(from_s)
    seen = [at_s for at_s, name, _ in samples if name in names]
    seen += [at_ms // 1000 for at_ms, one, _ in edges if one == pin]
    if (names or pin) and not seen:
        return "It was not rehearsed, because nothing is on record yet of %s." % (
            ", ".join(sorted(names)) or "the pin " + pin
        )
    if seen and min(seen) > from_s + _LATE_S:  # not all of yesterday is on record
        today_s, to_s = to_s, now_s
        from_s = max(min(seen), now_s - _DAY)
        day = "In the last 24 hours"
        if from_s > now_s - _DAY + _LATE_S:
            when = "today" if from_s >= today_s else "yesterday"
            day = "Since %s %s" % (_clock(engine, from_s), when)
    runs, skipped = _play(rules, record, samples, edges, from_s, to_s)
    if len(runs) > draft.MOST_RUNS:
        raise InvalidParams(
            "the rule: with the readings on record it would have run %d times in a day; a taught "
            "rule runs at most %d times" % (len(runs), draft.MOST_RUNS),
            "let it begin less often, or add at_most",
        )
    return _tell_runs(engine, day, runs, skipped)


def _names_of(record: list) -> set:
    """Return the names of the readings that a rule needs."""
    trigger = record[table.TRIGGER]
    names = {trigger[table.WHAT]} if trigger[table.KIND] == table.ON_READING else set()
    names |= {reading_of(condition) for condition in record[table.IF]} - {None}
    return names | {value[0] for _, value in record[table.ARGUMENTS] if isinstance(value, list)}


def _play(rules, record: list, samples: list, edges: list, from_s: int, to_s: int) -> tuple:
    readings = []
    for reading in rules.own_section[table.READINGS]:
        if reading[table.NAME] in _names_of(record):
            reading = list(reading)
            reading[table.EVERY_MS] = max(_LEAST_STEP_MS, reading[table.EVERY_MS])
            readings.append(reading)
    section = [readings, [record], rules.own_section[table.CLOCK]]
    played = Rehearsal(rules.agent.image, samples, from_s, to_s, (), True, edges, section)
    played.play()
    return played.runs, played.skipped.get(record[table.NAME], {})


def _clock(engine, at_s: int) -> str:
    minute = (at_s + engine.zone.offset(at_s)) // 60 % 1440
    return "%d:%02d" % (minute // 60, minute % 60)


def _tell_runs(engine, day: str, runs: list, skipped: dict) -> str:
    refused = [run for run in runs if run["status"] == "refused"]
    if refused:
        return "%s its call would have been refused: %s." % (day, refused[0]["reason"])
    if not runs:
        why = next(iter(skipped), "")
        return "%s it would not have run%s." % (day, ": " + why if why else "")
    times = [_clock(engine, run["at"]) for run in runs]
    if len(times) > _MOST_TIMES:
        listed = "first at %s and last at %s" % (times[0], times[-1])
    else:
        listed = "at " + (", ".join(times[:-1]) + " and " if times[1:] else "") + times[-1]
    count = {1: "once", 2: "twice"}.get(len(runs), "%d times" % len(runs))
    total_ms = sum(
        value * unit_of(name)
        for run in runs
        for name, value in (run["arguments"] or {}).items()
        if unit_of(name) and isinstance(value, (int, float))
    )
    total = ", %g s in all" % (total_ms / 1000) if total_ms else ""
    return "%s it would have run %s, %s%s." % (day, count, listed, total)
