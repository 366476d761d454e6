"""Why a tool call ended as it did: for ``/trace``, which knows the calls that an agent with a
console keeps, and for ``clawlite trace``, which knows those in its log."""

from clawlite.core.base.dialect import const
from clawlite.core.image.image import (
    HAS_SIDE_EFFECTS,
    OBSERVER,
    RULE_ACTION,
    RULE_ID,
    RULE_POLICY,
    RULE_RATE,
    RULE_REASON,
    RULE_ROOT,
    SUPERVISED,
)
from clawlite.core.policy.policy_preview import condition
from clawlite.core.policy.policy import ACTIONS, ALLOW, AUDIT, DENY, holds, paths_of
from clawlite.core.base.printable import escape_line, escape_name, join_lines
from clawlite.core.base.render import call_text, canonical, whole

_EVENT = const(0)  # of a call that is kept
_WORDS = {
    "deny": "it is denied",
    "allow": "it is allowed",
    "audit-only": "it is allowed and audited",
    "require-approval": "it asks first",
}
_ENDINGS = {-32012: "expired", -32013: "denied"}
_ANSWERS = {
    "approved": "the person approved",
    "denied": "it was not approved",
    "expired": "nobody answered in time",
}


def trace(agent, words: list) -> str:
    """Return the lines about one of the last calls; there is one.

    words  the words after the command: none for the last call, or its number, counted back from
           "1", the last one
    """
    number, wrong = _number(agent.calls, "/trace", words)
    if wrong:
        return escape_line(wrong)
    event, answer = agent.calls[-number]
    return trace_text(agent.image, event, answer, "/show %d" % number)


def show(agent, words: list) -> list:
    """Return all of a call, a line for each argument.

    words  the words after the command: none for the call that waits for an answer, or else the last
           one; or a number, as for ``trace``
    """
    if agent.waiting and not words:
        approval = agent.waiting[0].approval
        name, arguments = approval.tool.name, approval.arguments
    else:
        number, wrong = _number(agent.calls, "/show", words)
        if wrong:
            return [wrong]
        event = agent.calls[-number][_EVENT]
        name, arguments = event["tool"], event["arguments"]
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return ["%s with %s" % (escape_name(canonical(name)), escape_line(canonical(arguments)))]
    return whole(name, arguments)


def _number(kept: list, command: str, words: list) -> tuple:
    """Return (number of the *kept* call that is meant, ""), or (0, why it is none of them)."""
    number = words[0] if words else "1"
    if (
        len(words) > 1
        or number.strip("0123456789")
        or len(number) > 9
        or not 1 <= int(number) <= len(kept)
    ):
        return 0, (
            "Expected %s with a number from 1 (the last call) to %d, got %s."
            % (command, len(kept), canonical(" ".join(words), 40))
        )
    return int(number), ""


def trace_text(image, event: dict, answer=None, by: str = "--json") -> str:
    """Return the lines about one call.

    event   its ``tool.call`` event
    by      what shows all of a call that is longer than a screen
    answer  how its approval was answered: "approved", "denied", "expired"; None: as the event says,
            if it had one
    """
    answer = answer or event.get("approval") or _ENDINGS.get(event.get("code", 0))
    arguments = event["arguments"]
    called = (
        call_text(event["tool"], arguments, by)
        if isinstance(event["tool"], str) and isinstance(arguments, dict)
        else "%s with %s"
        % (escape_name(canonical(event["tool"]), 60), escape_line(canonical(arguments), 60))
    )
    lines = [
        "%s  %s%s, called by the %s"
        % (
            called,
            escape_name(event["status"]),
            " (%d)" % event["code"] if "code" in event else "",
            escape_name(event["caller"]),
        )
    ]
    if "action" in event:
        _rules(image, event, lines)
        if "limit" in event:
            lines.append(
                "* limit: %s, and this call would exceed it: it is denied"
                % escape_line(event["limit"], 200)
            )
        elif answer or event["action"] in (ACTIONS[ALLOW], ACTIONS[AUDIT]):
            _approval(image, event, answer, lines)
    else:
        lines.append(_before(image, event))
    if event.get("attempts", 1) > 1:
        lines.append("* retry: it was tried %d times" % event["attempts"])
    if "confirm" in event:
        lines.append("* what must follow: %s" % escape_line(event["confirm"], 300))
    return join_lines(lines[:1] + ["  " + line for line in lines[1:]])


def _rules(image, event: dict, lines: list):
    """Add a line for each rule that was tried; the last one that matched decided."""
    for number, matched in event["trace"]:
        rule = image.rule(number)
        head = "rule %s (policy %s%s)" % (
            rule[RULE_ID],
            rule[RULE_POLICY],
            ", " + condition(rule) if condition(rule) else "",
        )
        if matched:
            lines.append(
                "* %s: matches, so %s%s"
                % (
                    head,
                    _WORDS[event["action"]],
                    ": " + rule[RULE_REASON] if rule[RULE_REASON] else "",
                )
            )
        else:
            lines.append("- %s: does not match, %s" % (head, why_not(image, event, rule)))
    if event["rule_id"] is None:
        lines.append(
            "* no rule %s: it is denied" % ("matches" if event["trace"] else "can match this tool")
        )


def why_not(image, event: dict, rule: list) -> str:
    """Return why a rule with a condition did not match a call."""
    tool = image.tool(event["tool"])
    if rule[RULE_RATE] is not None and (
        rule[RULE_ROOT] is None
        or holds(rule[RULE_ROOT], paths_of(tool.paths, event["arguments"]), rule[RULE_ACTION])
    ):
        return "the day is not used up" if rule[RULE_ACTION] == DENY else "the day is used up"
    return (
        "none of its paths lies there"
        if rule[RULE_ACTION] == DENY
        else "its paths do not all lie there"
    )


def _approval(image, event: dict, answer, lines: list):
    tool = image.tool(event["tool"])
    if event["action"] in (ACTIONS[ALLOW], ACTIONS[AUDIT]):
        if image.agent.autonomy != SUPERVISED or tool is None or not tool.flags & HAS_SIDE_EFFECTS:
            return
        lines.append(
            "* autonomy: this agent is supervised and the tool has side effects, so it asks first"
        )
    if answer:
        allowed = answer == "expired" and event.get("code") != -32012
        lines.append(
            "* approval: %s%s"
            % (_ANSWERS[answer], ", and the rule allows it then" if allowed else "")
        )


def _before(image, event: dict) -> str:
    """Return why no rule decided on a call."""
    tool = image.tool(event["tool"]) if isinstance(event["tool"], str) else None
    if "again" in event:
        return "* an earlier call had this request_id: this one got what that gave, and nothing ran"
    if tool is None:
        return "* this agent has no such tool; no rule was looked at"
    if event["code"] == -32602:
        return "* the call does not fit what the tool takes; no rule was looked at"
    if image.agent.autonomy == OBSERVER:
        return "* autonomy: this agent only observes, it runs no tools; no rule was looked at"
    return "* where its path leads could not be found out, so no rule decided"
