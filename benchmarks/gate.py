"""The gate that noise cannot touch: ``python benchmarks/gate.py``, or ``make bench-gate``.

1. It counts, and times nothing: bytes of heap on the real MicroPython, after a collection, and
   instructions under valgrind.  ``gate.json`` has the numbers that hold; one that grew by more
   than 3 % fails.
2. Each is compared only where it must be the same: bytes of heap with the recorded version of
   MicroPython, on whatever machine; instructions with the recorded build of Python and C library,
   where valgrind is installed.  The gate says what it leaves out, and why; it fails when it can
   compare nothing.
3. Neither the user nor what ran before makes a difference: READY is that of an agent without a
   tools.py, which only root compiles at each start (docs/adr/0002), and of a copy of the package,
   whose code file has the modules of this agent alone.
4. A number is changed with a reason, in the commit that changes it:
   ``python benchmarks/gate.py --record "why it is worth it"``.
"""

import argparse
import hashlib
import itertools
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "benchmarks" / "gate.json"
MOST = 0.03  # of the number that holds
CALLS = 1000  # on MicroPython
# (number, work of counted.py, times): so many, and as many again
WORK = (
    ("instructions of a decision, constant", "constant", 1000),
    ("instructions of a decision with a path", "path", 1000),
    ("instructions of an image load", "load", 100),
    ("instructions of a settled call, log written", "call", 1000),
)
READY = "instructions until READY, above a bare interpreter"
HEAPS = (
    ("heap bytes on MicroPython, READY", "ready"),
    ("heap bytes on MicroPython, after 1,000 calls", "after"),
)
VALGRIND = "valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null".split()


def build() -> str:
    """Return what instructions depend on: the interpreter, byte by byte, and its C library."""
    with open(os.path.realpath(sys.executable), "rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    shared = os.path.join(
        sysconfig.get_config_var("LIBDIR") or "", sysconfig.get_config_var("LDLIBRARY") or ""
    )
    if sysconfig.get_config_var("Py_ENABLE_SHARED") and os.path.isfile(shared):
        with open(shared, "rb") as file:
            digest.update(file.read())
    library = " ".join(platform.libc_ver())
    return f"CPython {platform.python_version()} {digest.hexdigest()[:16]}, {library}"


def heaps(bench) -> tuple:
    """Return ({number: bytes}, version of MicroPython)."""
    from clawlite.host.bench.micropython import Board

    board = Board(bench)
    found = board.run("calls", CALLS)
    return {number: found[key] for number, key in HEAPS}, board.version


def count(
    command: list, state: str, said: bytes = b"", line: bytes = b"", root: Path = ROOT
) -> int:
    """Return the instructions of Python with the arguments *command*, its state in the folder
    *state* and the package in *root*; its output has *said*, and it reads *line*.
    """
    clean = {
        name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "CLAW"))
    }
    more = {
        "PYTHONPATH": f"{root}:{ROOT / 'benchmarks'}",
        "PYTHONHASHSEED": "0",
        "CLAWLITE_STATE": state,
        "CLAWLITE_NO_EXT": "1",
    }
    done = subprocess.run(
        [*VALGRIND, sys.executable, "-S", "-s", *command],
        env={**clean, **more},
        input=line,
        capture_output=True,
    )
    found = re.search(rb"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode or said not in done.stdout or not found:
        raise SystemExit(
            f"bench-gate: {' '.join(command)} failed under valgrind: "
            f"{(done.stderr or done.stdout)[-600:].decode(errors='replace')}"
        )
    return int(found[1].replace(b",", b""))


def instructions(bench) -> dict:
    """Return {number: instructions}; each run has a new folder for its state."""
    from clawlite.host.bench import agent

    image, runs = bench.agent(), itertools.count()

    def run(command: list, **more) -> int:
        return count(command, os.path.join(bench.folder, f"state-{next(runs):03}"), **more)

    counts, counted = {}, str(ROOT / "benchmarks" / "counted.py")
    run([counted, "call", image, "1"])  # writes the compiled modules
    for number, work, times in WORK:
        once, twice = (run([counted, work, image, str(n * times)]) for n in (1, 2))
        counts[number] = round((twice - once) / times)
    # a copy: the code file of the checkout has what every other command has loaded, too
    copy = Path(bench.folder, "package")
    shutil.copytree(
        ROOT / "clawlite", copy / "clawlite", ignore=shutil.ignore_patterns("__pycache__")
    )
    plain = bench.agent(own_tools=False)
    serve = [str(copy / "clawlite/__main__.py"), "serve", plain, "--stdio"]
    how = {"said": b'"READY"', "line": agent.opening(), "root": copy}
    run(serve, **how)  # writes the code file
    counts[READY] = run(serve, **how) - run(["-c", "pass"])
    return counts


def compare(holds: dict, found: dict) -> list:
    """Return the lines that say which of *found* fail beside *holds*, both {number: count}."""
    lines = []
    for number, count in found.items():
        held = holds.get(number)
        if held is None:
            lines.append(f"{number}: {count:,}, and none is recorded")
        elif count > held * (1 + MOST):
            lines.append(f"{number}: {count:,}, recorded {held:,} ({count / held - 1:+.1%})")
    return lines


def left_out(recorded: str, valgrind, here: str) -> str:
    """Return why instructions are not compared, or "".

    recorded  the build that the numbers are of;  here: this one;  valgrind: its path or None
    """
    if valgrind is None:
        return "valgrind is not installed"
    if recorded != here:
        return f"they are recorded for {recorded}, and this is {here}"
    return ""


def measured(reason: str) -> tuple:
    """Return ({number: count}, MicroPython's version); *reason*: why no instructions are counted,
    told on stderr, or "".
    """
    from clawlite.host.bench.run import Bench

    with tempfile.TemporaryDirectory(prefix="clawlite-bench-") as folder:
        bench = Bench(folder, 2)
        found, version = heaps(bench)
        if reason:
            sys.stderr.write(f"bench-gate: instructions are left out: {reason}\n")
        else:
            found.update(instructions(bench))
    return found, version


def main(words: list, path: Path = FILE) -> int:
    """Compare, or with ``--record REASON`` write *path*; return the exit code."""
    parser = argparse.ArgumentParser(prog="bench-gate", description="Counts against their record.")
    parser.add_argument("--record", metavar="REASON", help="write what is counted, and why")
    parser.add_argument("--heap", action="store_true", help="bytes of heap alone")
    chosen = parser.parse_args(words)
    kept = json.loads(path.read_text()) if path.exists() else {"build": "", "numbers": {}}
    here = build()
    wanted = here if chosen.record else kept["build"]
    reason = "asked for heap alone" if chosen.heap else ""
    reason = reason or left_out(wanted, shutil.which("valgrind"), here)
    found, version = measured(reason)
    if chosen.record is not None:
        return _record(path, kept, found, chosen.record, "" if reason else here, version)
    holds = {number: row["count"] for number, row in kept["numbers"].items()}
    for number, count in found.items():
        print(f"{number:50}{count:>14,}{holds.get(number, 0):>14,}")
    if version != kept["micropython"]:
        sys.stderr.write(
            f"bench-gate: heap bytes are not compared: they are recorded for "
            f"{kept['micropython']}, and this is {version}\n"
        )
        found = {number: count for number, count in found.items() if number not in dict(HEAPS)}
    if not found:
        sys.stderr.write(
            f"bench-gate: nothing was compared: install {kept['micropython']}, "
            "or record this one with --record\n"
        )
        return 1
    failed = compare(holds, found)
    for line in failed:
        sys.stderr.write(f"bench-gate: {line}\n")
    if failed:
        sys.stderr.write(
            "bench-gate: mend it, or say why it is worth it: python benchmarks/gate.py --record "
            '"REASON"\n'
        )
    return int(bool(failed))


def _record(path: Path, kept: dict, found: dict, why: str, here: str, version: str) -> int:
    """Write *found*; a number that changed by less than 3 % stays as it is, and so does its
    reason.
    """
    if not why.strip():
        sys.stderr.write("bench-gate: --record needs a reason\n")
        return 2
    # what another build of Python counted is no measure for this one
    is_new = bool(here) and here != kept["build"]
    for number, count in found.items():
        row = kept["numbers"].get(number)
        is_heap = number in dict(HEAPS)
        if row and abs(count - row["count"]) <= MOST * row["count"] and (is_heap or not is_new):
            continue
        kept["numbers"][number] = {"count": count, "reason": why}
    kept["build"], kept["micropython"] = here or kept["build"], version
    path.write_text(json.dumps(kept, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
