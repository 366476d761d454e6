"""A board speaks TLS: real servers on loopback, an authority of the test, and certificates that
do not fit.
"""

import os
import re
import socket
import ssl
import subprocess
import threading
from pathlib import Path

import pytest
from agents import INITIALIZE, Agent, board
from asking_boards import made
from llm_server import Server, calls, say

from clawlite.core.image import image as layout

HERE = Path(__file__).parent
KEY = "k-canary-7f3a"


def talk(image: str, line: str = "how is it?", folders=(), marks="") -> str:
    """Say *line* to the board, and return all that it says."""
    words, env = board(image, stand_ins=folders)
    done = subprocess.run(
        words,
        input=line.encode() + b"\n",
        capture_output=True,
        timeout=300,
        env=dict(os.environ, **env, BOARD_KEY=KEY, PINS=marks),
    )
    said = done.stdout.decode()
    assert done.returncode == 0 and done.stderr == b"" and KEY not in said, done
    return said


def test_a_turn_with_a_tool_call_over_tls(micropython, tmp_path):
    with Server(
        [calls(("look", {"where": "bed 2"})), say("The garden is green. " * 600)], tls=True
    ) as server:
        said = talk(made(tmp_path, server.endpoint, Path(server.ca_file).read_bytes()))
        assert (
            said.count("The garden is green.") == 600
            and len(server.requests) == 2
            and server.failed == []
        )
        assert server.requests[0].headers["authorization"] == "Bearer " + KEY


@pytest.mark.parametrize(
    "kind, why",
    [
        ("expired", "The certificate validity has expired"),
        ("self-signed", "The certificate is not correctly signed by the trusted CA"),
        ("wrong host", "does not match with the expected CN"),
    ],
)
def test_a_certificate_that_does_not_fit_is_refused_and_nothing_is_sent(
    micropython, tmp_path, kind, why
):
    with Server([say("no")] * 3, tls=kind) as server:
        said = talk(made(tmp_path, server.endpoint, Path(server.ca_file).read_bytes()))
        assert re.search(
            r"provider remote: certificate of 127\.0\.0\.1 is refused: .*%s.* "
            r"\(tried 1 of 2\) - check the certificate of https://.* and the clock; "
            r".*; next: reflex\n" % why,
            said,
        ), said
        assert "By rule." in said and server.requests == []


def test_an_authority_that_is_not_named_does_not_count(micropython, tmp_path):
    import trustme

    with Server([say("no")] * 3, tls=True) as server:
        said = talk(made(tmp_path, server.endpoint, trustme.CA().cert_pem.bytes()))
        assert (
            "certificate of 127.0.0.1 is refused: The certificate is not correctly signed by the "
            "trusted CA"
            in said
            and server.requests == []
        )


def test_one_of_several_authorities_is_enough(micropython, tmp_path):
    import trustme

    with Server([say("Fine.")], tls=True) as server:
        both = trustme.CA().cert_pem.bytes() + Path(server.ca_file).read_bytes()
        assert "Fine." in talk(made(tmp_path, server.endpoint, both))


@pytest.fixture
def listening():
    """Return (port, list of accepted connections); what a test lets them do is its own affair."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = []

        def accept():
            try:
                while True:
                    taken.append(server.accept()[0])
                    act = getattr(server_act, "act", None)
                    if act:
                        act(taken[-1])
            except OSError:
                pass

        server_act = type("Act", (), {})()
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1], server_act
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for one in taken:
            one.close()


def authority() -> bytes:
    import trustme

    return trustme.CA().cert_pem.bytes()


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 200 OK\r\n\r\n", b"\x16\x03\x03\x00\x40" + bytes(20)]
)
def test_a_handshake_that_is_cut_or_none_fails_and_passes(micropython, tmp_path, listening, answer):
    port, server = listening

    def act(connection):
        connection.recv(4096)
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_RDWR)

    server.act = act
    said = talk(made(tmp_path, f"https://127.0.0.1:{port}/v1", authority()))
    assert (
        "provider remote: no connection to 127.0.0.1: " in said
        and "(tried 2 of 2); next: reflex" in said
        and "By rule." in said
    )


def test_a_server_that_says_nothing_in_a_handshake_holds_nobody_up(
    micropython, tmp_path, listening
):
    port, server = listening
    said = threading.Event()

    def act(connection):
        connection.recv(4096)
        said.set()

    server.act = act
    words, env = board(made(tmp_path, f"https://127.0.0.1:{port}/v1", authority()))
    with Agent(words, tmp_path / "home", True, env=dict(env, BOARD_KEY=KEY)) as agent:
        agent.expect("> ")
        agent.line("how is it?")
        assert said.wait(60)
        agent.record({"jsonrpc": "2.0", "id": 1, "method": "claw.initialize", "params": INITIALIZE})
        agent.expect('"conformanceLevel"')  # of the answer; the terminal echoes what was asked
        agent.record({"jsonrpc": "2.0", "id": 2, "method": "claw.status", "params": {}})
        agent.expect('"uptime_ms"')
        assert "By rule." not in agent.text()


def test_before_the_clock_is_set_nothing_is_believed(micropython, tmp_path):
    with Server([say("no")], tls=True) as server:
        said = talk(
            made(tmp_path, server.endpoint, Path(server.ca_file).read_bytes()),
            folders=(HERE / "modules", HERE / "unset"),
            marks=str(tmp_path),
        )
        assert (
            "provider remote: certificates cannot be checked before the clock is set (tried 1 of "
            "2) - "
            in said
            and "; next: reflex" in said
        )
        assert server.requests == []


def test_an_image_without_an_authority_does_not_start_there(micropython, tmp_path):
    words, env = board(made(tmp_path, "https://127.0.0.1:9/v1"))
    with Agent(words, tmp_path / "home", env=env) as agent:
        assert agent.wait() == 2
        assert (
            "the image names no certificate authority - name one: [tls] ca in clawlite.toml"
            in agent.errors()
        )


def test_the_image_holds_the_certificates(tmp_path):
    pem = authority()
    image = Path(made(tmp_path, "https://127.0.0.1:9/v1", pem)).read_bytes()
    opened = layout.Image(lambda at, size: image[at : at + size], len(image))
    assert (
        opened.section(layout.NETWORK) == [None, [ssl.PEM_cert_to_DER_cert(pem.decode())]]
        and "https" in opened.requires
    )
    assert not os.path.exists(tmp_path / "ca.der")
