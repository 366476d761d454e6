"""Policies, and what they and the Sandbox want scanned and audited, as the compiler sees them."""

from clawlite.core.image.image import GUARD, RULES
from clawlite.host.base.paths import mistake
from clawlite.host.base.problems import enquote
from clawlite.host.image.image_file import encode, table
from clawlite.host.models.feature import Feature, Requirement
from clawlite.host.policy import policy_warnings, scan_config
from clawlite.host.policy.model import PolicySpec


def check(manifest, at_use: bool) -> None:
    for policy in manifest.policies:
        _check_rules(manifest, policy)


def _check_rules(manifest, policy) -> None:
    """Add a problem for two rules with one id, and for each path that means no file."""
    seen = {}
    for index, rule in enumerate(policy.spec.rules):
        if rule.id in seen:
            _, line = policy.where("rules", seen[rule.id], "id")
            manifest.problem(
                policy,
                ("rules", index, "id"),
                f"this policy has a rule {enquote(rule.id)} already (line {line})",
                hint="the log and the audit name rules by their ids: give each its own",
            )
        seen.setdefault(rule.id, index)
        within = rule.conditions.path_within if rule.conditions else None
        if within is not None and (wrong := mistake(within)):
            manifest.problem(
                policy,
                ("rules", index, "conditions", "path_within"),
                "",
                wrong[0],
                enquote(within),
                wrong[1],
            )


def compile_sections(manifest, work) -> dict:
    return {
        RULES: table([encode(rule.record()) for rule in work.rules]),
        GUARD: scan_config.section(manifest, work.pool),
    }


def find_needs(manifest) -> list[Requirement]:
    instead = {"guard-model": "detection: pattern, which looks without a model"}
    found = [
        Requirement(ability, one.place, path, instead.get(ability, "leave it out"))
        for ability, one, path in scan_config.list_wanted_abilities(manifest)
    ]
    return found + [
        Requirement("log", policy.place, ("rules", index, "action"))
        for policy in manifest.policies
        for index, rule in enumerate(policy.spec.rules)
        if rule.action == "audit-only"
    ]


def fit(manifest, board, other, problems) -> None:
    if board.runtime == "micropython" and "audit" in board.abilities:
        for policy, block in scan_config.blocks_of(manifest, "audit"):
            if block.destination not in (None, "file"):
                problems.add(
                    policy.place,
                    ("audit", "destination"),
                    f"{board.name} keeps its audit in files",
                    '"file"',
                    f'"{block.destination}"',
                    hint=other(
                        lambda b: b.runtime != "micropython" and "audit" in b.abilities,
                        "write destination: file, and fetch it with clawlite audit --port PORT",
                    ),
                )


def find_notes(manifest, board, free_bytes) -> list:
    """Return a note on an audit that is kept for ever: it fills a board's flash."""
    found = scan_config.blocks_of(manifest, "audit")
    if board.runtime != "micropython" or not found:
        return []
    notes = []
    if manifest.settings.audit.max_size_mb is not None:
        notes.append(
            (
                manifest.settings.where("audit", "max_size_mb"),
                f"{board.name} does not use it: its audit has what the agent leaves of the flash",
            )
        )
    if not all(block.retention for _, block in found):
        notes.append(
            (
                found[0][0].where("audit"),
                f"{board.name} keeps its audit until the flash has no room, and then runs nothing "
                "more: say with retention how long, or take the records in time",
            )
        )
    return notes


FEATURE = Feature(
    "Policy",
    PolicySpec,
    check=check,
    compile=compile_sections,
    needs=find_needs,
    warn=policy_warnings.find,
    fit=fit,
    note=find_notes,
)
