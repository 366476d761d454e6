"""What ``clawlite inspect`` shows of an image's rules, and of its audit."""

from clawlite.core.image.image import (
    GUARD,
    RULE_ACTION,
    RULE_ALLOWS,
    RULE_ID,
    RULE_POLICY,
    RULE_RATE,
    RULE_REASON,
    RULE_ROOT,
    RULE_TIMEOUT_S,
    RULES,
)
from clawlite.core.image.scan_config import AUDIT_DESTINATION, AUDIT_KEPT_S, ScanConfig
from clawlite.core.policy.policy import ACTIONS
from clawlite.core.policy.policy_preview import condition
from clawlite.protocols.image.features import audit_mb


def show_audit(image) -> tuple:
    """Return ({"destination", "retention_s" or None, "max_size_mb": of agents on Linux, 0: no
    bound}, lines of it): what is kept of calls; (None, []) where nothing is.
    """
    found = ScanConfig(image.section(GUARD)).audit if image.size_of(GUARD) else None
    if found is None:
        return None, []
    destination, kept_s, most_mb = found[AUDIT_DESTINATION], found[AUDIT_KEPT_S], audit_mb(found)
    kept = "for ever" if kept_s is None else f"for {kept_s} s"
    most = f"at most {most_mb} MiB on Linux" if most_mb else "of any size"
    shown = {"destination": destination, "retention_s": kept_s, "max_size_mb": most_mb}
    return shown, [f"{destination}, kept {kept}, {most}"]


def show_rules(image) -> tuple:
    """Return ([{"id", "action", ...}], lines of them), the rules in their order."""
    # the first offset of the table says where the offsets end
    count = int.from_bytes(image.part(RULES, 0, 4), "big") // 4 - 1
    found = [_rule(image.rule(number)) for number in range(count)]
    return found, [
        f"{rule['id']:20} {rule['action']}{', ' + rule['condition'] if rule['condition'] else ''}"
        f"{': ' + rule['reason'] if rule['reason'] else ''}"
        for rule in found
    ]


def _rule(rule: list) -> dict:
    tokens, nano_dollars = rule[RULE_RATE] or (None, None)
    return {
        "id": rule[RULE_ID],
        "action": ACTIONS[rule[RULE_ACTION]],
        "reason": rule[RULE_REASON],
        "policy": rule[RULE_POLICY],
        "path_within": rule[RULE_ROOT],
        "tokens_per_day": tokens,
        "cost_per_day_usd": None if nano_dollars is None else nano_dollars / 1e9,
        "approval_timeout_s": rule[RULE_TIMEOUT_S] or None,
        "default_if_timeout": "allow" if rule[RULE_ALLOWS] else "deny",
        "condition": condition(rule) or None,
    }
