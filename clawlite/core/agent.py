"""The agent: tasks, approvals and the lifecycle, without I/O.

A task is a generator (a turn, or one tool call) and whoever waits for its end.  The agent drives it from effect to
effect; what needs the world goes to the shell's queue (core/effect.py), what needs a person waits as an approval.

    shell                                   agent
    start(now)                              INIT -> STARTING -> READY
    next_effect() ... done(task, outcome)   until the queue is empty
    tick(now) when deadline() has come      approvals run out, a drain ends, heartbeats
"""
from clawlite.core import lifecycle
from clawlite.core.effect import APPROVE, ASK, CANCEL, LOG, RESOLVE, RUN
from clawlite.core.errors import ApprovalDenied, ApprovalTimeout, ClawError, InternalError, InvalidRequest, ProviderError
from clawlite.core.image import REFLEX, REPLAY

USE_REFLEX, USE_REPLAY = 0, 1   # entries of ``agent.providers`` in the image


class Task:
    """One generator under way.

    ended     function(value, error, now_ms), called once at its end
    approval  what it waits for, or None
    tool      name of the tool whose handler runs, or None
    """

    def __init__(self, number: int, generator, ended):
        self.number = number
        self.generator = generator
        self.ended = ended
        self.approval = None
        self.tool = None


class Agent:
    """One agent.

    image      ``image.Image``
    max_tasks  int, how many turns and calls may be under way at once
    """

    def __init__(self, image, now_ms: int, max_tasks: int = 64):
        self.image = image
        self.lifecycle = lifecycle.Lifecycle(now_ms)
        self.effects = []
        self.tasks = {}
        self.waiting = []       # tasks with an approval, in the order in which they asked
        self.on_wait = None     # function(task): a console that shows approvals
        self._max_tasks = max_tasks
        self._last = 0
        self._providers = None
        self._drain = None      # [due_ms, function(drained, now_ms)]

    # -- lifecycle

    def start(self, now_ms: int):
        """Go to READY from INIT or STOPPED."""
        self._to(lifecycle.STARTING, now_ms)
        self._to(lifecycle.READY, now_ms)

    def stop(self, timeout_ms: int, stopped, now_ms: int):
        """Take no more work, drain what is under way for at most *timeout_ms*, then call ``stopped(drained, now_ms)``."""
        self._to(lifecycle.STOPPING, now_ms)
        self._drain = [now_ms + timeout_ms, stopped]
        self._drained(now_ms)

    @property
    def is_ready(self) -> bool:
        return self.lifecycle.state == lifecycle.READY

    def _to(self, state: str, now_ms: int):
        old, new, spent = self.lifecycle.to(state, now_ms)
        self.effects.append((LOG, {"event": "lifecycle.transition", "agent": self.image.agent.name,
                                   "from": old, "to": new, "duration_ms": spent}))

    def _drained(self, now_ms: int):
        if self._drain and (not self.tasks or now_ms >= self._drain[0]):
            stopped = self._drain[1]
            drained = not self.tasks
            self._drain = None
            for number in sorted(self.tasks):
                self.cancel(number, InvalidRequest("the agent stopped before this call ended"), now_ms)
            self._to(lifecycle.STOPPED, now_ms)
            stopped(drained, now_ms)

    # -- tasks

    def begin(self, generator, ended, now_ms: int) -> int:
        """Start a task; return its number.  Raises ``InvalidRequest`` when too many are under way."""
        if len(self.tasks) >= self._max_tasks:
            generator.close()
            raise InvalidRequest("%d calls are under way already" % self._max_tasks, "wait for one to end")
        self._last += 1
        task = Task(self._last, generator, ended)
        self.tasks[task.number] = task
        self._advance(task, None, None, now_ms)
        return task.number

    def done(self, number: int, outcome: tuple, now_ms: int):
        """Hand in the outcome of a RUN or RESOLVE effect; one for a task that was cancelled is dropped."""
        task = self.tasks.get(number)
        if task is not None:
            self._advance(task, outcome, None, now_ms)

    def cancel(self, number: int, error, now_ms: int):
        """End a task with *error*, whatever it waits for; its handler is ended too."""
        task = self.tasks.get(number)
        if task is not None:
            task.generator.close()
            self.effects.append((CANCEL, number))
            self.effects.append((LOG, {"event": "task.cancelled", "tool": task.tool, "reason": error.message}))
            self._end(task, None, error, now_ms)

    def _advance(self, task, value, error, now_ms: int):
        task.tool = None
        try:
            while True:
                effect = task.generator.throw(error) if error else task.generator.send(value)
                value, error = None, None
                kind = effect[0]
                if kind == ASK:
                    try:
                        value = self._ask(effect[1])
                    except ClawError as e:
                        error = e
                elif kind == APPROVE:
                    self._wait(task, effect[1], now_ms)
                    return
                elif kind == RUN:
                    timeout = effect[1].timeout_ms
                    task.tool = effect[1].name
                    self.effects.append((RUN, task.number, effect[1], effect[2], now_ms + timeout if timeout else None))
                    return
                elif kind == RESOLVE:
                    self.effects.append((RESOLVE, task.number, effect[1]))
                    return
                else:
                    self.effects.append(effect)
        except StopIteration as e:
            self._end(task, e.value, None, now_ms)
        except ClawError as e:
            self._end(task, None, e, now_ms)
        except Exception as e:
            self._end(task, None, InternalError("%s: %s" % (type(e).__name__, e), "this is a bug in clawlite"), now_ms)

    def _end(self, task, value, error, now_ms: int):
        if self.tasks.pop(task.number, None) is not None:
            self._forget(task)
            task.ended(value, error, now_ms)
            self._drained(now_ms)

    def _ask(self, messages: list):
        """Return the first reply of the providers in their order; none left is a ``ProviderError`` (-32020)."""
        if self._providers is None:
            self._providers = [_provider(kind, self.image) for kind in self.image.agent.providers]
        why = []
        for provider in self._providers:
            try:
                return provider.reply(messages)
            except ProviderError as e:
                why.append(e.message)
        raise ProviderError("no provider left: " + "; ".join(why))

    # -- approvals

    def _wait(self, task, approval, now_ms: int):
        approval.due_ms = now_ms + approval.timeout_s * 1000
        task.approval = approval
        self.waiting.append(task)
        if self.on_wait:
            self.on_wait(task, now_ms)

    def _forget(self, task):
        if task.approval is not None:
            self.waiting.remove(task)
            task.approval = None

    def answer(self, task, approved: bool, reason: str, now_ms: int):
        """Answer the approval of *task*: it runs, or ends with ``ApprovalDenied`` (-32013)."""
        approval = task.approval
        self._forget(task)
        self._log_answer(approval, "approved" if approved else "denied")
        if approved:
            self._advance(task, None, None, now_ms)
        else:
            self._advance(task, None, ApprovalDenied("%s: not approved%s" % (approval.tool.name, ": " + reason if reason else ""), "",
                                                     _about(approval)), now_ms)

    def _expire(self, task, now_ms: int):
        approval = task.approval
        self._forget(task)
        self._log_answer(approval, "expired")
        error = None
        if not approval.allow:
            error = ApprovalTimeout("%s: nobody approved it within %d s" % (approval.tool.name, approval.timeout_s), "",
                                    _about(approval))
        self._advance(task, None, error, now_ms)

    def _log_answer(self, approval, how: str):
        self.effects.append((LOG, {"event": "tool.approval", "tool": approval.tool.name, "arguments": approval.arguments,
                                   "rule_id": approval.rule[0] if approval.rule else None, "answer": how}))

    # -- time and the queue

    def tick(self, now_ms: int):
        """Do what time asks for."""
        for task in list(self.waiting):
            if task.approval is not None and now_ms >= task.approval.due_ms:
                self._expire(task, now_ms)
        self._drained(now_ms)

    def deadline(self):
        """Return the monotonic time of the next ``tick`` that matters, or None."""
        first = self._drain[0] if self._drain else None
        for task in self.waiting:
            if first is None or task.approval.due_ms < first:
                first = task.approval.due_ms
        return first

    def next_effect(self):
        """Return the oldest effect that the shell has not taken, or None."""
        return self.effects.pop(0) if self.effects else None


def _about(approval) -> dict:
    return {"tool": approval.tool.name, "rule_id": approval.rule[0] if approval.rule else None}


def _provider(kind: int, image):
    if kind == USE_REFLEX:
        from clawlite.core.reflex import Reflex
        return Reflex(image.section(REFLEX) or [])
    from clawlite.core.replay import Replay
    return Replay(image.section(REPLAY))
