"""What policy will say of a tool before any argument is known: for ``/tools`` and ``clawlite inspect``."""
from clawlite.core.image import HAS_SIDE_EFFECTS
from clawlite.core.policy import ACTIONS
from clawlite.core.tools import OBSERVER, SUPERVISED

_WORDS = {"deny": "denied", "allow": "allowed", "audit-only": "allowed and audited", "require-approval": "asks first"}


def outlook(image, tool) -> str:
    """Return e.g. ``allowed (rule read)`` or ``depends: within /workspace allowed (rule ws), else denied``."""
    if image.agent.autonomy == OBSERVER:
        return "denied (this agent only observes)"
    entries = [tool.entry] if tool.bound is None else [tool.entry, tool.bound[0]]
    said = " and ".join([_entry(image, entry) for entry in entries])
    if image.agent.autonomy == SUPERVISED and tool.flags & HAS_SIDE_EFFECTS and "allowed" in said:
        said += ", asks first (supervised)"
    return said


def _entry(image, entry) -> str:
    if entry is None:
        return "denied (no rule allows it)"
    parts = []
    for number in [entry] if isinstance(entry, int) else entry:
        rule = image.rule(number)
        said = "%s (rule %s)" % (_WORDS[ACTIONS[rule[1]]], rule[0])
        if rule[5] is None:
            parts.append(said)
            return ", else ".join(parts)
        parts.append("within %s %s" % (rule[5], said))
    return ", else ".join(parts + ["denied"])
