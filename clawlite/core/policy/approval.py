"""Approvals: how a call begins to wait for one, the text of its question, and how it ends.  Loaded
for the first approval.

It is put to a person elsewhere: at the console by ``Console._put_approval`` of
core/protocol/console.py, to the admins of channels by ``Approvers.update`` of
linux/approvals/approvers.py, and to an MCP client by ``Offer._put_approvals`` of
linux/mcp/offer.py.  An operator answers by a method of core/protocol/calls.py.

Each approval belongs to one task, and so to one call of one caller.  Its first answer uses it up.
It is on record while it waits (KEEP), so that no restart forgets it silently.  Its number names it
alone: a task that asks twice has two, and where people answer by a number, each process begins with
another one by chance (``Setup.first_question``), so that no late answer meets another question.
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.effect import KEEP, LOG, TELL
from clawlite.core.base.errors import ApprovalDenied, ApprovalTimeout
from clawlite.core.image.image import ASKS, RULE_ALLOWS, RULE_ID, RULE_REASON, RULE_TIMEOUT_S
from clawlite.core.idempotency.idempotency import GONE, WAIT

# of an approval without a time, and of one that autonomy asks for (our decision: 300 s, then deny)
APPROVAL_S = 300
_ASKS = const(0)  # of ``Approval.seen``
_FORESEEN = const(1)
_MOST_OVER = const(8)  # of ``Agent.over``
_NUMBER = const(0)  # in one of these


class Approval:
    """A call that waits for a person.

    tool, arguments   what would run
    rule              the rule that asks, or None when autonomy, a skill or a world model does
    seen              (whether a world model asks, what it foresees), or None
    timeout_s         int >= 1
    number            int >= 1 that no other has, from when it waits
    allow             bool, what happens when nobody answers
    """

    number = 0
    asker = ""  # who asks, by a channel that is not the console
    how = ""  # "approved", "denied" or "expired", once it has ended
    by = ""  # who has answered, where that is known
    seen = None
    form = None  # a question that is asked in its place (linux/mcp/question.py)
    prompt = "[y/N] "
    told = ()  # lines that say what is asked, in place of the call
    is_kept = False  # whoever asks keeps it on record, and asks again after a restart

    def __init__(self, tool, arguments: dict, rule, seen=None):
        self.tool = tool
        self.arguments = arguments
        self.rule = rule
        if seen:
            self.seen = seen
        self.timeout_s = rule[RULE_TIMEOUT_S] or APPROVAL_S if rule else APPROVAL_S
        self.allows_on_timeout = bool(rule and rule[RULE_ALLOWS])
        self.since_ms = self.due_ms = 0

    def keep_for(self, timeout_s: int):
        """Whoever asks keeps it on record, and nobody's silence allows it."""
        self.is_kept, self.allows_on_timeout, self.timeout_s = True, False, timeout_s

    def tell(self, lines: tuple):
        """Say what is asked by *lines*, and not by the call."""
        self.told = lines

    def begin(self, number: int, now_ms: int):
        """It waits from now on."""
        self.number, self.since_ms = number, now_ms
        self.due_ms = now_ms + self.timeout_s * 1000

    def note_answer(self, how: str, by: str):
        self.how, self.by = how or self.how, by or self.by


def wait(agent, task, approval, now_ms: int):
    """Let *task* wait for a person.  The key of a call without a request_id is its task's number,
    which the shell makes unique.
    """
    # the last ones that ended are among these, so no number comes twice
    numbers = [one[_NUMBER] for one in agent.over] + [one.approval.number for one in agent.waiting]
    approval.begin(max(numbers) + 1 if numbers else agent.setup.first_question, now_ms)
    task.approval = approval
    agent.waiting.append(task)
    if approval.form or approval.is_kept:  # the question of a call that runs already
        return
    if task.once:
        task.once.waits = True
    agent.effects.append(
        (KEEP, 0, WAIT, _key(task), [approval.tool.name, approval.arguments, _rule_id(approval)])
    )


def forget(agent, task, now_ms: int):
    """Stop waiting for the approval of *task*.  This is put on record, unless the call has a
    request_id: then its next record says that it began or has ended.
    """
    approval = task.approval
    agent.waiting.remove(task)
    if task.due_ms is not None:
        task.due_ms += now_ms - approval.since_ms
    task.approval = None
    agent.over.append((approval.number, approval.how, approval.by, now_ms))
    if len(agent.over) > _MOST_OVER:
        agent.over.remove(min(agent.over))
    if not task.once and not approval.form and not approval.is_kept:
        agent.effects.append((KEEP, 0, GONE, _key(task), None))


def report_restart(agent, records, says: bool):
    """Report, once, the approvals that were waiting when the last process ended.

    records  [(key, [tool, arguments, id of the rule]), ...]
    says     whether a person reads a console; the log gets the report in any case
    """
    for key, waited in records:
        if not (isinstance(waited, list) and len(waited) == 3 and isinstance(waited[0], str)):
            waited = ["?", None, None]  # its CRC is right, but that protects from no hand
        tool, arguments, rule_id = waited
        if not isinstance(arguments, dict):
            arguments = None
        agent.effects.append(
            (
                LOG,
                {
                    "event": "tool.approval",
                    "tool": tool,
                    "arguments": arguments,
                    "rule_id": rule_id,
                    "answer": "restart",
                },
            )
        )
        if says:
            from clawlite.core.base.printable import escape_name
            from clawlite.core.base.render import call_text

            called = (
                escape_name(tool) + "(...)" if arguments is None else call_text(tool, arguments)
            )
            agent.effects.append(
                (TELL, "%s waited for approval when this agent ended: it was not run." % called)
            )
        agent.effects.append((KEEP, 0, GONE, key, None))


def end(approval, how: str, reason: str) -> tuple:
    """Return (the log event, the error of a call that must not run, or None)."""
    error = None
    approval.note_answer(how, "")
    if approval.form:
        return approval.form.event(event(approval, how)), None
    if how == "denied":
        error = make_denial(approval, reason)
    elif how == "expired" and not approval.allows_on_timeout:
        error = make_timeout_error(approval)
    return event(approval, how), error


def event(approval, how: str) -> dict:
    """Return the log event.

    approval  ``Approval``
    how       "approved", "denied" or "expired"
    """
    told = {
        "event": "tool.approval",
        "tool": approval.tool.name,
        "arguments": approval.arguments,
        "rule_id": _rule_id(approval),
        "answer": how,
    }
    if approval.by:
        told["by"] = approval.by
    return told


def make_denial(approval, reason: str):
    """Return the error of a call that somebody refused; *reason* may be empty."""
    return ApprovalDenied(
        "%s: not approved%s" % (approval.tool.name, ": " + reason if reason else ""),
        "",
        _about(approval),
    )


def make_timeout_error(approval):
    """Return the error of a call that nobody approved in time."""
    return ApprovalTimeout(
        "%s: nobody approved it within %d s" % (approval.tool.name, approval.timeout_s),
        "call it again while somebody is there to approve it",
        _about(approval),
    )


def rest_s(approval, now_ms: int) -> int:
    """Return the seconds that are left to answer, rounded up."""
    return max(0, approval.due_ms - now_ms + 999) // 1000


def question(approval, now_ms: int, by="/show") -> str:
    """Return the question that a person is asked: a text whose lines are all this agent's.

    by  the command that shows all of a call that is longer than a screen; None: there is none, so
        the question has all of it
    """
    if approval.form:
        return approval.form.text(rest_s(approval, now_ms), by)
    from clawlite.core.base.printable import escape_line, escape_name, join_lines
    from clawlite.core.base.render import call_text

    why = reason(approval)
    if approval.asker:  # a stranger may have chosen this name
        why += "; %s asked for it" % escape_name(approval.asker)
    asked = approval.told or (
        "Approve %s?" % call_text(approval.tool.name, approval.arguments, by),
    )
    return join_lines(
        list(asked)
        + [
            "  " + escape_line(why),
            "  (%d s, then %s)"
            % (rest_s(approval, now_ms), "allowed" if approval.allows_on_timeout else "denied"),
        ]
    )


def reason(approval) -> str:
    """Return why *approval* is asked for."""
    rule = approval.rule
    if rule:
        why = "rule %s asks first%s" % (
            rule[RULE_ID],
            ": " + rule[RULE_REASON] if rule[RULE_REASON] else "",
        )
    elif approval.tool.flags & ASKS:
        why = "its skill asks first (permissions.approval_required)"
    elif approval.seen and approval.seen[_ASKS]:
        why = approval.seen[_FORESEEN]
    else:
        why = "this agent is supervised and the tool has side effects"
    if approval.seen and why != approval.seen[_FORESEEN]:
        why += "; " + approval.seen[_FORESEEN]
    return why


def _key(task) -> str:
    return task.once.id if task.once else str(task.number)


def _about(approval) -> dict:
    return {"tool": approval.tool.name, "rule_id": _rule_id(approval)}


def _rule_id(approval):
    return approval.rule[RULE_ID] if approval.rule else None
