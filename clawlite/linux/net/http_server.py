"""A small HTTP server for one thread: it reads requests and writes answers, and the loop never
waits for a client.

1. Only the thread uses sockets.  The thread and the loop share a list each way, under one lock, and
   a pipe that wakes the thread.
2. At most ``MOST`` clients are connected, and ``PER_ADDRESS`` of one address (of IPv6: of one
   /64).  When there is one more, the oldest client that has not sent its request yet is answered
   503, at first one of the same address.  When all others have sent theirs, this is the new client.
3. A client that has not sent its request within 10 s is answered 408.  A client that does not read
   its answer is dropped.
4. After an answer, the connection is closed once the client has closed, or 2 s later.  Closing with
   unread bytes would reset the connection and lose the answer.
5. An answer may come in parts (``begin``, ``send``).  A client for which more than ``UNREAD`` bytes
   wait is dropped.
"""

import _thread
import errno
import os
import select
import socket
from time import monotonic

from clawlite.core.base.errors import ClawError
from clawlite.linux.net.http_request import Refused, Request, answer, stream_head
from clawlite.protocols.net.netaddress import origin

# a client has ended its side; macOS tells it when the client is read
_ENDED = getattr(select, "POLLRDHUP", 0)
MOST = 64
PER_ADDRESS = 32  # no address may use more than half of the clients
LEAVING = 256  # clients that were answered and have not closed yet
BACKLOG = 512  # connections that the kernel holds until they are accepted
SLOW_S, LINGER_S = 10, 2
UNREAD = 8388608  # bytes of an answer in parts that may wait for a client
_PIECE = 65536


class Client:
    """One connection: its request, then its answer, then its end.  Its number, unlike a descriptor,
    is never used again.
    """

    def __init__(self, number: int, sock, address: str, request: Request):
        self.number, self.sock, self.address, self.request, self.out, self.due = (
            number,
            sock,
            address,
            request,
            None,
            monotonic() + SLOW_S,
        )
        self.leaves = False  # its answer is complete: it does not count as a client any more
        self.lingers = False  # its answer is sent, and it may still close the connection itself
        self.is_whole = True  # no more of its answer comes

    @property
    def waits(self) -> bool:
        """Whether a part of its answer is still missing here."""
        return self.request is None and not self.leaves and not (self.out and self.is_whole)


class Server:
    """One server.

    host, port   where it listens; port 0: any, ``port`` says which
    most         int, bytes of a body
    check        function(Request) -> anything, in the thread; raises ``Refused``
    wake         descriptor that gets a byte when ``poll`` has something
    tells_ends   bool, ``poll`` reports clients that closed before their answer was complete
    admit        function(Request), in the thread, before the body is read; raises ``Refused``
    Raises ``ClawError`` when it cannot listen there.
    """

    def __init__(self, host, port: int, most: int, check, wake: int, tells_ends=False, admit=None):
        self._most, self._admit, self._check = most, admit, check
        self._wake, self._tells_ends = wake, tells_ends
        try:
            self._listener = socket.create_server(
                (host, port),
                family=socket.AF_INET6 if ":" in host else socket.AF_INET,
                backlog=BACKLOG,
            )
        except OSError as e:
            raise ClawError(
                "nothing can listen on %s port %d: %s" % (host, port, e.strerror or e),
                "choose another address in clawlite.toml",
            ) from None
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self._reader, self._writer = os.pipe()
        self._lock = _thread.allocate_lock()
        # clients by descriptor
        self._come, self._answers, self._clients, self._closing = [], [], {}, False
        self._last = 0
        _thread.start_new_thread(self._run, ())

    def poll(self) -> list:
        """Return [(number of a client, result of *check*)] for the requests that have come, and
        (number, None) for a client that has closed.
        """
        if not self._come:
            return []
        with self._lock:
            come, self._come = self._come, []
        return come

    def answer(self, number: int, status: int, body: bytes, headers=()):
        """Answer a client.  Nothing happens when it has closed."""
        self.send(number, answer(status, body, headers), True)

    def begin(self, number: int, headers=()):
        """Begin an answer that is a stream of events."""
        self.send(number, stream_head(headers))

    def send(self, number: int, data: bytes, is_last: bool = False):
        """Send a part of an answer that ``begin`` has begun."""
        with self._lock:
            self._answers.append((number, data, is_last))
            if not self._closing:
                os.write(self._writer, b"\0")

    def is_sending(self) -> bool:
        """Return whether answers are on their way to clients."""
        with self._lock:
            return bool(self._answers) or any(
                client.out and not client.lingers for client in list(self._clients.values())
            )

    def close(self):
        with self._lock:
            if not self._closing:
                self._closing = True
                os.write(self._writer, b"\0")

    # -- in the thread

    def _run(self):
        try:
            while not self._closing:
                self._step()
        finally:
            with self._lock:
                self._closing = True
                ends, self._reader, self._writer = (self._reader, self._writer), -1, -1
                for fd in ends:
                    os.close(fd)
            for client in self._clients.values():
                client.sock.close()
            self._listener.close()

    def _step(self):
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        poll.register(self._listener.fileno(), select.POLLIN)
        for fd, client in self._clients.items():
            waits = _ENDED if self._tells_ends and client.waits else 0
            poll.register(
                fd,
                select.POLLOUT | waits
                if client.out
                else select.POLLIN
                if client.request or client.lingers
                else waits,
            )
        dues = [client.due for client in self._clients.values() if client.due]
        for fd, events in poll.poll(
            max(0, int(1000 * (min(dues) - monotonic())) + 1) if dues else None
        ):
            if fd == self._reader:
                os.read(fd, 4096)
            elif fd == self._listener.fileno():
                self._accept()
            elif fd in self._clients:
                self._handle_event(fd, self._clients[fd], events)
        self._tidy()

    def _accept(self):
        try:
            sock, address = self._listener.accept()
        except OSError as e:  # the client has closed, or this process has no descriptor left
            if e.errno in (errno.EMFILE, errno.ENFILE):
                self._drop_one()
            return
        sock.setblocking(False)
        self._last += 1
        request = Request(self._most, self._admit)
        client = Client(self._last, sock, origin(address[0]), request)
        self._clients[sock.fileno()] = client
        here = [one for one in self._clients.values() if not one.leaves]
        beside = [one for one in here if one.address == client.address]
        for among, most in ((beside, PER_ADDRESS), (here, MOST)):
            if len(among) > most:  # the newest has not sent its request yet, so there is one
                self._refuse(
                    next(one for one in among if one.request),
                    503,
                    "too many connections; try again later",
                )
                break
        leaving = [fd for fd, one in self._clients.items() if one.leaves]
        if len(leaving) > LEAVING:
            self._drop(leaving[0])

    def _drop_one(self):
        """Close a client without an answer, to free its descriptor: one that was answered, else the
        oldest that has not sent its request.
        """
        found = [fd for fd, one in self._clients.items() if one.leaves] or [
            fd for fd, one in self._clients.items() if one.request
        ]
        if found:
            self._drop(found[0])
        else:
            select.poll().poll(100)  # all clients wait for an answer

    def _handle_event(self, fd: int, client: Client, events: int):
        try:
            if events & _ENDED and client.waits:
                self._drop(fd)
            elif client.out:
                client.out = client.out[client.sock.send(client.out) :]
                if not client.is_whole:
                    client.due = monotonic() + SLOW_S if client.out else None
                if not client.out and client.is_whole:
                    self._finish(fd, client)
            elif events & (select.POLLERR | select.POLLHUP) or not (
                client.sock.recv(_PIECE) if client.lingers else self._read(client)
            ):
                self._drop(fd)
        except BlockingIOError:
            pass
        except OSError:
            self._drop(fd)

    def _read(self, client: Client) -> bool:
        data = client.sock.recv(_PIECE)
        if not data:
            return False
        try:
            if client.request.feed(data):
                checked = self._check(client.request)
                client.request = client.due = None
                with self._lock:
                    self._come.append((client.number, checked))
                os.write(self._wake, b"\0")
        except Refused as e:
            self._refuse(client, e.status, str(e), e.headers)
        return True

    def _finish(self, fd: int, client: Client):
        """Shut the connection down: the whole answer is sent."""
        try:
            client.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop(fd)
            return
        client.leaves, client.lingers, client.due = True, True, monotonic() + LINGER_S

    def _refuse(self, client: Client, status: int, said: str, headers=()):
        client.request, client.leaves, client.is_whole = None, True, True
        client.out, client.due = (
            answer(status, b'{"error":"%s"}' % said.encode(), headers),
            monotonic() + SLOW_S,
        )

    def _tidy(self):
        with self._lock:
            answers, self._answers = self._answers, []
        for number, data, is_whole in answers:
            for fd, client in list(self._clients.items()):
                if client.number == number and client.request is None and not client.leaves:
                    client.due = client.due if client.out else monotonic() + SLOW_S
                    client.out, client.is_whole = (client.out or b"") + data, is_whole
                    if len(client.out) > UNREAD and not is_whole:
                        self._drop(fd)
                    elif not client.out and is_whole:  # a stream whose last part is empty
                        self._finish(fd, client)
        now = monotonic()
        for fd, client in list(self._clients.items()):
            if client.due and now >= client.due:
                if client.leaves or client.out:
                    self._drop(fd)
                else:
                    self._refuse(client, 408, "the request took more than %d s" % SLOW_S)

    def _drop(self, fd: int):
        client = self._clients.pop(fd)
        client.sock.close()
        if self._tells_ends and client.request is None and not client.leaves:
            with self._lock:
                self._come.append((client.number, None))
            os.write(self._wake, b"\0")
