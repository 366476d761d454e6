"""Strangers at the doors of a gateway, with TLS and without: who is good is answered while all of
them stay, and where the process has no descriptor left, too.
"""

import asyncio
import contextlib
import hmac
import json
import socket
import ssl
import subprocess
import sys

import pytest
import trustme

from clawlite.host.gateway import lan
from clawlite.host.proxy import acceptor
from clawlite.host.proxy.http_server import HTTPServer

# One door in a process of its own, with few descriptors; no time ends a stranger.  It says where it
# listens, and ends with its input.
SERVER = """
import asyncio, resource, sys
door, folder, certificate, files = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_NOFILE, (int(files), int(files)))
from clawlite.host.gateway.lan import Listener, Tokens
from clawlite.host.proxy import acceptor
from clawlite.host.proxy.http_server import HTTPServer
acceptor.STRANGER_S = 3600

class Device:
    def __init__(self, name): self.name = name
    def connect(self, peer): peer.send(b'"welcome"')
    def disconnect(self): pass
    def pump(self): pass

async def welcome(request):
    from aiohttp import web
    return web.Response(text="welcome")

async def main():
    files = certificate or None, None
    if door == "lan":
        it = Listener(Tokens(folder), Device, lambda text: None)
        where = await it.open("127.0.0.1:0", *files)
    else:
        it = HTTPServer([("GET", "/", welcome)], welcome, print)
        where = await it.open("--proxy", "127.0.0.1:0", *files)
    print(where, flush=True)
    await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def no_time_ends_a_stranger(monkeypatch):
    monkeypatch.setattr(acceptor, "STRANGER_S", 3600)


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def certificate(authority, tmp_path) -> str:
    path = str(tmp_path / "cert.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(path)
    return path


@pytest.fixture
def trusting(authority) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@contextlib.contextmanager
def serving(door: str, folder: str, certificate: str, files: int):
    """The address (host, port) of *door*; it has said nothing on standard error when it ends."""
    words = [sys.executable, "-c", SERVER, door, folder, certificate, str(files)]
    pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
    with subprocess.Popen(words, text=True, **pipes) as process:
        try:
            host, _, port = process.stdout.readline().strip().rpartition(":")
            yield host, int(port)
        finally:
            _, errors = process.communicate()
        assert errors == "" and process.returncode == 0


def answer(door: str, connection: socket.socket, token: str) -> bytes:
    """Return what a good client hears at *door*."""
    with connection.makefile("rwb") as stream:
        if door == "http":
            stream.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            stream.flush()
            return stream.read()
        nonce = json.loads(stream.readline()[1:])["params"]["nonce"]
        mac = hmac.new(token.encode(), nonce.encode(), "sha256").hexdigest()
        said = {"jsonrpc": "2.0", "id": "auth", "result": {"name": "shed", "mac": mac}}
        stream.write(b"\x1e" + json.dumps(said).encode() + b"\n")
        stream.flush()
        return stream.readline()


# more descriptors than strangers of one address may take, and fewer
@pytest.mark.parametrize("files", [acceptor.MAX_BESIDE + 150, 120])
@pytest.mark.parametrize("with_tls", [False, True])
@pytest.mark.parametrize("door", ["lan", "http"])
def test_a_good_client_is_answered_while_all_strangers_stay(
    tmp_path, certificate, trusting, door, with_tls, files
):
    folder = str(tmp_path / "tokens")
    token = lan.Tokens(folder).make("shed")
    with contextlib.ExitStack() as opened:
        address = opened.enter_context(
            serving(door, folder, certificate if with_tls else "", files)
        )
        for _ in range(files + 50):
            opened.enter_context(socket.create_connection(address, 60))
        good = opened.enter_context(socket.create_connection(address, 60))
        if with_tls:
            good = opened.enter_context(trusting.wrap_socket(good, server_hostname="127.0.0.1"))
        assert b"welcome" in answer(door, good, token)


async def _read(request):
    from aiohttp import web

    return web.Response(text=request.path)


async def _ask(where: str, path: str, tls=None):
    """Return the streams of a connection that has asked for *path*."""
    host, port = where.split(":")
    reader, writer = await asyncio.open_connection(host, port, ssl=tls)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return reader, writer


def _at_a_door(handle, talk, certificate=None):
    """Run the coroutine function *talk*(address) with a door that *handle* answers at."""

    async def inside():
        door = HTTPServer([], handle, print)
        where = await door.open("--proxy", "127.0.0.1:0", certificate)
        try:
            async with asyncio.timeout(60):
                await talk(where)
        finally:
            await door.close()

    asyncio.run(inside())


@pytest.mark.parametrize("with_tls", [False, True])
def test_two_hundred_of_one_address_may_come_at_once(certificate, trusting, with_tls):
    async def talk(where):
        async def one(number: int):
            reader, writer = await _ask(where, f"/{number}", trusting if with_tls else None)
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
            return writer

        await asyncio.gather(*[one(number) for number in range(200)])

    _at_a_door(_read, talk, certificate if with_tls else None)


@pytest.mark.parametrize("limit", ["MAX_STRANGERS", "MAX_BESIDE"])
def test_a_request_under_way_is_no_stranger_and_an_idle_connection_is_one(monkeypatch, limit):
    monkeypatch.setattr(acceptor, limit, 2)

    async def talk(where):
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def slow(reader):
            begun.set()
            await go_on.wait()

        handlers["/slow"] = slow
        reader, writer = await _ask(where, "/slow")
        await begun.wait()
        host, port = where.split(":")
        silent = [await asyncio.open_connection(host, port) for _ in range(3)]
        with contextlib.suppress(ConnectionResetError):
            assert await silent[0][0].read() == b""  # the oldest is dropped
        go_on.set()
        assert (await reader.readuntil(b"/slow")).startswith(b"HTTP/1.1 200")
        # the newest by now: two more, and it goes
        silent += [await asyncio.open_connection(host, port) for _ in range(2)]
        assert await reader.read() == b""
        for _, each in [(reader, writer), *silent]:
            each.close()

    handlers = {}

    async def handle(request):
        await handlers[request.path](request)
        return await _read(request)

    _at_a_door(handle, talk)


@pytest.mark.parametrize("with_tls", [False, True])
@pytest.mark.parametrize("said", [b"", b"GET / HT", b"\x16\x03\x01\x02\x00\x01"])
def test_who_does_not_say_what_it_wants_is_dropped(monkeypatch, certificate, with_tls, said):
    monkeypatch.setattr(acceptor, "STRANGER_S", 0.01)

    async def talk(where):
        reader, writer = await asyncio.open_connection(*where.split(":"))
        writer.write(said)
        with contextlib.suppress(ConnectionResetError):
            await reader.read()  # it ends
        writer.close()

    _at_a_door(_read, talk, certificate if with_tls else None)


def test_doors_that_share_their_strangers_count_them_together(monkeypatch):
    monkeypatch.setattr(acceptor, "MAX_BESIDE", 1)

    async def inside():
        strangers = acceptor.Strangers()
        doors = [HTTPServer([], _read, print, strangers) for _ in range(2)]
        where = [await door.open("--proxy", "127.0.0.1:0") for door in doors]
        first, second = [await asyncio.open_connection(*each.split(":")) for each in where]
        async with asyncio.timeout(60):
            assert await first[0].read() == b"" and len(strangers) == 1
        for door in doors:
            await door.close()
        async with asyncio.timeout(60):
            assert await second[0].read() == b""
        assert len(strangers) == 0

    asyncio.run(inside())


# -- who they are counted as, and what is kept of them


def test_addresses_of_one_network_count_together():
    """One household has 2^64 addresses of IPv6."""

    async def play():
        strangers, ends = acceptor.Strangers(), []
        door = acceptor.Acceptor(strangers, lambda address: object())
        for number in range(acceptor.MAX_BESIDE + 5):
            one, other = socket.socketpair()
            ends.append(other)
            listening = _Listening(one, "2001:db8:1:2::%x" % number)
            door._accept(listening)
        count = len(strangers)
        for task in list(door._tasks):
            task.cancel()
        await asyncio.gather(*door._tasks, return_exceptions=True)
        door.close()
        if strangers._timer:
            strangers._timer.cancel()
        for other in ends:
            other.close()
        return count

    class _Listening:
        def __init__(self, one, address):
            self._one, self._address = one, address

        def accept(self):
            return self._one, (self._address, 1, 0, 0)

    assert asyncio.run(play()) <= acceptor.MAX_BESIDE


def test_of_a_stranger_on_the_lan_little_is_kept(tmp_path):
    """It sends a record without an end: at most some KB of it are kept, and it is let go."""

    async def play():
        strangers = acceptor.Strangers()
        it = lan.Listener(lan.Tokens(str(tmp_path)), None, lambda text: None, strangers)
        host, port = (await it.open("127.0.0.1:0", None, None)).split(":")
        reader, writer = await asyncio.open_connection(host, port)
        await reader.readline()
        writer.write(b"\x1e{" + b" " * 8192)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        it.close()
        return len(strangers)

    assert asyncio.run(asyncio.wait_for(play(), 60)) == 0


@pytest.mark.parametrize("door", ["proxy", "a2a"])
def test_a_strangers_body_is_not_waited_for(tmp_path, door):
    """The answer comes while the body has yet to be sent."""
    from clawlite.host.a2a.a2a import A2A
    from clawlite.host.proxy.proxy import Proxy

    async def play():
        notes = []
        if door == "proxy":
            store = type("Store", (), {"hidden": (), "hide": None, "unhide": None})
            has = lambda name, token: False
            it = Proxy(dict, has, store, None, notes.append, (None, None), None)
            where, path = await it.open("127.0.0.1:0"), "/v1/chat/completions"
        else:
            it = A2A.__new__(A2A)
            it._is_right, it._note = (lambda name, token: False), notes.append
            it._server = HTTPServer([("POST", "/", it._post)], it._missing, notes.append)
            where, path = await it._server.open("--a2a", "127.0.0.1:0"), "/"
        host, port = where.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a:b\r\n" % path
        writer.write((head + "Content-Length: 4000000\r\n\r\n").encode())
        status = await reader.readline()
        writer.close()
        await (it.close() if door == "proxy" else it._server.close())
        assert "has a wrong token" in notes[0]
        return status

    assert asyncio.run(asyncio.wait_for(play(), 60)).startswith(b"HTTP/1.1 401")
