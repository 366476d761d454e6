"""Set up .venv with the packages of locks, and say how far it is: ``make run`` and ``make venv``.

    python requirements/install.py [--optional LOCK]... LOCK...

1. Standard library alone; it runs before anything is installed.
2. What it will do and how big that is comes first.  Then a line for each step, and at least one
   every ``EVERY`` seconds.
3. What a step prints is shown when it fails, and its exit code is the script's.  A lock that is
   optional may fail: its reason is a line.
"""

import queue
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = Path(".venv")
EVERY = 1.8  # seconds
PIP = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar=off"]
# what the package itself needs of pip: the sources stay where they are
EDITABLE = ["--no-deps", "--no-build-isolation", "--config-settings", "editable_mode=compat"]

# "Collecting NAME==1.0 (from ...)", "Processing /folder/NAME-1.0-py3-none-any.whl (from ...)"
PIP_STEP = re.compile(
    r"(?:Collecting |Processing \S*/)([A-Za-z0-9._]+(?:-[A-Za-z][A-Za-z0-9._]*)*)|"
    r"Installing collected()"
)


def read_names(lock: Path) -> list:
    """Return the names of a lock's packages, as they stand in it."""
    return re.findall(r"^([A-Za-z0-9._-]+)==", lock.read_text(), re.M)


def run(title: str, words: list, every: float = EVERY) -> int:
    """Run a program, with a line for *title*, for each package that pip collects and whenever
    *every* seconds passed without one.  Return its exit code; what it printed is shown when that
    is not 0.
    """
    print("  " + title, flush=True)
    started, printed, lines = time.monotonic(), [], queue.Queue()
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:

        def read():
            for line in process.stdout:
                lines.put(line)
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        at, last = title, started
        while True:
            try:
                line = lines.get(timeout=max(0.05, last + every - time.monotonic()))
            except queue.Empty:
                last = time.monotonic()
                print("  %s: %d s" % (at, last - started), flush=True)
                continue
            if line is None:
                break
            printed.append(line)
            found = PIP_STEP.match(line)
            if found:
                at, last = found[1] or "unpacking them", time.monotonic()
                print("  " + at, flush=True)
    if process.returncode:
        print("".join(printed), end="", file=sys.stderr, flush=True)
    return process.returncode


def install(locks: list, optional: list) -> int:
    """Make VENV where it is not, install the packages of *locks* and *optional*, and this
    checkout; return the exit code.
    """
    names = [name for lock in [*locks, *optional] for name in read_names(lock)]
    megabytes = 1 + sum(SIZES.get(lock.name, 0) for lock in [*locks, *optional])
    print(
        "Installing clawlite and %d packages into .venv, about %d MB: %s."
        % (len(names), megabytes, ", ".join(sorted(names, key=str.lower))),
        flush=True,
    )
    here = VENV / "pyvenv.cfg"
    kept = here.is_file() and str(VENV.resolve()) in here.read_text()
    python = str(VENV / ("Scripts" if sys.platform == "win32" else "bin") / "python")
    clear = [] if kept else ["--clear"]
    code = run("a Python environment", [sys.executable, "-m", "venv", *clear, str(VENV)])
    for lock in locks:
        code = code or run(
            "packages of %s" % lock, [python, *PIP, "--require-hashes", "-r", str(lock)]
        )
    for lock in optional if not code else []:
        if run("packages of %s" % lock, [python, *PIP, "--require-hashes", "-r", str(lock)]):
            print("Without %s: they do not install on this system." % lock, flush=True)
    return code or run("clawlite", [python, *PIP, *EDITABLE, "-e", str(ROOT)])


# megabytes that the packages of a lock take on a disk, with pip's own
SIZES = {"run.txt": 34, "sim.txt": 12, "test.txt": 330}


def main(words: list) -> int:
    optional = [Path(after) for before, after in zip(words, words[1:]) if before == "--optional"]
    locks = [Path(word) for word in words if word != "--optional" and Path(word) not in optional]
    return install(locks, optional)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
