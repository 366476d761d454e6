"""Our decision beside other policy engines (benchmarks/peers); here beside the naive loop alone,
which needs no other package.
"""

import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import targets
from targets import JudgedBench as Bench

from clawlite.host.base.progress import RunProgress
from clawlite.host.bench.run import KEYS

ROOT = Path(__file__).resolve().parents[3]
PEERS = ROOT / "benchmarks/peers"


@pytest.fixture
def policies(monkeypatch):
    spec = importlib.util.spec_from_file_location("policies", PEERS / "policies.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    monkeypatch.setattr(found, "PEERS", ("naive",))
    monkeypatch.setattr(found, "BLOCK_NS", 100000)
    return found


def test_each_engine_is_measured_and_ours_compared_with_the_fastest(
    policies, tmp_path, monkeypatch
):
    table = [
        {**one, "limit": 1e9 if ", 10 rules" in one.get("row", "") else 0}
        for one in targets.table()
    ]
    monkeypatch.setattr(targets, "table", lambda: table)
    sizes = 10, 100
    bench, progress = Bench(str(tmp_path), 2), RunProgress(policies.parts(sizes))
    found = list(policies.rows(bench, sys.executable, 2, progress, sizes))
    assert all(tuple(row) == KEYS and row["suite"] == "peers" and row["n"] == 2 for row in found)
    cases = [row["case"] for row in found if "cython" not in row["case"]]
    assert cases == [
        "decide, 10 rules, clawlite",
        "decide, 10 rules, naive",
        "clawlite over the fastest peer, 10 rules",
        "decide, 100 rules, clawlite",
        "decide, 100 rules, naive",
        "clawlite over the fastest peer, 100 rules",
    ]
    compared = [row for row in found if row["case"].startswith("clawlite over")]
    assert [row["met"] for row in compared] == [True, False]


def test_the_naive_loop_is_no_peer(policies, monkeypatch):
    monkeypatch.setattr(policies, "PEERS", ("cel", "regorus", "naive"))
    assert policies.fastest({"clawlite": [1], "cel": [9, 8], "regorus": [7], "naive": [2]}) == (
        "regorus"
    )


@pytest.mark.parametrize("limit, code", [(0, 1), (1e9, 0)])
def test_a_missed_target_is_told_and_ends_with_1(policies, monkeypatch, capfd, limit, code):
    monkeypatch.setattr(policies, "rows", functools.partial(policies.rows, sizes=(10,)))
    table = [{**one, "limit": limit} for one in targets.table()]
    monkeypatch.setattr(targets, "table", lambda: table)
    assert policies.main([sys.executable, "--rounds", "2"]) == code
    (said,) = [line for line in capfd.readouterr().out.splitlines() if line.startswith("P3-10 ")]
    assert ("MISSED: docs/adr/" in said) == bool(code) and said.endswith("reached") == (not code)


@pytest.mark.parametrize("name", ["clawlite", "naive"])
def test_a_wrong_answer_ends_the_run(policies, tmp_path, name):
    (path,) = policies.cases(str(tmp_path), [10])
    case = json.loads(Path(path).read_text())
    case["requests"][3][3] = "deny" if case["requests"][3][3] == "allow" else "allow"
    Path(path).write_text(json.dumps(case))
    done = subprocess.run(
        [sys.executable, PEERS / "engines.py", name, path],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT), "CLAWLITE_NO_EXT": "1"},
    )
    assert done.returncode == 1 and f"{name}: {path}: request 3: " in done.stderr


def test_an_engine_that_is_not_there_is_told(policies, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(policies, "PEERS", ("cel",))
    assert policies.main([sys.executable, "--rounds", "1"]) == 1
    told = capfd.readouterr().err
    assert "cel did not begin" in told and "requirements.txt" in told


@pytest.mark.parametrize("name", ["requirements.txt", "agents.requirements.txt"])
def test_others_are_measured_in_exact_versions(name):
    """Those that others need, too."""
    lines = [one for one in (PEERS / name).read_text().splitlines() if one and one[0] != "#"]
    assert len(lines) > 10
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9a-z.]*", one) for one in lines)


@pytest.fixture
def agents(monkeypatch):
    spec = importlib.util.spec_from_file_location("agents", PEERS / "agents.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    monkeypatch.setattr(found, "PEERS", ("naive",))
    return found


def test_each_agent_takes_a_turn_at_the_same_server(agents, tmp_path):
    found = {row["case"]: row for row in agents.rows(Bench(str(tmp_path), 2), sys.executable, 2)}
    assert all(tuple(row) == KEYS and row["suite"] == "peers" for row in found.values())
    for name in ("clawlite", "naive"):
        for what in ("", "memory, ", "request, "):
            assert found[f"one turn, {what}{name}"]["p50"] > 0
    assert "the fastest is naive" in found["one turn over the fastest agent"]["note"]
    # no memory of whoever started it
    assert found["one turn, memory, clawlite"]["p50"] < 24


def test_an_agent_that_does_not_print_the_answer_is_an_error(agents, monkeypatch, capfd):
    monkeypatch.setattr(agents, "command", lambda *_: ([sys.executable, "-c", "print('Hm.')"], b""))
    assert agents.main([sys.executable, "--rounds", "1"]) == 1
    said = capfd.readouterr()
    assert "did not print the answer: Hm." in said.err and said.out == ""


def test_the_interpreter_may_be_named_from_here(agents, monkeypatch, capfd):
    """As the Makefile does."""
    script = PEERS / "naive_once.py"
    monkeypatch.setattr(
        agents, "command", lambda name, python, home, url: ([python, script, url, "howdy"], b"")
    )
    assert agents.main([os.path.relpath(sys.executable), "--rounds", "1"]) == 0
    assert "one turn, naive" in capfd.readouterr().out


def test_the_server_takes_what_clients_send():
    """A body of chunks, whose end comes later; who asks for no stream gets one object."""
    spec = importlib.util.spec_from_file_location("llm", ROOT / "benchmarks/llm.py")
    llm = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(llm)

    class Connection:
        parts = [b"POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\n{}", b"\r\n0\r\n\r\n"]

        def recv(self, _):
            return self.parts.pop(0)

    request = llm.receive(Connection())
    assert request.endswith(b"2\r\n{}\r\n0\r\n\r\n")
    assert llm.answer(request, []) == llm.WHOLE and json.loads(llm.WHOLE.partition(b"\r\n\r\n")[2])
    assert llm.answer(b'{"stream": true}', []) == llm.TEXT
