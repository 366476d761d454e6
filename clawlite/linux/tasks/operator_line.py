"""An operator beside the one on stdin: a line of their own, and the rights of a person's role.

1. Any number of them may be there at once.  Each has its own session, framer and requests under
   way, and gets its own answers alone.
2. A session may do what its role may (``_LEAST``); a method that is not listed is an admin's.  Who
   is on stdin owns the process, and may do everything.
3. Answers leave in the step after that in which they were made: by then the log and the audit are
   written.
"""

import time

from clawlite.core.agent.lifecycle import STOPPED
from clawlite.core.base.effect import SEND_TO
from clawlite.core.base.errors import PolicyDenied
from clawlite.core.line.frame import RECORD, TOO_LONG, Framer
from clawlite.core.protocol.group_session import GroupSession
from clawlite.linux.channels.access import ADMIN, ROLE_NAMES, USER, VIEWER
from clawlite.linux.io.jsontext import request
from clawlite.linux.io.stdio import FULL, MAX_LINE, Part, Wire, now_ms

_AGAIN_MS = 50  # between attempts to write to somebody who does not read

# the least role that may use a method
_LEAST = {
    "claw.initialize": VIEWER,
    "claw.status": VIEWER,
    "claw.memory.query": VIEWER,
    "claw.memory.store": USER,
    "claw.tool.call": USER,
}


class RoleSession(GroupSession):
    """The session of *actor*, who has the *role* VIEWER, USER or ADMIN.

    send  function(message)
    """

    def __init__(self, agent, loads, role: int, actor: str, send):
        self._role, self._actor, self._put = role, actor, send
        super().__init__(agent, loads)

    def _send(self, message):
        self._put(message)

    def _call(self, id, method: str, params, reply, now_ms: int):
        least = _LEAST.get(method, ADMIN)
        if method == "claw.initialize" and self.agent.lifecycle.state == STOPPED:
            least = ADMIN  # it would start the agent again
        if self._role < least:
            raise PolicyDenied(
                "%s: %s has the role %s, and it takes %s"
                % (method[:60], self._actor, ROLE_NAMES[self._role], ROLE_NAMES[least]),
                "ask somebody who may",
                {"actor": self._actor, "role": ROLE_NAMES[self._role]},
            )
        return super()._call(id, method, params, reply, now_ms)


class OperatorLine(Part):
    """One operator's line.

    parts        ``assemble.Parts``: its ``add_part`` takes this
    fd_in, fd_out  int, of the connection; who made it closes it after ``on_end``
    role, actor  who is there, see ``RoleSession``
    on_end       function(this): the line is over
    """

    def __init__(self, parts, fd_in: int, fd_out: int, role: int, actor: str, on_end):
        self._parts, self._fd, self._on_end = parts, fd_in, on_end
        self._wire, self._framer = Wire(fd_in, fd_out), Framer(MAX_LINE, True)
        self._session = RoleSession(parts.agent, request, role, actor, self._send)
        self._session.set_clock(int(time.time()), now_ms())
        self._due_ms: int | None = None  # when what waits to be written is tried again

    def _send(self, message):
        self._parts.agent.effects.append((SEND_TO, message, self))

    def write(self, data: bytes):
        """Queue a record."""
        self._wire.write(self._framer.send(data))
        self._due_ms = now_ms()

    def fileno(self) -> int:
        return self._fd

    def deadline(self):
        return self._due_ms if self._due_ms is not None else self._session.deadline()

    def poll(self):
        """Send what waits, and take the records that have come."""
        self._wire.flush(0)
        waits = self._wire.waits
        self._due_ms = now_ms() + _AGAIN_MS if waits else None
        data = self._wire.ready() if waits < FULL else b""
        if data:
            self._framer.feed(data)
        elif self._wire.at_end:
            self._framer.finish()
        event = self._framer.next_event()
        while event is not None:
            kind, payload = event
            if kind == TOO_LONG:
                self._session.too_long(int(payload), MAX_LINE)
            elif kind == RECORD:
                self._session.record(payload, now_ms())
            event = self._framer.next_event()
        self._session.tick(now_ms())
        if self._wire.broken or self._wire.at_end and self._due_ms is None:
            self._parts.remove_part(self)

    def close(self):
        """Leave; the calls of this operator go on, and their answers are dropped."""
        self._wire.flush(0)
        self._session.close()
        self._on_end(self)
