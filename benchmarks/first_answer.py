"""From a clone to the first answer: ``python benchmarks/first_answer.py [-n TIMES] [--beside N]
[-o FILE]``.

Clones this checkout, plays ``make run`` with an empty cache of packages, asks the greenhouse
whether the soil is dry, and ends when the answer has come.  --beside N: N processes compute
meanwhile.  A row for each part; the packages come from pip's index.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import targets  # noqa: E402

ASKED, ANSWER = "is the soil dry?\nn\n/quit\n", "The soil is"
BUSY = "while True: pass"


@contextlib.contextmanager
def compute(count: int):
    """Let *count* processes compute meanwhile."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
            one.wait()


def play(folder: str) -> tuple:
    """Return (seconds until the first answer of a fresh clone, seconds of the second start)."""
    clone = os.path.join(folder, "clone")
    env = {key: value for key, value in os.environ.items() if not key.startswith("CLAWLITE")}
    env.update(PIP_CACHE_DIR=os.path.join(folder, "cache"), CLAWLITE_STATE=folder + "/state")
    started = time.monotonic()
    subprocess.run(["git", "clone", "--quiet", str(ROOT), clone], check=True)
    first_s = answer_s(clone, env, started)
    return first_s, answer_s(clone, env, time.monotonic())


def answer_s(clone: str, env: dict, started: float) -> float:
    """Return the seconds from *started* until the agent of *clone* has answered."""
    with subprocess.Popen(
        ["make", "run"],
        cwd=clone,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as make:
        make.stdin.write(ASKED)
        make.stdin.close()
        seen = None
        for line in make.stdout:
            if seen is None and ANSWER in line:
                seen = time.monotonic() - started
    if seen is None or make.returncode:
        raise SystemExit("make run gave no answer (exit code %s)" % make.returncode)
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-n", type=int, default=3)
    parser.add_argument("--beside", type=int, default=0)
    parser.add_argument("-o", type=Path)
    words = parser.parse_args()
    bench = targets.JudgedBench("start", words.n)
    parts = []
    with compute(words.beside):
        for _ in range(words.n):
            with tempfile.TemporaryDirectory() as folder:
                parts.append(play(folder))
    beside = " beside %d busy processes" % words.beside if words.beside else ""
    for name, values in zip(("clone to first answer", "second start"), zip(*parts)):
        row = bench.row("start", name + beside, "s", list(values))
        print(row)
        if words.o:
            import json

            with words.o.open("a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
