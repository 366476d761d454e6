"""The tool calls in an agent's log, and why each ended as it did: for ``clawlite trace``, and for
operators (record_group.py).

The log (log.jsonl, and log.jsonl.1 before it) has an event for each call, with the numbers of the
rules that were looked at; the image says what these rules are.  An event names the manifest that it
was made with: over another image its numbers mean nothing.
"""

import os

from clawlite.core.base.errors import (
    ApprovalDenied,
    ApprovalTimeout,
    ClawError,
    InvalidParams,
    SandboxDenied,
)
from clawlite.core.base.printable import escape_name
from clawlite.core.image.image import OBSERVER, RULE_ACTION, RULE_ID, RULE_POLICY, RULE_REASON
from clawlite.core.policy.policy import ACTIONS, DENY
from clawlite.core.policy.policy_preview import condition
from clawlite.core.policy.trace import trace_text, why_not
from clawlite.core.protocol.calls import is_uuid
from clawlite.linux.files.regular_file import open_end, open_regular
from clawlite.linux.io.jsontext import loads

AUTONOMY = ("observer", "supervised", "autonomous")
FILES = ("log.jsonl", "log.jsonl.1")  # the newer one first
_MOST_BYTES = 4194304  # of the log's end in which the last calls are looked for
GATES = ("arguments", "autonomy", "policy", "limit", "approval", "sandbox", "run")
PASSED, STOPPED, ASKS, NOT_REACHED = "passed", "stopped", "asks", "not reached"


def find(folder: str, call: str, is_board: bool = False) -> tuple:
    """Return (its number from the end, the event) of *call*: "last", a number or a request_id.
    Raises ``ClawError``.

    is_board  *folder* holds what a board has on record, for a moment
    """
    number = 0
    for name in FILES:
        for line in reversed(read_lines(os.path.join(folder, name))):
            event = _event(line)
            if event is not None:
                number += 1
                if (
                    call == "last"
                    or call == str(event.get("request_id")).lower()
                    or call.lstrip("0") == str(number)
                ):
                    return number, event
    if not number and is_board:
        raise ClawError(
            "the board has no tool call on record",
            "let the agent call a tool; a "
            "board keeps its calls with "
            "audit: { destination: file } in "
            "a policy",
        )
    if not number:
        raise ClawError(
            "no tool call is in %s" % os.path.join(folder, "log.jsonl"),
            "let the agent call a tool first",
        )
    if is_uuid(call):
        raise ClawError(
            "no call with the request_id %s is in the log, which has %d" % (call, number),
            "the last call is: clawlite trace 1",
        )
    raise ClawError("there is no call %s: the log has %d" % (call, number), "1 is the last one")


def read_last(folder: str, most: int) -> list:
    """Return [(number from the end, event)] of the last *most* calls in the log of *folder*, the
    last one first.  Cost: the end of the log is read.
    """
    found = []
    for name in FILES:
        try:
            with open(os.path.join(folder, name), "rb", opener=open_end) as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _MOST_BYTES))
                lines = file.read().splitlines()
        except FileNotFoundError:
            continue
        except OSError as e:
            raise ClawError("the log: %s" % e.strerror, "see who may read it") from None
        for line in reversed(lines):
            event = _event(line)
            if event is not None:
                found.append((len(found) + 1, event))
                if len(found) == most:
                    return found
    return found


def read_lines(path: str) -> list:
    """Return the lines of a file, none where it is not there.  Raises ``ClawError``."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []
    except OSError as e:
        raise ClawError(
            "%s: %s" % (path, e.strerror), "check the path, and who may read it"
        ) from None


def _event(line: bytes):
    """Return the event in *line* when it is a tool call's; None for others, and for a line that
    was cut.
    """
    if b'"tool.call"' not in line:
        return None
    try:
        event = loads(line)
    except ClawError:
        return None
    return event if isinstance(event, dict) and event.get("event") == "tool.call" else None


def explain(image, number: int, event: dict) -> dict:
    """Return what ``--json`` prints.  Raises ``ClawError`` when the event was made with another
    manifest, or is damaged.
    """
    if event.get("image") != image.id:
        raise ClawError(
            "call %d was made with another manifest than this image (%s, here %s): "
            "its rules no longer fit"
            % (number, escape_name(event.get("image", "older")), image.id),
            "name the image that ran then",
        )
    try:
        rules = []
        for place, matched in event.get("trace", []):
            rule = image.rule(place)
            rules.append(
                {
                    "number": place,
                    "id": rule[RULE_ID],
                    "policy": rule[RULE_POLICY],
                    "action": ACTIONS[rule[RULE_ACTION]],
                    "condition": condition(rule) or None,
                    "matched": matched,
                    "decides": matched,
                    "why": None if matched else why_not(image, event, rule),
                }
            )
        trace_text(image, event)  # the text needs more of the event than this
        return {
            "call": number,
            "time": event.get("timestamp"),
            "tool": event["tool"],
            "arguments": event["arguments"],
            "caller": event["caller"],
            "request_id": event.get("request_id"),
            "image": image.id,
            "autonomy": AUTONOMY[image.agent.autonomy],
            "rules": rules,
            "never": _unmatchable_rules(image, rules),
            "action": event.get("action"),
            "rule_id": event.get("rule_id"),
            "approval": event.get("approval"),
            "limit": event.get("limit"),
            "attempts": event.get("attempts", 1),
            "status": event["status"],
            "code": event.get("code"),
        }
    except (KeyError, TypeError, ValueError, AttributeError, ClawError):
        raise ClawError(
            "call %d is damaged in the log" % number,
            "look at another call",
        ) from None


def _unmatchable_rules(image, looked: list) -> list:
    """Return the ids of the rules before the last one of *looked* that can never match this tool:
    nobody looks at them.

    Where all rules that were looked at are of one policy, it may have been asked alone: then only
    of that one."""
    policies = {rule["policy"] for rule in looked}
    seen = {rule["number"] for rule in looked}
    before = (
        [image.rule(number) for number in range(looked[-1]["number"]) if number not in seen]
        if looked
        else []
    )
    return [rule[RULE_ID] for rule in before if len(policies) > 1 or rule[RULE_POLICY] in policies]


def gates_of(image, event: dict) -> list:
    """Return [[name of a gate, what it did], ...] of a call, in the order of ``GATES``."""
    code, action = event.get("code"), event.get("action")
    stopped = None
    if action is None:
        is_observer = image.agent.autonomy == OBSERVER and code != InvalidParams.code
        stopped = "autonomy" if is_observer else "policy" if "again" in event else "arguments"
        stopped = "sandbox" if code == SandboxDenied.code else stopped
    elif "limit" in event:
        stopped = "limit"
    elif action == ACTIONS[DENY]:
        stopped = "policy"
    elif code in (ApprovalDenied.code, ApprovalTimeout.code):
        stopped = "approval"
    elif code == SandboxDenied.code:
        stopped = "sandbox"
    elif event["status"] not in ("ok", "preview"):
        stopped = "run"
    place = len(GATES) if stopped is None else GATES.index(stopped)
    said = [[name, PASSED] for name in GATES[:place]]
    said += [[name, NOT_REACHED if name != stopped else STOPPED] for name in GATES[place:]]
    if event["status"] == "preview" and stopped is None:
        said[-1][1] = NOT_REACHED
        if "asks" in event:
            said[GATES.index("approval")][1] = ASKS
    return said


def describe(image, number: int, event: dict) -> dict:
    """Return ``explain`` with the gates, and the lines of ``clawlite trace``.  What another image
    has decided is shown without its rules.
    """
    try:
        found = explain(image, number, event)
        for rule in found["rules"]:
            rule["reason"] = image.rule(rule["number"])[RULE_REASON]
        found["lines"] = trace_text(image, event).split("\n")[1:]
        found["gates"] = gates_of(image, event)
    except ClawError as e:
        keys = "tool arguments caller request_id action rule_id approval status code".split()
        found = {key: event.get(key) for key in keys}
        found.update(call=number, time=event.get("timestamp"), rules=[], gates=[], lines=[])
        found["note"] = e.message
    found["duration_ms"], found["asks"] = event.get("duration_ms"), event.get("asks", False)
    return found
