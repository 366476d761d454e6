"""The section of an image with readings and with rules that begin by themselves, and what a check
warns about them.
"""

from clawlite.core.rules import table
from clawlite.host.providers.rule_calls import find_callables
from clawlite.host.rules import triggers, zone_changes

ABILITY = "rules"


def is_declared(manifest) -> bool:
    """Return whether *manifest* has readings, or rules that begin by themselves."""
    readings, rules, _ = triggers.compile_triggers(
        manifest.settings.reflex_text or "", "", triggers.World({}, set(), {})
    )
    return bool(readings or rules)


def section(manifest, tools: list) -> list | None:
    """Return the section of *manifest*, None when it has no such rules and no readings.

    tools  [(name that a rule calls it by, ``Primitive``), ...]
    """
    settings = manifest.settings
    if settings.reflex_text is None:
        return None
    reads = {
        name for name, tool in tools if (tool.spec.annotations or {}).get("readOnlyHint") is True
    }
    world = triggers.World(find_callables(tools), reads, triggers.pins_of(settings))
    readings, rules, problems = triggers.compile_triggers(
        settings.reflex_text, settings.reflex_file, world
    )
    manifest.problems.found.extend(problems)
    if not readings and not rules:
        return None
    if not problems:
        _warn(manifest, rules, reads)
    return [readings, rules, _clock(settings.time_zone or "UTC")]


def _clock(zone: str) -> list:
    try:
        changes = zone_changes.changes_of(zone, zone_changes.first_year())
    except (KeyError, ValueError, OSError):  # the check of time_zone reports it
        changes = [[0, 0]]
    return [zone, changes, "" if zone == "UTC" else zone_changes.tzdata_version(), None]


def _warn(manifest, rules: list, reads: set) -> None:
    """Add a warning for each rule that cannot do what its maker may expect."""
    autonomy = manifest.identity.spec.autonomy or "supervised"
    acting = [rule for rule in rules if rule[table.CALL] not in reads]
    names = ", ".join(rule[table.NAME] for rule in acting)
    if autonomy == "observer" and rules:
        manifest.note(
            manifest.identity,
            ("autonomy",),
            "this agent only observes: none of its rules that begin by themselves runs",
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
