"""``clawlite bench --here``, ``--ssh HOST``, ``--port PORT``: the same rows, measured on the device
itself.

here  the suites of ``HERE`` with what the device has: Python and the wheel; the agent's image was
      compiled elsewhere (``IMAGES``)
ssh   this package goes there in one archive, into a folder of its own, runs as ``--here`` there,
      and is removed again
port  a MicroPython board gets the firmware that the benchmarks' agent needs in ``FOLDER`` of its
      flash, runs it out of the raw REPL, and loses that folder again; the agent that was flashed
      stays as it is, and boots afterwards
"""

import io
import json
import os
import tarfile
import tempfile
from pathlib import Path

from clawlite.core.base.errors import ClawError
from clawlite.host.base import data
from clawlite.host.base.progress import RunProgress
from clawlite.host.bench import bench
from clawlite.host.bench.run import Bench

HERE = ("load", "ready", "call", "turn", "netrules")
PORT = ("turn", "micropython")
FOLDER = "/clawlite-bench"
WORDS32_BYTES = 4
_CALLS, _TURNS = 4, 2  # for each round
_ANSWER_S = 600  # of silence, while a board measures
_FACTS = """
import gc, os, struct, sys
gc.collect()
try:
    import machine
    clock = machine.freq() // 1000000
except (ImportError, AttributeError):
    clock = 0
names = [getattr(sys.implementation, '_machine', sys.platform), '.'.join(map(str, sys.implementation.version[:3])), sys.version]
print(clock, struct.calcsize('P'), gc.mem_free() + gc.mem_alloc(), '|'.join(names))
"""  # noqa: E501
_MEASURE = """
import sys
sys.path[:0] = [%r, %r]
import board
board.main(%r, %r, '%d')
"""


def measure_here(suites: list, rounds: int, took) -> None:
    """Measure this device; ``took(row)`` gets each row.  Raises ``ClawError``."""
    bench.run(_only(suites, HERE, "--here"), rounds, took, is_here=True)


def over_ssh(host: str, suites: list, rounds: int, took) -> None:
    """Measure the machine *host*, as ssh names it; ``took(row)`` gets each row as soon as it comes.
    Raises ``ClawError``: it cannot be reached, or the run failed there.
    """
    from clawlite.host.flash.ssh import Failed, Remote

    chosen = _only(suites, HERE, "--ssh")
    words = ["bench", "--here", "--json", "--rounds", str(rounds), *chosen]
    archive = _archive()
    with (
        Remote(host) as there,
        tempfile.TemporaryDirectory() as folder,
        _progress(chosen) as progress,
    ):
        commit = Bench(folder, rounds).commit

        def take_line(line: str) -> None:
            if line.startswith('{"suite":'):  # an error comes as a document, too
                row = dict(json.loads(line), commit=commit)
                progress.begin(chosen.index(row["suite"]))
                progress.show(took, row)

        code, errors = there.bench(archive, words, take_line)
        if code:
            last = (errors.strip().splitlines() or ["nothing"])[-1]
            raise Failed(
                f"{host}: the benchmarks failed there; the last that they said: {last}",
                "try it on that machine: clawlite bench --here",
            )


def _progress(suites: list) -> RunProgress:
    """Return the progress of a run of *suites* on another machine, with the first suite begun."""
    found = RunProgress([(suite, bench.seconds_of(suite)) for suite in suites])
    found.begin(0)
    return found


def _archive() -> bytes:
    """Return a gzipped tar of this package and of what it runs, laid out as in a checkout."""
    package, scripts = Path(__file__).resolve().parents[2], data.benchmarks_dir()
    found = {
        f"clawlite/{path.relative_to(package).as_posix()}": path
        for pattern in ("*.py", "*.json", "*.toml")
        for path in package.rglob(pattern)
        if "_data" not in path.parts
    }
    found.update(
        (f"benchmarks/{path.relative_to(scripts).as_posix()}", path)
        for path in (*scripts.glob("*.py"), *scripts.glob("images/*.cbor"))
    )
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=6) as archive:
        for name, path in sorted(found.items()):
            info = tarfile.TarInfo(name)
            body = path.read_bytes()
            info.size, info.mode = len(body), 0o644
            archive.addfile(info, io.BytesIO(body))
    return out.getvalue()


def on_port(port: str, suites: list, rounds: int, took) -> None:
    """Measure the MicroPython board on *port*; ``took(row)`` gets each row.

    Raises ``ClawError``: no such board, no room in its flash, or its heap is too small for the
    benchmarks' agent."""
    from clawlite.host.flash.board import Board
    from clawlite.host.serial import ports

    chosen = _only(suites, PORT, "--port")
    entry = ports.choose(port)
    with tempfile.TemporaryDirectory(prefix="clawlite-bench-") as folder:
        run = Bench(folder, rounds)
        files = _firmware(run)
        with Board(entry) as board:
            facts = _facts(board)
            run.board, run.clock_mhz, run.firmware, run.load = (
                facts["board"],
                facts["clock_mhz"],
                facts["firmware"],
                None,
            )
            size = sum(map(len, files.values()))
            free = board.free()
            if free is not None and size > free:
                raise ClawError(
                    f"{board.name}: the benchmarks take {size} bytes of flash for a "
                    f"while, {free} are free",
                    "remove files that are not needed there, or measure a board of "
                    "this kind that holds less",
                )
            try:
                _write(board, files)
                with _progress(chosen) as progress:
                    for row in _rows(run, board, facts, chosen):
                        progress.begin(chosen.index(row["suite"]))
                        progress.show(took, row)
            finally:
                board.remove_all(FOLDER)


def _firmware(run) -> dict:
    """Return {path on the board: bytes} of the agent, and of what runs and measures it there."""
    from clawlite.host.base.programs import program
    from clawlite.host.firmware import firmware, slot
    from clawlite.host.image.image_reader import open_image

    image = run.agent()
    tree = os.path.join(run.folder, "mpy")
    firmware.build(tree, program("mpy-cross"), {"board": run.script("board.py")})
    parts = slot.parts(open_image(image)) + ["machine"]
    names = slot.choose(os.listdir(tree), parts) + ["board.mpy"]
    found = {f"{FOLDER}/code/{name}": Path(tree, name).read_bytes() for name in names}
    beside = Path(image).parent
    return {
        **found,
        **{
            f"{FOLDER}/{name}": (beside / name).read_bytes()
            for name in ("claw.cbor", "tools.py", "lines")
        },
    }


def _facts(board) -> dict:
    numbers, _, names = board.run(_FACTS).strip().partition("|")
    clock, word, heap, machine = numbers.split(" ", 3)
    version, build = names.split("|", 1)  # "3.4.0; MicroPython v1.28.0 on 2026-04-01"
    return {
        "board": machine,
        "clock_mhz": int(clock) or None,
        "word": int(word),
        "heap": int(heap),
        "firmware": build.rpartition("; ")[2],
        "python": "MicroPython " + version,
    }


def _write(board, files: dict) -> None:
    board.remove_all(FOLDER)  # of a run that was cut
    for path in (FOLDER, FOLDER + "/code"):
        board.do(("mkdir", path), _untold)
    for path, body in files.items():
        board.do(("write", path, body), _untold)


def _rows(run, board, facts: dict, suites: list):
    words = ", 32-bit words" if facts["word"] == WORDS32_BYTES else ""
    note = f"on the board, heap of {facts['heap'] / 1024:.0f} KiB"
    if "turn" in suites:
        found = _found(board, "turns", run.rounds * _TURNS)
        yield run.row(
            "turn",
            "on MicroPython",
            "us",
            [ns / 1000 for ns in found["ns"]],
            python=facts["python"],
            note=note,
            heap_peak=found["uncollected"],
        )
    if "micropython" not in suites:
        return
    count = run.rounds * _CALLS
    found = _found(board, "calls", count)
    common = {"python": facts["python"], "note": note}
    yield run.row(
        "micropython",
        f"{count} calls, a line at once",
        "us",
        [ns / 1000 for ns in found["ns"]],
        heap_peak=found["uncollected"],
        **common,
    )
    yield run.row(
        "micropython", "from the image to READY", "ms", [found["ready_us"] / 1000], **common
    )
    # Without what MicroPython had in use before our code, as the target is measured (words32.mjs).
    start = found["start"]
    for case, size in (("READY", found["ready"]), (f"after {count} calls", found["after"])):
        yield run.row(
            "micropython",
            f"heap in use, {case}{words}",
            "KiB",
            [(size - start) / 1024],
            python=facts["python"],
            note=f"{note}; after a collection; without {start} bytes in use before our code",
        )


def explain(rows: list) -> list:
    """Return lines that say what the rows of ``on_port`` mean to somebody who has such a board."""
    found = {}
    for row in rows:
        for begin, words in _MEANS:
            if row["case"].startswith(begin):
                found[words] = f"{row['p50']:,.4g} {row['unit']}"
    if not found:
        return []
    clock = f" at {rows[-1]['clock_mhz']} MHz" if rows[-1]["clock_mhz"] else ""
    return [
        f"On {rows[-1]['board']}{clock}:",
        *(f"  {words % is_}" for words, is_ in found.items()),
    ]


# beginning of a case -> what it means; the last row of a case counts
_MEANS = (
    ("on MicroPython", "a turn that rules answer takes %s;"),
    ("from the image to READY", "the agent is ready %s after its image was opened;"),
    ("heap in use, after", "the benchmarks' agent (20 tools, 30 rules) has %s of heap in use."),
)


def _found(board, what: str, count: int) -> dict:
    """Return what benchmarks/board.py found; each starts in a heap without the one before."""
    board.restart()
    said = board.run(
        _MEASURE % (FOLDER + "/code", FOLDER, what, FOLDER + "/claw.cbor", count), _ANSWER_S
    )
    try:
        return json.loads(said.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise ClawError(
            f"{board.name}: the benchmarks gave no result; the board said: "
            f"{said.strip()[-200:] or 'nothing'}",
            "try it again",
        ) from None


def _only(suites: list, known: tuple, flag: str) -> list:
    """Return *suites*, all of *known* when empty.  Raises ``ClawError`` for one that this place
    does not have.
    """
    strange = [suite for suite in suites if suite not in known]
    if strange:
        raise ClawError(
            f"{flag} does not have the suite {strange[0]}; it has: {', '.join(known)}",
            f"leave {strange[0]} out",
        )
    return list(suites or known)


def _untold(size: int) -> None:
    """Nobody watches."""
