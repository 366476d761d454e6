"""How the doors of a gateway accept connections: few strangers, and never none.

1. A stranger is a connection that its door knows nothing of yet: a device on the LAN until its
   token is right, an HTTP client until the head of its request is there, and between two requests.
   It counts from the moment on when it is accepted, before its TLS handshake.
2. At most ``MAX_STRANGERS``, ``MAX_BESIDE`` of one address (of IPv6: of one /64), over all doors
   that share a ``Strangers``.  One more drops the oldest, of its own address first.
3. The last ``SPARE`` descriptors of the process are for others, such as its files: a stranger that
   takes one of them drops the oldest, too.
4. The handshake and what makes it known take ``STRANGER_S`` together, or it is dropped.
"""

import asyncio
import contextlib
import dataclasses
import errno
import socket
import ssl

try:
    import resource
except ImportError:  # Windows has no limit of descriptors, and its select takes 512 sockets
    resource = None  # type: ignore[assignment]

from clawlite.protocols.net.netaddress import origin

MAX_STRANGERS = 512 if resource else 256
MAX_BESIDE = MAX_STRANGERS // 2  # of one address: no address has more than half of the places
STRANGER_S = 10
SPARE = 64
_BACKLOG = 512  # connections that the kernel holds until they are accepted
_PAUSE_S = 0.1  # until the next attempt, where nobody can be dropped for a descriptor
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclasses.dataclass
class _Place:
    """What is known of one stranger; *due* on the loop's clock, None between two requests."""

    door: "Acceptor"
    socket: socket.socket
    address: str
    due: float | None

    @property
    def is_open(self) -> bool:
        return self.socket.fileno() >= 0  # its transport closes this very object


class Strangers:
    """The strangers of all doors that share it, the oldest first."""

    def __init__(self):
        self._places = {}  # protocol -> _Place
        self._timer = None

    def __len__(self) -> int:
        return sum(place.is_open for place in self._places.values())

    def add(self, protocol, place: _Place) -> None:
        """Count *protocol*; drop the oldest where there is one too many."""
        self._places = {one: found for one, found in self._places.items() if found.is_open}
        beside = [one for one, found in self._places.items() if found.address == place.address]
        if len(beside) >= MAX_BESIDE:
            self._drop(beside[0])
        elif len(self._places) >= MAX_STRANGERS:
            self._drop(next(iter(self._places)))
        self._places[protocol] = place
        if self._timer is None and place.due is not None:
            self._timer = asyncio.get_running_loop().call_at(place.due, self._drop_late)

    def remove(self, protocol) -> "_Place | None":
        """The door knows *protocol*, or it has ended."""
        return self._places.pop(protocol, None)

    @contextlib.contextmanager
    def exempt(self, protocol):
        """While this context lasts *protocol* is no stranger; then it is the newest one."""
        place = self.remove(protocol)
        try:
            yield
        finally:
            if place and place.is_open:
                self.add(protocol, dataclasses.replace(place, due=None))

    def drop_oldest(self) -> bool:
        """Drop the oldest one; return False when there is none."""
        found = next((one for one, place in self._places.items() if place.is_open), None)
        if found is not None:
            self._drop(found)
        return found is not None

    def drop_silent(self, door: "Acceptor") -> None:
        """Drop all that have never said to *door* who they are."""
        for one, place in list(self._places.items()):
            if place.door is door and place.due is not None:
                self._drop(one)

    def _drop(self, protocol) -> None:
        # a socket that is shut down ends its transport at each stage, within a handshake, too
        with contextlib.suppress(OSError):  # it has ended by itself
            self._places.pop(protocol).socket.shutdown(socket.SHUT_RDWR)

    def _drop_late(self) -> None:
        loop, self._timer = asyncio.get_running_loop(), None
        waiting = []
        for one, place in list(self._places.items()):
            if place.due is not None and place.is_open:
                waiting.append(place.due) if place.due > loop.time() else self._drop(one)
        if waiting:
            self._timer = loop.call_at(min(waiting), self._drop_late)


class Acceptor:
    """What listens on one address and makes a protocol of each connection.

    strangers  ``Strangers``
    make       function(address of the other end) -> ``asyncio.Protocol``
    """

    def __init__(self, strangers: Strangers, make):
        self._strangers, self._make = strangers, make
        self._sockets, self._tasks = [], set()
        self._tls: ssl.SSLContext | None = None

    async def open(self, host: str, port: int, tls: ssl.SSLContext | None) -> str:
        """Listen, with TLS where *tls* is given; return "HOST:PORT" with the real port.  Raises
        ``OSError``, ``OverflowError``.
        """
        loop, self._tls = asyncio.get_running_loop(), tls
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, address in dict.fromkeys((each[0], each[4]) for each in found):
                listening = socket.create_server(address, family=family, backlog=_BACKLOG)
                self._sockets.append(listening)
                listening.setblocking(False)
                loop.add_reader(listening, self._accept, listening)
        except BaseException:
            self.close()
            raise
        return "%s:%d" % self._sockets[0].getsockname()[:2]

    def close(self) -> None:
        """Accept no more, and drop who has never said anything."""
        sockets, self._sockets = self._sockets, []
        for listening in sockets:
            asyncio.get_running_loop().remove_reader(listening)
            listening.close()
        self._strangers.drop_silent(self)

    def _accept(self, listening) -> None:
        """Accept one connection: one in each round of the loop, so that those that were accepted
        before it can say who they are.
        """
        try:
            connection, address = listening.accept()
        except OSError as e:  # most have gone again already
            if e.errno in _NO_ROOM and not self._strangers.drop_oldest():
                self._pause(listening)
            return
        connection.setblocking(False)
        if connection.fileno() >= _descriptors() - SPARE:  # it has the lowest that was free
            self._strangers.drop_oldest()
        loop, protocol = asyncio.get_running_loop(), self._make(address[0])
        due = loop.time() + STRANGER_S
        self._strangers.add(protocol, _Place(self, connection, origin(address[0]), due))
        task = loop.create_task(self._begin(protocol, connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _pause(self, listening) -> None:
        """A socket with a connection that nobody can accept is ready all the time."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(listening)
        loop.call_later(_PAUSE_S, self._resume, listening)

    def _resume(self, listening) -> None:
        if listening in self._sockets:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    async def _begin(self, protocol, connection) -> None:
        """Make the transport of *connection*; the handshake is part of that."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):  # it was dropped or went away, or speaks no TLS
            await loop.connect_accepted_socket(lambda: protocol, connection, ssl=self._tls)


def _descriptors() -> int:
    """Return how many descriptors this process may have."""
    if resource is None:
        return 1 << 62  # its sockets have numbers of any size
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return most if most != resource.RLIM_INFINITY else 1 << 31
