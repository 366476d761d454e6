"""Fold ordered policy rules into one entry per tool (CKP 5.8; the entries are read by
clawlite/core/policy/policy.py).

For each tool, the rules that can never match it go, and the first that always matches ends its
list: what is left needs the arguments, or is one rule.  Rules that no tool can reach are reported:
dead (match no tool) or shadowed (an earlier rule always decides first).
"""

import dataclasses
import decimal
import fnmatch
import re
import types

from clawlite.core.policy.ledger import COST, TOKENS
from clawlite.core.policy.policy import ACTIONS, normalise, virtual

_GLOB = re.compile(r"[*?[]")
# arguments that path_within looks at, and *_path
PATH_NAMES = ("path", "file", "directory", "dir", "folder")


@dataclasses.dataclass(slots=True)  # a manifest may have 100,000
class FlatRule:
    """One rule of the concatenated list.

    number     place in the list of all policies together
    policy     name of its policy
    place      its place there
    rule       the typed rule
    root       normalised path of ``conditions.path_within``, or None
    rate       [tokens, nano-dollars] of ``rate_limit``, None for one that is not limited; or None
    """

    number: int
    policy: str
    place: int
    rule: object
    root: str | None
    rate: list | None = None

    @property
    def is_conditional(self) -> bool:
        return self.root is not None or self.rate is not None

    def record(self) -> list:
        """Return [id, action, reason, timeout_s, allow_on_timeout, root, policy, rate], as
        ``Image.rule`` gives it.
        """
        approval = self.rule.approval
        return [
            self.rule.id,
            ACTIONS.index(self.rule.action),
            self.rule.reason or "",
            approval.timeout_seconds or 0 if approval else 0,
            1 if approval and approval.default_if_timeout == "allow" else 0,
            self.root,
            self.policy,
            self.rate,
        ]


def flatten(policies: list, workspace: str | None = None) -> list[FlatRule]:
    """Return the rules of all policies as one list, in the order of the manifest's ``policies``
    (5.8).

    workspace  the mount that /workspace means, or None: a rule may use either name
    """
    flat = []
    for policy in policies:
        for place, rule in enumerate(policy.spec.rules):
            within = rule.conditions.path_within if rule.conditions else None
            flat.append(
                FlatRule(
                    len(flat),
                    policy.name,
                    place,
                    rule,
                    virtual(normalise(within), workspace) if within else None,
                    _rate(rule.rate_limit),
                )
            )
    return flat


def _rate(limit: object) -> list | None:
    if limit is None or limit.tokens_per_day is None and limit.cost_per_day_usd is None:
        return None
    return [
        limit.tokens_per_day,
        None if limit.cost_per_day_usd is None else nano(limit.cost_per_day_usd),
    ]


def rates(policies: list) -> int:
    """Return the daily totals of all providers that rules of *policies* depend on:
    ``ledger.TOKENS`` and ``COST``, or'ed.
    """
    found = [flat.rate for flat in flatten(policies) if flat.rate]
    return (TOKENS if any(rate[0] is not None for rate in found) else 0) | (
        COST if any(rate[1] is not None for rate in found) else 0
    )


def calls_per_minute(policies: list) -> int | None:
    """Return the least ``tool_calls_per_minute`` of *policies*, or None."""
    return min(
        (
            policy.spec.rate_limits.tool_calls_per_minute
            for policy in policies
            if policy.spec.rate_limits and policy.spec.rate_limits.tool_calls_per_minute is not None
        ),
        default=None,
    )


def fold(rules: list[FlatRule], tool: object, paths: list[str]) -> object:
    """Return the entry of *tool* (a Tool primitive) over *rules*: None, a rule number, or a list of
    numbers.

    paths   names of the tool's arguments that hold a path; without one no ``path_within`` can hold
    """
    left = []
    for flat in rules:
        if not matches(flat.rule, tool) or flat.root is not None and not paths:
            continue
        left.append(flat.number)
        if not flat.is_conditional:
            break
    else:
        return left or None
    return left[0] if len(left) == 1 else left


def entries(rules: list[FlatRule], manifest, tool: object) -> tuple:
    """Return (entry, [[policy, entry of it alone], ...], [entry of ``policy_ref``] or None) of
    *tool* over all *rules* of *manifest*.
    """
    paths = path_arguments(tool.spec.input_schema or {})
    of_policy = {policy.name: [] for policy in manifest.policies}
    for rule in rules:
        of_policy[rule.policy].append(rule)
    alone = [
        [policy.name, fold(of_policy[policy.name], tool, paths)] for policy in manifest.policies
    ]
    bound = None
    if tool.spec.policy_ref:
        name = manifest.resolve("Policy", tool.spec.policy_ref).name
        bound = [entry for policy, entry in alone if policy == name]
    return fold(rules, tool, paths), alone, bound


def path_arguments(schema: dict) -> list[str]:
    """Return the names of a tool's arguments that hold a path, by name, sorted (docs/adr/0006)."""
    return sorted(
        name
        for name in schema.get("properties", {})
        if name in PATH_NAMES or name.endswith("_path")
    )


def is_general(rule: object) -> bool:
    """Return whether *rule* stands for every tool: it names nothing of one."""
    match = rule.match
    return rule.scope != "category" and (
        match is None or not (match.name or match.category or match.labels or match.annotations)
    )


def matches(rule: object, tool: object, by_hints: bool = True) -> bool:
    """Return whether *rule* can match *tool* at all: scope, name, category, labels and annotations.

    by_hints  False: whatever annotations it has
    Annotations compare by type and value: "true" is not true, and a hint that is not there matches
    nothing.  Scope ``skill`` matches skills and no tool, ``all`` both, the others no skill.  Scope
    ``category`` matches tools that have one: of any category, where ``match`` names none."""
    if tool.kind == "Skill":
        if rule.scope not in ("skill", "all"):
            return False
    elif (
        rule.scope == "skill" or rule.scope == "category" and "category" not in (tool.labels or {})
    ):
        return False
    match = rule.match
    if match is None:
        return True
    labels = tool.labels or {}
    if match.category is not None and labels.get("category") != match.category:
        return False
    if match.name is not None and not _is_named(
        tool.name.replace("_", "-"), match.name.replace("_", "-")
    ):
        return False
    if any(labels.get(name) != value for name, value in (match.labels or {}).items()):
        return False
    hints = tool.spec.annotations or {}
    return not by_hints or all(
        name in hints and type(hints[name]) is type(value) and hints[name] == value
        for name, value in (match.annotations or {}).items()
    )


def _is_named(name: str, pattern: str) -> bool:
    """Return whether *pattern* matches *name*: a pattern that is a name is not compiled, of which a
    policy may have thousands.
    """
    return name == pattern or _GLOB.search(pattern) and fnmatch.fnmatchcase(name, pattern)


def find_unreached(rules: list[FlatRule], tools: list, entries: list) -> tuple[list, list]:
    """Return (dead, shadowed) rules: those that match no tool, and those that an earlier rule
    always beats.
    """
    used = set()
    for entry in entries:
        used.update([entry] if isinstance(entry, int) else entry or [])
    dead, shadowed = [], []
    for flat in rules:
        if flat.number not in used:
            is_shadowed = any(matches(flat.rule, tool) for tool in tools)
            (shadowed if is_shadowed else dead).append(flat)
    return dead, shadowed


def nano(dollars: float) -> int:
    """Return *dollars* in nano-dollars."""
    return round(decimal.Decimal(repr(dollars)) * 1000000000)


class NameDecisions:
    """What policies decide about tools by their name alone: an image holds the decisions of its own
    tools; of any other name, the rules are folded when it is first asked for.

    rules  ``FlatRule`` of all policies
    """

    def __init__(self, rules: list):
        self._rules = rules
        self._entries: dict[str, object] = {}

    def entry(self, name: str) -> object:
        """Return the entry (core/policy/policy.py) of a tool *name* that has neither labels nor
        hints and takes a path.

        Cost  all rules for a new name, a look-up for one that was asked for before
        """
        if name not in self._entries:
            tool = types.SimpleNamespace(
                kind="Tool", name=name, labels={}, spec=types.SimpleNamespace(annotations={})
            )
            self._entries[name] = fold(self._rules, tool, ["path"])
        return self._entries[name]
