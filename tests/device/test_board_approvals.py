"""Who is asked for an approval on a board by its gateway's channels: those that ``[approvals] to``
names, once more when half of the time is over; the board's console shows it in any case.
"""

import tty

import pytest
from agents import Agent, board
from device.test_device_channels import BOT, Gateway
from relayed_board import ADMIN, USER, write_project

ASK = {"id": "ask", "action": "require-approval", "scope": "tool", "match": {"name": "water"}}
VIA = '[telegram]\nvia = "gateway"\n'
CHANNELS = {"bot": BOT, "desk": BOT}


@pytest.fixture
def ask(micropython, tmp_path):
    """A function that starts a board with *settings*, whose question waits for *seconds*."""
    started = []

    def start(settings: str, seconds: int) -> Gateway:
        rules = [{**ASK, "approval": {"timeout_seconds": seconds}}]
        rules.append({"id": "all", "action": "allow", "scope": "all"})
        spec = {"policies": [{"inline": {"rules": rules}}]}
        path = tmp_path / "garden"
        image = write_project(path, CHANNELS, settings + VIA, '["user", "admin"]', **spec)
        words, env = board(image)
        agent = Agent(words, tmp_path / "home", True, env=env, cwd=tmp_path)
        started.append(agent)
        tty.setraw(agent.theirs)
        agent.terminal = False
        gateway = Gateway(agent)
        gateway.speak("a", USER, "water the beds")
        return gateway

    yield start
    for agent in started:
        agent.__exit__()


def read_questions(gateway, count: int) -> list:
    """Return (channel, actor, first line) of the next *count* texts for people."""
    said = [gateway.next("say") for _ in range(count)]
    return [(one["channel"], one["actor"], one["text"].split("\n")[0]) for one in said]


QUESTION = "Approve water(seconds=1)?"


def test_it_is_put_once_more_at_half_time(ask):
    gateway = ask("", 20)
    asked = read_questions(gateway, 3)
    admins = [("bot", str(ADMIN), QUESTION), ("desk", str(ADMIN), QUESTION)]
    assert asked == [*admins, ("bot", str(USER), "This waits for approval.")]
    again = read_questions(gateway, 2)
    assert again == [(name, who, "Reminder. " + QUESTION) for name, who, _ in admins]
    gateway.type("n")
    assert "not approved" in gateway.next("reply")["text"]


def test_only_the_channels_that_are_named_are_asked_and_answer(ask):
    gateway = ask('[approvals]\nto = ["desk"]\n', 300)
    gateway.expect(QUESTION.encode())
    said = gateway.next("say")
    assert (said["channel"], said["actor"]) == ("desk", str(ADMIN))
    number = said["text"].split("/approve ")[1].split()[0]
    assert gateway.next("say")["text"] == "This waits for approval."
    gateway.speak("b", ADMIN, "/approve " + number)
    assert gateway.next("reply")["text"] == "No call with that number waits for approval."
    gateway.speak("c", ADMIN, "/approve " + number, "desk")
    assert gateway.next("reply") == {"id": "c", "text": "Approved.", "why": ""}


def test_the_console_alone_answers_where_no_channel_is_named(ask):
    gateway = ask("[approvals]\nto = []\n", 300)
    assert gateway.next("say")["text"] == "This waits for approval."
    gateway.expect(QUESTION.encode())
    gateway.type("n")
    assert "not approved" in gateway.next("reply")["text"]


@pytest.mark.parametrize("first", ["console", "channel"])
def test_of_an_answer_here_and_one_elsewhere_the_first_counts(ask, first):
    """One person approves, another one denies: at the console and by the gateway."""
    gateway = ask("", 300)
    asks = [gateway.next("say") for _ in range(3)][0]
    number = asks["text"].split("/approve ")[1].split()[0]
    gateway.expect(QUESTION.encode())
    if first == "console":
        gateway.type("/deny " + number)
        assert "not approved" in gateway.next("reply")["text"]
        gateway.speak("b", ADMIN, "/approve " + number, asks=asks["asks"])
        late = gateway.next("reply")["text"]
        assert f"Question {number} was denied by console" in late, late
        assert "Nothing was done now." in late
    else:
        gateway.speak("b", ADMIN, "/approve " + number, asks=asks["asks"])
        assert gateway.next("reply")["text"] == "Approved."
        assert gateway.next("acts")["tool"] == "water"
        gateway.type("/deny " + number)
        gateway.expect(b"was approved by bot/%d" % ADMIN)
        gateway.expect(b"Nothing was done now.")
        gateway.note("acted", id="a", text="")
        assert gateway.next("reply")["text"] == "Done. Watered for 1 s."
