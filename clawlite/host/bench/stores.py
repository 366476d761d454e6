"""The stores of a board on the real MicroPython: what an entry costs in heap and time, and a
question to 500 of them.
"""

import json
import os

from clawlite.host.bench import agent
from clawlite.host.bench.micropython import ROOM_KIB, STEPS, Board
from clawlite.host.bench.run import build, spawn

ENTRIES, FEW = 500, 100
_BYTES = 290  # of a content
_CLAW = """claw: "0.3.0"
kind: Claw
metadata: { name: stores, version: "1.0.0" }
spec:
  identity: { inline: { personality: "You remember.", autonomy: autonomous } }
  providers: [{ inline: { protocol: custom, endpoint: "builtin:reflex", model: m, auth: { type: none } } }]
  memory: { inline: { stores: [{ name: notes, type: semantic, retention: { max_entries: 1000 } }] } }
"""  # noqa: E501
_ID = "c1a00000-0000-4000-8000-%012d"


def stores(bench):
    """Yield rows: heap with stores, what 100 entries take of it, the smallest heap, time of an
    entry and of a question.
    """
    board = Board(bench)
    notes = [{"content": "note of the pump, ".ljust(_BYTES, "x")}]
    params = {"store": "notes", "entries": notes, "context": {"request_id": _ID % 0}}
    entry = agent.line("claw.memory.store", params, 1)
    params = {"store": "notes", "query": {"type": "semantic", "text": f"pump {_ID % 0}"}}
    few = _run(board, _project(bench, "stores-few", entry), FEW)
    image = _project(bench, "stores-many", entry)
    many = _run(board, image, ENTRIES)
    yield board.row(
        "a store of 290 bytes",
        "us",
        [ns / 1000 for ns in many["ns"]],
        f"a record of the log each; heap of {ROOM_KIB} KiB",
        heap_peak=many["uncollected"],
    )
    yield board.row(
        "heap in use with stores, READY",
        "KiB",
        [few["ready"] / 1024],
        "after a collection; %d bytes before our code" % few["start"],
    )
    yield board.row(
        "heap in use, 100 entries more",
        "B",
        [(many["after"] - few["after"]) * FEW / (ENTRIES - FEW)],
        f"from {FEW} to {ENTRIES}; 600 are the index",
    )
    _say(image, agent.line("claw.memory.query", params, 1))
    yield board.row(
        "a question by words, 500 entries",
        "ms",
        [ns / 1e6 for ns in _run(board, image, 31)["ns"]],
        "all of them have one of the words",
    )
    said = agent.opening() + entry + agent.line("claw.memory.query", params, "asked")
    yield board.row(
        "smallest heap for a store and that question",
        "KiB",
        [board.smallest([board.start(), image, "--stdio"], b"note of the pump", said)],
        STEPS,
    )


def _project(bench, name: str, line: bytes) -> str:
    """Return the image of an agent with a store, the operator's lines beside it, of which the
    last is *line*.
    """
    files = {"claw.yaml": _CLAW, "clawlite.toml": 'reflex = "reflex.toml"\n'}
    files["reflex.toml"] = '[[rule]]\nwhen = "hello"\nsay = "Hello!"\n'
    image = build(agent.write_files(bench.make(name), files))
    _say(image, line)
    return image


def _say(image: str, line: bytes) -> None:
    with open(os.path.join(os.path.dirname(image), "lines"), "wb") as opened:
        opened.write(agent.opening() + line)


def _run(board, image: str, count: int) -> dict:
    return json.loads(
        spawn(
            board.within(["-m", "board", "calls", image, str(count)], ROOM_KIB), board.environment()
        )
    )
