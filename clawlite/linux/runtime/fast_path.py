"""The fast path of an operator's requests: while no effect waits, a request runs at once, without
the queue of effects and without the framer.

1. It decides nothing.  All handlers, for every kind of caller, are started by
   ``FastPath.start``.
2. When effects wait already, a new request joins the queue, so that the order is kept.
3. All lines of a read are split at once.  A read with a carriage return or a record separator
   (RFC 7464) goes to the framer as a whole.
"""

from clawlite.core.base.effect import KEEP, KIND, LOG
from clawlite.linux.io import signals
from clawlite.linux.io.jsontext import answer
from clawlite.linux.io.stdio import now_ms

_LF, _CR, _RECORD_SEPARATOR = 10, 13, 30


class FastPath:
    """The fast path of one shell.

    shell  ``shell.Shell``
    """

    def __init__(self, shell):
        self._shell = shell
        self._effects = shell.agent.effects
        self._leave = shell.leave
        self._now_ms = now_ms()  # the time of the last read, or of the last handler's end
        self.starts = 0  # the task whose handler begins
        self._open = True  # the framer may hold a line without its end

    def feed(self, data: bytes):
        """Handle the records in *data* one after the other, each with all of its effects."""
        shell, start = self._shell, 0
        if _CR in data or _RECORD_SEPARATOR in data:
            start = len(data)
        elif self._open:
            start = data.find(b"\n") + 1 or len(data)
        self._open = data[-1] != _LF
        self._now_ms = now_ms()
        if start:
            shell.framer.feed(data[:start])
            shell.take()
        lines = data[start:].split(b"\n")
        effects, record = self._effects, shell.session.record
        for at in range(len(lines) - 1):
            if shell.code is not None:
                shell.framer.feed(b"\n".join(lines[at:]))  # for the next session on this line
                return
            if lines[at] and (lines[at][-1] > 32 or lines[at].strip(b" \t")):
                record(lines[at], self._now_ms)
                if effects:
                    shell.settle()
        if lines[-1]:
            shell.framer.feed(lines[-1])
            if shell.code is None:
                shell.framer.next_event()

    def emit(self, effect: tuple):
        """Carry out a LOG, a SEND, or a KEEP without a task that waits for it."""
        if self._effects:
            self._effects.append(effect)
        elif effect[KIND] == LOG:
            self._shell.log_event(effect)
        elif effect[KIND] == KEEP:
            self._shell.persistence.carry_out(effect)
        else:
            self._shell.send(effect)

    def answer(self, id, result) -> bool:
        """Answer a tool call with its ``effect.Result``.  Return False when other effects come
        first, or when its record cannot be written: ``Startup.flush_answer`` makes the error.
        """
        audit = self._shell.audit
        if self._effects or audit and not audit.flush():
            return False
        self._shell.wire.write(self._shell.framer.send(answer(id, result).encode()))
        return True

    def start(self, task: int, tool, arguments: dict, due_ms) -> tuple:
        """Start a tool's handler.  Return (its outcome, or None when it goes on; the monotonic
        time, ms).

        task    number of the agent's task, 0 for a request that runs at once
        due_ms  monotonic time at which it is ended, or None
        """
        shell, state = self._shell, signals.state
        # a turn may call its next tool before the loop sees the signal
        if state["terminated"] or shell.ending:
            from clawlite.core.idempotency.idempotency import not_run

            self._now_ms = now_ms()
            return (False, not_run("the agent is ending", "send it to the next one")), self._now_ms
        signals.enter(self._leave)  # as in signals.interruptible
        try:
            self.starts = task  # for the tool ``delegate``
            outcome = shell.handlers.start(task, tool, arguments, due_ms, now_ms())
        finally:
            state["inside"] = False
            if state["armed"] or state["told"]:
                signals.calm()
        if state["interrupts"]:
            shell.check_interrupt()
        self._now_ms = now_ms()
        return outcome, self._now_ms
