"""An agent on macOS: what an agent of level "none" does needs no module and no name that macOS
lacks, and level "process" is refused.

What macOS is here stands in other_system.py; .ci/laptops.yml has the real one."""

import json
import time

import pytest
from agents import UUID
from mcp_agents import SERVER, tool
from memory_operator import Operator
from other_systems import System

CLAW = {
    "claw": "0.3.0",
    "kind": "Claw",
    "metadata": {"name": "apple"},
    "spec": {
        "identity": {"inline": {"personality": "Short.", "autonomy": "autonomous"}},
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
        "tools": [
            tool("echo"),
            "claw://registry/clawlite/read-file@1.0.0",
            "claw://registry/clawlite/write-file@1.0.0",
        ],
        "memory": {
            "inline": {
                "stores": [
                    {"name": "talk", "type": "conversation"},
                    {"name": "notes", "type": "semantic"},
                    {"name": "paper", "type": "conversation", "backend": "filesystem"},
                ]
            }
        },
        "channels": [
            {
                "inline": {
                    "name": "tick",
                    "type": "cron",
                    "transport": "polling",
                    "auth": {"secret_ref": "unused"},
                    "trigger": {"schedule": "* * * * *"},
                }
            }
        ],
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
TOOLS = '''import leaf


def water(seconds: int) -> str:
    """Water."""
    return leaf.said(seconds)
'''
RULES = """\
[[rule]]
when = ["hello"]
say = "Hello yourself."
[[rule]]
when = ["water {n:int}"]
call = "water"
arguments = { seconds = "{n}" }
[[rule]]
when = ["echo {text}"]
call = "echo"
arguments = { text = "{text}" }
[[rule]]
when = ["keep {text}"]
call = "write-file"
arguments = { path = "/workspace/kept.txt", content = "{text}" }
[[rule]]
when = ["read"]
call = "read-file"
arguments = { path = "/workspace/kept.txt" }
"""
SETTINGS = """\
reflex = "reflex.toml"
[cron]
missed = "once"
messages = { tick = "water 60" }
[mcp.t]
args = ["%s", "%s"]
"""


def project(folder, level: str):
    folder.mkdir()
    claw = json.loads(json.dumps(CLAW))
    claw["metadata"]["name"] = folder.name
    claw["spec"]["sandbox"]["inline"]["level"] = level
    (folder / "claw.yaml").write_text(json.dumps(claw))
    (folder / "tools.py").write_text(TOOLS)
    (folder / "leaf.py").write_text('def said(n):\n    return "watered for %d" % n\n')
    (folder / "reflex.toml").write_text(RULES)
    (folder / "clawlite.toml").write_text(SETTINGS % (SERVER, folder))


@pytest.fixture(scope="module")
def macos(tmp_path_factory):
    """Return macOS with the project "apple", and its image, in the current folder."""
    system = System("macos", tmp_path_factory.mktemp("macos"))
    project(system.folder / "apple", "none")
    system.say("build", "apple")
    return system


def test_a_console_with_rules_tools_an_mcp_server_and_files(macos):
    words = ["hello", "water 3", "echo leaf", "keep this", "read", "/status", "/quit"]
    said = macos.say("run", "apple", input="".join(word + "\n" for word in words))
    for expected in ("Hello yourself.", "watered for 3", "leaf", "this"):
        assert expected in said, said
    assert "Traceback" not in said
    assert "all as they were written" in macos.say("audit", "verify", "apple")


def test_a_question(macos):
    assert macos.say("ask", "water 4", "apple") == "watered for 4\n"
    assert "bee" in macos.say("ask", "echo bee", "apple")


def test_a_schedule_makes_up_for_what_was_missed(macos):
    state = macos.folder / "late" / "apple" / "channels"
    state.mkdir(parents=True)
    (state / "tick.json").write_text(json.dumps({"last": int(time.time()) - 3600}))
    late = str(macos.folder / "late")
    said = macos.say("run", "apple", input="hello\n/quit\n", CLAWLITE_STATE=late)
    assert "[tick] watered for 60" in said


def operator(macos, name: str) -> Operator:
    return Operator(macos.words("serve", name, "--stdio"), macos.folder, cwd=macos.folder).boot()


def water(agent, name: str) -> dict:
    context = {"request_id": UUID % 99, "identity": name}
    return agent.ask("claw.tool.call", name="water", arguments={"seconds": 7}, context=context)


def test_an_operator_stores_and_asks(macos):
    for _ in range(2):  # the second process knows what the first one did
        with operator(macos, "apple") as agent:
            for number, store in enumerate(("notes", "paper")):
                agent.put(store, "in " + store, number)
                assert agent.all(store) == ["in " + store]
            for _ in range(2):
                assert "watered for 7" in json.dumps(water(agent, "apple")["result"])
            agent.end()
            assert agent.process.wait() == 0 and "Traceback" not in agent.errors()


def test_level_process_is_refused_with_its_reason(macos):
    project(macos.folder / "boxed", "process")
    macos.say("build", "boxed")
    words = "hello\nwater 3\necho leaf\nread\n/quit\n"
    said = macos.say("run", "boxed", input=words)
    assert "Hello yourself." in said and said.count("this is macOS") == 3, said
    asked = macos.run("ask", "water 3", "boxed")
    assert asked.returncode == 5 and b"this is macOS" in asked.stdout + asked.stderr, asked
    with operator(macos, "boxed") as agent:
        answer = water(agent, "boxed")
        agent.end()
    assert answer.get("error", {}).get("code") == -32010, answer
    assert "sandbox level none" in answer["error"]["data"]["hint"]


def test_commands_of_a_device_end_without_a_traceback(macos):
    for words in (
        ["doctor"],
        ["service", "status"],
        ["swarm", "status"],
        ["channels", "dead"],
        ["trace", "last", "apple"],
        ["secrets", "list", "apple"],
    ):
        done = macos.run(*words)
        assert b"Traceback" not in done.stderr and b"bug" not in done.stderr, done.stderr.decode()
