"""An answer that only repeats itself is ended: a real agent with a server."""

import pytest
from llm_server import Server, say
from providers.project import World, provider

SAID = (
    "provider first: the answer repeated itself and was cut (tried 1 of 1). "
    "Next: ask again in other words, or use another model.\n"
)
PARAGRAPH = "The soil is dry today, so I would water the plants for three seconds.\n\n"


@pytest.mark.parametrize("terminal", [False, True])
def test_an_answer_that_repeats_itself_is_ended_and_told(tmp_path, terminal):
    world = World(tmp_path)
    with Server([say(PARAGRAPH * 4000), say("Good.")]) as server:
        world.build(provider(server, streaming=True))
        with world.start("run", terminal=terminal) as agent:
            agent.line("hello")
            shown = agent.expect(SAID)
            assert 4 <= shown.count(PARAGRAPH.strip()) < 300
            agent.line("and now")
            agent.expect("Good.\n")
            agent.end()
            assert agent.wait() == 0


def test_ask_fails_and_prints_none_of_it(tmp_path):
    world = World(tmp_path)
    with Server([say("a" * 300000)]) as server:
        world.build(provider(server, streaming=True))
        assert world.ask("hello") == (1, "", SAID)
