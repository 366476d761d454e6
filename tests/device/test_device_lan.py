"""A board reaches its gateway over the LAN: real MicroPython, real ``clawlite gateway
--listen``, and a wire in between that can be cut.
"""

import os
import select
import signal
import socket
import threading
from pathlib import Path

import pico_stack
import pytest
from agents import Agent, board, clawlite, eventually, linux
from gateways import KEY, project
from llm_server import Server, calls, say

HERE = Path(__file__).parent
ANSWER = "".join("Bed %d of the garden is grün. " % number for number in range(45))


class Relay:
    """A port that leads to another one.

    ``is_mute``: nothing passes that comes from there; ``marks``: what comes from there is cut
    behind the first, then behind the next"""

    def __init__(self, port: int):
        self._to, self.is_mute, self.seen, self._pairs, self.marks = (
            port,
            False,
            bytearray(),
            [],
            [],
        )
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._wake = os.pipe()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.write(self._wake[1], b"x")
        self._thread.join()
        self._server.close()
        self.cut()
        for fd in self._wake:
            os.close(fd)

    def cut(self):
        for pair in self._pairs:
            for one in pair:
                one.close()
        self._pairs = []

    def _run(self):
        while True:
            ends = {
                one: (pair[1 - at], at)
                for pair in list(self._pairs)
                for at, one in enumerate(pair)
                if one.fileno() >= 0
            }
            ready = select.select([self._server, self._wake[0], *ends], [], [], 0.02)[0]
            if self._wake[0] in ready:
                return
            for one in ready:
                try:
                    if one is self._server:
                        near = one.accept()[0]
                        self._pairs.append(
                            (near, socket.create_connection(("127.0.0.1", self._to), 60))
                        )
                    else:
                        self._pass(one, *ends[one])
                except OSError:
                    if one is self._server:
                        near.close()

    def _pass(self, one, other, at: int):
        data = one.recv(65536)
        self.seen += data
        if not data:
            one.close()
            other.close()
        elif at == 1 and self.marks and self.marks[0] in data:
            other.sendall(data[: data.index(self.marks[0]) + len(self.marks.pop(0))])
            self.cut()
        elif not (self.is_mute and at == 1):
            other.sendall(data)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture
def port() -> int:
    return free_port()


def token(tmp_path, name: str = "shed") -> str:
    return clawlite(
        "gateway", "token", name, cwd=tmp_path, CLAWLITE_STATE=tmp_path / "state"
    ).stdout.strip()


def gateway(tmp_path, port: int, *words) -> Agent:
    started = Agent(
        linux("gateway", tmp_path / "garden", "--listen", f"127.0.0.1:{port}", *words),
        tmp_path / "home",
        cwd=tmp_path,
        env={"CLAWLITE_STATE": tmp_path / "state", "GARDEN_KEY": KEY},
    )
    eventually(lambda: "listens on" in started.errors(), 20)
    return started


def device(tmp_path, image: str, secret: str, *folders, **env) -> Agent:
    words, more = board(image, stand_ins=folders)
    return Agent(words, tmp_path / "home", env={**more, "GATEWAY_TOKEN": secret, **env})


def built(tmp_path, server, port: int, more: str = "") -> str:
    return project(
        tmp_path / "garden",
        server.endpoint,
        gateway=f'wire = "tcp"\naddress = "127.0.0.1:{port}"\n{more}',
    )


def test_a_turn_with_a_tool_call(micropython, tmp_path, port):
    secret = token(tmp_path)
    with Server([calls(("look", {"where": "bed 2"})), say(ANSWER)]) as server, Relay(port) as wire:
        image = built(tmp_path, server, wire.port)
        with gateway(tmp_path, port) as running, device(tmp_path, image, secret) as agent:
            agent.expect("> ")
            agent.line("how is it?")
            assert agent.expect("\n> ").strip() == ANSWER.strip()
            assert "shed: runs garden" in running.errors() and len(server.requests) == 2
        for canary in (KEY, "uthorization", secret, secret.partition(":")[2]):
            assert canary.encode() not in wire.seen
    assert secret.startswith("shed:") and len(secret) == 69


@pytest.mark.parametrize(
    "marks",
    [
        [b'"claw.gateway.text"'],
        [b'"claw.gateway.text"', b'"params":{"id"'],
        [b'"stop"', b'"stop"', b'"claw.gateway.hello"'],
    ],
)
def test_a_cut_in_the_middle_of_an_answer_loses_nothing_and_asks_once(
    micropython, tmp_path, port, marks
):
    secret = token(tmp_path)
    with Server([say(ANSWER)]) as server, Relay(port) as wire:
        image = built(tmp_path, server, wire.port)
        with gateway(tmp_path, port), device(tmp_path, image, secret) as agent:
            agent.expect("> ")
            wire.marks = list(marks)
            agent.line("how is it?")
            assert (
                agent.expect("\n> ").strip() == ANSWER.strip()
                and len(server.requests) == 1
                and wire.marks == []
            )


def test_a_gateway_that_was_started_anew_is_found_again(micropython, tmp_path, port):
    secret = token(tmp_path)
    with Server([say("One.")] * 4) as server:
        image = built(tmp_path, server, port)
        with gateway(tmp_path, port), device(tmp_path, image, secret) as agent:
            agent.expect("> ")
            agent.line("how is it?")
            agent.expect("One.\n> ")
        with device(tmp_path, image, secret) as agent:  # there is none yet
            agent.expect("> ")
            agent.line("how is it?")
            with gateway(tmp_path, port) as running:
                agent.expect("One.\n> ")
                running.end()
                running.signal(signal.SIGTERM)
                assert running.wait() == 0
                with gateway(tmp_path, port):
                    agent.line("how is it?")
                    agent.expect("One.\n> ")
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "secret, why",
    [("shed:" + "0" * 64, "it has ended the connection"), ("", "secret GATEWAY_TOKEN: not found")],
)
def test_without_a_right_token_the_rules_answer(micropython, tmp_path, port, secret, why):
    token(tmp_path)
    with Server([]) as server:
        image = built(tmp_path, server, port)
        with gateway(tmp_path, port), device(tmp_path, image, secret) as agent:
            agent.expect("> ")
            agent.line("how is it?")
            said = agent.expect("By rule.\n> ")
    assert (
        f"provider remote: no gateway at 127.0.0.1:{port}: {why}" in said
        and "(clawlite gateway --listen ADDRESS:PORT starts one there)" in said
    )


def test_a_gateway_that_has_gone_mute_is_given_up_and_the_rules_answer(micropython, tmp_path, port):
    secret = token(tmp_path)
    with Server([say("One.")] * 9) as server, Relay(port) as wire:
        image = built(tmp_path, server, wire.port)
        with gateway(tmp_path, port), device(tmp_path, image, secret) as agent:
            agent.expect("> ")
            agent.line("how is it?")
            agent.expect("One.\n> ")
            wire.is_mute = True
            agent.line("how is it?")
            assert "it says nothing" in agent.expect("By rule.\n> ")
            wire.is_mute = False
            wire.cut()
            agent.line("how is it?")
            agent.expect("One.\n> ")


def test_tls_to_the_gateway(micropython, tmp_path, port):
    import trustme

    ca, secret = trustme.CA(), token(tmp_path)
    (tmp_path / "garden").mkdir()
    ca.cert_pem.write_to_path(tmp_path / "garden/ca.pem")
    issued = ca.issue_cert("127.0.0.1")
    (tmp_path / "gateway.pem").write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
    (tmp_path / "gateway.key").write_bytes(issued.private_key_pem.bytes())
    with Server([say("Fine.")]) as server, Relay(port) as wire:
        image = built(tmp_path, server, wire.port, 'tls = true\n[tls]\nca = ["ca.pem"]\n')
        with (
            gateway(
                tmp_path,
                port,
                "--tls-cert",
                tmp_path / "gateway.pem",
                "--tls-key",
                tmp_path / "gateway.key",
            ),
            device(tmp_path, image, secret) as agent,
        ):
            agent.expect("> ")
            agent.line("how is it?")
            agent.expect("Fine.\n> ")
        assert b"claw.gateway" not in wire.seen and b"how is it" not in wire.seen
        trustme.CA().cert_pem.write_to_path(tmp_path / "garden/ca.pem")
        image = built(tmp_path, server, wire.port, 'tls = true\n[tls]\nca = ["ca.pem"]\n')
        with (
            gateway(
                tmp_path,
                port,
                "--tls-cert",
                tmp_path / "gateway.pem",
                "--tls-key",
                tmp_path / "gateway.key",
            ),
            device(tmp_path, image, secret) as agent,
        ):
            agent.expect("> ")
            agent.line("how is it?")
            assert (
                "certificate of 127.0.0.1 is refused: The certificate is not correctly signed"
                in agent.expect("By rule.\n> ")
            )


def test_the_gateway_sets_a_clock_that_nobody_has_set(micropython, tmp_path, port):
    secret = token(tmp_path)
    with Server([]) as server:
        image = built(tmp_path, server, port)
        with (
            gateway(tmp_path, port),
            device(
                tmp_path, image, secret, HERE / "modules", HERE / "unset", PINS=tmp_path
            ) as agent,
        ):
            agent.expect("> ")
            eventually(lambda: (tmp_path / "clock").exists())


def test_it_works_as_it_is_flashed(micropython, mpy_cross, tmp_path, port):
    from clawlite.host.firmware import firmware

    secret = token(tmp_path)
    firmware.build(tmp_path / "tree", mpy_cross)
    with Server([calls(("look", {"where": "bed 2"})), say(ANSWER)]) as server:
        image = built(tmp_path, server, port)
        (tmp_path / "tree/start.py").write_text(
            "import sys, main\nsys.exit(main.main(sys.argv[1:]))\n"
        )
        with gateway(tmp_path, port):
            words = [
                pico_stack.micropython(),
                "-X",
                "heapsize=112k",
                tmp_path / "tree/start.py",
                image,
            ]
            with Agent(
                words,
                tmp_path / "home",
                env={"MICROPYPATH": f"{tmp_path / 'tree'}:.frozen", "GATEWAY_TOKEN": secret},
            ) as agent:
                agent.expect("> ")
                agent.line("how is it?")
                assert agent.expect("\n> ").strip() == ANSWER.strip()
