"""A board's side of channels that its gateway carries, word for word: whom it believes, and what it
makes of a gateway that is wrong, forgets or lies (docs/gateway.md).
"""

import json
import re
import tty

import pytest
from agents import Agent, board
from line_host import Host
from relayed_board import ADMIN, USER, write_project

from clawlite.core.line.frame import RECORD

PEOPLE = [
    {"id": str(ADMIN), "role": "admin"},
    {"id": str(USER), "role": "user"},
    {"id": "5", "role": "viewer"},
]
ROLES = {"mode": "role-based", "roles": PEOPLE}
BOT = {"type": "telegram", "transport": "polling", "access_control": ROLES}
HOOK = {
    "type": "webhook",
    "transport": "webhook",
    "access_control": {"mode": "open"},
    "processing": {
        "max_message_length": 60,
        "rate_limit": {"messages_per_minute": 1, "burst": 2},
    },
}
VIA = '[telegram]\nvia = "gateway"\n[webhook]\nvia = "gateway"\n'


class Gateway(Host):
    """A gateway that does what a test says; it confirms what the board sends."""

    def __init__(self, agent):
        super().__init__(agent.input)
        self.run(lambda: b"~0000r" in agent.seen or b"> " in self.text)
        self.open()
        self.send(_request("hello", {"version": 1}, "hello"))
        self.boot = self.answer("hello")["result"]["boot"]
        self.seen = []
        self.note("channels")

    def note(self, name: str, **params):
        self.send(_request(name, {"text": "", **params}))

    def speak(self, id: str, actor, text: str, channel: str = "bot", **more):
        params = {"id": id, "channel": channel, "actor": str(actor), "talk": str(actor)}
        self.note("spoke", **{**params, "text": text, **more})

    def next(self, name: str, heard: bool = True) -> dict:
        """Return the params of the next record *name*; *heard*: confirm it."""
        found = []

        def came() -> bool:
            records = [json.loads(data) for data in self.of(RECORD)]
            for record in records[len(self.seen) :]:
                self.seen.append(record)
                if record.get("method") == "claw.gateway." + name:
                    found.append(record["params"])
                    return True
                if record.get("params", {}).get("ended"):  # it takes buttons away
                    self.note("heard", id=record["params"]["id"])
            return False

        self.run(came)
        if heard and name in ("reply", "say"):
            self.note("heard", id=found[0]["id"])
        return found[0]


def _request(name: str, params: dict, id=None) -> dict:
    made = {"jsonrpc": "2.0", "method": "claw.gateway." + name, "params": params}
    return made if id is None else {**made, "id": id}


@pytest.fixture
def boards(micropython, tmp_path):
    """A function that starts a board, whose gateway may speak for *roles*."""
    started = []

    def start(roles: str = "") -> Gateway:
        image = write_project(tmp_path / "garden", {"bot": BOT, "hook": HOOK}, VIA, roles)
        words, env = board(image)
        agent = Agent(words, tmp_path / "home", True, env=env, cwd=tmp_path)
        started.append(agent)
        tty.setraw(agent.theirs)
        agent.terminal = False
        return Gateway(agent)

    yield start
    for agent in started:
        agent.__exit__()


def test_a_gateway_speaks_for_users_alone_unless_the_image_says_otherwise(boards):
    gateway = boards()
    gateway.speak("a", ADMIN, "water the beds")
    said = gateway.next("say")
    assert (said["channel"], said["actor"], said["of"]) == ("bot", str(ADMIN), "a")
    assert said["text"] == "This waits for approval."
    gateway.expect(b"Approve water(seconds=1)?")
    gateway.speak("b", ADMIN, "/approve")
    assert gateway.next("reply") == {"id": "b", "text": "Only an admin approves.", "why": ""}
    gateway.type("n")
    assert "not approved" in gateway.next("reply")["text"]


def test_an_admin_approves_where_the_image_lets_the_gateway_speak_for_admins(boards):
    gateway = boards('["user", "admin"]')
    gateway.speak("a", USER, "water the beds")
    question = gateway.next("say")
    number = re.search(r"/approve (\d{6}) or /deny \1$", question["text"])[1]
    assert question["actor"] == str(ADMIN)
    assert gateway.next("say")["actor"] == str(USER)
    # a button of another question, of the same number
    gateway.speak("e", ADMIN, "/approve " + number, asks=question["asks"] + "0")
    assert "No call with that number waits" in gateway.next("reply")["text"]
    gateway.speak("b", USER, "/approve " + number)
    assert gateway.next("reply")["text"] == "Only an admin approves."
    gateway.speak("c", ADMIN, "/approve 7")
    assert gateway.next("reply")["text"].endswith(f"waits for approval. Waiting: {number}.")
    gateway.speak("g", ADMIN, "/approve")
    assert gateway.next("reply")["text"].startswith("Say which question, as in /approve 3.")
    gateway.speak("d", ADMIN, "/approve " + number)
    assert gateway.next("reply") == {"id": "d", "text": "Approved.", "why": ""}
    assert gateway.next("acts") == {"id": "a", "tool": "water"}
    gateway.note("acted", id="a", text="")
    assert gateway.next("reply") == {"id": "a", "text": "Done. Watered for 1 s.", "why": ""}
    gateway.speak("h", ADMIN, "water the beds")
    later = gateway.next("say")["text"]
    assert f"/approve {int(number) + 1} or" in later
    gateway.speak("i", ADMIN, "/approve " + number)
    late = gateway.next("reply")["text"]
    assert late.startswith(f"Question {number} was approved by bot/{ADMIN} ")
    assert late.endswith(f"Nothing was done now. Waiting: {int(number) + 1}.")
    gateway.type("/approve " + number)
    gateway.expect(b"Nothing was done now.")
    gateway.type(f"/deny {int(number) + 1}")
    assert "not approved" in gateway.next("reply")["text"]


def test_who_is_a_stranger_a_viewer_or_writes_too_much(boards):
    gateway = boards()
    for id, actor, text, channel, answer in (
        ("a", 1, "echo hello", "bot", ("", "stranger")),
        ("b", 5, "echo hello", "bot", ("You said: hello", "")),
        ("c", 5, "fill", "bot", ("viewer triggers no tool", "")),
        ("d", 1, "echo " + "x" * 60, "hook", ("That is 65 characters", "length")),
        ("e", 1, "echo one", "hook", ("You said: one", "")),
        ("f", 1, "echo two", "hook", ("You said: two", "")),
        ("g", 1, "echo three", "hook", ("Too many messages at once", "rate")),
    ):
        gateway.speak(id, actor, text, channel)
        reply = gateway.next("reply")
        assert answer[0] in reply["text"] and reply["why"] == answer[1], reply
        assert bool(answer[0]) == bool(reply["text"]) and reply["id"] == id


@pytest.mark.parametrize(
    "wrong",
    [
        {"channel": "other"},
        {"channel": None},
        {"channel": ["bot"]},
        {"actor": 9001},
        {"actor": None},
        {"actor": "9" * 129},
        {"talk": {}},
    ],
)
def test_a_record_that_makes_no_sense_gets_one_answer(boards, wrong):
    gateway = boards('["user", "admin"]')
    right = {"id": "a", "channel": "bot", "actor": str(ADMIN), "talk": "", "text": "fill"}
    gateway.note("spoke", **{**right, **wrong})
    reply = gateway.next("reply")
    assert (reply["id"], reply["why"]) == ("a", "stranger")
    gateway.note("spoke", id=7, channel="bot", actor="9001", talk="")
    gateway.note("spoke", channel="bot")
    gateway.note("acted", id=["a"])
    gateway.note("heard", id={})
    gateway.send(_request("spoke", {"id": "b", "text": 5}))
    gateway.send(_request("spoke", ["b"]))
    gateway.speak("c", USER, "echo still here")
    assert gateway.next("reply") == {"id": "c", "text": "You said: still here", "why": ""}


def test_a_message_that_comes_again_begins_no_second_turn(boards):
    gateway = boards()
    gateway.speak("a", USER, "fill")
    assert gateway.next("acts") == {"id": "a", "tool": "fill"}
    for again in (False, True):
        gateway.speak("a", USER, "fill", again=again)
    gateway.note("channels")  # the gateway was away
    assert gateway.next("acts") == {"id": "a", "tool": "fill"}
    gateway.note("acted", id="a", text="it cannot be put on record")
    reply = gateway.next("reply", heard=False)
    assert "it cannot be put on record" in reply["text"]
    gateway.speak("a", USER, "fill", again=True)
    gateway.note("channels")
    assert gateway.next("reply") == reply
    gateway.speak("a", USER, "fill", again=True)
    assert gateway.next("unknown") == {"id": "a"}


def test_what_no_gateway_confirms_has_a_bound(boards):
    gateway = boards()
    for number in range(4):
        gateway.speak("m%d" % number, USER, "echo " + "%d" % number * 4000)
        assert gateway.next("reply", heard=False)["id"] == "m%d" % number
    gateway.note("channels")
    assert gateway.next("reply")["id"] == "m3"
    gateway.speak("m0", USER, "echo 0", again=True)
    assert gateway.next("unknown") == {"id": "m0"}
