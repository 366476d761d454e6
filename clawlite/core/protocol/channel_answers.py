"""Approvals in channels: how one is put to an admin, and what /approve N, /deny N and /show N do
there.  Loaded for the first of them.

1. N is the number of a question, which no other has, also not after it has ended.
2. Without a number nothing is answered: another question may have come while somebody typed.
3. An answer to a question that has ended does nothing, and says what became of it.  That is on
   record, as answers that count are.

Linux and boards share it (linux/channels/channel.py, firmware-host/micropython/line/relayed.py),
and the console (console.py).
"""

from clawlite.core.base.effect import LOG
from clawlite.core.base.printable import escape_name, join_lines
from clawlite.core.policy.approval import question

_ENDINGS = {
    "approved": "Approved",
    "denied": "Denied",
    "expired": "Not answered in time, so it was %s",
    "": "Not needed any more",
}
_COMMAND, _NUMBER, _REST = range(3)  # of the words that answer an approval
_OVER, _HOW, _BY, _AT_MS = range(4)  # of what ``Agent.over`` has


def describe(task, now_ms: int) -> tuple:
    """Return (the question of the approval of *task*, a line that says how to answer it)."""
    how, number = task.approval.form.how if task.approval.form else "", task.approval.number
    more = "\nAnswer with /approve %d%s or /deny %d" % (number, how, number)
    return question(task.approval, now_ms, "/show %d" % number), more


def find(agent, words: list, is_admin: bool, task_of, now_ms: int, by: str) -> tuple:
    """Return (the task whose approval *words* decide, the rest of them), or (None, text of the
    reply): it is shown, or there is none.

    words    of what a person wrote, at most 3; the first is one of ``access.ANSWERS``
    task_of  function(number) -> the task when its approval may be answered here, or None
    by       who answers
    """
    number = words[_NUMBER] if len(words) > _NUMBER else ""
    is_number = 0 < len(number) < 12 and all(["0" <= c <= "9" for c in number])
    task = task_of(int(number)) if is_number else None
    if not is_admin:
        said = "Only an admin approves."
        note_ignored(agent, by, said)
        return None, said
    if task is None:
        said = "Say which question, as in %s 3." % words[_COMMAND]
        if number:
            said = _tell_over(agent, int(number) if is_number else 0, now_ms)
            note_ignored(agent, by, said)
        numbers = sorted([one.approval.number for one in agent.waiting])
        numbers = ", ".join(["%d" % one for one in numbers if task_of(one)])
        return None, said + (" Waiting: %s." % numbers if numbers else "")
    if words[_COMMAND] == "/show":
        return None, show(agent, task)
    return task, words[_REST].strip() if len(words) > _REST else ""


def note_ignored(agent, by: str, why: str):
    """Put an answer of *by* on record that did nothing."""
    event = {"event": "tool.approval", "answer": "ignored", "by": by, "reason": why}
    agent.effects.append((LOG, event))


def _tell_over(agent, number: int, now_ms: int) -> str:
    """Return why nothing waits under *number*."""
    for over in agent.over:
        if over[_OVER] == number and over[_HOW]:
            since_s = (now_ms - over[_AT_MS]) // 1000
            ago = "%d s" % since_s if since_s < 120 else "%d min" % (since_s // 60)
            how = "ran out" if over[_HOW] == "expired" else "was " + over[_HOW]
            by = " by " + escape_name(over[_BY]) if over[_BY] else ""
            return "Question %d %s%s %s ago. Nothing was done now." % (number, how, by, ago)
    numbers = [over[_OVER] for over in agent.over]
    is_asked = numbers and agent.setup.first_question <= number <= max(numbers)
    if is_asked and number not in [task.approval.number for task in agent.waiting]:
        return "Question %d is over. Nothing was done now." % number
    return "No call with that number waits for approval."


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
        ending %= "allowed" if approval.allows_on_timeout else "denied"
    by = " by " + escape_name(approval.by) if approval.by else ""
    return "%s%s: %s" % (ending, by, escape_name(approval.tool.name))
