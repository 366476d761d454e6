"""Tools that ask the agent's own provider: what it says comes back into the handler, and limits
hold (5.2).
"""

import json

import pytest
from agents import tool_call
from llm_server import FAULTS, Server, calls, say
from providers.project import AT_ONCE, WAYS, World, answer, provider

TOOLS = '''\
"""Tools that ask."""
import os


def _mark(text):
    with open(os.environ["MARKS"] + "/asking", "a") as file:
        file.write(text + "\\n")


def summarize(text: str, most: int) -> str:
    """Make it short."""
    try:
        first = yield {"ask": "Summarize: " + text, "max_tokens": most}
        yield 1
        second = yield {"ask": "Again: " + first}
        return first + "|" + second
    finally:
        _mark("closed")


def forgiving(text: str) -> str:
    """Go on without."""
    try:
        return (yield {"ask": text})
    except Exception as e:
        return "without: %s" % e


def impatient(text: str) -> str:
    """Ask, and have little time."""
    return (yield {"ask": text})


def wrong(text: str) -> str:
    """Ask nothing."""
    yield {"asks": text}
    return "x"
'''


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def build(world, *providers, **more):
    world.build(*providers, tools=TOOLS, **more)


def called(agent, name, arguments, number=5):
    agent.record(tool_call(name, arguments, number))
    return agent.message()


@pytest.mark.parametrize("api, streaming", WAYS)
def test_an_operators_call_asks_and_nothing_of_it_shows(world, api, streaming):
    with Server([say("Short é."), say("Shorter.")], api=api) as server:
        build(world, provider(server, streaming=streaming))
        with world.start("serve", "--stdio") as agent:
            agent.initialize()
            said = called(agent, "summarize", {"text": "long", "most": 77})
            assert said["result"] == {
                "content": [{"type": "text", "text": "Short é.|Shorter."}],
                "isError": False,
            }
            assert agent.errors() == ""
        assert [request.body["max_tokens"] for request in server.requests] == [77, 1024]
        assert not any("tools" in request.body for request in server.requests)
        assert [
            json.dumps(request.body["messages"][-1]).count("Again: Short")
            for request in server.requests
        ] == [0, 1]
    assert world.ran("asking") == ["closed"]


def test_in_a_turn_the_conversation_is_the_persons_and_its_rounds_stay_where_they_were(world):
    script = [calls(("forgiving", {"text": "why?"})), say("Because."), say("It said: because.")]
    with Server([FAULTS["failed"]] * 3) as away, Server(script) as server:
        build(world, provider(away, "one"), provider(server, "two"))
        code, said, told = world.ask("Ask it.")
        assert (code, said) == (0, "It said: because.\n") and told.count("next: two") == 1
        assert [len(request.body["messages"]) for request in server.requests] == [2, 2, 4]
        assert (
            server.requests[2].body["messages"][3]["content"] == "Because."
            and len(away.requests) == 2
        )


def test_a_quota_refuses_what_would_exceed_it_and_the_handler_is_closed(world):
    """5.2: -32021 before the request; all that a tool asks for must be left, not a part of it."""
    with Server([answer("openai", False, "Yes.", tokens=400)] * 2) as server:
        build(world, provider(server, streaming=False, limits={"tokens_per_day": 1000}))
        with world.start("serve", "--stdio") as agent:
            agent.initialize()
            said = called(agent, "summarize", {"text": "x", "most": 990})
            assert (
                said["error"]["code"] == -32021
                and server.requests == []
                and world.ran("asking") == ["closed"]
            )
            said = called(agent, "summarize", {"text": "x", "most": 300}, 6)
            assert (
                said["error"]["code"] == -32021
                and len(server.requests) == 1
                and said["error"]["data"]["limit"] == "tokens_per_day"
            )
    assert world.ran("asking") == ["closed"] * 2


@pytest.mark.parametrize("level", ["none", "process"])
def test_what_waits_for_a_minute_of_the_provider_ends_with_its_tools_time(world, level):
    """5.2 and 9.4: ``requests_per_minute`` waits, and a tool's ``timeout_ms`` is no longer for
    that.
    """
    tool = {
        "name": "impatient",
        "description": "Ask, and have little time.",
        "timeout_ms": 300,
        "input_schema": {
            "type": "object",
            "required": ["text"],
            "properties": {"text": {"type": "string"}},
        },
    }
    with Server([say("Yes.")]) as server:
        build(
            world,
            provider(server, limits={"requests_per_minute": 1}),
            more={
                "tools": [{"inline": tool}],
                "sandbox": {"inline": {"name": "s", "level": level}},
            },
        )
        with world.start("serve", "--stdio") as agent:
            agent.initialize()
            assert (
                called(agent, "forgiving", {"text": "x"})["result"]["content"][0]["text"] == "Yes."
            )
            agent.record(tool_call("impatient", {"text": "y"}, 6))
            error = agent.message()["error"]
            assert error["code"] == -32014 and error["data"] == {
                "tool": "impatient",
                "timeout_ms": 300,
                "hint": "give it less to do, or raise timeout_ms in the manifest",
            }, error
            assert len(server.requests) == 1 and agent.is_serving()


def test_a_provider_that_fails_is_the_tools_to_deal_with(world):
    with Server([FAULTS["failed"]] * 3) as server:
        build(world, provider(server, retry=dict(AT_ONCE, max_attempts=2)))
        with world.start("serve", "--stdio") as agent:
            agent.initialize()
            said = called(agent, "forgiving", {"text": "x"})
            assert (
                said["result"]["content"][0]["text"]
                == "without: provider first: HTTP 500: Internal server error. (tried 2 of 2)"
            )
            assert (
                called(agent, "summarize", {"text": "x", "most": 5}, 6)["error"]["code"] == -32020
            )
            said = called(agent, "wrong", {"text": "x"}, 7)["result"]
            assert (
                said["isError"]
                and 'expected {"ask": text' in said["content"][0]["text"]
                and agent.errors() == ""
            )
    log = (world.folder / "home/state/remote/log.jsonl").read_text()
    assert '"notice"' in log and "again in" in log


def test_without_a_remote_provider_nobody_can_be_asked(world):
    build(world, reflex='[[rule]]\nwhen = "go"\ncall = "forgiving"\narguments = { text = "x" }\n')
    assert world.ask("go") == (0, "without: this agent has no provider that a tool could ask\n", "")


def test_ctrl_c_ends_the_question_too(world):
    import signal

    with Server([FAULTS["stall before head"]]) as server:
        build(
            world,
            provider(server),
            reflex='[[rule]]\nwhen = "go"\ncall = "forgiving"\narguments = { text = "x" }\n',
        )
        with world.start("run") as agent:
            agent.line("go")
            assert server.stalled.wait(60)
            agent.signal(signal.SIGINT)
            agent.expect("Interrupted.\n")
            assert agent.end() is None and agent.wait() == 0 and agent.errors() == ""
