"""clauses.toml is whole and true: every MUST is held by a test that exists and counts, or says
what it waits for.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from ckp.book import CASES, HERE, PENDING, waits_for

ROOT = Path(__file__).resolve().parents[2]
CLAUSES = tomllib.loads((HERE / "clauses.toml").read_text())["clause"]
WORDS = {"id", "level", "kind", "title", "tests", "pending", "binds", "reason"}
SECTIONS = {
    "5",
    *("5.%d" % n for n in range(1, 11)),
    "6",
    "6.1",
    "7",
    "8",
    "9.0",
    "9.2",
    "9.3.1",
    "9.3.2",
    "9.3.3",
    "9.3.4",
    "9.4",
    "11",
    "tool",
    "sandbox",
}


@pytest.fixture(scope="module")
def collected():
    """Every test that pytest finds in the files that clauses name, with its parameters and
    without.
    """
    files = sorted(
        {
            name.split("::")[0]
            for clause in CLAUSES
            for name in clause.get("tests", ())
            if "::" in name
        }
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=300,
        env={
            key: os.environ[key] for key in set(os.environ) - {"CLAWLITE_RESULTS", "PYTEST_ADDOPTS"}
        },
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    names = [line for line in done.stdout.splitlines() if "::" in line]
    return set(names) | {name.split("[")[0] for name in names}


def holds(name: str) -> bool:
    """Return whether the test *name* can fail for the clause's sake: a case that is expected to
    fail holds nothing.
    """
    return "::" in name or waits_for(name) == []


def test_every_clause_is_well_formed_and_there_once():
    ids = [clause["id"] for clause in CLAUSES]
    assert len(set(ids)) == len(ids)
    for clause in CLAUSES:
        assert (
            set(clause) <= WORDS
            and clause["kind"] in ("MUST", "SHOULD")
            and clause["level"] in ("L1", "L2", "L3")
        ), clause
        assert clause["title"] and clause.get("pending") in (None, *PENDING), clause
    assert {id.rsplit("-", 1)[0] for id in ids} == SECTIONS


def test_numbers_of_a_section_have_no_gap():
    for section in SECTIONS:
        numbers = [
            int(clause["id"].rsplit("-", 1)[1])
            for clause in CLAUSES
            if clause["id"].rsplit("-", 1)[0] == section
        ]
        assert numbers == list(range(1, len(numbers) + 1)), section


@pytest.mark.parametrize("clause", CLAUSES, ids=[clause["id"] for clause in CLAUSES])
def test_somebody_answers_for_it(clause):
    held = [
        name
        for name in clause.get("tests", ())
        if "::" not in name and name not in CASES or holds(name)
    ]
    if clause["kind"] == "MUST" and "binds" not in clause:
        assert held or "pending" in clause, "a MUST without a test"
        assert "reason" not in clause, "a MUST is not argued away"
    else:
        assert held or "pending" in clause or clause.get("reason"), "neither a test nor a reason"


def test_what_is_named_exists(collected):
    named = {name for clause in CLAUSES for name in clause.get("tests", ())}
    assert {name for name in named if name not in CASES and name not in collected} == set()
