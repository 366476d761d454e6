"""A state folder that is removed or replaced while its agent runs: what is acknowledged after it
is found again.  Files of it that were emptied meanwhile are told at the next start.
"""

import json
import os
import shutil
import sqlite3
import subprocess

import pytest
from agents import UUID, clawlite, environment, linux
from memory_operator import Operator

from clawlite.core.idempotency.idempotency import BEGIN
from clawlite.linux.audit.chain import verify
from clawlite.linux.audit.files import read
from clawlite.linux.runtime.call_journal import Journal

CLAW = {
    "claw": "0.3.0",
    "kind": "Claw",
    "metadata": {"name": "a"},
    "spec": {
        "identity": {"inline": {"name": "gardener", "personality": "x", "autonomy": "autonomous"}},
        "providers": [
            {
                "inline": {
                    "protocol": "custom",
                    "endpoint": "builtin:reflex",
                    "model": "r",
                    "auth": {"type": "none"},
                }
            }
        ],
        "sandbox": {"inline": {"name": "here", "level": "none"}},
        "memory": {"inline": {"stores": [{"name": "talk", "type": "conversation"}]}},
        "policies": [
            {
                "inline": {
                    "name": "p",
                    "rules": [{"id": "all", "action": "allow", "scope": "all"}],
                    "audit": {"destination": "file"},
                }
            }
        ],
    },
}
TOOLS = 'def water(seconds: int) -> str:\n    """Water."""\n    return "watered for %d" % seconds\n'


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "claw.yaml").write_text(json.dumps(CLAW))
    (folder / "tools.py").write_text(TOOLS)
    (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = ["hello"]\nsay = "Hello yourself."\n')
    done = clawlite("build", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "claw.cbor"


def water(agent, number: int) -> str:
    answer = agent.ask(
        "claw.tool.call",
        name="water",
        arguments={"seconds": number},
        context={"request_id": UUID % (1000 + number), "identity": "gardener"},
    )
    return answer["result"]["content"][0]["text"]


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
def test_what_is_acknowledged_after_it_is_found_again(image, tmp_path, replaced):
    home = tmp_path / "home"
    home.mkdir()
    state = home / "state" / "a"
    with Operator(linux("serve", image, "--stdio"), home).boot() as agent:
        for number in range(3):
            assert agent.put("talk", "before %d" % number, number)["result"]["stored"] == 1
            assert water(agent, number) == "watered for %d" % number
        if replaced:
            shutil.copytree(state, tmp_path / "copy")
        shutil.rmtree(state)
        if replaced:
            shutil.copytree(tmp_path / "copy", state)
        for number in range(3, 10):
            assert water(agent, number) == "watered for %d" % number
            assert agent.put("talk", "after %d" % number, number)["result"]["stored"] == 1
        assert agent.ask("claw.status")["result"]["state"] == "READY"
        agent.end()
        assert agent.process.wait() == 0
        said = agent.errors()
    assert (
        "memory.db was removed or replaced" in said
        and "calls.journal was removed or replaced" in said
    )
    assert b"SQLite" not in (state / "calls.journal").read_bytes()
    with sqlite3.connect(state / "memory" / "memory.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    db.close()
    lines, head, _ = read(str(state))
    assert verify(lines, head, "a")["problems"] == []
    with Operator(linux("serve", image, "--stdio"), home).boot() as agent:
        assert agent.all("talk") == (["before %d" % n for n in range(3)] if replaced else []) + [
            "after %d" % n for n in range(3, 10)
        ]
        assert water(agent, 5) == "watered for 5"  # remembered: the same answer, no second run
        agent.end()
        assert agent.process.wait() == 0


def test_a_journal_that_cannot_be_opened_anew_closes_no_other_file(tmp_path, monkeypatch):
    """The number of a closed descriptor may be another file's by the time that the journal is
    tried again.
    """
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path))
    journal = Journal("a")
    assert journal.keep(BEGIN, "11111111-1111-4111-8111-111111111111", ["x"])[0]
    shutil.rmtree(tmp_path / "a")
    (tmp_path / "a").write_text("a file in the folder's place")
    assert not journal.keep(BEGIN, "11111111-1111-4111-8111-111111111112", ["x"])[0]
    others = [os.open(os.devnull, os.O_RDWR) for _ in range(4)]
    try:
        assert not journal.keep(BEGIN, "11111111-1111-4111-8111-111111111113", ["x"])[0]
        for fd in others:
            os.fstat(fd)  # raises OSError where somebody has closed it
        (tmp_path / "a").unlink()
        assert journal.keep(BEGIN, "11111111-1111-4111-8111-111111111114", ["x"])[0]
        assert [key[-1] for key, *_ in journal.calls()] == ["4"]
    finally:
        for fd in others:
            os.close(fd)
        journal.close()


def ask(home, image):
    words, env = linux("ask", "hello", image), environment(home)
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=60)


def test_every_start_of_an_agent_looks(image, tmp_path):
    """Whatever starts it: an operator's agent and a single question."""
    home = tmp_path / "home"
    home.mkdir()
    state = home / "state" / "a"
    for _ in range(2):
        with Operator(linux("serve", image, "--stdio"), home).boot() as agent:
            assert "watered" in water(agent, 1)
            assert agent.errors() == ""
            agent.process.kill()
    (state / "calls.journal").write_bytes(b"")
    asked = ask(home, image)
    assert asked.stdout == "Hello yourself.\n", asked.stderr
    assert "the journal of calls %s/calls.journal is empty" % state in asked.stderr
    log = [json.loads(line) for line in (state / "log.jsonl").read_text().splitlines()]
    assert [one for one in log if "calls.journal is empty" in one.get("text", "")]
    assert ask(home, image).stderr == ""
    (state / "audit.jsonl").unlink()
    with Operator(linux("serve", image, "--stdio"), home).boot() as agent:
        assert "the audit %s/audit.jsonl is missing" % state in agent.errors()
