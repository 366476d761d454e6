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
        "--prebuild",
        "%s:%s" % (HERE / "prebuilt.py", env["PYTHONPATH"]),
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
def test_no_attack_quotes_the_word_that_it_must_not_print(case):
    """Since 3.13 a traceback shows the source of ``python3 -c``, and a shell shows what it cannot
    run: a word that stands there whole is printed by an attack that failed, too.
    """
    words = [row.get("not_in_output") for row in case.get("oracle", ())]
    said = json.dumps([case.get("arguments"), case.get("steps")])
    for word in words:
        assert not isinstance(word, str) or "@" in word or word.strip() not in said


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
        whole = json.dumps(result)  # it says whether the attack got through
        assert result["verdict"] in ("pass", "not-run") and not result["gates"], whole


@pytest.mark.parametrize("missing", WITHOUT)
def test_a_kernel_that_lacks_a_mechanism_contains_or_refuses(missing):
    with tempfile.TemporaryDirectory() as folder:
        found = played(Path(folder), "--faults", missing, "--only", CONTAINED)
    assert len(found) == 7
    for result in found.values():
        whole = json.dumps(result)  # it says whether the attack got through
        assert result["verdict"] in ("pass", "not-run") and not result["gates"], whole


ENDS = """
import os, sys
sys.path[0] = sys.argv[1]
import play
forks, opt = play.Forks(1, ""), play.options(play.parse([]), None)
blocks = [{"op": "fifo", "path": "@WS@/f"}, {"op": "write", "path": "@WS@/f", "text": "x"}]
case = dict(play.control_case(None, False), setup=blocks)
job = {"case": case, "opt": opt, "root": sys.argv[2], "prefix": []}
died = forks.run(job, 60, lambda pid: os.kill(pid, 9))
late = play.play(case, dict(opt, timeout=-44.5), [], {}, forks)  # all of it may take 1 s
wrong = play.play({**case, "sandbox": 1, "setup": []}, opt, [], {}, forks)
forks.end()
print(died["reason"], late["gates"], wrong["reason"], sep="\\n")
"""


def test_a_worker_that_dies_or_never_ends_is_told(tmp_path):
    words = [sys.executable, "-c", ENDS, HERE, tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    died, late, wrong = done.stdout.splitlines()
    assert (died, late) == ("runner: worker ended -9", "['hang']"), done.stderr
    assert wrong.startswith("runner: AttributeError: "), wrong
