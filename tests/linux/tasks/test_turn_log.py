"""Each turn that ends is an event of the log: what it took, and nothing of its words."""

import json

from agents import Agent, linux, make_greenhouse
from llm_server import Server
from providers.project import World, answer, provider

PRICES = '[prices."test-model"]\ninput = 1000\noutput = 2000\n'


def read_turns(state) -> list:
    lines = (state / "log.jsonl").read_text().splitlines()
    return [one for one in map(json.loads, lines) if one["event"] == "turn.ended"]


def test_turns_of_a_person(tmp_path):
    env, image = {"CLAWLITE_STATE": tmp_path / "state"}, make_greenhouse(tmp_path / "g")
    with Agent(linux("run", image), tmp_path, env=env) as agent:
        for line, reply in (
            ("hello", "Hello!"),
            ("/new", "begins"),
            ("water the plants for 2 seconds", "Approve"),
            ("n", "said no"),
        ):
            agent.line(line)
            agent.expect(reply)
        agent.line("/quit")
        agent.wait()
    first, second = read_turns(tmp_path / "state/g")
    assert first["status"] == "ok" and second["status"] == "refused"
    assert first["memory_kib"] > 1024 and first["duration_ms"] >= 0
    assert set(first) == {"event", "status", "duration_ms", "memory_kib", "timestamp"}


def test_tokens_and_money_are_those_since_the_turn_before(tmp_path):
    world = World(tmp_path)
    said = [answer("openai", False, text, tokens=20) for text in ("One.", "Two.")]
    with Server(said) as server:
        world.build(provider(server, streaming=False), settings=PRICES)
        with world.start("run") as agent:
            for reply in ("One.", "Two."):
                agent.line("go on")
                agent.expect(reply)
            agent.line("/quit")
            agent.wait()
    turns = read_turns(tmp_path / "home/state/remote")
    assert len(turns) == 2
    for one in turns:
        read, written = one["tokens"]
        assert read + written == 20
        assert one["cost_nano_usd"] == read * 1000000 + written * 2000000
