"""Rules with a ``rate_limit``, over what providers really used (CKP 0.2.0, 5.8), and what spent
tokens refuse (-32021).
"""

import json

import pytest
from agents import INITIALIZE, tool_call
from llm_server import Server
from providers.project import World, answer, provider

from clawlite.host.builder.build import build_beside

REFLEX = (
    '[[rule]]\nwhen = "note {text:word}"\ncall = "note"\narguments = { text = "{text}" }\n'
    'then = [{ say = "By the rules." }]\n'
)
# dollars for a million tokens: a dollar for a thousand
PRICES = '[prices."test-model"]\ninput = 1000\noutput = 1000\n'


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def build(world, server, *rules, settings=PRICES, **more):
    """Build the project with *rules* before the one that allows all."""
    world.build(provider(server, streaming=False), settings=settings, **more)
    path = world.folder / "project/claw.yaml"
    manifest = json.loads(path.read_text())
    manifest["spec"]["policies"][0]["inline"]["rules"] = [
        *rules,
        {"id": "all", "action": "allow", "scope": "all"},
    ]
    path.write_text(json.dumps(manifest))
    world.image = build_beside(str(path.parent))


def answered(agent):
    """Return the next record between the lines of the console."""
    agent.expect("\x1e")
    return json.loads(agent.expect("\n"))


def open_session(agent):
    """Open an operator's session on the console's line."""
    agent.record({"jsonrpc": "2.0", "id": 0, "method": "claw.initialize", "params": INITIALIZE})
    assert "result" in answered(agent)


def note(agent, number):
    """Return the error of an operator's call, or None."""
    agent.record(tool_call("note", {"text": "n"}, number, "remote"))
    return answered(agent).get("error")


@pytest.mark.parametrize(
    "limit, tokens",
    [
        ({"tokens_per_day": 1000}, 1000),
        ({"cost_per_day_usd": 1.0}, 1000),
        ({"tokens_per_day": 5000, "cost_per_day_usd": 1}, 1000),
    ],
)
def test_a_denial_denies_once_the_day_is_spent(world, limit, tokens):
    """5.8 ``rate_limit``: it denies only what exceeds it, also after a restart; a provider may
    still be asked.
    """
    with Server(
        [
            answer("openai", False, "Dear.", tokens=tokens - 1),
            answer("openai", False, "And.", tokens=1),
            answer("openai", False, "More."),
        ]
    ) as server:
        build(
            world,
            server,
            {
                "id": "spend",
                "action": "deny",
                "scope": "tool",
                "rate_limit": limit,
                "reason": "the day is over",
            },
        )
        with world.start("run") as agent:
            agent.line("hello")
            agent.expect("Dear.\n")
            open_session(agent)
            assert note(agent, 1) is None
            agent.line("hello")
            agent.expect("And.\n")
            error = note(agent, 2)
            assert (
                error["code"] == -32011
                and error["data"]["rule_id"] == "spend"
                and "the day is over" in error["message"]
            )
        with world.start("run") as agent:
            open_session(agent)
            assert note(agent, 3)["data"]["rule_id"] == "spend" and world.ran("note") == ["n"]
            agent.line("hello")
            agent.expect("More.\n")


def test_a_permission_permits_until_then_and_the_next_rule_decides(world):
    with Server([answer("openai", False, "Dear.", tokens=10)]) as server:
        build(
            world,
            server,
            {
                "id": "free",
                "action": "allow",
                "scope": "tool",
                "match": {"name": "note"},
                "rate_limit": {"tokens_per_day": 10},
            },
            {"id": "no", "action": "deny", "scope": "tool", "match": {"name": "note"}},
            settings="",
        )
        with world.start("run") as agent:
            open_session(agent)
            assert note(agent, 1) is None
            agent.line("hello")
            agent.expect("Dear.\n")
            assert note(agent, 2)["data"]["rule_id"] == "no"


def test_spent_tokens_refuse_the_provider_and_no_tool(world):
    """-32021 is for what would ask the provider: a pump must still stop."""
    with Server([answer("openai", False, "Dear.", tokens=9999)]) as server:
        build(world, server, rate_limits={"tokens_per_hour": 10000}, reflex=REFLEX)
        with world.start("run") as agent:
            agent.line("hello")
            agent.expect("Dear.\n")
            agent.line("note it")
            assert "tokens_per_hour is 10000" in agent.expect("By the rules.\n")
            open_session(agent)
            assert (
                note(agent, 1) is None
                and world.ran("note") == ["it", "n"]
                and len(server.requests) == 1
            )


def test_what_no_limit_asks_about_is_not_counted(world):
    with Server([answer("openai", False, "Dear.", tokens=10)]) as server:
        build(world, server)
        assert world.ask("hello") == (0, "Dear.\n", "") and world.meters() is None
