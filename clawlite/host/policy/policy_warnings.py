"""Rules of policies that are valid, and most likely not meant: they name no tool, decide more than
they say, or rest on what a server says of its own tools.
"""

from clawlite.core.policy.policy import ACTIONS
from clawlite.host.base.problems import did_you_mean, enquote
from clawlite.host.policy import folding

_DECIDES = {
    "deny": "denies",
    "require-approval": "asks first for",
    "audit-only": "allows",
    "allow": "allows",
}
# Rules that name no tool and are told one by one.  A policy that has thousands is one for other
# agents, too.  Each takes a third of a millisecond and half a kilobyte, and nobody reads so many.
_TOLD = 100


def find(manifest, work) -> list:
    """Return [((file, line), message)] of the policies of *manifest*."""
    return (
        _general(manifest)
        + _find_unmentioned(manifest, work)
        + _strangers(manifest, work)
        + _find_unasked(manifest)
        + _absent(manifest, work)
        + _pathless(manifest, work)
    )


def place_of(manifest, flat) -> tuple:
    policy = [policy for policy in manifest.policies if policy.name == flat.policy][0]
    return policy.where("rules", flat.place)


def _join(names: list) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _general(manifest) -> list:
    found = []
    if manifest.tools and not manifest.policies:
        found.append(((manifest.file, 0), "no Policy is declared: every tool is denied"))
    allowing = [
        (policy, index)
        for policy in manifest.policies
        for index, rule in enumerate(policy.spec.rules)
        if rule.action != "deny"
    ]
    if manifest.identity.spec.autonomy == "observer" and manifest.tools and allowing:
        policy, index = allowing[0]
        found.append(
            (
                manifest.identity.where("autonomy"),
                "an observer runs no tool, whatever a rule allows: rule "
                f"{policy.spec.rules[index].id} has no effect (autonomy: supervised asks a person "
                "first, autonomous leaves it to the rules)",
            )
        )
    return found


def _find_unasked(manifest) -> list:
    """Return a warning for each rule with an approval that its action never asks for."""
    found = []
    for policy in manifest.policies:
        for index, rule in enumerate(policy.spec.rules):
            if rule.approval and rule.action != "require-approval":
                found.append(
                    (
                        policy.where("rules", index, "approval"),
                        f"approval says nothing with action {rule.action}: "
                        "action: require-approval asks first",
                    )
                )
    return found


def _absent(manifest, work) -> list:
    """Return a warning for each rule that names a tool which there is not, and one for all after
    the first ``_TOLD``.
    """
    names = [tool.name for tool in work.tools] + [skill.name for skill in manifest.skills]
    found, more, more_from = [], 0, ()
    for policy in manifest.policies:
        for index, rule in enumerate(policy.spec.rules):
            name = rule.match.name if rule.match else None
            if (
                not name
                or not set("*?[.").isdisjoint(name)
                or "__" in name
                or name.replace("_", "-") in names
            ):
                continue
            if len(found) == _TOLD:
                more_from = more_from or policy.where("rules", index, "match", "name")
                more += 1
                continue
            near = did_you_mean(name, names)
            message = f"rule {rule.id}: there is no tool {enquote(name)} here, so it never matches"
            where = policy.where("rules", index, "match", "name")
            found.append((where, message + (f": {near}" if near else "")))
    if more:
        count = f"{more:,} more rules name tools" if more > 1 else "1 more rule names a tool"
        found.append((more_from, f"{count} that there is not here, from this line on"))
    return found


def _pathless(manifest, work) -> list:
    """Return a warning for each rule with ``path_within`` and each tool that it names and that
    has no argument with a path.
    """
    found = []
    for flat in work.rules:
        if (
            flat.rule.conditions
            and flat.rule.conditions.path_within
            and not folding.is_general(flat.rule)
        ):
            names = [
                tool.name
                for tool, entry in zip(manifest.tools, work.entries)
                if entry is not None
                and folding.matches(flat.rule, tool)
                and not folding.path_arguments(tool.spec.input_schema or {})
            ]
            if names:
                found.append(
                    (
                        place_of(manifest, flat),
                        f"rule {flat.rule.id} has path_within, and no argument of {_join(names)} "
                        "holds a path: it never matches there",
                    )
                )
    return found


def _find_unmentioned(manifest, work) -> list:
    """Return a warning for each rule that stands for every tool and decides some that no rule
    names, and for tools that none decides.
    """
    found, general, rules = [], {}, work.rules
    for tool, entry in zip(manifest.tools, work.entries):
        matching = [flat for flat in rules if folding.matches(flat.rule, tool)]
        if not matching and rules:
            found.append(
                (
                    tool.where(),
                    f"no rule mentions {tool.name}, and none is for "
                    f"every tool: it is always denied",
                )
            )
        elif entry is None and rules:
            found.append((tool.where(), f"no rule can allow {tool.name}: it is always denied"))
        elif matching and all(folding.is_general(flat.rule) for flat in matching):
            general.setdefault(matching[0].number, []).append(tool.name)
    for number, names in general.items():
        flat = rules[number]
        found.append(
            (
                place_of(manifest, flat),
                f"no rule mentions {_join(names)}: rule {flat.rule.id}, which is for every tool, "
                f"{_DECIDES[flat.rule.action]} {'it' if len(names) == 1 else 'them'}",
            )
        )
    return found


def _strangers(manifest, work) -> list:
    """Return a warning for each permission that a server could give to its own tools by its
    description of them.
    """
    found = []
    for flat in work.rules:
        match = flat.rule.match
        if (
            match
            and match.annotations
            and ACTIONS.index(flat.rule.action) >= ACTIONS.index("audit-only")
        ):
            names = [
                tool.name
                for tool in manifest.tools
                if tool.spec.mcp_source and folding.matches(flat.rule, tool, False)
            ]
            if names:
                found.append(
                    (
                        place_of(manifest, flat),
                        f"rule {flat.rule.id} would allow {_join(names)} on the word of an MCP "
                        "server: what a stranger says of its tools is no ground for a permission",
                    )
                )
    return found
