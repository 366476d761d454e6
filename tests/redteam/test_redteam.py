"""Attacks and look-alikes, the public ones and our own, played against the agent (play.py): attacks
are stopped, look-alikes let through.

As root the agent runs as another user, as on a machine where somebody cares; other runs have it as
the user of the run."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import other_user
import pytest

pytestmark = pytest.mark.limit(3600)  # the setup plays all cases
LIMIT_S = 3500  # of a busy machine
HERE = Path(__file__).parent
CORPORA = [HERE / "public.jsonl", HERE / "own.jsonl"]
CASES = [json.loads(line) for corpus in CORPORA for line in corpus.read_text().splitlines()]
# kernels that lack a mechanism: a Raspberry Pi's has no Landlock
WITHOUT = ("userns", "landlock", "userns,landlock", "seccomp")
CONTAINED = "PUB-FS-001,PUB-FS-006,PUB-FSX-*,PUB-NET-001,PUB-RES-002,PUB-RES-003,PUB-SHX-*"
BY_LANDLOCK = "OWN-PATH-*,OWN-TOCTOU-*,OWN-FS-SCOPE-*,OWN-DENIED-*"


def played(folder: Path, *options: str) -> dict:
    """Play the cases; return {id: result}."""
    found = folder / "found.jsonl"
    front, python, env = (
        other_user.bound(folder)
        if other_user.is_possible()
        else ([], sys.executable, {"PYTHONPATH": str(HERE.parents[1])})
    )
    agent = "%s -m clawlite" % shlex.quote(python)
    command = [
        sys.executable,
        str(HERE / "play.py"),
        "--agent",
        agent + " serve {manifest} --stdio",
        "--build",
        agent + " check {manifest} --board {board}",
        "--json",
        str(found),
        "--jobs",
        "2",
        *options,
    ]
    for corpus in CORPORA:
        command += ["--corpus", str(corpus)]
    for name, value in env.items():
        command += ["--env", "%s=%s" % (name, value)]
    done = subprocess.run(
        [*front, "exec " + shlex.join(command)] if front else command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={key: value for key, value in os.environ.items() if not key.startswith("CLAWLITE_")},
    )
    assert found.exists(), done.stdout + done.stderr
    return {result["id"]: result for result in map(json.loads, found.read_text().splitlines())}


@pytest.fixture(scope="module")
def results():
    if sys.platform != "linux":
        pytest.skip("the attacks are Linux's")
    with tempfile.TemporaryDirectory() as folder:
        yield played(Path(folder))


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case, results):
    result = results[case["id"]]
    assert not result["gates"], result
    if result["verdict"] == "not-run":
        pytest.skip(result["reason"])
    assert result["verdict"] == "pass", result["reason"]


def test_what_namespaces_stop_landlock_stops_too():
    with tempfile.TemporaryDirectory() as folder:
        found = played(Path(folder), "--faults", "userns", "--only", BY_LANDLOCK)
    assert (
        len(found)
        == sum(
            case["id"].startswith(("OWN-PATH-", "OWN-TOCTOU-", "OWN-FS-SCOPE-", "OWN-DENIED-"))
            for case in CASES
        )
        > 20
    )
    for result in found.values():
        assert result["verdict"] in ("pass", "not-run") and not result["gates"], result


@pytest.mark.parametrize("missing", WITHOUT)
def test_a_kernel_that_lacks_a_mechanism_contains_or_refuses(missing):
    with tempfile.TemporaryDirectory() as folder:
        found = played(Path(folder), "--faults", missing, "--only", CONTAINED)
    assert len(found) == 7
    for result in found.values():
        assert result["verdict"] in ("pass", "not-run") and not result["gates"], result
