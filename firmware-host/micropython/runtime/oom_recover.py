"""Recovery from a round that ran out of memory: the tasks that were under way end, their callers
are told, and the agent serves on (docs/adr/0073).

1. The loop has unwound, every output is off, every handler is closed, and what can be loaded again
   is gone (oom_unwind.py).  This module is loaded then, and dropped afterwards.
2. A tool call that had begun may have had its effect: its caller and the log are told so.
3. What was being sent is sent once more.  If memory is short for that too, an answer becomes
   an error, and a text is dropped.
"""

from clawlite.core.base import effect as E
from clawlite.core.base.errors import InternalError, ToolTimeout
from clawlite.core.line.frame import RECORD


def recover(device):
    """Tell the callers of the tasks that the loop has dropped, and go on."""
    agent, now = device.agent, device.now_ms()
    error = InternalError("out of memory", "ask for less at once, or build a smaller agent")
    lost = [number for number in sorted(agent.tasks) if not agent.tasks[number].generator]
    doing, heard = device.doing, device.heard
    if doing and device.short > 1 and doing[E.KIND] == E.SEND:
        doing = (
            E.SEND,
            {
                "jsonrpc": "2.0",
                "id": (doing[E.MESSAGE].get("id") if isinstance(doing[E.MESSAGE], dict) else None),
                "error": _unknown("what was asked for").to_json(),
            },
        )
    if doing and (device.short == 1 or doing[E.KIND] > E.PROMPT):
        agent.effects.insert(0, doing)
    device.doing = None
    device.stdio.spoil()
    for number in lost:
        task = agent.tasks.get(number)
        if task:
            # for the log
            task.tool = task.began if task.once or task.ran_ms is not None else None
            agent.cancel(number, _unknown(task.tool) if task.tool else error, now)
    if heard == RECORD and device.session:
        device.session.excuse(error)
    device.heard = None
    if device.console:
        device.console.go_on(error, now, len(lost) > 0 or heard == RECORD and device.session)
    device.settle()


def _unknown(name: str):
    return ToolTimeout(
        "out of memory: %s began, and what came of it is not known" % name,
        "see what it did before you call it again",
    )
