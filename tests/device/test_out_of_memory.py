"""Out of memory ends what is under way, and tells; the agent serves on, at every heap in which
it starts (docs/adr/0014).
"""

import json
import os
import random
import subprocess

import pytest
from agents import INITIALIZE, tool_call

from clawlite.host.bench import heap as bench_heap
from clawlite.host.builder.build import build_beside

HEAPS = range(52, 112, 4)  # KiB: from what does not start to what has room for it all
MORE = 8 << 10  # bytes by which a line is longer than the heap
START = 86  # KiB with which it always starts: below, what passes for a pointer is chance
LARGE = "green " * 600
_GREETING = "board 1.0.0 is ready. /help lists the commands.\n> "
# names that the board knows besides: its table of them grows when it is full, which it may be at
# any moment
NAMES = range(0, 70, 10)
SEED = int(os.environ.get("CLAWLITE_SEED", "1"))
_START = """import os, sys, main
for number in range(int(os.getenv("NAMES"))):
    hasattr(sys, "name%d" % number)
sys.exit(main.main(sys.argv[1:]))
"""
_MARKING = '''def look(where: str) -> dict:
    """Look somewhere."""
    with open("agent/mark", "a") as file:
        file.write("x")
    return {"where": where, "seen": "s" * 12000}
'''


@pytest.fixture
def agent(tmp_path):
    """Return a function that builds the agent of the benchmark, whose provider sends *events*:
    events, tools.py or "" -> its image.
    """
    servers = []

    def make(events, tools=""):
        server = bench_heap.Server(events, [])
        servers.append(server)
        bench_heap.project(str(tmp_path), "openai-compatible", server.server_address[1])
        if tools:
            (tmp_path / "tools.py").write_text(tools)
        return build_beside(str(tmp_path))

    yield make
    for server in servers:
        server.server_close()


def run(micropython, tree, image, heap: int, typed: bytes, *more: str, names: int = 0):
    """Start *image* from its folder's short name, as on a board: long paths would count as heap."""
    (tree / "crowded.py").write_text(_START)
    link = tree / "agent"
    link.unlink(missing_ok=True)
    link.symlink_to(os.path.dirname(image))
    return subprocess.run(
        [
            micropython,
            "-X",
            f"heapsize={heap}k",
            "crowded.py",
            "agent/claw.cbor",
            *more,
        ],
        input=typed,
        capture_output=True,
        timeout=300,
        env=dict(os.environ, MICROPYPATH=".:.frozen", BOARD_KEY="key", NAMES=str(names)),
        cwd=tree,
    )


def _long() -> list:
    """Return the events of an answer of 1 MiB."""
    chunk = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "model": "m",
        "choices": [{"index": 0, "delta": {"content": LARGE}, "finish_reason": None}],
    }
    return [chunk] * ((1 << 20) // len(LARGE) + 1)


def _typed(micropython, tree, image, heap: int, typed: bytes, names: int = 0):
    """Type something large, then twice what is small; return what was said, or None where the
    agent does not start: from START KiB on it does, below that it may end with its greeting, or
    before the prompt.
    """
    done = run(micropython, tree, image, heap, typed + b"/status\n/status\n", names=names)
    said = done.stdout.decode()
    if done.returncode and (said == "" or heap < START and _GREETING.startswith(said)):
        assert "memory" in done.stderr.decode() and len(done.stderr.splitlines()) == 1
        return None
    assert done.returncode == 0 and done.stderr == b"" and "Traceback" not in said, (
        heap,
        names,
        said[-500:],
        done.stderr,
    )
    return said


# the least in which it starts on a busy machine, too, where threads that import end late
@pytest.mark.parametrize("heap", [START, 88, 92])
def test_an_answer_of_1_mib_is_refused_and_it_serves_on(micropython, tree, agent, heap):
    said = _typed(micropython, tree, agent(_long()), heap, b"how is it?\n")
    assert (
        said.count("out of memory. Next: ask for less at once, or build a smaller agent.\n") == 1
        and said.count("READY, level 1") == 2
    )


@pytest.mark.parametrize("tables", [2, pytest.param(len(NAMES), marks=pytest.mark.soak)])
@pytest.mark.parametrize("what", ["an answer of 1 MiB", "a result of 12 KB", "long lines"])
def test_at_every_heap_in_which_it_starts_each_line_is_answered(
    micropython, tree, agent, tmp_path, what, tables
):
    """Refused or done; what is small is done, where there is any room beside the agent.

    tables  so many of NAMES are played at each heap, in each run others
    """
    print("CLAWLITE_SEED=%d" % SEED)
    chance, started = random.Random(SEED), 0
    image = agent(
        _long() if what.startswith("an") else bench_heap.APIS[0][2]()[0],
        _MARKING if what.startswith("a r") else "",
    )
    large = b"how is it?\n"
    for heap, names in ((heap, names) for heap in HEAPS for names in chance.sample(NAMES, tables)):
        if what == "long lines":
            large = b"x" * 8000 + b"\n" + b"y" * ((heap << 10) + MORE) + b"\n"
        said = _typed(micropython, tree, image, heap, large, names)
        if said is not None:
            started += 1
            assert (
                said.count("READY, level 1")
                + said.lower().count("out of memory")
                + said.count("it was dropped")
                >= 2
            ), (heap, names, said[-500:])
            assert said.count("READY, level 1") == 2 or heap < START, (heap, names, said[-500:])
    # it may start from 64 KiB on, which also depends on when the thread of an import ends
    assert started >= sum(heap >= START for heap in HEAPS) * tables


def test_a_call_that_began_is_never_told_as_one_that_did_not(micropython, tree, agent, tmp_path):
    """At each heap: its result, or that it began; its tool was run as often as the answers say
    that it may have been.
    """
    image, mark = agent([], _MARKING), tmp_path / "mark"
    lines = [{"jsonrpc": "2.0", "id": 0, "method": "claw.initialize", "params": INITIALIZE}]
    lines += [
        tool_call("look", {"where": "bed %d" % number}, number, "board") for number in (1, 2, 3)
    ]
    began = 0
    for heap in range(60, 100, 2):
        mark.unlink(missing_ok=True)
        for name in ("calls.journal", "calls.older"):  # another run, of other calls
            (tmp_path / name).unlink(missing_ok=True)
        done = run(
            micropython,
            tree,
            image,
            heap,
            "".join(json.dumps(line) + "\n" for line in lines).encode(),
            "--stdio",
        )
        if done.returncode and done.stdout == b"":
            continue
        if heap < 72 and b"out of memory" in done.stderr:  # it ended, and has not told of all
            continue
        assert done.returncode == 0, (heap, done.stderr)
        answers = {
            answer["id"]: answer
            for answer in map(json.loads, done.stdout.splitlines())
            if "id" in answer
        }
        assert sorted(answers) == [0, 1, 2, 3], (heap, answers)
        told = [answers[number].get("error", {}) for number in (1, 2, 3)]
        ran = len(mark.read_text()) if mark.exists() else 0
        assert ran <= sum(not error or error["code"] == -32014 for error in told), (heap, told, ran)
        began += sum(error.get("code") == -32014 for error in told)
    assert began
