"""Connections to providers, in every phase and with whatever a server may do."""

import errno
import os
import random
import socket
import subprocess
import sys
import threading

import pytest
from agents import DEADLINE_S, ROOT, eventually
from net_servers import (  # noqa: F401
    ANSWER,
    CANARY,
    GET,
    POST,
    Gate,
    answering,
    begun,
    closed_port,
    deaf_port,
    descriptors,
    head,
    loop,
    nothing_left,
    reset,
    serving,
    threads,
)

from clawlite.linux.net import connections, stream
from clawlite.linux.net.connections import PIECE, UNREAD

# -- the plain way


def test_request_goes_out_and_the_answer_comes_back(loop):
    got = []
    with serving(answering(got=got)) as port:
        loop.open(port, parts=POST)
        assert loop.answer() == ANSWER
    assert got == [b"".join(POST)]
    assert loop.is_silent()


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_ipv6_with_and_without_brackets(loop, host):
    with serving(answering(), socket.AF_INET6) as port:
        loop.open(port, host=host)
        assert loop.answer() == ANSWER


def test_name_is_looked_up(loop):
    with serving(answering()) as port:
        loop.open(port, host="localhost")
        assert loop.answer() == ANSWER


def test_drip_comes_as_it_comes(loop):
    go = threading.Semaphore(0)

    def talk(connection):
        head(connection)
        for i in range(5):
            connection.sendall(b"%d" % i)
            go.acquire(timeout=DEADLINE_S)

    with serving(talk) as port:
        loop.open(port)
        for i in range(5):
            while len(loop.came.get("k", b"")) <= i:
                loop.step()
            go.release()
        assert loop.answer() == b"01234"


def test_two_connections_at_once(loop):
    gate = Gate(b"a")
    with serving(gate) as slow, serving(answering()) as port:
        loop.open(slow, key=1)
        loop.open(port, key=2)
        assert loop.answer(2) == ANSWER
        while loop.came.get(1) != b"a":
            loop.step()
        loop.it.close(1)
        assert gate.gone.wait(DEADLINE_S)


def test_key_in_use_is_refused_and_free_after_the_end(loop):
    with serving(answering()) as port:
        loop.open(port)
        with pytest.raises(ValueError, match="connection 'k' is open"):
            loop.open(port)
        assert loop.answer() == ANSWER
        loop.open(port)
        assert loop.answer() == ANSWER


def test_early_end_is_an_end(loop):
    with serving(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")) as port:
        loop.open(port)
        # that it is too short is for the codec to say
        assert loop.answer().endswith(b"half")
    with serving(lambda connection: head(connection)) as port:
        loop.open(port)
        assert loop.answer() == b""


def test_big_request(loop):
    body = os.urandom(1 << 20) * 8
    got = []

    def talk(connection):
        head(connection)
        data = bytearray()
        while len(data) < len(body):
            data += connection.recv(1 << 20)
        got.append(bytes(data) == body)
        connection.sendall(ANSWER)

    with serving(talk) as port:
        loop.open(port, parts=[*GET, body])
        assert loop.answer() == ANSWER
    assert got == [True]


def test_answer_before_the_request_was_read_is_heard(loop):
    def talk(connection):
        head(connection)
        # and closes with 8 MB unread: a reset
        connection.sendall(b"HTTP/1.1 413 Content Too Large\r\n\r\n")

    with serving(talk) as port:
        loop.open(port, parts=[*GET, bytes(8 << 20)])
        loop.end()
        assert loop.came["k"].startswith(b"HTTP/1.1 413 ")


# -- a flood is held back


def test_flood_waits_where_it_comes_from(loop):
    total = 50 << 20
    block = bytes(range(256)) * 256

    def talk(connection):
        head(connection)
        for _ in range(total // len(block)):
            connection.sendall(block)

    with serving(talk) as port:
        loop.open(port)
        shared = loop.it._open["k"]
        eventually(lambda: len(shared.unread) > UNREAD)
        size = 0
        while "k" not in loop.ended:
            assert len(shared.unread) <= UNREAD + PIECE
            loop.step()
            data = loop.came.pop("k", b"")
            if data:
                assert data[0] == size % 256 and data[-1] == (size + len(data) - 1) % 256
            size += len(data)
    assert size == total


def test_close_while_held_back(loop):
    gone = threading.Event()

    def talk(connection):
        head(connection)
        try:
            while True:
                connection.sendall(bytes(65536))
        except OSError:
            gone.set()

    with serving(talk) as port:
        loop.open(port)
        shared = loop.it._open["k"]
        eventually(lambda: len(shared.unread) > UNREAD)
        loop.it.close("k")
        assert gone.wait(DEADLINE_S)
    assert len(shared.unread) == 0


# -- what goes wrong, in one sentence


def test_refused(loop):
    loop.open(closed_port())
    assert loop.error() == "connection refused"


def test_reset(loop):
    go = threading.Event()

    def talk(connection):
        head(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        go.wait(DEADLINE_S)
        reset(connection)

    with serving(talk) as port:
        loop.open(port)
        loop.step()
        assert loop.came["k"] == b"HTTP/1.1 200 OK\r\n"
        go.set()
        assert loop.error() == "the connection was reset"
    with serving(reset) as port:
        # more than fits on the way: the sender meets the reset
        loop.open(port, parts=[bytes(16 << 20)])
        assert loop.error() == "the connection was reset"


@pytest.mark.parametrize("host", ["name.invalid", "a..b", "x" * 64 + ".invalid"])
def test_no_such_host(loop, host):
    loop.open(80, host=host)
    assert loop.error() in (
        "no such host: " + host,
        "the name %s cannot be looked up: no name server answers" % host,
    )


@pytest.mark.parametrize(
    "code, sentence",
    [
        (socket.EAI_NONAME, "no such host: api.example.com"),
        (socket.EAI_NODATA, "no such host: api.example.com"),
        (socket.EAI_AGAIN, "the name api.example.com cannot be looked up: no name server answers"),
    ],
)
def test_look_up_that_fails(loop, monkeypatch, code, sentence):
    def fail(*_):
        raise socket.gaierror(code, "x")

    monkeypatch.setattr(stream, "getaddrinfo", fail)
    loop.open(80, host="api.example.com")
    assert loop.error() == sentence


def test_no_free_descriptor_is_not_the_name_s_fault():
    """In a process of its own: the limit is the whole process's."""
    import subprocess
    import sys

    script = """if True:
        import _thread, os, resource
        from clawlite.linux.net import stream as net_stream
        class Connection:
            nudge = lambda self: None
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
        try:
            while True:
                os.dup(0)
        except OSError:
            pass
        asked = Connection()
        net_stream._find(asked, _thread.allocate_lock(), b"api.example.com", 80)
        os.write(1, asked.found.encode())
        """
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )
    assert (
        done.stdout
        == "the name api.example.com cannot be looked up: this process may open no more files "
        "(ulimit -n)"
    ), done.stderr


@pytest.mark.parametrize(
    "scheme, host, port, sentence",
    [
        ("ftp", "h", 1, "'ftp' is no scheme for a connection: expected http or https"),
        ("http", "", 1, "'' is no host name"),
        ("http", "a b", 1, "'a b' is no host name"),
        (
            "http",
            "a\r\nb",
            1,
            r"'a\r\n"
            r"b' "
            r"is "
            r"no "
            r"host "
            r"name",
        ),
        (
            "http",
            "büro",
            1,
            "'büro' is no host name (a name with other letters is written as xn--...)",
        ),
        ("http", "u@h", 1, "'u@h' is no host name"),
        ("http", "x" * 254, 1, "'" + "x" * 79),
        (
            "http",
            "\x7f",
            1,
            r"'\x7f' "
            r"is "
            r"no",
        ),
        ("http", "h", 0, "0 is no port: expected 1 to 65535"),
        ("https", "h", 65536, "65536 is no port"),
    ],
)
def test_place_that_is_none(loop, scheme, host, port, sentence):
    loop.open(port, scheme=scheme, host=host)
    assert loop.error().startswith(sentence)


def test_bounds_of_places():
    for host, port in (("x", 1), ("x" * 253, 65535), ("x" * 252, 65534), ("[::1]", 80)):
        assert stream.check_host("http", host, port) == host.strip("[]")


def test_connecting_has_its_time(loop):
    with deaf_port() as port:
        loop.open(port, timeout_ms=50)
        assert loop.error() == "timed out after 0.05 s"


def test_look_up_has_its_time(loop, monkeypatch):
    before = threads()
    reached, go = slow_look_up(monkeypatch)
    loop.open(80, host="api.example.com", timeout_ms=50)
    assert loop.error() == "timed out after 0.05 s"
    assert reached.wait(DEADLINE_S)
    go.set()
    eventually(lambda: not begun(before))
    assert loop.is_silent()


def addresses(monkeypatch, *ports):
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in ports]
    monkeypatch.setattr(stream, "getaddrinfo", lambda *_: found)


def test_next_address_when_one_refuses_or_is_silent(loop, monkeypatch):
    with serving(answering()) as port, deaf_port() as deaf:
        addresses(monkeypatch, closed_port(), port)
        loop.open(1, host="two.example")
        assert loop.answer() == ANSWER
        addresses(monkeypatch, deaf, port)
        # each has its share; a busy machine may need more for the second
        for limit_ms in (400, 4000, 40000):
            loop.open(1, host="two.example", timeout_ms=limit_ms)
            ended = loop.end()
            if ended == ("end", b""):
                break
        assert ended == ("end", b"") and loop.came.pop("k") == ANSWER


def both_families(monkeypatch, v6: int, v4: int):
    """Let a name have ::1 with the port *v6*, and then 127.0.0.1 with the port *v4*."""
    found = [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", v6, 0, 0))]
    found.append((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", v4)))
    monkeypatch.setattr(stream, "getaddrinfo", lambda *_: found)


def test_addresses_race_and_the_one_that_worked_is_first_the_next_time(loop, monkeypatch):
    begun_with = []
    begin = stream._Race.begin

    def noted(race, now):
        if not race.open and race._left and race.reason == "no address":
            begun_with.append(race._left[0][4][1])
        return begin(race, now)

    monkeypatch.setattr(stream._Race, "begin", noted)
    stream._worked.clear()
    with serving(answering()) as port, deaf_port() as deaf:
        addresses(monkeypatch, deaf, port)
        for _ in range(2):  # 10 s for all: half of it is no share of the first any more
            loop.open(1, host="two.example", timeout_ms=10000)
            assert loop.answer() == ANSWER
        assert begun_with == [deaf, port]
        addresses(monkeypatch, deaf)  # it has gone from the name
        loop.open(1, host="two.example", timeout_ms=50)
        assert loop.error() == "timed out after 0.05 s"
    stream._worked.clear()


def test_the_one_that_worked_may_fail_later(loop, monkeypatch):
    stream._worked.clear()
    with serving(answering()) as port:
        other = closed_port()
        stream._worked["two.example", 1] = ("127.0.0.1", other)
        addresses(monkeypatch, port, other)
        loop.open(1, host="two.example")
        assert loop.answer() == ANSWER
        assert stream._worked == {("two.example", 1): ("127.0.0.1", port)}
    stream._worked.clear()


def test_families_take_turns():
    six, four = socket.AF_INET6, socket.AF_INET
    found = [(six, 1), (six, 2), (six, 3), (four, 4), (four, 5)]
    entries = [(family, socket.SOCK_STREAM, 6, "", (n,)) for family, n in found]
    order = lambda worked: [entry[4][0] for entry in stream._in_turns(entries, worked)]
    assert order(None) == [1, 4, 2, 5, 3]
    assert order((5,)) == [5, 1, 4, 2, 3]
    assert order((9,)) == [1, 4, 2, 5, 3]
    assert stream._in_turns([], None) == []


def test_a_family_that_this_machine_lacks_costs_no_pause(loop, monkeypatch):
    with serving(answering()) as port:
        both_families(monkeypatch, closed_port(), port)
        loop.open(1, host="two.example")
        assert loop.answer() == ANSWER
    stream._worked.clear()


def test_reason_is_that_of_the_address_that_said_no(loop, monkeypatch):
    with deaf_port() as deaf:
        for ports in ((deaf, closed_port()), (closed_port(), deaf)):
            addresses(monkeypatch, *ports)
            loop.open(1, host="two.example", timeout_ms=100)
            assert loop.error() == "connection refused"


def test_at_most_so_many_addresses_are_tried(loop, monkeypatch):
    with serving(answering()) as port:
        addresses(monkeypatch, *[closed_port()] * (stream.ADDRESSES - 1), port)
        loop.open(1, host="many.example")
        assert loop.answer() == ANSWER
        addresses(monkeypatch, *[closed_port()] * stream.ADDRESSES, port)
        loop.open(1, host="more.example")
        assert loop.error() == "connection refused"


@pytest.mark.parametrize(
    "code, sentence",
    [
        (errno.ENETUNREACH, "no way to that host: network is unreachable"),
        (errno.EHOSTUNREACH, "no way to that host: no route to host"),
        (errno.ETIMEDOUT, "the host does not answer"),
        (errno.EMFILE, "this process may open no more files (ulimit -n)"),
        (errno.EPIPE, "the connection was reset"),
        (None, "the connection failed (OSError)"),
    ],
)
def test_words_for_what_a_kernel_says(code, sentence):
    assert stream.words(OSError(code, "x") if code else OSError()) == sentence


def test_no_thread_and_no_descriptor_are_errors_too(loop, monkeypatch):
    def fail(*_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(connections._thread, "start_new_thread", fail)
        loop.open(80)
    assert loop.error() == "no connection can be opened: can't start new thread"

    def exhausted():
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(connections.os, "pipe", exhausted)
        loop.open(80)
    assert loop.error() == "no connection can be opened: Too many open files"


def test_bug_in_a_worker_tells_its_kind_and_nothing_of_the_request(loop, monkeypatch):
    def fail(*_):
        raise ValueError(CANARY)

    monkeypatch.setattr(stream.Stream, "send", fail)
    with serving(head) as port:
        loop.open(port)
        assert loop.error() == "the connection failed inside (ValueError)"


# -- close, in every phase


def slow_look_up(monkeypatch) -> tuple:
    """Return two events: a look-up has begun; it may end."""
    reached, go, real = threading.Event(), threading.Event(), socket.getaddrinfo

    def look(host, port, *rest):
        if len(rest) > 2:
            raise socket.gaierror(socket.EAI_NONAME, "a name")
        reached.set()
        assert go.wait(DEADLINE_S)
        return real("127.0.0.1", port, *rest)

    monkeypatch.setattr(stream, "getaddrinfo", look)
    return reached, go


def test_close_during_the_look_up(loop, monkeypatch):
    reached, go = slow_look_up(monkeypatch)
    before = threads()
    with serving(answering()) as port:
        loop.open(port, host="api.example.com")
        assert reached.wait(DEADLINE_S)
        assert begun(before) == 3  # the acceptor, the worker, the look-up
        loop.it.close("k")
        eventually(lambda: begun(before) == 2)  # the worker does not wait for the look-up
        loop.open(port)  # the same key again, and then the late result of the first
        go.set()
        assert loop.answer() == ANSWER
    eventually(lambda: not begun(before))
    assert loop.is_silent()


def test_close_while_connecting(loop):
    before = threads()
    with deaf_port() as port:
        before_fds = len(descriptors())
        loop.open(port)
        eventually(lambda: len(descriptors()) > before_fds + 2)  # the pipe, and then the socket
        loop.it.close("k")
        eventually(lambda: not begun(before))
    assert loop.is_silent()


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"])
def test_close_before_and_inside_the_answer(loop, first):
    gate = Gate(first)
    with serving(gate) as port:
        loop.open(port)
        assert gate.reached.wait(DEADLINE_S)
        loop.it.close("k")
        assert gate.gone.wait(DEADLINE_S)
    assert loop.it.poll() == []


def test_close_while_sending(loop):
    reached, gone, go = threading.Event(), threading.Event(), threading.Event()

    def talk(connection):
        head(connection)
        reached.set()
        go.wait(DEADLINE_S)
        while connection.recv(1 << 20):
            pass
        gone.set()

    with serving(talk) as port:
        loop.open(port, parts=[*GET, bytes(32 << 20)])
        assert reached.wait(DEADLINE_S)
        before = threads()
        loop.it.close("k")
        eventually(lambda: before - threads())
        go.set()
        assert gone.wait(DEADLINE_S)
    assert loop.is_silent()


def test_close_after_the_end_and_of_strangers(loop):
    with serving(answering()) as port:
        loop.open(port)
        eventually(lambda: loop.it._open["k"].final)
        loop.it.close("k")
        loop.it.close("k")
        loop.it.close("never opened")
        assert loop.it.poll() == []
        loop.open(port)
        assert loop.answer() == ANSWER


def test_closing_whenever_it_happens_leaves_nothing(loop):
    chance, closed = random.Random(7), set()
    with serving(answering()) as port, serving(Gate(b"x" * 100)) as slow, deaf_port() as deaf:
        for i in range(300):
            loop.open(
                chance.choice((port, port, slow, deaf, 1)),
                key=i,
                host=chance.choice(("127.0.0.1", "localhost")),
            )
            for _ in range(chance.randrange(3)):
                assert closed.isdisjoint(key for key, _, _ in loop.it.poll())
            if chance.random() < 0.9:
                closed.add(chance.randrange(i + 1))
                for key in closed:
                    loop.it.close(key)
        loop.it.close_all()
        assert loop.it.poll() == []


# -- what it loads, and how it lets go

CHILD = """
import os, select, sys
sys.path.insert(0, %r)
before = set(sys.modules)
%s
from clawlite.linux.net.connections import Connections
reader, writer = os.pipe()
it = Connections(writer, {})
it.open(1, "http", sys.argv[2], int(sys.argv[1]), [b"GET / HTTP/1.1\\r\\n\\r\\n"], 10000)
events = []
while sys.argv[3:] != ["leave"] and not (events and events[-1][1] != "data"):
    select.select([reader], [], [], 10)
    os.read(reader, 9)
    events += it.poll()
print(events, *sorted(set(sys.modules) - before), sep="\\n")
"""


def child(first: str, port: int, *words) -> list:
    done = subprocess.run(
        [sys.executable, "-S", "-c", CHILD % (str(ROOT), first), str(port), *words],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S * 3,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_plain_http_loads_next_to_nothing(host):
    with serving(answering()) as port:
        events, *modules = child("", port, host)
    assert events == str([(1, "data", ANSWER), (1, "end", b"")])
    heavy = {
        "socket",
        "ssl",
        "_ssl",
        "threading",
        "http",
        "email",
        "selectors",
        "enum",
        "re",
        "urllib",
        "encodings.idna",
        "stringprep",
    }
    assert heavy.isdisjoint(modules)
    assert [name for name in modules if name.startswith("clawlite.linux.")] == [
        "clawlite.linux.net",
        "clawlite.linux.net.connections",
        "clawlite.linux.net.stream",
    ]


def test_python_whose_c_module_lacks_a_name_uses_socket():
    with serving(answering()) as port:
        events, *modules = child(
            "import socket, types; sys.modules['_socket'] = types.ModuleType('_socket')",
            port,
            "localhost",
        )
    assert events == str([(1, "data", ANSWER), (1, "end", b"")]) and "socket" in modules


def test_process_may_leave_at_any_time():
    """Neither a stalled answer nor a worker keeps it, and nothing is said about that."""
    gate = Gate()
    with serving(gate) as port:
        assert child("", port, "127.0.0.1", "leave")[0] == "[]"
