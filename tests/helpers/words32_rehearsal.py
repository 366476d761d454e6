"""What words32.mjs runs on MicroPython: a rehearsal of the rule in the file ``says`` beside the
image, over what is on record in the files ``DAY.readings`` there (samplefiles.py).
"""

import os

from main import open_device
from unload import drop

_LAST = b"Nothing acted"  # the last line of each rehearsal


class Screen:
    """Keeps the last text, and whether a rehearsal came to its end."""

    has_ended = False
    text = b""

    def write(self, data):
        self.text = bytes(data)
        self.has_ended = self.has_ended or _LAST in self.text
        return len(data)

    def flush(self):
        pass


class Ticks:
    """A clock by which each step of a rehearsal is the last of its part, so that what a step throws
    away can be collected after it.
    """

    now = 0

    def now_ms(self) -> int:
        self.now += 1000
        return self.now


def stand_ins():
    pass


def ready(path: str):
    folder = path.rpartition("/")[0]
    device = open_device(path, folder, False)
    device.stdio.output = Screen()
    device.agent.start(device.now_ms())
    device.console.greet()
    os.mkdir(folder + "/readings")
    for name in os.listdir(folder):
        if name.endswith(".readings"):
            os.rename("%s/%s" % (folder, name), "%s/readings/%s" % (folder, name.split(".")[0]))
    for _ in range(20):
        device.rules.tick(device.now_ms())
        device.settle()
    drop()
    return device


def turn(device, path: str):
    """Rehearse; yields between the steps.  Raises ``ValueError`` when it came to no end."""
    with open(path.rpartition("/")[0] + "/says") as file:
        device.console.line(file.read(), device.now_ms())
    device.settle()
    rules = device.rules
    if rules._playing:
        rules.now_ms = Ticks().now_ms
    while rules._playing:
        yield
        rules.tick(0)
        device.settle()
    if not device.stdio.output.has_ended:
        raise ValueError(device.stdio.output.text)
    drop()
