"""A board's side of a gateway, word for word: what goes up, and what it makes of what comes down
(docs/gateway.md).
"""

import json
import signal
import tty

import pytest
from agents import Agent, board
from gateways import project
from line_host import Host

from clawlite.core.line.frame import RECORD


@pytest.fixture
def agent(micropython, tmp_path):
    words, env = board(project(tmp_path / "garden", "http://127.0.0.1:9/v1"))
    with Agent(words, tmp_path / "home", True, env=env) as started:
        tty.setraw(started.theirs)
        started.terminal = False
        yield started


class Gateway(Host):
    """A gateway that does what a test says."""

    def hello(self) -> dict:
        """Open a session, say hello, and return what the board tells."""
        self.open()
        self.events.clear()
        self.send(
            {
                "jsonrpc": "2.0",
                "id": "hello",
                "method": "claw.gateway.hello",
                "params": {"version": 1},
            }
        )
        return self.answer("hello")["result"]

    def taken(self) -> list:
        """Wait for a request; return all records of a gateway's that have come, and forget them."""
        self.run(lambda: any(b'"claw.gateway.provider"' in data for data in self.of(RECORD)))
        found = [json.loads(data) for data in self.of(RECORD) if b'"claw.gateway.' in data]
        self.events.clear()
        return found

    def note(self, name: str, id: str, text: str):
        self.send(
            {"jsonrpc": "2.0", "method": "claw.gateway." + name, "params": {"id": id, "text": text}}
        )

    def result(self, id: str, **result):
        self.send({"jsonrpc": "2.0", "id": id, "result": result})


def test_a_turn_record_by_record(agent):
    gateway = Gateway(agent.input)
    gateway.run(lambda: b"~0000r" in agent.seen or b"> " in gateway.text)
    told = gateway.hello()
    assert (
        sorted(told) == ["agent", "boot", "image", "operators", "record", "version"]
        and told["operators"] is True
        and len(told["image"]) == 64
        and len(told["boot"]) == 8
    )
    assert (told["version"], told["agent"], told["record"]) == (1, "garden", 8192)
    text = "grün " * 250
    gateway.type(text)
    *parts, request = gateway.taken()
    id = request["id"]
    assert id.startswith(told["boot"] + "-") and request["params"] == {
        "provider": "remote",
        "max_tokens": 0,
        "seen": 0,
    }
    assert [sorted(part["params"]) for part in parts] == [
        ["id", "role", "text"],
        ["id", "text"],
        ["id", "text"],
    ]
    assert (
        "".join(part["params"]["text"] for part in parts) == text.strip()
        and max(len(part["params"]["text"]) for part in parts) == 512
    )
    gateway.note("text", id, "Let me look.")
    gateway.note("text", id, "\n")
    gateway.note("text", "another", "for nobody")
    gateway.result(id, stop="tools", calls=[["c1", "look", '{"where":"%s"}' % ("b" * 600)]])
    *parts, request = gateway.taken()
    told = [
        {key: value for key, value in part["params"].items() if key != "id"} for part in parts[3:]
    ]
    assert told[0] == {"role": "assistant", "text": "Let me look."} and request["id"] != id
    assert told[1]["call"] == ["c1", "look"] and told[1]["text"] + told[2][
        "text"
    ] == '{"where":"%s"}' % ("b" * 600)
    assert (told[3]["role"], told[3]["of"], told[3]["failed"]) == (
        "tool",
        "c1",
        False,
    ) and json.loads(told[3]["text"] + told[4]["text"])["seen"] == 3
    gateway.note("notice", request["id"], "provider remote: busy (tried 1 of 2, again in 0.1 s)")
    gateway.note("text", request["id"], "Fine.\n")
    gateway.result(request["id"], stop="stop")
    gateway.expect(b"Let me look.\n")
    gateway.expect(b"(tried 1 of 2, again in 0.1 s)\nFine.\n> ")
    assert b"for nobody" not in gateway.text


def test_a_request_goes_up_again_with_what_was_seen(agent):
    gateway = Gateway(agent.input)
    gateway.hello()
    gateway.type("hello")
    first = gateway.taken()
    gateway.note("text", first[-1]["id"], "One, ")
    gateway.expect(b"One, ")
    gateway.hello()
    again = gateway.taken()
    assert [record.get("id") for record in again] == [record.get("id") for record in first]
    assert again[-1]["params"]["seen"] == 1 and again[0] == first[0]
    gateway.note("text", first[-1]["id"], "two.\n")
    gateway.result(first[-1]["id"], stop="stop")
    gateway.expect(b"two.\n> ")


@pytest.mark.parametrize(
    "answer, said",
    [
        (
            {"error": {"code": -32020, "message": "the provider is away"}},
            b"provider remote: the provider is away; next: reflex\nBy rule.\n> ",
        ),
        (
            {"error": {"code": -32021, "message": "tokens_per_day is 9"}},
            b"provider remote: tokens_per_day is 9; next: reflex\nBy rule.\n> ",
        ),
        (
            {"result": {"calls": 7}},
            b"the gateway's answer is malformed - give both the same version "
            b"of clawlite; next: reflex\nBy rule.\n> ",
        ),
        (
            {"result": {"stop": "x" * 9000}},
            b"bytes of its answer did not fit - ask for less at once; next: reflex\nBy rule.\n> ",
        ),
    ],
)
def test_an_answer_that_is_none(agent, answer, said):
    gateway = Gateway(agent.input)
    gateway.hello()
    gateway.type("hello")
    gateway.send({"jsonrpc": "2.0", "id": gateway.taken()[-1]["id"], **answer})
    gateway.expect(said)


def test_ctrl_c_cancels(agent):
    gateway = Gateway(agent.input)
    gateway.hello()
    gateway.type("hello")
    id = gateway.taken()[-1]["id"]
    agent.signal_at_rest(signal.SIGINT)
    gateway.run(lambda: any(b'"claw.gateway.cancel"' in data for data in gateway.of(RECORD)))
    assert json.loads(gateway.of(RECORD)[-1])["params"] == {"id": id}
    gateway.note("text", id, "too late")
    gateway.type("/status")
    gateway.expect(b"READY")
    assert b"too late" not in gateway.text


def test_a_session_without_a_gateway_gives_no_answer(agent):
    host = Host(agent.input)
    host.open()
    host.type("hello")
    host.expect(
        b"provider remote: no gateway at the other end of the line (clawlite gateway "
        b"starts one there); next: reflex\nBy rule.\n> "
    )
