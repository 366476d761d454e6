"""A board as a member of its swarm by MQTT: real MicroPython and a real mosquitto, the process that
speaks for the board, and a leader that gives it tasks.
"""

import json
import os
import signal

import pytest
from agents import Agent, clawlite, eventually, linux
from board_beds import AGENTS, TOOLS, Operator, speaks_for_its_board
from brokers import Peer
from engines import BROKERS
from gateways import HEAP, flashed, process_of
from guarded_broker import guarded
from sims import needs_micropython, needs_mpy_cross
from swarm_team import SWARM, UUID, delegate, delegated, start, swarm
from swarm_team import project as member
from swarm_world import settings

from clawlite.core.swarm.swarm import Swarm
from clawlite.host.sim.sim import Sim
from clawlite.linux.swarm_commands.acl import PASSWORD

pytestmark = [needs_micropython, needs_mpy_cross]
WAIT_S = 60


class Team:
    """The leader ``lead``, and the board ``shed``, on a mosquitto.

    kind   class of the server;  login: format of what clawlite.toml has of an agent's login
    """

    def __init__(self, tmp_path, firmware, kind=BROKERS["mosquitto"], login=""):
        self.path, self.sims = tmp_path, []
        self.server = kind(tmp_path / "engine")
        backend, toml = settings("mosquitto", self.server)
        changes = {"agents": AGENTS, "coordination": dict(SWARM["coordination"], backend=backend)}
        self.lead, self.image = [
            member(tmp_path, name, code=TOOLS, toml=toml + login.format(name), **changes)
            for name in ("lead", "shed")
        ]
        self.flash = flashed(self.image, tmp_path / "flash", firmware)

    def board(self) -> Sim:
        """Start the virtual board, each time with the same flash."""
        self.sims.append(Sim(folder=str(self.flash), heap=HEAP).__enter__())
        return self.sims[-1]

    def speaker(self) -> Agent:
        return Agent(linux("swarm", "board", str(self.path / "shed")), self.path)

    def status(self) -> dict:
        code, text, _ = swarm(self.path, "status", self.lead, "--json")
        found = json.loads(text)
        return found if code == 0 else {"members": []}

    def is_(self, status: str) -> bool:
        """Wait until the swarm knows the board as that."""

        def fact():
            return any(
                (one["identity"], one["status"]) == ("shed", status)
                for one in self.status()["members"]
            )

        eventually(fact, WAIT_S)
        return True

    def ends(self, number: int) -> tuple:
        """Wait for the end of a task; return (its state, the result of its report)."""
        found = {}

        def is_over() -> bool:
            words = ("trace", UUID % number, self.lead, "--json")
            code, text, _ = swarm(self.path, *words)
            found.update(json.loads(text) if code == 0 else {"state": "waiting"})
            return found["state"] not in ("waiting", "running")

        eventually(is_over, WAIT_S)
        return found["state"], found["reports"][0]["result"]

    def bed(self, name: str):
        """Make a bed that the board waits at."""
        place = self.flash / name
        place.mkdir()
        (place / "waits").touch()
        return place

    def end(self):
        for sim in self.sims:
            sim.__exit__()
        self.server.kill()


@pytest.fixture
def team(tmp_path, firmware):
    made = Team(tmp_path, firmware)
    yield made
    made.end()


def typed(sim, *lines: str) -> str:
    """Type *lines* at the console of the board; return what it says."""
    said = "".join(line + "\n" for line in lines).encode()
    done = clawlite("console", "--port", sim.path, "--timeout", 30, cwd=sim.folder, stdin=said)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def begun(place) -> str:
    return (place / "begun").read_text() if (place / "begun").exists() else ""


def test_a_board_by_mqtt_is_there_does_tasks_and_reports(team, tmp_path):
    sim = team.board()
    with start(tmp_path, team.lead) as lead, team.speaker() as speaker:
        assert team.is_("ready")
        assert "result" in delegate(lead, "look at 3", 1)
        assert team.ends(1) == ("completed", {"text": "Bed 3 is dry."})
        assert "result" in delegate(lead, "water 3", 2)
        assert team.ends(2) == ("completed", {"text": "Watered 3"})
        assert "result" in delegate(lead, "look at 4", 3, input={"x": "y" * 9000})
        state, result = team.ends(3)
        assert state == "failed" and "8192 bytes that a board takes" in result["error"]
        said = typed(sim, "/trace")
        assert 'water(bed="3")  ok, called by the team/lead' in said, said
        os.kill(process_of(sim), signal.SIGKILL)  # it is reset
        for _ in range(2):
            speaker.expect("shed is there\n")
        assert team.is_("ready")
        assert delegated(lead, "water 4", 4)
        assert team.ends(4) == ("completed", {"text": "Watered 4"})


def test_an_operator_of_a_board_by_mqtt_uses_the_methods_of_the_swarm(team, tmp_path):
    with start(tmp_path, team.lead), team.speaker():
        operator = Operator(team.board().path)
        team.is_("ready")
        log = tmp_path / "state/lead/log.jsonl"

        def heard() -> bool:
            return "swarm.message" in log.read_text() and "rain" in log.read_text()

        others = {"lead": "ready"}
        speaks_for_its_board(operator, others, lambda number: team.ends(number)[0], heard)
        team.server.kill()
        answer = operator.call("claw.swarm.discover", {}, 8)
        assert answer["error"]["code"] == -32603
        assert "nothing speaks for this board" in answer["error"]["message"]
        operator.close()


def test_a_task_with_side_effects_that_a_reset_cut_off_is_not_begun_again(team, tmp_path):
    with start(tmp_path, team.lead) as lead, team.speaker():
        for number, description in ((1, "look at bed"), (2, "water bed")):
            sim, place = team.board(), team.bed("bed")
            assert team.is_("ready")
            assert "result" in delegate(lead, description, number)
            eventually(lambda place=place: begun(place), WAIT_S)
            os.kill(process_of(sim), signal.SIGKILL)  # the board is reset
            (place / "go").touch()
            state, result = team.ends(number)
            if number == 1:
                assert (state, result) == ("completed", {"text": "Bed bed is dry."})
            else:
                assert state == "dead" and "what it did is not known" in result["error"]
            place.rename(tmp_path / ("bed %d" % number))
            team.sims.pop().__exit__()


def test_a_broker_and_a_speaker_that_are_killed_lose_no_task_and_repeat_none(team, tmp_path):
    team.board()
    place = team.bed("bed")
    with start(tmp_path, team.lead) as lead:
        with team.speaker() as speaker:
            assert team.is_("ready")
            assert "result" in delegate(lead, "look at bed", 1)
            eventually(lambda: begun(place), WAIT_S)
            team.server.kill()
            team.server.start()
            speaker.expect("is reached\n")
            assert team.is_("busy")
            speaker.process.kill()
        with team.speaker():
            (place / "go").touch()
            assert team.ends(1) == ("completed", {"text": "Bed bed is dry."})
            assert begun(place) == "x"
            assert delegated(lead, "water 4", 4)
            assert team.ends(4) == ("completed", {"text": "Watered 4"})


def test_a_retained_stop_holds_on_a_board_also_on_one_that_was_away(team, tmp_path):
    with start(tmp_path, team.lead) as lead:
        first = team.board()
        eventually(lambda: "Watered" in typed(first, "water 1"), WAIT_S)
        assert swarm(tmp_path, "stop", team.lead)[0] == 0
        stopped = "the swarm team was stopped by a person"
        # nobody speaks for the board: it hears of the stop from the broker
        eventually(lambda: stopped in typed(first, "water 1"), WAIT_S)
        assert "Bed 1 is dry" in typed(first, "look at 1")
        team.sims.pop().__exit__()
        team.server.kill()
        again = team.board()
        # nobody is there who could tell it
        eventually(lambda: stopped in typed(again, "water 1"), WAIT_S)
        team.server.start()
        with team.speaker():
            assert team.is_("ready")
            assert delegated(lead, "water 2", 2)
            state, result = team.ends(2)
            assert state == "partial" and stopped in result["text"], result
            team.server.kill()
            assert stopped in typed(again, "water 1")
            team.server.start()
            assert team.is_("ready")
            assert swarm(tmp_path, "resume", team.lead)[0] == 0
            eventually(lambda: "Watered" in typed(again, "water 1"), WAIT_S)
            assert delegated(lead, "water 3", 3)
            assert team.ends(3) == ("completed", {"text": "Watered 3"})


def test_who_is_not_its_speaker_or_sends_no_record_changes_nothing(team, tmp_path):
    sim = team.board()
    with start(tmp_path, team.lead) as lead, team.speaker() as speaker:
        assert team.is_("ready")
        peer = Peer(team.server.port)
        for data in (b"", b"no JSON", b"[1]", b"{}", b'{"method": 1, "params": {"text": "x"}}'):
            for topic in ("down/shed", "up/shed", "estop"):
                peer.tell("claw/v1/team/" + topic, data)
        peer.tell("claw/v1/team/down/shed", b"x" * 100000)
        peer.tell(
            "claw/v1/team/up/shed", json.dumps({"method": "claw.gateway.report", "params": {}})
        )
        peer.close()
        assert "result" in delegate(lead, "water 3", 1)
        assert team.ends(1) == ("completed", {"text": "Watered 3"})
        speaker.expect("a record that no board sends")
        assert "Bed 1 is dry" in typed(sim, "look at 1")


def test_a_board_has_a_login_of_its_own_and_a_wrong_one_keeps_it_out(
    tmp_path, firmware, monkeypatch
):
    members = [[one["identity_ref"], "u", one["role"], 1] for one in AGENTS]
    swarm_of = Swarm(["team", 0, 0, members, True, None, 1, None, 2, True, 0, False] + [None] * 4)
    login = 'user = "{}"\ncredential = "TEAM_PASSWORD"\n'
    team = Team(tmp_path, firmware, guarded(swarm_of), login)
    monkeypatch.setenv("TEAM_PASSWORD", PASSWORD)
    try:
        secret = team.flash / "state/secrets/TEAM_PASSWORD"
        secret.parent.mkdir(parents=True)
        secret.write_text("wrong\n")
        with start(tmp_path, team.lead) as lead, team.speaker():
            sim = team.board()
            eventually(lambda: "the broker refuses the login" in typed(sim, "/status"), WAIT_S)
            eventually(lambda: team.status()["members"], WAIT_S)
            assert [one["status"] for one in team.status()["members"]] == ["ready", "unavailable"]
            team.sims.pop().__exit__()
            secret.write_text(PASSWORD + "\n")
            team.board()
            assert team.is_("ready")
            assert "result" in delegate(lead, "water 3", 1)
            assert team.ends(1) == ("completed", {"text": "Watered 3"})
    finally:
        team.end()
