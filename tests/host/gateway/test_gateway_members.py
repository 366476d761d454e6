"""A board as a member of a swarm through its gateway: real MicroPython, a real gateway, and agents
of the swarm that give it tasks.
"""

import json
import os
import re
import shlex
import signal
from pathlib import Path

import lan_boards
import pytest
from agents import Agent, clawlite, eventually, linux
from board_beds import AGENTS, TOOLS, Operator, speaks_for_its_board
from engines import SERVERS
from free_ports import free_port
from gateways import HEAP, flashed, gateway, process_of, says, script
from sims import needs_micropython, needs_mpy_cross
from swarm_team import SWARM, UUID, delegate, delegated, ended, look_on, start, statuses, swarm
from swarm_team import project as member
from swarm_world import server_of, settings

from clawlite.host.sim.sim import Sim

pytestmark = [needs_micropython, needs_mpy_cross]
DOCS = Path(__file__).resolve().parents[3] / "docs/swarm-boards.md"


class Team:
    """The leader ``lead``, and the board ``shed`` behind a gateway.

    toml, changes  as ``swarm_team.project`` has them
    """

    def __init__(self, tmp_path, firmware, toml="", **changes):
        changes = {"agents": AGENTS, **changes}
        self.path = tmp_path
        self.lead = member(tmp_path, "lead", toml=toml, **changes)
        self.image = member(tmp_path, "shed", code=TOOLS, toml="[gateway]\n" + toml, **changes)
        self.flash = flashed(self.image, tmp_path / "flash", firmware)
        self.sims = []

    def board(self) -> Sim:
        """Start the virtual board, each time with the same flash."""
        self.sims.append(Sim(folder=str(self.flash), heap=HEAP).__enter__())
        return self.sims[-1]

    def gateway(self, sim):
        self.running = gateway(self.path, self.path / "shed", "--port", sim.path)
        return self.running

    def is_(self, status: str) -> bool:
        """Wait until the swarm knows the board as that."""
        try:
            eventually(lambda: self.member()["status"] == status, 60)
        except AssertionError:
            raise AssertionError("the gateway noted: " + self.running.errors()) from None
        return True

    def member(self) -> dict:
        code, text, errors = swarm(self.path, "status", self.lead, "--json")
        assert code == 0, errors
        return next(one for one in json.loads(text)["members"] if one["identity"] == "shed")

    def ends(self, number: int) -> tuple:
        """Wait for the end of a task; return (its state, the result of its report)."""
        found = {}

        def is_over() -> bool:
            words = ("trace", UUID % number, self.lead, "--json")
            found.update(json.loads(swarm(self.path, *words)[1]))
            return found["state"] not in ("waiting", "running")

        eventually(is_over, 60)
        assert found["reports"], (found, "the gateway noted: " + self.running.errors())
        return found["state"], found["reports"][0]["result"]

    def end(self):
        for sim in self.sims:
            sim.__exit__()


@pytest.fixture
def team(tmp_path, firmware):
    made = Team(tmp_path, firmware)
    yield made
    made.end()


def bed(tmp_path, name: str) -> Path:
    """Return a bed whose tools wait for its ``go``."""
    made = tmp_path / "flash" / name
    made.mkdir()
    (made / "waits").touch()
    return made


def begun(where: Path) -> str:
    """Return an x for each time that a tool has begun there."""
    return (where / "begun").read_text() if (where / "begun").exists() else ""


def test_a_board_is_there_does_a_task_once_and_its_report_goes_back(team, tmp_path):
    assert team.member()["status"] == "unavailable"
    sim = team.board()
    with start(tmp_path, team.lead) as lead, team.gateway(sim):
        assert team.is_("ready") and team.member()["processes"] == 1
        place = bed(tmp_path, "bed")
        assert "result" in delegate(lead, "look at bed")
        eventually(lambda: begun(place), 60)
        assert team.is_("busy") and statuses(lead)["shed"] == "busy"
        assert "result" in delegate(lead, "look at bed")  # once more
        (place / "go").touch()
        said = {"text": "Bed bed is dry."}
        assert ended(look_on(tmp_path)) == ("completed", "completed", said)
        assert team.is_("ready") and begun(place) == "x"
    assert team.is_("unavailable")


def test_an_operator_of_a_board_uses_the_methods_of_the_swarm(team, tmp_path):
    with start(tmp_path, team.lead), team.gateway(team.board()):
        team.is_("ready")
        listed = json.loads(
            clawlite("ports", "--json", cwd=tmp_path, CLAWLITE_STATE=tmp_path / "state").stdout
        )
        path = next(one["port"] for one in listed if one["id"].startswith("gateway:"))
        operator = Operator(path)
        others = {"lead": "ready"}
        log = tmp_path / "state/lead/log.jsonl"

        def heard() -> bool:
            return "swarm.message" in log.read_text() and "rain" in log.read_text()

        speaks_for_its_board(operator, others, lambda number: team.ends(number)[0], heard)
        operator.close()


def test_a_tool_is_refused_where_the_swarm_is_stopped_and_the_report_is_partial(team, tmp_path):
    sim = team.board()
    with start(tmp_path, team.lead) as lead, team.gateway(sim) as running:
        assert team.is_("ready")
        assert swarm(tmp_path, "stop", team.lead)[0] == 0
        assert says(running, "the swarm team was stopped by a person at ")
        assert "result" in delegate(lead, "water 3", 1)
        state, status, result = ended(look_on(tmp_path), 1)
        assert (state, status) == ("partial", "partial") and "Watered" not in str(result)
        assert swarm(tmp_path, "resume", team.lead)[0] == 0
        assert says(running, "the swarm team goes on", 2)
        assert "result" in delegate(lead, "water 3", 2)
        state, status, result = ended(look_on(tmp_path), 2)
        assert (state, result) == ("completed", {"text": "Watered 3"})


@pytest.mark.parametrize("description, again", [("look at bed", True), ("water bed", False)])
def test_a_board_that_is_reset_in_the_middle(team, tmp_path, description, again):
    """What has no side effects begins again; of the rest nobody knows what it did."""
    sim, place = team.board(), bed(tmp_path, "bed")
    with start(tmp_path, team.lead) as lead, team.gateway(sim) as running:
        assert team.is_("ready")
        assert "result" in delegate(lead, description)
        eventually(lambda: begun(place), 60)
        os.kill(process_of(sim), signal.SIGKILL)  # the board is reset
        assert says(running, "runs shed", 2)
        if again:
            eventually(lambda: begun(place) == "xx", 60)
            (place / "go").touch()
        state, _, result = ended(look_on(tmp_path))
        if again:
            assert (state, result) == ("completed", {"text": "Bed bed is dry."})
        else:
            why = "its process ended while a tool ran: what it did is not known"
            assert (state, result) == ("dead", {"error": why})
            assert begun(place) == "x"
            (place / "go").touch()
            code, _, errors = swarm(tmp_path, "dead", "retry", UUID % 1, team.lead)
            assert code == 0, errors
            bus = look_on(tmp_path)
            eventually(lambda: bus.state(UUID % 1) == "completed", 60)
            assert begun(place) == "xx"  # as a person wanted


def test_a_gateway_that_is_killed_in_the_middle_runs_no_task_twice(team, tmp_path):
    """The board goes on, and what it is given again by the next gateway is the same turn."""
    sim, place = team.board(), bed(tmp_path, "bed")
    with start(tmp_path, team.lead) as lead:
        with team.gateway(sim) as running:
            assert team.is_("ready")
            assert "result" in delegate(lead, "look at bed")
            eventually(lambda: begun(place), 60)
            running.process.kill()
            running.process.wait()
        with team.gateway(sim):
            eventually(lambda: team.member()["status"] == "busy", 60)
            (place / "go").touch()
            state, _, result = ended(look_on(tmp_path))
            assert (state, result) == ("completed", {"text": "Bed bed is dry."})
            assert begun(place) == "x"


def test_a_person_at_the_board_is_told_of_a_task(team, tmp_path):
    sim = team.board()
    with start(tmp_path, team.lead) as lead, team.gateway(sim):
        assert team.is_("ready")
        assert "result" in delegate(lead, "water 3")
        assert ended(look_on(tmp_path))[0] == "completed"
        said = script(tmp_path, sim.facts["id"], "/trace")
        assert 'water(bed="3")  ok, called by the team/lead' in said, said


@pytest.mark.parametrize("kind", list(SERVERS))
def test_a_board_is_a_member_by_each_engine(tmp_path, firmware, kind):
    engine = server_of(kind, tmp_path / "engine")
    backend, toml = settings(kind, engine)
    team = Team(
        tmp_path, firmware, toml=toml, coordination=dict(SWARM["coordination"], backend=backend)
    )
    try:
        sim = team.board()
        with start(tmp_path, team.lead) as lead, team.gateway(sim) as running:
            assert team.is_("ready")
            assert "result" in delegate(lead, "water 3", 1)
            assert team.ends(1) == ("completed", {"text": "Watered 3"})
            for number, description in ((2, "look at bed"), (3, "water bed")):
                place = bed(tmp_path, "bed")
                assert "result" in delegate(lead, description, number)
                eventually(lambda place=place: begun(place), 60)
                os.kill(process_of(sim), signal.SIGKILL)  # the board is reset
                assert says(running, "runs shed", number)
                (place / "go").touch()
                state, result = team.ends(number)
                if number == 2:
                    assert (state, result) == ("completed", {"text": "Bed bed is dry."})
                else:
                    assert state == "dead" and "what it did is not known" in result["error"]
                place.rename(tmp_path / ("bed %d" % number))
            engine.kill()
            engine.start()
            assert team.is_("ready")
            assert delegated(lead, "water 4", 4)
            assert team.ends(4) == ("completed", {"text": "Watered 4"})
    finally:
        team.end()
        engine.kill()


def test_a_board_over_the_lan_goes_on_when_its_connection_breaks_and_is_gone_when_it_stays_so(
    tmp_path,
):
    port, secret = free_port(), lan_boards.token(tmp_path)
    lead = member(tmp_path, "lead", agents=AGENTS)
    with lan_boards.Relay(port) as wire:
        toml = '[gateway]\nwire = "tcp"\naddress = "127.0.0.1:%d"\n' % wire.port
        image = member(tmp_path, "shed", code=TOOLS, toml=toml, agents=AGENTS)
        team = Team.__new__(Team)
        team.path, team.lead = tmp_path, lead
        listens = ("--listen", "127.0.0.1:%d" % port)
        with (
            start(tmp_path, lead) as leader,
            gateway(tmp_path, tmp_path / "shed", *listens) as running,
            lan_boards.device(tmp_path, image, secret) as board,
        ):
            assert team.is_("ready")
            for number in (1, 2):
                wire.marks = [b'"claw.gateway.task"']  # cut behind it: the board has half of it
                assert "result" in delegate(leader, "water %d" % number, number)
                assert team.ends(number) == ("completed", {"text": "Watered %d" % number})
            assert says(running, "runs shed", 3)
            board.process.kill()
            board.process.wait()
            assert team.is_("unavailable")


def stand_in(running) -> int:
    """Return the number of the process that speaks for the boards of a gateway."""
    for path in Path("/proc/%d/task" % running.process.pid).glob("*/children"):
        for pid in path.read_text().split():
            if b"\0stand-in\0" in Path("/proc/%s/cmdline" % pid).read_bytes():
                return int(pid)
    return 0


def test_who_speaks_for_a_board_is_started_again_and_the_board_is_asked_once(team, tmp_path):
    sim, place = team.board(), bed(tmp_path, "bed")
    with start(tmp_path, team.lead) as lead, team.gateway(sim) as running:
        assert team.is_("ready")
        assert "result" in delegate(lead, "look at bed")
        eventually(lambda: begun(place), 60)
        os.kill(stand_in(running), signal.SIGKILL)
        assert says(running, "the process that speaks for the boards in their swarms has ended")
        assert team.is_("busy")
        (place / "go").touch()
        assert team.ends(1) == ("completed", {"text": "Bed bed is dry."})
        assert begun(place) == "x"


def test_a_task_that_a_board_cannot_take_has_failed_and_the_next_one_is_done(team, tmp_path):
    sim = team.board()
    with start(tmp_path, team.lead) as lead, team.gateway(sim):
        assert team.is_("ready")
        assert "result" in delegate(lead, "look at 3", 1, input="x" * 9000)
        state, result = team.ends(1)
        assert state == "failed" and "and the device takes 8192" in result["error"], result
        assert "result" in delegate(lead, "look at 3", 2)
        assert team.ends(2) == ("completed", {"text": "Bed 3 is dry."})


def test_the_virtual_board_of_the_docs_works_in_the_team_of_the_template(tmp_path):
    text = DOCS.read_text().partition("## Begin here: a virtual board in the example team")[2]
    blocks = re.findall(r"(?:^    .+\n)+", text.partition("\n## ")[0], re.M)
    (sim,), (flash, serve), (up,), (asked,) = [
        [shlex.split(line) for line in block.splitlines()] for block in blocks
    ]
    home, where = tmp_path, tmp_path / "team"
    assert clawlite("new", "team", "--template", "team", cwd=tmp_path).returncode == 0
    with Agent(linux(*sim[1:]), home, cwd=where) as board:
        eventually((where / "board").exists, 60)
        state = {"CLAWLITE_STATE": tmp_path / "state"}
        done = clawlite(*flash[1:], "--yes", cwd=where, **state)
        assert done.returncode == 0, done.stderr
        with (
            Agent(linux(*serve[1:]), home, cwd=where),
            Agent(linux(*up[1:]), home, cwd=where) as leader,
        ):
            leader.expect(" is ready")

            def is_there() -> bool:
                said = clawlite("swarm", "status", "leader", cwd=where, **state).stdout
                return re.search("^team-shed .* ready +1 of 1$", said, re.M) is not None

            eventually(is_there, 120)
            assert asked[-2:] == ["--to", "team-shed"]
            done = clawlite(*asked[1:], cwd=where, **state)
            assert (done.returncode, done.stdout) == (0, "Bed 3 is dry.\n"), done.stderr
            leader.signal(signal.SIGTERM)
            assert leader.wait() == 0
        board.signal(signal.SIGINT)
        board.wait()
