"""What an idle device costs a gateway: 100 on the LAN, 100 on serial ports, each of which has
asked and been answered.
"""

import asyncio
import re
from pathlib import Path

import pytest
from agents import Agent, eventually, linux
from gateways import KEY, LineBoard, Peer, project, serve
from llm_server import Server, say

from clawlite.host.gateway import gateway as gateways
from clawlite.host.gateway.images import Images

pytestmark = pytest.mark.soak
COUNT, FIRST = 100, 10
IDLE = 100 * 1024  # bytes of a device


def resident(agent: Agent) -> int:
    """Return the bytes of memory of a process (proc(5), VmRSS)."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{agent.process.pid}/status").read_text())
    return int(found.group(1)) * 1024


@pytest.fixture
def digest(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    with Server(
        lambda request: say("You asked %s. " % request.body["messages"][-1]["content"] * 10)
    ) as server:
        project(tmp_path / "garden", server.endpoint)
        yield next(iter(Images([str(tmp_path / "garden")], print)._found))


def start(tmp_path, *words) -> Agent:
    return Agent(
        linux("gateway", tmp_path / "garden", *words),
        tmp_path / "home",
        cwd=tmp_path,
        env={"CLAWLITE_STATE": tmp_path / "state", "GARDEN_KEY": KEY},
    )


def test_a_hundred_on_the_lan(tmp_path, digest):
    async def ask(address, first, last) -> list:
        peers = [
            Peer(f"d{number}", gateways.make_token(f"d{number}"), digest)
            for number in range(first, last)
        ]
        await asyncio.gather(*[peer.connect(address) for peer in peers])
        for answer in await asyncio.gather(*[peer.end(peer.begin("one?")) for peer in peers]):
            assert answer["result"]["stop"] == "stop"
        return peers

    async def grow(running, address) -> float:
        kept = await ask(address, 0, FIRST)
        before = resident(running)
        kept += await ask(address, FIRST, COUNT)
        return (resident(running) - before) / (COUNT - FIRST)

    with start(tmp_path, "--listen", "127.0.0.1:0") as running:
        address = eventually(lambda: re.search(r"listens on (\S+),", running.errors())).group(1)
        each = asyncio.run(grow(running, address))
    print(f"an idle device on the LAN: {each / 1024:.1f} KiB")
    assert each <= IDLE


def test_a_hundred_on_serial_ports(tmp_path, digest):
    def grown(count: int) -> int:
        boards = [LineBoard(digest, f"{number}?") for number in range(count)]
        words = [word for board in boards for word in ("--port", board.path)]
        for board in boards:
            board.release()
        try:
            with start(tmp_path, *words) as running:
                serve(boards, lambda: all(board.result for board in boards))
                for number, board in enumerate(boards):
                    assert (
                        board.result["result"] == {"stop": "stop"}
                        and board.text == f"You asked {number}?. " * 10 + "\n"
                    )
                return resident(running)
        finally:
            for board in boards:
                board.close()

    few, many = grown(FIRST), grown(COUNT)
    each = (many - few) / (COUNT - FIRST)
    print(f"an idle device on a serial port: {each / 1024:.1f} KiB")
    assert each <= IDLE
