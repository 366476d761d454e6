"""The tool message: to whom of which channel, how long, and what a real agent makes of it; and
skills that people elsewhere begin.
"""

import json
import subprocess

import pytest
from agents import Agent, environment, linux
from channel_world import Source, World, project

from clawlite.core.base.errors import ClawError, InvalidParams, PolicyDenied
from clawlite.host.compiler import compiler
from clawlite.linux.channels import channel

CLI = {"type": "cli", "transport": "stdio"}
BOT = {
    "type": "telegram",
    "transport": "polling",
    "access_control": {"mode": "allowlist", "allowed_ids": ["7"]},
    "processing": {"max_message_length": 20},
}
CRON = {"type": "cron", "transport": "polling", "trigger": {"schedule": "0 0 1 1 *"}}
HOOK = {"type": "webhook", "transport": "webhook", "access_control": {"mode": "open"}}
RULES = """
[[rule]]
when = "tell {channel:word} {chat:word} {words:text}"
call = "message"
arguments = { channel = "{channel}", chat_id = "{chat}", content = "{words}" }

[[rule]]
when = "{words:text}"
say = "You said: {words}"
"""


class Platform(Source):
    """A source that carries messages; *full* is why it takes none."""

    full = ""

    def recipient(self, name):
        return None

    def send(self, to, text):
        if not self.full:
            self.sent.append((to, text))
        return self.full


@pytest.fixture
def world(tmp_path, monkeypatch):
    def make(**specs) -> World:
        of = World(tmp_path, {name: spec for name, spec in specs.items()}, monkeypatch=monkeypatch)
        monkeypatch.setattr(channel, "source_of", lambda kind: Platform)
        of.opened()
        of.poll()
        return of

    return make


def test_whom_access_control_knows_is_written_to(world):
    of = world(bot=BOT)
    assert of.channels.write("bot", "7", "It is dry.") == {
        "channel": "bot",
        "chat_id": "7",
        "status": "queued",
    }
    assert of.source("bot").sent == [("7", "It is dry.")]


@pytest.mark.parametrize(
    "name, chat, text, error, said",
    [
        ("bot", "66", "x", PolicyDenied, "channel bot does not know 66"),
        ("bot", "7", "x" * 21, InvalidParams, "carries at most 20"),
        ("bat", "7", "x", InvalidParams, "there is no bat"),
        ("tick", "7", "x", InvalidParams, "is of type cron"),
        ("hook", "7", "x", InvalidParams, "is of type webhook"),
    ],
)
def test_what_is_not_sent(world, name, chat, text, error, said):
    of = world(bot=BOT, tick=CRON, hook=HOOK)
    with pytest.raises(error, match=said) as caught:
        of.channels.write(name, chat, text)
    assert caught.value.hint and not of.source("bot").sent


def test_twenty_characters_are_twenty(world):
    assert world(bot=BOT).channels.write("bot", "7", "x" * 20)["status"] == "queued"


def test_a_channel_that_is_full_says_so(world, monkeypatch):
    of = world(bot=BOT)
    monkeypatch.setattr(Platform, "full", "1000 messages wait already")
    with pytest.raises(ClawError, match="1000 messages wait already"):
        of.channels.write("bot", "7", "x")


def test_in_mode_open_who_has_written_is_written_to(world):
    of = world(bot=dict(BOT, access_control={"mode": "open"}))
    with pytest.raises(PolicyDenied, match="does not know 9"):
        of.channels.write("bot", "9", "x")
    of.say("bot", "9", "echo hello")
    assert of.channels.write("bot", "9", "x")["status"] == "queued"


def test_paired_people_are_written_to(world):
    of = world(
        bot=dict(
            BOT,
            access_control={
                "mode": "pairing",
                "pairing": {"code_expiry_minutes": 5, "max_pending": 2},
            },
        )
    )
    of.say("bot", "9", "hello")
    code = of.source("bot").sent[-1][1].split("/pair ")[1].split()[0]
    with pytest.raises(PolicyDenied):
        of.channels.write("bot", "9", "x")
    of.channels.command(["/pair", code])
    assert of.channels.write("bot", "9", "x")["status"] == "queued"


# -- a real agent


def agent_of(folder, level: str, rules: list, **specs):
    """Write an image of an agent with the tool message; return its path."""
    project(folder, specs)  # its files
    made = json.loads((folder / "claw.yaml").read_text())
    made["spec"]["tools"].append("claw://registry/clawlite/message@1.0.0")
    made["spec"]["sandbox"] = {"inline": {"level": level}}
    made["spec"]["policies"] = [{"inline": {"rules": rules}}]
    (folder / "claw.yaml").write_text(json.dumps(made))
    (folder / "reflex.toml").write_text(RULES)
    from clawlite.host.manifest import manifest

    path = folder / "claw.cbor"
    path.write_bytes(compiler.build(manifest.load(folder)).data)
    return path


ALL = [{"id": "all", "action": "allow", "scope": "all"}]


@pytest.mark.parametrize("level", ["none", "process"])
def test_a_message_to_the_console(tmp_path, level):
    with Agent(
        linux("run", agent_of(tmp_path / "project", level, ALL, desk=CLI)), tmp_path / "home"
    ) as agent:
        agent.line("tell desk me it rains")
        agent.expect("[desk] it rains")
        agent.line("tell dusk me it rains")
        agent.expect("channel: there is no dusk")
        agent.end()
        agent.wait()


def test_it_is_governed_as_every_tool(tmp_path):
    deny = [
        {
            "id": "no",
            "action": "deny",
            "scope": "tool",
            "match": {"name": "message"},
            "reason": "not a word",
        }
    ] + ALL
    with Agent(
        linux("run", agent_of(tmp_path / "project", "none", deny, desk=CLI)), tmp_path / "home"
    ) as agent:
        agent.line("tell desk me it rains")
        agent.expect("not a word")
        agent.end()
        agent.wait()
        assert "[desk]" not in agent.text()


def test_an_operator_has_no_console_to_write_to(tmp_path):
    path = agent_of(tmp_path / "project", "none", ALL, desk=CLI)
    with Agent(linux("serve", path, "--stdio"), tmp_path / "home") as agent:
        agent.initialize()
        said = agent.call(
            "claw.tool.call",
            {
                "name": "message",
                "arguments": {"channel": "desk", "chat_id": "me", "content": "hi"},
                "context": {
                    "request_id": "00000000-0000-4000-8000-000000000001",
                    "identity": "tester",
                },
            },
            7,
        )
        assert said["result"]["isError"] is True and "nobody reads the console desk" in json.dumps(
            said
        )


def test_a_queue_without_its_package_is_refused_by_name(tmp_path):
    jobs = {
        "type": "queue",
        "transport": "polling",
        "access_control": {"mode": "open"},
        "trigger": {"queue_name": "t/jobs"},
    }
    made = project(tmp_path / "project", {"jobs": jobs})
    path = tmp_path / "project" / "claw.cbor"
    path.write_bytes(compiler.build(made).data)
    (tmp_path / "hidden" / "paho").mkdir(parents=True)
    (tmp_path / "hidden" / "paho" / "__init__.py").write_text("raise ImportError")
    env = environment(tmp_path / "home")
    env["PYTHONPATH"] = str(tmp_path / "hidden") + ":" + env.get("PYTHONPATH", "")
    done = subprocess.run(linux("run", path), env=env, input=b"", capture_output=True, timeout=300)
    assert (
        done.returncode == 2
        and b"needs the package paho-mqtt, which is not installed" in done.stderr
        and b" -m pip install 'paho-mqtt>=2.0'" in done.stderr
    )


# -- skills

SKILL = {
    "inline": {
        "name": "both",
        "description": "Do both",
        "tools_required": ["quick"],
        "instruction": "quick",
    }
}


def skilled(folder, monkeypatch, roles: list) -> World:
    spec = dict(BOT, access_control={"mode": "role-based", "roles": roles}, processing={})
    made = project

    def with_skill(where, specs, settings=""):
        made(where, specs, settings)
        text = json.loads((where / "claw.yaml").read_text())
        text["spec"]["skills"] = [SKILL]
        (where / "claw.yaml").write_text(json.dumps(text))
        (where / "reflex.toml").write_text(
            '[[rule]]\nwhen = ["* quick * *", "* quick *"]\ncall = '
            '"quick"\n[[rule.then]]\nsay = "Done."\n'
            '[[rule]]\nwhen = "{words:text}"\nsay = "You said: '
            '{words}"\n'
        )
        from clawlite.host.manifest import manifest

        return manifest.load(where)

    monkeypatch.setattr("channel_world.project", with_skill)
    return World(folder, {"bot": spec}, monkeypatch=monkeypatch)


def test_a_person_elsewhere_begins_a_skill_as_their_role_permits(tmp_path, monkeypatch):
    of = skilled(
        tmp_path, monkeypatch, [{"id": "7", "role": "user"}, {"id": "8", "role": "viewer"}]
    )
    of.say("bot", "8", "/both now")
    assert not of.events("tool.call") and "a viewer begins no skill" in of.source("bot").sent[-1][1]
    of.say("bot", "7", "/both now")
    first = of.events("tool.call")[0]
    assert (
        first["tool"] == "skill__both"
        and first["caller"] == "a person (bot/7)"
        and first["status"] == "ok"
    )
    of.say("bot", "7", "/skill none")
    assert "there is no skill none" in of.source("bot").sent[-1][1]
    of.say("bot", "7", "/start")
    assert of.source("bot").sent[-1][1].startswith("This is "), "it is no message to the agent"
