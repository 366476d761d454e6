"""Files of a board whose CRCs are right and whose contents are not: a CRC protects from damage, not
from a hand.  The board says what is wrong in one sentence, and its agent serves, or the other slot
does.
"""

import json
import os
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import pytest
from agents import board as command
from slot_board import WINDOW, Board, contents_of_any, ready

from clawlite.core.idempotency.idempotency import WAIT, line

GOLDEN = Path(__file__).parents[1] / "golden"
START = """
import main, sys
device, why = main.attempt(%r, %r, False, %r, False, None)
assert device, why
sys.exit(main.run(device, None))
"""


@pytest.fixture(scope="module")
def whole(mpy_cross, tmp_path_factory):
    return contents_of_any(tmp_path_factory.mktemp("projects"))


@pytest.mark.parametrize(
    "listed",
    [b"a.mpy", b"a.mpy 5", b"a b 5 00000000", b"\xff 5 00000000", b"tools.py x 0", b"x 1 zz", b""],
)
def test_a_list_of_files_that_is_none_costs_its_slot_alone(micropython, whole, tmp_path, listed):
    board = Board(whole, tmp_path)
    board.flash("1.0.0")
    board.boot()
    board.flash("2.0.0")
    body = listed + b"\n"
    (board.root / "claw-b/files").write_bytes(
        body + b"files %d %08x\n" % (len(body), zlib.crc32(body))
    )
    assert board.boot() == (
        WINDOW
        + "clawlite: slot b: its list of files is damaged\n"
        + "clawlite: slot a boots now\n"
        + ready("1.0.0")
    )


def said_by(tmp_path, agent: str, files: dict, more: bytes = b"") -> str:
    """Return what *agent* says to a line, to *more* and to a status, with *files* in its state
    folder.
    """
    there = Path(shutil.copytree(GOLDEN / agent, tmp_path / agent))
    state = there / "state"
    state.mkdir()
    for name, data in files.items():
        (state / name).write_bytes(data)
    words, env = command(start=START % (str(there / "claw.cbor"), str(there), str(state)))
    done = subprocess.run(
        words,
        input=b"hello\n" + more + b"/status\n",
        capture_output=True,
        env=dict(os.environ, **env),
    )
    said = (done.stdout + done.stderr).decode()
    assert done.returncode in (0, 1) and "Traceback" not in said, said
    assert "bug in clawlite" not in said and "\nasks " in said, said
    return said


@pytest.mark.parametrize("waited", [[["x"], [], []], {"text": 5}, None, 5, ["a"], ["a\nb", 5, 5]])
def test_an_approval_on_record_that_is_none_is_told_and_the_agent_begins(
    micropython, tmp_path, waited
):
    record = line(WAIT, 1700000001, 1, "1", json.dumps(waited))
    assert "waited for approval" in said_by(tmp_path, "gates", {"calls.journal": record})


@pytest.mark.parametrize("body", [b"x 1 1 k null", b"1 1", b"1 1 1 \xff null", b"", b"1 x 1 k []"])
def test_a_record_of_a_call_that_is_none_counts_as_damaged(micropython, tmp_path, body):
    record = b"%08x %s\n" % (zlib.crc32(body), body)
    assert "1 lines are lost" in said_by(tmp_path, "gates", {"calls.journal": record})


def stored(*payloads: bytes) -> bytes:
    """Return the log of a board's memory with *payloads* (appendlog.py)."""
    data = b""
    for payload in payloads:
        head = struct.pack(">I", len(payload))
        data += head + struct.pack(">I", zlib.crc32(head + payload)) + payload
    return data


TALK = struct.pack(">BH", 1, 1) + b'["talk", ""]'


NOTES = struct.pack(">BH", 1, 1) + b'["notes", ""]'
ASKED = b"".join(
    b"\x1e%s\n" % json.dumps({"jsonrpc": "2.0", **one}).encode()
    for one in (
        {
            "id": 1,
            "method": "claw.initialize",
            "params": {
                "protocolVersion": "0.3.0",
                "clientInfo": {"name": "t", "version": "1"},
                "manifest": {"kind": "Claw", "metadata": {"name": "x"}, "spec": {}},
                "capabilities": {"memory": {}},
            },
        },
        {"method": "claw.initialized"},
        {
            "id": 2,
            "method": "claw.memory.query",
            "params": {"store": "notes", "query": {"type": "semantic", "text": "beans"}},
        },
    )
)


def entry(data: bytes, place: int = 1) -> bytes:
    head = struct.pack(">BH16sIH", 2, place, bytes(16), 0, 1)
    return head + struct.pack(">IIHHH", 0, 0, 0, 0, len(data)) + data


@pytest.mark.parametrize(
    "payloads",
    [
        [struct.pack(">BHI", 3, 1, 5)],  # a cut of a part that is not there
        [struct.pack(">BH", 3, 1)],
        [struct.pack(">BH", 1, 1) + b"{}"],
        [struct.pack(">BH", 1, 1) + b'["a"]'],
        [TALK, entry(b"[]", place=9)],
        [TALK, entry(b"[]")[:30]],
        [NOTES, entry(b'["beans"]')],
        [NOTES, entry(b'{"a": "beans"}')],
        [NOTES, entry(b'["beans", null')],
    ],
)
def test_a_memory_that_is_none_is_told_as_damaged(micropython, tmp_path, payloads):
    name = "memory-%08x.log" % zlib.crc32(b"memory")
    said = said_by(tmp_path, "memory", {name: stored(*payloads)}, ASKED)
    assert "copy it to a computer, and remove it to begin anew" in said, said
