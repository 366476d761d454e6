"""``clawlite bench``: measure this machine and print rows; benchmarks/README.md explains each key
and suite.

1. A row is one case of one suite: n samples, their spread, what was measured, and on which machine.
2. Nothing is judged here: what was measured stands beside the same case on machines that are on
   record (recorded.json).  ``make bench`` holds rows to targets (benchmarks/measure.py).
3. A run that gives a wrong answer fails (``ClawError``).
"""

import json
import os
import sys
import tempfile

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import did_you_mean
from clawlite.host.base.progress import RunProgress
from clawlite.host.base.without_links import open_named
from clawlite.host.bench.run import Bench

SUITES = ("load", "ready", "call", "turn", "netrules", "micropython", "boards")
OF_SIM = ("micropython", "boards")  # what a board must withstand, with MicroPython here
# Recorded seconds of each part, "suite: function", that takes more than _SHORT_S, with 31 rounds on
# two busy cores.  After the first part only the ratios count (host/base/progress.py).
RECORDED_S: dict[str, float] = {
    "ready: ready": 10,
    "ready: cost": 12,
    "micropython: calls": 154,
    "micropython: turns": 21,
    "micropython: grows": 6,
    "micropython: grows_asked": 58,
    "micropython: refuses": 39,
    "micropython: words32": 34,
    "micropython: stores": 6,
    "micropython: stack": 354,
    "boards: promises": 500,
}
_SHORT_S = 5


def seconds_of(name: str, recorded=RECORDED_S) -> float:
    """Return the seconds that were *recorded* of *name*: "suite: function", or a suite, with all
    of its parts.
    """
    return (
        sum(seconds for part, seconds in recorded.items() if name in (part, part.partition(":")[0]))
        or _SHORT_S
    )


def run(suites: list[str], rounds: int, took, is_here: bool = False) -> None:
    """Run *suites*, names of ``SUITES``, those of this machine when empty; ``took(row)`` gets each
    row as it is there.

    is_here  on a device, with the standard library alone (device.py)
    Raises ``ClawError`` as ``run_functions``.
    """
    functions = own_functions()
    if is_here:
        functions["turn"] = functions["turn"][:1]  # without MicroPython
    chosen = suites or [suite for suite in SUITES if suite not in OF_SIM]
    run_functions(
        {suite: functions[suite] for suite in chosen},
        took,
        lambda folder: Bench(folder, rounds, is_here=is_here),
    )


def run_functions(
    functions: dict, took, make, seconds=seconds_of, command="clawlite bench"
) -> None:
    """Run *functions*, {suite: [function(bench) that yields rows]}; ``took(row)`` gets each row.

    make     function(folder) -> ``Bench``
    seconds  function("suite: function") -> the seconds that were recorded of it
    command  that runs one of the suites
    Raises ``ClawError`` at the end, when a part failed; that is told at once, and the others go on.
    """
    parts = [(suite, function) for suite in functions for function in functions[suite]]
    names = [f"{suite}: {function.__name__}" for suite, function in parts]
    failed, hints = [], ["their errors stand above"]
    with (
        tempfile.TemporaryDirectory(prefix="clawlite-bench-") as folder,
        RunProgress([(name, seconds(name)) for name in names]) as progress,
    ):
        bench = make(folder)
        for at, (suite, function) in enumerate(parts):
            progress.begin(at)
            try:
                for row in function(bench):
                    progress.show(took, row)
            except (ClawError, ImportError) as e:
                error = e if isinstance(e, ClawError) else _lacking(suite, e)
                error.hint = error.hint or f"try this suite alone: {command} {suite}"
                failed.append(names[at])
                if error.hint and error.hint not in hints:
                    hints.append(error.hint)
                progress.show(sys.stderr.write, f"clawlite: {names[at]}: {error.message}\n")
    if len(failed) > 1:
        raise ClawError("parts of this run failed: " + ", ".join(failed), "; ".join(hints))
    if failed:
        raise error


def own_functions() -> dict:
    """Return {suite: [function]} of ``SUITES``."""
    from clawlite.host.bench import board, heap, micropython, serve, stack, stores, suites

    return {
        "load": [suites.load],
        "ready": [serve.ready, serve.cost, serve.manifest],
        "call": [suites.call, serve.call, serve.batches],
        "turn": [suites.turn, micropython.turn],
        "netrules": [suites.netrules],
        "micropython": [
            micropython.calls,
            heap.turns,
            board.grows,
            board.grows_asked,
            board.refuses,
            board.words32,
            stores.stores,
            stack.stack,
        ],
        "boards": [board.promises],
    }


def _lacking(suite: str, e: ImportError) -> ClawError:
    return ClawError(
        f"the suite {suite} needs the host packages ({e.name} is missing)",
        "pip install 'clawlite[host]', or measure with what is here: clawlite bench --here",
    )


def suites_of(names: list, is_sim: bool) -> list:
    """Return the suites of a command line.  Raises ``ClawError`` for a name that is none."""
    for name in names:
        if name not in SUITES:
            raise ClawError(
                f"unknown suite {name}; known: {', '.join(SUITES)}",
                did_you_mean(name, SUITES) or "make bench, in a checkout, has those of developers",
            )
    return [
        *names,
        *(suite for suite in OF_SIM if is_sim and suite not in names),
    ]


def show(measure, as_json: bool, output=None, before=(), summary=None, heading=None) -> list:
    """Print the rows that ``measure(took)`` gives as a table, or with *as_json* as JSON lines;
    return them.

    output  a file that gets JSON lines too
    before  rows that were measured already: they come first
    summary  function(rows) -> lines for a person, below the table; also after a part that failed
    heading  of the table, in place of ``HEADER``
    Raises ``ClawError``.
    """
    rows = []

    def took(row):
        found = json.dumps(row, ensure_ascii=False)
        print(found if as_json else text(row), flush=True)
        if file:
            file.write(found + "\n")
        rows.append(row)

    try:
        file = open(output, "w", encoding="utf-8", opener=open_named) if output else None
    except OSError as e:
        raise ClawError(f"{output}: {e.strerror}", "name another file with -o") from None
    try:
        if not as_json:
            print(heading or HEADER, flush=True)
        for row in before:
            took(row)
        measure(took)
    finally:
        if file:
            file.close()
        lines = summary(rows) if rows and summary and not as_json else []
        if lines:
            print("", *lines, sep="\n", flush=True)
    return rows


def compare_recorded(rows: list) -> list:
    """Return lines that put *rows* of this machine beside those of machines that are on record."""
    with open(os.path.join(os.path.dirname(__file__), "recorded.json"), encoding="utf-8") as file:
        machines = json.load(file)
    lines = []
    for machine in machines:
        known = {(suite, case): (p50, unit) for suite, case, p50, unit in machine["rows"]}
        found = []
        for row in rows:
            there, unit = known.get((row["suite"], row["case"]), (0, ""))
            if row["core"] == "pure" and unit == row["unit"] and there:
                numbers = f"{short(row['p50'])} {unit} here, {short(there)} {unit} there"
                found.append(f"  {row['suite'] + ': ' + row['case']:{_CASE}} {numbers}")
        if found:
            lines += [f"Medians, beside {machine['name']}:", *found]
    return lines


_CASE = 68  # characters: the longest case
HEADER = f"{'suite':12}{'case':{_CASE}}{'median':>11}{'min':>11}{'p90':>11} {'unit':6}{'n':>4}"


def text(row: dict) -> str:
    """Return *row* as a line below ``HEADER``."""
    goal = (
        ""
        if row["target"] is None
        else "%9s%8s %s"
        % (short(row["value"]), short(row["target"]), "ok" if row["met"] else "MISSED")
    )
    if row["target"] is None and row["value"] != row["p50"]:
        goal = "%9s" % short(row["value"])
    case = row["case"] + (" (Cython)" if row["core"] == "cython" else "")
    return "%-12s%-*s%11s%11s%11s %-6s%4d%s" % (
        row["suite"],
        _CASE,
        case,
        short(row["p50"]),
        short(row["min"]),
        short(row["p90"]),
        row["unit"],
        row["n"],
        goal,
    )


def short(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


SAME = 0.03  # of the median before: a difference that is none
COMPARED = f"{'suite':12}{'case':{_CASE}}{'before':>11}{'after':>11} {'unit':6}{'change':>9}  "


def compare(before: str, after: str, as_json: bool) -> list:
    """Print how each case of the file *after* compares with the file *before*, both written with
    ``-o``; return the rows of those that got worse.

    Less is better in every row.  Rows of two boards, or of two firmwares of a board, are not
    compared.  A case is better or worse when its medians differ by more than
    3 % and its samples do not overlap; "noise" when they do.  Raises ``ClawError``.
    """
    old, new = _last(before), _last(after)
    found = [_compare(key, old.get(key), new.get(key)) for key in {**old, **new}]
    if not as_json:
        print(COMPARED)
    for row in found:
        print(json.dumps(row, ensure_ascii=False) if as_json else _change(row))
    return [row for row in found if row["verdict"] == "worse"]


def _last(path: str) -> dict:
    """Return {(suite, case, core): row} of a file of rows; the last one of a case counts."""
    return {(row["suite"], row["case"], row["core"]): row for row in read(path) if row["p50"] >= 0}


def read(path: str) -> list:
    """Return the rows of the file *path*.  Raises ``ClawError``."""
    try:
        with open(path, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file if line.strip()]
    except OSError as e:
        raise ClawError(f"{path}: {e.strerror}", "name a file that -o wrote") from None
    except ValueError:
        rows = [None]
    for row in rows:
        if not _is_row(row):
            raise ClawError(
                f"{path}: expected rows of a benchmark, one JSON object a line",
                "write them with: clawlite bench -o FILE.jsonl",
            )
    return rows


_TEXTS = ("suite", "case", "unit", "core")
_NUMBERS = ("n", "min", "p50", "p90", "max", "value")


def _is_row(row) -> bool:
    """Return whether *row* has what is compared and shown; older rows lack other keys."""
    return (
        isinstance(row, dict)
        and all(isinstance(row.get(key), str) for key in _TEXTS)
        and all(isinstance(row.get(key), (int, float)) for key in _NUMBERS)
        and isinstance(row.get("target", ""), (int, float, type(None)))
        and row.get("met", "") in (True, False, None)
    )


def _compare(key: tuple, old, new) -> dict:
    suite, case, core = key
    row = {"suite": suite, "case": case, "core": core, "unit": (new or old)["unit"]}
    row["before"], row["after"] = old and old["p50"], new and new["p50"]
    if old is None or new is None:
        return {**row, "change": None, "verdict": "gone" if new is None else "new"}
    if old["unit"] != new["unit"]:
        return {**row, "change": None, "verdict": f"before in {old['unit']}"}
    if other := _other(old, new):
        return {**row, "change": None, "verdict": f"another {other}"}
    difference = new["p50"] - old["p50"]
    change = difference / old["p50"] if old["p50"] else None
    if abs(difference) <= SAME * old["p50"]:
        verdict = "same"
    elif new["min"] <= old["max"] and old["min"] <= new["max"]:
        verdict = "noise"
    else:
        verdict = "worse" if difference > 0 else "better"
    return {**row, "change": change, "verdict": verdict}


def _other(old: dict, new: dict) -> str:
    """Return what makes two rows no like with like: "board", "clock" or "firmware"; "" where
    nothing does.  Of a computer its name alone counts: its clock and its system always change.
    """
    is_board = all(str(row.get("python")).startswith("MicroPython") for row in (old, new))
    names = (("board", "board"), ("clock_mhz", "clock"), ("firmware", "firmware"))
    for key, name in names if is_board else names[:1]:
        was, is_now = old.get(key), new.get(key)
        if was is not None and is_now is not None and was != is_now:
            return name
    return ""


def _change(row: dict) -> str:
    case = row["case"] + (" (Cython)" if row["core"] == "cython" else "")
    before, after = ("-" if row[when] is None else short(row[when]) for when in ("before", "after"))
    change = "" if row["change"] is None else f"{row['change']:+.0%}"
    return (
        f"{row['suite']:12}{case:{_CASE}}{before:>11}{after:>11} {row['unit']:6}{change:>9}  "
        f"{row['verdict']}"
    )
