"""The agent's lifecycle (CKP 0.2.0, section 8).

    INIT -> STARTING -> READY -> STOPPING -> STOPPED        STOPPED -> STARTING: a new session on the same line
    INIT, STARTING, READY -> ERROR -> STOPPING
    STARTING -> READY after ERROR: a recovery

The table is data; anything else is our bug.
"""
from clawlite.core.errors import InternalError

INIT, STARTING, READY, STOPPING, STOPPED, ERROR = "INIT", "STARTING", "READY", "STOPPING", "STOPPED", "ERROR"

NEXT = {
    INIT: (STARTING, ERROR),
    STARTING: (READY, ERROR),
    READY: (STOPPING, ERROR),
    STOPPING: (STOPPED,),
    STOPPED: (STARTING,),
    ERROR: (STARTING, STOPPING),
}


class Lifecycle:
    """One state, and when it was entered.

    state     one of the six names
    since_ms  int, the monotonic time of the last change
    """

    def __init__(self, now_ms: int):
        self.state = INIT
        self.since_ms = now_ms

    def to(self, state: str, now_ms: int) -> tuple:
        """Change to *state*; return (from, to, milliseconds spent in from).  Raises ``InternalError``."""
        old = self.state
        if state not in NEXT[old]:
            raise InternalError("lifecycle: no way from %s to %s" % (old, state), "this is a bug in clawlite")
        spent = now_ms - self.since_ms
        self.state = state
        self.since_ms = now_ms
        return old, state, spent
