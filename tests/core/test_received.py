"""What a connection brings while a board's loop has not yet carried its task on
(``Agent.later``).
"""

import transcripts

from clawlite.core.agent.agent import Agent
from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base.effect import CLOSE, RECEIVE


def reading(pieces: int, got: list):
    """A task that waits for so many *pieces* of its connection, and then does something else."""
    for _ in range(pieces):
        got.append((yield (RECEIVE, 1000))[1])
    yield (CLOSE,)


def begun(pieces: int) -> tuple:
    """Return (agent, number of the task, what it has got, what it ended with)."""
    setup, got, ended = Setup(transcripts.read_image("gates")), [], []
    setup.later = []
    agent = Agent(setup, 0, 4)
    agent.start(0)
    number = agent.begin(reading(pieces, got), lambda value, error, _: ended.append(error), 0)
    agent.catch_up(0)
    return agent, number, got, ended


def test_pieces_that_come_at_once_are_handed_in_one_by_one_and_in_order():
    agent, number, got, ended = begun(3)
    for piece in (b"a", b"b", b"c"):
        agent.receive(number, (True, piece), 5)
    assert got == [] and agent.deadline() is None, (
        "it is not carried on here, and has not been silent"
    )
    agent.catch_up(5)
    assert got == [b"a", b"b", b"c"] and ended == [None]


def test_a_piece_that_nobody_waits_for_any_more_is_dropped():
    agent, number, got, ended = begun(1)
    agent.receive(number, (True, b"a"), 5)
    agent.receive(number, (True, b"b"), 5)
    agent.catch_up(5)
    assert got == [b"a"] and ended == [None]
    agent.receive(number, (True, b"c"), 6)
    assert agent.later == []


def test_what_is_called_after_the_catch_up_comes_behind_what_was_left():
    agent, number, got, ended = begun(1)
    agent.receive(number, (True, b"a"), 5)
    agent.call_after_catch_up(lambda: got.append(b"called"))
    assert got == []
    agent.catch_up(5)
    assert got == [b"a", b"called"] and not agent.tasks
    agent.call_after_catch_up(lambda: got.append(b"at once"))
    assert got[2:] == [b"at once"]
