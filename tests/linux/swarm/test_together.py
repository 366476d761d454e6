"""The agents of a swarm in one process: ``backend: in-process``."""

import json
import os
import signal

import pytest
from agents import Agent, eventually, linux
from swarm_team import SWARM, delegate, project, start, swarm

INSIDE = {"coordination": dict(SWARM["coordination"], backend="in-process")}
ROLES = [
    {"identity_ref": "lead", "role": "leader"},
    {"identity_ref": "ada", "role": "worker"},
    {"identity_ref": "bob", "role": "worker", "count": 2},
]
PARTS = ("ada", "bob", "bob")


def team(tmp_path, names=("lead", "hand"), **changes) -> list:
    return [project(tmp_path, name, **INSIDE, **changes) for name in names]


def logged(tmp_path, name: str) -> list:
    log = tmp_path / "state" / name / "log.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_a_task_is_done_by_another_agent_of_the_process(tmp_path):
    team(tmp_path)
    words = ("run", "look at 7", tmp_path / "lead", "--json")
    code, said, _ = swarm(tmp_path, *words)
    report = json.loads(said)
    assert code == 0 and (report["by"], report["result"]) == ("hand", {"text": "Bed 7 is dry."})
    assert not os.path.exists(tmp_path / "state/swarms"), "nothing of the swarm is on disk"
    calls = [one for one in logged(tmp_path, "hand") if one["event"] == "tool.call"]
    assert [(one["tool"], one["caller"]) for one in calls] == [("look", "team/operator")]
    assert not [one for one in logged(tmp_path, "lead") if one["event"] == "tool.call"]


def test_each_agent_keeps_its_own_autonomy(tmp_path):
    project(tmp_path, "lead", **INSIDE)
    project(tmp_path, "hand", autonomy="observer", **INSIDE)
    code, said, _ = swarm(tmp_path, "run", "water 7", tmp_path / "lead", "--json")
    assert code == 1 and json.loads(said)["status"] == "partial"


@pytest.mark.parametrize("strategy", ["merge", "majority-vote"])
def test_a_task_is_divided_among_agents_of_one_process(tmp_path, strategy):
    """Also among as many tasks at once as an agent has processes elsewhere."""
    inside = {"coordination": dict(INSIDE["coordination"], message_passing="event-bus")}
    for name in ("lead", "ada", "bob"):
        project(tmp_path, name, agents=ROLES, aggregation={"strategy": strategy}, **inside)
    code, said, errors = swarm(tmp_path, "run", "look at 7", tmp_path / "ada", "--json")
    report = json.loads(said)
    assert (code, report["by"]) == (0, "lead"), errors
    result = report["result"]
    if strategy == "merge":
        assert result["text"] == "".join("%s: Bed 7 is dry.\n" % one for one in PARTS).strip()
    else:
        assert (result["text"], result["votes"], result["of"]) == ("Bed 7 is dry.", 3, 3)


def test_up_has_all_agents_in_one_process_that_is_started_again(tmp_path):
    team(tmp_path)
    with Agent(linux("swarm", "up", "lead", "hand"), tmp_path) as up:
        up.expect("[lead] lead is ready")
        up.expect("[hand] hand is ready")
        [pid] = _children(up.process.pid)
        os.kill(pid, signal.SIGKILL)
        up.expect("ended with -9; it starts again in 1 s")
        up.expect("[hand] hand is ready")
        [pid] = _children(up.process.pid)
        up.signal(signal.SIGINT)
        assert up.wait() == 0
        eventually(lambda: not os.path.exists("/proc/%d" % pid))


def _children(pid: int) -> list:
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return [int(word) for word in file.read().split()]


def test_ctrl_c_ends_a_task_and_the_agents(tmp_path):
    (tmp_path / "bed").mkdir()
    team(tmp_path)
    with Agent(linux("swarm", "run", "look at bed", "lead"), tmp_path) as command:
        eventually(lambda: os.listdir(tmp_path / "bed"))
        command.signal(signal.SIGINT)
        assert command.wait() == 130
        assert "the task ended with its agents" in command.errors()


def test_an_agent_that_is_missing_is_named(tmp_path):
    team(tmp_path, ("lead",))
    for words in (("up", "lead"), ("run", "look at 7", "lead")):
        code, _, errors = swarm(tmp_path, *words)
        assert code == 1 and "the swarm team is one process (backend in-process), and" in errors
        assert "hand is not here" in errors and "Traceback" not in errors


def test_an_agent_that_runs_alone_divides_nothing(tmp_path):
    aggregation = {"strategy": "majority-vote"}
    image, _ = team(tmp_path, aggregation=aggregation)
    with start(tmp_path, image) as alone:
        error = delegate(alone, "look at 7")["error"]
    assert "this process is alone (backend in-process)" in error["message"]
