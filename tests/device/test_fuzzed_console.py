r"""Whatever comes on a board's console, the agent goes on: no line is a bug or its end.

The real MicroPython runs what a board boots over each golden agent; it reads one long stream of
broken lines, commands, answers, JSON-RPC records and frames.  ``make soak`` plays 100,000 lines for
each agent:

    CLAWLITE_SEED=7 .venv/bin/pytest -m soak tests/device/test_fuzzed_console.py
"""

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from agents import board
from mutations import flipped, reshape

SEED = int(os.environ.get("CLAWLITE_SEED", "1"))
COUNT = int(os.environ.get("CLAWLITE_SOAK", "100000"))  # lines for each agent
AT_ONCE = 250  # lines for one process
GOLDEN = Path(__file__).resolve().parents[1] / "golden"
AGENTS = ("greenhouse", "gates", "guarded", "talking", "memory", "skills", "least")
ENDS = (b"/quit", b"claw.shutdown")  # what ends an agent as it should
BUGS = (b"bug in clawlite", b"Traceback")
TYPED = (
    b"/help",
    b"/tools",
    b"/skills",
    b"/trace",
    b"/trace 2",
    b"/show 1",
    b"/memory",
    b"/status",
    b"/skill",
    b"/channels",
    b"/pair 1",
    b"y",
    b"n",
    b"yes",
    b"",
)
PIECES = (
    b"\x1e",
    b"\x1e~",
    b"\x1e~d",
    b"\x1em",
    b"\x1ea\x00",
    b"\r",
    b"\x00",
    b"\x03",
    b"\x04",
    b"\x1b[A",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"/",
    b"//",
    b"/ ",
    b"{",
    b"}",
    b"[" * 60,
    b'"',
    b"\\u",
    b"\\ud800",
    b"-",
    b"1e999",
    b"9" * 40,
    b"null",
    b"x" * 9000,
    b'"id":',
    b"/trace -1",
    b"/show 99999999999",
)


def corpus() -> list:
    """Return what is said in the golden conversations, but for what ends an agent."""
    found = list(TYPED)
    for path in sorted(GOLDEN.glob("*.steps.json")):
        for step in json.loads(path.read_text())["steps"]:
            if step[1] in ("line", "record"):
                found.append((b"\x1e" if step[1] == "record" else b"") + step[2].encode())
    return [line for line in found if not any(end in line for end in ENDS)]


def broken(lines: list, draw) -> bytes:
    """Return a line: one of *lines*, broken in most cases."""
    line = draw.choice(lines)
    what = draw.randrange(4)
    if line.startswith(b"\x1e{") and draw.random() < 0.7:
        line = with_other_values(line, draw)
    elif what == 0:
        line = flipped(line, draw)
    elif what == 1:
        at = draw.randrange(len(line) + 1)
        line = line[:at] + draw.choice(PIECES) + line[at:]
    elif what == 2:
        line += draw.choice((b" ", b"", b"\n")) + draw.choice(lines)
    return b"" if any(end in line for end in ENDS) else line


def with_other_values(record: bytes, draw) -> bytes:
    """Return *record* with values of its JSON changed; as it is when it holds none."""
    try:
        root = [json.loads(record[1:])]
    except ValueError:
        return record
    for _ in range(draw.randint(1, 3)):
        reshape(root, draw)
    return b"\x1e" + json.dumps(root[0]).encode()


def play(folder: Path, agent: str, seeds) -> None:
    """Send *agent* a stream of lines for each of *seeds*, a process each."""
    shutil.copytree(GOLDEN / agent, folder / agent)
    words, path = board(folder / agent / "claw.cbor")
    lines = corpus()
    for seed in seeds:
        draw = random.Random(f"{agent} {seed}")
        stream = b"\n".join([broken(lines, draw) for _ in range(AT_ONCE)]) + b"\n\n\n/status\n"
        ended = subprocess.run(
            words,
            input=stream,
            capture_output=True,
            cwd=folder / agent,
            env=dict(os.environ, **path),
        )
        said = ended.stdout + ended.stderr
        told = f"seed {seed} of {agent}: {ended.returncode}, {said[-500:]}"
        assert not any(word in said for word in BUGS), said_near(said, told)
        assert ended.returncode in (0, 1), told
        assert said.count(b"\n") > AT_ONCE // 5, told  # else it has not listened


def said_near(said: bytes, told: str) -> str:
    at = max(said.find(word) for word in BUGS)
    return f"{told}\n...{said[max(0, at - 700) : at + 300].decode(errors='replace')}"


@pytest.mark.parametrize("agent", AGENTS)
def test_a_console_outlives_what_comes(micropython, tmp_path, agent):
    play(tmp_path, agent, [SEED])


@pytest.mark.soak
@pytest.mark.parametrize("agent", AGENTS)
def test_a_console_outlives_very_much(micropython, tmp_path, agent):
    first = SEED * 1_000_000
    play(tmp_path, agent, range(first, first + COUNT // AT_ONCE))
