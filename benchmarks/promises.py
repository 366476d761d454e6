"""What boards and their line are held to, measured by the tools of the tests: ``python promises.py
FOLDER [--long]`` prints a JSON line for each row.

    {"case", "unit", "samples", "value", "note"}

``--long`` plays what takes minutes: cut power, a gateway whose lines, boards and own process break,
a newcomer's hour."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [
    str(ROOT),
    *(str(ROOT / "tests" / name) for name in ("helpers", "core", "host/serial", "device")),
]
ODDS, SEEDS, RECORDS, MOST = 1000, 40, 20, 5
WINDOWS = ((260, 205), (512, 208), (2048, 208))  # of firmware-host/micropython/line/reliable.py
# seconds that tests may take; characters of what they said that are shown when they fail
PLAYED_S, SHOWN = 900, 4000
CUT_STEP = 193  # bytes
TEMPLATES = ("blink", "chat", "empty", "greenhouse")


def told(case: str, unit: str, samples: list, note: str = "", value=None):
    print(
        json.dumps(
            {
                "case": case,
                "unit": unit,
                "samples": samples,
                "value": value,
                "note": note,
            }
        ),
        flush=True,
    )


def estimate(folder: Path):
    """What ``build`` says of the heap, beside what MicroPython holds after a turn."""
    import words32

    from clawlite.host.bench import agent
    from clawlite.host.builder.build import build_beside
    from clawlite.host.fit import heap
    from clawlite.host.projects import new

    board = words32.tree(folder / "tree")
    for name in TEMPLATES:
        new.new(str(folder / name), name, None, None, True)
        build_beside(str(folder / name))
    (folder / "bench").mkdir()
    build_beside(agent.write(str(folder / "bench")))
    for bits in (64, 32):
        if bits == 32 and words32.missing():
            sys.stderr.write(
                "clawlite: the estimate for 32-bit words is left out: %s\n" % words32.missing()
            )
            continue
        found = []
        for name in (*TEMPLATES, "bench"):
            measured = words32.measure(board, folder / name, bits)["after"]
            said = heap.heap_after_calls(
                (folder / name / "claw.cbor").read_bytes(), words32.source(folder / name), bits
            )
            found.append(100 * abs(said - measured) / measured)
        told(
            f"estimate of heap, off by, {bits}-bit words",
            "%",
            found,
            "the worst of %d agents" % len(found),
            max(found),
        )


def work(folder: Path, rounds: int):
    """The heap in which boards with 32-bit words do the work of users, and what ``build`` says."""
    import board_work
    import words32

    from clawlite.host.fit import heap

    if words32.missing():
        sys.stderr.write(
            "clawlite: the work of boards with 32-bit words is left out: %s\n" % words32.missing()
        )
        return
    for case in board_work.PROJECTS if rounds >= 20 else ["chat"]:
        image = Path(board_work.PROJECTS[case](Path(tempfile.mkdtemp(dir=folder)) / "agent"))
        program = board_work.write_work(case, image)
        found = words32.measure(words32.tree(folder / program, runs=program), image.parent, 32)
        most = found["most"][board_work.REWRITES if case == board_work.CALLS else 0]
        note = f"{board_work.WHAT[case]}; the most that a step of the loop takes, in which nothing "
        told(f"heap, 32-bit words: {case}", "B", [most], note + "is collected")
        said = heap.count_need(image.read_bytes(), words32.source(image.parent), 32)
        told(f"heap, 32-bit words, build says: {case}", "B", [said])


def line(rounds: int):
    """Bytes of a turn's traffic above its records, and what is left of noise when it ends."""
    from line_wire import Bench
    from test_line_cost import TURN, cost

    found = [cost(TURN, window, fragment)[0] for window, fragment in WINDOWS]
    told(
        "line, a turn's bytes above its records",
        "%",
        found,
        "a clean wire, both ways, "
        "acknowledgements counted; "
        "rings of %s bytes, the worst" % ", ".join(str(window) for window, _ in WINDOWS),
        max(found),
    )
    until, wrong, hits, seeds = [], 0, 0, min(SEEDS, 2 * rounds)
    for seed in range(1, seeds + 1):
        bench = Bench(seed)
        bench.open()
        bench.run(200)
        sent = set()
        bench.down.odds = bench.up.odds = ODDS
        for number in range(RECORDS):
            record = b'{"jsonrpc":"2.0","id":%d,"method":"m","params":"%s"}' % (
                number,
                b"x" * (7 * seed + 11 * number),
            )
            sent.add(record)
            for end in (bench.host, bench.board):
                end.line.send(record, bench.now)
            bench.run(300)
        wrong += sum(
            record not in sent for end in (bench.host, bench.board) for record in end.records
        )
        hits += bench.down.hit + bench.up.hit
        bench.down.odds = bench.up.odds = 0
        until.append(_until(bench))
    told(
        "noise, 1 byte in 1,000: records until one arrives",
        "count",
        until,
        "%d bytes hit; counted from the end of the noise, the worst of %d runs" % (hits, seeds),
        max(until),
    )
    told(
        "noise, 1 byte in 1,000: damaged records acted on",
        "count",
        [wrong],
        "%d records sent" % (2 * seeds * RECORDS),
    )


def noise(rounds: int):
    """What is read, lost and held while noise goes on, and what becomes of requests when the
    wire is cut.
    """
    from line_damage import KINDS, SIZES, WINDOWS, Damage, left_open, talk

    hurt = missed = forged = wrong = records = 0
    held = []
    for seed, size in enumerate(SIZES[:rounds]):
        for kind in KINDS:
            bench = Damage(seed, ODDS, kind)
            sent = talk(bench, (size,), max(2, min(40, 4000 // size)))
            found = bench.judged()
            hurt, missed, forged = hurt + found[0], missed + found[1], forged + found[2]
            records += len(sent[0]) + len(sent[1])
            for got, wanted in ((bench.board.records, sent[0]), (bench.host.records, sent[1])):
                wrong += sum(a != b for a, b in zip(got, wanted)) + abs(len(got) - len(wanted))
            held += [bench.host.held, bench.board.held]
    told(
        "noise goes on: whole frames that were not read",
        "count",
        [missed],
        "%d frames hit, "
        "in %d ways "
        "each, records "
        "of %s bytes" % (hurt, len(KINDS), ", ".join(map(str, SIZES[:rounds]))),
    )
    told(
        "noise goes on: frames believed that nobody wrote",
        "count",
        [forged],
        "heads, acknowledgements, resets and frames that came again among what was put in",
    )
    told(
        "noise goes on: records lost, changed or doubled",
        "count",
        [wrong],
        "%d records, both ways" % records,
    )
    told(
        "noise goes on: most bytes of an open record",
        "B",
        [max(held)],
        "rings of %d and %d bytes, which are the windows; the worst" % WINDOWS,
    )
    ends = [
        left_open(at, way != 1, way != 0, (1, 59, 200, 1000), ODDS)
        for at in range(0, 3200, max(CUT_STEP, 3200 // rounds))
        for way in range(3)
    ]
    told(
        "wire cut for good: requests without answer or error",
        "count",
        [sum(left for left, _ in ends)],
        "%d offsets and ways, noise beside it" % len(ends),
    )
    told(
        "wire cut for good: new sessions not in step",
        "count",
        [sum(not is_in_step for _, is_in_step in ends)],
        "an answer within 200 ms",
    )


def _until(bench) -> int:
    for count in range(1, MOST + 1):
        record = b'{"after":%d}' % count
        bench.host.line.send(record, bench.now)
        if bench.run(20000, lambda record=record: record in bench.board.records):
            return count
    return MOST + 1


def power(folder: Path):
    """Flashes whose power goes at any write or erase of a block."""
    import test_flash_power as flashes
    from flash_model import Model
    from run_core_micropython import command

    board = Model()
    script = board.flash(flashes.build("v1")) + board.boot()
    at = len(script)
    script += (
        board.flash(flashes.build("v2"))
        + board.boot()
        + board.flash(flashes.build("v3", "two"))
        + board.boot()
    )
    found = [
        row for row in flashes.powerless(command("micropython"), folder, script) if row[0] >= at
    ]
    bad = sum(first not in ("v1", "v2", "v3") or second != first for _, first, second in found)
    told(
        "flash, power cut: states that boot no whole image",
        "count",
        [bad],
        "%d states of two flashes, each write and erase of a block torn and dropped" % len(found),
    )


def played(case: str, *names: str) -> str:
    """Run tests; tell a row of how many failed, and return what they said.  Whatever becomes of
    them, there is a row.
    """
    begun = time.monotonic()
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "CLAWLITE_RESULTS", "CLAWLITE_REQUIRE"))
    }
    running = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-s",
            "-rs",
            "-p",
            "no:cacheprovider",
            "-m",
            "soak or not soak",
            *names,
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=dict(environment, PYTHONPATH=str(ROOT)),
    )
    try:
        said = running.communicate(timeout=PLAYED_S)[0]
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGINT)  # it clears away, and says where it stood
        said = running.communicate()[0]
    counts = {
        word: int(number)
        for number, word in re.findall(
            r"(\d+) "
            r"(passed|failed|error|skipped)",
            said.rstrip().rpartition("\n")[2],
        )
    }
    failed = counts.get("failed", 0) + counts.get("error", 0)
    if running.returncode or not counts.get("passed"):
        failed = max(failed, 1)
        sys.stderr.write(said[-SHOWN:])
    told(
        case,
        "count",
        [failed],
        "%d passed, %d skipped, %.0f s: %s"
        % (
            counts.get("passed", 0),
            counts.get("skipped", 0),
            time.monotonic() - begun,
            " ".join(names),
        ),
    )
    return said


def gateway():
    """A hundred devices on one gateway, and what an idle one costs it."""
    said = played(
        "100 devices on one gateway: tests that fail",
        "tests/soak/test_gateway.py",
        "tests/host/gateway/test_gateway_lan.py::test_a_hundred_devices_at_once",
    )
    for where, size in re.findall(
        r"an idle device on (the LAN|a serial port): ([0-9.]+) KiB", said
    ):
        told(
            "gateway, an idle device on " + where,
            "KiB",
            [float(size)],
            "90 more than 10, VmRSS of the process",
        )


def newcomer():
    played("a newcomer's script: tests that fail", "tests/host/cli/test_newcomer.py")


def breaks():
    played("append, power cut: tests that fail", "tests/device/test_power.py")
    played(
        "gateway, line, board or gateway breaks: tests that fail",
        "tests/host/gateway/test_gateway_breaks.py",
        "tests/host/gateway/test_gateway_images.py",
    )


def main(folder: Path, is_long: bool, rounds: int) -> int:
    """Measure each part, whatever becomes of the others; return the exit code.

    rounds  int >= 2; from 20 on nothing is left out
    """
    parts = [lambda: line(rounds), lambda: noise(rounds), lambda: estimate(folder)]
    parts += [lambda: work(folder, rounds), gateway] + [
        lambda: power(folder),
        breaks,
        newcomer,
    ] * is_long
    failed = 0
    for part in parts:
        try:
            part()
        except Exception:
            traceback.print_exc()
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), "--long" in sys.argv, int(sys.argv[2])))
