"""What words32.mjs runs on MicroPython: an operator's calls, a line each in the file ``lines``
beside the image. The first two lines are answered before READY is measured.
"""

import sys

sys.path.insert(0, "/lib")  # that port has an ``operator`` of its own, frozen
from main import open_device  # noqa: E402
from unload import drop  # noqa: E402


class Results:
    """Where answers go: counts those with a result."""

    def __init__(self):
        self.count = 0

    def write(self, data):
        self.count += b'"result"' in bytes(data)
        return len(data)

    def flush(self):
        pass


def stand_ins():
    pass


def ready(path: str):
    device = open_device(path, path.rpartition("/")[0], True)
    device.stdio.output = Results()
    device.agent.start(device.now_ms())
    device.settle()
    _hand_in(device, _lines(path)[:2])
    drop()
    return device


def turn(device, path: str):
    lines = _lines(path)[2:]
    before = device.stdio.output.count
    _hand_in(device, lines)
    if device.stdio.output.count - before <= len(lines) // 2:
        raise ValueError(device.stdio.output.count)
    drop()


def _lines(path: str) -> list:
    with open(path.rpartition("/")[0] + "/lines", "rb") as file:
        return file.read().split(b"\n")[:-1]


def _hand_in(device, lines: list):
    for line in lines:
        device.stdio.feed(line + b"\n")
        event = device.stdio.next_event()
        while event:
            device.event(event[0], event[1], device.now_ms())
            device.settle()
            event = device.stdio.next_event()
