"""A board without network asks a provider through ``clawlite gateway``: real MicroPython, a
noisy wire, real HTTP on loopback.
"""

import calendar
import json
import os
import signal
import sqlite3
import threading
import time
from pathlib import Path

import pytest
from agents import Agent, clawlite, eventually, linux
from gateways import HEAP, KEY, NoisyWire, flashed, gateway, process_of, project, says, script
from line_host import SEED
from llm_server import FAULTS, Server, calls, say
from sims import mpremote, needs_micropython, needs_mpy_cross

from clawlite.host.sim.sim import Sim

pytestmark = [needs_micropython, needs_mpy_cross]
ANSWER = "".join("Bed %d is grün today. " % bed for bed in range(60))
LONG = "".join("Bed %d is green. " % bed for bed in range(750))


@pytest.fixture
def board(tmp_path, firmware):
    """Return a function that starts a virtual board with the agent whose provider is *server*:
    (server, options) -> Sim.
    """
    made = []

    def start(server, **options) -> Sim:
        image = project(tmp_path / "garden", server.endpoint, **options)
        flash = flashed(image, tmp_path / "flash", firmware)
        made.append(Sim(folder=str(flash), heap=HEAP).__enter__())
        return made[-1]

    yield start
    for sim in made:
        sim.__exit__()


def rows(state: Path, question: str) -> list:
    with sqlite3.connect(state / ".gateway/gateway.db") as db:
        return db.execute(question).fetchall()


def test_a_whole_turn_with_a_tool_call(tmp_path, state, board):
    with Server([calls(("look", {"where": "bed 2"})), say(ANSWER)]) as server:
        sim = board(server)
        with gateway(tmp_path, tmp_path / "garden", "--port", sim.path) as running:
            assert says(running, "runs garden")
            said = script(tmp_path, sim.facts["id"], "how is it?", "/status")
            running.signal(2)
            assert running.wait() == 130
    assert ANSWER.strip() in said and "READY" in said and "By rule." not in said
    first, second = [request.body for request in server.requests]
    assert (
        "how is it?" in json.dumps(first)
        and "You keep a garden." in json.dumps(first)
        and first["tools"][0]["function"]["name"] == "look"
    )
    assert (
        '\\"seen\\":3' in json.dumps(second)
        and server.requests[0].headers["authorization"] == "Bearer " + KEY
    )
    assert (
        rows(state, "SELECT agent, provider, asked, outcome FROM history")
        == [("garden", "remote", "how is it?", "ok")] * 2
    )
    assert [event for (event,) in rows(state, "SELECT event FROM audit ORDER BY id")] == [
        "device.greeted",
        "request.began",
        "request.ended",
        "request.began",
        "request.ended",
    ]
    assert rows(state, "SELECT agent FROM devices") == [("garden",)]
    for what, keys in (
        ("devices", ["device", "agent", "image", "first", "last", "spent"]),
        ("audit", ["time", "device", "event", "provider", "request", "outcome"]),
        (
            "history",
            ["time", "device", "agent", "provider", "request", "asked", "said", "outcome"]
            + ["status", "model", "usage", "tool_trace"],
        ),
    ):
        done = clawlite("gateway", what, "--json", cwd=tmp_path, CLAWLITE_STATE=state)
        assert sorted(json.loads(done.stdout)[-1]) == sorted(keys)
        assert "garden" in clawlite("gateway", what, cwd=tmp_path, CLAWLITE_STATE=state).stdout
    assert (
        json.loads(
            clawlite(
                "gateway", "history", "-n", 1, "--json", cwd=tmp_path, CLAWLITE_STATE=state
            ).stdout
        )[0]["said"].strip()
        == ANSWER.strip()
    )
    assert clawlite("gateway", "devices", "--json", cwd=tmp_path).stdout == "[]\n"
    for path in (state / ".gateway").rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes()


@pytest.mark.parametrize("odds", [0, 1000])
def test_no_key_goes_over_the_line_however_noisy(tmp_path, board, odds):
    print("CLAWLITE_SEED=%d" % SEED)
    wanted = [step for _ in range(3) for step in (calls(("look", {"where": "bed 2"})), say(ANSWER))]
    with Server([FAULTS["unauthorized"]] + wanted) as server:
        sim = board(server)
        with (
            NoisyWire(sim.path, odds) as wire,
            gateway(tmp_path, tmp_path / "garden", "--port", wire.path) as running,
        ):
            assert says(running, "runs garden")
            said = script(tmp_path, wire.path, "refused?", "one?", "two?", "three?")
            assert says(running, "remote: ")  # the refusal was told
    asked = [request.body["messages"][-1] for request in server.requests]
    assert [message["content"] for message in asked if message["role"] == "user"] == [
        "refused?",
        "one?",
        "two?",
        "three?",
    ]
    assert [message["role"] for message in asked].count("tool") == 3 and len(asked) == 7, (
        "asked twice, or not at all"
    )
    if not odds:
        assert said.count(ANSWER.strip()) == 3
    seen = bytes(wire.seen)
    for secret in (KEY, "Bearer", "uthorization", "127.0.0.1", server.endpoint, "test-model"):
        assert secret.encode() not in seen and secret.encode().hex().encode() not in seen
    assert b"claw.gateway.provider" in seen


def test_an_answer_that_repeats_itself_is_ended_and_the_rules_answer(tmp_path, board):
    with Server([say("The garden is green. " * 6000)]) as server:
        sim = board(server)
        with gateway(tmp_path, tmp_path / "garden", "--port", sim.path) as running:
            assert says(running, "runs garden")
            said = script(tmp_path, sim.facts["id"], "how is it?")
    assert "provider remote: the answer repeated itself and was cut" in said
    assert "By rule." in said and said.count("green") < 200


def test_a_turn_costs_little_more_than_its_records(tmp_path, board):
    with Server([calls(("look", {"where": "bed 2"})), say(LONG)]) as server:
        sim = board(server)
        with (
            NoisyWire(sim.path, 0) as wire,
            gateway(tmp_path, tmp_path / "garden", "--port", wire.path) as running,
        ):
            assert says(running, "runs garden")
            wire.cost[:] = [0, 0]
            assert len(script(tmp_path, wire.path, "how is it?")) > 12000
    line, records = wire.cost
    print(f"{records} bytes of records, {line} bytes of frames: {line / records - 1:.1%}")
    assert records > 12000 and line <= 1.09 * records


def test_a_reset_in_the_middle_ends_what_nobody_waits_for(tmp_path, state, board):
    with Server(
        [FAULTS["stall in stream"], calls(("look", {"where": "bed 2"})), say("All is well.")]
    ) as server:
        sim = board(server)
        with (
            NoisyWire(sim.path, 0) as wire,
            gateway(tmp_path, tmp_path / "garden", "--port", wire.path) as running,
        ):
            assert says(running, "runs garden")
            with Agent(
                linux("console", "--port", "gateway:" + wire.path),
                tmp_path / "person",
                True,
                env={"CLAWLITE_STATE": state, "TERM": "xterm"},
            ) as person:
                person.expect("leaves")
                person.send("tell me\r")
                person.expect("Let me think")
                person.send("\x03")  # ends the turn
                person.expect("> ")
                person.send("\x03\x04")  # leaves the program, and resets the board
                assert says(running, "runs garden", 2)
                person.send("and now?\r")
                person.expect("All is well.")
                count = "SELECT count(*) FROM history"
                eventually(lambda: rows(state, count) == [(3,)], 30)
    outcomes = rows(state, "SELECT asked, outcome FROM history ORDER BY id")
    assert outcomes == [
        ("tell me", "cancelled: nobody waits for it"),
        ("and now?", "ok"),
        ("and now?", "ok"),
    ]


def test_a_board_that_lost_its_power_is_found_again(tmp_path, state, board):
    """Its line says nothing at its end; what it says at its next start is what the gateway hears
    of it.
    """
    with Server(
        [FAULTS["stall in stream"], calls(("look", {"where": "bed 2"})), say("All is well.")]
    ) as server:
        sim = board(server)
        with (
            NoisyWire(sim.path, 0) as wire,
            gateway(tmp_path, tmp_path / "garden", "--port", wire.path) as running,
        ):
            assert says(running, "runs garden")
            with Agent(
                linux("console", "--port", "gateway:" + wire.path),
                tmp_path / "person",
                True,
                env={"CLAWLITE_STATE": state, "TERM": "xterm"},
            ) as person:
                person.expect("leaves")
                person.send("tell me\r")
                person.expect("Let me think")
                os.kill(process_of(sim), signal.SIGKILL)
                assert says(running, "runs garden", 2)
                person.send("and now?\r")
                person.expect("All is well.")
                count = "SELECT count(*) FROM history"
                eventually(lambda: rows(state, count) == [(3,)], 30)
    outcomes = rows(state, "SELECT asked, outcome FROM history ORDER BY id")
    assert outcomes == [
        ("tell me", "cancelled: nobody waits for it"),
        ("and now?", "ok"),
        ("and now?", "ok"),
    ]


def test_the_gateway_sets_the_clock_of_a_board_that_has_none_and_passes_the_console_on(
    tmp_path, board
):
    """A clock that nobody has set, and a module that takes the time, stand before MicroPython's
    own (tests/device).
    """
    (tmp_path / "flash/lib").mkdir(parents=True)
    (tmp_path / "flash/world").mkdir()
    for name in ("modules/machine.py", "unset/time.py"):
        source = (Path(__file__).parents[2] / "device" / name).read_text()
        (tmp_path / "flash/lib" / Path(name).name).write_text(
            source.replace('os.getenv("PINS")', '"/world"')
        )
    begun_s = int(time.time())
    with Server([say("All is well.")]) as server:
        sim = board(server)
        with (
            NoisyWire(sim.path, 0) as wire,
            gateway(tmp_path, tmp_path / "garden", "--port", wire.path) as running,
        ):
            assert says(running, "runs garden")
            eventually(
                lambda: (
                    (tmp_path / "flash/world/clock").exists()
                    and (tmp_path / "flash/world/clock").read_text()
                ),
                20,
            )
            at = eval((tmp_path / "flash/world/clock").read_text())
            assert begun_s <= calendar.timegm((*at[:3], *at[4:7])) <= time.time()
            assert "All is well." in script(tmp_path, wire.path, "how is it?")
            assert bytes(wire.seen).count(b'"epoch_s"') == 1


def test_a_line_that_was_cut_goes_on_where_it_was(tmp_path, board):
    more = threading.Event()
    start, end = [
        b"data: "
        + json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode()
        + b"\n"
        b"\n"
        for text in ("One, two, ", "three.")
    ]
    with Server([{"stream": [start, more, end, b"data: [DONE]\n\n"]}]) as server:
        sim = board(server)
        with (
            NoisyWire(sim.path, 0) as wire,
            gateway(tmp_path, tmp_path / "garden", "--port", wire.path) as running,
        ):
            assert says(running, "runs garden")
            with Agent(
                linux("console", "--port", "gateway:" + wire.path),
                tmp_path / "person",
                True,
                env={"CLAWLITE_STATE": tmp_path / "state", "TERM": "xterm"},
            ) as person:
                person.expect("leaves")
                person.send("count\r")
                person.expect("One, two, ")
                wire.is_cut = True
                more.set()
                assert says(running, "the line has ended (silent)")
                wire.is_cut = False
                person.expect("three.")
                person.expect("> ")
    assert len(server.requests) == 1
    assert person.text().endswith("One, two, three.\n> ")


def test_a_board_that_was_unplugged_is_served_again(tmp_path, firmware):
    with Server([say("Fine.")]) as server:
        flash = flashed(project(tmp_path / "garden", server.endpoint), tmp_path / "flash", firmware)
        with Sim(folder=str(flash), heap=HEAP) as sim:
            id = sim.facts["id"]
            running = gateway(tmp_path, tmp_path / "garden", "--port", id)
            assert says(running, "runs garden")
        with running:
            assert says(running, "went away; waiting for it to come back")
            done = clawlite(
                "console",
                "--port",
                "gateway:" + id,
                "--timeout",
                1,
                cwd=tmp_path,
                stdin=b"hello\n",
                CLAWLITE_STATE=tmp_path / "state",
            )
            assert "the board is disconnected; that was not sent" in done.stdout
            with Sim(folder=str(flash), heap=HEAP):
                assert says(running, "connected again") and says(running, "runs garden", 2)
                assert script(tmp_path, id, "hello") == "Fine.\n"


def test_a_gateway_that_was_killed_leaves_a_board_that_can_be_flashed(tmp_path, board):
    with Server([]) as server:
        sim = board(server)
        with gateway(tmp_path, tmp_path / "garden", "--port", sim.path) as running:
            assert says(running, "runs garden")
            running.signal(signal.SIGKILL)
            running.wait()
        assert mpremote(sim.path, "exec", "print(6 * 7)") == "42\n"


def test_nothing_is_typed_into_a_repl(tmp_path, board):
    with Server([say("Fine.")]) as server:
        sim = board(server)
        with (
            NoisyWire(sim.path, 0) as wire,
            gateway(tmp_path, tmp_path / "garden", "--port", wire.path) as running,
        ):
            assert says(running, "runs garden")
            with Agent(
                linux("console", "--port", "gateway:" + wire.path),
                tmp_path / "person",
                True,
                env={"CLAWLITE_STATE": tmp_path / "state", "TERM": "xterm"},
            ) as person:
                person.expect("leaves")
                person.send("\x03")  # leaves the agent
                person.expect(">>> ")
                wire.seen.clear()
                person.send("print(6 * 7)\r")
                person.expect("42")
                assert b"\x1e" not in wire.seen
                person.send("\x04")
                assert says(running, "runs garden", 2)
                person.send("hello\r")
                person.expect("Fine.")


def test_a_machine_with_a_network_asks_by_itself(tmp_path):
    with Server([calls(("look", {"where": "bed 2"})), say("Fine.")]) as server:
        project(tmp_path / "garden", server.endpoint)
        done = clawlite("ask", "hello", tmp_path / "garden", cwd=tmp_path, GARDEN_KEY=KEY)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Fine.\n", "")


def test_without_a_gateway_the_rules_answer(tmp_path, board):
    with Server([]) as server:
        sim = board(server)
        done = clawlite(
            "console",
            "--port",
            sim.path,
            cwd=tmp_path,
            stdin=b"hello\n",
            CLAWLITE_STATE=tmp_path / "state",
        )
    assert "no gateway at the other end of the line" in done.stdout and "By rule." in done.stdout


def test_a_key_that_is_not_there_and_an_image_that_nobody_knows(tmp_path, board):
    with Server([]) as server:
        sim = board(server)
        with gateway(tmp_path, tmp_path / "garden", "--port", sim.path, key="") as running:
            assert says(running, "runs garden")
            said = script(tmp_path, sim.facts["id"], "hello")
            assert "the gateway has no secret GARDEN_KEY" in said and "By rule." in said
            assert "GARDEN_KEY" in running.errors() and "empty" in running.errors()
        project(tmp_path / "house", server.endpoint, name="house")
        with gateway(tmp_path, tmp_path / "house", "--port", sim.path) as running:
            assert says(running, "runs an image that no project has")
            said = script(tmp_path, sim.facts["id"], "hello")
            assert (
                "the gateway knows no project whose image is" in said
                and "; it knows house " in said
                and "clawlite gateway FOLDER" in said
            )
    assert server.requests == []


def test_limits_hold_over_a_restart_of_the_gateway(tmp_path, board):
    with Server([say("Fine."), say("Never.")]) as server:
        sim = board(server, limits="limits: { tokens_per_day: 150 }, ")
        for expected, number in (("Fine.", 9), ("tokens_per_day is 150", 15)):
            with gateway(tmp_path, tmp_path / "garden", "--port", sim.path) as running:
                assert says(running, "runs garden")
                assert expected in script(tmp_path, sim.facts["id"], "x" * 100)
                running.signal(number)
                assert running.wait() == (-9 if number == 9 else 0)
    assert len(server.requests) == 1
