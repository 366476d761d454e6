"""What a reliable line costs on a clean wire, in bytes: both directions, acknowledgements
counted, over the records' JSON alone.
"""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "core"))

from line_wire import Bench  # noqa: E402

from clawlite.core.line.frame import RECORD  # noqa: E402
from clawlite.core.line.line import UP as UP_EVENT  # noqa: E402
from clawlite.core.line.line import Line
from clawlite.core.line.lineframe import ACK, encode  # noqa: E402

HOST_WINDOW = 4096
DOWN, UP = 0, 1  # to the board, to the host


def cost(exchanges: list, window: int, fragment: int) -> tuple:
    """Return (percent of both directions, percent of the wire to the board, of the wire to the
    host: acknowledgements left out).
    """
    bench = Bench(1, 0, window, limit=16384, backlog=65536)
    ends = bench.host, bench.board
    bench.host.line = Line(5, HOST_WINDOW, fragment, limit=16384, backlog=65536)
    bench.board.line = Line(9, window, fragment, limit=16384, backlog=65536)
    bench.open()
    bench.run(200)
    before = bench.down.sent, bench.up.sent
    carried = [0, 0]
    for way, record in exchanges:
        count = len(ends[1 - way].records)
        ends[way].line.send(record, bench.now)
        carried[way] += len(record)
        assert bench.run(20000, lambda: len(ends[1 - way].records) > count)
        # the board answers in 10 ms, the host asks after 200
        bench.run(10 if way == DOWN else 200)
    bench.run(300)
    assert bench.host.line.damaged == bench.board.line.damaged == bench.down.dropped == 0
    sent = bench.down.sent - before[0], bench.up.sent - before[1]
    return 100 * (sum(sent) / sum(carried) - 1), sent, carried


def golden() -> list:
    """Return the records of an operator's session, as they went: (way, bytes)."""
    found = []
    for _, what, argument, effects in json.loads(
        (ROOT / "tests/golden/gates-operator.golden.json").read_text()
    )["steps"]:
        if what == "record":
            found.append((DOWN, argument.encode()))
        found += [
            (UP, json.dumps(effect[1], separators=(",", ":"), ensure_ascii=False).encode())
            for effect in effects
            if effect[0] == "send"
        ]
    return found


def call(size: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":"d1","method":"model","params":"' + b"x" * size + b'"}'


ANSWER = b'{"jsonrpc":"2.0","id":"d1","result":{"text":"' + b"The garden is green. " * 585 + b'"}}'
EXAMPLE = (
    b'{"jsonrpc":"2.0","id":7,"method":"claw.tool.call","params":{"name":"water","arguments":{"bed":2,"seconds":3},'
    b'"context":{"request_id":"00000000-0000-4000-8000-000000000007"}}}'
)
LONG_ANSWER = [(UP, call(1500)), (DOWN, ANSWER)]
LONG_REQUEST = [(UP, call(12000)), (DOWN, ANSWER[:1000])]


def note(name: str, text: str, **more) -> bytes:
    params = {"id": "5f3a9c21-7", **more, "text": text}
    return json.dumps(
        {"jsonrpc": "2.0", "method": "claw.gateway." + name, "params": params},
        separators=(",", ":"),
    ).encode()


ASK = (
    UP,
    b'{"jsonrpc":"2.0","id":"5f3a9c21-7","method":"claw.gateway.provider","params":{"provider":"remote","max_tokens":0,"seen":0}}',
)
CALLS = (
    b'{"jsonrpc":"2.0","id":"5f3a9c21-7","result":{"stop":"tools","calls":[["call_1","look","{\\"where\\":\\"bed '  # noqa: E501
    b'2\\"}"]]}}'
)
ASKED = (UP, note("message", "how is it in bed 2?", role="user"))
# A turn through a gateway with one tool call, whose answer has 12.8 KB.
TURN = [
    ASKED,
    ASK,
    (DOWN, CALLS),
    ASKED,
    (UP, note("message", "", role="assistant")),
    (UP, note("message", '{"where":"bed 2"}', call=["call_1", "look"])),
    (UP, note("message", '{"where":"bed 2","seen":3}', role="tool", of="call_1", failed=False)),
    ASK,
    *[(DOWN, note("text", "x" * 512))] * 25,
    (DOWN, b'{"jsonrpc":"2.0","id":"5f3a9c21-7","result":{"stop":"stop"}}'),
]

# ring of the board, fragment, and the most percent: a 12 KB answer, a 12 KB request, a turn through
# a gateway, an operator's short records. Of 260 bytes one frame fills the ring, so each has its own
# acknowledgement.
ROWS = [
    (260, 160, 13.5, 8.5, 15.5, 20.5),
    (260, 205, 11, 7, 12, 18),
    (512, 160, 10.5, 8.5, 12, 16.5),
    (512, 208, 8.5, 7, 9.5, 13.5),
    (1024, 240, 7.5, 6.5, 9, 12.5),
    (2048, 160, 8.5, 8.5, 10, 16),
    (2048, 208, 7, 6.5, 8, 13),
]


@pytest.mark.parametrize("window, fragment, answer, request_, turn, operator", ROWS)
def test_bytes_on_a_clean_wire(window, fragment, answer, request_, turn, operator):
    found = [
        cost(exchanges, window, fragment)[0]
        for exchanges in (LONG_ANSWER, LONG_REQUEST, TURN, golden())
    ]
    print(
        "ring %d, fragment %d: 12 KB answer %.1f %%, 12 KB request %.1f %%, turn %.1f %%, "
        "operator %.1f %%" % (window, fragment, *found)
    )
    assert [one <= most for one, most in zip(found, (answer, request_, turn, operator))] == [
        True
    ] * 4


def test_a_turn_costs_at_most_12_percent_on_every_board():
    """The windows and fragments of firmware-host/micropython/line/reliable.py."""
    for window, fragment in ((260, 205), (512, 208), (2048, 208)):
        assert cost(TURN, window, fragment)[0] <= 12


# what the document says of a damaged frame
AGAIN = encode(1, 1, ACK, b"", 0x5F3A9C21 ^ 0xC0DE)[1:-1].decode()


def test_each_wire_of_a_long_answer_carries_at_most_12_percent_more():
    """Full duplex: what the acknowledgements of the other direction take does not delay the
    records.
    """
    for window, fragment, *_ in ROWS:
        _, sent, carried = cost(LONG_ANSWER, window, fragment)
        assert sent[DOWN] <= 1.12 * carried[DOWN]


def test_the_example_of_the_document_is_what_goes_over_the_wire():
    text = (ROOT / "docs/line.md").read_text()
    block = text.partition("## An example")[2].split("```line\n")[1].split("```")[0]
    said = [(line.split()[0], line.partition("␞")[2]) for line in block.splitlines() if line]
    host, board, now, went = Line(0x5F3A9C20, 4096), Line(0xC0DE, 260), 0, []
    host.hello(0)
    records = []
    for _ in range(10):
        for name, one, other in (("host", host, board), ("board", board, host)):
            data = one.output()
            if data:
                went.append((name, data[1:-1].decode()))
                other.feed(data, now)
            event = other.next_event()
            while event:
                if event[0] == UP_EVENT and other is host:
                    host.send(EXAMPLE, now)
                elif event[0] == RECORD:
                    records.append(event[1])
                event = other.next_event()
        now += 60
        board.tick(now)
    assert went == said and records == [EXAMPLE] and "␞" + AGAIN in text
