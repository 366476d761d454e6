"""A decision of clawlite beside other policy engines: ``policies.py PYTHON [-o FILE.jsonl]``, from
``make bench-peers``.

PYTHON is that of an environment with requirements.txt.  Each engine is a process of its own
(engines.py) that has the same rules, and whose answers are checked; they are measured in turns.
Prints a table; FILE gets the rows (benchmarks/README.md).  Exit code 1 where a target was missed.
"""

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import targets  # noqa: E402
from suites import compiled  # noqa: E402

from clawlite.core.base.errors import ClawError  # noqa: E402
from clawlite.host.base.progress import RunProgress  # noqa: E402
from clawlite.host.bench import agent  # noqa: E402
from clawlite.host.bench.bench import text  # noqa: E402

# naive comes last: it is no engine, but the code that everybody would write first
PEERS = ("cel", "regorus", "cedarpy", "casbin", "naive")
BLOCK_NS = 5000000
ROUNDS = 15
# that each number of rules took on the machine of ../results/targets, for the line of progress
RECORDED_S = 1, 1, 5, 60
BEGIN_S = 20  # that the engines took to build their rules


class Engine:
    """One engine's process.

    name    what it is called in rows
    python  path of its interpreter
    case    path of a JSON file for each number of rules
    """

    def __init__(self, name: str, python: str, cases: list, environment: dict):
        self.name = name
        self._process = subprocess.Popen(
            [python, HERE / "engines.py", name.partition(" ")[0], *cases],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._times = [0] * len(cases)  # of a block

    def begin(self):
        """Wait until it has built its rules and given the right answers.  Raises ``ClawError``."""
        if self._process.stdout.readline() != "ready\n":
            raise ClawError(
                f"{self.name} did not begin, see above",
                "pip install -r benchmarks/peers/requirements.txt",
            )

    def block(self, number: int) -> float:
        """Return the nanoseconds of one decision with case *number*: the mean of a block."""
        if not self._times[number]:
            requests = 32
            self._times[number] = max(1, int(BLOCK_NS / (self._ask(number, 1) * requests)))
        return self._ask(number, self._times[number])

    def _ask(self, number: int, times: int) -> float:
        self._process.stdin.write(f"{number} {times}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def cases(folder: str, sizes: list) -> list:
    """Write what each engine decides, and the image for ours beside it; return the paths."""
    found = []
    for size in sizes:
        path = os.path.join(folder, f"{size}.json")
        compiled.rule_image(path.removesuffix(".json"), size)
        rules = agent.rules(size)
        actions = {rule["id"]: rule["action"] for rule in rules}
        actions["exact-0-0"] = "allow"
        requests = [
            [
                name,
                category or "",
                "/workspace/notes/2026/may.txt" if (category or "").startswith("files") else "",
                actions[rule],
            ]
            for name, category, rule in compiled.rule_requests(size // 10)
        ]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"rules": rules, "requests": requests}, file)
        found.append(path)
    return found


def parts(sizes) -> list:
    """Return what ``RunProgress`` is told of ``rows``."""
    times = zip(sizes, RECORDED_S, strict=False)
    return [("engines begin", BEGIN_S), *((f"{size:,} rules", s) for size, s in times)]


def rows(
    bench: targets.JudgedBench,
    python: str,
    rounds: int,
    progress: RunProgress,
    sizes=compiled.SIZES,
):
    """Yield a row for each engine and number of rules, and what ours takes of the fastest peer's
    time.
    """
    progress.begin(0)
    paths = cases(bench.make("peers"), list(sizes))
    made = []
    accel = os.path.join(bench.package, "build", "accel")
    ours = ["clawlite"] + (["clawlite cython"] if os.path.isdir(accel) else [])
    try:
        for name in ours:
            where = accel if name != "clawlite" else bench.package
            environment = dict(bench.environment(), PYTHONPATH=where)
            if name == "clawlite":
                environment["CLAWLITE_NO_EXT"] = "1"
            made.append(Engine(name, sys.executable, paths, environment))
        made += [Engine(name, python, paths, bench.environment()) for name in PEERS]
        for engine in made:
            engine.begin()
        for number, size in enumerate(sizes):
            progress.begin(1 + number)
            found = {engine.name: [] for engine in made}
            for _ in range(rounds):
                for engine in made:
                    found[engine.name].append(engine.block(number))
            for name, ns in found.items():
                core = "cython" if name.endswith(" cython") else "pure"
                case = f"decide, {size:,} rules, {name}"
                yield bench.row("peers", case, "ns", ns, note="32 requests", core=core)
            peer = fastest(found)
            for name in ours:
                yield bench.row(
                    "peers",
                    f"{name} over the fastest peer, {size:,} rules",
                    "ratio",
                    [a / b for a, b in zip(found[name], found[peer])],
                    None,
                    f"the fastest is {peer}",
                    "cython" if name != "clawlite" else "pure",
                )
    finally:
        for engine in made:
            engine.close()


def fastest(found: dict) -> str:
    """Return the name of the fastest engine of *found*, {name: samples}.  naive is no engine, so it
    counts only when no engine was measured.
    """
    engines = [name for name in PEERS if name != "naive"] or PEERS
    return min(engines, key=lambda name: statistics.median(found[name]))


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("python", help="that of an environment with requirements.txt")
    parser.add_argument("-o", "--output", help="file that rows are added to, as JSON lines")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="samples of each; default 15")
    given = parser.parse_args(arguments)
    found = []
    with (
        tempfile.TemporaryDirectory(prefix="clawlite-bench-") as folder,
        RunProgress(parts(compiled.SIZES)) as progress,
    ):
        try:
            for row in rows(
                targets.JudgedBench(folder, given.rounds), given.python, given.rounds, progress
            ):
                progress.show(functools.partial(print, flush=True), text(row))
                found.append(row)
                if given.output:
                    with open(given.output, "a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
        except ClawError as e:
            print(f"clawlite: {e.message}{e.hint and ' - ' + e.hint}", file=sys.stderr)
            return 1
    print("", *targets.verdict_lines(targets.verdicts(found, ["peers"])), sep="\n")
    return 1 if any(row["met"] is False for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
