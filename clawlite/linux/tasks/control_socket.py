"""The control socket of an agent, at which processes of its own user talk to it: that of the page,
for people who have logged in there.

1. It lies in the state folder as ``control.sock``, mode 0600, where ``[page]`` of clawlite.toml or
   ``--socket`` asks for it.  One process of the agent has it at a time; another one takes over when
   that ends.
2. Only this process's own user and root may connect (SO_PEERCRED); others are hung up on.
3. The first line says who is there, and the other end has seen to that:
   {"person": NAME, "role": ROLE, "login_ms": monotonic ms of this machine}.  What follows is CKP, a
   JSON document a line, with the rights of that role (operator_line.py).
4. At most ``MAX_SESSIONS`` at once, those that have not said yet who they are among them.  Of them,
   who is no admin has at most ``OF_ONE``, and all who are none leave ``FOR_ADMINS``: nobody who may
   only look keeps out those who stop the agent.
"""

import os
import socket
import struct

from clawlite.core.base.errors import ClawError, InvalidRequest
from clawlite.core.policy.access import ADMIN
from clawlite.core.protocol import rpc
from clawlite.linux.files.files import mend, state_folder
from clawlite.linux.files.process_lock import ProcessLock
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.io.stdio import Part, now_ms
from clawlite.linux.tasks.operator_line import OperatorLine, Person
from clawlite.protocols.secrets.people import ROLES, is_name

NAME = "control.sock"
MAX_SESSIONS = 32
FOR_ADMINS, OF_ONE = 8, 12
_LOCK = "control"  # folder of its lock
_AGAIN_MS = 5000  # between attempts to take over, and looks whether the socket is still there
_GREET_MS = 10000  # within which who connects says who is there


class ControlSocket(Part):
    """The socket of one agent.

    parts  ``agent_parts.AgentParts`` of the agent, where each line becomes a part
    """

    lasts = True

    def __init__(self, parts):
        self._parts = parts
        self._folder = state_folder(parts.image.agent.name)
        self._lock = ProcessLock(os.path.join(self._folder, _LOCK))
        self._door: _Door | None = None
        self._inode = None  # of the socket while it is this process's
        self._is_draining, self._told = False, ""
        self._try_ms = now_ms()
        self._lines: list = []  # the sessions

    def deadline(self):
        return self._try_ms

    def poll(self):
        """Listen where no other process does."""
        if now_ms() < self._try_ms or self._is_draining:
            return
        self._try_ms = now_ms() + _AGAIN_MS
        if self._door is not None and self._is_lost():
            door, self._door = self._door, None
            self._parts.remove_part(door)
            self._lock.release()
        try:
            if self._door is None and not self._lock.take():
                self._listen()
            self._told = ""
        except OSError as e:
            text = "the control socket: %s - %s" % (e.strerror, mend(e))
            if text != self._told:
                self._told = text
                self._parts.warn(text)

    def drain(self):
        """Take nobody more: the process is about to end."""
        self._is_draining = True

    def close(self):
        if self._door is not None and not self._is_lost():
            os.unlink(os.path.join(self._folder, NAME))
        self._door = None
        self._lock.release()

    def _is_lost(self) -> bool:
        """Return whether the socket, or its lock, was removed or replaced."""
        try:
            inode = os.lstat(os.path.join(self._folder, NAME)).st_ino
        except OSError:
            return True
        return inode != self._inode or self._lock.is_lost()

    def _listen(self):
        """Bind by the descriptor of the folder, because the path of a socket has at most 107 bytes.
        The socket is this user's alone, and listens, before it has its name.
        """
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            place, draft = "/proc/self/fd/%d/" % folder, NAME + ".new"
            if os.path.lexists(place + draft):
                os.unlink(draft, dir_fd=folder)
            os.fchmod(listening.fileno(), 0o600)
            listening.bind(place + draft)
            listening.listen(MAX_SESSIONS)
            listening.setblocking(False)
            os.rename(draft, NAME, src_dir_fd=folder, dst_dir_fd=folder)
            self._inode = os.lstat(place + NAME).st_ino
        except BaseException:
            listening.close()
            raise
        finally:
            os.close(folder)
        self._door = self._parts.add_part(_Door(listening, self._take))

    def _take(self, connection: socket.socket):
        """Take who has connected, or hang up on them."""
        connection.setblocking(False)
        if not _is_own(connection):
            connection.close()
        elif self._is_draining:
            _refuse(connection, InvalidRequest("the agent is ending", "connect to the next one"))
        elif len(self._lines) >= MAX_SESSIONS:
            error = InvalidRequest(
                "expected at most %d sessions, and so many are open" % MAX_SESSIONS,
                "end one of them",
            )
            _refuse(connection, error)
        else:
            line = _Line(self._parts, connection, self._admit, self._lines.remove)
            self._lines.append(self._parts.add_part(line))

    def _admit(self, person: Person):
        """Raise ``InvalidRequest`` where *person* would take what is kept for others."""
        if person.role == ADMIN:
            return
        others = [line.person for line in self._lines if line.person]
        others = [one for one in others if one.role < ADMIN]
        if sum(one.name == person.name for one in others) >= OF_ONE:
            raise InvalidRequest(
                "expected at most %d sessions of one person, and %s has so many"
                % (OF_ONE, person.name),
                "end one of them",
            )
        if len(others) >= MAX_SESSIONS - FOR_ADMINS:
            raise InvalidRequest(
                "expected at most %d sessions, and the other %d are for admins"
                % (MAX_SESSIONS - FOR_ADMINS, FOR_ADMINS),
                "end one of them",
            )


class _Door(Part):
    """The socket that listens."""

    lasts = True

    def __init__(self, listening: socket.socket, take):
        self._listening, self._take = listening, take

    def fileno(self) -> int:
        return self._listening.fileno()

    def poll(self):
        try:
            while True:
                self._take(self._listening.accept()[0])
        except OSError:  # nobody more
            return

    def close(self):
        self._listening.close()


class _Line(OperatorLine):
    """A connection, whose first line says who is there: *person*, None until then.

    admit  function(person), which raises ``InvalidRequest`` where there is no room for them
    """

    def __init__(self, parts, connection: socket.socket, admit, on_end):
        self.person: Person | None = None
        self._admit = admit
        self._connection, self._greet_ms = connection, now_ms() + _GREET_MS
        super().__init__(parts, connection.fileno(), connection.fileno(), None, on_end)

    def deadline(self):
        due_ms = super().deadline()
        return self._greet_ms if due_ms is None and not self.is_open else due_ms

    def poll(self):
        if not self.is_open and now_ms() >= self._greet_ms:
            self._parts.remove_part(self)
        else:
            super().poll()

    def _record(self, payload: bytes):
        if self.is_open:
            super()._record(payload)
            return
        try:
            person = _person_of(loads(payload))
            self._admit(person)
            self.person = person
            self.open(person)
        except ClawError as e:
            self.refuse(e)

    def close(self):
        super().close()
        self._connection.close()


def _person_of(said) -> Person:
    """Return who is at the other end, as *said* in the first line.  Raises ``InvalidRequest``."""
    name, role, login_ms = [
        said.get(key) if isinstance(said, dict) else None for key in ("person", "role", "login_ms")
    ]
    if isinstance(name, str) and is_name(name) and role in ROLES and type(login_ms) is int:
        return Person(name, ROLES.index(role), login_ms)
    raise InvalidRequest(
        'expected who is there first: {"person": NAME, "role": ROLE, "login_ms": N}',
        "connect with: clawlite page",
    )


def _is_own(connection: socket.socket) -> bool:
    """Return whether this process's own user, or root, is at the other end (unix(7))."""
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    return uid in (0, os.geteuid())


def _refuse(connection: socket.socket, error: ClawError):
    """Say why, as far as it is taken at once, and hang up."""
    try:
        connection.send(dumps(rpc.error(None, error)).encode() + b"\n")
    except OSError:
        pass
    connection.close()
