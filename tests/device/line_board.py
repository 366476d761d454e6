"""The board's half of test_line_on_micropython.py: what a shell does around a line.  ``micropython
line_board.py NONCE``

Answers each JSON-RPC request with its own params; three Ctrl-C leave.
"""

import json
import select
import sys
import time

from clawlite.core.line.frame import RECORD
from clawlite.core.line.line import Line
from clawlite.core.line.linestop import Stop


def read(poll) -> bytes:
    """Return what has come; a board's ``read(n)`` would wait for n bytes."""
    data = bytearray()
    while len(data) < 128 and poll.poll(0):
        byte = sys.stdin.buffer.read(1)
        if not byte:
            sys.exit(1)
        data.extend(byte)
    return bytes(data)


def serve(line, stop):
    poll = select.poll()
    poll.register(sys.stdin.buffer, select.POLLIN)
    print("what a driver prints")
    while True:
        now, at = time.ticks_ms(), line.deadline()
        if poll.poll(-1 if at is None else max(0, at - now)):
            data, is_over = stop.feed(read(poll), time.ticks_ms())
            if is_over:
                return
            line.feed(data, time.ticks_ms())
        line.tick(time.ticks_ms())
        event = line.next_event()
        while event:
            if event[0] == RECORD:
                request = json.loads(event[1])
                if isinstance(request, int):  # the shortest
                    request = {"id": request, "params": request}
                line.send(
                    json.dumps(
                        {"jsonrpc": "2.0", "id": request["id"], "result": request["params"]}
                    ).encode(),
                    time.ticks_ms(),
                )
            event = line.next_event()
        data = line.output()
        while data:
            sys.stdout.buffer.write(data)
            data = line.output()


serve(Line(int(sys.argv[1]), 260, backlog=65536, baud=10000000, plain=False), Stop())
