"""What would become of a call, without running it: the pipeline itself decides, up to the handler.

Nothing is logged, counted or asked: a limit of calls a minute is not counted, and no world model
looks ahead.
"""

from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base import effect as E
from clawlite.core.base.errors import ClawError
from clawlite.core.policy.ledger import CALLS, ENTRY_KEY
from clawlite.core.turns import tools
from clawlite.linux.files import workspace

_PERSON_SAYS = "asks"


class _Enough(ClawError):
    """The handler would run now."""

    code = 0


def preview_call(parts, name: str, arguments: dict, caller: str) -> dict:
    """Return the event of a call that did not run; its status is "preview", or "refused".

    parts  ``agent_parts.AgentParts``
    """
    setup = Setup(parts.image, parts.guard)
    setup.workspace = parts.workspace
    work = tools.call(setup, name, arguments, caller)
    try:
        effect = next(work)
        while effect[E.KIND] != E.LOG:
            effect = _carry_on(parts, work, effect)
    finally:
        work.close()
    event = effect[E.EVENT]
    if event.pop("approval", None) == _PERSON_SAYS:
        event["asks"] = True
    if event.get("code") == _Enough.code or event["status"] == "ok":
        event["status"] = "preview"
        event.pop("code", None)
    return event


def _carry_on(parts, work, effect: tuple) -> tuple:
    """Answer an *effect* of *work*; return the next one."""
    kind = effect[E.KIND]
    if kind == E.STORE and not effect[1]:
        return work.send((True, parts.get_meter().read_use_of_day()))
    if kind == E.STORE and effect[1][0][ENTRY_KEY] == CALLS:
        return work.send((True, True))
    if kind == E.RESOLVE:
        return work.send((True, workspace.resolve(effect[1], parts.workspace)))
    if kind == E.APPROVE:
        return work.send(_PERSON_SAYS)
    return work.throw(_Enough("it would run", "call it"))
