"""Who may use which agent: the files of ``clawlite people``, read again when they change."""

import os

from clawlite.core.base.clock import iso8601
from clawlite.host.gateway_operators.board_names import BOARDS
from clawlite.protocols.secrets import people

GATEWAY = ".gateway"  # the state folder of the gateway, whose people use its boards
BOARD = "board:"  # before the name of a board: a place of the gateway's people
_SOCKET = "control.sock"  # linux/tasks/control_socket.py
_LOG = "log.jsonl"  # linux/files/files.py


class KnownPeople:
    """The people of the agents below *root*, the folder of all state folders.

    names  agents that are served alone; none: all
    """

    def __init__(self, root: str, names=()):
        self.root, self._names = root, tuple(names)
        self._read = {}  # place -> ((inode, time, size) of its file, [Person])

    def places(self) -> list:
        """Return the names of the agents here, sorted, and ``GATEWAY`` where it has people."""
        try:
            found = sorted(os.listdir(self.root))
        except OSError:
            return []
        return [name for name in found if self._is_place(name)]

    def _is_place(self, name: str) -> bool:
        if self._names and name not in (*self._names, GATEWAY):
            return False
        if name.startswith(".") and name != GATEWAY:
            return False
        return any(
            os.path.lexists(os.path.join(self.root, name, file)) for file in (people.FILE, _SOCKET)
        )

    def of(self, place: str) -> list:
        """Return the people of one place; none for a name that is no agent's."""
        if not self._is_place(place) or "/" in place:
            return []
        path = os.path.join(self.root, place, people.FILE)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            self._read.pop(place, None)
            return []
        with open(fd, "rb") as file:
            status = os.fstat(fd)
            stamp = status.st_ino, status.st_mtime_ns, status.st_size
            known = self._read.get(place)
            if known is None or known[0] != stamp:
                known = self._read[place] = stamp, people.parse(file.read(people.MAX_BYTES))
        return known[1]

    def find(self, token: bytes) -> dict:
        """Return {place: ``Person``} of all places that *token* opens."""
        found = {place: people.find(self.of(place), token) for place in self.places()}
        return {place: person for place, person in found.items() if person is not None}

    def is_known(self, place: str, person: people.Person) -> bool:
        """Return whether *person* is still known there, with that token and that role."""
        return person in self.of(place)

    def is_online(self, place: str) -> bool:
        """Return whether the agent has a control socket; it may have ended without warning."""
        return os.path.lexists(os.path.join(self.folder(place), _SOCKET))

    def folder(self, place: str) -> str:
        """Return the folder of the control socket of an agent, or of a board."""
        if place.startswith(BOARD):
            return os.path.join(self.root, GATEWAY, BOARDS, place[len(BOARD) :])
        return os.path.join(self.root, place)

    def find_last_sign(self, place: str) -> str | None:
        """Return when an agent that cannot be reached wrote its log last; None when it can be, or
        has none.
        """
        if self.is_online(place):
            return None
        try:
            return iso8601(int(os.stat(os.path.join(self.root, place, _LOG)).st_mtime))
        except OSError:
            return None
