"""A turn with a model, recorded, plays again without one (5.2, the provider builtin:replay)."""

import json

import pytest
from llm_server import FAULTS, Server, calls, say, when_away
from providers.project import WAYS, World, provider

REPLAY = {
    "name": "played",
    "protocol": "custom",
    "endpoint": "builtin:replay",
    "model": "replay",
    "auth": {"type": "none"},
}


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.mark.parametrize("api, streaming", WAYS)
def test_what_a_model_did_plays_again_without_it(world, api, streaming):
    script = [
        calls(("note", {"text": "é\n1"}), ("no_such", {"x": [1, {"y": None}]}), text="I note it."),
        say("Noted. 🌱"),
        say("Bye."),
    ]
    file = world.folder / "project/turns.jsonl"
    with Server(script, api=api) as server:
        world.build(provider(server, streaming=streaming))
        with world.start("run", "--record", file) as agent:
            agent.line("note it")
            agent.expect("Noted. 🌱\n")
            agent.line("bye")
            agent.expect("Bye.\n")
    assert [json.loads(line) for line in file.read_text().splitlines()] == [
        {"user": "note it"},
        {
            "say": "I note it.",
            "call": [
                {"tool": "note", "arguments": {"text": "é\n1"}},
                {"tool": "no_such", "arguments": {"x": [1, {"y": None}]}},
            ],
        },
        {"say": "Noted. 🌱"},
        {"user": "bye"},
        {"say": "Bye."},
    ]
    world.build(REPLAY, settings='replay = "turns.jsonl"\n')
    with world.start("run") as agent:
        agent.line("note it")
        assert agent.expect("Noted. 🌱\n").endswith("I note it.\n")
        agent.line("bye")
        agent.expect("Bye.\n")
    assert world.ran("note") == ["é", "1"] * 2


def test_ask_appends_its_turn_and_one_without_an_end_is_told(world):
    file = world.folder / "turns.jsonl"
    file.write_text('{"user": "before"}\n{"say": "x"}\n')
    with Server([say("One."), calls(("note", {"text": "a"})), FAULTS["failed"]]) as server:
        world.build(provider(server))
        assert world.ask("hello", "--record", str(file)) == (0, "One.\n", "")
        code, said, told = world.ask("hello", "--record", str(file))
        assert (code, said) == (1, "") and told.endswith(
            "(tried 1 of 1)."
            + when_away(server)
            + "This turn did not finish and was not recorded.\n"
        )
    assert len(file.read_text().splitlines()) == 4


@pytest.mark.parametrize(
    "words, line",
    [
        ((".",), "Is a directory - name a file that you may write with --record"),
        ((), "--record: expected FILE"),
    ],
)
def test_a_file_that_cannot_be_written_is_said_before_anything_runs(world, words, line):
    with Server([]) as server:
        world.build(provider(server))
        with world.start("run", "--record", *words) as agent:
            assert (
                agent.wait() == 2
                and line in agent.errors()
                and agent.text() == ""
                and server.requests == []
            )
