"""Readings and rules that begin by themselves, what is taught, and what must follow a call, as the
compiler sees them.
"""

from clawlite.core.rules import table
from clawlite.core.teach.draft import TEACH, read_at_most
from clawlite.host.base.problems import did_you_mean, enquote
from clawlite.host.channels import zone_changes
from clawlite.host.models.feature import Feature, Requirement
from clawlite.host.providers import provider_order
from clawlite.host.providers.rule_calls import find_callables, find_called
from clawlite.host.rules import confirms, sun_table, triggers

_FREE = 65536  # bytes that samplefiles.py keeps free
_SAMPLE = 10  # bytes of a sample in its line, such as "600,21.5,"
_LINE = 24  # of a line beside its name and its samples
_LINES = 144  # a day: samples are written every ten minutes, and when a run begins and ends
_SEEN = 23  # bytes of the line that says when the agent was seen, with each write of the rules'
_SEEN_LINES = 24  # state: a day, beside those of runs
_HOUR = 32  # bytes of an hour of which least, mean, most and count are left
_DAY_S = 86400


def _teach_section(manifest, tools: list) -> list | None:
    """Return the section that says what taught rules may, None where nothing is said.

    tools  [(name that a rule calls it by, ``Primitive``), ...]
    """
    wanted = manifest.settings.teach
    if wanted is None:
        return None
    known = [name for name, _ in tools]
    allowed = []
    for number, written in enumerate(wanted.tools or ()):
        name = find_called(written, known)
        if name is None:
            manifest.problems.add(
                manifest.settings.place,
                ("teach", "tools", number),
                f"unknown tool {enquote(written)}",
                hint=did_you_mean(written, known) or "tools here: " + (", ".join(known) or "none"),
            )
        else:
            allowed.append(name)
    at_most = read_at_most(wanted.at_most) if wanted.at_most else None
    return [None if wanted.tools is None else allowed, at_most]


def _compile_alone(manifest) -> tuple:
    """Return (readings, rules), compiled without the manifest; what is wrong is not told."""
    readings, rules, _ = triggers.compile_triggers(
        manifest.settings.reflex_text or "", "", triggers.World({}, set(), {})
    )
    return readings, rules


def _section(manifest, tools: list) -> list | None:
    """Return the section of *manifest*, None when it has no such rules and no readings.

    tools  [(name that a rule calls it by, ``Primitive``), ...]
    """
    settings = manifest.settings
    if settings.reflex_text is None and not settings.teach:
        return None
    reads = {
        name for name, tool in tools if (tool.spec.annotations or {}).get("readOnlyHint") is True
    }
    world = triggers.World(
        find_callables(tools),
        reads,
        triggers.pins_of(settings),
        settings.location is not None,
        any(provider_order.is_remote(one) for one in manifest.providers),
    )
    readings, rules, problems = triggers.compile_triggers(
        settings.reflex_text or "", settings.reflex_file or "", world
    )
    manifest.problems.found.extend(problems)
    if not readings and not rules and not settings.teach:
        return None
    if not problems:
        _warn(manifest, rules, reads)
    needs_sun = bool(settings.teach) or any(
        rule[table.TRIGGER][:1] == [table.ON_SUN] for rule in rules
    )
    return [readings, rules, _clock(settings, needs_sun)]


def _clock(settings, needs_sun: bool) -> list:
    zone = settings.time_zone or "UTC"
    changes = zone_changes.changes_or_none(zone)
    is_placed = needs_sun and settings.location
    sun = sun_table.table_of(*settings.location) if is_placed else None
    return [zone, changes, "" if zone == "UTC" else zone_changes.tzdata_version(), sun]


def _has_admins(manifest) -> bool:
    """Return whether a channel beside the console has an admin."""
    controls = [one.spec.access_control for one in manifest.channels if one.spec.type != "cli"]
    return any(role.role == "admin" for one in controls if one for role in one.roles or ())


def _note_file(manifest, message: str) -> None:
    """Add a warning at the name of the reflex file."""
    noted = (manifest.settings.where("reflex"), message)
    if noted not in manifest.notes:  # a build compiles twice
        manifest.notes.append(noted)


def _warn(manifest, rules: list, reads: set) -> None:
    """Add a warning for each rule that cannot do what its maker may expect."""
    autonomy = manifest.identity.spec.autonomy or "supervised"
    acting = [rule for rule in rules if rule[table.CALL] not in reads]
    names = ", ".join(rule[table.NAME] for rule in acting)
    by_clock = [r[table.NAME] for r in rules if r[table.TRIGGER][0] == table.AT]
    if by_clock and not manifest.settings.time_zone:
        _note_file(
            manifest, f"times of {', '.join(by_clock)} are UTC, because there is no time_zone"
        )
    tells = [r[table.NAME] for r in rules if any(one[1][table.TO] for one in r[table.THEN])]
    if tells and not _has_admins(manifest):
        _note_file(
            manifest,
            f"no channel has admins: what {', '.join(tells)} says to them is shown at the console "
            "alone",
        )
    if autonomy == "observer" and rules:
        manifest.note(
            manifest.identity,
            ("autonomy",),
            "this agent only observes and runs no tools: none of its rules that begin by "
            "themselves runs, and no reading with a tool has a value",
        )
    elif autonomy == "supervised" and acting:
        manifest.note(
            manifest.identity,
            ("autonomy",),
            f"this agent is supervised: a person is asked before each run of {names}; where that "
            "is not meant, make it autonomous, and let its policy ask where it should",
        )
    for policy in manifest.policies if acting else ():
        for number, rule in enumerate(policy.spec.rules):
            if rule.approval and rule.approval.default_if_timeout == "allow":
                manifest.note(
                    policy,
                    ("rules", number, "approval", "default_if_timeout"),
                    f"that nobody answered never lets a call of a rule through ({names}): it is "
                    "denied",
                )


def compile_sections(manifest, work) -> dict:
    tools = list(zip(work.names, work.tools))
    compiled = _section(manifest, tools)
    readings = compiled[table.READINGS] if compiled else []
    return {
        table.SECTION: compiled,
        TEACH: _teach_section(manifest, tools),
        table.CONFIRMS: confirms.section(manifest, tools, readings, work.timeouts),
    }


def find_needs(manifest) -> list[Requirement]:
    if not manifest.settings.teach and not any(_compile_alone(manifest)):
        return []
    return [Requirement("rules", manifest.settings.place, ("reflex",))]


def fit(manifest, board, other, problems) -> None:
    if board.runtime != "micropython":
        return
    # while a function runs in one piece, a board reads nothing
    for path, tool in confirms.find_one_piece(manifest):
        problems.add(
            manifest.settings.place,
            path,
            f"{tool.name} runs in one piece, and {board.name} reads nothing meanwhile",
            hint=f"let {tool.name} in tools.py yield while its effect lasts",
            key=True,
        )
    # a board lists and keeps its Channels of type cron as rules, so each has a name of its own
    _, rules = _compile_alone(manifest)
    names = {rule[table.NAME] for rule in rules}
    for channel in manifest.channels:
        if channel.spec.type == "cron" and channel.name in names:
            problems.add(
                channel.place,
                ("name",),
                f"a rule is called {enquote(channel.name)}, too, and {board.name} lists and keeps "
                "both alike",
                hint="rename one",
            )


def find_notes(manifest, board, free_bytes) -> list:
    """Return a note when *board* cannot keep the samples of its readings for as long as ``keep``
    and ``keep_hourly`` say: they lie in files of whole days, of which the oldest go first
    (firmware-host/micropython/rules/samplefiles.py).
    """
    if board.runtime != "micropython" or free_bytes is None:
        return []
    readings, rules = _compile_alone(manifest)
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


FEATURE = Feature("rule", compile=compile_sections, needs=find_needs, fit=fit, note=find_notes)
