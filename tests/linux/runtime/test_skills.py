"""Skills and composite tools of real agents, with scripted models: who begins one, what it
fences, what it comes to.
"""

import json

import pytest
from agents import tool_call
from llm_server import Server, calls, say
from providers.project import World, nobody, provider, texts

REPORT = {
    "name": "report",
    "description": "Report on  a topic",
    "tools_required": ["note", "careful"],
    "instruction": "Note the topic.",
    "input_schema": {
        "type": "object",
        "properties": {"topic": {"type": "string"}, "words": {"type": "integer", "default": 10}},
        "required": ["topic"],
    },
}
FIRST = {
    "name": "first",
    "description": "Ask first",
    "tools_required": ["note"],
    "instruction": "Be careful.",
    "permissions": {"approval_required": True},
}
SUMMARY = {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]}


def composite(**more) -> dict:
    return {
        "inline": dict(
            {
                "name": "researched",
                "description": "Research",
                "input_schema": REPORT["input_schema"],
                "composite": True,
                "skill_ref": "report",
                "annotations": {"readOnlyHint": True},
            },
            **more,
        )
    }


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def build(world, server, *skills, tools=(), **more):
    spec = {"skills": [{"inline": skill} for skill in skills]}
    if tools:
        spec["tools"] = list(tools)
    return world.build(provider(server, **more), more=spec)


def names(request) -> list:
    return [tool["function"]["name"] for tool in request.body["tools"]]


def test_a_model_is_told_of_skills_and_gets_the_instruction_when_it_calls_one(world):
    script = [
        calls(("skill__report", {"topic": "tea"})),
        calls(("read_file", {"path": "x"}), ("note", {"text": "tea"})),
        say("Done."),
    ]
    with Server(script) as server:
        build(world, server, REPORT, FIRST)
        code, said, errors = world.ask("Report on tea.")
        assert (code, said, errors) == (5, "Done.\n", ""), "one call was refused"
        first, second, third = server.requests
    assert (
        first.body["messages"][0]["content"]
        == "You are under test.\n\nSkills: call one to get its instruction, before you do "
        "yourself what "
        "it is for.\n- skill__report: Report on a topic\n- skill__first: Ask first"
    )
    assert {"skill__report", "skill__first"} < set(names(first))
    instruction = texts(second, "openai")[-1][1]
    assert "Note the topic." in instruction and instruction.endswith(
        'Input: {"topic":"tea","words":10}'
    )
    refused, noted = texts(third, "openai")[-2:]
    assert (
        refused
        == (
            "tool",
            "read-file: the skill report is under way, which uses only: note, "
            "careful, skill__first",
        )
        and noted[1] == "noted tea"
    )
    assert world.ran("read_file") == [] and world.ran("note") == ["tea"]


def test_a_person_begins_one_and_the_turn_begins_with_it(world):
    with Server([calls(("forbidden", {}), ("note", {"text": "x"})), say("Reported.")]) as server:
        build(world, server, REPORT)
        assert world.ask("/report green tea")[:2] == (5, "Reported.\n")
        role, text = texts(server.requests[0], "openai")[0]
    assert (
        role == "user"
        and text.startswith("Follow this instruction")
        and text.endswith('Input: {"topic":"green tea","words":10}')
    )
    assert world.ran("note") == ["x"]


@pytest.mark.parametrize(
    "line, words",
    [
        ("/report", "skill__report: at arguments.topic: expected a value, got nothing"),
        ("/report {topic}", "report: its input is no JSON: JSON byte 1"),
        ('/report {"topic": 5}', "skill__report: at arguments.topic: expected a string, got 5"),
        ("/skill reprot", "there is no skill reprot. Next: this agent has: report."),
    ],
)
def test_what_is_no_input_is_said_and_no_provider_is_asked(world, line, words):
    with Server([]) as server:
        build(world, server, REPORT)
        code, said, errors = world.ask(line)
        assert words in said + errors and server.requests == [], (said, errors)


def test_approval_comes_before_any_request_and_a_no_ends_it(world):
    with Server([say("Careful.")]) as server:
        build(world, server, FIRST)
        code, said, errors = world.ask("/first")
        assert code == 5 and "skill__first: not approved" in errors and server.requests == []
        assert world.ask("/first", "--approve")[:2] == (0, "Careful.\n")


def test_approval_when_a_model_begins_it(world):
    with Server([calls(("skill__first", {})), say("As you like.")]) as server:
        build(world, server, FIRST)
        assert world.ask("go")[0] == 5
        assert "not approved" in texts(server.requests[1], "openai")[-1][1]


def test_an_answer_that_does_not_fit_is_told_to_the_model_once(world):
    skill = dict(REPORT, output_schema=SUMMARY)
    with Server(
        [say("It is fine."), say('{"summary": "fine"}'), say("no"), say('{"summary": 1}')]
    ) as server:
        build(world, server, skill)
        assert world.ask("/report tea") == (0, 'It is fine.\n{"summary": "fine"}\n', "")
        assert "JSON Schema: " + json.dumps(SUMMARY) in texts(server.requests[0], "openai")[0][1]
        assert texts(server.requests[1], "openai")[-1][1].startswith(
            "That does not fit: expected JSON"
        )
        code, said, errors = world.ask("/report tea")
    assert (
        code == 1
        and said == ""
        and "output_schema of the skill report allows: at answer.summary: expected a string"
        in errors
    )


# -- composite tools


def test_a_composite_tool_is_a_turn_of_its_own(world):
    script = [
        calls(("researched", {"topic": "tea"})),
        calls(("note", {"text": "tea"}), ("read_file", {"path": "x"})),
        say("It is a plant."),
        say("A plant."),
    ]
    with Server(script) as server:
        build(world, server, REPORT, tools=[composite()])
        code, said, errors = world.ask("What is tea?")
        assert (said, errors) == ("A plant.\n", ""), "nothing of it is shown"
        inner, after = server.requests[1], server.requests[3]
    assert len(texts(inner, "openai")) == 1 and texts(inner, "openai")[0][1].endswith(
        '{"topic":"tea","words":10}'
    )
    assert texts(after, "openai")[-1] == ("tool", "It is a plant.")
    assert world.ran("note") == ["tea"] and world.ran("read_file") == []


def test_what_asks_first_asks_inside_one_too(world):
    script = [
        calls(("researched", {"topic": "tea"})),
        calls(("careful", {"what": "it"})),
        say("Careful."),
        say("Well."),
    ]
    with Server(script) as server:
        build(world, server, REPORT, tools=[composite()])
        with world.start("run") as agent:
            agent.line("go")
            agent.expect('Approve careful(what="it")?')
            assert world.ran("careful") == []
            agent.line("y")
            agent.expect("Well.")
    assert world.ran("careful") == ["it"]


def test_an_operator_calls_one_and_approves_what_it_calls(world):
    script = [
        calls(("careful", {"what": "it"})),
        say('{"summary": "s"}'),
        say("words"),
        say("words again"),
    ]
    with Server(script) as server:
        build(
            world,
            server,
            dict(REPORT, output_schema=SUMMARY),
            tools=[composite(output_schema=SUMMARY)],
        )
        with world.start("serve", "--stdio") as agent:
            agent.initialize()
            agent.line(json.dumps(tool_call("researched", {"topic": "tea"}, 7)))
            approve = {"request_id": tool_call("x", {}, 7)["params"]["context"]["request_id"]}
            while not agent.call("claw.tool.approve", approve, 100)["result"]["acknowledged"]:
                pass  # until what it calls waits
            answer = agent.message()
            assert (
                answer["id"] == 7
                and json.loads(answer["result"]["content"][0]["text"]) == {"summary": "s"}
                and not answer["result"]["isError"]
            )
            agent.line(json.dumps(tool_call("researched", {"topic": "tea"}, 8)))
            assert "output_schema of the skill report" in agent.message()["error"]["message"]
    assert world.ran("careful") == ["it"]


def test_without_a_provider_and_without_time_it_says_so(world):
    build(world, nobody(), REPORT, tools=[composite()])
    with world.start("serve", "--stdio") as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("researched", {"topic": "tea"}, 7)))
        assert agent.message()["error"]["code"] == -32020
    with Server([{"stall": "head"}]) as server:
        build(world, server, REPORT, tools=[composite(timeout_ms=300)])
        with world.start("serve", "--stdio") as agent:
            agent.initialize()
            agent.line(json.dumps(tool_call("researched", {"topic": "tea"}, 7)))
            error = agent.message()["error"]
            assert error["code"] == -32014 and error["data"]["timeout_ms"] == 300, error
            assert "(timeout_ms: 300)" in error["message"]


def test_ctrl_c_ends_one_and_the_turn_that_called_it(world):
    with Server(
        [calls(("researched", {"topic": "tea"})), {"stall": "head"}, say("Next.")]
    ) as server:
        build(world, server, REPORT, tools=[composite()])
        with world.start("run") as agent:
            agent.line("go")
            assert server.stalled.wait(60)
            agent.signal(2)
            agent.expect("Interrupted")
            agent.line("again")
            agent.expect("Next.")
        assert len(server.requests) == 3


def test_context_files_larger_than_the_window_do_not_stop_the_agent(world):
    with Server([say("Yes.")]) as server:
        (world.folder / "project").mkdir()
        (world.folder / "project/USER.md").write_text("word " * 3000)
        world.build(
            provider(server, limits={"max_context_window": 2000}), context_files={"user": "USER.md"}
        )
        code, said, errors = world.ask("hello")
    assert code in (0, 1) and said + errors


def test_locale_is_told(world):
    with Server([say("Oui.")]) as server:
        world.build(
            provider(server),
            more={
                "identity": {
                    "inline": {
                        "name": "i",
                        "personality": "P.",
                        "locale": "fr-FR",
                        "autonomy": "autonomous",
                    }
                }
            },
        )
        world.ask("x")
        assert (
            server.requests[0].body["messages"][0]["content"]
            == "P.\n\nThe locale is fr-FR: answer in its language, unless you are spoken to in "
            "another."
        )
