"""An operator beside the one on stdin: a line of their own, and the rights of a person's role.

1. Any number of them may be there at once.  Each has its own session, framer and requests under
   way, and gets its own answers alone.
2. A session may do what its role may (core/protocol/rights.py); a method that is not listed there
   is an admin's who has just logged in.  Who is on stdin owns the process, and may do everything.
3. Who speaks is known: nobody acts in another name, and log, audit and tasks name the person.
4. The agent that runs stays: a manifest is checked as it is beside a pinned image.
5. Answers leave in the step after that in which they were made: by then the log and the audit are
   written.
"""

import time

from clawlite.core.agent.lifecycle import STOPPED
from clawlite.core.base.effect import SEND_TO
from clawlite.core.base.errors import PolicyDenied
from clawlite.core.line.frame import RECORD, TOO_LONG, Framer
from clawlite.core.policy.access import ADMIN
from clawlite.core.protocol import rights, rpc
from clawlite.linux.io.jsontext import dumps, request
from clawlite.linux.io.stdio import FULL, MAX_LINE, Part, Wire, now_ms
from clawlite.protocols.session.group_session import Group, GroupSession

_MOST_WAITING = 4 * FULL  # bytes for somebody who does not read, and whose line then ends
_AGAIN_MS = 50  # between attempts to write to somebody who does not read


class Person:
    """Who is at the other end of a line.

    name      of the person, for people to read
    role      VIEWER, USER or ADMIN
    login_ms  monotonic ms of the machine when they logged in; None: whoever may open this line
              could do as much without it, so each request counts as fresh
    """

    def __init__(self, name: str, role: int, login_ms: int | None = None):
        self.name, self.role, self._login_ms = name, role, login_ms
        self.caller = "operator/" + name  # in log, audit and tasks

    def check(self, method: str, least: int, is_fresh: bool):
        """Raise ``PolicyDenied`` unless the person may use *method*, which takes the role *least*,
        and *is_fresh*: a login that was a moment ago.
        """
        is_late = self._login_ms is not None and now_ms() - self._login_ms > rights.FRESH_MS
        rights.check(method, self.name, self.role, least, is_fresh and is_late)


class RoleSession(GroupSession):
    """The session of a person.

    send  function(message)
    """

    def __init__(self, agent, loads, person: Person, send):
        self._person, self._put, self._owned = person, send, []
        self.answers_as = person.name
        self._least: dict = {}  # the least role of each method of which a group says so
        super().__init__(agent, loads)

    def share(self, group):
        """Answer the methods of *group*, which has other sessions, too.  It may say which least
        role its methods take (``least``).
        """
        self._least.update(getattr(group, "least", ()))
        if hasattr(group, "of"):
            group = group.of(self._person, self._send)
            self._owned.append(group)
        else:
            group = _Shared(group, self._person.caller)
        self.serve(group)

    def close(self):
        super().close()
        for group in self._owned:
            group.close()

    def _send(self, message):
        self._put(message)

    def _begin_calls(self):
        super()._begin_calls().act_for(self._person.caller)
        return self._calls

    def _check(self, method: str):
        least, is_fresh = rights.least(method)
        if method == "claw.initialize" and self.agent.lifecycle.state == STOPPED:
            least, is_fresh = ADMIN, True
        elif method in self._least:
            least, is_fresh = self._least[method], False
        self._person.check(method, least, is_fresh)

    def _call(self, id, method: str, params, reply, now_ms: int):
        self._check(method)
        if isinstance(params, dict) and "actor" in params:
            params = rights.without_actor(params, self._person.name)
        return super()._call(id, method, params, reply, now_ms)

    def notify_groups(self, message: dict):
        try:
            self._check(str(message.get("method", "")))
        except PolicyDenied:  # nothing answers a notification
            return
        super().notify_groups(message)

    def _initialize(self, params: dict, now_ms: int):
        if self._person.role < ADMIN:  # only who may answer a form is shown it
            asked = params.get("capabilities")
            if isinstance(asked, dict) and isinstance(asked.get("tools"), dict):
                tools = {key: one for key, one in asked["tools"].items() if key != "asks"}
                params = {**params, "capabilities": {**asked, "tools": tools}}
        return super()._initialize(params, now_ms)

    def _adopt(self, manifest, is_free: bool) -> bool:
        super()._adopt(manifest, False)  # it may refuse the manifest
        return False


class _Shared(Group):
    """A group of methods for one more session: what it tells by itself goes to that on stdin, whose
    operator alone fills in its forms, and is a peer of a swarm.
    """

    def __init__(self, group, caller: str):
        self._group, self.capability, self.rows = group, group.capability, group.rows
        self._caller = caller

    def begin(self, method: str, params: dict):
        """Return the result of a request of the caller, whatever *params* says.  Raises
        ``ClawError``.
        """
        return self._group.begin(method, dict(params, caller=self._caller))

    def notify(self, message: dict):
        if "method" in message:  # a report is acknowledged by whom it was sent to
            self._group.notify(message)


class OperatorLine(Part):
    """One operator's line.

    parts        ``agent_parts.AgentParts``: its ``add_part`` takes this
    fd_in, fd_out  int, of the connection; who made it closes it after ``on_end``
    person       ``Person`` who is there, or None until ``open`` says who
    on_end       function(this): the line is over
    """

    def __init__(self, parts, fd_in: int, fd_out: int, person: Person | None, on_end):
        self._parts, self._fd, self._on_end = parts, fd_in, on_end
        self._wire, self._framer = Wire(fd_in, fd_out), Framer(MAX_LINE, True)
        self._session: RoleSession | None = None
        self._due_ms: int | None = None  # when what waits to be written is tried again
        self._is_over = False
        if person is not None:
            self.open(person)

    def open(self, person: Person):
        """Begin the session of *person*."""
        session = RoleSession(self._parts.agent, request, person, self._send)
        session.set_clock(int(time.time()), now_ms())
        for group in self._parts.groups:
            session.share(group)
        self._session = session

    @property
    def is_open(self) -> bool:
        return self._session is not None

    def refuse(self, error):
        """Say *error*, and end."""
        self.write(dumps(rpc.error(None, error)).encode())
        self._wire.end()

    def _send(self, message):
        self._parts.agent.effects.append((SEND_TO, message, self))

    def write(self, data: bytes):
        """Queue a record; ``flush`` sends it."""
        self._wire.write(self._framer.send(data))
        self._due_ms = now_ms()

    def flush(self):
        """Send what waits, as far as it is taken now."""
        if not self._is_over:
            self._wire.flush(0)
            self._due_ms = now_ms() + _AGAIN_MS if self._wire.waits else None

    def fileno(self) -> int:
        return self._fd

    def deadline(self):
        if self._due_ms is not None:
            return self._due_ms
        return self._session.deadline() if self._session else None

    def poll(self):
        """Send what waits, and take the records that have come."""
        self.flush()
        data = self._wire.ready() if self._wire.waits < FULL else b""
        if data:
            self._framer.feed(data)
        elif self._wire.at_end:
            self._framer.finish()
        event = self._framer.next_event()
        while event is not None:
            kind, payload = event
            if kind == RECORD:
                self._record(payload)
            elif kind == TOO_LONG and self._session:
                self._session.too_long(int(payload), MAX_LINE)
            event = self._framer.next_event()
        if self._session:
            self._session.tick(now_ms())
        is_over = self._wire.broken or self._wire.waits > _MOST_WAITING
        if is_over or self._wire.at_end and self._due_ms is None:
            self._parts.remove_part(self)

    def _record(self, payload: bytes):
        if self._session:
            self._session.record(payload, now_ms())

    def close(self):
        """Leave; the calls of this operator go on, and their answers are dropped."""
        self.flush()
        self._is_over = True
        if self._session:
            self._session.close()
        self._on_end(self)
