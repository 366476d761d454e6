"""What somebody who watches the approvals of an agent is told of them, and how they answer: the
methods ``claw.approval.*`` (docs/methods.md).  Linux and boards share it.
"""

from clawlite.core.base.errors import InvalidParams
from clawlite.core.protocol.rpc import field

UPDATED = "claw.approval.updated"


def list_waiting(agent) -> list:
    """Return the tasks that wait for yes or no."""
    return [task for task in agent.waiting if not task.approval.form]


def describe(task, now_ms: int) -> dict:
    """Return what a person is shown of the approval of *task*."""
    from clawlite.core.policy.approval import reason

    approval = task.approval
    return {
        "number": approval.number,
        "asked_ms": approval.since_ms,
        "state": "waiting",
        "tool": approval.tool.name,
        "arguments": approval.arguments,
        "asker": approval.asker,
        "why": reason(approval),
        "allow": approval.allows_on_timeout,
        "timeout_ms": approval.timeout_s * 1000,
        "left_ms": max(0, approval.due_ms - now_ms),
    }


def describe_end(approval) -> dict:
    """Return what they are told of *approval* when it has ended."""
    told = {"number": approval.number, "state": approval.how or "ended"}
    told["tool"] = approval.tool.name
    if approval.by:
        told["by"] = approval.by
    return told


def answer(agent, params: dict, by: str, now_ms: int) -> dict:
    """Return the result of ``claw.approval.answer`` of the person *by*: an approval that waits no
    more, or was asked at another time than ``asked_ms``, is not acknowledged.  Raises
    ``InvalidParams``.
    """
    number, reason = field(params, "number", int, ""), field(params, "reason", str, "", False)
    is_approved = params.get("is_approved")
    if is_approved is not True and is_approved is not False:
        raise InvalidParams("is_approved: expected true or false")
    asked_ms = field(params, "asked_ms", int, "", False)
    for task in list_waiting(agent):
        if task.approval.number == number and asked_ms in (None, task.approval.since_ms):
            agent.answer(task, is_approved, reason or by + " said no", now_ms, by)
            return {"acknowledged": True}
    return {"acknowledged": False}
