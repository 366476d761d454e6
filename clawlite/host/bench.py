"""``clawlite bench``: what this machine does, as rows; benchmarks/README.md says what each key and suite means.

1. A row is one case of one suite: n samples, their spread, and what was measured where.
2. What a target compares is measured in the same run, in turns: ``value`` and ``target`` of a row are that comparison.
3. Nothing here fails because a machine is slow; a run that gives a wrong answer does (``ClawError``).
"""
import json
import sys
import tempfile

from clawlite.core.errors import ClawError
from clawlite.host.bench_run import Bench

SUITES = ("build", "load", "ready", "decision", "call", "turn", "netrules", "scan", "micropython", "provider", "memory", "triggers", "sandbox", "boards")


def run(suites: list[str], rounds: int, took, is_long: bool = False) -> None:
    """Run *suites*, names of ``SUITES``, all when empty; ``took(row)`` gets each row as it is there; *is_long*: also rows that take minutes.

    Raises ``ClawError`` at the end, when a part failed; that is told at once, and the others go on.
    """
    from clawlite.host import bench_board, bench_heap, bench_memory, bench_micropython, bench_promises, bench_provider, bench_sandbox, bench_serve, bench_stores, \
        bench_suites, bench_triggers
    functions = {"build": [bench_suites.build], "load": [bench_suites.load], "ready": [bench_serve.ready],
                 "decision": [bench_suites.decision], "call": [bench_suites.call, bench_serve.call],
                 "turn": [bench_suites.turn, bench_micropython.turn], "netrules": [bench_suites.netrules], "scan": [bench_suites.scan],
                 "micropython": [bench_micropython.calls, bench_heap.turns, bench_board.grows, bench_board.grows_asked, bench_board.refused, bench_board.words32, bench_stores.stores],
                 "provider": [bench_provider.provider], "memory": [bench_memory.memory], "triggers": [bench_triggers.triggers],
                 "sandbox": [bench_sandbox.sandbox], "boards": [bench_promises.boards]}
    with tempfile.TemporaryDirectory(prefix="clawlite-bench-") as folder:
        bench = Bench(folder, rounds, is_long)
        failed = []
        for suite in suites or SUITES:
            for function in functions[suite]:
                try:
                    for row in function(bench):
                        took(row)
                except ClawError as e:
                    failed.append(f"{suite}: {function.__name__}")
                    sys.stderr.write(f"clawlite: {failed[-1]}: {e.message}\n")
                    error = e
    if len(failed) > 1:
        raise ClawError("parts of this run failed: " + ", ".join(failed), "their errors stand above")
    if failed:
        raise error


def show(suites: list[str], rounds: int, as_json: bool, output: str = None, is_long: bool = False) -> None:
    """Run *suites* and print a table, or with *as_json* JSON lines; *output* is a file that gets JSON lines too."""
    def took(row):
        found = json.dumps(row, ensure_ascii=False)
        print(found if as_json else text(row), flush=True)
        if file:
            file.write(found + "\n")
    try:
        file = open(output, "w", encoding="utf-8") if output else None
    except OSError as e:
        raise ClawError(f"{output}: {e.strerror}", "name another file with -o") from None
    try:
        if not as_json:
            print(HEADER, flush=True)
        run(suites, rounds, took, is_long)
    finally:
        if file:
            file.close()


HEADER = f"{'suite':12}{'case':44}{'median':>11}{'min':>11}{'p90':>11} {'unit':6}{'n':>4}{'value':>9}{'target':>8}"


def text(row: dict) -> str:
    """Return *row* as a line below ``HEADER``."""
    goal = "" if row["target"] is None else "%9s%8s %s" % (_short(row["value"]), _short(row["target"]), "ok" if row["met"] else "MISSED")
    if row["target"] is None and row["value"] != row["p50"]:
        goal = "%9s" % _short(row["value"])
    case = row["case"] + (" (Cython)" if row["core"] == "cython" else "")
    return "%-12s%-44s%11s%11s%11s %-6s%4d%s" % (row["suite"], case, _short(row["p50"]), _short(row["min"]), _short(row["p90"]),
                                                row["unit"], row["n"], goal)


def _short(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
