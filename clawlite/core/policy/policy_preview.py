"""How policy will decide on a tool, before any argument is known: for ``/tools``, ``clawlite
tools`` and ``clawlite inspect``; and a rule's conditions in words, for ``/trace``.
"""

from clawlite.core.image.image import (
    ASKS,
    HAS_SIDE_EFFECTS,
    OBSERVER,
    RULE_ACTION,
    RULE_ID,
    RULE_RATE,
    RULE_ROOT,
    SUPERVISED,
)
from clawlite.core.policy.policy import ACTIONS, DENY

_WORDS = {
    "deny": "denied",
    "allow": "allowed",
    "audit-only": "allowed and audited",
    "require-approval": "asks first",
}


def preview(image, tool) -> str:
    """Return e.g. ``allowed (rule read)`` or ``depends: within /workspace allowed (rule ws),
    else denied``.
    """
    if image.agent.autonomy == OBSERVER:
        return "denied (this agent only observes)"
    entries = [tool.entry] if tool.bound is None else [tool.entry, tool.bound[0]]
    said = " and ".join([_entry(image, entry) for entry in entries])
    if image.agent.autonomy == SUPERVISED and tool.flags & HAS_SIDE_EFFECTS and "allowed" in said:
        said += ", asks first (supervised)"
    elif tool.flags & ASKS and "allowed" in said:
        said += ", asks first (its skill)"
    return said


def _entry(image, entry) -> str:
    if entry is None:
        return "denied (no rule allows it)"
    parts = []
    for number in [entry] if isinstance(entry, int) else entry:
        rule = image.rule(number)
        said = "%s (rule %s)" % (_WORDS[ACTIONS[rule[RULE_ACTION]]], rule[RULE_ID])
        asked = condition(rule)
        if not asked:
            parts.append(said)
            return ", else ".join(parts)
        parts.append("%s %s" % (asked, said))
    return ", else ".join(parts + ["denied"])


def condition(rule: list) -> str:
    """Return the condition of *rule* beside its tools: "within /workspace", "until 1000 tokens of
    the day are used"; "" when it has none.
    """
    asked = ["within " + rule[RULE_ROOT]] if rule[RULE_ROOT] is not None else []
    if rule[RULE_RATE] is not None:
        tokens, nano = rule[RULE_RATE]
        limits = ["%d tokens" % tokens] if tokens is not None else []
        if nano is not None:
            limits.append(
                "%s dollars" % ("%d.%09d" % divmod(nano, 1000000000)).rstrip("0").rstrip(".")
            )
        asked.append(
            "%s %s of the day are used"
            % ("once" if rule[RULE_ACTION] == DENY else "until", " or ".join(limits))
        )
    return " and ".join(asked)
