"""What tests do inside a board: linked with it (pico_stack.linked), so that the names of the
board's own classes and functions are those that the linker gave them.  Names here stay.
"""

import sys
import time

from clawlite.core.line.frame import RECORD


def break_session():
    """Let the session of the agent that runs this raise what nobody expected, once."""
    from clawlite.core.protocol.session import Session

    tick = Session.tick

    def broken(self, now_ms):
        Session.tick = tick
        raise ValueError("nobody expected this")

    Session.tick = broken


def hold_on():
    """Let nothing that is under way be ended any more."""
    from clawlite.core.agent.agent import Agent

    def cancel(self, number, error, now_ms):
        raise RuntimeError("maximum recursion depth exceeded")

    Agent.cancel = cancel


def run_on_a_uart():
    """Run the agent of sys.argv, whose console is a UART; return the exit code."""
    from main import open_device

    device = open_device(sys.argv[1], sys.argv[2], False)
    device.stdio.is_uart = True
    return device.run(None)


def count_time():
    """Run the agent of sys.argv to its end; print how much time passed, and what it counted."""
    from main import _prepare, run

    device = _prepare(sys.argv[1:])
    run(device, None)
    print("passed", time.passed, "counted", device.now_ms())


def outlive():
    """Let what simulated devices measure go on while the board is off: the world's clock is
    ``time.in_the_world``, and ``time.keep`` puts its quantities into a file.  Which outputs are
    switched on, and when, is in another.
    """
    import json
    import os

    from clawlite.core.buses.simulator import World
    from clawlite.core.image.pins import SimulatedPins

    path = os.getenv("WORLD")
    begin, write = World.__init__, SimulatedPins.write

    def note(text):
        with open(path + "/switched", "a") as file:
            file.write("%d %s\n" % (time.in_the_world(), text))

    def go_on(self, rows, drives, clock, *more):
        begin(self, rows, drives, time.in_the_world, *more)
        self._began = 0
        try:
            with open(path + "/levels") as file:
                self._at, self._levels = json.load(file)
        except OSError:
            pass
        kept = [self._at]

        def keep():
            if self._at != kept[0]:
                kept[0] = self._at
                with open(path + "/levels", "w") as file:
                    json.dump([self._at, self._levels], file)

        time.keep = keep

    def switch(self, name, value):
        if value:
            note(name)
        write(self, name, value)

    note("reset")
    World.__init__, SimulatedPins.write = go_on, switch


def say_why_a_secret_is_none():
    """Print why a board whose files lie in the folder sys.argv[1] has no secret "key"."""
    from boardsecrets import secret

    print(secret(sys.argv[1], "key")[1].message)


class _Input:
    """An input that Ctrl-C interrupts before byte *at*, once."""

    def __init__(self, data, at):
        self.data, self.place, self.at = data, 0, at

    def read(self, count):
        if self.place == self.at:
            self.at = -1
            raise KeyboardInterrupt
        self.place += 1
        return self.data[self.place - 1 : self.place]


def interrupt_a_record():
    """Read a record that Ctrl-C interrupts, at each of its bytes; stdin can always be read."""
    from stdio import Stdio

    line = b'\x1e{"jsonrpc":"2.0","id":1,"method":"claw.status"}\n'
    for at in range(len(line)):
        stdio = Stdio(False, None)
        stdio.input = _Input(line, at)
        events = []
        while stdio.input.place < len(line):
            try:
                stdio.feed(stdio.read())
            except KeyboardInterrupt:
                continue
            event = stdio.next_event()
            while event:
                events.append(event)
                event = stdio.next_event()
        if events != [(RECORD, line[1:-1])]:
            print(at, events)
    print("all", len(line))
