"""The tasks of one agent: they lie in a file of its state folder, and each is a turn.

It is a swarm of one member (linux/swarm), whose bus keeps what was acknowledged: a task whose
process was killed begins again, and not once a tool with side effects has begun.

One process of the agent does them, and all of them: whoever gave a task is told by its own process
what became of it, and answers it there.
"""

import os

from clawlite.core.base.effect import APPROVAL, APPROVE, KIND, LOG, RUN
from clawlite.core.base.errors import ClawError, StoreError
from clawlite.core.policy.approval import question
from clawlite.core.turns.history import History
from clawlite.core.turns.turn import Message
from clawlite.core.turns.turn_output import TurnOutput
from clawlite.linux.files.files import mend
from clawlite.linux.files.process_lock import ProcessLock
from clawlite.linux.io.stdio import now_ms
from clawlite.linux.memory.memory import wall_ms
from clawlite.linux.swarm.bus import Bus
from clawlite.linux.swarm.member import Member
from clawlite.protocols.swarm.swarm import MERGE, PEER_TO_PEER, RUNNING, WAITING, Swarm

AT_ONCE = 4  # tasks under way at once in one process
RETRIES = 2  # of a task whose process was killed
CANCELED = "canceled"


class TaskRunner(Member):
    """What does the tasks of one agent in this process.

    lock      ``ProcessLock`` that this process has
    watched   set of ids of which somebody wants to hear
    on_state  function(id), on_text function(id, text): called for those
    """

    prefix, compares = "task", False
    sees = (RUN, LOG, APPROVE)

    def __init__(self, agent, folder: str, lock: ProcessLock, on_state, on_text):
        self._lock, self.on_state, self.on_text = lock, on_state, on_text
        self._asking = {}  # id of a task -> ``approval.Approval`` that its turn came to last
        self.watched = set()
        name = agent.image.agent.identity
        me = [name, "claw://local/identity/" + name, "agent", 1]
        swarm = ["tasks", 0, PEER_TO_PEER, [me], True, None, AT_ONCE, None, RETRIES, True]
        swarm = Swarm(swarm + [MERGE, False, None, None, None, None])
        bus = Bus(folder, wall_ms, os.urandom, None)  # no engine has to take them
        super().__init__(agent, swarm, folder, now_ms, wall_ms, os.urandom, bus)

    def close(self):
        super().close()
        self._lock.release()

    def state(self, task_id: str):
        """Return the state of a task as the bus has it; None of an unknown one."""
        return self._bus.state(task_id)

    def outcome(self, task_id: str):
        """Return what ``Bus.outcome`` has of a task that has ended, else None."""
        return self._bus.outcome(task_id)

    def caller(self, task_id: str):
        """Return in whose name a task was given; None of an unknown one."""
        return self._bus.sender(task_id)

    def page(self, states, before, most: int, caller=None) -> list:
        return self._bus.page(states, before, most, caller)

    def open_tasks(self, caller=None) -> int:
        """Return how many tasks wait or are under way, of *caller* or of all."""
        return self._bus.count((WAITING, RUNNING), caller)

    def cancel(self, task_id: str, reason: str):
        """End a task that has not ended.  Who asks for it hears so in the answer alone, also when
        it watches the task.
        """
        self._bus.report(task_id, CANCELED, {"error": reason}, None, None, "operator")
        self.watched.discard(task_id)

    def asking(self, task_id: str):
        """Return the ``approval.Approval`` that the turn of a task of this process waits for, or
        None.
        """
        asking = self._asking.get(task_id)
        if asking is None or not asking.due_ms:  # it is just being put
            return asking
        task = self._agent.tasks.get(self._runs.get(task_id))
        return asking if task is not None and task.approval is asking else None

    def answer(self, task_id: str, approved: bool, by: str):
        """Answer the approval that a task of this process waits for, in the name *by*.  Who answers
        hears in its own answer that the task goes on, not in a notification before it.
        """
        task = self._agent.tasks[self._runs[task_id]]
        del self._asking[task_id]  # it may ask again at once
        self._agent.answer(task, approved, "", self._now_ms(), by)

    def has(self, number: int) -> bool:
        """Return whether the agent's task *number* is the turn of a task of this process."""
        return number in self._runs.values()

    def question(self, task_id: str) -> str:
        """Return what the task waits for, in words for a person: all of a call that is to be
        approved.
        """
        asking = self._asking[task_id]
        guard = self._agent.setup.guard
        # one that is just being put has all its time
        text = question(asking, self._now_ms() if asking.due_ms else -asking.timeout_s * 1000, None)
        if asking.form is None:  # the same words each time: without the line with the seconds
            text = text.rpartition("\n")[0]
        if asking.form is not None and asking.form.how:
            text += "\n  Answer with%s, or deny" % asking.form.how
        else:
            text += "\n  Answer with approve or deny"
        return guard.text(text) if guard else text

    def put(self, task) -> bool:
        known = super().put(task)
        self._look_ms = 0
        return known

    def _output(self, task_id: str) -> TurnOutput:
        return _Watched(task_id, self)

    def _turn_of(self, taken, description: str, data) -> tuple:
        """Return (what the turn begins with, its ``History``): *data* are the messages before."""
        history = History(self._agent.setup.keep_bytes or sum(len(text) for _, text in data or ()))
        if data:
            history.restore([[Message(role, text)] for role, text in data])
        return description, history

    def _note_effect(self, task_id: str, effect: tuple):
        if effect[KIND] == APPROVE:
            self._asking[task_id] = effect[APPROVAL]
            self._on_change(task_id)
        elif self._asking.pop(task_id, None):
            self._on_change(task_id)

    def _report(self, task_id: str, *more):
        self._asking.pop(task_id, None)
        super()._report(task_id, *more)

    def _on_report(self, task_id: str):
        self._on_change(task_id)

    def _begin(self, taken):
        super()._begin(taken)
        if taken.id in self._runs:
            self._on_change(taken.id)

    def _on_change(self, task_id: str):
        if task_id in self.watched:
            self.on_state(task_id)


class _Watched(TurnOutput):
    """What a turn says, told as it comes to whoever watches its task; with a guard, which looks at
    whole texts, only at the end.
    """

    def __init__(self, task_id: str, runner: TaskRunner):
        super().__init__()
        self._id, self._runner = task_id, runner

    def keep(self, text: str):
        super().keep(text)
        runner = self._runner
        if self._id in runner.watched and not runner._agent.setup.guard:
            runner.on_text(self._id, text)


def runner_of(agent, folder: str, on_state, on_text) -> TaskRunner:
    """Return what does the tasks of *agent*, which lie in *folder*, here, with the clocks of this
    machine; *on_state*, *on_text*: as ``TaskRunner`` has them.

    Raises ``StoreError`` when another process does them, ``ClawError`` when the folder cannot be
    used.
    """
    lock = ProcessLock(folder)
    try:
        owner = lock.take()
    except OSError as e:
        raise ClawError("%s: %s" % (folder, e.strerror), mend(e)) from None
    if owner:
        raise StoreError(
            "%s does the tasks of %s" % (owner, agent.image.agent.name),
            "ask that one, or end it, and send this again",
        )
    try:
        return TaskRunner(agent, folder, lock, on_state, on_text)
    except ClawError:
        lock.release()
        raise
