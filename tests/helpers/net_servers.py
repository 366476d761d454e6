"""Servers that really misbehave, and the loop of a test around ``Connections``; nothing here leaves
the machine.

Tests that import ``nothing_left`` (a fixture) end with the descriptors and threads that they began
with."""

import gc
import os
import select
import socket
import ssl
import struct
import threading
from contextlib import contextmanager, suppress

import pytest
import trustme
from agents import DEADLINE_S, eventually

from clawlite.linux.net.connections import PIECE, UNREAD, Connections

GET = [b"GET / HTTP/1.1\r\n", b"Host: x\r\n\r\n"]
POST = [b"POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n", b"bo", b"dy"]
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
CANARY = "pass-canary-77"


def descriptors() -> set:
    """Return what this process has open that a connection could be: sockets, pipes, epolls.
    Files and devices are of libraries.
    """
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the one that lists them
            found.add("%s %s" % (fd, os.readlink("/proc/self/fd/" + fd)))
    return {one for one in found if one.split()[1].startswith(("socket:", "pipe:", "anon_inode:"))}


def threads() -> set:
    """Return the ids of this process' threads."""
    return set(os.listdir("/proc/self/task"))


def begun(before: set) -> int:
    """Return how many threads there are that *before* has not: those that end do not count."""
    return len(threads() - before)


@pytest.fixture(autouse=True)
def nothing_left(capfd):
    # how many, not which: each phase of a test has one of its own (time_limit.py)
    fds, tasks = descriptors(), len(threads())
    yield
    eventually(lambda: len(threads()) <= tasks)
    left = set()

    def is_clean() -> bool:
        left.clear()
        left.update(descriptors() - fds)
        if left:
            gc.collect()  # it may be dropped, and not closed yet
        return not left

    try:
        eventually(is_clean)
    except AssertionError:
        raise AssertionError("left open: %s" % ", ".join(sorted(left))) from None
    assert capfd.readouterr().err == "", "a thread had something to say"


class Net:
    """Connections, and the loop of a test around them."""

    def __init__(self):
        self.reader, writer = os.pipe()
        os.set_blocking(self.reader, False)
        self.writer = writer
        self.it = Connections(writer, {})
        self.came = {}  # key -> bytes
        self.ended = {}  # key -> (kind, sentence)
        self.events = []

    def open(
        self,
        port,
        key="k",
        host="127.0.0.1",
        scheme="http",
        parts=GET,
        timeout_ms=DEADLINE_S * 1000,
    ):
        self.it.open(key, scheme, host, port, parts, timeout_ms)

    def step(self):
        """Wait for the wake pipe, as a loop does, and take what has come."""
        assert select.select([self.reader], [], [], DEADLINE_S)[0], "nothing came"
        assert os.read(self.reader, 512) == b"\0", "woken more than once"
        for key, kind, data in self.it.poll():
            self.events.append((key, kind))
            if kind == "data":
                assert 0 < len(data) <= UNREAD + PIECE
                self.came[key] = self.came.get(key, b"") + data
            else:
                assert key not in self.ended
                self.ended[key] = (kind, data)

    def end(self, key="k") -> tuple:
        while key not in self.ended:
            self.step()
        return self.ended.pop(key)

    def answer(self, key="k") -> bytes:
        assert self.end(key) == ("end", b"")
        return self.came.pop(key, b"")

    def error(self, key="k") -> str:
        kind, sentence = self.end(key)
        assert kind == "error" and "\n" not in sentence and CANARY not in sentence
        return sentence

    def is_silent(self) -> bool:
        return not select.select([self.reader], [], [], 0)[0] and self.it.poll() == []


@pytest.fixture
def loop():
    made = Net()
    yield made
    made.it.close_all()
    # nobody writes to it any more, or whoever has the number next would get it
    os.close(made.writer)
    os.close(made.reader)


@contextmanager
def serving(talk, family=socket.AF_INET, place=None):
    """Serve at *place*, default a free port of loopback: ``talk(connection)`` in a thread for
    each; yield the port.
    """
    listener = socket.create_server(
        place or ("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), family=family
    )
    workers = []

    def one(connection):
        with connection:
            try:
                talk(connection)
            except OSError:
                pass

    def accept():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            workers.append(threading.Thread(target=one, args=(connection,)))
            workers[-1].start()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        acceptor.join(DEADLINE_S)
        listener.close()
        for worker in workers:
            worker.join(DEADLINE_S)
            assert not worker.is_alive()


def head(connection) -> bytes:
    """Read a request's head, byte by byte: what follows is for somebody else."""
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        if not byte:
            return data
        data += byte
    return data


def answering(answer=ANSWER, got=None):
    def talk(connection):
        data = head(connection)
        while b"Content-Length: 4" in data and not data.endswith(b"body"):
            data += connection.recv(100)
        if got is not None:
            got.append(data)
        connection.sendall(answer)

    return talk


class Gate:
    """A server that stalls after *first*: ``reached`` is set then, ``gone`` when the client has
    hung up.
    """

    def __init__(self, first=b""):
        self.first, self.reached, self.gone = first, threading.Event(), threading.Event()

    def __call__(self, connection):
        head(connection)
        connection.sendall(self.first)
        self.reached.set()
        try:
            while connection.recv(4096):
                pass
        finally:  # a reset, when the client left something unread
            self.gone.set()


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@contextmanager
def deaf_port():
    """Yield a port that takes no connection: its queue is full, and the kernel drops what comes."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        try:
            for _ in range(3):
                waiting.append(socket.socket())
                waiting[-1].setblocking(False)
                waiting[-1].connect_ex(listener.getsockname())
            yield listener.getsockname()[1]
        finally:
            for one in waiting:
                one.close()


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Certificates:
    """A CA that this process trusts, and servers with certificates of it or of others."""

    def __init__(self, folder, monkeypatch):
        self.ca = trustme.CA()
        self.folder = folder
        self.names = []  # what clients asked for (SNI)
        self.ca.cert_pem.write_to_path(str(folder / "ca.pem"))
        monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))
        monkeypatch.delenv("SSL_CERT_DIR", raising=False)

    def settings(self, certificate) -> ssl.SSLContext:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(made)
        made.sni_callback = lambda _, name, __: self.names.append(name)
        return made

    def serving(self, talk, *names, settings=None, place=None, **more):
        settings = settings or self.settings(self.ca.issue_cert(*names, **more))

        def inside(connection):
            with settings.wrap_socket(connection, server_side=True) as wrapped:
                talk(wrapped)

        return serving(inside, place=place)


@pytest.fixture
def tls(tmp_path, monkeypatch):
    return Certificates(tmp_path, monkeypatch)
