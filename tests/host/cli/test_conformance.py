"""``clawlite conformance`` (CKP 0.2.0, section 11), and levels as agents declare them."""

import copy
import json
import tomllib
import types

import clause_results
import pytest
from agents import clawlite
from record_clauses import CKP, table, text

from clawlite.core.image.image import Image
from clawlite.host.base.kinds import LEVELS
from clawlite.host.compiler import compiler
from clawlite.host.identity import feature as identity
from clawlite.host.manifest import conformance, manifest
from clawlite.host.swarm import feature as swarms

FULL = {
    "identity": {"inline": {"personality": "x"}},
    "providers": [
        {
            "inline": {
                "protocol": "openai-compatible",
                "endpoint": "http://127.0.0.1:9/v1",
                "model": "m",
                "auth": {"type": "none"},
            }
        }
    ],
    "channels": [
        {"inline": {"type": "cli", "transport": "stdio", "auth": {"secret_ref": "nobody"}}}
    ],
    "tools": ["claw://registry/clawlite/board-info@1.0.0"],
    "sandbox": {"inline": {"level": "none"}},
    "policies": [{"inline": {"rules": [{"id": "all", "action": "allow", "scope": "all"}]}}],
}


def test_the_clauses_of_the_package_are_those_of_the_tests():
    assert conformance.FILE.read_text() == text(), (
        "stale: run tests/helpers/record_clauses.py and read the difference"
    )


def test_every_clause_is_counted_once():
    found = conformance.declaration()["clauses"]
    counted = sum(
        count
        for kinds in found["levels"].values()
        for counts in kinds.values()
        for count in counts.values()
    )
    assert counted == len(table()["clauses"])
    assert all(clause["reason"] for clause in found["pending"])


def test_a_should_that_is_not_done_does_not_count_as_held():
    clauses = tomllib.loads((CKP / "clauses.toml").read_text())["clause"]
    not_done = {clause["id"] for clause in clauses if "reason" in clause}
    held = {row["id"] for row in table()["clauses"] if row["state"] == "held"}
    assert "5.3-3" in not_done and not not_done & held


def test_11_the_declaration_has_the_fields_of_the_text(tmp_path):
    done = clawlite("conformance", "--json", cwd=tmp_path)
    runtime = json.loads(done.stdout)["runtime"]
    assert done.returncode == 0 and runtime["name"] == "clawlite" and runtime["version"]
    kernel = runtime["clawkernel"]
    assert kernel["version"] == "0.3.0" and kernel["conformance"] in (
        "level-1",
        "level-2",
        "level-3",
    )
    assert {"Identity", "Provider"} <= set(kernel["primitives_supported"])
    assert set(dict(LEVELS)[kernel["conformance"]]) <= set(kernel["primitives_supported"])


def test_as_text(tmp_path):
    done = clawlite("conformance", cwd=tmp_path)
    assert (
        done.returncode == 0
        and done.stdout.startswith("clawlite ")
        and "primitives: Identity, Provider" in done.stdout
    )
    assert "L1 MUST" in done.stdout and "the last test run" in done.stdout
    waiting = ["waiting for %s:" % name for name in table()["pending"]]
    assert all(line in done.stdout for line in waiting)
    assert bool(waiting) is ("waiting for " in done.stdout)


def test_the_last_test_run_clause_by_clause(tmp_path):
    clauses = [
        {"id": "a", "tests": ["t.py::one", "RPC-1"]},
        {"id": "b", "tests": ["t.py::two"]},
        {"id": "c", "tests": ["t.py::gone"]},
        {"id": "d"},
    ]
    case = "tests/ckp/test_cases.py::test_case[RPC-1]"
    assert clause_results.of(
        {"t.py::one": "passed", case: "passed", "t.py::two[x]": "passed", "t.py::two[y]": "failed"},
        clauses,
    ) == {"a": "held", "b": "failed", "c": "not run"}
    assert clause_results.of({"t.py::one": "passed", case: "xfailed"}, clauses)["a"] == "not run"
    held = [row["id"] for row in table()["clauses"] if row["state"] == "held"]
    run = tmp_path / "clauses.json"
    run.write_text(
        json.dumps(
            {
                "at": "2026-01-01T00:00:00Z",
                "clauses": {held[0]: "failed", **dict.fromkeys(held[2:], "held")},
            }
        )
    )
    found = conformance.declaration(last_run=run)
    last = found["clauses"]["last_run"]
    assert last["failed"] == held[:1] and last["not run"] == held[1:2]
    assert sum(counts["held"] for counts in last["levels"].values()) == len(held) - 2
    said = conformance.text(found)
    assert (
        "the last test run, 2026-01-01" in said
        and "  failed: " + held[0] in said
        and "  not run: " + held[1] in said
    )
    assert "not part of this installation" in conformance.text(
        conformance.declaration(last_run=tmp_path / "none")
    )


def test_without_the_table_it_says_so(tmp_path):
    found = conformance.declaration(tmp_path / "clauses.json")
    assert found["clauses"] is None and "not part of this installation" in conformance.text(found)


def level(spec: dict, tmp_path) -> int:
    (tmp_path / "claw.json").write_text(
        json.dumps({"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "x"}, "spec": spec})
    )
    data = compiler.build(manifest.load(tmp_path), None, True).data
    return Image(lambda offset, length: data[offset : offset + length], len(data)).agent.level


@pytest.mark.parametrize("without", ["channels", "tools", "sandbox", "policies"])
def test_11_an_agent_is_of_level_2_when_all_of_its_primitives_are_declared(tmp_path, without):
    assert level(FULL, tmp_path) == 2
    spec = copy.deepcopy(FULL)
    del spec[without]
    assert level(spec, tmp_path) == 1


def test_an_agent_has_the_level_whose_primitives_it_declares_and_this_version_builds(monkeypatch):
    class Manifest:
        swarm = None
        settings = types.SimpleNamespace(gateway=None)

        def primitives(self):
            return [type("Primitive", (), {"kind": kind}) for kind in self.kinds]

    manifest = Manifest()
    for kinds, level in (
        (("Identity", "Provider"), 1),
        (LEVELS[1][1], 2),
        (LEVELS[1][1][:-1], 1),
        (LEVELS[1][1] + ("Memory",), 2),
    ):
        manifest.kinds = kinds
        assert identity.find_level(manifest) == level
    manifest.kinds = LEVELS[0][1]
    monkeypatch.setattr(swarms, "is_built", lambda _: False)
    assert identity.find_level(manifest) == 2
    monkeypatch.setattr(swarms, "is_built", lambda _: True)
    assert identity.find_level(manifest) == 3
