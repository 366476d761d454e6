"""TLS: who is believed, who is not, and in which words."""

import os
import socket
import ssl
import subprocess
import sys
import threading
from datetime import datetime, timedelta, timezone

import pytest
import trustme
from net_servers import (  # noqa: F401
    ANSWER,
    DEADLINE_S,
    GET,
    POST,
    answering,
    head,
    loop,
    nothing_left,
    reset,
    serving,
    tls,
)


@pytest.mark.parametrize("host, names", [("localhost", ["localhost"]), ("127.0.0.1", [None])])
def test_https(loop, tls, host, names):
    got = []
    with tls.serving(answering(got=got), host) as port:
        for _ in range(2):
            loop.open(port, host=host, scheme="https", parts=POST)
            assert loop.answer() == ANSWER
    assert got == [b"".join(POST)] * 2
    assert tls.names == names * 2


def test_https_in_large_both_ways(loop, tls):
    total = 5 << 20

    def talk(connection):
        head(connection)
        left = total
        while left:
            left -= len(connection.recv(65536))
        connection.sendall(bytes(total))

    with tls.serving(talk, "localhost") as port:
        loop.open(port, host="localhost", scheme="https", parts=[*GET, bytes(total)])
        assert loop.answer() == bytes(total)


def test_authorities_of_the_settings_count_in_place_of_the_machines(loop, tls, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", os.devnull)
    for authority, good in ((tls.ca, True), (trustme.CA(), False)):
        loop.it._authorities, loop.it._tls = (
            [ssl.PEM_cert_to_DER_cert(authority.cert_pem.bytes().decode())],
            None,
        )
        with tls.serving(answering(), "localhost") as port:
            loop.open(port, host="localhost", scheme="https")
            if good:
                assert loop.answer() == ANSWER
            else:
                assert "signed by nobody this machine knows" in loop.error()


def test_ca_folder_counts(loop, tls, monkeypatch, tmp_path):
    folder = tmp_path / "certs"
    folder.mkdir()
    done = subprocess.run(
        ["openssl", "x509", "-hash", "-noout", "-in", tmp_path / "ca.pem"],
        capture_output=True,
        text=True,
        check=True,
    )
    (tmp_path / "ca.pem").rename(folder / (done.stdout.strip() + ".0"))
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    with tls.serving(answering(), "localhost") as port:
        loop.open(port, host="localhost", scheme="https")
        assert loop.answer() == ANSWER


def refused(loop, serving, host="localhost") -> str:
    """Return why a https connection fails; not one byte of the request may have left."""
    got = []
    with serving(answering(got=got)) as port:
        loop.open(port, host=host, scheme="https")
        sentence = loop.error()
    assert got == []
    return sentence


def test_certificate_that_has_expired_or_is_too_new(loop, tls):
    now, day = datetime.now(timezone.utc), timedelta(days=1)
    old = refused(
        loop,
        lambda talk: tls.serving(talk, "localhost", not_before=now - 2 * day, not_after=now - day),
    )
    assert old == "certificate of localhost has expired"
    new = refused(
        loop,
        lambda talk: tls.serving(talk, "localhost", not_before=now + day, not_after=now + 2 * day),
    )
    assert new == "certificate of localhost is not valid yet (is this machine's clock right?)"


@pytest.mark.parametrize(
    "host, named",
    [("localhost", "other.example"), ("127.0.0.1", "localhost"), ("127.0.0.1", "127.0.0.2")],
)
def test_certificate_for_somebody_else(loop, tls, host, named):
    assert (
        refused(loop, lambda talk: tls.serving(talk, named), host)
        == "certificate is not for %s" % host
    )


def test_certificate_signed_by_nobody_known(loop, tls, tmp_path):
    sentence = "certificate of localhost is signed by nobody this machine knows (self-signed?)"
    stranger = tls.settings(trustme.CA().issue_cert("localhost"))
    assert refused(loop, lambda talk: tls.serving(talk, settings=stranger)) == sentence
    other = trustme.CA()  # its own certificate, signed by itself
    pem = tmp_path / "self.pem"
    pem.write_bytes(other.private_key_pem.bytes() + other.cert_pem.bytes())
    settings = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    settings.load_cert_chain(pem)
    assert refused(loop, lambda talk: tls.serving(talk, settings=settings)) == sentence


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_old_tls_is_refused(loop, tls):
    settings = tls.settings(tls.ca.issue_cert("localhost"))
    settings.set_ciphers("ALL:@SECLEVEL=0")
    settings.minimum_version = ssl.TLSVersion.TLSv1
    settings.maximum_version = ssl.TLSVersion.TLSv1_1
    assert (
        refused(loop, lambda talk: tls.serving(talk, settings=settings))
        == "localhost speaks only old TLS; 1.2 is the least"
    )


def test_tls_1_2_is_enough(loop, tls):
    settings = tls.settings(tls.ca.issue_cert("localhost"))
    settings.maximum_version = ssl.TLSVersion.TLSv1_2
    with tls.serving(answering(), settings=settings) as port:
        loop.open(port, host="localhost", scheme="https")
        assert loop.answer() == ANSWER


def test_server_that_speaks_no_tls(loop, tls):
    def talk(connection):
        connection.recv(10)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass

    with serving(talk) as port:
        loop.open(port, host="localhost", scheme="https")
        assert loop.error() == "localhost does not speak TLS on this port (is it http?)"
    with serving(lambda connection: connection.recv(4096)) as port:
        loop.open(port, host="localhost", scheme="https")
        assert loop.error() == "the connection was reset"


def test_python_without_tls_says_so(loop, monkeypatch):
    import clawlite.linux.net

    monkeypatch.delattr(clawlite.linux.net, "tls", raising=False)
    monkeypatch.delitem(sys.modules, "clawlite.linux.net.tls", raising=False)
    monkeypatch.setitem(sys.modules, "ssl", None)
    with serving(lambda connection: connection.recv(4096)) as port:
        loop.open(port, scheme="https")
        assert loop.error() == "https needs TLS, and this Python has none (module ssl)"


def test_reset_in_tls_ends_the_connection(loop, tls):
    """OpenSSL tells CPython of a reset what it tells of an end without close_notify; that a part
    is missing the codec sees.
    """

    def talk(connection):
        head(connection)
        connection.sendall(b"half")
        reset(connection)

    with tls.serving(talk, "localhost") as port:
        loop.open(port, host="localhost", scheme="https")
        assert loop.end() in (("end", b""), ("error", "the connection was reset"))
    assert b"half".startswith(loop.came.get("k", b""))


def test_handshake_that_stalls(loop, tls):
    reached, gone = threading.Event(), threading.Event()

    def talk(connection):
        while connection.recv(4096):
            reached.set()
        gone.set()

    with serving(talk) as port:
        loop.open(port, host="localhost", scheme="https", timeout_ms=200)
        assert loop.error() == "timed out after 0.2 s"
        assert gone.wait(DEADLINE_S)
        gone.clear()
        reached.clear()
        loop.open(port, host="localhost", scheme="https")
        assert reached.wait(DEADLINE_S)
        loop.it.close("k")
        assert gone.wait(DEADLINE_S)
    assert loop.is_silent()


def test_close_inside_a_tls_answer(loop, tls):
    gone = threading.Event()

    def talk(connection):
        head(connection)
        connection.sendall(b"half")
        try:
            connection.recv(1000)
        finally:
            gone.set()

    with tls.serving(talk, "localhost") as port:
        loop.open(port, host="localhost", scheme="https")
        loop.step()
        assert loop.came["k"] == b"half"
        loop.it.close("k")
        assert gone.wait(DEADLINE_S)
    assert loop.is_silent()
