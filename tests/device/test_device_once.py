"""Requests that come twice, and kill -9, on MicroPython: what tests/linux/runtime/test_once.py
holds a Pi to.
"""

import json
import random
import select
from pathlib import Path

import pytest
from agents import UUID, Agent, board, tool_call

from clawlite.core.idempotency import idempotency
from clawlite.host.builder.build import build_beside

CLAW = """\
claw: "0.3.0"
kind: Claw
metadata: { name: "once", version: "1.0.0" }
spec:
  identity: { inline: { name: "once", personality: "You are under test.", autonomy: "autonomous" } }
  providers:
    - inline: { name: "reflex", protocol: "custom", endpoint: "builtin:reflex", model: "reflex", auth: { type: "none" } }
  tools:
    - inline: { name: "asked", metadata: { labels: { category: "asks" } }, description: "Asks", input_schema: { type: object } }
    - inline: { name: "look", description: "Reads", input_schema: { type: object }, annotations: { readOnlyHint: true } }
  sandbox: { inline: { name: "in-process", level: "none" } }
  policies:
    - inline:
        name: "rules"
        rules:
          - { id: "ask", action: "require-approval", scope: "category", match: { category: "asks" },
              approval: { timeout_seconds: 60, default_if_timeout: "deny" } }
          - { id: "all", action: "allow", scope: "all" }
"""  # noqa: E501
TOOLS = '''\
"""Each writes a line when it runs."""
import os


def _run(name: str) -> str:
    with open(os.getenv("LEDGER"), "a") as file:
        file.write(name + "\\n")
    return name + " ran"


def water(who: str) -> str:
    """Water."""
    return _run(who)


def slow(ms: int) -> str:
    """Water for long."""
    said = _run("slow")
    yield ms
    return said


def asked() -> str:
    """Ask first."""
    return _run("asked")


def look() -> str:
    """Look."""
    return _run("look")
'''


@pytest.fixture
def device(micropython, tmp_path):
    folder = tmp_path / "flash"
    folder.mkdir()
    for name, text in (
        ("claw.yaml", CLAW),
        ("tools.py", TOOLS),
        ("clawlite.toml", 'reflex = "reflex.toml"\n'),
        ("reflex.toml", '[[rule]]\nwhen = "asked"\ncall = "asked"\n'),
    ):
        (folder / name).write_text(text)
    image = build_beside(str(folder))

    def start(*flags):
        words, path = board(image, *flags)
        return Agent(words, tmp_path / "home", env=dict(path, LEDGER=tmp_path / "ledger"))

    start.ran = lambda: (
        (tmp_path / "ledger").read_text().split() if (tmp_path / "ledger").exists() else []
    )
    start.journal = folder / "calls.journal"
    return start


def ask(agent, name: str, number: int, arguments=None):
    agent.line(json.dumps(tool_call(name, arguments, number)))
    answer = agent.message()
    return answer["error"] if "error" in answer else answer["result"]["content"][0]["text"]


def kill(agent):
    agent.process.kill()
    agent.process.wait()


def test_the_same_id_gives_the_same_also_after_kill_9(device):
    with device("--stdio") as agent:
        agent.initialize()
        assert (
            ask(agent, "look", 9) == ask(agent, "look", 9) == "look ran"
            and not device.journal.exists()
        )
        assert (
            ask(agent, "water", 1, {"who": "a"}) == ask(agent, "water", 1, {"who": "a"}) == "a ran"
        )
        assert ask(agent, "water", 1, {"who": "b"})["code"] == -32602
        agent.line(json.dumps(tool_call("slow", {"ms": 60000}, 2)))
        assert agent.is_serving()
        kill(agent)
    with device("--stdio") as agent:
        agent.initialize()
        assert (
            ask(agent, "water", 1, {"who": "a"}) == "a ran"
            and ask(agent, "water", 1, {"who": "b"})["code"] == -32602
        )
        error = ask(agent, "slow", 2, {"ms": 60000})
        assert error["code"] == -32014 and "may have run" in error["message"]
        assert agent.errors() == ""
    assert device.ran() == ["look", "a", "slow"]


def test_approvals_and_kill_9(device):
    with device("--stdio") as agent:
        agent.initialize()
        for number in (1, 2):
            agent.line(json.dumps(tool_call("asked", {}, number)))
        assert agent.call("claw.tool.deny", {"request_id": UUID % 2})["result"] == {
            "acknowledged": True
        }
        kill(agent)
    with device() as agent:
        assert agent.expect("> ").startswith(
            "asked() waited for approval when this agent ended: "
            "it was not run.\nonce 1.0.0 is ready"
        )
        kill(agent)
    with device() as agent:
        assert "waited" not in agent.expect("> ")
        agent.line("asked")
        agent.expect("[y/N] ")
        kill(agent)
    with device("--stdio") as agent:
        agent.initialize()
        assert ask(agent, "asked", 2)["code"] == -32013
        agent.line(json.dumps(tool_call("asked", {}, 1)))
        assert agent.call("claw.tool.approve", {"request_id": UUID % 1})["result"] == {
            "acknowledged": True
        }
        assert agent.message()["result"]["content"][0]["text"] == "asked ran"
    assert device.ran() == ["asked"]


def test_what_is_remembered_is_bounded(device):
    with device("--stdio") as agent:
        agent.initialize()
        said = [ask(agent, "water", number, {"who": "w%d" % number}) for number in range(65)]
        assert (
            said[:64] == ["w%d ran" % number for number in range(64)] and said[64]["code"] == -32600
        )
        assert (
            "64 of 64 calls" in said[64]["message"]
            and 200 < said[64]["data"]["retry_after_seconds"] <= 300
            and ask(agent, "look", 100) == "look ran"
        )
        assert device.journal.stat().st_size < 20000
        kill(agent)
    with device("--stdio") as agent:
        agent.initialize()
        assert [
            ask(agent, "water", number, {"who": "w%d" % number}) for number in range(64)
        ] == said[:64]
        assert ask(agent, "water", 64, {"who": "w64"})["code"] == -32600 and agent.errors() == ""


def test_the_page_of_settings_says_how_many_calls_are_remembered():
    text = " ".join((Path(__file__).parents[2] / "docs/settings.md").read_text().split())
    answers = f"{idempotency.BYTES * 3 // 4:,}"
    assert f"board remembers {idempotency.IDS} such calls and {answers} bytes" in text
    assert "a further call is refused with -32600 before it runs" in text
    assert f"more than {idempotency.IDS} times in {idempotency.KEPT_MS // 60000} minutes" in text


def test_damaged_and_torn_lines(device):
    with device("--stdio") as agent:
        agent.initialize()
        for number in (1, 2):
            ask(agent, "water", number, {"who": "w%d" % number})
        kill(agent)
    lines = device.journal.read_bytes().split(b"\n")
    device.journal.write_bytes(b"\n".join([b"\x00" * 50, b"x"] + lines[1:]) + b"0123abcd 2 1")
    with device("--stdio") as agent:
        agent.initialize()
        assert (
            ask(agent, "water", 2, {"who": "w2"}) == "w2 ran"
            and "2 lines are lost" in agent.errors()
        )
    first, last = (device.journal.with_name("calls.journal.damaged" + end) for end in ("", ".2"))
    assert device.ran() == ["w1", "w2"] and first.exists()
    kept = first.read_bytes()
    for _ in range(2):
        with open(device.journal, "ab") as file:
            file.write(b"y" * 20 + b"\n")
        with device("--stdio") as agent:
            agent.initialize()
            assert ask(agent, "water", 2, {"who": "w2"}) == "w2 ran"
            assert "1 lines are lost (calls.journal.damaged.2)" in agent.errors()
    assert first.read_bytes() == kept and b"y" * 20 in last.read_bytes()


def test_kill_9_at_random(device):
    random_, known, open_, number = random.Random(7), {}, [], 0
    for _ in range(5):
        with device("--stdio") as agent:
            agent.initialize()
            for again in sorted(known)[-3:]:
                assert ask(agent, "water", again, {"who": "w%d" % again}) == known[again]
            for again in open_:
                answer = ask(agent, "water", again, {"who": "w%d" % again})
                assert isinstance(answer, str) or answer["code"] == -32014
            open_ = list(range(number + 1, number + 9))
            number += 8
            for each in open_:
                agent.line(json.dumps(tool_call("water", {"who": "w%d" % each}, each)))
            select.select([], [], [], random_.random() * 0.02)
            kill(agent)
            agent.wait()
            for answer in map(json.loads, agent.unread.split("\n")[:-1]):
                known[answer["id"]] = answer["result"]["content"][0]["text"]
                open_.remove(answer["id"])
    ran = device.ran()
    assert len(ran) == len(set(ran)) and set(ran) >= {"w%d" % id for id in known}
