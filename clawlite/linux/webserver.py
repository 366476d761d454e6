"""A small HTTP server for one thread: it reads requests and writes answers, and the loop never waits for a client.

1. The thread alone touches sockets; what the two share is a list each way, under one lock, and a pipe that wakes the thread.
2. At most ``MOST`` clients; one that has not sent its request within 10 s is answered 408, one that does not read is dropped.
"""
import _thread
import os
import select
import socket
from time import monotonic

from clawlite.core.errors import ClawError
from clawlite.linux.webrequest import Refused, Request, answer

MOST = 64
SLOW_S = 10
_PIECE = 65536


class Client:
    """One connection: its request, then its answer.  Its number is never another one's, as a descriptor would be."""

    def __init__(self, number: int, sock, most: int):
        self.number, self.sock, self.request, self.out, self.due = number, sock, Request(most), None, monotonic() + SLOW_S


class Server:
    """One server.

    host, port   where it listens; port 0: any, ``port`` says which
    most         int, bytes of a body
    check        function(Request) -> anything, in the thread; raises ``Refused``
    wake         descriptor that gets a byte when ``poll`` has something
    Raises ``ClawError`` when it cannot listen there.
    """

    def __init__(self, host: str, port: int, most: int, check, wake: int):
        self._most, self._check, self._wake = most, check, wake
        try:
            self._listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=MOST)
        except OSError as e:
            raise ClawError("nothing can listen on %s port %d: %s" % (host, port, e.strerror or e), "choose another address in clawlite.toml") from None
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self._reader, self._writer = os.pipe()
        self._lock = _thread.allocate_lock()
        self._come, self._answers, self._clients, self._closing = [], [], {}, False     # clients by descriptor
        self._last = 0
        _thread.start_new_thread(self._run, ())

    def poll(self) -> list:
        """Return [(number of a client, what *check* returned)] that have come."""
        if not self._come:
            return []
        with self._lock:
            come, self._come = self._come, []
        return come

    def answer(self, number: int, status: int, body: bytes):
        """Answer a client; one that has gone hears nothing."""
        with self._lock:
            self._answers.append((number, answer(status, body)))
            if not self._closing:
                os.write(self._writer, b"\0")

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
                os.close(self._reader)
                os.close(self._writer)
            for client in self._clients.values():
                client.sock.close()
            self._listener.close()

    def _step(self):
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        if len(self._clients) < MOST:
            poll.register(self._listener.fileno(), select.POLLIN)
        for fd, client in self._clients.items():
            poll.register(fd, select.POLLOUT if client.out else 0 if client.request is None else select.POLLIN)
        dues = [client.due for client in self._clients.values() if client.due]
        for fd, events in poll.poll(max(0, int(1000 * (min(dues) - monotonic())) + 1) if dues else None):
            if fd == self._reader:
                os.read(fd, 4096)
            elif fd == self._listener.fileno():
                self._accept()
            elif fd in self._clients:
                self._heed(fd, self._clients[fd], events)
        self._tidy()

    def _accept(self):
        try:
            sock, _ = self._listener.accept()
        except OSError:                 # it has gone again
            return
        sock.setblocking(False)
        self._last += 1
        self._clients[sock.fileno()] = Client(self._last, sock, self._most)

    def _heed(self, fd: int, client: Client, events: int):
        try:
            if client.out:
                client.out = client.out[client.sock.send(client.out):]
                if not client.out:
                    self._drop(fd)
            elif events & (select.POLLERR | select.POLLHUP) or not self._read(client):
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
            self._refuse(client, e.status, str(e))
        return True

    def _refuse(self, client: Client, status: int, said: str):
        client.request = None
        client.out, client.due = answer(status, b'{"error":"%s"}' % said.encode()), monotonic() + SLOW_S

    def _tidy(self):
        with self._lock:
            answers, self._answers = self._answers, []
        for number, data in answers:
            for client in self._clients.values():
                if client.number == number and client.request is None and not client.out:
                    client.out, client.due = data, monotonic() + SLOW_S
        now = monotonic()
        for fd, client in list(self._clients.items()):
            if client.due and now >= client.due:
                if client.out:
                    self._drop(fd)
                else:
                    self._refuse(client, 408, "the request took more than %d s" % SLOW_S)

    def _drop(self, fd: int):
        self._clients.pop(fd).sock.close()
