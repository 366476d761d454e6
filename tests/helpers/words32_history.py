"""What words32.mjs runs on MicroPython: the operator's lines in the file ``lines`` beside the
image, of which the last asks for the samples that are on record in the files ``DAY.readings`` there
(samplefiles.py).
"""

import os
import sys

sys.path.insert(0, "/lib")  # that port has an ``operator`` of its own, frozen
from main import open_device  # noqa: E402
from unload import drop  # noqa: E402

_MOST_STEPS = 1000


class Answers:
    """Keeps the last answer."""

    text = b""

    def write(self, data):
        self.text = bytes(data)
        return len(data)

    def flush(self):
        pass


def stand_ins():
    pass


def ready(path: str):
    folder = path.rpartition("/")[0]
    device = open_device(path, folder, True)
    device.stdio.output = Answers()
    device.agent.start(device.now_ms())
    os.mkdir(folder + "/readings")
    for name in os.listdir(folder):
        if name.endswith(".readings"):
            os.rename("%s/%s" % (folder, name), "%s/readings/%s" % (folder, name.split(".")[0]))
    for _ in range(20):
        device.rules.tick(device.now_ms())
        device.settle()
    for line in _read_lines(folder)[:-1]:
        _ask(device, line)
    from clawlite.core.base.clock import iso8601  # noqa: F401  # as its first heartbeat does

    drop()
    return device


def turn(device, path: str):
    """Ask; yields between the steps.  Raises ``ValueError`` when there is no result."""
    _ask(device, _read_lines(path.rpartition("/")[0])[-1])
    for _ in range(_MOST_STEPS):
        yield
        device.agent.tick(device.now_ms() + 1000)
        device.settle()
        if b'"samples"' in device.stdio.output.text:
            break
    else:
        raise ValueError(device.stdio.output.text)
    drop()


def _ask(device, line: bytes):
    device.stdio.feed(line)
    event = device.stdio.next_event()
    device.event(event[0], event[1], device.now_ms())
    device.settle()


def _read_lines(folder: str) -> list:
    with open(folder + "/lines", "rb") as file:
        return file.read().splitlines(True)
