"""The agent: tasks, approvals and the lifecycle, without I/O.

A task is a generator (a turn, or one tool call) together with whoever waits for its end.  The agent
drives it from effect to effect.  An effect that needs the outside world goes to the shell's queue
(core/base/effect.py); one that needs a person waits as an approval.

    shell                                   agent
    start(now)                              INIT -> STARTING -> READY
    next_effect() ... done(task, outcome)   until the queue is empty
    tick(now) when deadline() has come      approvals run out, a drain ends, heartbeats
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.effect import (
    APPROVE,
    ASK,
    CANCEL,
    CLOSE,
    ENDED,
    IS_OK,
    JOIN,
    KEEP,
    KIND,
    LOG,
    OPEN,
    RECEIVE,
    RECORD,
    REMEMBER,
    RESOLVE,
    RESUME,
    RUN,
    RUN_SKILL,
    SAY,
    SECRET,
    SLEEP,
    STORE,
    VALUE,
    WRITE,
)
from clawlite.core.base.errors import (
    ClawError,
    InvalidRequest,
    ProviderError,
    ToolTimeout,
    wrap_error,
)
from clawlite.core.agent.lifecycle import READY, Lifecycle
from clawlite.core.agent.task import Task

# positions in the effects that tasks yield (core/base/effect.py)
_EVENT = const(1)  # LOG
_TOOL = const(1)  # RUN
_ARGUMENTS = const(2)
_APPROVAL = const(1)  # APPROVE
_NUMBERS = const(1)  # JOIN
_MS = const(1)  # RECEIVE, SLEEP
_CALL = const(-1)  # no error, and no kind of an effect, as RECEIVE is


class Agent:
    """One agent.

    setup      ``agent_setup.Setup``; its ``image`` is the agent's
    max_tasks  int, how many turns and calls may be under way at once

    on_wait    list of functions(task, now_ms), which who wants to know adds: another approval waits
               first now; task is None when none does
    commands   list of functions(words) of more console commands, likewise: each returns lines, None
               for a command of others; to /help what it adds there
    calls      list of the last 8 (tool.call event, how its approval was answered); None until
               somebody asks for it (``keep_calls``)
    """

    has_spoken = False  # a turn has said something since the console put its question, or ever

    def __init__(self, setup, now_ms: int, max_tasks: int = 64):
        self.setup = setup
        self.image = setup.image
        self.effects = []
        self.emit = setup.emit or self.effects.append
        self._run_tool = setup.run_tool
        self.later = setup.later
        self.tasks = {}
        self.lifecycle = Lifecycle(self, now_ms)
        self.waiting = []  # tasks with an approval, in the order in which they asked
        self.over = []  # (number, how, by, at_ms) of the approvals that ended last
        self.on_wait = []
        self.commands = []
        self.calls = None
        self.idempotency = None  # idempotency.Idempotency, from the operator's first tool call on
        self.max_tasks = max_tasks
        self._last = 0
        self.providers = None  # ``ProviderOrder``, once it is asked for

    def chain(self):
        """Return the ``ProviderOrder`` of this agent, made when it is first asked for."""
        if self.providers is None:
            if self.setup.prepare:
                self.setup.prepare()
            from clawlite.core.providers.provider_order import ProviderOrder

            self.providers = ProviderOrder(self.setup)
        return self.providers

    def requests(self, now_ms: int):
        """Return the ``Idempotency`` of this agent, made when it is first asked for."""
        if self.idempotency is None:
            from clawlite.core.idempotency.idempotency import Idempotency, nothing

            self.idempotency = Idempotency(self.setup.kept or nothing, now_ms)
        self.idempotency.now_ms = now_ms
        return self.idempotency

    def keep_calls(self):
        """Keep the last calls from now on, for who shows them."""
        self.calls = []

    def put_question(self):
        """A person is asked now: what a turn says from now on comes after the question."""
        self.has_spoken = False

    # -- lifecycle

    def start(self, now_ms: int):
        """Go to READY from INIT or STOPPED."""
        self.lifecycle.start(now_ms)

    def stop(self, timeout_ms: int, stopped, now_ms: int):
        """Take no more work, drain what is under way for at most *timeout_ms*, then call
        ``stopped(drained, now_ms)``.
        """
        self.lifecycle.stop(timeout_ms, stopped, now_ms)

    @property
    def is_ready(self) -> bool:
        return self.lifecycle.state == READY

    def begin(self, generator, ended, now_ms: int, budget_ms=None, once=None, chain=None) -> int:
        """Start a task; return its number.

        budget_ms  the task is ended after so long; time in which it waits for a person does not
                   count
        chain      ``ProviderOrder`` that handlers and composite tools of the task ask [the agent's]
        Raises ``InvalidRequest`` when too many are under way.
        """
        if len(self.tasks) >= self.max_tasks:
            self.catch_up(now_ms)  # some may end at once
        if len(self.tasks) >= self.max_tasks:
            generator.close()
            raise InvalidRequest(
                "%d calls are under way already" % self.max_tasks, "wait for one to end"
            )
        self._last = number = self._last + 1
        task = self.tasks[number] = Task(number, generator, ended, once)
        if chain:
            task.chain = chain
        if budget_ms is not None:
            task.due_ms, task.budget_ms = now_ms + budget_ms, budget_ms
        if self.later is None:
            self.drive(task, None, None, now_ms)
        else:
            self.later.append((task, None, None))
        return number

    def complete(self, number: int, outcome: tuple, now_ms: int):
        """Hand in the outcome of a RUN or RESOLVE effect; one for a task that was cancelled is
        dropped.
        """
        if self.setup.hears_done:
            self.setup.hears_done(number, outcome)
        task = self.tasks.get(number)
        if task is not None:
            # its handler was ended while a provider was asked for it
            if task.child and not outcome[IS_OK]:
                child, task.child = task.child, None
                self.cancel(child, outcome[VALUE], now_ms)
                outcome = ENDED, outcome
            is_asked = task.approval is not None
            if is_asked:  # likewise a person
                self._forget(task, now_ms)
                outcome = ENDED, outcome
            self._advance(task, outcome, None, now_ms)
            if is_asked:
                self._ask(now_ms)

    def receive(self, number: int, outcome: tuple, now_ms: int):
        """Hand in what the connection of a task received; dropped when the task does not wait
        for it any more.
        """
        task = self.tasks.get(number)
        if task is not None and task.receives:
            if self.later is None:
                self._advance(task, outcome, None, now_ms)
            # still receives: more may come before the loop carries it on
            else:
                task.wake_ms = None
                self.later.append((task, outcome, RECEIVE))

    def cancel(self, number: int, error, now_ms: int):
        """End a task with *error*, whatever it waits for; its handler is ended too."""
        task = self.tasks.get(number)
        if task is not None:
            child, task.child = task.child, None
            if child is not None:
                self.cancel(child, error, now_ms)
            task.close()
            self.effects.append((CANCEL, number))
            meter = self.setup.meter
            if meter is not None and meter.owed:
                self.effects.append((STORE, number, meter.take_owed()))
            self.effects.append(
                (LOG, {"event": "task.cancelled", "tool": task.tool, "reason": error.message})
            )
            self._end(task, None, error, now_ms)

    def _advance(self, task, value, error, now_ms: int):
        if task.wake_ms is not None or task.tool is not None:
            task.tool = task.wake_ms = None
            task.receives = False
        if self.later is not None:
            self.later.append((task, value, error))
        else:
            self.drive(task, value, error, now_ms)

    def catch_up(self, now_ms: int):
        """Carry on now what was left to the shell's loop."""
        while self.later:
            task, value, error = self.later.pop(0)
            self.drive(task, value, error, now_ms)

    def call_after_catch_up(self, function):
        """Call *function* when what was left to the shell's loop until now has been carried on:
        there, and not from here.
        """
        if self.later:
            self.later.append((function, None, _CALL))
        else:
            function()

    def drive(self, task, value, error, now_ms: int):
        """Hand *value* or *error* to *task*, and carry it on to what it waits for next; nothing,
        when it has been ended.  A function of ``call_after_catch_up`` is called.
        """
        if error == _CALL:
            task()
            return
        if task.number not in self.tasks or error == RECEIVE and not task.receives:
            return
        if error == RECEIVE:
            task.receives, task.wake_ms, error = False, None, None
        try:
            while True:
                try:
                    effect = task.generator.throw(error) if error else task.generator.send(value)
                    value = error = None
                except BaseException as e:
                    value, error = (e.value, None) if isinstance(e, StopIteration) else (None, e)
                    if not task.outer:
                        if error:
                            raise
                        break
                    task.generator = task.outer.pop()
                    continue
                # a board's: what is ``yield from`` elsewhere (host/firmware/firmware.py)
                if type(effect) is not tuple:
                    task.outer = task.outer or []
                    task.outer.append(task.generator)
                    task.generator = effect
                    continue
                kind = effect[KIND]
                if kind == LOG:
                    if effect[_EVENT]["event"] == "tool.call":
                        self._note_call(task, effect[_EVENT], now_ms)
                    self.emit(effect)
                    continue
                if kind == RUN:
                    task.tool = task.began = effect[_TOOL].name
                    run = (
                        task.number,
                        effect[_TOOL],
                        effect[_ARGUMENTS],
                        now_ms + effect[_TOOL].timeout_ms if effect[_TOOL].timeout_ms else None,
                    )
                    if task.ran_ms is None:
                        task.ran_ms = now_ms
                    if self._run_tool is None or self.effects:  # what was before it comes first
                        self.effects.append((RUN,) + run)
                        return
                    value, now_ms = self._run_tool(*run)
                    if value is None:
                        return
                    task.tool = None
                    continue
                if kind == APPROVE:
                    from clawlite.core.policy.approval import wait

                    wait(self, task, effect[_APPROVAL], now_ms)
                    return self._ask(now_ms)
                if kind == RECEIVE or kind == SLEEP or kind == JOIN:
                    return _rest(task, effect, now_ms)
                if kind == ASK or kind == RUN_SKILL:
                    from clawlite.core.agent.child import begin

                    return begin(self, task, effect, now_ms)
                if kind in (RESOLVE, RESUME, SECRET, STORE, KEEP, REMEMBER, RECORD, OPEN, CLOSE):
                    effect = (kind, task.number) + effect[1:]
                elif kind == SAY or kind == WRITE:
                    self.has_spoken = True
                self.effects.append(effect)
                if kind in (RESOLVE, RESUME, SECRET, STORE, KEEP, REMEMBER, RECORD):
                    return
        except Exception as e:
            return self._end(task, None, e if isinstance(e, ClawError) else wrap_error(e), now_ms)
        self._end(task, value, None, now_ms)

    def _note_call(self, task, event: dict, now_ms: int):
        """Add to the *event* of a call that has ended how long it took, and keep it where a
        console asks for the last ones.
        """
        if task.ran_ms is not None:
            event["duration_ms"] = now_ms - task.ran_ms
            task.ran_ms = None
        if self.calls is not None:
            self.calls = self.calls[-7:] + [(event, task.answer)]
            task.answer = None

    def _end(self, task, value, error, now_ms: int):
        if task.number in self.tasks:
            if task.approval is not None:
                self._forget(task, now_ms)
            del self.tasks[task.number]
            try:
                task.ended(value, error, now_ms)
            except MemoryError:  # tried again when there is room
                self.tasks[task.number] = task
                raise
            self.lifecycle.drain(now_ms)
            if self.on_wait:
                self._ask(now_ms)

    # -- approvals

    def _ask(self, now_ms: int):
        for put in self.on_wait:
            put(self.waiting[0] if self.waiting else None, now_ms)

    def _forget(self, task, now_ms: int):
        if task.approval is not None:
            from clawlite.core.policy.approval import forget

            forget(self, task, now_ms)

    def answer(self, task, approved: bool, reason: str, now_ms: int, by: str = ""):
        """Answer the approval of *task*: it runs, or ends with ``ApprovalDenied`` (-32013).

        by  who answers, for the log and for the others who were asked
        """
        if by:
            task.approval.note_answer("", by)
        self._end_approval(task, "approved" if approved else "denied", reason, now_ms)

    def _end_approval(self, task, how: str, reason: str, now_ms: int):
        from clawlite.core.policy import approval as ending

        approval = task.approval
        # This comes first because it may fail: a board may have to load a file for it.  Then the
        # approval is not used up, and the call still waits.
        event, error = ending.end(approval, how, reason)
        self._forget(task, now_ms)
        if approval.form is None:
            task.answer = how
        self.effects.append((LOG, event))
        self._advance(task, how, error, now_ms)
        self._ask(now_ms)

    def tick(self, now_ms: int):
        """Do what is due at *now_ms*."""
        due_ms = self.deadline()
        if due_ms is not None and now_ms >= due_ms:
            self._end_timed_out(now_ms)

    def _end_timed_out(self, now_ms: int):
        for task in list(self.waiting):
            if task.approval is not None and now_ms >= task.approval.due_ms:
                self._end_approval(task, "expired", "", now_ms)
        for number in sorted(self.tasks):
            task = self.tasks.get(number)
            if (
                task is not None
                and task.due_ms is not None
                and task.approval is None
                and now_ms >= task.due_ms
            ):
                hint = "ask for less at once"
                if task.receives:  # five words may start an answer without end
                    hint = (
                        "the model did not come to an end; use another, or a lower "
                        "tokens_per_request"
                    )
                most = task.budget_ms
                limit = "total_timeout_ms" if most == self.image.agent.turn_ms else "timeout_ms"
                error = ToolTimeout(
                    "the turn ran out of time (%s: %d)" % (limit, most),
                    hint,
                    {limit: most},
                )
                self.cancel(number, error, now_ms)
            elif task is not None and task.wake_ms is not None and now_ms >= task.wake_ms:
                outcome = True, None
                if task.receives:
                    outcome = False, ProviderError("it said nothing for %d s" % task.silence_s)
                self._advance(task, outcome, None, now_ms)
        self.lifecycle.tick(now_ms)

    def deadline(self):
        """Return the monotonic time of the next ``tick`` that matters, or None."""
        first = self.lifecycle.deadline()
        for task in self.waiting:
            if first is None or task.approval.due_ms < first:
                first = task.approval.due_ms
        for number in self.tasks:
            task = self.tasks[number]
            for at in (task.wake_ms, task.due_ms if task.approval is None else None):
                if at is not None and (first is None or at < first):
                    first = at
        return first

    def next_effect(self):
        """Return the oldest effect that the shell has not taken, or None."""
        return self.effects.pop(0) if self.effects else None


def _rest(task, effect: tuple, now_ms: int):
    """Let *task* wait for bytes, for a time or for another task."""
    if effect[KIND] == JOIN:
        effect[_NUMBERS].append(task.number)
    else:
        task.receives = effect[KIND] == RECEIVE
        task.wake_ms = now_ms + effect[_MS]
        task.silence_s = effect[_MS] // 1000
