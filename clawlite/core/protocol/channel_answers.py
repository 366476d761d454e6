"""Approvals in channels: how one is put to an admin, and what /approve N, /deny N and /show N do
there.  Loaded for the first of them.

Linux and boards share it (linux/channels/channel.py, firmware-host/micropython/line/relayed.py).
"""

from clawlite.core.base.printable import escape_name, join_lines
from clawlite.core.policy.approval import question

_ENDINGS = {
    "approved": "Approved",
    "denied": "Denied",
    "expired": "Not answered in time, so it was %s",
    "": "Not needed any more",
}
_COMMAND, _NUMBER, _REST = range(3)  # of the words that answer an approval


def describe(task, now_ms: int) -> tuple:
    """Return (the question of the approval of *task*, a line that says how to answer it)."""
    how = task.approval.form.how if task.approval.form else ""
    more = "\nAnswer with /approve %d%s or /deny %d" % (task.number, how, task.number)
    return question(task.approval, now_ms, "/show %d" % task.number), more


def find(agent, words: list, is_admin: bool, task_of) -> tuple:
    """Return (the task whose approval *words* decide, the rest of them), or (None, text of the
    reply): it is shown, or there is none.

    words    of what a person wrote, at most 3; the first is one of ``access.ANSWERS``
    task_of  function(number) -> the task when its approval may be answered here, or None
    """
    number = words[_NUMBER] if len(words) > _NUMBER else ""
    is_number = 0 < len(number) < 12 and all(["0" <= c <= "9" for c in number])
    task = task_of(int(number)) if is_number else None
    if not is_admin:
        return None, "Only an admin approves."
    if task is None:
        numbers = sorted([one.number for one in agent.waiting if task_of(one.number)])
        numbers = ", ".join(["%d" % one for one in numbers])
        return None, "No call with that number waits for approval." + (
            " Waiting: %s." % numbers if numbers else ""
        )
    if words[_COMMAND] == "/show":
        return None, show(agent, task)
    return task, words[_REST].strip() if len(words) > _REST else ""


def show(agent, task) -> str:
    """Return the whole call that waits, without secrets."""
    from clawlite.core.base.render import whole

    guard = agent.setup.guard
    lines = whole(task.approval.tool.name, task.approval.arguments)
    return join_lines([guard.text(line) for line in lines] if guard else lines)


def end_text(approval) -> str:
    """Return the sentence that says how *approval* has ended."""
    ending = _ENDINGS[approval.how]
    if "%" in ending:
        ending %= "allowed" if approval.allow else "denied"
    by = " by " + escape_name(approval.by) if approval.by else ""
    return "%s%s: %s" % (ending, by, escape_name(approval.tool.name))
