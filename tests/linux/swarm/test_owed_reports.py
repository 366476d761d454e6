"""The reports that an agent owes its operator outlive its process (CKP 9.3.3; docs/adr/0137)."""

import json

import pytest
from agents import eventually
from swarm_team import SWARM, UUID, delegate, project, start
from swarm_world import ENGINES, server_of, settings

from clawlite.linux.swarm.owed_reports import OwedReports

KINDS = ("sqlite-wal", *ENGINES)


@pytest.fixture(params=KINDS)
def images(request, tmp_path):
    """The images of a leader and of a worker."""
    more, server = {}, None
    if request.param in ENGINES:
        server = server_of(request.param, tmp_path / "engine")
        backend, more["toml"] = settings(request.param, server)
        more["coordination"] = dict(SWARM["coordination"], backend=backend)
    yield [project(tmp_path, name, **more) for name in ("lead", "hand")]
    if server:
        server.kill()


def is_at_rest(agent) -> bool:
    """Whether *agent* has nothing to say before it answers."""
    agent.line(json.dumps({"jsonrpc": "2.0", "id": 99, "method": "claw.status"}))
    return agent.message().get("id") == 99


def test_9_3_3_a_report_is_sent_after_a_restart_until_it_is_acknowledged(tmp_path, images):
    lead, hand = images
    with start(tmp_path, lead, swarm={}) as first:
        eventually(lambda: "result" in delegate(first, "look at 3"))
        delegate(first, "look at 4", 2)
    with start(tmp_path, hand), start(tmp_path, lead, swarm={}) as second:
        said = {one["id"]: one for one in (second.message(), second.message())}
        assert sorted(said) == [UUID % 1, UUID % 2]
        assert said[UUID % 1]["method"] == "claw.swarm.report"
        assert said[UUID % 1]["params"]["task_id"] == UUID % 1
        assert said[UUID % 1]["params"]["result"] == {"text": "Bed 3 is dry."}
        second.record({"jsonrpc": "2.0", "id": UUID % 1, "result": {"acknowledged": True}})
        assert is_at_rest(second)
        second.end()
        assert second.wait() == 0
    with start(tmp_path, lead, swarm={}) as third:
        report = third.message()
        assert (report["id"], report["method"]) == (UUID % 2, "claw.swarm.report")
        assert report["params"]["result"] == {"text": "Bed 4 is dry."}
        third.record({"jsonrpc": "2.0", "id": UUID % 2, "result": {"acknowledged": True}})
        assert is_at_rest(third)
        third.end()
        assert third.wait() == 0
    assert not list((tmp_path / "state/swarms/team").glob("*.owed"))


def test_an_operator_that_declares_no_swarm_is_owed_nothing(tmp_path):
    lead = project(tmp_path, "lead")
    with start(tmp_path, lead) as agent:
        assert "result" in delegate(agent, "look at 3")
    assert not list((tmp_path / "state/swarms/team").glob("*.owed"))


def test_a_disk_that_fails_is_told_of_and_nothing_else_fails(tmp_path):
    """It is no folder here."""
    (tmp_path / "team").touch()
    said = []
    owed = OwedReports(str(tmp_path / "team"), "lead", "a1", said.append)
    assert owed.take_over() == []
    owed.keep(UUID % 1, UUID % 1)
    owed.remove(UUID % 1)
    owed.close()
    assert said and all("does not outlive this process: " in one for one in said)
