"""The host's end of a reliable line for tests: a file descriptor, noise on it by a seed, and
what came over it.
"""

import json
import os
import random
import select
import time

from agents import DEADLINE_S

from clawlite.core.line.frame import RECORD
from clawlite.core.line.line import UP, Line
from clawlite.host.serial.line_text import TextBeside

SEED = int(os.environ.get("CLAWLITE_SEED", "1"))


def noisy(random_, data: bytes, odds: int) -> bytes:
    """Return *data* with one byte of *odds* flipped, dropped, doubled, or another inserted; odds
    0: as it is.
    """
    out = bytearray()
    for byte in data:
        if odds and not random_.randrange(odds):
            out += random_.choice(
                (
                    bytes([byte ^ 1 << random_.randrange(8)]),
                    b"",
                    bytes([byte, byte]),
                    bytes([random_.randrange(4, 256), byte]),
                )
            )
        else:
            out.append(byte)
    return bytes(out)


class Host:
    """A program at the host's end of *fd*, which stays the caller's.

    Public: ``events`` of the line but for text, ``text`` of all that came beside frames, ``went``:
    all bytes to the board."""

    def __init__(self, fd: int, odds: int = 0):
        self.fd, self.odds, self.random = fd, odds, random.Random(SEED)
        self.line = Line(
            1 + self.random.randrange(1 << 30), 4096, limit=1 << 20, backlog=1 << 20, baud=10000000
        )
        self.events, self.text, self.went = [], b"", b""
        self._beside = TextBeside()

    def now(self) -> int:
        return time.monotonic_ns() // 1000000

    def write(self, data: bytes):
        self.went += data
        os.write(self.fd, noisy(self.random, data, self.odds))

    def run(self, until):
        """Serve the line until the function says so."""
        end = time.monotonic() + DEADLINE_S * 3
        while not until():
            assert time.monotonic() < end, (self.events[-3:], self.text[-500:])
            data = self.line.output()
            while data:
                self.write(data)
                data = self.line.output()
            at = self.line.deadline()
            if select.select(
                [self.fd], [], [], 0.2 if at is None else min(0.2, max(0, at - self.now()) / 1000)
            )[0]:
                came = noisy(self.random, os.read(self.fd, 4096), self.odds)
                self.text += self._beside.take(came)
                self.line.feed(came, self.now())
            self.line.tick(self.now())
            event = self.line.next_event()
            while event:
                self.events.append(event)
                event = self.line.next_event()

    def of(self, kind: int) -> list:
        return [data for found, data in self.events if found == kind]

    def open(self):
        """Say hello, and wait for the board's."""
        ups = len(self.of(UP))
        self.line.hello(self.now())
        self.run(lambda: len(self.of(UP)) > ups)

    def expect(self, text: bytes):
        """Wait for text for people; what came before it is not looked at again."""
        self.run(lambda: text in self.text)
        self.text = self.text.partition(text)[2]

    def send(self, message):
        self.line.send(json.dumps(message, ensure_ascii=False).encode(), self.now())

    def type(self, text: str):
        """Send what a person types."""
        self.send({"jsonrpc": "2.0", "method": "claw.console.line", "params": {"text": text}})

    def answer(self, id):
        """Wait for the answer to request *id*, and return it."""

        def find():
            return [found for found in map(json.loads, self.of(RECORD)) if found.get("id") == id]

        self.run(find)
        return find()[0]
