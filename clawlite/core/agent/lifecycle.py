"""The agent's lifecycle (CKP 0.2.0, section 8).

    INIT -> STARTING -> READY -> STOPPING -> STOPPED        STOPPED -> STARTING: a new session on
                                                            the same line
    STARTING, READY -> ERROR -> STARTING                    another attempt, after a pause
                                                            (core/agent/recovery.py)
                       ERROR -> STOPPING                    after too many failures, or when an
                                                            operator asks for it

The table is data; a change that is not in it is a bug of ours.  Each change is logged.
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.effect import LOG
from clawlite.core.base.errors import InternalError, InvalidRequest

INIT, STARTING, READY, STOPPING, STOPPED, ERROR = (
    "INIT",
    "STARTING",
    "READY",
    "STOPPING",
    "STOPPED",
    "ERROR",
)

_DUE_MS = const(0)  # of a drain
_STOPPED = const(1)


class Lifecycle:
    """The state of an agent, and the work that comes with a change of it.

    agent       ``agent.Agent``
    state       one of the six names
    since_ms    int, the monotonic time of the last change
    recovery    ``recovery.Recovery``, once something has failed
    """

    def __init__(self, agent, now_ms: int):
        self._agent = agent
        self.state = INIT
        self.since_ms = now_ms
        self.recovery = None
        self._drain = None  # [due_ms, function(drained, now_ms)]

    def to(self, state: str, now_ms: int, details: dict = None):
        """Change to *state* and log it, with the milliseconds spent in the old one.  Raises
        ``InternalError``.
        """
        ways = {
            INIT: (STARTING,),
            STARTING: (READY, ERROR),
            READY: (STOPPING, ERROR),
            STOPPING: (STOPPED,),
            STOPPED: (STARTING,),
            # a local: a board that has started keeps no table in memory
            ERROR: (STARTING, STOPPING),
        }
        old = self.state
        if state not in ways[old]:
            raise InternalError(
                "lifecycle: no way from %s to %s" % (old, state), "this is a bug in clawlite"
            )
        event = {
            "claw": "0.3.0",
            "event": "lifecycle.transition",
            "agent": self._agent.image.agent.name,
            "from": old,
            "to": state,
            "duration_ms": now_ms - self.since_ms,
        }
        if details:
            event["details"] = details
        self.state = state
        self.since_ms = now_ms
        self._agent.effects.append((LOG, event))

    def start(self, now_ms: int):
        """Go to READY from INIT, STOPPED or ERROR; to ERROR when ``Setup.on_start`` fails."""
        self.to(STARTING, now_ms)
        try:
            if self._agent.setup.on_start:
                self._agent.setup.on_start()
        except Exception as e:
            self.fail(e, now_ms)
            return
        self.to(READY, now_ms)

    def fail(self, error, now_ms: int):
        """Go to ERROR, and try to recover from there; *error*: any exception.  All work in progress
        is ended.

        In STOPPING this ends the time to drain.  In ERROR and STOPPED it changes nothing."""
        if self._drain:
            self._drain[0] = now_ms
            self.drain(now_ms)
        if self.state != READY and self.state != STARTING:
            return
        if self.recovery is None:
            from clawlite.core.agent.recovery import Recovery

            self.recovery = Recovery(self._agent)
        self.recovery.count_failure(error, now_ms)

    def stop(self, timeout_ms: int, stopped, now_ms: int):
        """Accept no more work, let the work in progress end for at most *timeout_ms*, then call
        ``stopped(drained, now_ms)``.
        """
        self.to(STOPPING, now_ms)
        self._drain = [now_ms + timeout_ms, stopped]
        # calls are ended by ``tick``: here, deep in a request, a board has no stack for that
        if not self._agent.tasks:
            self.drain(now_ms)

    def drain(self, now_ms: int):
        """While STOPPING: go to STOPPED when no task is left, or the time to drain is over."""
        tasks = self._agent.tasks
        if self._drain and (not tasks or now_ms >= self._drain[_DUE_MS]):
            stopped = self._drain[_STOPPED]
            drained = not tasks
            self._drain = None
            for number in sorted(tasks):
                try:
                    self._agent.cancel(
                        number,
                        InvalidRequest(
                            "the agent stopped before this call ended",
                            "start the agent, and call again with a new id",
                        ),
                        now_ms,
                    )
                except Exception:  # a task that cannot be ended must not keep the agent running
                    tasks.pop(number, None)
            self.to(STOPPED, now_ms)
            stopped(drained, now_ms)

    def is_cutting(self) -> bool:
        """Return whether the time to drain is over, and tasks are cut off because of that."""
        return self.state == STOPPING and self._drain is None

    def tick(self, now_ms: int):
        """Do what is due at this time."""
        self.drain(now_ms)
        if self.state == ERROR and now_ms >= self.recovery.due_ms:
            self.start(now_ms)

    def deadline(self):
        """Return the monotonic time of the next ``tick`` that matters, or None."""
        if self._drain:
            return self._drain[_DUE_MS]
        return self.recovery.due_ms if self.state == ERROR else None
