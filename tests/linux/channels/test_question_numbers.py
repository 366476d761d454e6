"""The number of a question names it alone: a late answer by number never meets another question of
the same turn, and says what became of its own.
"""

import pytest
from channel_world import World

from clawlite.core.base.effect import APPROVE
from clawlite.core.base.errors import ClawError
from clawlite.core.policy.approval import Approval

ADMINS = {
    "desk": {
        "type": "telegram",
        "transport": "polling",
        "access_control": {
            "mode": "role-based",
            "roles": [{"id": "1", "role": "admin"}, {"id": "2", "role": "admin"}],
        },
    }
}


class Twice:
    """An agent whose turn asks for two calls of ``careful``.  answers: how each was answered."""

    def __init__(self, world: World):
        self.world, self.answers = world, []
        tool = world.agent.image.tool("careful")
        self._begin(tool)

    def _begin(self, tool):
        def work():
            for what in ("one", "two"):
                try:
                    self.answers.append((yield (APPROVE, Approval(tool, {"what": what}, None))))
                except ClawError:
                    self.answers.append("no")

        self.world.agent.begin(work(), lambda *_: None, self.world.ms)
        self.world.settle()

    def number(self) -> int:
        (task,) = self.world.agent.waiting
        return task.approval.number

    def say(self, actor: str, text: str) -> str:
        """Return what *actor* is told."""
        source = self.world.source("desk")
        del source.sent[:]
        self.world.say("desk", actor, text)
        return [said for to, said, _ in source.sent if to == actor][0]


@pytest.fixture
def twice(tmp_path, monkeypatch):
    world = World(tmp_path, ADMINS, monkeypatch=monkeypatch, console=True)
    yield Twice(world)
    world.channels.close()


@pytest.mark.parametrize("answer, how", [("/approve", "approved"), ("/deny", "denied")])
def test_a_late_answer_does_not_answer_the_next_question(twice, answer, how):
    first = twice.number()
    assert twice.say("1", "%s %d" % (answer, first)).capitalize() == how.capitalize() + "."
    second = twice.number()
    assert second != first and len(twice.answers) == 1
    twice.world.ms += 5000
    for late in ("/approve", "/deny"):
        told = twice.say("2", "%s %d" % (late, first))
        wanted = "Question %d was %s by desk/1 5 s ago. Nothing was done now." % (first, how)
        assert told == wanted + " Waiting: %d." % second
    assert twice.number() == second and len(twice.answers) == 1
    twice.world.ms += 20 * 60 * 1000
    twice.world.agent.tick(twice.world.ms)
    twice.world.settle()
    assert twice.say("1", "/approve %d" % second).startswith("Question %d ran out" % second)
    assert "20 min ago" in twice.say("1", "/approve %d" % first)
    assert twice.answers[1] == "no"


def test_without_a_number_nothing_is_answered(twice):
    number = twice.number()
    for text in ("/approve", "/deny", "/show", "/approve  "):
        told = twice.say("1", text)
        assert told.startswith("Say which question, as in %s 3." % text.strip())
        assert told.endswith(" Waiting: %d." % number)
    assert twice.number() == number and not twice.answers


@pytest.mark.parametrize("word", ["x", "-1", "1.0", "٣", "0", "99999999999999"])
def test_what_is_no_number_of_a_question_answers_none(twice, word):
    told = twice.say("1", "/approve " + word)
    assert told.startswith("No call with that number waits") and not twice.answers


def test_a_question_whose_call_was_ended_is_over(twice):
    from clawlite.core.base.errors import InvalidRequest

    number, world = twice.number(), twice.world
    world.agent.cancel(world.agent.waiting[0].number, InvalidRequest("stopped"), world.ms)
    world.settle()
    told = twice.say("1", "/approve %d" % number)
    assert told == "Question %d is over. Nothing was done now." % number


def test_no_number_is_used_twice(twice):
    seen = []
    for _ in range(30):
        if not twice.world.agent.waiting:
            twice.__init__(twice.world)
        seen.append(twice.number())
        twice.say("1", "/deny %d" % seen[-1])
    assert len(set(seen)) == 30
    assert twice.say("2", "/approve %d" % seen[0]).startswith("Question %d is over." % seen[0])


@pytest.mark.parametrize("word, how", [("y", "approved"), ("n", "no")])
def test_the_console_shows_the_next_question_before_it_takes_an_answer(twice, word, how):
    first = twice.number()
    twice.say("1", "/deny %d" % first)
    shown = [text for text in twice.world.told if text.startswith("Approve careful")]
    assert [text.split("\n")[0] for text in shown] == [
        'Approve careful(what="one")?',
        'Approve careful(what="two")?',
    ]
    twice.world.console.line("/approve %d" % first, twice.world.ms)
    twice.world.settle()
    assert twice.world.told[-1].startswith("Question %d was denied by desk/1" % first)
    assert len(twice.answers) == 1
    twice.world.console.line(word, twice.world.ms)
    twice.world.settle()
    assert twice.answers == ["no", how]


def test_the_console_answers_by_number_what_was_asked_first_or_later(twice):
    twice.__init__(twice.world)
    first, later = [task.approval.number for task in twice.world.agent.waiting]
    twice.world.console.line("/approve %d" % later, twice.world.ms)
    twice.world.settle()
    waiting = [task.approval.number for task in twice.world.agent.waiting]
    assert first in waiting and later not in waiting and twice.answers == ["approved"]
