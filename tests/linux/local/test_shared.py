"""The local models of a gateway's boards (linux/local/shared.py): real processes, of agents without
tools, which need no engine.
"""

import json
import os
import signal
from concurrent.futures import Future

import pytest
from agents import eventually

from clawlite.core.base.effect import OPEN, RECEIVE
from clawlite.core.base.errors import ProviderError
from clawlite.core.turns.history import History
from clawlite.core.turns.turn import Message
from clawlite.linux.local import shared
from clawlite.linux.local.shared import MOST, BoardProvider, SharedModels

PROPOSE = {"do": "propose", "text": "water", "clause": False}


@pytest.fixture
def models():
    made = SharedModels()
    yield made
    made.close()


def setup(name: str, idle_ms: int = 0) -> bytes:
    return json.dumps(
        {"do": "setup", "timeout_ms": 60000, "idle_ms": idle_ms, "tools": [], "examples": []}
        | {"say": {}, "warm": False, "name": name}
    ).encode()


def ask(models, name: str, **how) -> dict:
    done, answer = models.submit(setup(name, **how), PROPOSE).result(120)
    assert done, answer
    return answer


def pids(models) -> list:
    return [mind.pid for mind in models._minds.values()]


def test_the_set_of_tools_that_was_asked_least_lately_makes_room(models):
    assert ask(models, "a")["kind"] == "nothing"
    ask(models, "b")
    first, second = pids(models)
    ask(models, "a")
    ask(models, "c")
    assert len(pids(models)) == MOST == 2 and first in pids(models) and second not in pids(models)
    with pytest.raises(ProcessLookupError):
        os.kill(second, 0)


def test_many_boards_at_once_share_two_processes(models):
    asked = [models.submit(setup("abcd"[at % 4]), PROPOSE) for at in range(12)]
    assert all(one.result(120)[0] for one in asked) and len(pids(models)) == 2


def test_its_death_is_one_error_and_the_next_sentence_starts_another(models):
    ask(models, "a")
    [pid] = pids(models)
    os.kill(pid, signal.SIGKILL)
    done, error = models.submit(setup("a"), PROPOSE).result(120)
    assert not done and isinstance(error, ProviderError)
    assert "the local model of the gateway" in error.message and "clawlite doctor" in error.hint
    ask(models, "a")
    assert pids(models) != [pid]


def test_it_ends_after_idle_time(models):
    ask(models, "a", idle_ms=1)
    eventually(lambda: pids(models) == [0])


def test_what_is_no_answer_of_a_process_is_an_error(models, monkeypatch):
    monkeypatch.setattr(shared, "spawn", _spawn_nonsense)
    done, error = models.submit(setup("a"), PROPOSE).result(120)
    assert not done and "answered nonsense" in error.message


def _spawn_nonsense() -> tuple:
    import socket

    ours, theirs = socket.socketpair()
    pid = os.fork()
    if not pid:
        theirs.sendall(b"\0\0\0\4nope")
        signal.pause()
    theirs.close()
    return pid, ours


# -- questions


FOUND = {"kind": "ask", "calls": [["water", {}]], "text": "how many?", "missing": "seconds"}
NOTHING = {"kind": "nothing", "calls": [], "text": "", "missing": ""}
ACT = {"kind": "act", "calls": [["water", {"seconds": 9}]], "text": "", "missing": ""}


class _Mind:
    """What the process would say: *answers*, in order; ``asked``: what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def submit(self, what: dict) -> Future:
        self.asked.append(what)
        future: Future = Future()
        future.set_result((True, self.answers.pop(0)))
        return future


def say(provider, text: str, speaker=("console", True)):
    """Return the ``Reply`` to a person's message of a board, which is a request of its own."""
    history = History(1000)
    history.speaker = speaker
    history.begin(Message("user", text))
    work, value, answer = provider.ask(history, None), None, None
    while True:
        try:
            effect = work.send(value)
        except StopIteration as e:
            return e.value
        if effect[0] == OPEN:
            answer = provider.submit(effect[4][0]).result()
        value = answer if effect[0] == RECEIVE else None


def test_who_was_asked_completes_the_call_and_nobody_else():
    mind = _Mind(FOUND, NOTHING, ACT)
    provider = BoardProvider("words", {}, mind.submit, True)
    assert say(provider, "water").text == "how many?"
    assert say(provider, "9", ("telegram/7", False)).stop == "passes"
    assert [call[:3] for call in say(provider, "9").calls] == [("", "water", {"seconds": 9})]
    assert [what["do"] for what in mind.asked] == ["propose", "propose", "answer"]


def test_it_asks_once_and_no_schedule():
    mind = _Mind(FOUND, NOTHING, NOTHING, FOUND)
    provider = BoardProvider("words", {}, mind.submit, True)
    say(provider, "water")
    say(provider, "what a day")  # no answer: a sentence of its own
    assert [what["do"] for what in mind.asked] == ["propose", "answer", "propose"]
    reply = say(provider, "water", None)
    assert reply.stop == "passes" and "without asking a person" in reply.text
    assert not provider._questions


def test_another_provider_gets_no_text_of_what_it_passes_on():
    assert say(BoardProvider("words", {}, _Mind(NOTHING).submit, True), "hm").text
    assert not say(BoardProvider("words", {}, _Mind(NOTHING).submit, False), "hm").text


def test_results_that_came_as_texts_are_put_in_words():
    provider = BoardProvider("words", {"read-soil": "It has {percent} %."}, None, True)
    history = History(1000)
    history.begin(Message("user", "how wet"))

    class Result:
        is_error = False

    history.turn.append(Message("assistant", "", [("1", "read-soil", "{}"), ("2", "water", "{}")]))
    for id, text in (("1", '{"percent":34}'), ("2", "{cut")):
        history.turn.append(Message("tool", text, [], id, "", Result()))
    with pytest.raises(StopIteration) as done:
        next(provider.ask(history, None))
    assert done.value.value.text == "It has 34 %.\n{cut"
