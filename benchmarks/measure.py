"""All suites, held to the table of targets: ``python benchmarks/measure.py [SUITE]...``, from
``make bench``.

``clawlite bench`` has some of these suites, and judges nothing.  What was missed is listed at the
end; the exit code is 1 then, and 2 when a part failed.
"""

import argparse
import functools
import json
import sys
from pathlib import Path

from suites import compiled, mcp, memory, page, page_browser, provider, sandbox, triggers
from targets import NO_RECORD, JudgedBench, verdict_lines, verdicts, without_record

from clawlite.core.base.errors import ClawError
from clawlite.host.bench import bench

FUNCTIONS = {
    "build": [compiled.build],
    **bench.own_functions(),
    "decision": [compiled.decision],
    "scan": [compiled.scan],
    "provider": [provider.provider],
    "proxy": [provider.proxy],
    "memory": [memory.memory, memory.threads, memory.journal, memory.audit],
    "triggers": [triggers.triggers],
    "sandbox": [sandbox.sandbox],
    "mcp": [mcp.mcp, mcp.ready, mcp.compiles],
    "page": [page.page, page.weight, page_browser.paint, page_browser.shown],
}
# suites that need more: make bench-peers, make bench-swarm, benchmarks/cortex_m3
ELSEWHERE = ("peers", "swarm", "cortex-m3")
RECORD = Path(bench.__file__).with_name("recorded.json")
# as bench.RECORDED_S
RECORDED_S = {
    **bench.RECORDED_S,
    "build: build": 49,
    "provider: provider": 20,
    "proxy: proxy": 10,
    "decision: decision": 10,
    "memory: memory": 30,
    "triggers: triggers": 30,
    "sandbox: sandbox": 20,
    "mcp: mcp": 12,
}
# seconds of these parts with --long, where they differ
RECORDED_LONG_S = {"build: build": 120, "micropython: grows_asked": 580, "boards: promises": 1000}


def run(suites: list, rounds: int, took, is_long: bool = False) -> None:
    """Run *suites*, all of ``FUNCTIONS`` when empty; ``took(row)`` gets each row, with its target.
    Raises ``ClawError`` at the end, when a part failed.

    is_long  also rows that take minutes
    """
    recorded = {**RECORDED_S, **RECORDED_LONG_S} if is_long else RECORDED_S
    bench.run_functions(
        {suite: FUNCTIONS[suite] for suite in suites or FUNCTIONS},
        took,
        lambda folder: JudgedBench(folder, rounds, is_long),
        functools.partial(bench.seconds_of, recorded=recorded),
        "python benchmarks/measure.py",
    )


def judge(rows: list, suites=()) -> list:
    """Return the lines about the targets of *suites*, of those of *rows* when empty, and list what
    was missed on stderr.
    """
    found = verdicts(rows, suites or {row["suite"] for row in rows})
    missed = [row for row in rows if row["met"] is False]
    goals = sum(row["target"] is not None for row in rows)
    if missed:
        lines = "".join(map(_text_missed, missed))
        sys.stderr.write(f"measure: {len(missed)} of {goals} targets missed:\n{lines}")
    if bare := without_record(found):
        sys.stderr.write(
            f"measure: {NO_RECORD} in docs/adr has the measured limit of {', '.join(bare)}: "
            "mend it, or write one and name it in targets.toml (adr)\n"
        )
    return verdict_lines(found)


def _text_missed(row: dict) -> str:
    return (
        f"  {row['suite']}: {row['case']}: {bench.short(row['value'])} {row['unit']}, target "
        f"{bench.short(row['target'])}\n"
    )


def record(path: str) -> None:
    """Put the rows of *path* that ``clawlite bench`` has, too, in the place of the machine's in
    recorded.json.  Ratios and rows of the compiled core are no help to a maker.
    """
    rows = [
        row
        for row in bench.read(path)
        if row["suite"] in bench.SUITES and row["core"] == "pure" and row["unit"] != "ratio"
    ]
    first = rows[0]
    name = f"{first['board']}, {first['clock_mhz']} MHz, {first['python']}"
    machines = json.loads(RECORD.read_text()) if RECORD.exists() else []
    machines = [one for one in machines if one["name"] != name]
    listed = [[row["suite"], row["case"], row["p50"], row["unit"]] for row in rows]
    machines.append({"name": name, "rows": listed})
    RECORD.write_text(json.dumps(machines, indent=0) + "\n")


def main(words=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("suites", metavar="SUITE", nargs="*", help=", ".join(FUNCTIONS))
    parser.add_argument("--rounds", type=int, default=31, help="samples of each case; 31")
    parser.add_argument(
        "--long",
        action="store_true",
        dest="is_long",
        help="also what takes minutes: 100,000 rules, cut power, gateways that break, a newcomer's "
        "script",
    )
    parser.add_argument("--rows", metavar="FILE.jsonl", help="count these rows of others, too")
    parser.add_argument("-o", dest="output", metavar="FILE.jsonl", help="write the rows here too")
    parser.add_argument(
        "--record", metavar="FILE.jsonl", help="measure nothing: put these rows on record"
    )
    parser.add_argument("--json", action="store_true", dest="as_json", help="JSON, a row a line")
    given = parser.parse_args(words)
    strange = [suite for suite in given.suites if suite not in FUNCTIONS]
    if strange:
        parser.error(f"unknown suite {strange[0]}; known: {', '.join(FUNCTIONS)}")
    if given.record:
        record(given.record)
        return 0
    whole = given.suites or (*FUNCTIONS, *ELSEWHERE)
    try:
        before = bench.read(given.rows) if given.rows else []
        rows = bench.show(
            lambda took: run(given.suites, given.rounds, took, given.is_long),
            given.as_json,
            given.output,
            before,
            lambda rows: judge(rows, whole),
            bench.HEADER + f"{'value':>9}{'target':>8}",
        )
    except ClawError as e:
        sys.stderr.write(f"measure: {e.message} - {e.hint}\n")
        return 2
    return 1 if any(row["met"] is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
