"""Recovery from a round that ran out of memory: the tasks in progress end, their callers get an
error, and the agent goes on (docs/adr/0014).

1. The loop has unwound: every output is off, every handler is closed, and all modules that can be
   loaded again are dropped (oom_unwind.py).  Only then is this module loaded; it is dropped
   afterwards.
2. A tool call that had begun may have had its effect, and its caller and the log are told that.
3. A message that was being sent is sent once more.  If memory runs out again, an answer is replaced
   by an error, and a text is dropped.
"""

from clawlite.core.base import effect as E
from clawlite.core.base.errors import InternalError, ToolTimeout
from clawlite.core.line.frame import RECORD


def recover(device):
    """Answer the callers of the tasks that the loop has dropped, and go on."""
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
        "out of memory: %s began, and its result is not known" % name,
        "see what it did before you call it again",
    )
