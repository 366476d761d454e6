"""Policy: which rule decides on a call.

The host compiles the ordered rules (CKP 0.2.0, 5.8) to one *entry* per tool:

    None          no rule can match: denied
    n >= 0        rule n, whatever the arguments
    [n, ...]      try these rules in order: the first whose condition holds decides; none: denied

1. First match wins; no match is a denial (5.8 "Validation Rules", items 2 and 3).
2. Several entries (all policies, the tool's ``policy_ref``, the request's ``context.policy``) give
   the strictest of their decisions: an override can tighten, never loosen.
3. A rule may have the conditions ``path_within`` and ``rate_limit``: the host refuses manifests
   with any other.
"""

from clawlite.core.base.errors import InvalidParams
from clawlite.core.image.image import RULE_ACTION, RULE_RATE, RULE_ROOT

DENY, APPROVE, AUDIT, ALLOW = 0, 1, 2, 3  # strictest first: decisions are compared by number
ACTIONS = ("deny", "require-approval", "audit-only", "allow")


# A decision is a tuple, which takes a third of the time of an object, and less of a board's heap:
#   action   DENY .. ALLOW
#   rule     the deciding rule, see ``Image.rule``, or None when no rule matched
#   trace    list of [rule number, matched], as the log has it: the rules that were tried, in order
#   rests    True when the decision depends on where a path lies, and would be stricter elsewhere:
#            then links must be resolved before it counts
DECISION_ACTION, DECISION_RULE, DECISION_TRACE, DECISION_RESTS = range(4)


def decide(image, entry, paths, used=None, roots=None) -> tuple:
    """Return the decision of one entry.

    image    has ``rule(number)``
    entry    as above
    paths    list of normalised absolute paths of the call's arguments; None in it stands for a path
             that means nothing
    used     (tokens, nano-dollars) of all providers today, or None when nobody counts them
    roots    {root of a rule: where its links lead}, for the roots whose links lead elsewhere; or
             None
    Cost     a look-up plus the entry's own rules, whatever the number of rules.
    """
    if entry is None:
        return DENY, None, [], False
    if isinstance(entry, int):
        rule = image.rule(entry)
        return rule[RULE_ACTION], rule, [[entry, True]], False
    trace = []
    passed = ALLOW  # the strictest action of a rule that only its path kept from matching
    for number in entry:
        rule = image.rule(number)
        root = rule[RULE_ROOT]
        if roots is not None:
            root = roots.get(root, root)
        action = rule[RULE_ACTION]
        matched = rule[RULE_RATE] is None or applies(rule[RULE_RATE], used, action)
        if matched and root is not None and not holds(root, paths, action):
            matched = False
            if action < passed:
                passed = action
        trace.append([number, matched])
        if matched:
            return action, rule, trace, root is not None or passed < action
    return DENY, None, trace, False


def decide_all(image, entries: list, paths, used=None, roots=None) -> tuple:
    """Return the strictest decision of *entries*; see ``decide``."""
    return strictest([decide(image, entry, paths, used, roots) for entry in entries])


def entry_of(tool, name: str):
    """Return the entry of the policy *name* for *tool*.  Raises ``InvalidParams``."""
    for known, entry in tool.policies:
        if known == name:
            return entry
    raise InvalidParams(
        "context.policy: unknown policy %s" % name[:60],
        "this agent has: %s" % ", ".join([known for known, _ in tool.policies]),
    )


def roots_of(image, entries: list) -> list:
    """Return the roots that the rules of *entries* name, in their order and without repeats.  / and
    /workspace are left out, because no link leads from them elsewhere.
    """
    found = []
    for entry in entries:
        if isinstance(entry, list):
            for number in entry:
                root = image.rule(number)[RULE_ROOT]
                if root is not None and root != "/" and root != "/workspace" and root not in found:
                    found.append(root)
    return found


def strictest(decisions: list) -> tuple:
    """Return the strictest of one or more decisions, the first among equals.  It rests on a path
    when any of them does.
    """
    action, rule, trace, rests = decisions[0]
    for other in decisions:
        if other[DECISION_ACTION] < action:
            action, rule, trace = other[:DECISION_RESTS]
        rests = rests or other[DECISION_RESTS]
    return action, rule, trace, rests


def holds(root: str, paths: list, action: int) -> bool:
    """Return whether ``path_within: root`` holds for a call's paths.

    A rule that permits needs every path inside.  A rule that denies needs one path inside, or one
    that means nothing.  A call without a path fits no ``path_within``, because nobody knows where
    it acts.
    """
    # each condition is ``is_within``, without a call for each path
    if action == DENY:
        for path in paths:
            if path is None or path == root or root == "/" or path.startswith(root + "/"):
                return True
        return False
    for path in paths:
        if path is None or not (path == root or root == "/" or path.startswith(root + "/")):
            return False
    return len(paths) > 0


def applies(rate: list, used, action: int) -> bool:
    """Return whether a rule with a ``rate_limit`` is in force: a denial as soon as a limit is used
    up, a permission until then.

    rate  [tokens or None, nano-dollars or None] of a day, of all providers
    used  see ``decide``; None: denials are in force and permissions are not
    """
    spent = used is None
    if used is not None:
        for at in range(2):
            limit = rate[at]
            if limit is not None and used[at] >= limit:
                spent = True
    return spent == (action == DENY)


def is_within(path: str, root: str) -> bool:
    """Return whether *path* is *root* or below it, by whole components; both normalised."""
    return path == root or root == "/" or path.startswith(root + "/")


def normalise(path, base: str = "/workspace"):
    """Return *path* absolute, without ``.``, ``..``, doubled slashes or a trailing one; None when
    it means nothing.

    path     the caller's value, of any type; a relative path is below *base*
    ``..`` at the root stays at the root, as in the kernel.  ``//etc`` is ``/etc``: POSIX lets a
    leading ``//`` mean something else, and a library that keeps it would slip past a rule about
    ``/etc``."""
    if not isinstance(path, str) or not path or "\0" in path or len(path) > 4096:
        return None
    if path[0] != "/":
        path = base + "/" + path
    if "//" not in path and "/." not in path and path[-1] != "/":
        return path  # most paths need no change: a third of the time that splitting takes
    kept = []
    for part in path.split("/"):
        if part == "..":
            if kept:
                kept.pop()
        elif part and part != ".":
            kept.append(part)
    return "/" + "/".join(kept)


def paths_of(names: list, arguments: dict, workspace=None) -> list:
    """Return the normalised paths in a call's arguments, in the order of *names*.  A list of paths
    counts as its items.

    workspace  absolute path of the folder behind /workspace, or None: a path in it is returned as
               one below /workspace
    """
    found = []
    for name in names:
        value = arguments.get(name)
        if isinstance(value, list):
            for item in value:
                found.append(virtual(normalise(item), workspace))
        elif value is not None:
            found.append(virtual(normalise(value), workspace))
    return found


def virtual(path, workspace):
    """Return the normalised *path* (or None) as policies name it: below /workspace when it is in
    the folder *workspace*.
    """
    if path is not None and workspace is not None and is_within(path, workspace):
        return normalise(path[len(workspace) :].lstrip("/") or ".")
    return path
