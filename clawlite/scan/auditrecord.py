"""A record of an audit (CKP 0.2.0, 5.8 ``audit``; docs/audit.md): the same on a Pi and on a board.

``record`` makes one from an event of the pipeline (core/turns/tools.py), ``begin_record`` the one
before a tool runs.  It is a list of (name, value) in the order of its line (auditline.py), because
dicts have no order on MicroPython.
"""

from clawlite.core.base.render import canonical
from clawlite.core.image.image import RULE_ID
from clawlite.core.image.scan_config import AUDIT_APPROVALS, AUDIT_INPUTS, AUDIT_OUTPUTS

MOST_TEXT = 4096  # characters of arguments, or of a result
_EVENTS = ("tool.call", "tool.approval", "task.cancelled")
_PLAIN = (
    "tool",
    "caller",
    "request_id",
    "action",
    "rule_id",
    "approval",
    "answer",
    "by",
    "reason",
    "status",
    "code",
    "limit",
    "again",
    "attempts",
    "found",
    "confirm",
    "duration_ms",
    "sandbox",
    "image",
)


def record(event: dict, wants: list, image) -> "list | None":
    """Return the record of *event*, which has its time stamp; None when it is not to be recorded.

    wants  [inputs, outputs, approvals, ...], the audit of ``scan_config.ScanConfig``
    image  ``image.Image`` of the agent
    """
    kind = event["event"]
    if (
        kind not in _EVENTS
        or kind == "tool.approval"
        and not wants[AUDIT_APPROVALS]
        or kind == "task.cancelled"
        and not event.get("tool")
    ):
        return None
    pairs = [("time", event["timestamp"]), ("event", kind)]
    for name in _PLAIN:
        value = event.get(name)
        if value is not None and (name != "approval" or wants[AUDIT_APPROVALS]):
            if name == "tool":  # for an unknown tool, the caller's value of any type
                value = cut(value if isinstance(value, str) else canonical(value, MOST_TEXT))
            pairs.append((name, value))
    if event.get("sandbox") is None and image.agent.sandbox:
        pairs.append(("sandbox", image.agent.sandbox))
    if "trace" in event:
        pairs.append(
            (
                "trace",
                [[image.rule(number)[RULE_ID], matched] for number, matched in event["trace"]],
            )
        )
    if wants[AUDIT_INPUTS] and "arguments" in event:
        pairs.append(("arguments", canonical(event["arguments"], MOST_TEXT)))
    if wants[AUDIT_INPUTS] and "given" in event:
        pairs.append(("given", canonical(event["given"], MOST_TEXT)))
    if wants[AUDIT_OUTPUTS] and "output" in event:
        pairs.append(("output", cut(event["output"])))
    return pairs


def begin_record(time: str, wants: list, tool: str, arguments: dict, request_id) -> list:
    """Return the record of a tool with side effects that is about to run; *time* as ISO 8601."""
    pairs = [("time", time), ("event", "tool.begin"), ("tool", tool)]
    if request_id is not None:
        pairs.append(("request_id", request_id))
    if wants[AUDIT_INPUTS]:
        pairs.append(("arguments", canonical(arguments, MOST_TEXT)))
    return pairs


def cut(text: str) -> str:
    """Return *text*; of a longer one ``MOST_TEXT`` characters, and ``...``."""
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "..."
