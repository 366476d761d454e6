"""Runs tests/core on the real MicroPython: from the sources, or from what a board gets, ``.mpy``
files made with -O3, in the stack of a Pico.

By hand: ``python tests/run_core_micropython.py [--mpy] [test_cbor ...]``.  Under pytest:
tests/device/test_core_on_micropython.py.  At -O3 every ``assert`` is gone, so the tests themselves
stay sources in both modes.  What runs from the sources has the whole stack of the unix port: no
board compiles them."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from clawlite.host.fit import stack

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests/core"
BOARD = ROOT / "firmware-host/micropython"
ROOMS = sorted(p for p in BOARD.iterdir() if p.is_dir() and p.name != "boot")
RUNNER = ROOT / "tests/micropython_runner.py"
TIMEOUT_S = 240
# A module is loaded with all of the stack, as no board nests imports like these; its tests are not.
_IN_SHORT_STACK = (
    stack.FUNCTIONS
    + """
import sys
sys.path.append(%r)
import micropython_runner
sys.exit(micropython_runner.main(sys.argv[1:], lambda test: _shallow(%d, test)))
"""
)


def command(name: str) -> "str | None":
    """Return the path of command *name*: beside this Python, else on PATH, else None."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name)


def modules() -> list:
    return sorted(path.stem for path in TESTS.glob("test_*.py"))


def precompile(tree: Path) -> list:
    """Compile the core and what a board boots into *tree*, as a board gets them: ``.mpy``, -O3.

    Returns the folders for MicroPython's path.  Raises RuntimeError with mpy-cross' own words.
    """
    jobs = [(ROOT / "clawlite/__init__.py", tree / "clawlite/__init__.mpy")]
    jobs += [
        (p, (tree / p.relative_to(ROOT)).with_suffix(".mpy"))
        for part in ("core", "scan")
        for p in (ROOT / "clawlite" / part).rglob("*.py")
    ]
    jobs += [(p, tree / "board" / (p.stem + ".mpy")) for room in ROOMS for p in room.glob("*.py")]
    for source, target in jobs:
        target.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [command("mpy-cross"), "-O3", "-s", source.name, "-o", target, source],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(
                "mpy-cross -O3 %s: %s" % (source.relative_to(ROOT), done.stderr or done.stdout)
            )
    return [tree, tree / "board"]


def from_source() -> list:
    """Return what starts the runner with all of the unix port's stack."""
    import pico_stack  # which takes the command from here

    return [pico_stack.whole("sources"), str(RUNNER)]


def as_a_board() -> list:
    """Return what starts the runner, whose tests have the stack of a Pico."""
    import pico_stack

    return pico_stack.started(_IN_SHORT_STACK % (str(RUNNER.parent), pico_stack.BYTES))


def run_module(name: str, folders: list, start: list) -> tuple:
    """Run one test module in a MicroPython of its own, *start* being its command and script;
    *folders* come first on its path.

    Returns (passed, output): passed is False too when the process crashed or said nothing of the
    module."""
    path = [str(f) for f in folders] + [str(TESTS), ".frozen"]
    # MicroPython puts the script's folder first on the path, not the current one: ROOT hides no
    # .mpy.
    done = subprocess.run(
        [*start, name],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIMEOUT_S,
        env=dict(os.environ, MICROPYPATH=":".join(path)),
    )
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        output += "\n(exit code %d)" % done.returncode
    return done.returncode == 0 and "@module %s " % name in output, output


def main(arguments: list) -> int:
    names = [a for a in arguments if a != "--mpy"] or modules()
    bad = 0
    with tempfile.TemporaryDirectory() as tree:
        folders, start = [ROOT, *ROOMS], from_source()
        if "--mpy" in arguments:
            folders, start = precompile(Path(tree)), as_a_board()
        for name in names:
            passed, output = run_module(name, folders, start)
            bad += not passed
            print(output, end="")
    print("%d passed, %d failed" % (len(names) - bad, bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
