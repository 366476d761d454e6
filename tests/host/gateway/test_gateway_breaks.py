"""A line, a board or a gateway that breaks in the middle of what is said: nothing is lost that can
go on, and nothing is done twice.

Each case cuts the wire at a word, breaks what it is about, and mends the wire: real MicroPython, a
real gateway, real HTTP on loopback."""

import asyncio
import json
import os
import pty
import signal
import sqlite3
import threading
import tty

import pytest
from agents import DEADLINE_S, Agent, eventually, linux
from gateways import HEAP, NoisyWire, flashed, gateway, process_of, project, says
from llm_server import Server
from sims import needs_micropython, needs_mpy_cross

from clawlite.host.gateway import gateway as gateways
from clawlite.host.gateway.images import Images
from clawlite.host.gateway.store import Store
from clawlite.host.sim.registry import running
from clawlite.host.sim.sim import Sim

pytestmark = [needs_micropython, needs_mpy_cross]
QUESTION = "how " + "Q" * 1500 + " is it?"
TOOLS = '''def look(where: str) -> dict:
    """Look somewhere."""
    with open("/looked", "a") as file:
        file.write("x")
    return {"where": where, "seen": 3}
'''
# Where it breaks: in a person's line, in what goes up before the first request, before the second,
# in what comes down.
TYPED, UPLOAD, RESULT, STREAM = (
    b"claw.console.line",
    b'"role":"user"',
    b'"role":"tool"',
    b'"One, two',
)


def model(request) -> dict:
    """A model that looks once, and then says what it knows; "again" is answered at once."""

    def event(delta):
        return (
            b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"
        )

    last = request.body["messages"][-1]
    if last["role"] == "user" and "again" not in last["content"]:
        call = {
            "index": 0,
            "id": "c1",
            "type": "function",
            "function": {"name": "look", "arguments": '{"where":"bed 2"}'},
        }
        return {"stream": [event({"tool_calls": [call]}), b"data: [DONE]\n\n"]}
    return {
        "stream": [
            event({"content": "One, two, "}),
            event({"content": "three."}),
            b"data: [DONE]\n\n",
        ]
    }


class World:
    """A board that a gateway serves through a wire, and the person at its console."""

    def __init__(self, tmp_path, sim, wire):
        self.path, self.sim, self.wire = tmp_path, sim, wire
        self.gateway = self.person = None

    def serve(self):
        """Start a gateway, and the person's console at it."""
        self.gateway = gateway(
            self.path, self.path / "garden", "--port", self.wire.path
        ).__enter__()
        assert says(self.gateway, "runs garden")
        self.sit()

    def sit(self):
        self.person = Agent(
            linux("console", "--port", "gateway:" + self.wire.path),
            self.path / "person",
            True,
            env={"CLAWLITE_STATE": self.path / "state", "TERM": "xterm"},
        ).__enter__()
        self.person.expect("leaves")

    def leave(self):
        for one in (self.person, self.gateway):
            if one:
                one.__exit__()
        self.person = self.gateway = None

    def asks(self, at: bytes):
        """Ask, and cut the wire *at* a word."""
        self.wire.cut_at(at)
        self.person.send(QUESTION + "\r")
        assert self.wire.has_cut.wait(DEADLINE_S), "that did not come"

    def breaks(self, what: str):
        """Break it, and mend the wire."""
        if what in ("gateway", "both"):
            self.gateway.signal(signal.SIGKILL)
            self.gateway.wait()
            self.leave()
        if what in ("board", "both"):
            os.kill(process_of(self.sim), signal.SIGKILL)
        self.wire.is_cut = False
        if what in ("gateway", "both"):
            self.serve()
        elif what == "board":
            assert says(self.gateway, "runs garden", 2)

    def looked(self) -> int:
        path = self.path / "flash/looked"
        return len(path.read_text()) if path.exists() else 0


@pytest.fixture
def world(tmp_path, firmware):
    made = []

    def begin(server) -> World:
        image = project(tmp_path / "garden", server.endpoint, tools=TOOLS)
        flash = flashed(image, tmp_path / "flash", firmware)
        made.append(Sim(folder=str(flash), heap=HEAP).__enter__())
        made.append(NoisyWire(made[0].path, 0))
        made.append(World(tmp_path, *made))
        made[2].serve()
        return made[2]

    yield begin
    if len(made) == 3:
        made[2].leave()
    for one in made[1::-1]:
        one.__exit__()


def outcomes(state) -> list:
    with sqlite3.connect(state / ".gateway/gateway.db") as db:
        return db.execute("SELECT asked, outcome FROM history ORDER BY id").fetchall()


@pytest.mark.parametrize(
    "what, at",
    [
        ("line", TYPED),
        ("line", UPLOAD),
        ("line", RESULT),
        ("line", STREAM),
        ("gateway", UPLOAD),
        ("gateway", RESULT),
    ],
)
def test_what_can_go_on_goes_on(world, what, at, state):
    with Server(model) as server:
        it = world(server)
        it.asks(at)
        it.breaks(what)
        if what == "line":  # else it is said while nobody sits there yet
            it.person.expect("One, two, three.\n> ")
        assert eventually(lambda: outcomes(state), 30) and it.looked() == 1
        assert (
            eventually(lambda: outcomes(state)[-2:] == [(QUESTION, "ok")] * 2, 30)
            and len(server.requests) == 2
        ), "looked or asked twice"
        first, second = [
            [message["role"] for message in request.body["messages"] if message["role"] != "system"]
            for request in server.requests
        ]
        assert first == ["user"] and second == ["user", "assistant", "tool"]
        assert all(QUESTION in json.dumps(request.body) for request in server.requests)
        it.person.send("again\r")
        # the answer before it may come only now
        assert eventually(lambda: len(server.requests) == 3, 30)
        it.person.expect("One, two, three.\n> ")
        assert it.looked() == 1 and len(server.requests) == 3
        assert [message["content"] for message in server.requests[2].body["messages"]][
            -2
        ].strip() == "One, two, three."


def test_a_line_that_nobody_heard_is_told_to_who_typed_it(world):
    with Server(model) as server:
        it = world(server)
        it.asks(TYPED)
        it.person.expect(
            "clawlite: the line broke; of what was typed 1 lines may not have arrived", 30
        )
        it.person.send("hello?\r")
        it.person.expect("clawlite: the board is disconnected; that was not sent")
        it.wire.is_cut = False
        assert says(it.gateway, "runs garden", 2)
        it.person.send("again\r")
        it.person.expect("One, two, three.\n> ")
        assert it.looked() == 0 and len(server.requests) == 1


@pytest.mark.parametrize(
    "what, at, requests",
    [
        ("board", UPLOAD, 0),
        ("board", RESULT, 1),
        ("both", UPLOAD, 0),
        ("both", RESULT, 1),
        ("both", STREAM, 2),
    ],
)
def test_what_nobody_waits_for_any_more_is_over(world, what, at, requests, state):
    """The board was reset: its turn is gone, and nothing of it comes back."""
    with Server(model) as server:
        it = world(server)
        it.asks(at)
        it.breaks(what)
        it.person.send("again\r")
        it.person.expect("One, two, three.\n> ")
        assert it.looked() == (requests > 0) and len(server.requests) == requests + 1
        assert "Q" not in json.dumps(server.requests[-1].body["messages"]), (
            "a turn that had no end is remembered"
        )
        eventually(lambda: outcomes(state)[-1:] == [("again", "ok")], 30)


def test_an_answer_that_began_before_the_gateway_was_killed_is_an_error_and_not_asked_for_again(
    world, state
):
    rest = threading.Event()

    def slow(request) -> dict:
        answer = model(request)
        if len(answer["stream"]) == 3 and not rest.is_set():
            answer["stream"].insert(1, rest)
        return answer

    with Server(slow) as server:
        it = world(server)
        it.person.send(QUESTION + "\r")
        it.person.expect("One, two, ")  # a part of the answer was shown
        it.wire.is_cut = True
        it.breaks("gateway")
        rest.set()
        eventually(lambda: b"was restarted and no longer knows this request" in it.wire.seen, 30)
        it.person.send("again\r")
        it.person.expect("One, two, three.\n> ")
        assert it.looked() == 1 and len(server.requests) == 3
        eventually(lambda: outcomes(state)[-1:] == [("again", "ok")], 30)


def test_a_board_that_takes_nothing_holds_nothing_up_and_fills_nothing(tmp_path):
    """A port that is open and never read: what waits for it stays bounded, and who types is
    told.
    """

    async def type_on():
        master, slave = pty.openpty()
        tty.setraw(slave)
        notes = []
        project(tmp_path / "garden", "http://127.0.0.1:9/v1")
        store = await Store.open(os.path.join(gateways.folder(), "gateway.db"), notes.append)
        it = gateways.Gateway(
            Images([str(tmp_path / "garden")], notes.append), store, None, notes.append
        )
        port = it.attach({"port": os.ttyname(slave), "id": "deaf"})
        console = os.open(
            next(one["port"] for one in running() if one["id"] == port.console),
            os.O_RDWR | os.O_NOCTTY,
        )
        os.set_blocking(console, False)
        written, said = 0, b""
        try:
            async with asyncio.timeout(60):
                while (
                    b"the board is disconnected; that was not sent" not in said or written < 200000
                ):
                    for step in (
                        lambda: os.write(console, b"x" * 4000 + b"\n"),
                        lambda: os.read(console, 65536),
                    ):
                        try:
                            got = step()
                        except BlockingIOError:
                            continue
                        written, said = (
                            (written + got, said)
                            if isinstance(got, int)
                            else (written, (said + got)[-4096:])
                        )
                    port._move()
                    await asyncio.sleep(0)
                    assert len(port._serial._waiting) <= 65536 + 8192
        finally:
            await it.close()
            for fd in (console, master, slave):
                os.close(fd)

    asyncio.run(type_on())
