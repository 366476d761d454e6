"""The stop of a swarm on boards behind a gateway: real MicroPython, a real gateway, and agents of
the swarm that the person stops.
"""

import asyncio
import json
import os
import signal

import lan_boards
import pytest
from agents import Agent, clawlite, eventually, linux
from engines import SERVERS
from free_ports import free_port
from gateways import HEAP, flashed, gateway, process_of, says, script
from sims import needs_micropython, needs_mpy_cross
from swarm_team import RULED, SWARM, swarm
from swarm_team import project as member
from swarm_world import server_of, settings

from clawlite.host.builder.build import build_beside
from clawlite.host.gateway.device import Device
from clawlite.host.gateway_swarm.stops import Stops
from clawlite.host.sim.sim import Sim

pytestmark = [needs_micropython, needs_mpy_cross]
CLAW = """claw: "0.3.0"
kind: Claw
metadata: { name: shed }
spec:
  identity: { inline: { personality: "You help.", autonomy: autonomous } }
  providers: [{ inline: %s }]
  sandbox: { inline: { level: none } }
  tools:
    - { inline: { name: look, description: "Look.", annotations: { readOnlyHint: true },
        input_schema: { type: object, properties: {} } } }
  policies: [{ inline: { rules: [{ id: all, action: allow, scope: all }] } }]
""" % json.dumps(RULED)
SETTINGS = 'reflex = "reflex.toml"\n[gateway]\nobeys_stop_of = "team"\n'
RULES = """[[rule]]
when = "look"
call = "look"
then = [{ say = "{result}" }]
[[rule]]
when = "water"
call = "water"
then = [{ say = "{result}" }]
"""
TOOLS = '''def look() -> str:
    """Look at a bed."""
    return "It is dry"


def water() -> str:
    """Water a bed."""
    return "Watered"
'''
STOPPED = "water: the swarm team was stopped by a person at "


def made(tmp_path, settings: str) -> str:
    folder = tmp_path / "shed"
    folder.mkdir()
    for name, text in (
        ("claw.yaml", CLAW),
        ("tools.py", TOOLS),
        ("clawlite.toml", settings),
        ("reflex.toml", RULES),
    ):
        (folder / name).write_text(text)
    return build_beside(str(folder))


@pytest.fixture
def image(tmp_path):
    return made(tmp_path, SETTINGS)


@pytest.fixture
def board(tmp_path, image, firmware):
    """Return a function that starts the virtual board, each time with the same flash; it ends the
    one before.
    """
    flash, made = flashed(image, tmp_path / "flash", firmware), []

    def start() -> Sim:
        while made:
            made.pop().__exit__()
        made.append(Sim(folder=str(flash), heap=HEAP).__enter__())
        return made[-1]

    yield start
    for sim in made:
        sim.__exit__()


def served(tmp_path, sim, *more) -> Agent:
    return gateway(tmp_path, tmp_path / "shed", *more, "--port", sim.path)


def asked(tmp_path, sim, *lines) -> str:
    return script(tmp_path, sim.facts["id"], *lines)


def test_a_stopped_swarm_holds_on_a_board_until_a_person_resumes(tmp_path, board):
    team, sim = member(tmp_path, "lead"), board()
    with served(tmp_path, sim, team) as running:
        assert says(running, "the swarm team goes on")
        assert "Watered" in asked(tmp_path, sim, "water")
        assert swarm(tmp_path, "stop", team)[0] == 0
        assert says(running, "the swarm team was stopped by a person at ")
        said = asked(tmp_path, sim, "water", "look")
        assert STOPPED in said and "Watered" not in said and "It is dry" in said, said
        assert "Z - resume it with: clawlite swarm resume\n" in said, said
        assert swarm(tmp_path, "resume", team)[0] == 0
        assert says(running, "the swarm team goes on", 2)
        assert "Watered" in asked(tmp_path, sim, "water")


def test_a_board_that_was_away_hears_of_the_stop_when_it_comes(tmp_path, board):
    team = member(tmp_path, "lead")
    assert swarm(tmp_path, "stop", team)[0] == 0
    sim = board()
    with served(tmp_path, sim, team) as running:
        assert says(running, "the swarm team was stopped by a person at ")
        assert STOPPED in asked(tmp_path, sim, "water")
        os.kill(process_of(sim), signal.SIGKILL)  # the board is reset, and has forgotten
        assert says(running, "runs shed", 2)
        said = asked(tmp_path, sim, "water")
        assert STOPPED in said and "Watered" not in said, said


def typed(sim, *lines: str) -> str:
    """Type *lines* at the console of the board, which no gateway has; return what it says."""
    said = "".join(line + "\n" for line in lines).encode()
    done = clawlite("console", "--port", sim.path, "--timeout", 60, cwd=sim.folder, stdin=said)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def test_what_was_heard_last_holds_while_no_gateway_is_there_also_after_a_restart(tmp_path, board):
    team, sim = member(tmp_path, "lead"), board()
    with served(tmp_path, sim, team) as running:
        assert swarm(tmp_path, "stop", team)[0] == 0
        assert says(running, "the swarm team was stopped by a person at ")
        assert STOPPED in asked(tmp_path, sim, "water")
        running.signal(signal.SIGINT)
        assert running.wait() == 130
    sim = board()
    said = typed(sim, "water", "look")
    assert STOPPED in said and "Watered" not in said and "It is dry" in said, said
    kept = next((tmp_path / "flash").rglob("stopped"))
    kept.write_text("[1")
    sim = board()
    said = typed(sim, "water")
    assert "whether its swarm is stopped cannot be read on this board - start claw" in said, said
    assert swarm(tmp_path, "resume", team)[0] == 0
    with served(tmp_path, sim) as running:  # it cannot know: no agent of the swarm is among these
        unknown = "whether the swarm team is stopped cannot be known (no project of the gateway"
        assert says(running, unknown)
        assert "water: " + unknown in asked(tmp_path, sim, "water")
        running.signal(signal.SIGINT)
        assert running.wait() == 130
    assert kept.exists(), "who does not know changes nothing"
    with served(tmp_path, sim, team) as running:
        assert says(running, "the swarm team goes on")
        assert "Watered" in asked(tmp_path, sim, "water")
        running.signal(signal.SIGINT)
        assert running.wait() == 130
    assert not kept.exists() and "Watered" in typed(board(), "water")


def test_a_gateway_whose_reader_of_the_swarm_ends_refuses_and_starts_it_again(tmp_path, board):
    team, sim = member(tmp_path, "lead"), board()
    with served(tmp_path, sim, team) as running:
        assert says(running, "the swarm team goes on")
        file = tmp_path / "state/swarms/team/swarm.db"
        for one in file.parent.glob("swarm.db*"):
            one.unlink()
        file.mkdir()
        assert says(running, "whether the swarm team is stopped cannot be known (")
        said = asked(tmp_path, sim, "water", "look")
        assert "cannot be known (" in said and "Watered" not in said and "It is dry" in said
        file.rmdir()
        assert says(running, "the swarm team goes on", 2)
        assert "Watered" in asked(tmp_path, sim, "water")


@pytest.mark.parametrize("kind", list(SERVERS))
def test_a_stop_comes_to_a_board_by_each_engine_and_holds_when_that_is_away(tmp_path, board, kind):
    engine = server_of(kind, tmp_path / "engine")
    try:
        backend, toml = settings(kind, engine)
        coordination = dict(SWARM["coordination"], backend=backend)
        lead = {"toml": toml, "coordination": coordination}
        team, sim = member(tmp_path, "lead", **lead), board()
        with served(tmp_path, sim, team) as running:
            assert says(running, "the swarm team goes on")
            assert "Watered" in asked(tmp_path, sim, "water")
            assert swarm(tmp_path, "stop", team)[0] == 0
            assert says(running, "the swarm team was stopped by a person at ")
            engine.kill()
            said = asked(tmp_path, sim, "water", "look")
            assert STOPPED in said and "Watered" not in said and "It is dry" in said, said
            engine.start()
            assert swarm(tmp_path, "resume", team)[0] == 0
            assert says(running, "the swarm team goes on", 2)
            assert "Watered" in asked(tmp_path, sim, "water")
    finally:
        engine.kill()


def test_a_stop_comes_to_a_board_over_the_lan(tmp_path):
    port, secret, team = (
        free_port(),
        lan_boards.token(tmp_path),
        member(tmp_path, "lead"),
    )
    wire = 'wire = "tcp"\naddress = "127.0.0.1:%d"\n' % port
    image = made(tmp_path, SETTINGS + wire)
    listens = ("--listen", "127.0.0.1:%d" % port)
    with (
        gateway(tmp_path, tmp_path / "shed", team, *listens) as running,
        lan_boards.device(tmp_path, image, secret) as agent,
    ):
        agent.expect("> ")

        def water() -> str:  # what is typed and what the gateway sends come by two wires
            agent.line("water")
            return agent.expect("\n> ")

        # a board that no gateway has greeted yet waters, too
        assert says(running, "the swarm team goes on")
        eventually(lambda: "Watered" in water())
        assert swarm(tmp_path, "stop", team)[0] == 0
        eventually(lambda: STOPPED in water())
        assert swarm(tmp_path, "resume", team)[0] == 0
        assert says(running, "the swarm team goes on", 2)
        eventually(lambda: "Watered" in water())


def test_watch_tells_each_change_and_ends_with_its_input(tmp_path):
    team = member(tmp_path, "lead")
    with Agent(linux("swarm", "watch", team), tmp_path) as watch:
        assert watch.message() == {"swarm": "team", "stopped": None}
        assert swarm(tmp_path, "stop", team)[0] == 0
        assert watch.message()["stopped"]["by"] == "a person"
        assert swarm(tmp_path, "resume", team)[0] == 0
        assert watch.message() == {"swarm": "team", "stopped": None}
        watch.end()
        assert watch.wait() == 0


def test_linux_has_no_gateway_that_could_tell_it(tmp_path, image):
    with Agent(linux("ask", "look", image), tmp_path) as one:
        assert one.wait() == 2 and "stop-of-swarm" in one.errors(), one.errors()


class Members(list):
    """What a gateway is told of its members: [(what, device), ...]."""

    def confirm(self, device, digest):
        self.append(("there", device))

    def expect(self, device, tell, pause_s):
        self.append(("expected", device))


class Image:
    size_of = staticmethod(lambda section: 1)


class Images:
    places = staticmethod(lambda: [])


class Gateway:
    def __init__(self, changed):
        self.members, self.stops = Members(), Stops(Images, changed, lambda text: None)


def test_a_board_is_no_member_before_the_stop_of_its_swarm_has_been_read():
    """Its first task would be refused, because nobody could know whether the swarm is stopped."""

    async def scene():
        changed = asyncio.get_running_loop().create_future()
        gateway = Gateway(changed.set_result)
        device = Device("shed", gateway)
        device._image, device._stop_of = Image, "team"
        device._take_member("claw.gateway.member", {})
        assert gateway.members == [("expected", "shed")]
        assert await changed == "team"  # the board is told, and answers again
        device._take_member("claw.gateway.member", {})
        assert gateway.members[1:] == [("there", "shed")]
        await gateway.stops.close()

    asyncio.run(scene())
