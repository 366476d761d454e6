"""The methods of a swarm (CKP 9.3.3) between real agents whose only way to each other is a message
queue: Redis, NATS or an MQTT broker (CKP 9.2).
"""

import contextlib
import json

import pytest
from agents import Agent, eventually, linux
from swarm_team import SWARM, UUID, delegate, project, start, statuses
from swarm_world import ENGINES, server_of, settings

MEMBERS = [{"identity_ref": "lead", "role": "leader"}, {"identity_ref": "hand", "role": "worker"}]


class Team:
    """A leader and a worker on an engine of *kind*, with a state folder of its own each, as if on
    two machines.
    """

    def __init__(self, tmp_path, kind: str):
        self.server, self.homes = server_of(kind, tmp_path / "engine"), {}
        self._agents = contextlib.ExitStack()
        self._agents.callback(self.server.kill)
        try:
            self.lead, self.hand = [
                self._start(tmp_path / ("home-" + name), name, kind) for name in ("lead", "hand")
            ]
        except BaseException:
            self.close()
            raise

    def _start(self, home, name: str, kind: str) -> Agent:
        home.mkdir()
        self.homes[name] = home
        backend, toml = settings(kind, self.server)
        coordination = dict(SWARM["coordination"], backend=backend)
        image = project(home, name, toml=toml, coordination=coordination, agents=MEMBERS)
        return self._agents.enter_context(start(home, image, swarm={}))

    def close(self):
        self._agents.close()


@pytest.fixture(params=ENGINES)
def team(request, tmp_path):
    made = Team(tmp_path, request.param)
    yield made
    made.close()


def logged(team, name: str, event: str) -> list:
    log = team.homes[name] / "state" / name / "log.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    # the last line may be half written
    return [found for found in map(_json, lines) if found.get("event") == event]


def _json(line: str) -> dict:
    try:
        return json.loads(line)
    except ValueError:
        return {}


def test_peers_discover_delegate_report_and_broadcast_over_a_message_queue(team):
    lead, hand = team.lead, team.hand
    for agent in (lead, hand):
        eventually(lambda agent=agent: statuses(agent) == {"lead": "ready", "hand": "ready"})
    for _ in range(2):  # given twice, it runs once
        assert delegate(lead, "look at 3")["result"] == {"acknowledged": True}
        reported = lead.message()
    # the operator that delegated it is sent its report, and the other one is not
    assert (reported["id"], reported["method"]) == (UUID % 1, "claw.swarm.report")
    report = reported["params"]
    assert isinstance(report.pop("duration_ms"), int)
    told = {"task_id": UUID % 1, "status": "completed", "result": {"text": "Bed 3 is dry."}}
    assert report == told
    lead.record({"jsonrpc": "2.0", "id": reported["id"], "result": {"acknowledged": True}})
    message = ["news", "rain"]
    params = {"swarm": "team", "message": message}
    lead.line(json.dumps({"jsonrpc": "2.0", "method": "claw.swarm.broadcast", "params": params}))
    eventually(lambda: logged(team, "hand", "swarm.message"))
    (heard,) = logged(team, "hand", "swarm.message")
    spoken = {"jsonrpc": "2.0", "method": "claw.swarm.broadcast", "params": params}
    assert hand.message() == spoken  # to the operator of the peer, and not to whose it is
    assert lead.call("claw.status")["result"]["state"] == "READY"
    assert (heard["sender"], heard["message"]) == ("lead", message)
    (report,) = logged(team, "hand", "swarm.report")
    assert (report["task_id"], report["status"]) == (UUID % 1, "completed")
    # the report came to the leader's machine, where a person asks for it
    words = ("swarm", "trace", UUID % 1, team.homes["lead"] / "lead", "--json")
    with Agent(linux(*map(str, words)), team.homes["lead"]) as command:
        assert command.wait() == 0, command.errors()
        (found,) = json.loads(command.text())["reports"]
    assert (found["who"], found["result"]) == ("hand", {"text": "Bed 3 is dry."})
