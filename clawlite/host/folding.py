"""Fold ordered policy rules into one entry per tool (CKP 5.8; the entries are read by clawlite/core/policy.py).

For each tool, the rules that can never match it go, and the first that always matches ends its list: what is left
needs the arguments, or is one rule.  Rules that no tool can reach are reported: dead (match no tool) or shadowed (an
earlier rule always decides first).
"""
import dataclasses
import fnmatch

from clawlite.core.policy import ACTIONS, normalise


@dataclasses.dataclass
class FlatRule:
    """One rule of the concatenated list.

    number     place in the list of all policies together
    policy     name of its policy
    rule       the typed rule
    root       normalised path of ``conditions.path_within``, or None
    """
    number: int
    policy: str
    rule: object
    root: str | None

    def record(self) -> list:
        """Return [id, action, reason, timeout_s, allow_on_timeout, root, policy], as ``Image.rule`` gives it."""
        approval = self.rule.approval
        return [self.rule.id, ACTIONS.index(self.rule.action), self.rule.reason or "",
                approval.timeout_seconds or 0 if approval else 0,
                1 if approval and approval.default_if_timeout == "allow" else 0, self.root, self.policy]


def flatten(policies: list) -> list[FlatRule]:
    """Return the rules of all policies as one list, in the order of the manifest's ``policies`` (5.8)."""
    flat = []
    for policy in policies:
        for rule in policy.spec.rules:
            within = rule.conditions.path_within if rule.conditions else None
            flat.append(FlatRule(len(flat), policy.name, rule, normalise(within) if within else None))
    return flat


def fold(rules: list[FlatRule], tool: object, paths: list[str]) -> object:
    """Return the entry of *tool* (a Tool primitive) over *rules*: None, a rule number, or a list of numbers.

    paths   names of the tool's arguments that hold a path; without one no ``path_within`` can hold
    """
    left = []
    for flat in rules:
        if not matches(flat.rule, tool) or flat.root is not None and not paths:
            continue
        left.append(flat.number)
        if flat.root is None:
            break
    else:
        return left or None
    return left[0] if len(left) == 1 else left


def matches(rule: object, tool: object) -> bool:
    """Return whether *rule* can match *tool* at all: scope, name, category, labels and annotations.

    Annotations compare by type and value: "true" is not true, and a hint that is not there matches nothing.
    """
    if rule.scope == "skill":
        return False
    match = rule.match
    if match is None:
        return True
    labels = tool.labels or {}
    if match.category is not None and labels.get("category") != match.category:
        return False
    if match.name is not None and not fnmatch.fnmatchcase(tool.name, match.name.replace("_", "-")):
        return False
    if any(labels.get(name) != value for name, value in (match.labels or {}).items()):
        return False
    hints = tool.spec.annotations or {}
    return all(name in hints and type(hints[name]) is type(value) and hints[name] == value
               for name, value in (match.annotations or {}).items())


def unreached(rules: list[FlatRule], tools: list, entries: list) -> tuple[list, list]:
    """Return (dead, shadowed) rules: those that match no tool, and those that an earlier rule always beats."""
    used = set()
    for entry in entries:
        used.update([entry] if isinstance(entry, int) else entry or [])
    rest = [flat for flat in rules if flat.number not in used]
    dead = [flat for flat in rest if not any(matches(flat.rule, tool) for tool in tools)]
    return dead, [flat for flat in rest if flat not in dead]
