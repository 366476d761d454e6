"""What a board reads from its console, interrupted by Ctrl-C at any byte: the rest of a record is never taken for a person's text."""
import os
import subprocess

from agents import ROOT

SCRIPT = r"""
from clawlite.core.frame import RECORD
from stdio import Stdio

class Input:
    def __init__(self, data, at):
        self.data, self.place, self.at = data, 0, at

    def read(self, count):
        if self.place == self.at:
            self.at = -1
            raise KeyboardInterrupt
        self.place += 1
        return self.data[self.place - 1:self.place]

line = b'\x1e{"jsonrpc":"2.0","id":1,"method":"claw.status"}\n'
for at in range(len(line)):
    stdio = Stdio(False, None)
    stdio.input = Input(line, at)
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
    assert events == [(RECORD, line[1:-1])], (at, events)
print("all", at + 1)
"""


def test_ctrl_c_in_a_record_does_not_make_text_of_its_rest(micropython):
    with open(os.devnull) as nothing:           # always ready to be read
        done = subprocess.run([micropython, "-c", SCRIPT], stdin=nothing, capture_output=True, text=True, timeout=30, cwd=ROOT,
                              env={"MICROPYPATH": ".:firmware-host/micropython:.frozen"})
    assert done.stdout == "all 49\n", done.stdout + done.stderr
