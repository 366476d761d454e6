"""Who is asked for the approvals that wait, and who is told how they ended.

1. A call that waits is put to the admins of every channel, whoever or whatever asked for it;
   ``[approvals] to`` narrows that to some channels.  The console shows every question by itself.
2. A form of an MCP server asks the person whose turn it belongs to, and nobody else.
3. The first answer counts.  The others who were asked are told whose it was.
4. When half of the time is over, the question is put once more.
"""

from clawlite.core.base.printable import escape_ends
from clawlite.linux.approvals.notify import Notify
from clawlite.protocols.image.features import read_approvals

_REMINDED_FROM_S = 20  # a shorter wait needs no reminder


class Question:
    """An approval that was put to people.

    put  names of the channels in which it was put
    """

    def __init__(self, approval):
        self.approval = approval
        self.put: list = []
        self.is_reminded = self.approval.timeout_s < _REMINDED_FROM_S

    def reminder_ms(self) -> int:
        """Return the monotonic time at which it is put once more."""
        return (self.approval.since_ms + self.approval.due_ms) // 2


class Approvers:
    """The approvals of one agent.

    agent     ``agent.Agent``
    channels  ``channels.Channels``
    to        names of the channels that are asked, or None for all
    notify    ``notify.Notify``, or None
    """

    def __init__(self, agent, channels, to, notify=None):
        self._agent, self._channels, self._to, self._notify = agent, channels, to, notify
        self._asked: dict = {}  # id of an approval -> Question

    def update(self, now_ms: int):
        """Put each new question, repeat those whose half time has come, and say how those have
        ended that wait no more.
        """
        if self._notify is not None:
            self._notify.report()
        if not self._asked and not self._agent.waiting:
            return
        asked, self._asked = self._asked, {}
        for task in self._agent.waiting:
            known = asked.pop(id(task.approval), None)
            question = known or Question(task.approval)
            self._put(question, task, now_ms)
            if known is None:
                self._announce(task)
            self._asked[id(task.approval)] = question
        for question in asked.values():
            self._say_end(question)

    def deadline(self):
        """Return the monotonic time of the next reminder, or None."""
        return min(
            [one.reminder_ms() for one in self._asked.values() if not one.is_reminded],
            default=None,
        )

    def close(self):
        if self._notify is not None:
            self._notify.close()

    def channels_of(self, task) -> list:
        """Return the channels whose admins answer the approval of *task*."""
        remote = self._channels.remote()
        run = self._channels.runs.get(task.number)
        if task.approval.form:
            return [] if run is None else remote if run[0] is None else [run[0]]
        return [one for one in remote if self._to is None or one.name in self._to]

    def _put(self, question: Question, task, now_ms: int):
        """Put a question in each channel that is open, and once more when its half time comes."""
        reminds = not question.is_reminded and now_ms >= question.reminder_ms()
        question.is_reminded = question.is_reminded or reminds
        for channel in self.channels_of(task):
            if channel.is_open and (reminds or channel.name not in question.put):
                first = "Reminder. " if channel.name in question.put else ""
                channel.put_question(task, self._channels.job_in(channel, task), first)
                question.put.append(channel.name)

    def _announce(self, task):
        own, _, job = self._channels.runs.get(task.number, (None, None, None))
        if own is not None:
            own.tell_waits(job)
        if self._notify is not None and not task.approval.form:
            self._notify.tell(task.approval)

    def _say_end(self, question: Question):
        approval = question.approval
        for channel in self._channels.remote():
            if channel.name not in question.put:
                continue
            if not approval.form:
                from clawlite.core.protocol.channel_answers import end_text

                channel.end_question(approval, end_text(approval))
            elif not approval.form.is_decided:
                channel.tell_admins(escape_ends(approval.form.end_notice))


def approvers_of(image, channels) -> Approvers:
    """Return the ``Approvers`` of an agent's *channels*, as its image narrows it."""
    to, notify, _ = read_approvals(image)
    return Approvers(channels.agent, channels, to, notify and Notify(channels.agent, notify))
