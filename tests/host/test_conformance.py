"""``clawlite conformance`` (CKP 0.2.0, section 11), and levels as agents declare them."""
import copy
import json

import pytest
from agents import clawlite
from record_clauses import table, text

from clawlite.core.image import Image
from clawlite.host import compiler, conformance, manifest

FULL = {"identity": {"inline": {"personality": "x"}},
        "providers": [{"inline": {"protocol": "openai-compatible", "endpoint": "http://127.0.0.1:9/v1", "model": "m", "auth": {"type": "none"}}}],
        "channels": [{"inline": {"type": "cli", "transport": "stdio", "auth": {"secret_ref": "nobody"}}}],
        "tools": ["claw://registry/clawlite/board-info@1.0.0"], "sandbox": {"inline": {"level": "none"}},
        "policies": [{"inline": {"rules": [{"id": "all", "action": "allow", "scope": "all"}]}}]}


def test_the_clauses_of_the_package_are_those_of_the_tests():
    assert conformance.FILE.read_text() == text(), "stale: run tests/record_clauses.py and read the difference"


def test_every_clause_is_counted_once():
    found = conformance.declaration()["clauses"]
    counted = sum(count for kinds in found["levels"].values() for counts in kinds.values() for count in counts.values())
    assert counted == len(table()["clauses"])
    assert all(clause["reason"] for clause in found["pending"])


def test_11_the_declaration_has_the_fields_of_the_text(tmp_path):
    done = clawlite("conformance", "--json", cwd=tmp_path)
    runtime = json.loads(done.stdout)["runtime"]
    assert done.returncode == 0 and runtime["name"] == "clawlite" and runtime["version"]
    kernel = runtime["clawkernel"]
    assert kernel["version"] == "0.3.0" and kernel["conformance"] in ("level-1", "level-2", "level-3")
    assert {"Identity", "Provider"} <= set(kernel["primitives_supported"])
    assert set(dict(conformance.LEVELS)[kernel["conformance"]]) <= set(kernel["primitives_supported"])


def test_as_text(tmp_path):
    done = clawlite("conformance", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("clawlite ") and "primitives: Identity, Provider" in done.stdout
    assert "L1 MUST" in done.stdout and "waiting for " in done.stdout


def test_without_the_table_it_says_so(tmp_path):
    found = conformance.declaration(tmp_path / "clauses.json")
    assert found["clauses"] is None and "not part of this installation" in conformance.text(found)


def level(spec: dict, tmp_path) -> int:
    (tmp_path / "claw.json").write_text(json.dumps({"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "x"}, "spec": spec}))
    data = compiler.build(manifest.load(tmp_path), None, True).data
    return Image(lambda offset, length: data[offset:offset + length], len(data)).agent.level


@pytest.mark.parametrize("without", ["channels", "tools", "sandbox", "policies"])
def test_11_an_agent_is_of_level_2_when_all_of_its_primitives_are_declared(tmp_path, without):
    assert level(FULL, tmp_path) == 2
    spec = copy.deepcopy(FULL)
    del spec[without]
    assert level(spec, tmp_path) == 1
