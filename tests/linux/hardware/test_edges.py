"""Edges that the kernel notes: a pipe stands for a line, and holds events as linux/gpio.h has them
(test_pins.py compiles that header and reads what is packed).
"""

import errno
import os
import select
import time

import pytest
from linux.hardware.test_pins import FakeKernel, row

from clawlite.core.image.pins import INPUT, OUTPUT, PULL_UP, SimulatedPins
from clawlite.linux.hardware import gpio
from clawlite.linux.hardware.edges import watch_edges
from clawlite.linux.hardware.pins import Pins


class Piped(FakeKernel):
    """Lines whose descriptors are pipes; ``ends`` {line: the end to write events to}."""

    def __init__(self, tmp_path):
        super().__init__(tmp_path, b"pinctrl-rp1")
        self.ends, self.configs, self.refuses = {}, {}, False

    def ioctl(self, fd, request, data):
        if request == gpio.SET_CONFIG:
            if self.refuses:
                raise OSError(errno.ENXIO, "No such device or address")
            flags, attributes = gpio.CONFIG.unpack(data)
            self.configs[self.open_files[fd][1]] = flags
            assert attributes == 0
            return
        super().ioctl(fd, request, data)
        if request == gpio.GET_LINE:
            request_of = gpio.REQUEST.unpack(data)
            reader, writer = os.pipe()
            self.open_files[reader] = self.open_files.pop(request_of[-1])
            self.ends[request_of[0]] = writer
            data[:] = gpio.REQUEST.pack(*request_of[:-1], reader)

    def edge(self, line: int, level: int, age_ms: int = 0):
        at_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - age_ms * 1000000
        kind = gpio.RISING if level else gpio.RISING + 1
        os.write(self.ends[line], gpio.EVENT.pack(at_ns, kind))

    def close(self, fd):
        if self.open_files[fd][0] == "line":
            writer = self.ends.pop(self.open_files[fd][1])
            os.close(fd)
            os.close(writer)
        super().close(fd)


@pytest.fixture
def kernel(tmp_path):
    return Piped(tmp_path)


def test_edges_come_by_one_descriptor_with_their_age(kernel):
    pins = Pins([row("door", 4, PULL_UP), row("bell", 5, INPUT), row("pump", 6, OUTPUT)], kernel)
    edges = watch_edges(pins, ["bell", "door"])
    assert kernel.configs == {
        4: gpio.INPUT | gpio.PULL_UP | gpio.EDGES,
        5: gpio.INPUT | gpio.EDGES,
    }
    assert edges.read() == [] and not select.select([edges], [], [], 0)[0]
    kernel.edge(4, 1, 80)
    kernel.edge(5, 1, 50)
    kernel.edge(4, 0, 20)
    assert select.select([edges], [], [], 10)[0]
    found = edges.read()
    assert [edge[1:] for edge in found] == [("door", 1), ("bell", 1), ("door", 0)]
    assert found[0][0] >= 80 and found[2][0] >= 20
    assert edges.read() == []
    edges.close()
    pins.release()


def test_where_the_kernel_notes_none_pins_are_polled(kernel):
    pins = Pins([row("door", 4, INPUT), row("pump", 6, OUTPUT)], kernel)
    kernel.refuses = True
    assert watch_edges(pins, ["door"]) is None
    assert watch_edges(pins, []) is None and watch_edges(None, ["door"]) is None
    simulated = SimulatedPins([row("door", 4, INPUT)], lambda: 0)
    assert watch_edges(simulated, ["door"]) is None
    pins.release()
    assert not kernel.ends
