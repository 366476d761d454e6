"""Wi-Fi, the time and the watchdog of a board.  The unix port has none of them, so
modules/ and unset/ stand in, as MicroPython documents them; NTP is real UDP.
"""

import json
import re
import socket
import struct
import threading
import time
from pathlib import Path

import pytest
from agents import Agent, board, eventually, make_bench

HERE = Path(__file__).parent
NETWORKS = [{"ssid": "Garten", "password": "rose-rose"}, {"ssid": "Käse", "password": "brie-brie"}]


@pytest.fixture
def device(micropython, tmp_path):
    """Return a function that starts a board whose flash is tmp_path/disk; what the world tells it
    is in tmp_path/world.

    The stand-ins are not linked, like a board's own modules.  So linked code must use their
    documented names."""
    (tmp_path / "disk/state").mkdir(parents=True)
    (tmp_path / "world").mkdir()
    (tmp_path / "bench").mkdir()
    image = make_bench(tmp_path / "bench")

    def start(*folders, networks=NETWORKS, watchdog_ms=0, **more):
        if networks is not None:
            (tmp_path / "disk/wifi.json").write_text(
                networks
                if isinstance(networks, str)
                else json.dumps({"networks": networks, **more})
            )
        start = (
            "import main\ndevice, why = main.attempt(%r, %r, False, "
            "%r)\nassert device, why\nmain.watch(device, %d)\n"
            "main.run(device, None)\n"
            % (str(image), str(image.parent), str(tmp_path / "disk/state"), watchdog_ms)
        )
        words, env = board(stand_ins=(*folders, HERE / "modules"), start=start)
        return Agent(
            words,
            tmp_path / "home",
            env=dict(env, PINS=tmp_path / "world", MARKS=tmp_path / "world"),
        )

    return start


@pytest.fixture
def world(tmp_path):
    return tmp_path / "world"


def wifi(agent, wanted: str) -> None:
    """Wait until /status says *wanted*."""

    def says():
        agent.line("/status")
        return wanted in agent.expect("> ")

    eventually(says)


def test_the_first_network_that_is_there_is_joined_while_the_console_serves(device, world):
    (world / "air").write_text("Käse\tbrie-brie\t192.168.7.9\nGarten\tanother\t1.1.1.1\n")
    with device(country="DE") as agent:
        agent.expect("> ")
        agent.line("echo on")
        agent.expect("You said: on\n")
        wifi(agent, "Wi-Fi: Käse, address 192.168.7.9")
        assert (world / "radio").read_text().splitlines() == [
            "country DE",
            "active True",
            "connect Garten rose-rose",
            "disconnect",
            "connect Käse brie-brie",
        ]
        agent.end()
        assert agent.wait() == 0
        assert (
            "rose-rose" not in agent.text() + agent.errors()
            and "brie-brie" not in agent.text() + agent.errors()
        )


def test_a_network_that_is_lost_is_joined_again(device, world):
    (world / "air").write_text("Garten\trose-rose\t10.0.0.2\n")
    with device() as agent:
        agent.expect("> ")
        wifi(agent, "Wi-Fi: Garten, address 10.0.0.2")
        (world / "air").write_text("Garten\tchanged\t10.0.0.2\nKäse\tbrie-brie\t10.0.0.3\n")
        wifi(agent, "Wi-Fi: Käse, address 10.0.0.3")


FILE = '{"networks": [{"ssid": "Garten", "password": "rose-rose"}], %s}'


@pytest.mark.parametrize(
    "networks",
    ["{", '{"networks": [{"ssid": "x"}]}', "[]", '{"networks": 5}', "x" * 3000]
    + [FILE % '"dns": ["192.168.1.1"]', FILE % '"dns": [5, 53]', FILE % '"dns": "192.168.1.1"']
    + [FILE % '"ntp": 5', FILE % '"ntp": "pool.ntp.org"', FILE % '"ntp": ["a", 70000]']
    + [FILE % '"country": "Germany"', FILE % '"country": 49'],
)
def test_a_file_that_is_damaged_is_told_and_the_agent_serves(device, networks):
    with device(networks=networks) as agent:
        agent.expect("> ")
        wifi(agent, "Wi-Fi: wifi.json cannot be used")


def test_without_the_file_nothing_is_switched_on(device, world):
    with device(networks=None) as agent:
        agent.expect("> ")
        agent.line("/status")
        assert "Wi-Fi" not in agent.expect("> ") and not (world / "radio").exists()


def test_a_radio_that_cannot_be_switched_on_is_told_and_tried_again(device, world):
    (world / "air").write_text("Garten\trose-rose\t10.0.0.2\n")
    (world / "dead").touch()
    with device(networks=NETWORKS[:1]) as agent:
        agent.expect("> ")
        wifi(agent, "Wi-Fi: the radio says: ")
        (world / "dead").unlink()
        wifi(agent, "Wi-Fi: Garten, address 10.0.0.2")
        agent.line("echo on")
        agent.expect("You said: on\n")
        assert agent.errors() == ""


@pytest.mark.parametrize("parts", ["network.WLAN", "network.STA_IF", "network.country"])
def test_a_radio_that_lacks_something_is_one_less_thing(device, world, parts):
    (world / "air").write_text("Garten\trose-rose\t10.0.0.2\n")
    (world / "without").write_text(parts)
    with device(country="DE") as agent:
        agent.expect("> ")
        if parts == "network.country":
            wifi(agent, "Wi-Fi: Garten, address 10.0.0.2")
        agent.line("/status")
        assert ("Wi-Fi" in agent.expect("> ")) is (parts == "network.country")
        assert agent.errors() == ""


class Server(threading.Thread):
    """An NTP server on loopback; its first answers are forged or cut."""

    def __init__(self, epoch_s: int):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port, self.epoch_s, self.asked = self.socket.getsockname()[1], epoch_s, []
        self.start()

    def run(self):
        data, address = self.socket.recvfrom(512)
        self.asked.append(data)
        whole = struct.pack(
            ">BB22x8s8xII", 0x24, 2, data[40:48], self.epoch_s + 2208988800 & 0xFFFFFFFF, 0
        )
        forged = struct.pack(">BB22x8s8xII", 0x24, 2, b"\0" * 8, 4000000000, 0)
        for answer in (
            forged,
            whole[:47],
            bytes([0x23]) + whole[1:],
            whole[:1] + b"\0" + whole[2:],
            whole,
        ):
            self.socket.sendto(answer, address)


# 2026; 2036, in the next era of NTP
@pytest.mark.parametrize("epoch_s", [1767225600, 2100000000])
def test_ntp_sets_a_clock_that_nobody_has_set(device, world, epoch_s):
    server = Server(epoch_s)
    (world / "air").write_text("Garten\trose-rose\t127.0.0.1\n")
    with device(HERE / "unset", ntp=["127.0.0.1", server.port]) as agent:
        agent.expect("> ")
        at = eventually(lambda: (world / "clock").exists() and (world / "clock").read_text())
        assert at == str(
            (*time.gmtime(epoch_s)[:3], time.gmtime(epoch_s)[6] + 1, *time.gmtime(epoch_s)[3:6], 0)
        )
        assert len(server.asked) == 1 and len(server.asked[0]) == 48 and server.asked[0][0] == 0x23


def clock(epoch_s) -> str:
    return "\x1e" + json.dumps(
        {"jsonrpc": "2.0", "method": "claw.clock", "params": {"epoch_s": epoch_s}}
    )


def test_whoever_holds_the_line_is_asked_and_sets_the_clock_once(device, world):
    with device(HERE / "unset", networks=None) as agent:
        asked = agent.expect("> ")
        assert json.loads(re.search("\x1e(.*)\n", asked)[1]) == {
            "jsonrpc": "2.0",
            "method": "claw.clock",
        }
        for nonsense in (5, 1700000000, 4102444800, "1767225600", None, 1767225600.5, True):
            agent.line(clock(nonsense))
        agent.line("echo on")
        agent.expect("You said: on\n")
        assert not (world / "clock").exists()
        agent.line(clock(1767225600))
        agent.line(clock(1800000000))
        agent.line("echo on")
        agent.expect("You said: on\n")
        assert (world / "clock").read_text() == "(2026, 1, 1, 4, 0, 0, 0, 0)"
        assert "\x1e" not in agent.expect("> ")


def test_without_a_clock_to_set_the_agent_counts_on_from_what_it_was_told(device, world):
    (world / "without").write_text("machine.RTC")
    with device(HERE / "unset", networks=None) as agent:
        agent.expect("> ")
        agent.line(clock(1767225600))
        agent.line(clock(1800000000))
        agent.line("echo on")
        agent.expect("You said: on\n")
        # nobody is asked again
        assert "\x1e" not in agent.expect("> ") and agent.errors() == ""


def test_ntp_tells_a_board_that_has_no_clock_to_set(device, world):
    server = Server(1767225600)
    (world / "air").write_text("Garten\trose-rose\t127.0.0.1\n")
    (world / "without").write_text("machine.RTC")
    with device(HERE / "unset", ntp=["127.0.0.1", server.port]) as agent:
        assert "\x1e" in agent.expect("> ")
        eventually(lambda: server.asked)

        def is_told():
            agent.line("echo on")
            return "\x1e" not in agent.expect("You said: on\n> ")

        eventually(is_told)
        assert agent.errors() == "" and not (world / "clock").exists()


def test_a_clock_that_is_set_stays(device, world):
    with device(networks=None) as agent:
        assert "\x1e" not in agent.expect("> ")
        agent.line(clock(1767225600))
        agent.line("echo on")
        agent.expect("You said: on\n")
        assert not (world / "clock").exists()


def test_the_watchdog_is_armed_when_the_agent_runs_and_fed_by_its_loop(device, world):
    with device(networks=None, watchdog_ms=1000) as agent:
        agent.expect("> ")
        eventually(
            lambda: (world / "watchdog").exists() and (world / "watchdog").read_text() == "1000"
        )
        # nothing else happens, and the watchdog is still fed
        eventually(lambda: (world / "fed").exists() and (world / "fed").stat().st_size >= 4)
        agent.end()
        assert agent.wait() == 0


def test_a_watchdog_that_is_missing_is_told_and_the_agent_runs(device, world):
    (world / "without").write_text("machine.WDT")
    with device(networks=None, watchdog_ms=1000) as agent:
        agent.expect("> ")
        agent.line("echo on")
        agent.expect("You said: on\n")
        assert re.fullmatch(
            "clawlite: there is no watchdog of 1000 ms here: .*WDT.*\n", agent.errors()
        )


def test_without_a_wish_there_is_no_watchdog(device, world):
    with device(networks=None) as agent:
        agent.expect("> ")
        agent.end()
        assert agent.wait() == 0 and not (world / "watchdog").exists()
