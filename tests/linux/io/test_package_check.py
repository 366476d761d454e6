"""The package is replaced under a running agent, as ``pip install -U`` does it: the agent says so
once and ends, and nothing that it was told counts as done.
"""

import json
import os
import shutil
from importlib import import_module

import pytest
from agents import ROOT, Agent, clawlite, eventually, linux, tool_call
from bot_server import TOKEN, BotServer

from clawlite.linux.io import package_check

CLAW = """\
claw: "0.3.0"
kind: Claw
metadata: { name: lamp }
spec:
  identity: { inline: { personality: "You help.", autonomy: autonomous } }
  providers:
    - inline: { protocol: custom, endpoint: "builtin:reflex", model: m, auth: { type: none } }
  sandbox: { inline: { level: none } }
  policies: [{ inline: { rules: [{ id: all, action: allow, scope: all }] } }]
"""
RULES = '[[rule]]\nwhen = "hi"\nsay = "hello"\n'
IGNORED = shutil.ignore_patterns("__pycache__", "*.so", "*.c")


@pytest.fixture
def place(tmp_path):
    """A folder with an agent, and a package of its own."""
    agent = tmp_path / "agent"
    agent.mkdir()
    (agent / "claw.yaml").write_text(CLAW)
    (agent / "clawlite.toml").write_text('reflex = "rules.toml"\n')
    (agent / "rules.toml").write_text(RULES)
    done = clawlite("build", cwd=agent)
    assert done.returncode == 0, done.stderr
    shutil.copytree(ROOT / "clawlite", tmp_path / "package/clawlite", ignore=IGNORED)
    return tmp_path


def start(place, *words, **more):
    env = {"PYTHONPATH": str(place / "package")}
    return Agent(linux(*words, place / "agent/claw.cbor"), place, env=env, **more)


def replace(place, how: str):
    """*how*: by another version, by nothing yet, or by files that come one by one."""
    package = place / "package/clawlite"
    if how == "moved away":
        package.rename(place / "package/~lawlite")
        return
    shutil.rmtree(package)
    if how == "another":
        shutil.copytree(ROOT / "clawlite", package, ignore=IGNORED)


@pytest.mark.parametrize("how", ["another", "removed", "moved away"])
def test_an_operators_agent_ends_and_says_so_once(place, how):
    with start(place, "serve", "--stdio") as agent:
        agent.initialize()
        replace(place, how)
        agent.line(json.dumps(tool_call("nothing-of-that-name", {}, 1)))
        assert agent.wait() == 1
        assert "bug" not in agent.text() + agent.errors() and "Traceback" not in agent.errors()
        assert agent.errors().count("clawlite was replaced while this agent ran") == 1


@pytest.mark.parametrize("terminal", [False, True])
def test_a_console_ends_after_the_turn(place, terminal):
    with start(place, "run", terminal=terminal) as agent:
        agent.expect("is ready")
        agent.line("hi")
        agent.expect("hello")
        replace(place, "another")
        agent.line("hi")
        assert agent.wait() == 1
        assert "bug" not in agent.text() + agent.errors() and "Traceback" not in agent.errors()
        assert agent.errors().count("clawlite was replaced while this agent ran") == 1


def test_a_module_that_is_needed_then_is_no_failure_of_a_turn(tmp_path):
    first = tmp_path / "__init__.py"
    first.write_text("1")
    watch = package_check.Watch(str(first))
    assert not watch.is_replaced() and watch.find_spec("clawlite.linux.io.other") is None
    first.unlink()
    assert watch.find_spec("json") is None and watch.find_spec("clawlite_other.x") is None
    with pytest.raises(package_check.PackageReplaced) as raised:
        watch.find_spec("clawlite.linux.io.other")
    assert not isinstance(raised.value, Exception)
    first.write_text("1")  # it stays found: this process is of the old one
    assert watch.is_replaced()


def test_the_loop_looks_a_few_times_a_second(tmp_path):
    first = tmp_path / "__init__.py"
    first.write_text("1")
    watch = package_check.Watch(str(first))
    assert not watch.is_replaced(1000)
    first.unlink()
    assert not watch.is_replaced(1199) and watch.is_replaced(1200)


def test_a_package_that_looks_the_same_is_another_one(tmp_path):
    """Its first file has the number, the size and the time of the one before."""
    first = tmp_path / "__init__.py"
    first.write_text("1")
    times = (first.stat().st_atime_ns, first.stat().st_mtime_ns)
    watch = package_check.Watch(str(first))
    watch.start()
    try:
        first.unlink()
        first.write_text("1")
        os.utime(first, ns=times)
        assert watch.is_replaced()
    finally:
        watch.stop()


def test_a_package_that_cannot_be_looked_at_counts_as_whole(tmp_path):
    watch = package_check.Watch(str(tmp_path / ("x" * 300)))
    assert not watch.is_replaced() and not watch.is_replaced(1000)


def test_a_module_that_nobody_finds_is_being_replaced():
    watch = package_check.Watch()
    watch.start()
    try:
        with pytest.raises(package_check.PackageReplaced):
            import_module("clawlite.linux.io.nowhere")
        with pytest.raises(ImportError):
            import_module("clawlite.nowhere")
    finally:
        watch.stop()


CHANNEL = """\
  channels:
    - inline: { name: bot, type: telegram, transport: polling, auth: { secret_ref: BOT },
                access_control: { mode: allowlist, allowed_ids: ["7"] } }
"""


@pytest.mark.parametrize("how", ["another", "removed"])
def test_a_message_that_comes_then_is_answered_once_after_the_next_start(place, how):
    with BotServer(TOKEN) as server:
        (place / "agent/claw.yaml").write_text(CLAW + CHANNEL)
        settings = 'reflex = "rules.toml"\n[telegram]\nbase_url = "%s"\n' % server.url
        (place / "agent/clawlite.toml").write_text(settings)
        done = clawlite("build", cwd=place / "agent")
        assert done.returncode == 0, done.stderr
        env = {"PYTHONPATH": str(place / "package"), "BOT": TOKEN}
        words = linux("run", place / "agent/claw.cbor")
        with Agent(words, place, env=env) as agent:
            server.message(7, "hi")
            eventually(lambda: len(server.sent) == 1)
            replace(place, how)
            server.message(7, "hi")
            server.message(7, "hi")
            assert agent.wait() == 1
            assert "bug" not in agent.errors() and "Traceback" not in agent.errors()
        if how == "removed":
            shutil.copytree(ROOT / "clawlite", place / "package/clawlite", ignore=IGNORED)
        with Agent(words, place, env=env):
            eventually(lambda: len(server.sent) >= 3)
            server.message(7, "hi")
            eventually(lambda: len(server.sent) >= 4)
        assert [one["text"] for one in server.sent] == ["hello"] * 4
