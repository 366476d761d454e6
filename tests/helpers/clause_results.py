"""What a test run showed, clause by clause: ``clawlite conformance`` of a checkout reads it
(host/manifest/conformance.py).

A clause is "failed" when one of the tests that hold it failed, "held" when all that ran passed and
each of them ran, else "not run"."""

import datetime
import json
import tomllib
from pathlib import Path

CLAUSES = Path(__file__).resolve().parents[1] / "ckp" / "clauses.toml"
_CASE = (
    "tests/ckp/test_cases.py::test_case[%s]",
    "tests/ckp/test_cases.py::test_case_without_isolation[%s]",
)


def of(outcomes: dict, clauses: list) -> dict:
    """Return {id of a clause: "held" | "failed" | "not run"}.

    outcomes  {name of a test as pytest gives it: "passed" | "failed" | anything else}
    clauses   of clauses.toml; one that names no test has no row
    """
    by_name = {}
    for name, outcome in outcomes.items():
        by_name.setdefault(name, []).append(outcome)
        if "[" in name:
            by_name.setdefault(name.split("[")[0], []).append(outcome)
    return {
        clause["id"]: _verdict([_outcomes(name, by_name) for name in clause["tests"]])
        for clause in clauses
        if clause.get("tests")
    }


def _outcomes(name: str, by_name: dict) -> list:
    """Return the outcomes of the test or case *name*; a case that was expected to fail and is
    held another way counts by that.
    """
    names = [name] if "::" in name else [form % name for form in _CASE]
    return [outcome for one in names for outcome in by_name.get(one, ())]


def _verdict(tests: list) -> str:
    if any("failed" in outcomes for outcomes in tests):
        return "failed"
    return "held" if all("passed" in outcomes for outcomes in tests) else "not run"


def write(file: Path, outcomes: dict) -> None:
    """Write what a run's *outcomes* say to *file*."""
    found = of(outcomes, tomllib.loads(CLAUSES.read_text())["clause"])
    when = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    file.write_text(json.dumps({"at": when, "clauses": found}, indent=1) + "\n")
