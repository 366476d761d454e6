"""The table of targets (targets.toml), and the rows of a run beside it.

1. A number that a row must not exceed stands in the table and in no other code; ``target_for``
   finds it by the names of the row.
"""

import functools
import os
import tomllib
from collections import Counter
from fnmatch import fnmatchcase

from clawlite.host.bench.run import Bench

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets.toml")
REACHED, MISSED, NOT_MEASURED = "reached", "MISSED", "not measured"
_VERDICTS = (REACHED, MISSED, NOT_MEASURED)
NO_RECORD = "no record"  # in docs/adr, of the limit that was measured
_TIMES = ("ms", "us", "ns")
_ID, _WHAT, _NUMBER = 18, 64, 10  # characters of columns: the longest id and what


@functools.cache
def table() -> list[dict]:
    """Return the targets in the order of the table, {key: value} each; the file tells the keys."""
    with open(PATH, "rb") as file:
        return tomllib.load(file)["target"]


def target_for(suite: str, case: str, core: str = "pure") -> dict | None:
    """Return the target that a row is held to, or None."""
    for target in table():
        if _holds(target, suite, case, core):
            return target
    return None


def _holds(target: dict, suite: str, case: str, core: str) -> bool:
    return (
        target["suite"] == suite
        and fnmatchcase(case, target["row"])
        and target.get("core", core) == core
    )


class JudgedBench(Bench):
    """A run whose rows are held to the table."""

    target_for = staticmethod(target_for)


def verdicts(rows: list[dict], suites) -> list[dict]:
    """Return what became of each target in a run of *suites* that gave *rows*:
    {"target", "verdict", "value", "why"}.

    When a target has several rows, the worst one counts.  "why" says what is missing when nothing
    was measured, and of a missed one that other work of the machine may be the cause.  Targets of
    suites that did not run are left out.
    """
    found = []
    for target in table():
        held = [row for row in rows if _holds(target, row["suite"], row["case"], row["core"])]
        if held:
            value = max(row["value"] for row in held)
            missed = [row for row in held if row["met"] is False]
            verdict, why = MISSED if missed else REACHED, _noise(missed)
            found.append({"target": target, "verdict": verdict, "value": value, "why": why})
        elif target["suite"] in suites:
            why = "needs " + target.get("needs", "a run that goes well")
            found.append({"target": target, "verdict": NOT_MEASURED, "value": None, "why": why})
    return found


def _noise(missed: list[dict]) -> str:
    """Return words for rows that missed by their median of times, and whose least sample did not:
    other work makes a time longer, never shorter.  "" of other rows.
    """
    for row in missed:
        is_median = row["value"] == row["p50"] and row["unit"] in _TIMES
        if not is_median or row["min"] > row["target"]:
            return ""
    if not missed:
        return ""
    load = max(row["load"] or 0 for row in missed)
    return f"the least sample reached it (load {load:.1f}): measure again when less runs"


def without_record(found: list[dict]) -> list[str]:
    """Return the ids of those of ``verdicts`` that were missed, not by noise, without a record."""
    missed = [one for one in found if one["verdict"] == MISSED and not one["why"]]
    return [one["target"]["id"] for one in missed if not one["target"].get("adr")]


def verdict_lines(found: list[dict]) -> list[str]:
    """Return the table of ``verdicts`` as lines for people: the heading first, at the end how many
    were reached, and how to measure those that were not measured.
    """
    table_lines = [
        f"{'id':{_ID}}{'what':{_WHAT}}{'value':>{_NUMBER}}{'limit':>{_NUMBER}} unit   result"
    ]
    for one in found:
        target, adr = one["target"], one["target"].get("adr", "")
        reasons = [one["why"]] if one["why"] else []
        if one["verdict"] == MISSED and (adr or not reasons):
            reasons.insert(0, f"docs/adr/{adr}" if adr else NO_RECORD)
        result = ": ".join([one["verdict"], *filter(None, ["; ".join(reasons)])])
        table_lines.append(
            f"{target['id']:{_ID}}{target['what']:{_WHAT}}{_number(one['value']):>{_NUMBER}}"
            f"{_number(target['limit']):>{_NUMBER}} {target['unit']:6} {result}"
        )
    counts = Counter(one["verdict"] for one in found)
    total = ", ".join(f"{counts[verdict]} {verdict}" for verdict in _VERDICTS)
    more = "; make bench, in a checkout, measures all" if counts[NOT_MEASURED] else ""
    return [*table_lines, f"{len(found)} target{'s' * (len(found) != 1)}: {total}{more}"]


def _number(number) -> str:
    if number is None:
        return "-"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
