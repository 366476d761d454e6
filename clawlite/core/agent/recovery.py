"""ERROR, and the ways out of it (CKP 0.2.0, section 8): bounded attempts with pauses, and a
breaker.

1. docs/adr/0013 lists what puts an agent into ERROR: its start fails, the loop of its shell meets
   an unexpected exception, or the log that its policies demand cannot be written.  A provider that
   cannot be reached is no such failure: the next one is asked.
2. No work goes on meanwhile: tasks are ended, handlers are closed, and callers get an error.
3. The fifth failure within ten minutes opens the circuit breaker: STOPPING, STOPPED, and the
   process ends with 1.

Loaded at the first failure.
"""

from clawlite.core.base.effect import EXIT
from clawlite.core.base.errors import ClawError, InternalError, InvalidRequest, wrap_error

# pauses after the first, second, ... failure within WINDOW_MS; after one more the process ends
PAUSES_MS = (1000, 2000, 4000, 8000)
WINDOW_MS = 600000
_ERROR = "ERROR"  # lifecycle.py loads this module, not the other way round


class Recovery:
    """The failures of the last WINDOW_MS.

    error   ``ClawError``, why the agent is in ERROR
    due_ms  monotonic time of the next attempt
    """

    def __init__(self, agent):
        self._agent = agent
        self._failed_at = []
        self.error = None
        self.due_ms = 0

    def count_failure(self, error, now_ms: int):
        """Go to ERROR; after too many failures go to STOPPED, and end the process."""
        life = self._agent.lifecycle
        self.error = error = error if isinstance(error, ClawError) else wrap_error(error)
        self._failed_at = [at for at in self._failed_at if now_ms - at < WINDOW_MS] + [now_ms]
        failures = len(self._failed_at)
        pause_ms = PAUSES_MS[failures - 1] if failures <= len(PAUSES_MS) else None
        life.to(
            _ERROR,
            now_ms,
            {"error": error.message, "failures": failures, "attempt_in_ms": pause_ms},
        )
        self._end_all(now_ms)
        if self._agent.setup.on_failure:
            self._agent.setup.on_failure(error, pause_ms)
        if pause_ms is None:
            life.stop(0, _ignore, now_ms)
            self._agent.effects.append((EXIT, 1))
        else:
            self.due_ms = now_ms + pause_ms

    def _end_all(self, now_ms: int):
        tasks = self._agent.tasks
        ended = InternalError(
            "the agent failed before this call ended: %s" % self.error.message,
            "when claw.status says READY, call again with a new id",
        )
        for number in sorted(tasks):
            try:
                self._agent.cancel(number, ended, now_ms)
            # the failure may be in ending a task; the task is forgotten even so
            except Exception:
                tasks.pop(number, None)

    def refusal(self, method: str, now_ms: int):
        """Return the error for a request that comes while the agent is in ERROR."""
        wait_ms = max(0, self.due_ms - now_ms)
        return InvalidRequest(
            "%s: the agent is %s: %s" % (method, _ERROR, self.error.message),
            self.error.hint or "ask claw.status, and send this again when it is READY",
            {"state": _ERROR, "attempt_in_ms": wait_ms},
        )


def _ignore(drained: bool, now_ms: int):
    """Do nothing: the process ends, and nobody waits for this."""
