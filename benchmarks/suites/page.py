"""The suite ``page``: a call over WebSocket beside one over stdio, and what the page weighs."""

import base64
import os
import re
import socket
import ssl
import statistics
import struct
import subprocess
import sys
import time

from clawlite.core.base.errors import ClawError
from clawlite.host.bench import agent
from clawlite.host.bench.serve import Peer
from clawlite.protocols.secrets import people

NAME = "bench"  # of the agent
WARM, CALLS = 20, 20
VIEWERS = (1, 20)


class Socket:
    """A client of WebSocket (RFC 6455), as far as a benchmark needs one."""

    def __init__(self, port: int, token: str, tls=None, name: str = NAME):
        line = socket.create_connection(("127.0.0.1", port), 30)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._line = tls.wrap_socket(line, server_hostname="localhost") if tls else line
        key = base64.b64encode(os.urandom(16)).decode()
        self._line.sendall(
            f"GET /ckp/{name} HTTP/1.1\r\nHost: localhost:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            f"Authorization: Bearer {token}\r\n\r\n".encode()
        )
        self._rest = b""
        while b"\r\n\r\n" not in self._rest:
            self._rest += self._read()
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        if b" 101 " not in head:
            raise ClawError(f"no WebSocket: {head[:200]!r}")

    def _read(self) -> bytes:
        data = self._line.recv(65536)
        if not data:
            raise ClawError("the page has ended the connection")
        return data

    def ask(self, data: bytes) -> bytes:
        """Send a text frame; return the payload of the next one."""
        self.send(data)
        while True:
            found = self._frame()
            if found is not None:
                return found

    def send(self, data: bytes):
        """Send a text frame."""
        mask, size = b"\0\0\0\0", len(data)
        head = bytes([0x81, 0x80 | size]) if size < 126 else b"\x81\xfe" + struct.pack(">H", size)
        self._line.sendall(head + mask + data)

    def _frame(self):
        """Return the payload of the first whole frame, None of one that is no text."""
        while len(self._rest) < 2:
            self._rest += self._read()
        size, at = self._rest[1] & 127, 2
        if size == 126:
            while len(self._rest) < 4:
                self._rest += self._read()
            size, at = struct.unpack(">H", self._rest[2:4])[0], 4
        while len(self._rest) < at + size:
            self._rest += self._read()
        kind, payload = self._rest[0] & 15, self._rest[at : at + size]
        self._rest = self._rest[at + size :]
        return payload if kind == 1 else None

    def close(self):
        self._line.close()


class Page:
    """A process with the page, and the token of an admin."""

    def __init__(self, bench, *options: str, name: str = NAME):
        self.token, folder = "ada:" + "0" * 43, os.path.join(bench.folder, "state", name)
        os.makedirs(folder, 0o700, exist_ok=True)
        known = people.Person("ada", "admin", people.digest_of(b"0" * 43), 0)
        with open(os.path.join(folder, people.FILE), "wb") as file:
            file.write(people.write([known]))
        words = [sys.executable, "-m", "clawlite", "page", "--child", "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            [*words, *options],
            env=bench.environment(),
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = self.process.stderr.readline()
        found = re.search(r":(\d+)/$", said.strip())
        if not found:
            raise ClawError(f"the page said {said!r}")
        self.port = int(found[1])

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stderr.close()


def page(bench):
    """Yield rows: a call over WebSocket and one over stdio, of the same agent, in turns."""
    peer, door = _serve(bench, "--socket"), Page(bench)
    times: list = [[], []]
    try:
        client = _client(bench, door)
        for number in range(WARM + bench.rounds * CALLS):
            for found, ask in zip(times, (lambda data: peer.ask(data, 1), client.ask), strict=True):
                data = agent.call_line(7, 2 * number + (found is times[1]))
                begin = time.perf_counter_ns()
                said = ask(data if found is times[0] else data.rstrip(b"\n"))
                found.append((time.perf_counter_ns() - begin) / 1e3)
                if b'"result"' not in said:
                    raise ClawError(f"the answer was {said[:200]!r}")
        client.close()
    finally:
        door.close()
        peer.end()
    stdio, web = [found[WARM:] for found in times]
    ratio = statistics.median(web) / statistics.median(stdio)
    ratios = [one / other for one, other in zip(web, stdio, strict=True)]
    yield bench.row("page", "a call, over stdio", "us", stdio)
    yield bench.row("page", "a call, over WebSocket", "us", web)
    note = "value: ratio of the medians, in turns"
    yield bench.row("page", "a call, WebSocket over stdio", "ratio", ratios, ratio, note)


def weight(bench):
    """Yield rows: the memory of the page's process with viewers, and of an agent with and without
    its socket.
    """
    folder = bench.make("certificate")
    subprocess.run([sys.executable, bench.script("certificate.py"), folder], check=True)
    tls = ssl.create_default_context(cafile=os.path.join(folder, "ca.pem"))
    for options, client, kind in (
        ((), None, ""),
        (("--tls-cert", os.path.join(folder, "server.pem")), tls, ", TLS"),
    ):
        peer, viewers = _serve(bench, "--socket"), []
        door = Page(bench, *options)
        try:
            for count in VIEWERS:
                while len(viewers) < count:
                    viewers.append(_client(bench, door, client))
                case = "memory of the page, %d viewer%s%s" % (count, "s" * (count > 1), kind)
                note = "VmRSS; a viewer is a WebSocket with a session"
                yield bench.row("page", case, "MiB", [_resident(door.process.pid)], note=note)
        finally:
            for one in viewers:
                one.close()
            door.close()
            peer.end()
    found = []
    for options in ((), ("--socket",)):
        peer = _serve(bench, *options)
        found.append(_resident(peer.process.pid))
        peer.end()
    note = "value: with --socket, above one without"
    yield bench.row("page", "memory of an agent's socket", "MiB", found, found[1] - found[0], note)


def _serve(bench, *options: str) -> Peer:
    """Return an agent that serves stdio, and has said that it is READY."""
    words = [sys.executable, "-m", "clawlite", "serve", bench.agent(), "--stdio", *options]
    peer = Peer(words, bench.environment(), bench.folder)
    peer.ask(agent.opening(), 2)
    return peer


def _client(bench, door: Page, tls=None) -> Socket:
    await_socket(bench, NAME)
    client = Socket(door.port, door.token, tls)
    client.ask(agent.opening().split(b"\n")[0])
    return client


def await_socket(bench, name: str):
    """Wait until the agent *name* has its control socket."""
    path = os.path.join(bench.folder, "state", name, "control.sock")
    until = time.monotonic() + 30
    while not os.path.exists(path) and time.monotonic() < until:
        time.sleep(0.01)


def _resident(pid: int) -> float:
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024
