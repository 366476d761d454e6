"""What a person's commands may do at an engine with the logins of ``clawlite swarm acl``.  Agents
and commands are whole processes, with the settings that docs/swarm-machines.md tells of.
"""

import json
import re

import pytest
from agents import eventually
from engines import SERVERS
from swarm_team import GOES_ON, SWARM, is_stopped, project, start, statuses, swarm
from swarm_world import MEMBERS

from clawlite.linux.swarm_commands.acl import PASSWORD, acl
from clawlite.protocols.swarm.swarm import Swarm

RECORD = ["team", 0, 0, MEMBERS[:2], True, None, 1, None, 2, True, 0, False] + [None] * 4
OPERATOR = 'operator_credential = "TEAM_OPERATOR"\n'


class Team:
    """The images of the agents ``lead`` and ``hand``, and an engine with their logins."""

    def __init__(self, kind: str, folder, toml: str = ""):
        """*toml*: more of [swarm]."""
        self.server = SERVERS[kind](folder / "server")
        coordination = dict(SWARM["coordination"], backend=kind)
        address = "%s://127.0.0.1:%d" % (kind, self.server.port)
        self.images = []
        for name in ("lead", "hand"):
            user = name if kind == "nats" else "team"
            said = '[swarm]\naddress = "%s"\nuser = "%s"\ncredential = "TEAM_PASSWORD"\n'
            made = project(
                folder, name, toml=said % (address, user) + toml, coordination=coordination
            )
            self.images.append(made)


@pytest.fixture
def team(tmp_path, monkeypatch):
    """``Team`` of a kind of engine; each login has a password of its own."""
    made = []

    def make(kind: str, toml: str = "") -> Team:
        said = acl(kind, Swarm(RECORD))
        if kind == "redis":
            words = said.replace("ACL SETUSER ", "").split()
            more = (*SERVERS[kind].more, "--user", *words)
        else:
            more = re.sub(r'user: "(\w+)", password: "\w+"', r'user: "\1", password: "of-\1"', said)
        monkeypatch.setitem(SERVERS, kind, type("Server", (SERVERS[kind],), {"more": more}))
        made.append(Team(kind, tmp_path, toml))
        return made[-1]

    yield make
    for one in made:
        one.server.kill()


def the_whole_day_of_a_person(tmp_path, monkeypatch, team, password: str, operator: str = ""):
    """Give a task, stop, look, and resume; the agent hand runs, and began before the secret
    *operator* was there.
    """
    lead, hand = team.images
    monkeypatch.setenv("TEAM_PASSWORD", password)
    monkeypatch.delenv("TEAM_OPERATOR", raising=False)
    with start(tmp_path, hand) as agent:
        eventually(lambda: statuses(agent).get("hand") == "ready")
        if operator:
            code, _, errors = swarm(tmp_path, "stop", lead)
            assert code == 1 and "secret TEAM_OPERATOR: not found" in errors
            monkeypatch.setenv("TEAM_OPERATOR", operator)
        assert swarm(tmp_path, "run", "look at 7", lead) == (0, "Bed 7 is dry.\n", "")
        assert swarm(tmp_path, "stop", lead) == (0, is_stopped(1), "")
        assert (
            json.loads(swarm(tmp_path, "status", hand, "--json")[1])["stopped"]["by"] == "a person"
        )
        assert swarm(tmp_path, "run", "water 7", lead)[0] == 1
        assert swarm(tmp_path, "resume", hand) == (0, GOES_ON, "")
        assert swarm(tmp_path, "run", "water 7", lead) == (0, "Watered 7\n", "")


def test_a_person_stops_a_swarm_at_nats_with_the_login_of_persons(tmp_path, monkeypatch, team):
    made = team("nats", OPERATOR)
    the_whole_day_of_a_person(tmp_path, monkeypatch, made, "of-hand", "of-operator")


def test_a_person_stops_a_swarm_at_redis_with_the_one_login(tmp_path, monkeypatch, team):
    the_whole_day_of_a_person(tmp_path, monkeypatch, team("redis"), PASSWORD)


@pytest.mark.parametrize("verb", ["stop", "resume", "run"])
def test_without_the_login_of_persons_a_command_says_what_to_do(tmp_path, monkeypatch, team, verb):
    made = team("nats")
    monkeypatch.setenv("TEAM_PASSWORD", "of-lead")
    words = ["look at 7"] if verb == "run" else []
    code, said, errors = swarm(tmp_path, verb, *words, made.images[0])
    assert (code, said, errors.count("\n")) == (1, "", 1)
    assert "the login lead may not do this" in errors and "team.log.operator" in errors
    assert "as operator_credential of [swarm]" in errors
    status = json.loads(swarm(tmp_path, "status", made.images[0], "--json")[1])
    assert (status["stopped"], status["tasks"]) == (None, [])


def test_a_wrong_password_of_persons_is_told_by_its_setting(tmp_path, monkeypatch, team):
    made = team("nats", OPERATOR)
    monkeypatch.setenv("TEAM_OPERATOR", "of-lead")
    code, _, errors = swarm(tmp_path, "stop", made.images[0])
    assert code == 1 and "it refuses the login operator" in errors
    assert "look at operator_credential of [swarm]" in errors
    monkeypatch.delenv("TEAM_OPERATOR")
    code, _, errors = swarm(tmp_path, "stop", made.images[0])
    assert code == 1 and "secret TEAM_OPERATOR: not found" in errors
