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
    with _lines(path) as file:
        for _ in range(2):
            for _ in _steps(device, file.readline()):
                pass
    drop()
    return device


def turn(device, path: str):
    """Hand in the other lines; yields between steps."""
    count, before = 0, device.stdio.output.count
    with _lines(path) as file:
        file.readline(), file.readline()
        line = file.readline()
        while line:
            for _ in _steps(device, line):
                yield
            count += 1
            line = file.readline()
    if device.stdio.output.count - before <= count // 2:
        raise ValueError(device.stdio.output.count)
    drop()


def _steps(device, line: bytes):
    """Do what the device's loop does with *line*; yields where it is back in the loop, so that what
    is thrown away can be collected there.
    """
    device.stdio.feed(line)
    event = device.stdio.next_event()
    agent = device.agent
    while event:
        device.event(event[0], event[1], device.now_ms())
        event = device.stdio.next_event()
        is_settled = False
        while not is_settled:
            yield
            if agent.later:
                task, value, error = agent.later.pop(0)
                agent.drive(task, value, error, device.now_ms())
                task = value = error = None
                continue
            effect = agent.next_effect()
            if effect:
                device.carry_out(effect)
                effect = None
                continue
            ended = device.handlers.poll(device.now_ms())
            device.hand_in(ended)
            is_settled = not ended and not agent.effects and not agent.later


def _lines(path: str):
    return open(path.rpartition("/")[0] + "/lines", "rb")
