"""The door of a sandboxed child: what goes through, what does not, and that it ends."""

import select
import socket
import threading
from contextlib import contextmanager

import pytest
from agents import eventually
from fetching import rules
from hypothesis import given, settings
from hypothesis import strategies as st
from listening import listening
from net_servers import (  # noqa: F401
    DEADLINE_S,
    Gate,
    begun,
    closed_port,
    deaf_port,
    head,
    nothing_left,
    reset,
    serving,
    threads,
    tls,
)
from own_network import OTHER, PUBLIC, PUBLIC6, inside, names  # noqa: F401

from clawlite.linux.net import egress
from clawlite.linux.net.egress import Egress

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"


@contextmanager
def door(profile=None, environ=None):
    """Yield the port of a door on loopback, as a child sees it."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    port = listener.getsockname()[1]
    made = Egress(profile or rules(), environ or {})
    made.serve(listener.detach())
    try:
        yield port
    finally:
        made.close()
        made.close()


def child(port) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), DEADLINE_S)


def rest(sock) -> bytes:
    data = b""
    while True:
        more = sock.recv(65536)
        if not more:
            return data
        data += more


def ask(port, request: bytes) -> bytes:
    with child(port) as sock:
        sock.sendall(request)
        return rest(sock)


def get(port, url: str, fields: str = "", method: str = "GET", body: bytes = b"") -> bytes:
    return ask(
        port, ("%s %s HTTP/1.1\r\nHost: x\r\n%s\r\n" % (method, url, fields)).encode() + body
    )


def tunnel(port, target: str, more: bytes = b"") -> socket.socket:
    sock = child(port)
    sock.sendall(
        b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target.encode(), target.encode()) + more
    )
    assert head(sock) == b"HTTP/1.1 200 Connection established\r\n\r\n"
    return sock


def site(seen, answer=OK):
    def talk(connection):
        data = head(connection)
        length = data.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
        while length and len(data.partition(b"\r\n\r\n")[2]) < int(length):
            data += connection.recv(65536)
        connection.sendall(answer)
        connection.settimeout(0.2)
        try:
            data += connection.recv(65536)
        except OSError:
            pass
        seen.append(data)

    return talk


def echo(connection):
    while True:
        data = connection.recv(65536)
        if not data:
            return connection.sendall(b"bye")
        connection.sendall(data)


# -- what goes through


def test_http(monkeypatch):
    seen = []
    with serving(site(seen)) as server, door() as port:
        url = "http://127.0.0.1:%d/a?b" % server
        assert (
            get(
                port,
                url + "#c",
                "Accept: x\r\nConnection: keep-alive\r\nProxy-Authorization: "
                "y\r\nProxy-Connection: z\r\nKeep-Alive: 1\r\nUpgrade: "
                "h2c\r\n",
            )
            == OK
        )
        assert get(port, url, "Content-Length: 4\r\n", "POST", b"body") == OK
    assert seen == [
        b"GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: x\r\nConnection: "
        b"close\r\n\r\n" % server,
        b"POST /a?b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 4\r\n"
        b"Connection: close\r\n\r\nbody" % server,
    ]


def test_a_large_body_both_ways():
    data = bytes(range(256)) * 4096
    seen = []
    with (
        serving(site(seen, OK[:-2].replace(b"2\r\n", b"%d\r\n" % len(data)) + data)) as server,
        door() as port,
    ):
        found = get(
            port, "http://127.0.0.1:%d/" % server, "Content-Length: %d\r\n" % len(data), "PUT", data
        )
    assert found.endswith(b"\r\n\r\n" + data) and seen[0].endswith(b"\r\n\r\n" + data)


def test_connect():
    with serving(echo) as server, door() as port:
        with tunnel(port, "127.0.0.1:%d" % server, b"early ") as sock:
            data = bytes(1000000)
            writer = threading.Thread(
                target=lambda: (sock.sendall(data), sock.shutdown(socket.SHUT_WR))
            )
            writer.start()
            assert rest(sock) == b"early " + data + b"bye"
            writer.join()


def test_tls_through_connect(tls):
    import ssl

    with tls.serving(site([]), "localhost") as server, door() as port:
        settings = ssl.create_default_context(cafile=str(tls.folder / "ca.pem"))
        with settings.wrap_socket(
            tunnel(port, "localhost:%d" % server), server_hostname="localhost"
        ) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert rest(sock) == OK


# -- what does not


@pytest.mark.parametrize(
    "request_, status",
    [
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"403"),
        (b"GET https://127.0.0.1/ HTTP/1.1\r\n\r\n", b"400"),
        (b"\r\n\r\n", b"400"),
        (b"GET http://127.0.0.1/\r\n\r\n", b"400"),
        (b"GET http://127.0.0.1/ HTTP/2.0\r\n\r\n", b"400"),
        (b"GET  http://h/ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http://h/ HTTP/1.1 \r\n\r\n", b"400"),
        (b"G:T http://h/ HTTP/1.1\r\n\r\n", b"400"),
        (b"CONNECT 127.0.0.1 HTTP/1.1\r\n\r\n", b"403"),
        (b"CONNECT 127.0.0.1:0 HTTP/1.1\r\n\r\n", b"403"),
        (b"CONNECT http://127.0.0.1:80 HTTP/1.1\r\n\r\n", b"403"),
        (b"CONNECT 127.0.0.1:80/ HTTP/1.1\r\n\r\n", b"403"),
        (b"CONNECT a@127.0.0.1:80 HTTP/1.1\r\n\r\n", b"403"),
        (b"CONNECT 0x7f.1:80 HTTP/1.1\r\n\r\n", b"403"),
        (b"GET http://h\\@i/ HTTP/1.1\r\n\r\n", b"403"),
        (b"GET http://\xc3\xa9/ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http://h/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n", b"400"),
        (b"GET http://h/ HTTP/1.1\r\nA : b\r\n\r\n", b"400"),
        (b"GET http://h/ HTTP/1.1\r\nA: b\nC: d\r\n\r\n", b"400"),
        (b"GET http://h/ HTTP/1.1\r\nA: b\rC: d\r\n\r\n", b"400"),
        (b"GET http://h/ HTTP/1.1\r\nA: \0\r\n\r\n", b"400"),
        (b"GET http://h/ HTTP/1.1\r\n: b\r\n\r\n", b"400"),
        (b"GET http://h/ HTTP/1.1\r\nA\r\n\r\n", b"400"),
        (b"GET http://h/ HTTP/1.1\r\nHost\x0b: h\r\n\r\n", b"400"),
        (b"POST http://h/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"411"),
        (b"POST http://h/ HTTP/1.1\r\nTransfer_Encoding: chunked\r\n\r\n", b"400"),
        (b"POST http://h/ HTTP/1.1\r\nContent-Length: 1\r\ncontent-length: 2\r\n\r\nx", b"400"),
        (b"POST http://h/ HTTP/1.1\r\nContent-Length: +1\r\n\r\nx", b"400"),
        (b"POST http://h/ HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\nx", b"400"),
        (b"POST http://h/ HTTP/1.1\r\nContent_Length: 9\r\n\r\nGET / x\r\n", b"400"),
        (b"GET http://h/ HTTP/1.1\r\nX: " + b"x" * egress.MAX_HEAD + b"\r\n\r\n", b"431"),
    ],
)
def test_requests_that_are_refused(names, request_, status):
    with door(rules(1, ["127.0.0.1"])) as port:
        answer = ask(port, request_)
    assert (
        answer.startswith(b"HTTP/1.1 " + status + b" ")
        and b"\r\n\r\nclawlite: " in answer
        and names.asked == []
    )


def test_the_longest_head():
    seen = []
    with serving(site(seen)) as server, door() as port:
        start = b"GET http://127.0.0.1:%d/ HTTP/1.1\r\nX: " % server
        assert ask(port, start + b"x" * (egress.MAX_HEAD - len(start) - 4) + b"\r\n\r\n") == OK


def test_the_rules_hold(names):
    def body():
        names.of = {
            "a.example.com": [[PUBLIC]],
            "evil.example": [[OTHER]],
            "db.example.com": [["10.20.30.40"]],
            "six.example.com": [[PUBLIC6]],
            "both.example.com": [[PUBLIC, "10.20.30.40"]],
            "re.example.com": [[PUBLIC], ["10.20.30.40"]],
        }
        good, bad = [], []
        with (
            serving(site(good), place=(PUBLIC, 80)),
            serving(site(good), socket.AF_INET6, (PUBLIC6, 80)),
            serving(site(bad), place=("10.20.30.40", 80)),
            serving(site(bad), place=(OTHER, 80)),
            door(rules(1, ["*.example.com"], True)) as port,
        ):
            assert (
                get(port, "http://a.example.com/") == OK
                and get(port, "http://six.example.com/") == OK
            )
            assert get(port, "http://re.example.com/") == OK
            for host in (
                "evil.example",
                "db.example.com",
                "both.example.com",
                "re.example.com",
                PUBLIC,
                "10.20.30.40",
                "127.0.0.1",
                "[::1]",
                "example.com",
            ):
                assert get(port, "http://%s/" % host).startswith(b"HTTP/1.1 403 ")
                assert ask(port, b"CONNECT %s:80 HTTP/1.1\r\n\r\n" % host.encode()).startswith(
                    b"HTTP/1.1 403 "
                )
            # One connection asks one server for one page of the host that was judged.
            get(
                port,
                "http://a.example.com/",
                "Content-Length: 0\r\n",
                body=b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            )
        assert (
            len(good) == 4
            and bad == []
            and b"evil" not in b"".join(good)
            and b"Host: a.example.com\r\n" in good[0]
        )
        assert "evil.example" not in names.asked
        with door(rules(0)) as port:
            assert b"the sandbox allows no network" in get(port, "http://a.example.com/")

    inside(body)


def test_out_of_a_network_of_nothing(names):
    """The listening socket belongs to the child's network; look-ups and connections are made in
    the agent's.
    """

    def body():
        names.of = {"a.example.com": [[PUBLIC]]}
        ready, gone = threading.Event(), threading.Event()
        found = {}

        def sandboxed():
            listener = socket.create_server(("127.0.0.1", 0))
            found["place"], found["listener"] = listener.getsockname()[1], listener.detach()
            ready.set()
            assert gone.wait(DEADLINE_S)
            with pytest.raises(OSError):
                socket.create_connection((PUBLIC, 80), 1)
            found["answer"] = get(found["place"], "http://a.example.com/")

        with serving(site([]), place=(PUBLIC, 80)):
            thread = threading.Thread(target=lambda: inside(sandboxed, public=False))
            thread.start()
            assert ready.wait(DEADLINE_S)
            made = Egress(rules(1, ["a.example.com"], True), {})
            made.serve(found["listener"])
            gone.set()
            thread.join(DEADLINE_S)
            made.close()
        assert found["answer"] == OK

    inside(body)


def test_what_cannot_be_reached(monkeypatch, names):
    with deaf_port() as deaf, door() as port:
        assert get(port, "http://127.0.0.1:%d/" % closed_port()).startswith(
            b"HTTP/1.1 502 Bad Gateway\r\n"
        )
        assert b"no such host" in get(port, "http://nowhere.example/")
        monkeypatch.setattr(egress, "CONNECT_MS", 50)
        assert b"timed out after 0.05 s" in get(port, "http://127.0.0.1:%d/" % deaf)
    with door(environ={"https_proxy": "http://127.0.0.1:1"}) as port:
        assert b"the environment names a proxy for api.example.com" in ask(
            port, b"CONNECT api.example.com:443 HTTP/1.1\r\n\r\n"
        )


# -- ends and bounds


def test_a_refused_upload_still_gets_its_answer():
    with door(rules(0)) as port:
        assert b"403 Forbidden" in get(
            port, "http://a.example/", "Content-Length: 60000\r\n", "POST", b"x" * 60000
        )


def test_silence_ends_a_tunnel(monkeypatch):
    monkeypatch.setattr(egress, "IDLE_MS", 30)
    monkeypatch.setattr(egress, "HEAD_MS", 30)
    gate = Gate()
    with serving(gate) as server, door() as port:
        with tunnel(port, "127.0.0.1:%d" % server, b"GET / HTTP/1.1\r\n\r\n") as sock:
            assert rest(sock) == b"" and gate.gone.wait(DEADLINE_S)
        assert ask(port, b"GET http://127") == b""


def test_a_child_that_hangs_up():
    gate = Gate()
    with serving(gate) as server, door() as port:
        with tunnel(port, "127.0.0.1:%d" % server, b"GET / HTTP/1.1\r\n\r\n") as sock:
            assert gate.reached.wait(DEADLINE_S)
            reset(sock)
        assert gate.gone.wait(DEADLINE_S)


def is_open(port: int) -> bool:
    return any(one.endswith(":%04X" % port) for one in listening())


def test_close_ends_every_phase():
    gate = Gate(b"x")
    with serving(gate) as server, deaf_port() as deaf:
        with door() as port:
            assert is_open(port)
            begun, still, connecting = (
                tunnel(port, "127.0.0.1:%d" % server, b"GET / HTTP/1.1\r\n\r\n"),
                child(port),
                child(port),
            )
            connecting.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % deaf)
            still.sendall(b"GET http")
            assert gate.reached.wait(DEADLINE_S)
        assert gate.gone.wait(DEADLINE_S)
        for sock in (begun, still, connecting):
            with sock:
                try:
                    rest(sock)
                except ConnectionResetError:
                    pass
        # no connection is tried: the port may be another program's by now
        eventually(lambda: not is_open(port))


def test_more_connections_wait_their_turn():
    before, gate = threads(), Gate()
    with serving(gate) as server, door() as port:
        held = [tunnel(port, "127.0.0.1:%d" % server) for _ in range(egress.MAX_TUNNELS)]
        servers = egress.MAX_TUNNELS + 1  # a thread each, and the one that accepts
        late = child(port)
        late.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % server)
        late.settimeout(0.05)
        with pytest.raises(TimeoutError):
            late.recv(1)
        assert begun(before) <= 2 * servers
        held.pop().close()
        late.settimeout(DEADLINE_S)
        assert head(late).startswith(b"HTTP/1.1 200 ")
        for sock in held + [late]:
            sock.close()
        eventually(lambda: begun(before) <= 2)


def test_who_does_not_read_holds_the_server_back():
    sent, full = [], threading.Event()

    def flood(connection):
        head(connection)
        connection.setblocking(False)
        while len(sent) < 1000 and select.select([], [connection], [], 0.3)[1]:
            sent.append(connection.send(bytes(65536)))
        full.set()

    with serving(flood) as server, door() as port, child(port) as sock:
        sock.sendall(b"GET http://127.0.0.1:%d/ HTTP/1.1\r\n\r\n" % server)
        assert full.wait(DEADLINE_S) and len(sent) < 1000
        assert len(rest(sock)) == sum(sent)


PIECES = [
    b"GET ",
    b"POST ",
    b"CONNECT ",
    b"http://h/",
    b"h:1",
    b" HTTP/1.1",
    b"\r\n",
    b"Content-Length: ",
    b"5",
    b": ",
    b"Transfer-Encoding",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b"\0",
    b"\xe9",
    b"_",
    b"a",
]


@pytest.mark.parametrize("examples", [400, pytest.param(2000, marks=pytest.mark.soak)])
def test_any_head_is_read_or_refused(examples):
    """What comes out is lines of one request: no reader finds a second one, or another length."""

    @settings(max_examples=examples, deadline=None)
    @given(st.lists(st.sampled_from(PIECES), max_size=14).map(b"".join))
    def holds(head):
        try:
            method, target, fields = egress._request(head)
            data, left = egress._rewritten(method, "/", "h", fields)
        except egress._Bad as e:
            assert e.args[0] in (400, 411)
            return
        lines = data.decode("ascii").split("\r\n")
        assert lines[:2] == ["%s / HTTP/1.1" % method, "Host: h"] and lines[-3:] == [
            "Connection: close",
            "",
            "",
        ]
        assert all(line and line.isprintable() or "\t" in line for line in lines[:-2])
        lengths = [
            line
            for line in lines
            if line.lower().replace("_", "-").startswith(("content-length", "transfer-encoding"))
        ]
        assert [int(line.split(":")[1]) for line in lengths] == ([left] if lengths else []) and (
            lengths or left == 0
        )

    holds()
