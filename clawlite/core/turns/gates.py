"""The gates of the pipeline (tools.py), and which of them a settled call may skip.

A call of a tool is *settled* when every gate is known to let it pass, whatever its arguments are,
as long as they fit and the request is new.  A shell runs such a call on a shorter path
(linux/runtime/fast_path.py).  Each ``# gate NAME`` in ``tools._gated`` has an entry here; a test
finds a gate without one.  A gate whose entry returns False closes the shorter path.  Boards have
neither the shorter path nor this module.
"""

from clawlite.core.image.image import (
    ASKS,
    GENERATOR,
    GUARD,
    HAS_SIDE_EFFECTS,
    HANDLER_KIND,
    IDEMPOTENT,
    OBSERVER,
    READ_ONLY,
    SKILL,
)
from clawlite.core.image.scan_config import ScanConfig
from clawlite.core.policy.policy import ALLOW, AUDIT, DECISION_ACTION


def _arguments(image, tool):
    return tool.fits is not None  # the shorter path calls it for each call


def _guard(image, tool):
    """An audit alone lets all calls pass: it records a call's log event and its result."""
    if not image.size_of(GUARD):
        return True
    asked = ScanConfig(image.section(GUARD))
    return not (asked.injection or asked.leaks or asked.checks)


def _request(image, tool):
    return True  # the shorter path runs new requests only, and admits each


def _autonomy(image, tool):
    return image.agent.autonomy != OBSERVER


def _policy(image, tool):
    return tool.constant and tool.decision[DECISION_ACTION] in (ALLOW, AUDIT)


def _limit(image, tool):
    return image.agent.calls_per_minute is None


def _world(image, tool):
    return True  # a world model checks calls within a skill, and an operator's call is in none


def _approval(image, tool):
    return not tool.flags & (HAS_SIDE_EFFECTS | ASKS)


def _stop(image, tool):
    return not tool.flags & HAS_SIDE_EFFECTS


def _record(image, tool):
    return tool.flags & (READ_ONLY | IDEMPOTENT) != 0


def _handler(image, tool):
    """The handler runs in this process, once, and without a break."""
    return (
        tool.handler[HANDLER_KIND] < SKILL
        and not tool.flags & GENERATOR
        and tool.retry is None
        and not image.agent.isolation
    )


# in the order of the pipeline: name -> function(image, tool), whether all settled calls may pass
GATES = {
    "arguments": _arguments,
    "guard": _guard,
    "request": _request,
    "autonomy": _autonomy,
    "policy": _policy,
    "limit": _limit,
    "world": _world,
    "approval": _approval,
    "stop": _stop,
    "record": _record,
    "handler": _handler,
}


def is_settled(image, tool) -> bool:
    """Return whether all gates pass every call of *tool* whose arguments fit and whose request is
    new, and nothing in its path waits.

    tool  as ``Image`` prepares it: with ``fits``, and with ``decision`` when it is constant
    """
    for passes in GATES.values():
        if not passes(image, tool):
            return False
    return True
