"""Decisions of policy, by every way that they are made: the core as it is imported (on Cython where
it is compiled), the core from its source, MicroPython, and somebody who reads the rules one after
the other.  Random rules, tools and calls; all must come to the same answers.
"""

import fnmatch
import importlib.util
import json
import os
import posixpath
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pico_stack
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from run_core_micropython import ROOT

from clawlite.core.policy import policy as core
from clawlite.host.models import walk
from clawlite.host.policy import folding
from clawlite.host.policy.model import PolicySpec

SEED = int(os.environ.get("CLAWLITE_SEED", "1"))
HEALTH = list(HealthCheck)
CASES = 1_000_000
NAMES = ("read-file", "read_soil", "water", "write-file")
LABELS = st.dictionaries(st.sampled_from(["category", "zone"]), st.sampled_from(["net", "out"]))
HINTS = st.dictionaries(
    st.sampled_from(["readOnlyHint", "destructiveHint", "x"]), st.sampled_from([True, False])
)
ROOTS = ("/", "/a", "/a/b", "/workspace", "/workspace/../a/", "b")
PATHS = ("/", "/a", "/ab", "/a/b/../c", "/a/b/c", "//a", "b", "../a", "", "\0", 7)
ACTIONS = ("deny", "require-approval", "audit-only", "allow")


def present(**fields) -> st.SearchStrategy:
    """A mapping with each of *fields* or without it."""
    return st.fixed_dictionaries({}, optional=fields)


MATCH = present(
    name=st.sampled_from([*NAMES, "read-*", "*", "?ater", "nobody"]),
    category=st.sampled_from(["net", "out"]),
    labels=LABELS,
    annotations=HINTS,
)
RATE = present(tokens_per_day=st.sampled_from([0, 10]), cost_per_day_usd=st.sampled_from([0.0, 1]))
RULE = st.fixed_dictionaries(
    {
        "action": st.sampled_from(ACTIONS),
        "scope": st.sampled_from(["tool", "category", "all", "skill"]),
    },
    optional={
        "match": MATCH,
        "conditions": present(path_within=st.sampled_from(ROOTS)),
        "rate_limit": RATE,
    },
)
TOOL = st.tuples(st.sampled_from(NAMES), LABELS, HINTS, st.booleans())
CALL = st.tuples(
    st.lists(st.sampled_from(PATHS), max_size=3),
    st.sampled_from([None, (0, 0), (10, 0), (0, 10**9), (9, 10**9 - 1)]),
)
# one set of rules, one tool and one call of it
CASE = st.tuples(st.lists(RULE, min_size=1, max_size=6), TOOL, CALL)


class Rules:
    def __init__(self, rules: list):
        self.rules = rules

    def rule(self, number: int) -> list:
        return self.rules[number]


def from_source():
    """Return core/policy/policy.py, compiled by nobody."""
    path = os.path.join(ROOT, "clawlite", "core", "policy", "policy.py")
    spec = importlib.util.spec_from_file_location("policy_from_source", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SOURCE = from_source()


def wrong(path, message, *more, **named):
    raise AssertionError((path, message, more, named))


def folded(case: tuple) -> list:
    """Return [rules, entry, names of paths, arguments, used] of a case, as a device has them."""
    rules, (name, labels, hints, has_path), (paths, used) = case
    rules = [dict(rule, id="r%d" % number) for number, rule in enumerate(rules)]
    spec = walk.convert({"rules": rules}, PolicySpec, wrong)
    flat = folding.flatten([SimpleNamespace(name="p", spec=spec)])
    names = ["path"] if has_path else []
    tool = SimpleNamespace(
        kind="Tool", name=name, labels=labels, spec=SimpleNamespace(annotations=hints)
    )
    arguments = {"path": paths} if has_path else {}
    return [
        [rule.record() for rule in flat],
        folding.fold(flat, tool, names),
        names,
        arguments,
        used,
    ]


# -- the naive reader


def is_meant(rule: dict, name: str, labels: dict, hints: dict) -> bool:
    """5.8: scope and match of a rule, for a tool."""
    if rule["scope"] == "skill" or rule["scope"] == "category" and "category" not in labels:
        return False
    match = rule.get("match", {})
    pattern = match.get("name", "*").replace("_", "-")
    wanted = dict(match.get("labels", {}))
    if "category" in match:
        if labels.get("category") != match["category"]:
            return False
    return (
        fnmatch.fnmatchcase(name.replace("_", "-"), pattern)
        and wanted.items() <= labels.items()
        and match.get("annotations", {}).items() <= hints.items()
    )


def place(path):
    """Return the parts of a path, or None for what is none."""
    if not isinstance(path, str) or not path or "\0" in path:
        return None
    whole = posixpath.normpath(posixpath.join("/workspace", path))
    return [part for part in whole.split("/") if part]


def lies(path, root: list) -> bool:
    return path is not None and path[: len(root)] == root


def holds(rule: dict, paths: list, used) -> bool:
    """Whether the conditions of a rule hold for a call."""
    is_denial = rule["action"] == "deny"
    limits = rule.get("rate_limit", {})
    if limits:
        most = (limits.get("tokens_per_day"), limits.get("cost_per_day_usd"))
        is_spent = used is None or any(
            limit is not None and spent >= limit * scale
            for limit, spent, scale in zip(most, used, (1, 10**9))
        )
        if is_spent != is_denial:
            return False
    if "path_within" not in rule.get("conditions", {}):
        return True
    root, found = place(rule["conditions"]["path_within"]), [place(path) for path in paths]
    if is_denial:
        return any(path is None or lies(path, root) for path in found)
    return bool(found) and all(lies(path, root) for path in found)


def read(case: tuple) -> tuple:
    """Return (action, number of the rule that decides or None)."""
    rules, (name, labels, hints, has_path), (paths, used) = case
    for number, rule in enumerate(rules):
        if is_meant(rule, name, labels, hints) and holds(rule, paths if has_path else [], used):
            return ACTIONS.index(rule["action"]), number
    return 0, None


# -- all of them


def decided(module, rules: list, entry, names: list, arguments: dict, used) -> tuple:
    """Return (action, trace)."""
    found = module.decide(Rules(rules), entry, module.paths_of(names, arguments), used)
    return found[module.DECISION_ACTION], found[module.DECISION_TRACE]


def agree(case: tuple) -> tuple:
    """Return (what the core decides, its words for MicroPython), the same as a naive reader."""
    words = folded(case)
    action, trace = decided(core, *words)
    assert (action, trace) == decided(SOURCE, *words)
    number = trace[-1][0] if trace and trace[-1][1] else None
    assert (action, number) == read(case)
    return [action, trace], words


@settings(max_examples=400, deadline=None)
@given(CASE)
def test_the_first_rule_that_matches_decides(case):
    """5.8 "Validation Rules", 2 and 3."""
    agree(case)


BOARD = Path(__file__).with_name("decisions_board.py")
ACCEL = Path(ROOT, "build", "accel")  # of ``make accel``


def is_told(command: list, environment: dict, found, words) -> None:
    """Hold a process that decides (decisions_board.py) to what was *found*."""
    done = subprocess.run(
        command,
        input="".join(json.dumps(one) + "\n" for one in words).encode(),
        capture_output=True,
        env=environment,
        timeout=300,
    )
    assert done.stderr == b""
    assert [json.loads(line) for line in done.stdout.splitlines()] == list(found)


def on_micropython(found, words) -> None:
    is_told(pico_stack.program(BOARD), {}, found, words)


def on_cython(found, words) -> None:
    begin = (
        "import decisions_board as board, clawlite.core.policy.policy as core\n"
        "assert not core.__file__.endswith('.py'), core.__file__\n"
        "board.main()"
    )
    path = f"{ACCEL}:{BOARD.parent}"
    # -P: the folder that this runs in has the core's sources, and would come first
    is_told([sys.executable, "-P", "-c", begin], {"PYTHONPATH": path}, found, words)


@settings(max_examples=8, deadline=None, suppress_health_check=HEALTH)
@given(st.lists(CASE, min_size=40, max_size=80))
def test_micropython_decides_as_the_others(micropython, cases):
    on_micropython(*zip(*[agree(case) for case in cases]))


@pytest.mark.soak
def test_a_million_cases(micropython):
    """Pure Python, Cython, MicroPython and the naive reader.  Hypothesis remembers each case of a
    run, some 13 KB: a million in one run need 13 GB, so they are many runs.
    """
    assert ACCEL.is_dir(), "the compiled core is missing: make accel"
    number = played = 0
    while played < CASES:
        told = []

        @seed(SEED * 1000 + number)
        @settings(max_examples=2000, deadline=None, database=None, suppress_health_check=HEALTH)
        @given(CASE)
        def play(case):
            told.append(agree(case))  # noqa: B023, the run is over before the next begins

        play()
        assert len(told) >= 1000  # Hypothesis may end a run early, and a run gives some at least
        found, words = zip(*told, strict=True)
        on_micropython(found, words)
        on_cython(found, words)
        number, played = number + 1, played + len(told)
