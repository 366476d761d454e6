"""Agents of a swarm: real processes that share a folder, each with its own operator."""

import json
import os
import platform
import re
import signal
from pathlib import Path

import pytest
from agents import Agent, eventually, linux
from swarm_team import UUID, delegate, ended, look_on, project, start, statuses, swarm

POLL = {"x86_64": 7}.get(platform.machine())  # its number among the system calls


@pytest.fixture
def images(tmp_path):
    return project(tmp_path, "lead"), project(tmp_path, "hand")


def test_a_task_of_the_leader_is_done_by_a_worker(tmp_path, images):
    with start(tmp_path, images[0]) as lead:
        assert statuses(lead) == {"lead": "ready", "hand": "unavailable"}
        assert delegate(lead, "look at 2")["result"] == {"acknowledged": True}
        with start(tmp_path, images[1]) as hand:
            bus = look_on(tmp_path)
            assert ended(bus) == ("completed", "completed", {"text": "Bed 2 is dry."})
            assert statuses(lead) == statuses(hand) == {"lead": "ready", "hand": "ready"}
            assert bus.history(UUID % 1)[1][0][1] == "hand"
            assert delegate(lead, "look at 2")["result"] == {"acknowledged": True}
            assert len(bus.history(UUID % 1)[1]) == 1
            assert delegate(lead, "look at 3")["error"]["code"] == -32602
            bus.leave()
        eventually(lambda: statuses(lead)["hand"] == "unavailable")


def test_8_who_is_ready_has_found_its_peers_and_who_has_stopped_has_left(tmp_path, images):
    """Section 8, STARTING, 6, and STOPPING: nothing is waited for."""
    with start(tmp_path, images[1]) as hand:
        with start(tmp_path, images[0]) as lead:
            assert lead.call("claw.status", {}, 1)["result"]["state"] == "READY"
            assert statuses(lead) == {"lead": "ready", "hand": "ready"}
        assert lead.process.returncode is not None
        assert statuses(hand) == {"lead": "unavailable", "hand": "ready"}


def test_a_task_that_is_given_to_a_worker_is_its_own(tmp_path, images):
    with start(tmp_path, images[1]) as hand:
        delegate(hand, "look at 5")
        assert ended(look_on(tmp_path))[2] == {"text": "Bed 5 is dry."}


def test_who_delegates_loosens_nothing(tmp_path):
    """A task whose calls were refused is not reported as completed."""
    image = project(tmp_path, "hand", autonomy="observer")
    with start(tmp_path, image) as hand:
        delegate(hand, "water 2")
        state, status, result = ended(look_on(tmp_path))
        assert (state, status) == ("partial", "partial")
        assert "this agent only observes" in result["text"]
    calls = [line for line in (tmp_path / "state/hand/log.jsonl").read_text().splitlines()]
    (call,) = [json.loads(line) for line in calls if '"tool.call"' in line]
    assert call["caller"] == "team/hand" and call["status"] == "refused"


def test_what_takes_longer_than_the_swarm_allows_is_ended(tmp_path):
    (tmp_path / "bed").mkdir()
    aggregation = {"strategy": "leader-decides", "timeout_ms": 300}
    with start(tmp_path, project(tmp_path, "hand", aggregation=aggregation)) as hand:
        delegate(hand, "look at bed")
        state, status, result = ended(look_on(tmp_path))
        assert (state, status) == ("failed", "failed") and "time" in result["error"], result


def running(tmp_path) -> list:
    return [name for name in os.listdir(tmp_path / "bed") if name != "go"]


def test_a_worker_that_is_killed_while_it_reads_is_followed_by_another(tmp_path, images):
    (tmp_path / "bed").mkdir()
    with start(tmp_path, images[0]) as lead, start(tmp_path, images[1]) as first:
        delegate(lead, "look at bed")
        eventually(lambda: running(tmp_path))
        assert statuses(lead)["hand"] == "busy"
        with start(tmp_path, images[1]) as second:
            os.killpg(first.process.pid, signal.SIGKILL)
            eventually(lambda: len(running(tmp_path)) == 2)
            (tmp_path / "bed/go").touch()
            assert ended(look_on(tmp_path))[0] == "completed"
            assert second.process.poll() is None


def test_a_worker_that_is_killed_while_a_tool_acts_leaves_it_to_a_person(tmp_path, images):
    (tmp_path / "bed").mkdir()
    with start(tmp_path, images[0]) as lead, start(tmp_path, images[1]) as first:
        delegate(lead, "water bed")
        eventually(lambda: running(tmp_path))
        with start(tmp_path, images[1]):
            os.killpg(first.process.pid, signal.SIGKILL)
            state, status, result = ended(look_on(tmp_path))
            assert (state, status) == ("dead", "failed")
            assert "what it did is not known" in result["error"]
        assert len(running(tmp_path)) == 1


DELEGATES = """
[[rule]]
when = "team {words:text}"
call = "delegate"
arguments = { task = "{words}" }
then = [{ if = "failed", say = "It failed." }, { say = "{by} says: {result}" }]
"""


def leading(tmp_path) -> Agent:
    """Return a leader at a console, whose rules ask its team."""
    tools = ["claw://registry/clawlite/delegate@1.0.0"]
    image = project(tmp_path, "lead", tools=tools, rules=DELEGATES)
    return Agent(linux("run", image), tmp_path)


def test_a_turn_of_the_leader_asks_its_team_and_goes_on_with_the_report(tmp_path):
    hand = project(tmp_path, "hand")
    with leading(tmp_path) as lead, start(tmp_path, hand):
        lead.expect("is ready")
        lead.line("team look at 4")
        assert "Bed 4 is dry." in lead.expect("\n", 60) + lead.expect("\n", 60)


def test_a_tool_that_is_ended_takes_its_task_back(tmp_path):
    """Nobody has taken it, and nobody would hear of it."""
    with leading(tmp_path) as lead:
        lead.expect("is ready")
        lead.line("team look at 4")
        bus = look_on(tmp_path)
        eventually(lambda: bus.tasks(1))
        task_id = bus.tasks(1)[0][0]
        assert bus.state(task_id) == "waiting"
        lead.signal(signal.SIGINT)
        eventually(lambda: bus.state(task_id) == "failed")
        assert [what for _, what, _ in bus.history(task_id)[0]] == ["delegated", "withdrawn"]
        bus.leave()


def test_a_broadcast_is_heard_by_the_others(tmp_path, images):
    with start(tmp_path, images[0]) as lead, start(tmp_path, images[1]) as hand:
        params = {"swarm": "team", "message": {"type": "news", "data": "rain"}}
        message = {"jsonrpc": "2.0", "method": "claw.swarm.broadcast", "params": params}
        lead.line(json.dumps(message))
        log = tmp_path / "state/hand/log.jsonl"
        eventually(lambda: log.exists() and '"swarm.message"' in log.read_text())
        assert '"data":"rain"' in re.sub(r"\s", "", log.read_text())
        assert hand.call("claw.status")["result"]["state"] == "READY"


def test_9_3_3_an_operator_that_declares_swarm_is_sent_reports_and_broadcasts(tmp_path, images):
    with start(tmp_path, images[0], swarm={}) as lead, start(tmp_path, images[1]) as hand:
        assert delegate(lead, "look at 2")["result"] == {"acknowledged": True}
        report = lead.message()
        assert report["method"] == "claw.swarm.report" and report["params"]["task_id"] == UUID % 1
        assert report["params"]["result"] == {"text": "Bed 2 is dry."}
        # not acknowledged: it comes again when its task does, and in the next session
        assert delegate(lead, "look at 2")["result"] == {"acknowledged": True}
        assert lead.message() == report
        assert lead.call("claw.shutdown")["result"]["drained"] is True
        lead.initialize(capabilities={"swarm": {}})
        assert lead.message() == report
        lead.record({"jsonrpc": "2.0", "id": report["id"], "result": {"acknowledged": True}})
        lead.call("claw.shutdown")
        lead.initialize(capabilities={"swarm": {}})
        said = {"swarm": "team", "message": "rain"}
        spoken = {"jsonrpc": "2.0", "method": "claw.swarm.broadcast", "params": said}
        hand.record(spoken)
        assert lead.message() == spoken
        lead.record(spoken)  # its own is no news, and an operator without swarm hears none
        log = tmp_path / "state/hand/log.jsonl"
        eventually(lambda: log.exists() and '"swarm.message"' in log.read_text())
        for agent in (lead, hand):
            assert agent.call("claw.status")["result"]["state"] == "READY"


def test_agents_with_different_versions_of_the_swarm_are_told_once(tmp_path, images):
    home = tmp_path / "newer"
    home.mkdir()
    newer = project(home, "hand", aggregation={"strategy": "merge"})
    log, differs = tmp_path / "state/lead/log.jsonl", tmp_path / "state/swarms/team/differs"
    with start(tmp_path, images[0]) as lead:
        with start(tmp_path, newer):
            eventually(lambda: log.exists() and "swarm.differs" in log.read_text())
            eventually(lambda: differs.exists())
            code, said, _ = swarm(tmp_path, "status", tmp_path / "lead")
            assert code == 0 and "hand has another version of the Swarm team: build both" in said
            code, said, _ = swarm(tmp_path, "status", newer, "--json")
            assert json.loads(said)["differs"] == ["lead"]
            delegate(lead, "look at 1")
            bus = look_on(tmp_path)
            ended(bus)
            bus.leave()
            assert log.read_text().count("swarm.differs") == 1
        with start(tmp_path, images[1]) as hand:  # built anew
            eventually(lambda: not differs.exists())
            assert statuses(hand)["lead"] == "ready"
            assert json.loads(swarm(tmp_path, "status", newer, "--json")[1])["differs"]
            assert json.loads(swarm(tmp_path, "status", images[1], "--json")[1])["differs"] == []


def test_an_agent_with_nothing_to_do_is_not_woken(tmp_path, images):
    """No busy waiting: once a task is done, its loop has nothing to wake up for."""
    with start(tmp_path, images[1]) as hand:
        delegate(hand, "look at 1")
        bus = look_on(tmp_path)
        ended(bus)
        bus.leave()

        def sleeps():
            """It waits in a poll without end, but for the heartbeat."""
            number, *arguments = Path(f"/proc/{hand.process.pid}/syscall").read_text().split()
            return number == str(POLL) and int(arguments[2], 16) & 0xFFFFFFFF > 10000

        if POLL and os.geteuid() == 0:
            eventually(sleeps)
