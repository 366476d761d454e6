"""A board asks the network's name server for the addresses of names, without waiting: real UDP
on loopback, forged answers before the right one.
"""

import json
import socket
import struct
import threading
from pathlib import Path

import pytest
from agents import Agent, board, eventually
from asking_boards import made
from llm_server import Server, say

HERE = Path(__file__).parent


class NameServer(threading.Thread):
    """Answers each question with what *answers*, a function(question's data) -> list of
    messages, makes of it.
    """

    def __init__(self, answers):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port, self._answers, self.asked = self.socket.getsockname()[1], answers, []

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", ("127.0.0.1", self.port))
        self.join()
        self.socket.close()

    def run(self):
        while True:
            data, sender = self.socket.recvfrom(512)
            if not data:
                return
            self.asked.append(data)
            for message in self._answers(data):
                self.socket.sendto(message, sender)


def answer(data: bytes, *records, flags: int = 0x8180) -> bytes:
    return (
        data[:2]
        + struct.pack(">HHHHH", flags, 1, len(records), 0, 0)
        + data[12:]
        + b"".join(records)
    )


def record(kind: int, data: bytes, name: bytes = b"\xc0\x0c") -> bytes:
    return name + struct.pack(">HHIH", kind, 1, 60, len(data)) + data


HERE_IT_IS = (
    record(5, b"\x05other\xc0\x12"),
    record(1, bytes((127, 0, 0, 1)), b"\x05other\xc0\x12"),
)


@pytest.fixture
def device(micropython, tmp_path):
    """Return a function that starts a board with Wi-Fi and a name server on loopback: (image,
    server) -> Agent.
    """
    (tmp_path / "disk/state").mkdir(parents=True)
    (tmp_path / "world").mkdir()
    (tmp_path / "world/air").write_text("Garten\trose-rose\t127.0.0.1\n")

    def start(image, server, **env):
        (tmp_path / "disk/wifi.json").write_text(
            json.dumps(
                {
                    "networks": [{"ssid": "Garten", "password": "rose-rose"}],
                    "dns": ["127.0.0.1", server.port],
                }
            )
        )
        start = (
            "import main\ndevice, why = main.attempt(%r, %r, False, "
            "%r)\nassert device, why\n"
            "main.run(device, None)\n"
            % (str(image), str(Path(image).parent), str(tmp_path / "disk/state"))
        )
        words, more = board(stand_ins=[HERE / "modules"], start=start)
        return Agent(
            words,
            tmp_path / "home",
            env=dict(more, PINS=tmp_path / "world", BOARD_KEY="k-canary-7f3a", **env),
        )

    return start


def test_a_provider_is_found_by_its_name(device, tmp_path):
    def answers(data):
        other = bytes([data[0] ^ 1]) + data[1:]
        wrong = record(1, bytes((127, 0, 0, 9)))
        return [
            answer(other, wrong),
            answer(data.replace(b"garden", b"gerden"), wrong),
            data,
            answer(data, *HERE_IT_IS)[:20],
            answer(data, wrong, flags=0x0180),
            answer(data, flags=0x8182),
            answer(data, *HERE_IT_IS),
        ]

    with Server([say("Fine.")]) as server, NameServer(answers) as names:
        image = made(tmp_path, f"http://model.garden:{server.port}/v1")
        with device(image, names) as agent:
            agent.expect("> ")
            agent.line("how is it?")
            agent.expect("Fine.\n")
            assert (
                names.asked[0][12:] == b"\x05model\x06garden\0\0\1\0\1"
                and names.asked[0][2:12] == b"\1\0\0\1\0\0\0\0\0\0"
                and len(names.asked) == 1
            )
            assert server.requests[0].headers["host"] == f"model.garden:{server.port}"


@pytest.mark.parametrize("flags, records", [(0x8183, ()), (0x8180, (record(28, bytes(16)),))])
def test_a_name_that_nobody_has_is_an_error_at_once(device, tmp_path, flags, records):
    with NameServer(lambda data: [answer(data, *records, flags=flags)]) as names:
        with device(made(tmp_path, "http://model.garden:9/v1"), names) as agent:
            agent.expect("> ")
            agent.line("how is it?")
            assert (
                "no connection to model.garden: no host of the name model.garden is known (tried "
                "2 of 2)" in agent.expect("By rule.\n")
            )


def test_the_watchdog_is_fed_while_a_name_server_says_nothing(device, tmp_path):
    with NameServer(lambda data: []) as names:
        with device(made(tmp_path, "http://model.garden:9/v1"), names) as agent:
            agent.expect("> ")
            agent.line("how is it?")
            # asked again, with the same question
            eventually(lambda: len(names.asked) >= 2)
            assert names.asked[0] == names.asked[1]
            agent.record({"jsonrpc": "2.0", "id": 1, "method": "claw.status", "params": {}})
            agent.expect('"error"')  # before initialize; served it is


def test_claw_status_says_how_the_radio_stands(device, tmp_path):
    from agents import INITIALIZE

    with NameServer(lambda data: []) as names:
        with device(made(tmp_path, "http://127.0.0.1:9/v1"), names) as agent:
            agent.expect("> ")
            agent.record(
                {"jsonrpc": "2.0", "id": 1, "method": "claw.initialize", "params": INITIALIZE}
            )
            agent.expect('"protocolVersion"')

            def told():
                agent.record({"jsonrpc": "2.0", "id": 2, "method": "claw.status", "params": {}})
                found = {}
                while found.get("id") != 2:
                    agent.expect("\x1e")
                    found = json.loads(agent.expect("\n"))
                return found["result"]

            eventually(lambda: told()["conditions"] == ["Wi-Fi: Garten, address 127.0.0.1"])
            assert set(told()) == {"state", "uptime_ms", "conditions"}
