"""How an approval ends: what the log gets, and the error of a call that does not run.  Loaded when one has ended."""
from clawlite.core.errors import ApprovalDenied, ApprovalTimeout


def event(approval, how: str) -> dict:
    """Return the log event.

    approval  ``tools.Approval``
    how       "approved", "denied" or "expired"
    """
    return {"event": "tool.approval", "tool": approval.tool.name, "arguments": approval.arguments,
            "rule_id": _rule_id(approval), "answer": how}


def denied(approval, reason: str):
    """Return the error of a call that somebody refused; *reason* may be empty."""
    return ApprovalDenied("%s: not approved%s" % (approval.tool.name, ": " + reason if reason else ""), "", _about(approval))


def expired(approval):
    """Return the error of a call that nobody approved in time."""
    return ApprovalTimeout("%s: nobody approved it within %d s" % (approval.tool.name, approval.timeout_s), "", _about(approval))


def left_s(approval, now_ms: int) -> int:
    """Return the seconds that are left to answer, rounded up."""
    return max(0, approval.due_ms - now_ms + 999) // 1000


def question(approval, now_ms: int) -> str:
    """Return the lines that a person is asked with."""
    from clawlite.core.render import call_text
    rule = approval.rule
    if rule:
        why = "rule %s asks first%s" % (rule[0], ": " + rule[2] if rule[2] else "")
    else:
        why = "this agent is supervised and the tool has side effects"
    return "Approve %s?\n  %s\n  (%d s, then %s)" % (call_text(approval.tool.name, approval.arguments), why, left_s(approval, now_ms),
                                                  "allowed" if approval.allow else "denied")


def _about(approval) -> dict:
    return {"tool": approval.tool.name, "rule_id": _rule_id(approval)}


def _rule_id(approval):
    return approval.rule[0] if approval.rule else None
