"""The runtime's own work on MicroPython: ``micropython -X heapsize=N benchmarks/board.py WHAT IMAGE
COUNT [EARLY]``.

WHAT is ``calls``, ``turns``, or ``asked``: turns with a remote provider, whose socket the shell's
loop serves; stdin stays open and silent. The real shell of firmware-host/micropython does the work;
only its output goes nowhere.  Prints one JSON line: nanoseconds of each block, microseconds until
it is READY, heap in use (bytes, after a collection) when it is READY, after EARLY more turns that
come first and after all, and the modules that were loaded."""

import gc
import json
import sys
import time

gc.collect()
START = gc.mem_alloc()


class Sink:
    """Takes what the shell writes; keeps the last."""

    def __init__(self):
        self.last = b""

    def write(self, data):
        self.last = bytes(data)
        return len(data)

    def flush(self):
        pass


def _hand_in(device, data: bytes):
    """Do what a round of the loop does with *data*, and wait for nothing."""
    device.stdio.feed(data)
    event = device.stdio.next_event()
    while event:
        device.event(event[0], event[1], device.now_ms())
        device.settle()
        event = device.stdio.next_event()


def calls(device, lines: list):
    """Return a function that does one call."""
    for line in lines[:-1]:
        _hand_in(device, line + b"\n")
    before, _, after = lines[-1].partition(b"-000000000000")
    count = 0

    def call():
        nonlocal count
        count += 1  # an id that came before runs nothing
        _hand_in(device, before + b"-%012x" % count + after + b"\n")
        if not [
            word
            for word in (b'"isError":false', b'"stored":1', b'"entries":[{')
            if word in device.stdio.output.last
        ]:
            raise ValueError(device.stdio.output.last)

    return call


def turns(device):
    """Return a function that does one turn."""

    def turn():
        device.console.line("go", device.now_ms())
        device.settle()
        while device.net and device.console.is_busy:
            device.step()
            # what came ends the turn here, before the next step waits for more
            device.settle()
        if device.console.is_busy or not device.console.clean or device.console.failed:
            raise ValueError(device.stdio.output.last)

    return turn


def main(what: str, image: str, count: str, early: str = "0") -> None:
    folder = image.rpartition("/")[0]
    begin = time.ticks_us()
    from main import open_device

    device = open_device(image, folder, what == "calls")
    device.stdio.output = Sink()
    device.agent.start(device.now_ms())
    if device.console:
        device.console.greet()
    device.settle()
    ready_us = time.ticks_diff(time.ticks_us(), begin)
    gc.collect()
    ready = gc.mem_alloc()
    if what != "calls":
        function = turns(device)
    else:
        with open(folder + "/lines", "rb") as file:
            function = calls(device, file.read().split(b"\n")[:-1])
    function()
    found, left, run_in = [], int(count), None
    if int(early):  # whether the heap grows: what was in use when it had run in
        for _ in range(int(early)):
            function()
        gc.collect()
        run_in = gc.mem_alloc()
    while left > 0:
        times = min(left, max(1, int(count) // 31))
        begin = time.ticks_us()
        for _ in range(times):
            function()
        found.append(time.ticks_diff(time.ticks_us(), begin) * 1000 // times)
        left -= times
    peak = gc.mem_alloc()
    gc.collect()
    device.handlers.close()
    print(
        json.dumps(
            {
                "ns": found,
                "start": START,
                "ready": ready,
                "ready_us": ready_us,
                "after": gc.mem_alloc(),
                "free": gc.mem_free(),
                "uncollected": peak,
                "early": run_in,
                "modules": sorted(sys.modules),
            }
        )
    )


if __name__ == "__main__":  # host/bench/device.py imports it, on a board
    main(*sys.argv[1:])
