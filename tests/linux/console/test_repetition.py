"""An answer that only repeats itself is ended: the detector, and a real agent with a server."""

import pytest
from llm_server import Server, say
from providers.project import World, provider

from clawlite.linux.console.repetition import LONGEST, Repetition

SAID = (
    "the answer was ended: it only repeated itself. "
    "Next: ask again in other words, or use another model.\n"
)
PARAGRAPH = "The soil is dry today, so I would water the plants for three seconds.\n\n"


def _ends(text: str, size: int):
    """Return after how many characters *text* is found to repeat itself, None when it is not."""
    found = Repetition()
    for start in range(0, len(text), size):
        if found.add(text[start : start + size]):
            return start + size
    return None


@pytest.mark.parametrize("size", [1, 3, 7, 50])
@pytest.mark.parametrize(
    "run", ["a", "ha ", PARAGRAPH, "ü" * 5 + "ber", "".join(map(str, range(350)))[: LONGEST - 50]]
)
def test_a_run_without_end_is_found_soon(run, size):
    at = _ends("I begin well. " + run * 6000, size)
    assert at is not None and at <= 14 + max(1300, 6 * len(run) + 100)


@pytest.mark.parametrize("size", [1, 3, 7, 50])
@pytest.mark.parametrize(
    "text",
    [
        "a" * 1000,
        PARAGRAPH * 3,
        "-" * 200 + "\n" + PARAGRAPH,
        "".join("%d. Water plant %d.\n" % (n, n) for n in range(900)),
        "".join("| %d | dry | 21 %% | water |\n" % (n * n) for n in range(500)),
    ],
)
def test_what_goes_on_is_not(text, size):
    assert _ends(text, size) is None


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
