"""Through proxies: which one is chosen, what it is told, and that its password shows nowhere."""

import select
import socket

import pytest
from net_servers import (  # noqa: F401
    ANSWER,
    CANARY,
    DEADLINE_S,
    POST,
    Gate,
    answering,
    closed_port,
    head,
    loop,
    nothing_left,
    serving,
    tls,
)

from clawlite.linux.net import proxy as net_proxy


def proxying(ports: dict, seen: list, answer=None):
    """A forward proxy: CONNECT, and requests with a whole URL; *ports* says where a host:port
    really is.
    """

    def talk(connection):
        request = head(connection)
        seen.append(request)
        if answer is not None:
            connection.sendall(answer)
            return
        method, target, _ = request.decode().split("\r\n")[0].split(" ")
        place = target if method == "CONNECT" else target.split("/")[2]
        with socket.create_connection(("127.0.0.1", ports[place])) as far:
            if method == "CONNECT":
                connection.sendall(b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")
            else:
                far.sendall(request)
            ends = {connection: far, far: connection}
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    data = end.recv(65536)
                    if not data:
                        return
                    ends[end].sendall(data)

    return talk


def test_http_through_a_proxy(loop):
    seen, got = [], []
    with (
        serving(answering(got=got)) as port,
        serving(proxying({"api.example.com": port, "api.example.com:81": port}, seen)) as proxy,
    ):
        loop.it._environ = {"http_proxy": "http://us%%65r:%s@127.0.0.1:%d/" % (CANARY, proxy)}
        loop.open(80, host="api.example.com", parts=POST)
        assert loop.answer() == ANSWER
        loop.open(81, host="api.example.com", parts=POST)
        assert loop.answer() == ANSWER
    login = b"Proxy-Authorization: Basic dXNlcjpwYXNzLWNhbmFyeS03Nw==\r\n"
    assert (
        seen[0]
        == b"POST http://api.example.com/v1/chat HTTP/1.1\r\n"
        + login
        + b"Host: x\r\nContent-Length: 4\r\n\r\n"
    )
    assert seen[1].startswith(b"POST http://api.example.com:81/v1/chat HTTP/1.1\r\n")
    assert [data[-4:] for data in got] == [b"body", b"body"]


def test_https_through_a_proxy(loop, tls):
    seen, got = [], []
    with (
        tls.serving(answering(got=got), "api.example.com") as port,
        serving(proxying({"api.example.com:443": port}, seen)) as proxy,
    ):
        loop.it._environ = {"https_proxy": "me:%s@127.0.0.1:%d" % (CANARY, proxy)}
        loop.open(443, host="api.example.com", scheme="https", parts=POST)
        assert loop.answer() == ANSWER
    assert seen == [
        b"CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n"
        b"Proxy-Authorization: Basic bWU6cGFzcy1jYW5hcnktNzc=\r\n\r\n"
    ]
    assert got == [b"".join(POST)]  # as it was: the proxy's login is not for the provider


@pytest.mark.parametrize(
    "answer, sentence",
    [
        (b"HTTP/1.1 407 No\r\n\r\n", "it wants another user name and password"),
        (
            b"HTTP/1.1 403 No\r\n\r\n",
            "it does not let us through to api.example.com:443 (it answers 403)",
        ),
        (
            b"HTTP/1.1 20 No\r\n\r\n",
            "it does not let us through to api.example.com:443 (it answers 20)",
        ),
        (
            b"SSH-2.0-x\r\n\r\n",
            "it does not let us through to api.example.com:443 (it answers no HTTP)",
        ),
        (b"\r\n\r\n", "it does not let us through to api.example.com:443 (it answers no HTTP)"),
        (b"HTTP/1.1 200 OK\r\n\r\nmore", "it said more than it was asked"),
        (b"HTTP/1.1 200 OK\r\n", "no whole answer to CONNECT"),
        (b"", "no whole answer to CONNECT"),
        (
            b"HTTP/1.1 200 OK\r\nX: " + b"x" * (net_proxy.MAX_HEAD - 23) + b"\r\n\r",
            "no whole answer to CONNECT",
        ),
    ],
)
def test_proxy_that_says_no(loop, answer, sentence):
    with serving(proxying({}, [], answer)) as proxy:
        loop.it._environ = {"ALL_PROXY": "http://me:%s@127.0.0.1:%d" % (CANARY, proxy)}
        loop.open(443, host="api.example.com", scheme="https")
        assert loop.error() == "proxy 127.0.0.1:%d: %s" % (proxy, sentence)


def test_proxy_wants_a_login_at_all(loop):
    with serving(proxying({}, [], b"HTTP/1.0 407 Proxy Authentication Required\r\n\r\n")) as proxy:
        loop.it._environ = {"https_proxy": "127.0.0.1:%d" % proxy}
        loop.open(443, host="api.example.com", scheme="https")
        assert loop.error() == "proxy 127.0.0.1:%d: it wants a user name and password" % proxy


@pytest.mark.parametrize(
    "size, fits",
    [
        (net_proxy.MAX_HEAD - 1, True),
        (net_proxy.MAX_HEAD, True),
        (net_proxy.MAX_HEAD + 1, True),
        (net_proxy.MAX_HEAD + 2, False),
    ],
)
def test_head_of_a_proxy_is_bounded(loop, size, fits):
    answer = b"HTTP/1.1 403 No\r\nX: "
    with serving(proxying({}, [], answer + b"x" * (size - len(answer) - 4) + b"\r\n\r\n")) as proxy:
        loop.it._environ = {"https_proxy": "127.0.0.1:%d" % proxy}
        loop.open(443, host="h.example", scheme="https")
        assert loop.error().endswith("(it answers 403)") == fits


def test_proxy_that_is_not_there(loop):
    port = closed_port()
    loop.it._environ = {"http_proxy": "http://me:%s@127.0.0.1:%d" % (CANARY, port)}
    loop.open(80, host="api.example.com")
    assert loop.error() == "proxy 127.0.0.1:%d: connection refused" % port


def test_proxy_that_stalls_has_the_time_of_connecting(loop):
    gate = Gate()
    with serving(gate) as proxy:
        loop.it._environ = {"https_proxy": "127.0.0.1:%d" % proxy}
        loop.open(443, host="api.example.com", scheme="https", timeout_ms=50)
        assert loop.error() == "proxy 127.0.0.1:%d: timed out after 0.05 s" % proxy
        assert gate.gone.wait(DEADLINE_S)


def test_loopback_never_goes_through_a_proxy(loop):
    with serving(answering()) as port:
        loop.it._environ = {"all_proxy": "http://127.0.0.1:%d" % closed_port()}
        for host in ("127.0.0.1", "localhost"):
            loop.open(port, host=host)
            assert loop.answer() == ANSWER


def chosen(scheme, host, port=443, **environ):
    """Return host:port of the proxy that is chosen, or None."""
    found = net_proxy.choose(scheme, host, port, environ)
    return found and found._name()


def test_which_variable_counts():
    assert chosen("https", "x.example") is None
    assert chosen("https", "x.example", http_proxy="p:1") is None
    assert chosen("https", "x.example", https_proxy="p:1", all_proxy="q:2") == "p:1"
    assert chosen("https", "x.example", https_proxy="", all_proxy="q:2") == "q:2"
    assert chosen("https", "x.example", HTTPS_PROXY="p:1") == "p:1"
    assert chosen("https", "x.example", https_proxy="p:1", HTTPS_PROXY="q:2") == "p:1"
    assert chosen("http", "x.example", HTTP_PROXY="p:1") == "p:1"
    assert chosen("http", "x.example", HTTP_PROXY="p:1", REQUEST_METHOD="GET") is None
    assert chosen("http", "x.example", http_proxy="HTTP://p/") == "p:80"
    assert chosen("http", "x.example", http_proxy="u:p@[2001:db8::1]") == "[2001:db8::1]:80"
    assert (
        chosen("http", "x.example", http_proxy="http://[2001:db8::1]:8080") == "[2001:db8::1]:8080"
    )


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "127.0.0.1",
        "127.255.0.9",
        "::1",
        "::ffff:127.0.0.1",
    ],
)
def test_loopback(host):
    assert chosen("http", host, all_proxy="p:1") is None


@pytest.mark.parametrize(
    "host",
    [
        "127.example.com",
        "localhost.example.com",
        "128.0.0.1",
        "::2",
        "::ffff:10.0.0.1",
        "notlocalhost",
    ],
)
def test_not_loopback(host):
    assert chosen("http", host, all_proxy="p:1") == "p:1"


@pytest.mark.parametrize(
    "no_proxy, host, port, direct",
    [
        ("example.com:\u00b2", "example.com", 2, False),  # a digit that is no number
        ("*", "x.example", 1, True),
        ("*:2", "x.example", 1, False),
        ("*:1", "x.example", 1, True),
        ("example.com", "example.com", 1, True),
        ("example.com", "api.example.com", 1, True),
        ("example.com", "notexample.com", 1, False),
        (".example.com", "api.example.com", 1, True),
        (".example.com", "example.com", 1, True),
        ("..example.com", "b.example.com", 1, True),
        ("*.example.com", "api.example.com", 1, True),
        ("EXAMPLE.com", "api.Example.COM.", 1, True),
        ("example.com:8080", "api.example.com", 8080, True),
        ("example.com:8080", "api.example.com", 80, False),
        ("a, b c,,example.com ", "example.com", 1, True),
        ("10.0.0.1", "10.0.0.1", 1, True),
        ("0.0.1", "10.0.0.1", 1, False),
        ("2001:db8::1", "2001:db8::1", 1, True),
        ("[2001:db8::1]:80", "2001:db8::1", 80, True),
        ("[2001:db8::1]:80", "2001:db8::1", 81, False),
        ("", "example.com", 1, False),
        (".", "example.com", 1, False),
        ("example.com:x", "example.com", 1, False),
        ("10.0.0.0/8", "10.20.30.40", 1, True),
        ("10.0.0.0/8", "11.0.0.1", 1, False),
        ("localhost,192.168.4.0/22", "192.168.7.255", 1, True),
        ("localhost,192.168.4.0/22", "192.168.8.0", 1, False),
        ("192.168.4.1/22", "192.168.5.1", 1, True),  # its last bits are no matter
        ("0.0.0.0/0", "8.8.8.8", 1, True),
        ("10.0.0.1/32", "10.0.0.1", 1, True),
        ("10.0.0.1/32", "10.0.0.2", 1, False),
        ("10.0.0.0/33", "10.0.0.0", 1, False),
        ("10.0.0.0/", "10.0.0.0", 1, False),
        ("10.0.0.0/x", "10.0.0.0", 1, False),
        ("10.0.0.0/8", "10.example.com", 1, False),
        ("fd00::/8", "fd12::1", 1, True),
        ("[fd00::]/8", "fd12::1", 1, True),
        ("[fd00::/8]", "fd12::1", 1, True),
        ("fd00::/8", "fe80::1", 1, False),
        ("2001:db8::/33", "2001:db8:7fff::1", 1, True),
        ("2001:db8::/33", "2001:db8:8000::1", 1, False),
        ("::/0", "10.0.0.1", 1, False),
        ("10.0.0.0/8", "::ffff:10.1.2.3", 1, False),  # no spelling that an address has here
        ("10.0.0.0/8", "::ffff:a01:203", 1, True),
        ("2001:0db8:0::1", "2001:db8::1", 1, True),
    ],
)
def test_no_proxy(no_proxy, host, port, direct):
    assert (chosen("http", host, port, all_proxy="p:1", no_proxy=no_proxy) is None) == direct
    assert (chosen("http", host, port, ALL_PROXY="p:1", NO_PROXY=no_proxy) is None) == direct


@pytest.mark.parametrize(
    "url",
    [
        "socks5://me:%s@p:1",
        "https://me:%s@p:1",
        "http://me:%s@",
        "http://me:%s@p:x",
        "http://me:%s@p:0",
        "http://me:%s@p:70000",
        "http://me:%s%%zz@p:1",
        "http://me:%s%%4@p:1",
        "http://me:%s@a b:1",
        "http://me:%s@[::1",
        "me%%0d:%s@",
    ],
)
def test_proxy_that_cannot_be_used_is_an_error_that_names_the_variable(loop, url):
    loop.it._environ = {"HTTPS_PROXY": url % CANARY}
    loop.open(443, host="api.example.com", scheme="https")
    sentence = loop.error()  # which looks for the canary
    assert sentence in (
        "HTTPS_PROXY: expected http://[user:password@]host:port",
        "HTTPS_PROXY: a proxy is an http:// one; no other kind is supported",
    )
